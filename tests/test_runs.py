"""Run folders that somebody else made: missing, truncated and hostile files are one clear sentence, never code that runs."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from elastic_core.core.config import TrainConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.objective import WindowConfig
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig
from elastic_core.runs import CONFIG, EVENTS, WEIGHTS, Run, list_runs, open_run, run_folder, unreadable_runs
from elastic_core.runs.training import train

PLANTED = PlantedConfig(users=40, items=50, interests=4, mean_length=14, max_length=24)
TOY = RunConfig(
    data=DataConfig(source="planted", planted=PLANTED),
    model=ElasticConfig(length=8, width=8, layers=1, n_subkeys=4, k=2),
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


def use(folder: Path) -> torch.nn.Module:
    """What evaluate and the app do with a run."""
    run = open_run(folder)
    model = run.model(load(run.config.data))
    run.events()
    return model


def test_a_good_run_opens(folder: Path) -> None:
    assert not use(folder).training
    assert [run.name for run in list_runs(folder.parent)] == ["run"]


def test_a_run_without_weights_is_not_listed(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    assert list_runs(folder.parent) == [] and unreadable_runs(folder.parent) == []
    with pytest.raises(InputError, match=r"run has no model\.safetensors"):
        Run(folder).model()


def test_runs_that_came_along_are_listed_beside_ones_own_and_keep_their_names(folder: Path) -> None:
    root = folder.parent
    for name in ("demo/shipped", "shipped"):
        shutil.copytree(folder, root / name)
    assert [run.path for run in list_runs(root)] == [folder, root / "demo" / "shipped"]
    (fault,) = unreadable_runs(root)
    assert fault.path == root / "shipped" and fault.reason == "a run that came along has the same name"
    assert run_folder(root, "shipped") == root / "demo" / "shipped" and run_folder(root, "run") == folder
    assert Run(root / "demo" / "shipped").place.endswith("/demo/shipped")


@pytest.mark.parametrize("line", ["[]", "7", "null", '"text"', "\x00"])
def test_strange_lines_in_the_log_are_skipped(folder: Path, line: str) -> None:
    whole = open_run(folder).events()
    with (folder / EVENTS).open("a") as file:
        file.write(line + "\n")
    assert open_run(folder).events() == whole


def test_other_data_is_refused(folder: Path) -> None:
    plain = json.loads((folder / CONFIG).read_text())
    plain["data"]["planted"]["items"] = 60
    (folder / CONFIG).write_text(json.dumps(plain))
    with pytest.raises(InputError, match="other items"):
        use(folder)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"config\.json"):
            open_run(path)
    assert list_runs(tmp_path) == []
