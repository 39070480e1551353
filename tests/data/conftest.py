"""Tiny files in every layout, and the real data where it is at hand."""

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
