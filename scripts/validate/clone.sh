#!/usr/bin/env bash
# A fresh clone in an empty folder: make demo and make test, with no cache but the one that they fetch
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder" && rm -rf "$folder"' EXIT
git clone -q . "$folder/highwater"
cd "$folder/highwater"
unset GOMODCACHE GOCACHE HIGHWATER_CACHE_DIR
time make demo
time make test
