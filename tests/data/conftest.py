"""Tiny files in every layout, and the real data where it is at hand."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """write("ratings.csv", text) -> the path of that file in a folder of its own."""

    def _write(name: str, content: str | bytes) -> Path:
        path = tmp_path / "given" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the real data; the test is skipped where there is none."""
    named = os.environ.get("ELASTIC_DATA_DIR")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data is not here: set ELASTIC_DATA_DIR")
    monkeypatch.setenv("ELASTIC_DATA_DIR", str(folder))
    return folder
