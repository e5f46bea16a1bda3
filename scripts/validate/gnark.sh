#!/usr/bin/env bash
# Own proving against groth16.Prove of gnark, same circuit, key and machine, by turns: within 10 %
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for log_size in 16 18; do
	echo "log_size $log_size"
	HIGHWATER_BENCH_LOG_SIZE=$log_size scripts/go.sh test -run '^$' -bench '^BenchmarkProve$' -benchtime 2x -count 2 \
		./prover/groth16 | tee "$out"
	scripts/go.sh tool -modfile=tools.mod benchstat -col /impl "$out"
done
