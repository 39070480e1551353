"""Run folders that somebody broke, swapped or forged: one sentence each, another run is shown, nothing is lost or executed."""

import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import visits
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.runs import Run
from pages.frame import shell

ROOT = Path(__file__).resolve().parents[2]
Break = Callable[[Path], Any]


class _Bomb:
    """Would leave a file behind if anything unpickled it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/elastic-was-executed",)


def _config(**changes: Any) -> Break:
    """Changes `section.key` in config.json."""

    def apply(run: Path) -> None:
        plain = json.loads((run / "config.json").read_text())
        for path, value in changes.items():
            section, _, key = path.partition("__")
            plain[section] = {**plain.get(section, {}), key: value} if key else value
        (run / "config.json").write_text(json.dumps(plain))

    return apply


def _text(name: str, text: str | bytes) -> Break:
    return lambda run: (run / name).write_bytes(text.encode() if isinstance(text, str) else text)


def _weights(change: Callable[[dict[str, torch.Tensor]], Any]) -> Break:
    def apply(run: Path) -> None:
        weights = load_file(run / "model.safetensors")
        change(weights)
        save_file(weights, run / "model.safetensors")

    return apply


def _drop(name: str) -> Break:
    return lambda run: (run / name).unlink()


def _link(name: str, target: str) -> Break:
    return lambda run: ((run / name).unlink(missing_ok=True), (run / name).symlink_to(target))


def _pipe(name: str) -> Break:
    return lambda run: ((run / name).unlink(missing_ok=True), os.mkfifo(run / name))


def _wider(weights: dict[str, torch.Tensor]) -> None:
    weights["events.items.weight"] = torch.zeros(61, 7)


UNREADABLE: dict[str, Break] = {
    "config: empty": _text("config.json", ""),
    "config: cut short": lambda run: (run / "config.json").write_text((run / "config.json").read_text()[:99]),
    "config: a list": _text("config.json", "[1]"),
    "config: a number": _text("config.json", "7"),
    "config: not text": _text("config.json", b"\xff\xfe\x00\x81"),
    "config: unknown section": _config(evil={"a": 1}),
    "config: unknown key": _config(model__evil=1),
    "config: unknown model": _config(model__name="../../evil"),
    "config: no model": _config(model={}),
    "config: width as text": _config(model__width="wide"),
    "config: width zero": _config(model__width=0),
    "config: width not a number": _config(model__width=float("nan")),
    "config: k larger than K": _config(model__k=10_000),
    "config: side one": _config(model__side=1),
    "config: heads do not divide": _config(model__heads=5),
    "config: length negative": _config(model__length=-3),
    "config: a choice that is none": _config(model__gate="open"),
    "config: a memory of a terabyte": _config(model__side=500_000),
    "config: data from a path": _config(data__source="/etc/passwd"),
    "config: data from nowhere": _config(data__source="http://127.0.0.1:9/x.csv"),
    "config: people negative": _config(data__planted={"users": -5}),
    "weights: empty": _text("model.safetensors", b""),
    "weights: cut short": lambda run: os.truncate(run / "model.safetensors", 1000),
    "weights: a pickle": _text("model.safetensors", pickle.dumps(_Bomb())),
    "weights: a header of exabytes": _text("model.safetensors", (2**62).to_bytes(8, "little") + b"{}"),
    "weights: one is missing": _weights(lambda weights: weights.pop("norm.weight")),
    "weights: one too many": _weights(lambda weights: weights.update(evil=torch.zeros(1))),
    "weights: another shape": _weights(_wider),
    "weights: not a number": _weights(lambda weights: weights["norm.weight"].fill_(float("nan"))),
    "weights: one infinite": _weights(lambda weights: weights["norm.bias"][3:4].fill_(float("inf"))),
    "weights: one of 3e38": _weights(lambda weights: weights["events.positions"][0, 0:1].fill_(3e38)),
    "weights: experts of 3e38": _weights(lambda weights: weights["memories.0.values.weight"].fill_(-3e38)),
    "weights: a temperature beyond all": _weights(lambda weights: weights["memories.0.keys.log_temperature"].fill_(500.0)),
    "weights: an endless device": _link("model.safetensors", "/dev/zero"),
    "weights: a pipe": _pipe("model.safetensors"),
    "weights: a link to another run's": lambda run: (
        _drop("model.safetensors")(run), (run / "model.safetensors").symlink_to(run.parent / "tiny" / "model.safetensors"),
    ),
    "weights: a folder": lambda run: (_drop("model.safetensors")(run), (run / "model.safetensors").mkdir()),
    "items: missing": _drop("items.csv"),
    "items: empty": _text("items.csv", ""),
    "items: cut short": lambda run: os.truncate(run / "items.csv", 40),
    "items: others": lambda run: (run / "items.csv").write_text((run / "items.csv").read_text().replace("\n1,", "\n1,x")),
    "items: not text": _text("items.csv", b"id,raw\n1,\xff\xfe\n"),
}  # fmt: skip

HARMLESS: dict[str, Break] = {
    "metrics: missing": _drop("metrics.jsonl"),
    "metrics: empty": _text("metrics.jsonl", ""),
    "metrics: binary": _text("metrics.jsonl", bytes(range(256)) * 20),
    "metrics: torn last line": lambda run: os.truncate(run / "metrics.jsonl", (run / "metrics.jsonl").stat().st_size - 9),
    "metrics: lists and numbers": _text("metrics.jsonl", '[]\n7\n"x"\nnull\n{"event": "epoch", "epoch": "x"}\n'),
    "metrics: an epoch without numbers": _text("metrics.jsonl", '{"event": "epoch", "epoch": 1}\n{"event": "test"}\n'),
    "snapshots: not one": lambda run: (run / "epochs" / "0001.safetensors").write_bytes(b"x"),
    "snapshots: strange names": lambda run: (run / "epochs" / "½.safetensors").write_bytes(b"x"),
    "resume: a pickle": _text("resume.pt", pickle.dumps(_Bomb())),
    "a folder inside": lambda run: (run / "deep" / "er").mkdir(parents=True),
    "a map that is none": lambda run: ((run / "maps").mkdir(), (run / "maps" / "umap.npz").write_bytes(b"PK\x03\x04")),
    "a map with objects": lambda run: (
        (run / "maps").mkdir(), np.savez(run / "maps" / "umap.npz", x=np.array([_Bomb()], dtype=object)),
    ),
}  # fmt: skip


@pytest.fixture
def broken(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Break], AppTest]:
    """The app with a good run and one that was tampered with, asked for the latter."""
    folder = shutil.copytree(tiny_runs, tmp_path / "runs")
    monkeypatch.setattr(shell, "RUNS", folder)

    def visit(tamper: Break) -> AppTest:
        shutil.copytree(folder / "tiny", folder / "broken")
        tamper(folder / "broken")
        return visits.visit("", {"run": "broken", "user": "3"})

    return visit


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_run_that_cannot_be_shown_is_one_sentence_and_another_run(broken: Callable[[Break], AppTest], name: str) -> None:
    app = broken(UNREADABLE[name])
    assert not app.exception
    (warning,) = app.warning
    assert "broken" in warning.value and warning.value.rstrip().endswith("tiny.") and "Showing the run" in warning.value
    assert "Traceback" not in warning.value and len(warning.value) < 500
    assert app.number_input(key="user").value == 3
    assert not Path("/tmp/elastic-was-executed").exists()


def test_a_second_run_that_cannot_be_shown_is_one_sentence(broken: Callable[[Break], AppTest]) -> None:
    broken(UNREADABLE["weights: cut short"])
    app = visits.visit("", {"run": "tiny", "vs": "broken"})
    assert not app.exception
    (warning,) = app.warning
    assert "The second run" in warning.value and "broken cannot be shown" in warning.value
    app.switch_page("traffic/page.py").run()
    assert not app.exception


PAGES = tuple(f"{name}/page.py" for name in ("experts", "traffic", "map", "train"))


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_damage_beside_the_weights_does_not_stop_a_page(broken: Callable[[Break], AppTest], name: str) -> None:
    app = broken(HARMLESS[name])
    assert not app.exception and app.selectbox(key="run").value == "broken"
    for page in PAGES:
        app.switch_page(page).run()
        assert not app.exception, app.exception
    assert not Path("/tmp/elastic-was-executed").exists()


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("weights: not a number", "norm.weight"),
        ("weights: one infinite", "norm.bias"),
        ("weights: one of 3e38", "events.positions"),
        ("weights: experts of 3e38", "memories.0.values.weight"),
        ("weights: another shape", "events.items.weight"),
    ],
)
def test_the_sentence_names_the_tensor(tiny_runs: Path, tmp_path: Path, name: str, tensor: str) -> None:
    run = Run(shutil.copytree(tiny_runs / "tiny", tmp_path / "broken"))
    UNREADABLE[name](run.path)
    with pytest.raises(InputError, match=rf"broken/model\.safetensors .*{re.escape(tensor)}"):
        run.model(load(run.config.data))


@pytest.mark.parametrize("name", UNREADABLE)
def test_the_core_says_what_is_wrong_in_one_sentence(tiny_runs: Path, tmp_path: Path, name: str) -> None:
    run = Run(shutil.copytree(tiny_runs / "tiny", tmp_path / "broken"))
    UNREADABLE[name](run.path)
    with pytest.raises(InputError) as error:
        run.model(load(run.config.data))
    assert "\n" not in str(error.value) and 10 < len(str(error.value)) < 400
