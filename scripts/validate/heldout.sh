#!/usr/bin/env bash
# Settings that no model saw: 60 runs of a Latin hypercube over 3 sizes, predicted from two each (about 40 min, quiet machine)
#
# Runs that are already in DIR are not made again: an interrupted validation goes on where it was.
#   --count N     take the first N of the 60 runs (default 60)
#   --design N    runs in the hypercube itself (default 60)
#   --sizes LIST  log sizes (default 15,16,17)
#   --seed N      of the hypercube (default 1)
#   --dir DIR     where the traces go (default .cache/heldout)
#   --report-only predict from the traces that are there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
count=60 design=60 sizes=15,16,17 seed=1 dir=.cache/heldout record=1
while [ $# -gt 0 ]; do
	case $1 in
	--count) count=$2 && shift 2 ;;
	--design) design=$2 && shift 2 ;;
	--sizes) sizes=$2 && shift 2 ;;
	--seed) seed=$2 && shift 2 ;;
	--dir) dir=$2 && shift 2 ;;
	--report-only) record= && shift ;;
	*) echo "unknown argument $1; see the head of $0" && exit 2 ;;
	esac
done
mkdir -p "$dir"
highwater=${HIGHWATER:-bin/highwater}

# record NAME JOBS FLAG…: one run, unless it is there
record() {
	local name=$1 jobs=$2 && shift 2
	[ -e "$dir/$name.hw/manifest.json" ] && [ ! -e "$dir/$name.hw/journal" ] && return
	rm -rf "$dir/$name.hw"
	echo "$(date -u +%T) $name: $* (load $(cut -d' ' -f1 /proc/loadavg))"
	"$highwater" prove --quiet --backend cpu --jobs "$jobs" --partitions 4 --out "$dir/$name.hw" "$@" >/dev/null
}

if [ "$record" ]; then
	for size in ${sizes//,/ }; do
		record "fit-$size-pile" 8 "--log-size=$size" --partition-workers=6 --permit-release=synth_end
		record "fit-$size-held" 8 "--log-size=$size" --partition-workers=2 --permit-release=send_accepted
	done
	n=0
	while read -r -a flags && [ $n -lt "$count" ]; do
		n=$((n + 1))
		record "run-$(printf %02d $n)" 6 "${flags[@]}"
	done < <("${PYTHON:-python3}" scripts/heldout_design.py "$design" "$seed" ${sizes//,/ })
fi

"$highwater" validate --quiet "$dir"/*.hw --fit-on 'fit-*' --json >"$dir/validation.json" || [ $? -eq 1 ]
COLUMNS=110 "$highwater" validate --quiet "$dir"/*.hw --fit-on 'fit-*' || [ $? -eq 1 ]
"${PYTHON:-python3}" scripts/heldout_bars.py "$dir/validation.json"
