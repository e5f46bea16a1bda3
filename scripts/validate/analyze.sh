#!/usr/bin/env bash
# All analyzers on a trace of 10 million rows on disk: at most 10 s and 1 GiB on 2 cores
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=docs/bench/analyze.txt
{
	echo "# make validate-analyze: HIGHWATER_BENCH_ROWS=10000000 go test -run '^\$' -bench RunFile -benchtime 1x -count 3 ./analyze"
	echo "# $(git rev-parse --short HEAD), $(date -u +%F), $(nproc) CPUs, $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -1), Linux $(uname -r)"
	echo "# load average before: $(cut -d' ' -f1-3 /proc/loadavg). s/run is by the clock, cpu-s/run the CPU time of both cores."
} > "$out"
HIGHWATER_BENCH_ROWS=10000000 scripts/go.sh test -run '^$' -bench RunFile -benchtime 1x -count 3 ./analyze | tee -a "$out"
awk '/^BenchmarkRunFile/ { for (i = 3; i < NF; i += 2) v[$(i+1)] = $i; if (v["MiB-peak"] > 1024) bad = 1 }
	/^BenchmarkRunFile/ { if (v["s/run"] > 10) bad = 1 } END { exit bad }' "$out"
