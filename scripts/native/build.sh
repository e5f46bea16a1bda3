#!/usr/bin/env bash
# Builds native/ with CMake under .cache/native and copies what is meant to be used to bin/.
#   build.sh cpu     the twin, its tests and native/bench
#   build.sh cuda    the CUDA library beside them; nvcc comes from scripts/native/nvcc.sh
# Environment: BUILD_DIR, HW_CUDA_ARCH (90), HW_CUDA_FLAGS (-O3), HW_SPPARK_MSM (ON), HW_SPPARK and HW_BLST (checkouts of
# one's own), ONLY_CHECK (the CUDA library alone, and leave bin/ as it is).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

what=${1:-cpu}
build=${BUILD_DIR:-.cache/native/$what}
mkdir -p .cache/native
exec 9>.cache/native/lock
flock 9 # one build at a time: they share sources and folders
[ -n "${HW_SPPARK:-}" ] && [ -n "${HW_BLST:-}" ] || scripts/native/fetch.sh
options=(-DHW_SPPARK="${HW_SPPARK:-$PWD/.cache/native/crates/sppark}" -DHW_BLST="${HW_BLST:-$PWD/.cache/native/crates/blst}")
if [ "$what" = cuda ]; then
	nvcc=$(scripts/native/nvcc.sh)
	options+=(-DHW_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DHW_CUDA_ARCH="${HW_CUDA_ARCH:-90}" -DHW_CUDA_FLAGS="${HW_CUDA_FLAGS:--O3}"
		-DHW_SPPARK_MSM="${HW_SPPARK_MSM:-ON}")
fi
# A folder that was made without ninja stays without.
[ -e "$build/CMakeCache.txt" ] || ! command -v ninja >/dev/null || options+=(-G Ninja)
cmake -S native -B "$build" "${options[@]}" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
target=all
[ -z "${ONLY_CHECK:-}" ] || target=highwater_native
cmake --build "$build" --target $target --parallel "${JOBS:-$(nproc)}" >>"$build.log" 2>&1 || { tail -n 40 "$build.log"; exit 1; }
[ -z "${ONLY_CHECK:-}" ] || exit 0
# By rename: a program may have the old file mapped.
put() { [ ! -e "$1" ] || { mkdir -p bin && cp "$1" "bin/$2.new" && mv "bin/$2.new" "bin/$2"; }; }
put "$build/libhighwater_native_cpu.so" libhighwater_native_cpu.so
put "$build/libhighwater_native.so" libhighwater_native.so
put "$build/highwater_native_bench" highwater-native-bench
