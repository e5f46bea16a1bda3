#!/usr/bin/env bash
# What an event, a span, a tick, sealing and a simulated event cost: benchmarks, six times each, as benchstat shows them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
scripts/go.sh test -run '^$' -bench . -count 6 ./tracer/... ./replay/sim | tee "$out"
scripts/go.sh tool -modfile=tools.mod benchstat "$out"
