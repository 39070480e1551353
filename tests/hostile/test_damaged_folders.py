"""Runs, jobs and uploads that are damaged, one case of each kind: one sentence, the good ones beside them are shown, and what a
stranger may have put into a file of weights is never executed."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import visits
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from elastic_core import recipes
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Trainings
from elastic_core.jobs.queue import open_table
from elastic_core.runs import Run, list_runs, unreadable_runs
from elastic_core.services.data.upload_store import UploadStore, check_upload, open_upload, preprocess_upload
from pages.components import page_context

ROWS = "user,item,time\n" + "".join(f"u{u},i{(i + u) % 7},{1_000_000_000 + u * 7 + i}\n" for u in range(6) for i in range(7))
Damage = Callable[[Path], Any]


class Bomb:
    """Leaves a folder behind if anything unpickles it."""

    place = "/tmp/elastic-was-executed"

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.place,)


def write(name: str, content: str | bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def cut(name: str, size: int) -> Damage:
    return lambda folder: os.truncate(folder / name, size)


def change(name: str, *keys: str, to: Any) -> Damage:
    """Another value in a JSON file."""

    def damage(folder: Path) -> None:
        plain = json.loads((folder / name).read_text())
        holder = plain
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = to
        (folder / name).write_text(json.dumps(plain))

    return damage


def weights(alter: Callable[[dict[str, torch.Tensor]], Any]) -> Damage:
    def damage(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        alter(tensors)
        save_file(tensors, folder / "model.safetensors")

    return damage


def a_pipe(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return damage


def is_one_sentence(text: str, part: str) -> None:
    assert part in text, text
    assert len(text) < 700 and text.isprintable() and "Traceback" not in text
    assert not Path(Bomb.place).exists()


# --- runs --------------------------------------------------------------------------------------------------------------

# What the list of runs says, and what opening one says: the list does not read weights and items.
LISTED: dict[str, tuple[Damage, str]] = {
    "settings cut short": (cut("config.json", 40), "is not valid JSON"),
    "settings that are no text": (write("config.json", bytes(range(256))), "is not a UTF-8 text file"),
    "settings in a pipe": (a_pipe("config.json"), "is no regular file"),
    "settings of another program": (write("config.json", "[1]"), "must hold an object"),
    "an unknown model": (change("config.json", "model", "name", to="../../evil"), "unknown model"),
    "an unknown setting": (change("config.json", "model", "evil", to=1), "model.evil"),
    "a setting out of bounds": (change("config.json", "model", "heads", to=5), "heads"),
    "a log without end": (write("metrics.jsonl", b"x" * 10 * 2**20), "at most"),
}
OPENED: dict[str, tuple[Damage, str]] = {
    "weights cut short": (cut("model.safetensors", 1_000), "cannot be read"),
    "weights in a pickle": (write("model.safetensors", pickle.dumps(Bomb())), "model.safetensors"),
    "weights with a header of exabytes": (write("model.safetensors", (2**62).to_bytes(8, "little") + b"{}"), "cannot be read"),
    "weights in a pipe": (a_pipe("model.safetensors"), "is no regular file"),
    "a weight too few": (weights(lambda tensors: tensors.pop("norm.weight")), "norm.weight"),
    "a weight too many": (weights(lambda tensors: tensors.update(evil=torch.zeros(1))), "evil"),
    "a weight of another shape": (
        weights(lambda tensors: tensors.update({"events.items.weight": torch.zeros(61, 7)})), "events.items.weight"
    ),
    "a weight that is no number": (weights(lambda tensors: tensors["norm.weight"][-1:].fill_(float("nan"))), "norm.weight"),
    "weights that give no scores": (
        weights(lambda tensors: tensors["memories.0.keys.log_temperature"].fill_(500.0)), "no item gets a score"
    ),
    "weights of 200 GB": (change("config.json", "model", "width", to=2**20), ""),
    "items cut short": (cut("items.csv", 40), "items"),
    "no items": (lambda folder: (folder / "items.csv").unlink(), "items.csv"),
}  # fmt: skip
HARMLESS: dict[str, Damage] = {
    "a torn log": lambda folder: os.truncate(folder / "metrics.jsonl", (folder / "metrics.jsonl").stat().st_size - 9),
    "a log of bytes": write("metrics.jsonl", bytes(range(256)) * 20),
    "a resume file that is none": write("resume.pt", pickle.dumps(Bomb())),
    "a snapshot that is none": write("epochs/0001.safetensors", b"x"),
    "ranks that are none": write("ranks.safetensors", b"x"),
}


@pytest.fixture
def runs(tiny_runs: Path, tmp_path: Path) -> Path:
    """Two good runs, and one to damage."""
    folder = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    shutil.copytree(folder / "tiny", folder / "odd")
    return folder


@pytest.mark.parametrize("kind", LISTED)
def test_a_run_that_cannot_be_listed(runs: Path, kind: str) -> None:
    damage, part = LISTED[kind]
    damage(runs / "odd")
    assert [run.name for run in list_runs(runs)] == ["tiny", "tiny-peer"]
    (fault,) = unreadable_runs(runs)
    assert fault.name == "odd"
    is_one_sentence(fault.reason, part)


@pytest.mark.parametrize("kind", OPENED)
def test_a_run_that_cannot_be_opened(runs: Path, kind: str) -> None:
    damage, part = OPENED[kind]
    damage(runs / "odd")
    run = Run(runs / "odd")
    with pytest.raises(InputError) as error:
        run.model(load(run.config.data))
    is_one_sentence(str(error.value), part)


@pytest.mark.parametrize("kind", HARMLESS)
def test_damage_beside_the_weights_leaves_a_run_that_opens(runs: Path, kind: str) -> None:
    HARMLESS[kind](runs / "odd")
    assert [run.name for run in list_runs(runs)] == ["odd", "tiny", "tiny-peer"]
    assert Run(runs / "odd").model() is not None and not Path(Bomb.place).exists()


@pytest.mark.parametrize("kind", ["settings cut short", "weights cut short", "weights in a pickle", "a torn log"])
def test_the_app_says_it_and_shows_another_run(runs: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    damage = HARMLESS.get(kind) or {**LISTED, **OPENED}[kind][0]
    damage(runs / "odd")
    monkeypatch.setattr(page_context, "RUNS", runs)
    app: AppTest = visits.visit("", {"run": "odd", "user": "3"})
    assert not app.exception and app.number_input(key="user").value == 3
    if kind in HARMLESS:
        assert not app.warning and app.selectbox(key="run").value == "odd"
        return
    (warning,) = app.warning
    is_one_sentence(warning.value, "odd")
    assert "Showing the run" in warning.value


# --- jobs --------------------------------------------------------------------------------------------------------------

TOY = recipes.toy().to_dict()
JOBS = {
    "a run somewhere else": ({"run": "local-../victim"}, "names no run"),
    "settings that cannot be": ({"run": "local-x", "config": {**TOY, "model": {**TOY["model"], "heads": 0}}}, "model.heads must"),
}


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_that_cannot_be_read(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """It can be discarded, and nothing outside of it goes with it; folders of an older form are left alone."""
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    root = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    (root / "victim").mkdir()
    (root / "jobs" / "20200101-000000-000000").mkdir(parents=True)
    jobs = Trainings(root)
    jobs.submit(recipes.toy(), "good")
    request, part = JOBS[kind]
    with open_table(jobs.folder, write=True) as table:
        table.execute("INSERT INTO jobs (kind, request, threads) VALUES ('train', ?, 1)", (json.dumps(request),))
    assert [job.run.name for job in jobs.list_jobs()] == ["local-good"]
    (fault,) = jobs.list_unreadable()
    is_one_sentence(fault.reason, part)
    jobs.discard(fault.path.name)
    assert (root / "victim").is_dir() and not jobs.list_unreadable() and len(jobs.list_jobs()) == 1


# --- uploads -----------------------------------------------------------------------------------------------------------

UPLOADS: dict[str, tuple[Damage, str]] = {
    "a card cut short": (cut("upload.json", 20), "is not valid JSON"),
    "a card of something else": (change("upload.json", "kind", to="other"), "neither of a file nor"),
    "a card of other data": (
        change("upload.json", "label", to="![x](http://127.0.0.1:9/y) · ffff"),
        "of other data than its name",
    ),
    "no file": (lambda folder: (folder / "data.csv").unlink(), "has no data.csv"),
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_an_upload_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    shelf = UploadStore(tmp_path / "uploads")
    for name, text in (("good.csv", ROWS), ("odd.csv", ROWS.replace("u1", "w1"))):
        sheet, mapping = open_upload(name, text.encode())
        shelf.store_upload(preprocess_upload(sheet.label, check_upload(sheet, mapping), 5), name)
    good, odd = sorted(shelf.list_stored(), key=lambda kept: kept.label)
    damage, part = UPLOADS[kind]
    damage(shelf.folder / odd.id)
    assert [kept.id for kept in shelf.list_stored()] == [good.id]
    (fault,) = shelf.list_unreadable()
    is_one_sentence(fault.reason, part)
    shelf.delete_data(fault.path.name)
    assert [path.name for path in shelf.folder.iterdir()] == [good.id]
