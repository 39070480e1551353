"""Three visitors in a hurry for four seconds: what they ask for is done, nothing breaks, the server takes little more memory than
its libraries, and the rows say what happened."""

import asyncio
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crowd import about, crowd, resident, rows, server, write
from visitor import Visitor

from elastic_core.bench.rows import read_rows

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = """
import os
import pandas, plotly.graph_objects, pyarrow.parquet, streamlit, torch
from crowd import resident
print(resident(os.getpid()))
"""


@pytest.fixture(scope="module")
def app(tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app with two tiny runs."""
    folder = tmp_path_factory.mktemp("app")
    for name in ("pages", "elastic_core", ".streamlit"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", folder)
    shutil.copytree(tiny_runs, folder / "checkpoints")
    return folder


async def _one_visit(address: str) -> None:
    visitor = Visitor(address)
    await visitor.open()
    start = visitor.at
    await visitor.set("user", 7.0)
    assert visitor.value("user") == 7 and visitor.query["user"] == "7"
    await visitor.press("Surprise me")
    someone = visitor.value("user")
    assert 1 <= someone <= 80 and visitor.query["user"] == f"{someone:g}", "the server says whom it chose"
    await visitor.go("journey")
    assert visitor.at == visitor.pages["journey"] != start and visitor.value("user") == someone
    await visitor.press("jrn_last")
    assert visitor.query["edits"], "an edit is in the address"
    await visitor.press("jrn_undo")
    await visitor.go("experts")
    await visitor.set("exp_part", ["Neighbours"])
    assert visitor.value("exp_part") == ["Neighbours"]
    await visitor.close()


@pytest.mark.slow
def test_a_small_crowd_meets_no_error(app: Path, tmp_path: Path) -> None:
    with server(app, tmp_path / "server.log") as (address, process), ThreadPoolExecutor(1) as thread:
        # Not on this thread: the browser that other tests keep open has an event loop on it.
        thread.submit(asyncio.run, _one_visit(address)).result()
        log = thread.submit(asyncio.run, crowd(address, process, users=3, seconds=4, think=(0.3, 1.0))).result()
        used = resident(process)
    libraries = float(subprocess.check_output([sys.executable, "-c", LIBRARIES], cwd=Path(__file__).parent))
    assert used < 1.32 * libraries, (used, libraries)
    said = (tmp_path / "server.log").read_text()
    assert not log.errors and "Traceback" not in said, (log.errors, said)
    found = {row["act"]: row for row in rows(log, about(ROOT, users=3, seconds=4))}
    assert found["open"]["n"] == 3 and found["all"]["n"] == sum(row["n"] for act, row in found.items() if act != "all")
    assert all(row["p50"] <= row["p95"] <= row["max"] for row in found.values())
    for _ in range(2):
        write(tmp_path / "rows.csv", {"bench": "crowd", **found["all"]})
    (row,) = read_rows(tmp_path / "rows.csv", "crowd").to_dict("records")
    assert row["users"] == 3 and row["duration"] == 4 and row["rounds"] == found["all"]["n"] and row["seconds"] <= row["p95"]
    assert row["end_mb"] > 100 and row["commit"]
