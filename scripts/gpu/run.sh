#!/usr/bin/env bash
# Tests, measures and records the prover on a GPU host that has neither Go nor a network.
#
#   scripts/gpu/run.sh pack            here: builds what the host needs into .cache/gpu (40 MB, to be copied there)
#   scripts/gpu/run.sh STEP...         there: runs steps, in the order given; a table comes last
#   scripts/gpu/run.sh steps           lists the steps with what they do
#
# Where the host is this machine, `make native build` does instead of pack, and the steps run from bin/.
# OUT (default gpu-out) gets summary.tsv, a log of each step and the traces that are to be kept, one small tar each;
# BUNDLE, if set, all of it in one tar, anew after each step. LOG (22) is the large size, PARTITIONS (10) how many,
# CPUS how many CPUs all but step two may use (default: all), LIMIT (120) the seconds after which a run is stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
pack=.cache/gpu

if [ "${1:-}" = pack ]; then
	mkdir -p $pack
	scripts/go.sh build -ldflags='-s -w' -o $pack/highwater ./cmd/highwater
	scripts/go.sh test -ldflags='-s -w' -c -o $pack/device.test ./prover/device
	lib=${LIBRARY:-bin/libhighwater_native.so}
	[ -e "$lib" ] || { scripts/native/build.sh cuda; lib=bin/libhighwater_native.so; }
	cp "$lib" $pack/libhighwater_native.so
	gzip -f -1 $pack/highwater $pack/device.test $pack/libhighwater_native.so
	ls -l $pack
	exit
fi

[ $# -gt 0 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
if [ "$1" = steps ]; then
	sed -n 's/^step_\([a-z0-9_]*\)() { # /\1\t/p' "$0" | expand -t 16
	exit
fi

out=${OUT:-gpu-out}
work=${WORK:-$(mktemp -d)}
mkdir -p "$out" "$work/bin"
out=$(cd "$out" && pwd)
summary=$out/summary.tsv
for f in highwater device.test libhighwater_native.so; do
	if [ -e "$work/bin/$f" ]; then continue; fi
	if [ -e $pack/$f.gz ]; then gzip -dc $pack/$f.gz >"$work/bin/$f"; elif [ -e bin/$f ]; then cp bin/$f "$work/bin/"; fi
	[ ! -e "$work/bin/$f" ] || chmod +x "$work/bin/$f"
done
hw=$work/bin/highwater
export HIGHWATER_NATIVE=${HIGHWATER_NATIVE:-$work/bin/libhighwater_native.so}
export HIGHWATER_CACHE_DIR=${HIGHWATER_CACHE_DIR:-$work/keys}
log=${LOG:-22}
partitions=${PARTITIONS:-10}
limited=(timeout -k 10 "${LIMIT:-120}")
[ -z "${CPUS:-}" ] || taskset -cp "0-$((CPUS - 1))" $$ >/dev/null

note() { printf '%s\t%s\t%s\n' "$@" | tee -a "$summary"; }

# prove NAME ARGS...: one run, recorded; its JSON is kept, its stages go to the summary.
prove() {
	local name=$1
	shift
	rm -rf "$work/$name.hw"
	"${limited[@]}" "$hw" prove --quiet --json --backend device --out "$work/$name.hw" "$@" >"$out/$name.json" 2>"$out/$name.err" ||
		{ note "$name" FAILED "$(tail -n 2 "$out/$name.err" | tr '\n' ' ')"; return 0; }
	scripts/gpu/table.py "$name" "$out/$name.json" | tee -a "$summary"
}

# keep NAME: the sealed trace as a tar, if it is small.
keep() {
	[ -d "$work/$1.hw" ] || return 0
	tar -C "$work" -czf "$out/$1.tgz" "$1.hw"
}

step_machine() { # what the machine is
	note machine cpus "$(nproc)"
	note machine gpu "$(nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv,noheader 2>/dev/null | tr '\n' ';')"
	note machine library "$("$hw" bench --what ntt --sizes 1 --count 1 --backend device 2>&1 | grep -E '^native|error' || true)"
}

step_smoke() { # one small proof; nothing after it runs where that fails
	"${limited[@]}" "$hw" prove --json --no-record --backend device --circuit mimc --log-size 12 --setup device --b-g2 device \
		>"$out/smoke.json" 2>"$out/smoke.err" || { note smoke FAILED "$(tail -n 3 "$out/smoke.err")"; exit 1; }
	note smoke verified "$(sed -n 's/.*"verified_partitions": \([0-9]*\).*/\1/p' "$out/smoke.json")"
}

step_test() { # every test of prover/device against the library, sizes up to TEST_LOG (LOG)
	HIGHWATER_TEST_NATIVE=$HIGHWATER_NATIVE HIGHWATER_TEST_LOG=${TEST_LOG:-$log} \
		"${limited[@]}" sh -c 'cd prover/device && exec "$0" -test.v -test.timeout 8m' "$work/bin/device.test" >"$out/test.log" 2>&1 ||
		note test FAILED "$(grep -m 3 -E '^ +[a-z_]+_test.go.*|^panic|^FAIL' "$out/test.log" | tr '\n' ' ')"
	note test passed "$(grep -c '^--- PASS' "$out/test.log")"
	grep -E '^--- (PASS|FAIL)' "$out/test.log" | sed 's/^--- //' >"$out/tests.txt"
}

step_equal() { # proofs of device and CPU, same seed, are the same bytes: label and mimc at 2^20
	for c in label mimc; do
		local sums=
		for b in cpu device; do
			"${limited[@]}" "$hw" prove --quiet --json --no-record --backend $b --circuit $c --log-size 20 --setup device \
				--b-g2 "$b" >"$out/equal-$c-$b.json" 2>"$out/equal-$c-$b.err" || note equal-$c FAILED "$(tail -n 1 "$out/equal-$c-$b.err")"
			sums+=" $(sed -n 's/.*"proofs_sha256": "\(.*\)".*/\1/p' "$out/equal-$c-$b.json")"
		done
		read -r one two <<<"$sums"
		[ "$one" = "$two" ] && note equal-$c same "${one:0:16}" || note equal-$c DIFFERENT "$sums"
	done
}

step_label20() { # 10 partitions of the label circuit at 2^20, kept
	prove label-20 --circuit label --log-size 20 --partitions "$partitions" --setup device --gpu-workers 2 --partition-workers 8
	keep label-20
}

step_label() { # 10 partitions of the label circuit at 2^LOG, kept
	prove label-$log --circuit label --log-size "$log" --partitions "$partitions" --setup device --gpu-workers 2 --partition-workers 8
	keep label-$log
}

step_mimc() { # 10 partitions of the mimc circuit at 2^LOG
	prove mimc-$log --circuit mimc --log-size "$log" --partitions "$partitions" --setup device --gpu-workers 2 --partition-workers 8 --b-g2 device
}

step_mimc24() { # one partition of the mimc circuit at 2^24, kept
	prove mimc-24 --circuit mimc --log-size 24 --partitions 1 --setup device --b-g2 device
	rm -f "$HIGHWATER_CACHE_DIR"/*24*
	keep mimc-24
}

step_rho() { # for replay, kept: mimc at 2^LOG, b_g2 in the lock, 8, 13 and 16 synthesis workers
	for n in 8 13 16; do
		prove rho-$n --circuit mimc --log-size "$log" --partitions $((3 * n)) --partition-workers $n --permit-release synth_end \
			--channel-capacity unbounded --b-g2 device --no-split-proving --setup device
		keep rho-$n
	done
}

step_unsplit() { # for replay, kept: label at 2^LOG, b_g2 on the CPU in the lock, 1, 2 and 4 synthesis workers
	for n in 1 2 4; do
		prove unsplit-$n --circuit label --log-size "$log" --partitions 6 --partition-workers $n --no-split-proving --setup device
		keep unsplit-$n
	done
}

step_split() { # the same with b_g2 beside the next start
	prove split-4 --circuit label --log-size "$log" --partitions 6 --partition-workers 4 --setup device
}

step_pinned() { # for diff, kept: mimc at 2^LOG from pageable, registered and pooled memory
	for p in pageable register pool; do
		prove pinned-$p --circuit mimc --log-size "$log" --partitions "$partitions" --partition-workers 8 --gpu-workers 2 \
			--b-g2 device --pinned $p --setup device
		keep pinned-$p
	done
}

step_channel() { # channel of one slot against one a partition
	for n in 1 "$partitions"; do
		prove channel-$n --circuit mimc --log-size "$log" --partitions "$partitions" --partition-workers "$partitions" \
			--b-g2 device --channel-capacity "$n" --setup device
	done
}

step_cpu() { # one partition of mimc and label at 2^LOG on the CPUs, to compare prove_start with
	for c in mimc label; do
		prove cpu-$c --backend cpu --circuit $c --log-size "$log" --partitions 1 --setup device
	done
}

step_overhead() { # what recording costs: pairs of runs with and without, mimc at 2^18
	for i in 1 2 3 4 5 6; do
		prove overhead-on-$i --circuit mimc --log-size 18 --partitions 40 --partition-workers 4 --gpu-workers 2 --b-g2 device --setup device >/dev/null
		"$hw" prove --quiet --json --backend device --no-record --circuit mimc --log-size 18 --partitions 40 --partition-workers 4 \
			--gpu-workers 2 --b-g2 device >"$out/overhead-off-$i.json"
	done
	scripts/gpu/table.py --overhead "$out"/overhead-on-*.json -- "$out"/overhead-off-*.json | tee -a "$summary"
	rm -f "$out"/overhead-*
}

step_soak() { # 1000 small proofs in one run: memory of host and device at the start and at the end, events dropped
	prove soak --circuit mimc --log-size 12 --jobs 100 --partitions 10 --jobs-in-flight 2 --gpu-workers 2 --partition-workers 4 \
		--setup device --sample-hz 50
	"$hw" export "$work/soak.hw" --csv "$work/soak-csv" --quiet >/dev/null
	scripts/gpu/table.py --growth "$work/soak-csv" | tee -a "$summary"
}

step_kill() { # SIGKILL in the middle of a run, five times: every acknowledged event is in the recovered trace
	"$hw" prove --quiet --no-record --backend device --circuit mimc --log-size 14 --setup device >/dev/null 2>&1 # makes the keys
	for i in 1 2 3 4 5; do
		rm -rf "$work/kill.hw" "$work/witness"
		HIGHWATER_WITNESS=$work/witness "$hw" prove --quiet --backend device --circuit mimc --log-size 14 --jobs 2000 --jobs-in-flight 2 \
			--out "$work/kill.hw" >/dev/null 2>&1 &
		local pid=$!
		sleep "1.$((i * 2 % 10))"
		kill -KILL $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		"$hw" recover "$work/kill.hw" --json >"$work/kill.json"
		scripts/gpu/table.py --recovered "$work/witness" "$work/kill.json" | tee -a "$summary"
	done
}

step_bench() { # NTT, MSM and upload by size, sppark's own beside them
	"${limited[@]}" "$hw" bench --json --backend device --what ntt,msm,upload --sizes 20,22,24 --groups g1,g2 --profiles uniform,label,one-value \
		--sppark --count 5 >"$out/bench.json" 2>"$out/bench.err" || note bench FAILED "$(tail -n 1 "$out/bench.err")"
	scripts/gpu/table.py --bench "$out/bench.json" | tee -a "$summary"
}

step_two() { # mimc at 2^LOG on one device and on two, work spread over both; all CPUs
	taskset -cp "0-$(($(nproc --all) - 1))" $$ >/dev/null
	for d in 1 2; do
		prove two-mimc-$d --circuit mimc --log-size "$log" --partitions 32 --devices $d --gpu-workers 2 --partition-workers 28 \
			--b-g2 device --setup device
	done
	keep two-mimc-2
	[ -z "${CPUS:-}" ] || taskset -cp "0-$((CPUS - 1))" $$ >/dev/null
}

for step in "$@"; do
	declare -F "step_$step" >/dev/null || { echo "no such step: $step; see $0 steps" >&2; exit 2; }
	began=$(date +%s)
	"step_$step"
	note "$step" took_s $(($(date +%s) - began))
	[ -z "${BUNDLE:-}" ] || tar -C "$out" -czf "$BUNDLE" .
done
