"""Hold a validation (highwater validate --json) against the bars of the held-out settings.

usage: heldout_bars.py VALIDATION.json

Exits with 1 if a bar is missed.
"""

import json
import sys


def main():
    with open(sys.argv[1]) as f:
        v = json.load(f)
    held, rows = v["held_out"], []
    settled = [g["settled_bytes"] for g in v["groups"]]
    cases = [c for c in v["cases"] if not c["fitted_on_it"]]
    print(f"\n{held['runs']} runs held out, {held['inside_support_runs']} of them inside the support")

    def bar(name, value, most, text):
        rows.append((name, text, value <= most))

    def worst(key, one_partition):
        """The largest error, where it is more than one partition's settled bytes."""
        errors = [0.0]
        for c in cases:
            x = c[key]
            if x is None or x["error_ratio"] is None:
                continue
            small = abs(x["predicted"] - x["measured"]) <= settled[c["group"]]
            if not (one_partition and small):
                errors.append(abs(x["error_ratio"]))
        return max(errors)

    live, rss, interval = held["peak_live"], held["peak_rss"], held["proof_interval"]
    bar("peak live, mean", live["mean_error_ratio"], 0.03, f"{live['mean_error_ratio']:.1%} of 3 %")
    w = worst("peak_live_bytes", True)
    bar("peak live, worst beyond a partition", w, 0.08, f"{w:.1%} of 8 %")
    bar("peak RSS, mean", rss["mean_error_ratio"], 0.04, f"{rss['mean_error_ratio']:.1%} of 4 %")
    w = worst("peak_rss_bytes", False)
    bar("peak RSS, worst", w, 0.10, f"{w:.1%} of 10 %")
    e = interval["mean_error_ratio"]
    bar("proof interval, mean", e, 0.05, f"{e:.1%} of 5 %")
    for name, s in ("peak live", live), ("peak RSS", rss), ("proof interval", interval):
        bar(f"{name}, within 95 %", 0.9 - s["within_ratio"], 0, f"{s['within_ratio']:.0%}, wanted 90 %")
    bar("runs that could not be predicted", held["failed_runs"], 0, str(held["failed_runs"]))
    wrong = sum(r["called_safe_runs"] for r in v["limits"] if r["unsafe"])
    bar("unsafe limits called safe", wrong, 0, str(wrong))
    asked = sum(len(c["verdicts"]) for c in cases)
    unknown = sum(r["called_unknown_runs"] for r in v["limits"])
    bar("answered unknown", unknown, 0.2 * asked, f"{unknown} of {asked}, wanted at most 20 %")
    for name, text, held_to in rows:
        print(f"  {'holds ' if held_to else 'MISSED'}  {name}: {text}")
    sys.exit(0 if all(r[2] for r in rows) else 1)


main()
