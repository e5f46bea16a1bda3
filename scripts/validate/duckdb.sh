#!/usr/bin/env bash
# DuckDB reads each Parquet file of the demo's traces and gets the same peak and row counts, to the byte
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ -e demo-out/pileup.hw/manifest.json ] || bin/highwater demo
.cache/venv/bin/python scripts/duckdb_check.py demo-out/*.hw
