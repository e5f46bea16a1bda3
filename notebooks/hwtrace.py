"""What the notebooks share: a trace opened in DuckDB with the views of trace.sql, units, and the look of charts."""

import json
import math
import pathlib

import duckdb
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

HERE = pathlib.Path(__file__).parent

GIB = 1 << 30
MIB = 1 << 20

# One colour a thing, the same in every chart. Red is kept for what no permit bounds.
PLACE_COLOURS = {
    "resident": "#9aa5b1",
    "job": "#cbd2d9",
    "admission": "#e4e7eb",
    "budget": "#e4e7eb",
    "permit": "#d9e2ec",
    "synthesis": "#2b7de9",
    "blocked_send": "#f4a259",
    "blocked_send, no permit": "#c62828",
    "channel": "#f7c98b",
    "channel, no permit": "#ef6c5a",
    "pickup": "#5ac8a8",
    "lock_wait": "#5ac8a8",
    "gpu": "#2a9d5c",
    "finalise": "#8e6bbf",
}
# Shared and lasting things in greys, what a partition carries in blues, what proving adds in warm colours.
CLASS_COLOURS = {
    "recorder": "#e4e7eb", "system": "#cbd2d9", "srs": "#b8c0c8", "key": "#9aa5b1", "setup_scratch": "#7b8794",
    "witness": "#cfe4fd", "a": "#8ec3fa", "b": "#5ba3f5", "c": "#2b7de9", "aux": "#1a56b0",
    "h": "#2a9d5c", "split": "#8e6bbf", "cpu_scratch": "#f4a259",
}
OTHER_COLOURS = ["#c08497", "#b8b08d", "#52606d", "#5ac8a8", "#d97b29", "#a3b18a"]


def class_colours(names):
    """A colour for each class of buffer; a program's own classes take the ones that are left."""
    others = [n for n in names if n not in CLASS_COLOURS]
    return {n: CLASS_COLOURS.get(n) or OTHER_COLOURS[others.index(n) % len(OTHER_COLOURS)] for n in names}


class Trace:
    """A trace: its manifest, and a DuckDB connection that holds the views of trace.sql."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        manifest = self.path / "manifest.json"
        if not manifest.is_file():
            raise FileNotFoundError(f"{self.path} is no sealed trace: run `highwater prove --out {self.path}`, "
                                    f"or `highwater recover {self.path}` after a kill")
        self.manifest = json.loads(manifest.read_text())
        self.db = duckdb.connect()
        self.db.execute("SET VARIABLE trace = ?", [str(self.path)])
        self.db.execute((HERE / "trace.sql").read_text())

    def sql(self, query, *args):
        """Rows of a query as a list of tuples."""
        return self.db.execute(query, list(args)).fetchall()

    def one(self, query, *args):
        """The single row of a query; its value where it has one column."""
        (row,) = self.sql(query, *args)
        return row[0] if len(row) == 1 else row

    def columns(self, query, *args):
        """A query's columns as NumPy arrays, by name."""
        return self.db.execute(query, list(args)).fetchnumpy()

    def setting(self, name, default=None):
        """A setting as in effect, as text."""
        return self.manifest.get("settings", {}).get(name, {}).get("value", default)


def size(n):
    """A byte count for people."""
    if n is None:
        return "unknown"
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if abs(n) >= unit:
            return f"{n / unit:.3g} {name}" if abs(n) < 1000 * unit else f"{n / unit:.0f} {name}"
    return f"{n} B"


def seconds(ns):
    """A duration for people."""
    if ns is None:
        return "unknown"
    return f"{ns / 1e9:.2f} s" if abs(ns) >= 1e9 else f"{ns / 1e6:.3g} ms"


def markdown_table(head, rows):
    """A table that Jupyter renders and that reads as text too; numbers go to the right."""
    right = [all(isinstance(r[i], (int, float)) or str(r[i])[:1].isdigit() for r in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---:" if r else "---" for r in right) + "|"]
    lines += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def chart(title, height=3.6, byte_axis=None):
    """A figure whose title says what is to be seen. byte_axis is the largest value of a y axis in bytes."""
    fig, ax = plt.subplots(figsize=(10, height), dpi=110)
    ax.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=12)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=9)
    ax.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("seconds since the first job was submitted", fontsize=9)
    if byte_axis:
        unit, name = (GIB, "GiB") if byte_axis >= GIB else (MIB, "MiB")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y / unit:g}"))
        ax.set_ylabel(name, fontsize=9)
        ax.yaxis.set_major_locator(plt.MultipleLocator(unit * step(byte_axis / unit)))
    return fig, ax


def step(top):
    """The distance of five ticks or so up to top: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(top / 5))
    return power * next(m for m in (1, 2, 5, 10) if top / (m * power) <= 7)


def stack(ax, times, levels, colours):
    """Areas on top of each other, as steps; levels maps a name to its values at times."""
    names = [n for n in levels if max(levels[n], default=0) > 0]
    ax.stackplot(times, *[levels[n] for n in names], labels=names, colors=[colours[n] for n in names], step="post",
                 linewidth=0)


def legend(ax):
    """The legend beside the chart, in the order in which areas lie on each other."""
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
