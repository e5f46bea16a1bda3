#!/usr/bin/env bash
# diff of two traces of 10 M events in 25 s, and the story of presize on and off on the CPU backend, interleaved runs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo "machine: $(nproc) CPUs, $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo), load $(cut -d' ' -f1-3 /proc/loadavg), $(date -u +%F)"

echo
echo "== presize off (base) and on (new), 10 runs each, by turns"
for i in $(seq 10); do
	bin/highwater prove --circuit mimc --log-size 14 --jobs 1 --partitions 4 --no-presize --out "$dir/off/$i.hw" -q >/dev/null
	bin/highwater prove --circuit mimc --log-size 14 --jobs 1 --partitions 4 --presize --out "$dir/on/$i.hw" -q >/dev/null
done
code=0
bin/highwater diff "$dir/off" "$dir/on" --across settings -q || code=$?
[ "$code" -ne 2 ]

echo
echo "== two traces of 10 M events"
for seed in 1 2; do
	bin/highwater replay "$dir/on/$seed.hw" --set jobs="${DIFF_JOBS:-13000}" --draws 2 --seed "$seed" --out "$dir/big$seed.hw" -q >/dev/null 2>&1
done
bin/highwater info "$dir/big1.hw" | grep '^  events'
begin=$(date +%s%N)
code=0
bin/highwater diff "$dir/big1.hw" "$dir/big2.hw" -q >"$dir/out.txt" || code=$?
took=$(( ($(date +%s%N) - begin) / 1000000 ))
head -2 "$dir/out.txt"
echo "diff took $took ms, exit $code"
[ "$code" -ne 2 ] && [ "$took" -le 25000 ]
