#!/usr/bin/env python3
"""What recording costs, from pairs of runs with and without it: the ratios' median with its 95 % interval.

    pairs.py --native FILE.json    Overhead/recording=on and =off of highwater-native-bench
    pairs.py --runs FILE.tsv       one pair a line: with, without

The interval is distribution-free: the order statistics between which the median of what the ratios are drawn from
lies with a probability of at least 95 %. A pair shares its moment, so that what drifts falls out of its ratio, and the
order within a pair alternates, so that what the first run leaves to the second does, too.
"""

import json
import math
import sys

LIMIT = 0.01


def ranks(n, level=0.95):
    """The 0-based ranks whose values bound the median with probability >= level, None if n is too small."""
    tail, k = 0.0, -1
    while k + 1 < n // 2:  # P(fewer than k+1 of n lie below the median)
        step = math.comb(n, k + 1) / 2**n
        if tail + step > (1 - level) / 2:
            break
        tail, k = tail + step, k + 1
    return (k, n - 1 - k) if k >= 0 else None


def median(values):
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


def verdict(low, high):
    if high <= LIMIT:
        return "at most 1 %: shown"
    return "more than 1 %" if low > LIMIT else "at most 1 %: neither shown nor refuted"


def line(name, pairs, more=""):
    ratios = sorted(on / off - 1 for on, off in pairs)
    text = f"{len(pairs)} pairs  with {median([p[0] for p in pairs]) / 1e6:.3f} ms  without {median([p[1] for p in pairs]) / 1e6:.3f} ms"
    text += f"  ratio - 1: median {100 * median(ratios):+.3f} %" if ratios else ""
    bounds = ranks(len(ratios))
    if bounds is None:
        text += "  too few pairs for an interval"
    else:
        low, high = ratios[bounds[0]], ratios[bounds[1]]
        spread = ratios[len(ratios) * 3 // 4] - ratios[len(ratios) // 4]
        text += f"  95 % [{100 * low:+.3f}, {100 * high:+.3f}] %  quartiles {100 * spread:.2f} % apart  {verdict(low, high)}"
    print("overhead", name, text + more, sep="\t")


def native(path):
    results = json.load(open(path))["results"]
    for on in results:
        if not on["name"].startswith("Overhead/recording=on"):
            continue
        off = next(r for r in results if r["name"] == on["name"].replace("=on", "=off"))
        more = f"  events {on['events']:.0f}, dropped {on['dropped']:.0f}"
        line("prove_start " + on["name"].split("/")[-1], list(zip(on["ns"], off["ns"])), more)


def runs(path):
    pairs = []
    for row in open(path):
        cells = row.split()
        if len(cells) == 2:  # a failed run leaves its cell empty
            pairs.append((float(cells[0]), float(cells[1])))
    if pairs:
        line("makespan of a run", pairs)
    else:
        print("overhead", "makespan of a run", "no pair of runs", sep="\t")


if __name__ == "__main__":
    {"--native": native, "--runs": runs}[sys.argv[1]](sys.argv[2])
