"""Replay traces under their own settings and hold the errors against the bars of the identity.

usage: identity_bars.py HIGHWATER TRACE...

Frozen durations: makespan and peak live bytes within 1 %. Fitted law: makespan within 5 %, peak live
within 3 % or one partition's settled bytes, peak RSS within 5 % (to which its law is calibrated; the
error before that is printed beside it). A trace with too few partitions to fit to is held to the
frozen bars alone. Exits with 1 if a bar is missed.
"""

import json
import os
import subprocess
import sys


def replay(highwater, trace, durations):
    out = subprocess.run(
        [highwater, "replay", trace, "--durations", durations, "--json", "--quiet"],
        capture_output=True, text=True,
    )
    if "a fit needs" in out.stderr:
        return None
    if out.returncode:
        sys.exit(f"{trace}: {out.stderr}")
    return json.loads(out.stdout)


def settled_bytes(highwater, trace):
    """What a partition of the trace holds when it is sent."""
    run = [highwater, "validate", trace, "--durations", "recorded", "--json", "--quiet"]
    out = subprocess.run(run, capture_output=True)
    return json.loads(out.stdout)["groups"][0]["settled_bytes"]


def main():
    highwater, missed = sys.argv[1], 0
    width = max(len(os.path.basename(trace)) for trace in sys.argv[2:])
    print(f"{'':{width + 9}}frozen: makespan   live | fitted: makespan     live      RSS | law of RSS uncalibrated")
    for trace in sys.argv[2:]:
        frozen, fitted = (replay(highwater, trace, d) for d in ("recorded", "fitted"))
        a, b = frozen["identity"], fitted and fitted["identity"]
        live = frozen["recorded"]["peak_live_bytes"]
        holds = abs(a["makespan_error_ratio"]) <= 0.01 and abs(a["peak_live_error_ratio"]) <= 0.01
        rest = "too few partitions to fit to"
        if fitted:
            allowed = max(0.03, settled_bytes(highwater, trace) / live)
            holds = (
                holds and abs(b["makespan_error_ratio"]) <= 0.05
                and abs(b["peak_live_error_ratio"]) <= allowed and abs(b["peak_rss_error_ratio"]) <= 0.05
            )
            law = fitted["law"]["remainder_error_ratio"]
            rest = (
                f"{b['makespan_error_ratio']:16.1%} {b['peak_live_error_ratio']:8.1%}"
                f" {b['peak_rss_error_ratio']:8.1%} | {'not known' if law is None else f'{law:.1%}'}"
            )
        missed += not holds
        print(
            f"{'holds ' if holds else 'MISSED'} {os.path.basename(trace):>{width}}"
            f" {a['makespan_error_ratio']:17.2%} {a['peak_live_error_ratio']:6.2%} | {rest}"
        )
    sys.exit(1 if missed else 0)


main()
