"""A training that has ended goes on with a larger budget as if it had had that from the start; and a new one may begin with the
weights of another."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_trainer import left_by_kills, numbers, tiny

from elastic_core.commands import main
from elastic_core.core.batches import Batch
from elastic_core.core.train import Loop, out_of_minutes
from elastic_core.data import Catalog, Dataset, load
from elastic_core.errors import InputError
from elastic_core.runs import EVENTS, RESUME, WEIGHTS, WHOLE_EPOCHS, Run, ranks
from elastic_core.runs.initial_weights import initial_weights
from elastic_core.runs.training import train


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(tiny().data)


@pytest.fixture(scope="module")
def unbroken(world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Five epochs at once."""
    return train(tiny(epochs=5), world, tmp_path_factory.mktemp("unbroken") / "run")


def alike(found: Run, whole: Run) -> None:
    """Every number and every byte, but for what tells that the test was scored before."""
    rows, test, snapshots = numbers(found)
    assert (rows, {k: v for k, v in test.items() if k != "scored"}, snapshots) == numbers(whole)
    assert (found.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()
    assert found.report().user_values("full", "NDCG@10").tolist() == whole.report().user_values("full", "NDCG@10").tolist()
    assert not (found.path / WHOLE_EPOCHS).exists()


def test_more_epochs_are_those_of_an_unbroken_run(world: Dataset, unbroken: Run, tmp_path: Path) -> None:
    run = train(tiny(epochs=2), world, tmp_path / "run")
    first = run.last_event("test")
    for epochs, scored in ((4, 2), (5, 3)):
        run = train(tiny(epochs=epochs), world, tmp_path / "run")
        assert (run.last_event("test") or {})["scored"] == scored == 1 + len(run.events("reopened"))
    alike(run, unbroken)
    assert Run(run.path).config.train.epochs == 5
    assert (run.path / EVENTS).read_text().count('"test"') == 3 and run.events("reopened")[0]["epoch"] == 2
    assert first != run.last_event("test"), "else the test above would hold of anything"


@pytest.mark.parametrize(("cut_at", "score"), [(0, 0.9), (2, 0.9), (2, 0.0)])
def test_an_epoch_that_the_clock_cut_short_is_gone_through_again(
    world: Dataset, unbroken: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_at: int, score: float
) -> None:
    """Also where its weights were the best so far, and where it was the first."""
    valid = Loop._validate

    def late(loop: Loop, seconds: float) -> bool:
        loop.stopped = out_of_minutes(1) if loop.epoch == cut_at and loop.step % loop.learner.steps == 1 else ""
        return bool(loop.stopped)

    with monkeypatch.context() as patched:
        patched.setattr(Loop, "_out_of_time", late)
        patched.setattr(
            Loop, "_validate", lambda loop, m: {**valid(loop, m), "NDCG@10": score} if loop.stopped else valid(loop, m)
        )
        run = train(tiny(epochs=5, minutes=1), world, tmp_path / "run")
    assert "budget" in (run.last_event("end") or {})["reason"] and run.events("epoch")[-1]["epoch"] == cut_at + 1
    assert (run.path / WHOLE_EPOCHS).exists() == (cut_at > 0 and score > 0.5)
    alike(train(tiny(epochs=5), world, run.path), unbroken)
    assert Run(run.path).config.train.minutes == 0


def test_stopped_by_hand_the_same_command_goes_on(world: Dataset, unbroken: Run, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    train(tiny(epochs=5), world, tmp_path / "run", seen.append, stop=lambda: sum(e["event"] == "epoch" for e in seen) >= 2)
    assert seen[-1]["reason"] == "asked to stop"
    alike(train(tiny(epochs=5), world, tmp_path / "run"), unbroken)


def test_a_kill_before_every_write_of_going_on_changes_nothing(
    world: Dataset, unbroken: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tiny(epochs=3), world, tmp_path / "run")
    left = left_by_kills(monkeypatch, tiny(epochs=5), world, tmp_path / "run")
    for out in left:
        assert Run(out).model(world) is not None, "whenever it dies, the run can be opened"
        alike(train(tiny(epochs=5), world, out), unbroken)
    assert len(left) > 9  # reopened, config, two epochs with row, snapshot and resume file, ranks, test, end


def test_what_is_over_stays_as_it_is_and_what_cannot_go_on_is_said(world: Dataset, tmp_path: Path) -> None:
    run = train(tiny(epochs=3, patience=2, learning_rate=1e-9), world, tmp_path / "run")
    before = {file: file.read_bytes() for file in run.path.iterdir() if file.is_file()}
    said: list[dict[str, Any]] = []
    for settings in ({}, {"epochs": 9}, {"epochs": 2}, {"minutes": 1e-6}):  # out of patience, whatever else is asked for
        train(tiny(**{"epochs": 3, "patience": 2, "learning_rate": 1e-9, **settings}), world, run.path, said.append)
    assert [event["event"] for event in said] == ["over"] * 4
    with pytest.raises(InputError, match=r"other settings \(train\.seed is 0 there, 1 here\)"):
        train(tiny(epochs=9, patience=2, learning_rate=1e-9, seed=1), world, run.path)
    assert before == {file: file.read_bytes() for file in run.path.iterdir() if file.is_file()}
    (run.path / RESUME).unlink()
    with pytest.raises(InputError, match=r"no resume\.pt to go on from; train --from"):
        train(tiny(epochs=9, patience=9, learning_rate=1e-9), world, run.path)
    assert (run.path / ranks.FILE).exists() and Run(run.path).finished


def test_a_run_begins_with_the_weights_of_another(world: Dataset, tmp_path: Path) -> None:
    config = tiny(epochs=1)
    first = train(config, world, tmp_path / "first")
    still = config.override("train.learning_rate=1e-9", "model.dropout=0.5")
    run = train(still, world, tmp_path / "second", begin=first)
    assert (run.last_event("start") or {})["from"] == "first" and run.finished
    for name, weights in run.model(world).named_parameters():
        torch.testing.assert_close(weights, dict(first.model(world).named_parameters())[name], atol=1e-6, rtol=0)
    assert load_file(first.path / WEIGHTS).keys() == load_file(run.path / WEIGHTS).keys()
    longer = train(still.override("train.epochs=2"), world, run.path, begin=first)
    assert len(longer.events("epoch")) == 2
    with pytest.raises(InputError, match="the run it began with is 'first' there, 'second' here"):
        train(still, world, run.path, begin=run)


@pytest.mark.parametrize("settings", [(), ("model.output=own",), ("model.name=gru4rec",), ("model.length=items",)], ids=str)
def test_new_items_start_and_known_ones_stay(world: Dataset, tmp_path: Path, settings: tuple[str, ...]) -> None:
    """Of items that were there before every score stays as it was, wherever their numbers went, and though another table (the
    positions of so many events) has as many rows as there are items."""
    ids, n = world.catalog.ids[1:].astype(str).tolist(), world.catalog.n_items
    first = train(tiny(epochs=1).override(*(word.replace("=items", f"={n + 1}") for word in settings)), world, tmp_path / "first")
    for more in (7, 0):
        order = np.random.default_rng(0).permutation(n + more)
        catalog = Catalog(
            np.array(["", *np.array([*ids, *(f"new {i}" for i in range(more))], dtype=object)[order]], dtype=object)
        )
        now = initial_weights(first, first.config.model, replace(world, catalog=catalog)).eval()
        there = torch.tensor([catalog.item_number(raw) for raw in ids])
        items = torch.randint(1, n + 1, (6, 8), generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            before, after = first.model(world).score(Batch(items, items)), now.score(Batch(there[items - 1], there[items - 1]))
        torch.testing.assert_close(after[:, there], before[:, 1:], atol=1e-5, rtol=0)
        assert after[:, 1:].isfinite().all()
        tables = [model.state_dict()["events.items.weight"] for model in (first.model(world), now)]
        for i in range(more):
            torch.testing.assert_close(tables[1][catalog.item_number(f"new {i}")], tables[0][1:].mean(0))


def test_weights_that_do_not_fit_are_refused_in_a_sentence(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = train(tiny(epochs=1), world, tmp_path / "first")
    counted = train(tiny().override("model.name=popularity"), world, tmp_path / "counted")
    renamed = np.array(["", *(f"x{i}" for i in range(1, world.catalog.n_items + 1))], dtype=object)
    others = replace(world, catalog=replace(world.catalog, ids=renamed))
    for begin, config, data, said in (
        (first, tiny(), others, "none of these items is known"),
        (first, tiny().override("model.width=16"), world, "belongs"),
        (first, tiny().override("model.name=sasrec"), world, "first is elastic, whose weights do not fit sasrec"),
        (counted, tiny(), world, "needs no training"),
    ):
        with pytest.raises(InputError, match=said):
            train(config, data, tmp_path / "new", begin=begin)
        assert not (tmp_path / "new").exists()
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--from", "first", "--set", "train.learning_rate=1e-4"]) == 0
    assert capsys.readouterr().out == "checkpoints/local-first-on\n"
    assert main(["train", "--set", "train.epochs=1"]) == 2 and "say what to train" in capsys.readouterr().err
