"""Run folders of an older version: opened after `convert`, and until then named in one sentence that says so."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elastic_core import recipes
from elastic_core.commands import main
from elastic_core.convert import RENAMED_SETTINGS, convert_run, convert_settings
from elastic_core.core.config import ModelConfig
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.run_config import FORMAT, RunConfig
from elastic_core.runs import CONFIG, Run, list_runs, unreadable_runs
from elastic_core.runs.ranks import evaluate


def aged(folder: Path, **old: dict[str, Any]) -> Run:
    """Writes the settings of a run as an older version did: without a number, and with settings that are none any more."""
    plain = json.loads((folder / CONFIG).read_text())
    del plain["format"]
    for part, settings in old.items():
        plain[part] |= settings
    (folder / CONFIG).write_text(json.dumps(plain, indent=1))
    return Run(folder)


@pytest.fixture
def folder(tiny_runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_runs / "tiny", tmp_path / "tiny"))


GONE = {"personal": "history"}  # of a setting that another model had: to this one it is as unknown as one that went


def test_a_run_says_its_format(folder: Path) -> None:
    assert json.loads((folder / CONFIG).read_text())["format"] == FORMAT
    assert not convert_run(folder)


def test_an_old_run_is_named_in_one_sentence_and_opens_once_it_is_converted(
    folder: Path, tiny_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = aged(folder, model=GONE)
    (fault,) = unreadable_runs(folder.parent)
    assert "unknown key" in fault.reason and "elastic convert RUN" in fault.reason
    assert main(["convert", str(folder)]) == 0 and capsys.readouterr().out == f"{folder}: converted\n"
    assert main(["convert", str(folder)]) == 0 and capsys.readouterr().out == f"{folder}: up to date\n"
    (run,) = list_runs(folder.parent)
    assert run.config == Run(tiny_runs / "tiny").config
    assert run.model(load(run.config.data)).eval() and run.report().metrics == Run(tiny_runs / "tiny").report().metrics


def test_an_old_run_that_means_the_same_today_opens_as_it_is(folder: Path, tiny_runs: Path) -> None:
    run = aged(folder)
    assert run.config == Run(tiny_runs / "tiny").config and not unreadable_runs(folder.parent)
    assert convert_run(folder) and json.loads((folder / CONFIG).read_text())["format"] == FORMAT


@pytest.mark.parametrize("place", RENAMED_SETTINGS)
def test_a_setting_keeps_its_value_under_its_new_name(place: str) -> None:
    """Of every model that has it: what is written with the older name means what is written with the new one."""
    part, old = place.split(".")
    new, tried = RENAMED_SETTINGS[place], 0
    for name in ModelConfig.known:
        plain = recipes.toy(name).to_dict()
        if new not in plain[part]:
            continue
        values = {"time_bias": "previous", "valid_protocol": "full-seen", "repeat_bias": True}
        plain[part][new] = values.get(new, 7)
        older = json.loads(json.dumps(plain)) | {"format": 2}
        older[part] = {(old if key == new else key): value for key, value in older[part].items()}
        with pytest.raises(InputError, match=rf"{place}.*elastic convert RUN"):
            RunConfig.from_dict(older)
        assert convert_settings({key: value for key, value in older.items() if key != "format"}).to_dict() == plain
        tried += 1
    assert tried


def test_a_training_that_an_older_version_began_can_go_on(folder: Path) -> None:
    """The state that continuing needs holds the tensors of the model and of its average under their older names, too."""
    names = {
        "met": "repeat_weight",
        "memories.0.usual": "memories.0.mean_vote_share",
        "standing.norm.bias": "item_distribution.norm.bias",
    }
    run = aged(folder)
    run.save_resume(
        {
            "epoch": 3,
            "model": {old: torch.zeros(1) for old in names},
            "average": {"n_averaged": torch.ones(1), **{f"module.{old}": torch.zeros(1) for old in names}},
        }
    )
    assert convert_run(folder)
    state = run.load_resume()
    assert state is not None and state["epoch"] == 3 and list(state["model"]) == list(names.values())
    assert list(state["average"]) == ["n_averaged", *(f"module.{new}" for new in names.values())]


def test_a_run_that_this_version_cannot_have_stays_as_it_is(folder: Path) -> None:
    aged(folder, model={"personal": "person"})
    before = (folder / CONFIG).read_bytes()
    with pytest.raises(InputError, match=r"no setting model\.personal='person'; open the run with the version that made it"):
        convert_run(folder)
    (folder / CONFIG).write_text(json.dumps(json.loads(before) | {"format": FORMAT + 1}))
    with pytest.raises(InputError, match=f"has the format {FORMAT + 1}"):
        convert_run(folder)


@pytest.mark.parametrize("name", ["elastic", "elastic-slots"])
def test_a_run_that_the_first_format_wrote_opens_and_ranks_as_it_did(name: str, tmp_path: Path) -> None:
    """These folders were trained with the commit 12c22d20, and are never written anew."""
    run = Run(Path(shutil.copytree(Path(__file__).parent / "runs_of_format_1" / name, tmp_path / name)))
    assert convert_run(run.path)
    dataset, stored = load(run.config.data), run.report()
    assert run.finished and stored.data_hash == dataset.hash and len(run.events("epoch")) == 2
    again = evaluate(run.model(dataset), dataset)
    ranked = again.ranks["full"].above < dataset.catalog.n_items  # a seen target is missed now under full
    for protocol, expected in stored.ranks.items():
        users = ranked if protocol == "full" else slice(None)
        assert np.array_equal(again.ranks[protocol].above[users], expected.above[users])
        assert np.array_equal(again.ranks[protocol].tied[users], expected.tied[users])
