"""The app through Streamlit's own test driver, on two tiny runs of a small planted world. See driving.py."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import healthy
from streamlit.testing.v1 import AppTest

from pages.frame import shell

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def app_runs(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The app sees only copies of the runs `tiny` (ELASTIC) and `tiny-peer` (SASRec); a test may add to them."""
    folder = shutil.copytree(tiny_runs, tmp_path / "runs")
    monkeypatch.setattr(shell, "RUNS", folder)
    return folder


@pytest.fixture
def opened(app_runs: Path) -> Callable[..., AppTest]:
    """`opened("experts/page.py", run="tiny", expert="3")`: a page by deep link; no page is the start page."""

    def visit(page: str = "", **address: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / "navigation.py"), default_timeout=60)
        for key, value in address.items():
            app.query_params[key] = value
        healthy(app.run())
        return healthy(app.switch_page(page).run()) if page else app

    return visit
