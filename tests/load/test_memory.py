"""The server's memory over hundreds of reruns with changing people, runs and pages, and after visitors who left."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crowd import server
from memory import come_and_go, grown, wander
from test_crowd import app  # noqa: F401  (a fixture: the app with two tiny runs)


@pytest.mark.slow
@pytest.mark.skipif("ELASTIC_LONG" not in os.environ, reason="ten minutes of visits: ELASTIC_LONG=1 asks for them")
@pytest.mark.timeout(900)
def test_reruns_and_visitors_leave_nothing_behind(app: Path, tmp_path: Path) -> None:  # noqa: F811
    with server(app, tmp_path / "server.log", keep=10) as (address, process), ThreadPoolExecutor(1) as thread:
        memory = thread.submit(asyncio.run, wander(address, process, 500, every=True)).result()
        visits = thread.submit(asyncio.run, come_and_go(address, process, 8)).result()
    assert grown(memory)[2] < 50, memory[::20]
    assert max(visits) - visits[0] < 50, visits
    assert "Traceback" not in (tmp_path / "server.log").read_text()
