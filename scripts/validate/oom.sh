#!/usr/bin/env bash
# How fast `highwater oom` reads a log of 100 MB, and a deeper run of its fuzz target
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scripts/go.sh test -run '^$' -bench Read -benchtime 1x ./analyze/oom
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# The command itself, with its start: a kernel log of 100 MB with one report in its middle.
kern() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "Nov 29 14:55:%02d node-7 kernel: [%d.%06d] usb 1-1: new high-speed USB device number %d using xhci_hcd\n", i / 1000 % 60, 900 + i / 1000, i % 1000, i % 100 }'; }
{ kern 500000; cat analyze/oom/testdata/cases/A01-global-6.11-full.dmesg; kern 500000; } > "$dir/kern.log"
echo "highwater oom, a kernel log of $(stat -c %s "$dir/kern.log") bytes:"
for _ in 1 2 3; do
	status=0
	# %e wall and %U + %S CPU in seconds, %M KiB at most
	env time -f '%e s wall, %U s + %S s CPU, %M KiB at most' bin/highwater oom "$dir/kern.log" > "$dir/out" || status=$?
	[ "$status" = 1 ] || { echo "exit $status, want 1"; exit 1; }
	grep -q 'stress-ng-vm (pid 116)' "$dir/out"
done
scripts/go.sh test -run '^$' -fuzz '^FuzzRead$' -fuzztime "${FUZZ:-20000x}" -fuzzminimizetime 10x ./analyze/oom | tail -2
