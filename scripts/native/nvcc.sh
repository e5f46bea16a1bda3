#!/usr/bin/env bash
# Prints the path of nvcc: $NVCC, one on the PATH or under /usr/local/cuda of version 12 or later, or 13.0 from
# wheels, put in .cache/native/venv on first use (about 100 MB).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

for nvcc in "${NVCC:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
	[ -x "$nvcc" ] || continue
	major=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
	[ "${major:-0}" -lt 12 ] || { echo "$nvcc"; exit 0; }
done

venv=.cache/native/venv
wanted=native/third_party/requirements-cuda.txt
if ! cmp -s $wanted $venv/ready; then
	echo "Fetching nvcc 13.0 as wheels into $venv (once, about 100 MB)" >&2
	"${PYTHON:-python3}" -m venv $venv
	scripts/retry.sh nvcc $venv/bin/pip install -q --disable-pip-version-check --cache-dir .cache/pip -r $wanted >&2
	for toolkit in "$venv"/lib/python3*/site-packages/nvidia/cu13; do
		ln -sfn lib "$toolkit/lib64" # where nvcc looks for its libraries
	done
	cp $wanted $venv/ready
fi
ls "$PWD"/$venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc
