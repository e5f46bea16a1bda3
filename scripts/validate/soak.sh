#!/usr/bin/env bash
# 1000 small proofs in one run through the native library (the twin, or HIGHWATER_NATIVE): no growth, no event dropped
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

proofs=${PROOFS:-1000}
export HIGHWATER_NATIVE=${HIGHWATER_NATIVE:-$PWD/bin/libhighwater_native_cpu.so}
[ -e "$HIGHWATER_NATIVE" ] || scripts/native/build.sh cpu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bin/highwater prove --quiet --json --backend device --b-g2 device --arena-bytes 8MiB --circuit mimc --log-size 10 \
	--jobs $((proofs / 10)) --partitions 10 --jobs-in-flight 2 --gpu-workers 2 --partition-workers 4 \
	--out "$scratch/soak.hw" >"$scratch/soak.json"
bin/highwater export "$scratch/soak.hw" --csv "$scratch/csv" --quiet
scripts/gpu/table.py --growth "$scratch/csv"
python3 - "$scratch" "$proofs" <<'PY'
import csv, json, sys
folder, proofs = sys.argv[1], int(sys.argv[2])
r = json.load(open(f"{folder}/soak.json"))
assert r["pipeline"]["verified_partitions"] == proofs // 10 * 10, r["pipeline"]
assert r["lost_events"] == 0, r["lost_events"]
live = {}
with open(f"{folder}/csv/buffers.csv") as f:
    for e in csv.DictReader(f):  # what each source still holds of each space at the end
        key = (e["source"], e["space"], e["class"])
        live[key] = live.get(key, 0) + int(e["delta_bytes"])
left = {k: v for k, v in live.items() if v and k[2] != "recorder"}
assert not any(k[1] == "device" or k[1] == "pinned" for k in left), left
rss = [float(s["value"]) for s in csv.DictReader(open(f"{folder}/csv/samples.csv")) if s["metric"] == "process.memory.usage"]
rss = rss[len(rss) // 5:]
tenth = max(1, len(rss) // 10)
first, last = sorted(rss[:tenth])[tenth // 2], sorted(rss[-tenth:])[tenth // 2]
print(f"{proofs} proofs: RSS {first / 2**20:.1f} MiB, then {last / 2**20:.1f} MiB; no event lost; nothing live on the device at the end")
assert last - first < 8 << 20, "RSS grew by more than 8 MiB"
PY
