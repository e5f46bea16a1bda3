#!/usr/bin/env python3
"""Lines for the summary of scripts/gpu/run.sh, from the JSON that highwater prints. Tab-separated: name, key, value."""

import csv
import json
import struct
import sys


def ms(ns):
    return "unknown" if ns is None else f"{ns / 1e6:.1f} ms"


def gib(n):
    return "unknown" if n is None else f"{n / 2**30:.2f} GiB"


def line(*cells):
    print("\t".join(str(c) for c in cells))


def run(name, path):
    r = json.load(open(path))
    rho = r.get("rho")
    verified = r["pipeline"]["verified_partitions"]
    interval = r["makespan_ns"] / verified if verified else None
    peaks = " ".join(gib(d["peak_live_bytes"]) for d in r.get("device_peaks", []))
    line(
        name, "run",
        f"verified {verified}  makespan {ms(r['makespan_ns'])}  a partition {ms(interval)}  "
        f"rho {'unknown' if rho is None else f'{rho:.2f}'}  peak RSS {gib(r['peak_rss_bytes'])}  "
        f"device peak {peaks or 'none'}  waiting {r['pipeline']['waiting_peak_partitions']}  "
        f"setup {ms(r['setup_ns'])}  load {ms(r['load_ns'])}  lost {r.get('lost_events')}",
    )
    stages = [f"{s['name']} {ms(s['p50_ns'])}" for s in r.get("stages", []) if s["count"]]
    line(name, "stages (median)", "  ".join(stages))


def overhead(args):
    split = args.index("--")
    on, off = ([json.load(open(p))["makespan_ns"] for p in a] for a in (args[:split], args[split + 1:]))
    ratios = sorted(a / b - 1 for a, b in zip(on, off))
    mid = (ratios[(len(ratios) - 1) // 2] + ratios[len(ratios) // 2]) / 2
    line("overhead", "recording / not - 1, pairs", " ".join(f"{100 * x:+.2f} %" for x in ratios), f"median {100 * mid:+.2f} %",
         f"best with {ms(min(on))}, without {ms(min(off))}")


def growth(folder):
    for metric in ("process.memory.usage", "process.gpu.memory.usage.0"):
        values = []
        with open(f"{folder}/samples.csv") as f:
            for row in csv.DictReader(f):
                if row["metric"] == metric:
                    values.append((int(row["time_ns"]), float(row["value"])))
        if len(values) < 20:
            line("soak", metric, "too few samples")
            continue
        values = [v for _, v in values[len(values) // 10:]]  # loading left out
        tenth = max(1, len(values) // 10)
        first, last = (sorted(v)[len(v) // 2] for v in (values[:tenth], values[-tenth:]))
        line("soak", metric, f"first tenth {first / 2**20:.1f} MiB, last tenth {last / 2**20:.1f} MiB, {last - first:+.0f} B")


def recovered(witness, path):
    r = json.load(open(path))
    counts = struct.unpack("<256Q", open(witness, "rb").read())
    want = {"buffer": counts[3], "queue": counts[4], "sample": counts[5], "span_begin": counts[6], "span_end": counts[7]}
    have = r["events"]
    text, lost = [], 0
    for kind, n in want.items():
        found = next((have[k] for k in have if k.rstrip("s").startswith(kind.rstrip("s"))), None)
        text.append(f"{kind} {found} of {n}")
        lost += 0 if found is None else max(0, n - found)
    line("kill", f"acknowledged and lost: {lost}", "  ".join(text), "keys " + " ".join(have))


def bench(path):
    r = json.load(open(path))
    for x in r["results"]:
        name = " ".join(str(x[k]) for k in ("by", "op", "group", "profile") if x.get(k))
        m = x.get("msm")
        extra = f"  c {m['window_bits']} rounds {m['rounds']} scratch {gib(m['scratch_bytes'])}" if m else ""
        line("bench", f"{name} 2^{x['log_size']}", f"{x['median_ns'] / 1e6:.3f} ms{extra}")


def main():
    args = sys.argv[1:]
    kinds = {"--overhead": lambda: overhead(args[1:]), "--growth": lambda: growth(args[1]),
             "--recovered": lambda: recovered(args[1], args[2]), "--bench": lambda: bench(args[1])}
    kinds.get(args[0], lambda: run(args[0], args[1]))()


main()
