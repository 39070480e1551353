"""Run folders that somebody broke, swapped or forged, as a page is asked for them: one sentence, another run is shown, nothing is
lost or executed. What is said of each of hundreds: test_folders.py."""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import visits
from folders import RUNS, Bomb, Break, write
from streamlit.testing.v1 import AppTest

from pages.frame import shell

BY_NAME = {odd.id: odd.tamper for odd in RUNS}
UNREADABLE = (
    "config.json: cut", "config.json: data from http://127.0.0.1:9/x.csv", "weights: cut short", "items.csv: others",
    "model.safetensors: a pickle", "model.safetensors: a link to an endless device",
)  # fmt: skip


def _cut(run: Path) -> None:
    os.truncate(run / "metrics.jsonl", (run / "metrics.jsonl").stat().st_size - 9)


def _map(run: Path) -> None:
    (run / "maps").mkdir()
    np.savez(run / "maps" / "umap.npz", x=np.array([Bomb()], dtype=object))


# Beside the weights: a log, snapshots, a resume file and a map, each that is none or another one.
ODD_LOG = '[]\n7\n"x"\nnull\n{"event": "epoch", "epoch": "x"}\n{"event": "epoch", "epoch": 1}\n{"event": "test"}\n'
HARMLESS: dict[str, tuple[Break, ...]] = {
    "no log": (lambda run: (run / "metrics.jsonl").unlink(), write("epochs/0001.safetensors", b"x")),
    "a torn log": (_cut, write("epochs/½.safetensors", b"x"), write("resume.pt", pickle.dumps(Bomb())), _map),
    "a log of anything": (write("metrics.jsonl", ODD_LOG), lambda run: (run / "deep").mkdir()),
    "a log of bytes": (
        write("metrics.jsonl", bytes(range(256)) * 20), lambda run: (run / "maps").mkdir(), write("maps/umap.npz", b"PK\x03\x04")
    ),
}  # fmt: skip


@pytest.fixture
def broken(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """The app with a good run and one that was tampered with, asked for the latter."""
    folder = shutil.copytree(tiny_runs, tmp_path / "runs")
    monkeypatch.setattr(shell, "RUNS", folder)

    def visit(*tampers: Break) -> AppTest:
        shutil.copytree(folder / "tiny", folder / "broken")
        for tamper in tampers:
            tamper(folder / "broken")
        return visits.visit("", {"run": "broken", "user": "3"})

    return visit


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_run_that_cannot_be_shown_is_one_sentence_and_another_run(broken: Callable[..., AppTest], name: str) -> None:
    app = broken(BY_NAME[name])
    assert not app.exception
    (warning,) = app.warning
    assert "broken" in warning.value and warning.value.rstrip().endswith("tiny.") and "Showing the run" in warning.value
    assert "Traceback" not in warning.value and len(warning.value) < 500
    assert app.number_input(key="user").value == 3
    assert not Path(Bomb.place).exists()


def test_a_second_run_that_cannot_be_shown_is_one_sentence(broken: Callable[..., AppTest]) -> None:
    broken(BY_NAME["weights: cut short"])
    app = visits.visit("", {"run": "tiny", "vs": "broken"})
    assert not app.exception
    (warning,) = app.warning
    assert "The second run" in warning.value and "broken cannot be shown" in warning.value
    app.switch_page("traffic/page.py").run()
    assert not app.exception


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_damage_beside_the_weights_does_not_stop_a_page(broken: Callable[..., AppTest], name: str) -> None:
    app = broken(*HARMLESS[name])
    assert not app.exception and app.selectbox(key="run").value == "broken"
    for page in ("experts", "traffic", "map", "train"):
        app.switch_page(f"{page}/page.py").run()
        assert not app.exception, app.exception
    assert not Path(Bomb.place).exists()
