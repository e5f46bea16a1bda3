#!/usr/bin/env bash
# The incident: cuzk's published runs beside what the named models predict, and the three settings that decide it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(mktemp)
trap 'rm -f "$bin"' EXIT
scripts/go.sh build -o "$bin" ./cmd/highwater
"$bin" replay --published
for model in "cuzk/v7 --set partition_workers=12" "cuzk/v7 --set partition_workers=10" cuzk/v7c "cuzk/v8 --set partition_workers=12"; do
  echo
  # shellcheck disable=SC2086 # a model and its settings
  "$bin" replay --model $model --set jobs=20 --memory 668GiB || [ $? = 1 ]
done
scripts/go.sh test -run . ./replay/models/...
