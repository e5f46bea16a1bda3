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


SHOWN = ("circuit", "log_size", "partition_workers", "gpu_workers", "channel_capacity", "b_g2", "split_proving", "pinned")


def settings(paths):
    """One row a run: what was set, and what it took. Markdown."""
    heads = [s for s in SHOWN] + ["partitions", "ms a partition", "`stage_in`, ms", "`prove_start`, ms", "rho", "waiting at most", "peak RSS, GiB"]
    print("| run | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 1))
    for path in paths:
        r = json.load(open(path))
        stages = {s["name"]: s["p50_ns"] for s in r.get("stages", []) if s["count"]}
        verified, rho, rss = r["pipeline"]["verified_partitions"], r.get("rho"), r.get("peak_rss_bytes")
        cells = [r["settings"].get(s, {}).get("value", "unknown") for s in SHOWN]
        cells += [verified, f"{r['makespan_ns'] / verified / 1e6:.0f}" if verified else "none"]
        cells += [f"{stages[n] / 1e6:.1f}" if n in stages else "none" for n in ("stage_in", "prove_start")]
        cells += ["unknown" if rho is None else f"{rho:.2f}", r["pipeline"]["waiting_peak_partitions"]]
        cells += ["unknown" if rss is None else f"{rss / 2**30:.2f}"]
        name = path.rsplit("/", 1)[-1].removesuffix(".json")
        print(f"| {name} | " + " | ".join(str(c) for c in cells) + " |")


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
        extra = f"  checked {x['checked']}"
        extra += f"  c {m['window_bits']} rounds {m['rounds']} scratch {gib(m['scratch_bytes'])}" if m else ""
        line("bench", f"{name} 2^{x['log_size']}", f"{x['median_ns'] / 1e6:.3f} ms{extra}")


def benchstat(path):
    """The JSON of highwater bench as the text that it prints without --json."""
    r = json.load(open(path))
    host, device = r["host"], r["device"] or {}
    heads = [("goos", "linux"), ("goarch", "amd64"), ("cpu", host["cpu_model"]), ("cpus", host["cpus"]), ("kernel", host["kernel"]),
             ("backend", r["backend"]), ("gpu", device.get("name")), ("native", device.get("build")), ("pkg", "highwater/prover/bench")]
    for key, value in heads:
        if value:
            print(f"{key}: {value}")
    for x in r["results"]:
        name = {"ntt": "NTT", "msm": "MSM", "upload": "Upload"}[x["op"]]
        name += "".join(f"/{k}={x[k]}" for k in ("by", "group", "profile") if x.get(k)) + f"/log_size={x['log_size']}"
        for ns in x["times_ns"]:
            print(f"Benchmark{name}\t1\t{ns} ns/op")


# Bars of the MSM, ms, by group, scalars and size.
BARS = {("g1", "uniform"): {20: 7.5, 22: 23, 24: 78}, ("g1", "label"): {20: 1.8, 22: 3, 24: 5.5},
        ("g2", "uniform"): {20: 21, 22: 63, 24: 220}}


def held(ok):
    return "held" if ok else "MISSED"


def native(path):
    """Ours beside sppark's own, and against the bars."""
    results = {x["name"]: x for x in json.load(open(path))["results"]}
    for name, x in results.items():
        if "by=sppark" in name:
            continue
        ours = x["median_ns"] / 1e6
        parts = dict(p.split("=", 1) for p in name.split("/")[1:])
        text = f"{ours:.3f} ms of {len(x['ns'])}"
        theirs = results.get(name.replace("by=highwater", "by=sppark"))
        if theirs and theirs is not x:
            ratio = theirs["median_ns"] / x["median_ns"]
            ok = ratio >= (1.95 if name.startswith("Msm") else 1 / 1.05)
            wanted = ">= 1.95 times ours" if name.startswith("Msm") else "ours within 5 %"
            text += f"  sppark {theirs['median_ns'] / 1e6:.3f} ms, {ratio:.3f} times ours  ({wanted}: {held(ok)})"
        if bar := BARS.get((parts.get("group"), parts.get("scalars")), {}).get(int(parts["log"])):
            text += f"  (at most {bar} ms: {held(ours <= bar)})"
        if parts.get("scalars") == "one_value":
            uniform = results[name.replace("one_value", "uniform")]["median_ns"]
            text += f"  (no slower than uniform: {held(x['median_ns'] <= uniform)})"
        if "window_bits" in x:
            text += f"  c {x['window_bits']:.0f} rounds {x['rounds']:.0f} scratch {gib(x['scratch_bytes'])}"
        line("native", name, text)


def main():
    args = sys.argv[1:]
    kinds = {"--growth": lambda: growth(args[1]), "--recovered": lambda: recovered(args[1], args[2]),
             "--bench": lambda: bench(args[1]), "--benchstat": lambda: benchstat(args[1]),
             "--native": lambda: native(args[1]), "--settings": lambda: settings(args[1:])}
    kinds.get(args[0], lambda: run(args[0], args[1]))()


main()
