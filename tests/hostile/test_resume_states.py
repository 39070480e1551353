"""What an interrupted training left, altered: going on is refused in one sentence, and nothing of the run is lost by it."""

import copy
import io
import pickle
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import NO_BYTES, NO_FILE, SECRET, Bomb

from elastic_core import recipes
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.runs import RESUME, Run
from elastic_core.runs.training import train

WORLD = ("users=60", "items=60", "interests=4", "mean_length=20", "max_length=40")
MODEL = ("length=8", "width=8", "side=4", "k=2")
SETTINGS = ("train.epochs=3", "train.ema_decay=0.9", *(f"data.planted.{x}" for x in WORLD), *(f"model.{x}" for x in MODEL))
CONFIG = recipes.toy().override(*SETTINGS)
WHOLE: tuple[Any, ...] = (None, -1, 10**9, 1.0, True, "1", [1], float("nan"), torch.tensor(1))
State = dict[str, Any]


@pytest.fixture(scope="module")
def interrupted(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that died in its third epoch."""

    def breaks(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    folder = tmp_path_factory.mktemp("resume") / "run"
    with pytest.raises(KeyboardInterrupt):
        train(CONFIG, small_world, folder, on_event=breaks)
    return folder


def _set(*path: Any, to: Any) -> Callable[[State], Any]:
    def alter(state: State) -> None:
        holder: Any = state
        for part in path[:-1]:
            holder = holder[part]
        if to is ...:
            del holder[path[-1]]
        else:
            holder[path[-1]] = to(holder[path[-1]]) if callable(to) else to

    return alter


def _states() -> Iterator[tuple[str, Callable[[State], Any]]]:
    for name in ("epoch", "step", "best_epoch"):
        for value in WHOLE if name == "epoch" else (-1, 1.0, True, "1"):
            yield f"{name} is {value!r}", _set(name, to=value)
    for name in ("seconds", "best"):
        for value in (None, "1", float("nan"), float("inf"), True):
            yield f"{name} is {value!r}", _set(name, to=value)
    for name in ("epoch", "seconds", "best", "model", "optimizer", "average"):
        yield f"no {name}", _set(name, to=...)
    for part, key in (("model", "norm.weight"), ("average", "module.norm.weight")):
        yield f"{part}: a list", _set(part, to=[])
        yield f"{part}: one weight less", _set(part, key, to=...)
        yield f"{part}: one weight more", _set(part, "evil", to=torch.zeros(1))
        yield f"{part}: another shape", _set(part, key, to=torch.zeros(9))
        yield f"{part}: not a number", _set(part, key, to=lambda old: old * float("nan"))
    for what, weight in (
        ("a text", "x"), ("whole numbers", torch.zeros(8, dtype=torch.int64)), ("infinite", lambda old: old + float("inf")),
        ("a billion of one number", torch.zeros(1).expand(10**9)), ("no values at all", torch.empty(8, device="meta")),
        ("sparse", torch.zeros(8).to_sparse()),
    ):  # fmt: skip
        yield f"model: {what}", _set("model", "norm.weight", to=weight)
    yield "optimizer: a list", _set("optimizer", to=[1])
    yield "optimizer: no state", _set("optimizer", "state", to=...)
    yield "optimizer: no groups", _set("optimizer", "param_groups", to=[])
    yield "optimizer: a group of text", _set("optimizer", "param_groups", to="x")
    yield "optimizer: another rate", _set("optimizer", "param_groups", 0, "lr", to=1e9)
    yield "optimizer: a rate of text", _set("optimizer", "param_groups", 0, "lr", to="fast")
    yield "optimizer: no betas", _set("optimizer", "param_groups", 0, "betas", to=...)
    yield "optimizer: other parameters", _set("optimizer", "param_groups", 0, "params", to=[0])
    yield "optimizer: a parameter too many", _set("optimizer", "state", 999, to=None)
    yield "optimizer: a state of text", _set("optimizer", "state", 1, to="x")
    yield "optimizer: no moment", _set("optimizer", "state", 1, "exp_avg", to=...)
    yield "optimizer: a moment of another shape", _set("optimizer", "state", 1, "exp_avg", to=torch.zeros(3))
    yield "optimizer: a moment that is none", _set("optimizer", "state", 1, "exp_avg_sq", to=lambda old: old * float("nan"))
    yield "optimizer: a moment of text", _set("optimizer", "state", 1, "exp_avg", to="x")
    yield "optimizer: steps of text", _set("optimizer", "state", 1, "step", to="x")
    yield "optimizer: infinite steps", _set("optimizer", "state", 1, "step", to=torch.tensor(float("inf")))


STATES = dict(_states())


def refused(run: Path, world: Dataset, path: Path) -> None:
    """Going on is refused, everything else stays, and what the sentence advises works."""
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file() and file.name not in (RESUME, ".lock")}
    with pytest.raises(InputError, match=r"resume\.pt") as error:
        train(CONFIG, world, path)
    assert len(str(error.value)) < 400 and "\n" not in str(error.value) and SECRET not in str(error.value)
    after = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file() and file.name not in (RESUME, ".lock")}
    assert before == after and not Path(Bomb.place).exists()


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_is_not_of_this_training(interrupted: Path, small_world: Dataset, tmp_path: Path, name: str) -> None:
    path = Path(shutil.copytree(interrupted, tmp_path / "run"))
    state = torch.load(path / RESUME, weights_only=True)
    STATES[name](state)
    torch.save(state, path / RESUME)
    refused(interrupted, small_world, path)


@pytest.mark.parametrize(
    "what", [*NO_FILE, *NO_BYTES, "cut", "a bomb", "a list", "a packed bomb", "a member missing", "an old format"]
)
def test_a_file_that_holds_no_state(interrupted: Path, small_world: Dataset, tmp_path: Path, what: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text(SECRET)
    path = Path(shutil.copytree(interrupted, tmp_path / "run"))
    place, whole = path / RESUME, (path / RESUME).read_bytes()
    place.unlink()
    if what in NO_FILE:
        NO_FILE[what][0](place)
    elif what == "cut":
        place.write_bytes(whole[:-1])
    elif what in NO_BYTES:
        data = NO_BYTES[what][0]
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
    elif what == "a bomb":
        torch.save({"model": Bomb()}, place)
    elif what == "a list":
        torch.save([1, 2], place)
    elif what == "an old format":
        torch.save({"model": {}}, place, _use_new_zipfile_serialization=False)
    else:
        _repack(whole, place, zipfile.ZIP_DEFLATED if "packed" in what else zipfile.ZIP_STORED, skip=what == "a member missing")
    refused(interrupted, small_world, path)


def _repack(whole: bytes, place: Path, how: int, skip: bool) -> None:
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(place, "w", how) as new:
        for name in old.namelist():
            if not (skip and name.endswith("data/3")):
                new.writestr(name, bytes(2**26) if how == zipfile.ZIP_DEFLATED and name.endswith("data/0") else old.read(name))


def test_what_is_whole_goes_on(interrupted: Path, small_world: Dataset, tmp_path: Path) -> None:
    path = Path(shutil.copytree(interrupted, tmp_path / "run"))
    state = torch.load(path / RESUME, weights_only=True)
    torch.save(copy.deepcopy(state), path / RESUME)
    whole = train(CONFIG, small_world, tmp_path / "whole")
    assert train(CONFIG, small_world, path).finished
    assert [row["loss"] for row in Run(path).events("epoch")] == [row["loss"] for row in whole.events("epoch")]


def test_the_corpus_is_large() -> None:
    assert len(STATES) >= 60 and pickle.dumps(Bomb())
