#!/usr/bin/env bash
# Traces of 12 settings replayed under their own settings: frozen makespan and live peak within 1 %, fitted within 5 % and 3 % (about 6 min)
#
#   --size N      log size (default 15)
#   --dir DIR     where the traces go; those that are there are not made again (default .cache/identity)
#   --report-only replay the traces that are there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
size=15 dir=.cache/identity record=1
while [ $# -gt 0 ]; do
	case $1 in
	--size) size=$2 && shift 2 ;;
	--dir) dir=$2 && shift 2 ;;
	--report-only) record= && shift ;;
	*) echo "unknown argument $1; see the head of $0" && exit 2 ;;
	esac
done
mkdir -p "$dir"
highwater=${HIGHWATER:-bin/highwater}
settled=$((128 << size)) # a, b, c and W

n=0
# record FLAG…: one run of 24 partitions, unless it is there
record() {
	n=$((n + 1))
	local out
	out=$dir/$(printf %02d $n).hw
	[ ! "$record" ] || { [ -e "$out/manifest.json" ] && [ ! -e "$out/journal" ]; } || {
		rm -rf "$out"
		echo "$(date -u +%T) $out: $* (load $(cut -d' ' -f1 /proc/loadavg))"
		"$highwater" prove --quiet --backend cpu --jobs 6 --partitions 4 "--log-size=$size" --out "$out" "$@" >/dev/null
	}
}
record --permit-release=synth_end
record --permit-release=send_accepted
record --permit-release=gpu_pickup --channel-capacity=0
record --permit-release=freed --partition-workers=4
record --permit-release=synth_end --partition-workers=6 --channel-capacity=unbounded
record --no-early-free
record --no-split-proving
record --gpu-workers=2 --partition-workers=4
record --jobs-in-flight=2 --queue-order=priority
record --byte-budget=$((3 * settled)) --partition-workers=4
record --partition-workers=1
record --no-early-free --no-split-proving --permit-release=synth_end --partition-workers=8 --channel-capacity=4

"${PYTHON:-python3}" scripts/identity_bars.py "$highwater" "$dir"/*.hw
