#!/usr/bin/env bash
# What a machine without a GPU can say of native/: builds the twin and runs its tests, then compiles and links the
# device code, quickly rather than fast.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

scripts/native/build.sh cpu
.cache/native/cpu/highwater_native_test

quick=-O1
help=$("$(scripts/native/nvcc.sh)" --help) # whole: nvcc would die of a reader that has seen enough
[[ $help != *--Ofast-compile* ]] || quick="-O1 -Ofc=max"
echo "Compiling the device code"
BUILD_DIR=.cache/native/check HW_CUDA_FLAGS=$quick HW_SPPARK_MSM=OFF ONLY_CHECK=1 scripts/native/build.sh cuda
