#!/usr/bin/env bash
# Tests, measures and records the prover on a GPU host that has neither Go nor a network.
#
#   scripts/gpu/run.sh pack            here: builds what the host needs into .cache/gpu (40 MB, to be copied there)
#   scripts/gpu/run.sh STEP...         there: runs steps, in the order given; a table comes last
#   scripts/gpu/run.sh steps           lists the steps: seconds expected on one H200 with 16 CPUs, what they do
#   scripts/gpu/run.sh plans           lists plans: names of steps that fit one command, to be given like a step
#
# Where the host is this machine, `make native build` does instead of pack, and the steps run from bin/.
# OUT (default gpu-out) gets summary.tsv, a log of each step and the traces that are to be kept, one small tar each;
# BUNDLE, if set, all of it as a tar in pieces of 15 MiB (BUNDLE.a, .b ...), anew after each step. WORK keeps binaries
# and keys from one command to the next. BUDGET: seconds; a step that is expected to end later is not begun, and the
# last line says which were left. LOG (22) is the large size, PARTITIONS (10) how many, CPUS how many CPUs all but step
# two may use (default: all), LIMIT (120) the seconds after which a run is stopped. SMALL=1: toy sizes of mimc, to try
# the steps on the twin (HIGHWATER_NATIVE names it).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
pack=.cache/gpu
binaries=(highwater device.test libhighwater_native.so highwater_native_device_test highwater-native-bench)

# In the order of what they are worth. Expected: about 179, 308 and 538 s; 84 s on two GPUs.
plan_first="machine smoke exact_msm exact_ntt exact_fields native exact_faults equal exact_rest soak"
plan_second="machine smoke sppark label20 label mimc24 pinned channel splits table bench"
plan_third="machine smoke overhead sanitize ncu overhead_pipeline kill"
plan_both="machine smoke exact_two two soak"

if [ "${1:-}" = pack ]; then
	mkdir -p $pack
	scripts/go.sh build -ldflags='-s -w' -o $pack/highwater ./cmd/highwater
	scripts/go.sh test -ldflags='-s -w' -c -o $pack/device.test ./prover/device
	built=.cache/native/cuda
	scripts/native/build.sh cuda # nothing to do where make native has just run
	strip -o $pack/highwater_native_device_test $built/highwater_native_device_test
	strip -o $pack/highwater-native-bench $built/highwater_native_bench
	cp "${LIBRARY:-$built/libhighwater_native.so}" $pack/libhighwater_native.so
	(cd $pack && gzip -f -6 "${binaries[@]}")
	git describe --always --dirty >$pack/commit 2>/dev/null || echo unknown >$pack/commit
	ls -l $pack
	exit
fi

[ $# -gt 0 ] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
case "$1" in
steps)
	sed -n 's/^step_\([a-z0-9_]*\)() { # \[\([0-9]*\)\] /\1\t\2\t/p' "$0" | expand -t 20,26
	exit
	;;
plans)
	sed -n 's/^plan_\([a-z]*\)="\(.*\)"/\1\t\2/p' "$0"
	exit
	;;
esac

out=${OUT:-gpu-out}
work=${WORK:-$(mktemp -d)}
mkdir -p "$out" "$work/bin" "$work/test"
out=$(cd "$out" && pwd)
summary=$out/summary.tsv
for f in "${binaries[@]}"; do
	[ ! -e "$work/bin/$f" ] && [ ! -e "$work/test/$f" ] || continue
	for from in $pack/$f.gz bin/$f .cache/native/cuda/$f; do
		[ -e "$from" ] || continue
		case $from in *.gz) gzip -dc "$from" >"$work/bin/$f" ;; *) cp "$from" "$work/bin/" ;; esac
		chmod +x "$work/bin/$f"
		break
	done
done
[ ! -e "$work/bin/device.test" ] || mv "$work/bin/device.test" "$work/test/" # it tests that no library lies beside it
hw=$work/bin/highwater
export HIGHWATER_NATIVE=${HIGHWATER_NATIVE:-$work/bin/libhighwater_native.so}
export HIGHWATER_CACHE_DIR=${HIGHWATER_CACHE_DIR:-$work/keys}
log=${LOG:-22} mid=20 big=24 low=18 tiny=14 least=12 label=label workers=8
partitions=${PARTITIONS:-10}
sizes=20,22,24 test_log=${TEST_LOG:-$log} sppark=(--sppark) native_sppark=() starts=10
if [ -n "${SMALL:-}" ]; then
	log=12 mid=11 big=13 low=11 tiny=10 least=10 label=mimc workers=2
	partitions=${PARTITIONS:-3} sizes=6,8 test_log= sppark=() native_sppark=(--no-sppark) starts=2
fi
limited=(timeout -k 10 "${LIMIT:-120}")
under=() # what start_bench runs its program under
[ -z "${CPUS:-}" ] || taskset -cp "0-$((CPUS - 1))" $$ >/dev/null

note() { printf '%s\t%s\t%s\n' "$@" | tee -a "$summary"; }
told() { tee -a "$summary"; } # lines that are tables already

# prove NAME ARGS...: one run, recorded; its JSON is kept, its stages go to the summary.
prove() {
	local name=$1
	shift
	rm -rf "$work/$name.hw"
	"${limited[@]}" "$hw" prove --quiet --json --backend device --out "$work/$name.hw" "$@" >"$out/$name.json" 2>"$out/$name.err" ||
		{ note "$name" FAILED "$(tail -n 2 "$out/$name.err" | tr '\n' ' ')"; return 0; }
	scripts/gpu/table.py "$name" "$out/$name.json" | told
}

# keep NAME: the sealed trace as a tar, if it is small.
keep() {
	[ -d "$work/$1.hw" ] || return 0
	tar -C "$work" -czf "$out/$1.tgz" "$1.hw"
}

# gotest NAME SECONDS ARGS...: tests of prover/device against the library; each test's time goes to the summary.
gotest() {
	local name=$1 seconds=$2
	shift 2
	(cd prover/device && HIGHWATER_TEST_NATIVE=$HIGHWATER_NATIVE HIGHWATER_TEST_LOG=$test_log \
		timeout -k 10 "$seconds" "$work/test/device.test" -test.v -test.timeout "${seconds}s" "$@") >"$out/$name.log" 2>&1 ||
		note "$name" FAILED "$(grep -m 1 -B 3 -E '^ *--- FAIL|^panic' "$out/$name.log" | tr '\n' ' ')"
	sed -n "s/^--- \(PASS\|FAIL\|SKIP\): \(.*\)/$name\t\1\t\2/p" "$out/$name.log" | told
}

# native_test NAME SECONDS COMMAND...: C++ tests through a command such as a checker.
native_test() {
	local name=$1 seconds=$2
	shift 2
	timeout -k 10 "$seconds" "$@" >"$out/$name.log" 2>&1 || note "$name" FAILED "exit $?: $(grep -m 3 ^FAIL "$out/$name.log" | tr '\n' ' ')"
	note "$name" "$(grep -c '^ok ' "$out/$name.log") tests passed" "$(sed -n 's/^ok \([a-z0-9_]*\) .*/\1/p' "$out/$name.log" | tr '\n' ' ')"
}

# native_bench SECONDS ARGS...: figures of the library alone.
native_bench() {
	local seconds=$1
	shift
	timeout -k 10 "$seconds" "$work/bin/highwater-native-bench" --library "$HIGHWATER_NATIVE" "$@"
}

# tool NAME: where one of NVIDIA's tools is, nothing where it is not.
tool() { { command -v "$1" || ls -d /usr/local/cuda*/bin/"$1" /opt/nvidia/nsight-compute/*/"$1" 2>/dev/null || true; } | head -n 1; }

step_machine() { # [2] what the machine is
	note machine cpus "$(nproc)"
	note machine gpu "$(nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv,noheader 2>/dev/null | tr '\n' ';')"
	note machine commit "$(cat $pack/commit 2>/dev/null || git describe --always --dirty)"
	note machine library "$("$hw" bench --what ntt --sizes 1 --count 1 --backend device 2>&1 | grep -E '^native|error' || true)"
}

step_smoke() { # [2] one small proof; nothing after it runs where that fails
	"${limited[@]}" "$hw" prove --json --no-record --backend device --circuit mimc --log-size $least --setup device --b-g2 device \
		>"$out/smoke.json" 2>"$out/smoke.err" || { note smoke FAILED "$(tail -n 3 "$out/smoke.err")"; exit 1; }
	note smoke verified "$(sed -n 's/.*"verified_partitions": \([0-9]*\).*/\1/p' "$out/smoke.json")"
}

step_exact_msm() { # [45] MSM of G1 and G2 at 1 to 2^TEST_LOG (LOG) against gnark-crypto, every profile of points and scalars
	gotest exact_msm 240 -test.run 'MSM|FixedBase'
}

step_exact_ntt() { # [20] every NTT and INTT at 2^0 to 2^TEST_LOG against gnark-crypto, and the quotient
	gotest exact_ntt 120 -test.run 'NTT|Quotient'
}

step_exact_fields() { # [20] operations of fr, fp, fp2 on 1e6 values, of points, against gnark-crypto
	gotest exact_fields 120 -test.run 'Field(Fr|Fp|Fp2)$|Montgomery|Points'
}

step_exact_faults() { # [5] each operation of a proof made to fail, one by one
	gotest exact_faults 240 -test.run 'Faults'
}

step_exact_rest() { # [15] the other tests of prover/device: proofs and keys byte-equal to the CPU's, memory, ring, losses, traces
	gotest exact_rest 180 -test.skip 'MSM|FixedBase|NTT|Quotient|Field(Fr|Fp|Fp2)$|Montgomery|Points|Faults|Recorded'
}

step_exact_two() { # [10] proofs byte-equal to the CPU's on each of two devices
	gotest exact_two 120 -test.run 'ProofBytes|TraceOfProof'
}

step_native() { # [15] the C++ tests that ask the C interface
	native_test native 200 "$work/bin/highwater_native_device_test" -v
}

step_equal() { # [35] proofs of device and CPU, same seed, are the same bytes: label and mimc at 2^20
	for c in label mimc; do
		local sums= circuit=$c
		[ -z "${SMALL:-}" ] || circuit=mimc
		for b in cpu device; do
			"${limited[@]}" "$hw" prove --quiet --json --no-record --backend $b --circuit $circuit --log-size $mid --setup device \
				--b-g2 "$b" >"$out/equal-$c-$b.json" 2>"$out/equal-$c-$b.err" || note equal-$c FAILED "$(tail -n 1 "$out/equal-$c-$b.err")"
			sums+=" $(sed -n 's/.*"proofs_sha256": "\(.*\)".*/\1/p' "$out/equal-$c-$b.json")"
		done
		local one= two=
		read -r one two <<<"$sums" || true
		if [ -n "$one" ] && [ "$one" = "$two" ]; then note equal-$c same "${one:0:16}"; else note equal-$c DIFFERENT "$sums"; fi
	done
}

step_label20() { # [16] 10 partitions of the label circuit at 2^20, kept
	prove label-20 --circuit $label --log-size $mid --partitions "$partitions" --setup device --gpu-workers 2 --partition-workers $workers
	keep label-20
}

step_label() { # [48] 10 partitions of the label circuit at 2^LOG, kept
	prove label-$log --circuit $label --log-size "$log" --partitions "$partitions" --setup device --gpu-workers 2 --partition-workers $workers
	keep label-$log
}

step_mimc() { # [30] 10 partitions of the mimc circuit at 2^LOG
	prove mimc-$log --circuit mimc --log-size "$log" --partitions "$partitions" --setup device --gpu-workers 2 --partition-workers $workers --b-g2 device
}

step_mimc24() { # [80] one partition of the mimc circuit at 2^24, kept
	prove mimc-24 --circuit mimc --log-size $big --partitions 1 --setup device --b-g2 device
	rm -f "$HIGHWATER_CACHE_DIR"/*24*
	keep mimc-24
}

step_rho() { # [72] for replay, kept: mimc at 2^LOG, b_g2 in the lock, 8, 13 and 16 synthesis workers
	for n in 8 13 16; do
		prove rho-$n --circuit mimc --log-size "$log" --partitions $((3 * n)) --partition-workers $n --permit-release synth_end \
			--channel-capacity unbounded --b-g2 device --no-split-proving --setup device
		keep rho-$n
	done
}

step_unsplit() { # [47] for replay, kept: label at 2^LOG, b_g2 on the CPU in the lock, 1, 2 and 4 synthesis workers
	for n in 1 2 4; do
		prove unsplit-$n --circuit $label --log-size "$log" --partitions 6 --partition-workers $n --no-split-proving --setup device
		keep unsplit-$n
	done
}

step_splits() { # [32] label at 2^LOG, b_g2 on the CPU: inside the lock, and beside the next start, all else equal
	for way in split no-split; do
		prove $way --circuit $label --log-size "$log" --partitions 6 --partition-workers 4 --$way-proving --setup device
	done
}

step_pinned() { # [32] for diff, kept: mimc at 2^LOG from pageable, registered and pooled memory
	for p in pageable register pool; do
		prove pinned-$p --circuit mimc --log-size "$log" --partitions "$partitions" --partition-workers $workers --gpu-workers 2 \
			--b-g2 device --pinned $p --setup device
		keep pinned-$p
	done
}

step_channel() { # [22] channel of one slot against one a partition
	for n in 1 "$partitions"; do
		prove channel-$n --circuit mimc --log-size "$log" --partitions "$partitions" --partition-workers "$partitions" \
			--b-g2 device --channel-capacity "$n" --setup device
	done
}

step_table() { # [1] what pinned, channel and splits gave, as one table (settings.md)
	local files=()
	for name in pinned-pageable pinned-register pinned-pool channel-1 channel-"$partitions" split no-split; do
		[ ! -s "$out/$name.json" ] || files+=("$out/$name.json")
	done
	scripts/gpu/table.py --settings "${files[@]}" >"$out/settings.md"
	cat "$out/settings.md"
}

step_cpu() { # [35] one partition of mimc and label at 2^LOG on the CPUs, to compare prove_start with
	for c in mimc $label; do
		prove cpu-$c --backend cpu --circuit $c --log-size "$log" --partitions 1 --setup device
	done
}

step_overhead() { # [42] what recording costs a start, in one process: two contexts, turn by turn
	local pairs=(18:200 20:100 22:60)
	[ -z "${SMALL:-}" ] || pairs=(6:10 8:10)
	for p in "${pairs[@]}"; do
		native_bench 60 --only overhead --logs "${p%:*}" --pairs "${p#*:}" --json "$out/overhead-${p%:*}.json" >"$out/overhead.log" 2>&1 ||
			note overhead FAILED "$(tail -n 1 "$out/overhead.log")"
		scripts/gpu/pairs.py --native "$out/overhead-${p%:*}.json" | told
	done
}

step_overhead_pipeline() { # [120] what recording costs a whole run that the GPU bounds: mimc at 2^18, PAIRS (40) pairs, ABBA
	local runs=$out/overhead-pairs.tsv args=(--circuit mimc --log-size $low --partitions 60 --partition-workers 12 --gpu-workers 2
		--b-g2 device --setup device) until=$((SECONDS + 115))
	[ -z "${SMALL:-}" ] || args+=(--partitions 6)
	"$hw" prove --quiet --json --backend device --no-record "${args[@]}" >/dev/null # keys and files are warm then
	: >"$runs"
	for i in $(seq "${PAIRS:-40}"); do
		[ $SECONDS -lt $until ] || break
		local order="on off" on= off=
		[ $((i % 2)) = 1 ] || order="off on"
		for side in $order; do
			local record=(--no-record)
			[ $side = off ] || record=(--out "$work/overhead.hw")
			rm -rf "$work/overhead.hw"
			"${limited[@]}" "$hw" prove --quiet --json --backend device "${record[@]}" "${args[@]}" >"$work/overhead.json"
			printf -v $side %s "$(sed -n 's/^  "makespan_ns": \([0-9]*\).*/\1/p' "$work/overhead.json")"
		done
		printf '%s\t%s\n' "$on" "$off" >>"$runs"
	done
	scripts/gpu/pairs.py --runs "$runs" | told
}

step_soak() { # [20] 1000 small proofs in one run: memory of host and device at the start and at the end, events dropped
	local jobs=100
	[ -z "${SMALL:-}" ] || jobs=10
	prove soak --circuit mimc --log-size $least --jobs $jobs --partitions 10 --jobs-in-flight 2 --gpu-workers 2 --partition-workers 4 \
		--setup device --sample-hz 50
	rm -rf "$work/soak-csv"
	"$hw" export "$work/soak.hw" --csv "$work/soak-csv" --quiet >/dev/null
	scripts/gpu/table.py --growth "$work/soak-csv" | told
}

step_kill() { # [12] SIGKILL in the middle of a run, five times: every acknowledged event is in the recovered trace
	"$hw" prove --quiet --no-record --backend device --circuit mimc --log-size $tiny --setup device >/dev/null 2>&1 # makes the keys
	for i in 1 2 3 4 5; do
		rm -rf "$work/kill.hw" "$work/witness"
		HIGHWATER_WITNESS=$work/witness "$hw" prove --quiet --backend device --circuit mimc --log-size $tiny --jobs 2000 --jobs-in-flight 2 \
			--out "$work/kill.hw" >/dev/null 2>&1 &
		local pid=$!
		sleep "1.$((i * 2 % 10))"
		kill -KILL $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		"$hw" recover "$work/kill.hw" --json >"$work/kill.json"
		scripts/gpu/table.py --recovered "$work/witness" "$work/kill.json" | told
	done
}

step_sppark() { # [45] NTT and MSM through our interface and sppark's own entries on the same inputs, in turns: bars held or not
	native_bench 200 --only ntt,msm --logs $sizes --repeats 7 --rounds 2 "${native_sppark[@]}" --json "$out/sppark.json" \
		>"$out/sppark.txt" 2>"$out/sppark.err" || note sppark FAILED "$(tail -n 1 "$out/sppark.err")"
	scripts/gpu/table.py --native "$out/sppark.json" | told
}

step_bench() { # [28] highwater bench on the device: NTT, MSM, upload by size; JSON, and the same as benchstat's text
	"$hw" bench --json --backend device --what ntt,msm,upload --sizes $sizes --groups g1,g2 \
		--profiles uniform,label,one-value "${sppark[@]}" --count 5 >"$out/bench.json" 2>"$out/bench.err" ||
		{ note bench FAILED "$(tail -n 1 "$out/bench.err")"; return 0; }
	scripts/gpu/table.py --benchstat "$out/bench.json" >"$out/bench.txt"
	scripts/gpu/table.py --bench "$out/bench.json" | told
	"$hw" bench --json --backend device --what prove --sizes $mid --circuit $label --count $partitions --set setup=device \
		>"$out/bench-prove.json" 2>"$out/bench-prove.err" || note bench FAILED "$(tail -n 1 "$out/bench-prove.err")"
}

step_sanitize() { # [170] compute-sanitizer's memcheck, racecheck, initcheck over every kernel at <= 2^14; which kernels ran
	local tests=(sweep fr_op fp_and points_ fixed_base sums_ transforms prove_start_on) checker ncu
	checker=$(tool compute-sanitizer) ncu=$(tool ncu)
	export HW_TEST_SEPARATE=1 CUDA_MODULE_LOADING=LAZY # blocks with ends; only the kernels that run are instrumented
	[ -n "$checker" ] || note sanitize FAILED "no compute-sanitizer here"
	for t in memcheck racecheck initcheck; do
		[ -n "$checker" ] || break
		native_test $t 120 "$checker" --tool $t --print-limit 2000 "$work/bin/highwater_native_device_test" -v "${tests[@]}"
		scripts/gpu/checkers.py sanitizer $t "$out/$t.log" | told
	done
	# Which kernels the library has, and which of them these tests launch.
	"$(tool cuobjdump || true)" --dump-resource-usage "$work/bin/libhighwater_native.so" 2>/dev/null >"$out/kernels.txt" || true
	if [ -n "$ncu" ]; then
		timeout -k 10 90 "$ncu" --clock-control none --metrics gpu__time_duration.sum --csv --page raw --print-units base --print-kernel-base mangled \
			--log-file "$out/kernels-run.csv" "$work/bin/highwater_native_device_test" "${tests[@]}" >/dev/null 2>&1 || true
	fi
	scripts/gpu/checkers.py coverage "$out/kernels.txt" "$out/kernels-run.csv" | told
}

step_ncu() { # [190] starts by kernel: shares of a whole one at 2^LOG by our own events, bounds by ncu
	for scalars in dense label; do
		start_bench "$log" $((16 << 30)) --scalars $scalars --repeats $starts --json "$out/start-$scalars.json" >"$out/start.log" 2>&1 ||
			note ncu FAILED "$(tail -n 1 "$out/start.log")"
		scripts/gpu/checkers.py starts $scalars "$out/start-$scalars.json" | told
	done
	# A launch is run anew for each group of counters, the memory it may write put back each time: some seconds a launch with a
	# large arena. So the first launches at 2^LOG (uploads, NTTs, the MSM h), and a whole start at the size below.
	profile_start "$log" $((9 << 30)) "${LAUNCHES:-90}"
	profile_start "$mid" $((4 << 30)) 400
}

# start_bench LOG ARENA ARGS...: starts of the native benchmark.
start_bench() {
	local size=$1 arena=$2
	shift 2
	[ -z "${SMALL:-}" ] || arena=$((64 << 20))
	"${limited[@]}" "${under[@]}" "$work/bin/highwater-native-bench" --library "$HIGHWATER_NATIVE" --only prove --logs "$size" --memory pinned \
		--arena "$arena" "$@"
}

# profile_start LOG ARENA LAUNCHES: counters of the first launches of a start, dense scalars.
profile_start() {
	local ncu under=() csv=$out/ncu-$1.csv
	ncu=$(tool ncu)
	[ -n "$ncu" ] || { note ncu FAILED "no ncu here"; return 0; }
	rm -f "$csv"
	under=("$ncu" --clock-control none --cache-control none --profile-from-start off --launch-count "$3" --csv --page raw --print-units base
		--section SpeedOfLight --section ComputeWorkloadAnalysis --section WarpStateStats --section LaunchStats --log-file "$csv")
	start_bench "$1" "$2" --scalars dense --repeats 1 --profile >"$out/ncu.log" 2>&1 ||
		note ncu "stopped or refused" "$(tail -n 2 "$out/ncu.log" "$csv" 2>/dev/null | tr '\n' ' ')"
	scripts/gpu/checkers.py counters "2^$1" "$csv" | told
	[ ! -e "$csv" ] || gzip -f "$csv"
}

step_two() { # [50] mimc at 2^LOG on one device and on two, work spread over both; all CPUs
	taskset -cp "0-$(($(nproc --all) - 1))" $BASHPID >/dev/null
	local n=28
	[ -z "${SMALL:-}" ] || n=2
	for d in 1 2; do
		prove two-mimc-$d --circuit mimc --log-size "$log" --partitions $((n + 4)) --devices $d --gpu-workers 2 --partition-workers $n \
			--b-g2 device --setup device
	done
	keep two-mimc-2
}

bundle() {
	[ -n "${BUNDLE:-}" ] || return 0
	rm -f "$BUNDLE".?
	tar -C "$out" -cz . | split -b 15m -a 1 - "$BUNDLE."
}

# Plans become their steps; a step that stands there twice runs once.
steps=()
for word in "$@"; do
	plan=plan_$word
	for step in ${!plan:-$word}; do
		declare -F "step_$step" >/dev/null || { echo "no such step: $step; see $0 steps" >&2; exit 2; }
		[[ " ${steps[*]} " == *" $step "* ]] || steps+=("$step")
	done
done
left=()
for step in "${steps[@]}"; do
	expected=$(sed -n "s/^step_$step() { # \[\([0-9]*\)\].*/\1/p" "$0")
	if [ -n "${BUDGET:-}" ] && [ $((SECONDS + expected)) -gt "$BUDGET" ]; then
		left+=("$step")
		continue
	fi
	began=$SECONDS
	set +e
	(set -e; "step_$step")
	rc=$?
	set -e
	note "$step" took_s $((SECONDS - began))
	[ $rc = 0 ] || note "$step" FAILED "exit $rc"
	bundle
	[ $rc = 0 ] || [ "$step" != smoke ] || exit 1
done
grep -E $'\t(FAILED|FAIL|DIFFERENT)\t' "$summary" || echo "nothing FAILED"
echo "left: ${left[*]:-nothing}"
