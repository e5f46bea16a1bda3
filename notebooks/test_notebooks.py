"""Runs DuckDB and the notebooks over traces that bin/highwater records here, and holds them against its own analysis.

`make python` runs it. HIGHWATER names another binary than bin/highwater.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import duckdb
import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
HIGHWATER = os.environ.get("HIGHWATER", str(ROOT / "bin/highwater"))
POSTMORTEM = HERE / "postmortem.ipynb"
RECORDED = ROOT / "replay/testdata"

PARTITIONS = 12  # of a run: enough for a backlog, small enough for seconds


def highwater(*args, ok=(0,)):
    """Runs the command and gives its JSON."""
    run = subprocess.run([HIGHWATER, *args, "--json"], capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
    assert run.returncode in ok, f"highwater {' '.join(args)}: exit {run.returncode}\n{run.stderr}"
    return json.loads(run.stdout)


class Run:
    """A small real run, and what the post-mortem says of it: three jobs of four partitions, all in flight, one slot
    between synthesis and the prover."""

    def __init__(self, folder, release):
        self.trace = folder / f"{release}.hw"
        highwater("prove", "--circuit", "mimc", "--log-size", "13", "--jobs", "3", "--partitions", str(PARTITIONS // 3),
                  "--permit-release", release, "--channel-capacity", "1", "--out", str(self.trace))
        self.report = highwater("analyze", str(self.trace), "--no-what-if", ok=(0, 1))
        self.results, self.said = execute(POSTMORTEM, self.trace)


@pytest.fixture(scope="session", autouse=True)
def own_folder():
    """A folder for what Jupyter, IPython and Matplotlib write: HOME may be read-only, and what is in it counts for
    nothing here. Its path is short, for the kernels' sockets lie in it."""
    short = "/tmp" if os.access("/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hw-", dir=short, ignore_cleanup_errors=True) as folder, \
            pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
            patch.setenv(name, folder)
        yield folder


@pytest.fixture(scope="session")
def pileup(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("pileup"), "synth_end")


@pytest.fixture(scope="session")
def held(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("held"), "send_accepted")


@pytest.fixture(params=["pileup", "held"])
def run(request):
    return request.getfixturevalue(request.param)


def execute(notebook, trace):
    """Runs a notebook top to bottom on a trace and gives its result cell and everything that it says."""
    nb = nbformat.read(notebook, as_version=4)
    # The kernel is talked to through socket files: a TCP port found free may be another's before the kernel has it.
    sockets = tempfile.mkdtemp(prefix="k", dir=os.environ["JUPYTER_RUNTIME_DIR"])
    client = NotebookClient(nb, timeout=600, startup_timeout=600, kernel_name="python3",
                            resources={"metadata": {"path": str(HERE)}},
                            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/k"}}))
    client.execute(env={**os.environ, "HIGHWATER_TRACE": str(trace)})
    outputs = [o for cell in nb.cells if cell.cell_type == "code" for o in cell.outputs]
    results = [o.data["application/json"] for o in outputs if "application/json" in o.get("data", {})]
    said = "\n".join(o.data["text/markdown"] for o in outputs if "text/markdown" in o.get("data", {}))
    charts = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(results) == 1 and len(charts) == 5
    return results[0], said


def shares(report, by):
    return {s["name"]: s["bytes"] for s in report["memory"]["peak"][by]}


def test_duckdb_reads_every_file_and_agrees_to_the_byte(run):
    check = subprocess.run([sys.executable, str(ROOT / "scripts/duckdb_check.py"), str(run.trace)], capture_output=True,
                           encoding="utf-8", env={**os.environ, "HIGHWATER": HIGHWATER})
    assert check.returncode == 0, check.stdout + check.stderr
    assert check.stdout.count("DuckDB") == 5


@pytest.mark.parametrize("page", ["README.md", "docs/format.md"])
def test_the_query_shown_for_the_peak_is_right(page, run):
    query = re.search(r"```sql\n(WITH first AS .*?;)\n```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    peak = duckdb.sql(query[1].replace("'run.hw/", f"'{run.trace}/")).fetchone()[0]
    assert peak == run.report["peak_live_bytes"]


def test_postmortem_agrees_with_analyze(run):
    results, report = run.results, run.report
    assert results["peak_live_bytes"] == report["peak_live_bytes"]
    assert results["peak_rss_bytes"] == report["peak_rss_bytes"]
    assert results["makespan_ns"] == report["makespan_ns"]
    assert results["proof_interval_ns"] == pytest.approx(report["proof_interval_ns"], abs=1)
    assert results["rho"] == pytest.approx(report["rho"], rel=1e-6)
    peak = report["memory"]["peak"]
    assert results["peak_time_ns"] == peak["time_ns"]
    assert results["peak_by_class_bytes"] == shares(report, "by_class")
    assert results["peak_by_place_bytes"] == shares(report, "by_place")
    assert results["unpermitted_partitions"] == peak["unpermitted_partitions"]
    assert results["unpermitted_bytes"] == peak["unpermitted_bytes"]


def test_postmortem_names_the_pileup(pileup):
    assert pileup.results["early_released_partitions"] == PARTITIONS
    assert "released before the send is accepted" in pileup.said
    # How many pile up in a run made here is the scheduler's matter; in this one, recorded once, most did.
    results, said = execute(POSTMORTEM, RECORDED / "pile-15")
    assert results["early_released_partitions"] == 16
    assert results["unpermitted_partitions"] > 8
    assert results["bound_bytes"] < results["peak_live_bytes"]
    assert "released before the send is accepted" in said


def test_postmortem_does_not_see_a_pileup_where_there_is_none(held):
    for results, said in ((held.results, held.said), execute(POSTMORTEM, RECORDED / "held-15")):
        assert results["early_released_partitions"] == 0
        assert results["unpermitted_partitions"] <= 1
        assert results["peak_live_bytes"] <= results["bound_bytes"]
        assert "released before the send is accepted" not in said


def test_a_missing_trace_is_named(tmp_path):
    sys.path.insert(0, str(HERE))
    import hwtrace

    with pytest.raises(FileNotFoundError, match="highwater recover"):
        hwtrace.Trace(tmp_path / "nowhere.hw")


@pytest.mark.parametrize("notebook", sorted(HERE.glob("*.ipynb")), ids=lambda p: p.name)
def test_outputs_are_stripped(notebook):
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None, f"{notebook.name}: clear all outputs before committing"
