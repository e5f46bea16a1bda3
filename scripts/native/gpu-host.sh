#!/usr/bin/env bash
# On a host with a GPU and a toolkit, without Go or network: builds native/ from the sources beside it (the
# crates under .cache/native/crates carried along), runs the tests that ask the C interface, and measures.
#   gpu-host.sh OUT [build|test|sanitize|bench]…    OUT: where the libraries, logs and figures go
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=$1
shift
steps=${*:-build test bench}
build=.cache/native/cuda
failed=0

step() { # step NAME SECONDS COMMAND…: within a limit, its output kept, its last lines shown
	local name=$1 limit=$2 begin=$SECONDS
	shift 2
	timeout "$limit" "$@" >"$out/$name.log" 2>&1
	local rc=$?
	[ $rc -eq 0 ] || failed=1
	echo "== $name: exit $rc, $((SECONDS - begin)) s"
	tail -n 45 "$out/$name.log" | cut -c1-180
}

for s in $steps; do
	case $s in
	build)
		step build 300 scripts/native/build.sh cuda
		cp bin/libhighwater_native.so bin/highwater-native-bench $build/highwater_native_device_test "$out"/ 2>/dev/null
		;;
	test) step test 150 $build/highwater_native_device_test ;;
	sanitize)
		export HW_TEST_SEPARATE=1 CUDA_MODULE_LOADING=LAZY
		for tool in memcheck racecheck initcheck; do
			step $tool 200 compute-sanitizer --tool $tool --error-exitcode 9 $build/highwater_native_device_test -v \
				sweep fr_op fp_and points_ fixed_base sums_ transforms prove_start_on
		done
		;;
	bench)
		step bench 300 bin/highwater-native-bench --library bin/libhighwater_native.so --json "$out/native.json" ${BENCH_FLAGS:-}
		;;
	*) echo "no such step: $s" >&2; exit 2 ;;
	esac
done
exit $failed
