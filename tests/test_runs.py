"""Run folders that somebody else made: missing, truncated and hostile files are one clear sentence, never code that runs."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from elastic_core.core.config import DataConfig, PlantedConfig, RunConfig, TrainConfig
from elastic_core.core.objective import WindowConfig
from elastic_core.core.settings import ElasticConfig
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.runs import CONFIG, EVENTS, ITEMS, RESUME, WEIGHTS, Run, list_runs, open_run, ranks, readable_runs
from elastic_core.runs.training import train

PLANTED = PlantedConfig(users=40, items=50, interests=4, mean_length=14, max_length=24)
TOY = RunConfig(
    data=DataConfig(source="planted", planted=PLANTED),
    model=ElasticConfig(length=8, width=8, layers=1, side=4, k=2),
    objective=WindowConfig(span=4),
    train=TrainConfig(epochs=1),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "good"
    train(TOY, load(TOY.data), folder)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "run"))


class Bomb:
    """What a pickle can do to whoever loads it."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(Path(os.environ["BOMB"])),)


def use(folder: Path) -> torch.nn.Module:
    """What evaluate and the app do with a run."""
    run = open_run(folder)
    model = run.model(load(run.config.data))
    run.events()
    return model


def cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def test_a_good_run_opens(folder: Path) -> None:
    assert not use(folder).training
    assert [run.name for run in list_runs(folder.parent)] == ["run"]


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, ITEMS])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        use(folder)


def test_a_run_without_weights_is_compared_and_not_opened(folder: Path) -> None:
    twin = Run(Path(shutil.copytree(folder, folder.parent / "twin")))
    (twin.path / WEIGHTS).unlink()
    assert [run.name for run in list_runs(folder.parent)] == ["run"]
    assert [run.name for run in readable_runs(folder.parent)] == ["run", "twin"]
    assert {name: found.above.tolist() for name, found in twin.report().ranks.items()} == {
        name: found.above.tolist() for name, found in Run(folder).report().ranks.items()
    }
    with pytest.raises(
        InputError, match=r"has no model\.safetensors and is here for its ranks alone; python -m elastic_core train"
    ):
        twin.model()
    (twin.path / ranks.FILE).unlink()  # now nothing of it is left to compare
    assert [run.name for run in readable_runs(folder.parent)] == ["run"]


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, ITEMS])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.98])
def test_a_truncated_file_is_named(folder: Path, name: str, share: float) -> None:
    cut(folder / name, share)
    with pytest.raises(InputError, match=r"config\.json|model\.safetensors|items\.csv|other items"):
        use(folder)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, ITEMS])
def test_garbage_is_named(folder: Path, name: str) -> None:
    (folder / name).write_bytes(bytes(range(256)) * 8)
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        use(folder)


def test_a_torn_or_missing_log_only_loses_its_torn_lines(folder: Path) -> None:
    whole = len(open_run(folder).events())
    with (folder / EVENTS).open("a") as file:
        file.write('{"event": "epo')
    assert len(open_run(folder).events()) == whole
    (folder / EVENTS).unlink()
    assert open_run(folder).events() == [] and not open_run(folder).finished
    use(folder)


@pytest.mark.parametrize("line", ["[]", "7", "null", '"text"', '{"event": "epoch"}', "\x00"])
def test_strange_lines_in_the_log_are_skipped(folder: Path, line: str) -> None:
    whole = open_run(folder).events()
    with (folder / EVENTS).open("a") as file:
        file.write(line + "\n")
    assert open_run(folder).events() == whole


@pytest.mark.parametrize(
    ("change", "naming"),
    [
        ({"model": {"name": "elastic", "widht": 8}}, "model.widht"),
        ({"model": {"name": "oracle"}}, "oracle"),
        ({"model": {"name": "elastic", "width": "wide"}}, "model.width"),
        ({"model": {"name": "elastic", "side": -1}}, "side"),
        ({"train": {"batch": 0}}, "train.batch"),
        ({"data": 3}, "data"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_wrong_configuration_names_the_key(folder: Path, change: dict[str, object], naming: str) -> None:
    plain = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**plain, **change}))
    with pytest.raises(InputError, match=naming):
        use(folder)


def test_weights_of_another_size_are_refused(folder: Path) -> None:
    plain = json.loads((folder / CONFIG).read_text())
    plain["model"]["width"] = 16
    (folder / CONFIG).write_text(json.dumps(plain))
    with pytest.raises(InputError, match="does not fit"):
        use(folder)


def test_other_data_is_refused(folder: Path) -> None:
    plain = json.loads((folder / CONFIG).read_text())
    plain["data"]["planted"]["items"] = 60
    (folder / CONFIG).write_text(json.dumps(plain))
    with pytest.raises(InputError, match="other items"):
        use(folder)


@pytest.mark.parametrize("name", [WEIGHTS, RESUME])
def test_loading_never_unpickles(folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOMB", str(tmp_path / "exploded"))
    (folder / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        Run(folder).model() if name == WEIGHTS else Run(folder).load_resume()
    torch.save({"model": Bomb()}, folder / RESUME)
    with pytest.raises(InputError, match="resume"):
        Run(folder).load_resume()
    assert not (tmp_path / "exploded").exists()


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"config\.json"):
            open_run(path)
    assert list_runs(tmp_path) == []
