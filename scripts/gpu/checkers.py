#!/usr/bin/env python3
"""Lines for the summary of scripts/gpu/run.sh from NVIDIA's tools. Tab-separated: name, key, value.

    checkers.py sanitizer TOOL LOG            reports of compute-sanitizer by kernel: ours, sppark's NTT, others
    checkers.py coverage KERNELS RUN.csv      kernels of the library (cuobjdump), and which of them ran (ncu)
    checkers.py starts NAME START.json        a start's kernels by our events
    checkers.py counters NAME CSV             launches by kernel, and what bounds each (ncu's raw page)
"""

import collections
import csv
import json
import os
import re
import shutil
import subprocess
import sys

# Kernels of sppark's headers that our NTT launches.
SPPARK_NTT = re.compile(r"\b(_GS_NTT|_CT_NTT|bit_rev_permutation(_z)?|LDE_\w+|generate_\w*twiddles)\b")


def line(*cells):
    print("\t".join(str(c) for c in cells))


def owner(name):
    if SPPARK_NTT.search(name):
        return "sppark's NTT"
    return "CUB" if "cub::" in name or "DeviceRadixSort" in name else "ours"


def short(name):
    """A kernel's name without namespaces, arguments and template parameters but the group's."""
    text = re.sub(r"(\(anonymous namespace\)|<unnamed>)::", "", name)
    text = re.sub(r"^void ", "", text).split("(")[0]
    base = re.sub(r"<.*", "", text).split("::")[-1].strip()
    group = " g2" if re.search(r"\bg2\b|fp2", text) else " g1" if re.search(r"\bg1\b", text) else ""
    field = re.search(r"\bof_(fr|fp2?)\b", text)
    return base + group + (f" {field.group(1)}" if field else "")


# ---- compute-sanitizer

REPORT = re.compile(r"^=+ +(?:Error: |Warning: )?(Invalid .*|Uninitialized .*|Race reported .*|Potential .* hazard.*"
                    r"|Misaligned .*|Address .* misaligned.*|Program hit .*|Leaked .*)$")
PLACE = re.compile(r"\bat (?:void )?([\w:~<>,\(\)\*&\[\] ]+?)(?:\(.*\))?\+0x[0-9a-f]+")


def sanitizer(tool, path):
    """Reports are blocks: their first line says what, the first `at KERNEL+0x…` where."""
    found, pending, summaries, ended = collections.Counter(), None, [], False
    for row in open(path, errors="replace"):
        if (m := REPORT.match(row)) and not (tool == "racecheck" and "and " in row[:14]):
            if pending:
                found[(pending, "no kernel named")] += 1
            pending = re.sub(r"\b(0x[0-9a-f]+|\d+)\b", "N", m.group(1)).split(" at ")[0].strip()
        if pending and (place := PLACE.search(row)):
            found[(pending, place.group(1).strip())] += 1
            pending = None
        if "SUMMARY:" in row:
            summaries.append(row.strip("= \n"))
        ended = ended or re.match(r"^\d+ passed, \d+ failed", row) is not None
    if pending:
        found[(pending, "no kernel named")] += 1
    by = collections.Counter()
    for (_, kernel), n in found.items():
        by[owner(kernel)] += n
    told = ", ".join(f"{n} in {who}" for who, n in by.most_common()) or "none"
    line(tool, "reports", told + ("" if ended else "; NOT ENDED: stopped before the last test"), " ".join(summaries) or "no summary")
    for (what, kernel), n in found.most_common(40):
        line(tool, f"{owner(kernel)}: {short(kernel)}", f"{n} x {what}")


# ---- coverage


def demangled(names):
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if not tool or not names:
        return {n: n for n in names}
    out = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True, check=False).stdout.splitlines()
    return dict(zip(names, out)) if len(out) == len(names) else {n: n for n in names}


def rows_of(path):
    """Rows of ncu's raw page as dictionaries, the row of units left out."""
    if not path or not os.path.exists(path):
        return []
    with open(path, errors="replace") as f:
        lines = [row for row in f if row.startswith('"')]
    return [r for r in csv.DictReader(lines) if (r.get("ID") or "").strip().isdigit()]


def coverage(kernels, run):
    have = set()
    if os.path.exists(kernels):
        have = set(re.findall(r"^ *Function ([^:\s]+):", open(kernels, errors="replace").read(), re.M))
    ran = {r["Kernel Name"] for r in rows_of(run)}
    if not have or not ran:
        line("coverage", "unknown", f"{len(have)} kernels in the library, {len(ran)} seen to run")
        return
    names = demangled(sorted(have))
    missing = [names[n] for n in sorted(have - ran) if "sppark_msm" not in n]
    line("coverage", f"{len(have & ran)} of {len(have)} kernels ran", "not run: " + (", ".join(sorted({short(n) for n in missing})) or "none"))


# ---- starts


def number(row, pattern):
    for key, value in row.items():
        if key and re.fullmatch(pattern, key):
            try:
                return float(value.replace(",", ""))
            except (AttributeError, ValueError):
                return None
    return None


def largest(row, pattern):
    """The name and value of the largest of a row's metrics that match."""
    best = None
    for key, value in row.items():
        m = re.fullmatch(pattern, key or "")
        if not m:
            continue
        try:
            x = float(value.replace(",", ""))
        except ValueError:
            continue
        if best is None or x > best[1]:
            best = (m.group(1), x)
    return best


METRICS = {
    "SM": r"sm__throughput\.avg\.pct_of_peak_sustained_elapsed",
    "DRAM": r"(?:gpu__)?dram__throughput\.avg\.pct_of_peak_sustained_elapsed|gpu__dram_throughput\.avg\.pct_of_peak_sustained_elapsed",
    "memory": r"gpu__compute_memory_throughput\.avg\.pct_of_peak_sustained_elapsed",
    "warps": r"sm__warps_active\.avg\.pct_of_peak_sustained_active",
}
PIPE = r"sm__inst_executed_pipe_(\w+)\.avg\.pct_of_peak_sustained_active"
STALL = r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio"


def bound(sm, memory, stall):
    if sm is None or memory is None:
        return "unknown"
    if max(sm, memory) >= 60:
        return "compute" if sm >= memory else "memory"
    return f"latency ({stall})" if stall else "latency"


def counters(name, path):
    rows = rows_of(path)
    if not rows:
        line(f"ncu {name}", "no counters: bounds unknown")
        return
    kinds = collections.defaultdict(list)
    for r in rows:
        kinds[short(r["Kernel Name"])].append(r)
    unit = 1e6  # ncu's raw page gives nanoseconds
    spent = {k: sum(number(r, r"gpu__time_duration\.sum") or 0 for r in rs) / unit for k, rs in kinds.items()}
    total = sum(spent.values())
    line(f"ncu {name}", "all", f"{len(rows)} launches of {len(kinds)} kernels, {total:.2f} ms together")
    for kernel, ms in sorted(spent.items(), key=lambda x: -x[1])[:16]:
        longest = max(kinds[kernel], key=lambda r: number(r, r"gpu__time_duration\.sum") or 0)
        figures = {k: number(longest, p) for k, p in METRICS.items()}
        pipe, stall = largest(longest, PIPE), largest(longest, STALL)
        text = "  ".join(f"{k} {v:.0f} %" for k, v in figures.items() if v is not None)
        text += f"  pipe {pipe[0]} {pipe[1]:.0f} %" if pipe else ""
        text += f"  stall {stall[0]} {stall[1]:.1f}" if stall else ""
        registers = number(longest, r"launch__registers_per_thread")
        text += f"  registers {registers:.0f}" if registers is not None else ""
        why = bound(figures["SM"], figures["memory"], stall[0] if stall else None)
        line(f"ncu {name}", kernel, f"{ms:.2f} ms  {100 * ms / total if total else 0:.1f} % of kernels  {len(kinds[kernel])} launches  {text}  bound by {why}")


def starts(name, path):
    for r in json.load(open(path))["results"]:
        if not r["name"].startswith("ProveStart/"):
            continue
        last, median = r["last_ns"], r["median_ns"] / 1e6
        shares = sorted(((k[len("kernel_"):-len("_ns")], v) for k, v in r.items() if k.startswith("kernel_")), key=lambda x: -x[1])
        text = "  ".join(f"{k} {v / 1e6:.2f} ms {100 * v / last:.1f} %" for k, v in shares)
        line(f"start {name}", "by events", f"median {median:.2f} ms, the last one {last / 1e6:.2f} ms: {text}")


if __name__ == "__main__":
    commands = {"sanitizer": sanitizer, "coverage": coverage, "starts": starts, "counters": counters}
    commands[sys.argv[1]](*sys.argv[2:])
