#!/usr/bin/env bash
# The confusion matrix of analyze over labelled traces: every kind by simulation (25 seeds), twelve kinds by real runs (REAL=1 each)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seeds=${SEEDS:-25} real=${REAL:-1}
out=docs/bench/corpus.txt
{
	echo "# make validate-corpus: bin/highwater corpus --seeds $seeds --real $real"
	echo "# $(git rev-parse --short HEAD), $(date -u +%F), $(nproc) CPUs, $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), Linux $(uname -r)"
	echo "#"
	echo "# Simulated: replay/sim runs of random pipelines, with the counters that a kind needs added by the generator."
	echo "# Recorded: the prover at 2^15 (CPU backend), a small Go program, a C program that touches pages."
	echo
} > "$out"
COLUMNS=160 bin/highwater corpus -q --seeds $seeds --real $real | tee -a "$out"
