#!/usr/bin/env bash
# 50 SIGKILLs of proving runs at random moments: a valid trace each time, no acknowledged event lost
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scripts/go.sh test -count 5 -run '^TestCrash$' -v ./prover
