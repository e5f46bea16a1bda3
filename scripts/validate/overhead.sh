#!/usr/bin/env bash
# CPU time with and without recording, 20 pairs in ABBA order, each on one CPU: upper 95 % bound of the ratio within 1 %
#
# Two runs share a CPU, so each takes twice the time it would take alone on it, and would be sampled twice as often a
# CPU second: sample_hz 10 gives them the samples of a run that has that CPU to itself at the default 20 Hz.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scripts/go.sh run ./internal/overhead -highwater bin/highwater -pairs 20 -limit 1.01 -- \
	--circuit label --log-size 16 --jobs 2 --partitions 2 --sample-hz 10 "$@"
