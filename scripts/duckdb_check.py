#!/usr/bin/env python3
"""Reads every Parquet file of a trace with DuckDB and holds what SQL says against `highwater analyze`.

    .cache/venv/bin/python scripts/duckdb_check.py RUN.hw [RUN.hw …]

Row counts of all four tables and the peak of live bytes must be equal, to the byte. The SQL is the definition in
docs/format.md, written out here on its own: it shares nothing with the command or with the notebooks.
"""

import json
import os
import pathlib
import subprocess
import sys

import duckdb

TABLES = ("spans", "buffers", "queues", "samples")

# The running sum starts with the trace; a peak counts from the first job's request on. A level that was reached
# before the request and still holds at it counts too: until_seq is where it ends.
PEAK = """
WITH request AS (
    SELECT min(seq) AS seq FROM '{dir}/queues.parquet' WHERE event = 'request' AND list_contains(?, resource)),
level AS (
    SELECT seq, sum(delta_bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS live_bytes,
           lead(seq, 1, 9223372036854775807) OVER (ORDER BY seq) AS until_seq
    FROM '{dir}/buffers.parquet' WHERE space <> 'device' AND parent_id = 0)
SELECT max(live_bytes)::BIGINT FROM level, request WHERE until_seq > request.seq
"""


def sql_figures(trace):
    """The figures of a trace as DuckDB computes them."""
    manifest = json.loads((trace / "manifest.json").read_text())
    jobs = [r["name"] for r in manifest.get("resources", []) if r["kind"] == "job"] or ["job"]
    db = duckdb.connect()
    one = lambda query, *args: db.execute(query.format(dir=str(trace).replace("'", "''")), list(args)).fetchone()[0]
    figures = {f"{t} rows": one(f"SELECT count(*) FROM (SELECT * FROM '{{dir}}/{t}.parquet')") for t in TABLES}
    figures["peak_live_bytes"] = one(PEAK, jobs)
    return figures


def command_figures(trace, highwater):
    """The same figures as `highwater analyze --json` reports them; exit 1 only means that it found something."""
    run = subprocess.run([highwater, "analyze", "--json", "--no-what-if", str(trace)], capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"{highwater} analyze {trace}: exit {run.returncode}\n{run.stderr}")
    report = json.loads(run.stdout)
    figures = {f"{t} rows": report["events"][t] for t in TABLES}
    figures["peak_live_bytes"] = report["peak_live_bytes"]
    return figures


def main(args):
    if not args:
        sys.exit(__doc__)
    root = pathlib.Path(__file__).parent.parent
    highwater = os.environ.get("HIGHWATER", str(root / "bin/highwater"))
    differ = 0
    for trace in map(pathlib.Path, args):
        ours, theirs = command_figures(trace, highwater), sql_figures(trace)
        for name, value in theirs.items():
            same = value == ours[name]
            differ += not same
            print(f"{trace.name}: {name}: DuckDB {value}, highwater {ours[name]}{'' if same else '  DIFFER'}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
