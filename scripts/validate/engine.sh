#!/usr/bin/env bash
# The simulation engine: events a second on one core, allocations, 10,000 replays of 500 partitions, a sweep of 1,000 settings
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scripts/go.sh test -run '^$' -bench 'BenchmarkSim' -count 6 ./replay/sim
scripts/go.sh test -run '^$' -bench 'BenchmarkTenThousand|BenchmarkSweep' -benchtime 1x -count 3 ./replay/sim
scripts/go.sh test -run '^$' -bench BenchmarkPlan -benchtime 1x -count 3 ./replay/plan
scripts/go.sh test -run 'Allocates' -v ./replay/sim
# Random models under random policies, other ones each time, against the slow simulator.
scripts/go.sh test ./replay/sim -run EveryPolicy -random -rapid.checks 2000 -rapid.nofailfile -timeout 30m
