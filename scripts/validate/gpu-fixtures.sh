#!/usr/bin/env bash
# The recorded GPU runs of replay/testdata/gpu: replayed as they were, and predicted from each other (about 1 min)
#
# Prints the tables of docs/bench/validation.md. Missed bars are marked, and do not fail: what holds is
# held by TestIdentityOfGPURuns and TestGPURunsAroundRhoOne.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
highwater=$(realpath "${HIGHWATER:-bin/highwater}")
bars=$PWD/scripts/identity_bars.py
cd replay/testdata/gpu
"${PYTHON:-python3}" "$bars" "$highwater" * || true
for on in 'rho-8 rho-16' rho-13; do
	args=()
	for name in $on; do args+=(--fit-on "$name"); done
	printf '\n'
	COLUMNS=110 "$highwater" validate --quiet rho-8 rho-13 rho-16 "${args[@]}"
done
