"""The trainer: same seed, same numbers; killed at any moment, it goes on as if nothing had happened."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from elastic_core import files
from elastic_core.core.batches import reading_batch
from elastic_core.core.config import ObjectiveConfig, TrainConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.objective import AllConfig, WindowConfig
from elastic_core.core.prefetch import draw_in_advance
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.models import as_retrieving_model
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig
from elastic_core.runs import EVENTS, RESUME, WEIGHTS, Run, training
from elastic_core.runs.training import train

PLANTED = PlantedConfig(users=40, items=50, interests=4, mean_length=14, max_length=24)
MODEL = ElasticConfig(length=8, width=8, layers=1, dropout=0.2, n_subkeys=4, k=2, balance_weight=0.1)

WINDOW = WindowConfig(span=4)


def tiny(objective: ObjectiveConfig = WINDOW, **settings: Any) -> RunConfig:
    given: dict[str, Any] = {"batch": 32, "epochs": 3, "patience": 99, "snapshots": True}
    train = TrainConfig(**{**given, **settings})
    return RunConfig(data=DataConfig(source="planted", planted=PLANTED), model=MODEL, objective=objective, train=train)


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(tiny().data)


@pytest.fixture(scope="module")
def whole(world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nothing disturbed; shared, so never changed."""
    return train(tiny(), world, tmp_path_factory.mktemp("whole") / "run")


def numbers(run: Run) -> Any:
    """All that a run measured and kept, without the clock."""
    epochs = [{k: v for k, v in row.items() if k != "seconds"} for row in run.events("epoch")]
    test = {k: v for k, v in (run.last_event("test") or {}).items() if k != "seconds"}
    return epochs, test, [(epoch, file.read_bytes()) for epoch, file in run.snapshot_files()]


# --- the same numbers -------------------------------------------------------------------------------------------------


def test_same_seed_same_numbers_other_seed_others(world: Dataset, whole: Run, tmp_path: Path) -> None:
    again, other = train(tiny(), world, tmp_path / "again"), train(tiny(seed=1), world, tmp_path / "other")
    assert numbers(whole) == numbers(again) != numbers(other)
    assert (whole.path / WEIGHTS).read_bytes() == (again.path / WEIGHTS).read_bytes()


def test_a_finished_run_is_returned_as_it_is(world: Dataset, tmp_path: Path) -> None:
    run = train(tiny(), world, tmp_path / "a")
    before = (run.path / EVENTS).read_bytes()
    assert [row["event"] for row in run.events()] == ["start", *["epoch"] * 3, "test", "end"]
    (run.path / RESUME).write_bytes(b"damaged, and nobody asks for it")
    train(tiny(), world, tmp_path / "a")
    assert (run.path / EVENTS).read_bytes() == before


def test_every_epoch_s_memory_is_kept_and_changes_nothing_else(world: Dataset, whole: Run, tmp_path: Path) -> None:
    kept, bare = whole, train(tiny(snapshots=False), world, tmp_path / "bare")
    assert numbers(kept)[:2] == numbers(bare)[:2] and not bare.snapshot_files()
    assert [epoch for epoch, _ in kept.snapshot_files()] == [1, 2, 3]
    for row, (_, file) in zip(kept.events("epoch"), kept.snapshot_files(), strict=True):
        memory = load_file(file)
        load = memory["load"].numpy()
        assert load.sum() == PLANTED.users * MODEL.k and round(float((load > 0).mean()), 4) == row["used"]
        assert memory["values"].shape == (MODEL.n_subkeys**2, MODEL.width)
    best = load_file(kept.snapshot_files()[(kept.last_event("end") or {})["best_epoch"] - 1][1])["values"]
    assert torch.equal(best, kept.model().expert_values().detach().half())


def test_the_kept_weights_are_judged_with_statistics_of_their_own(world: Dataset, tmp_path: Path) -> None:
    """Averaged weights used to go with the live model's whitening: their queries had variance 0.73 to 0.80 instead of 1."""
    model = as_retrieving_model(train(tiny(ema_decay=0.9), world, tmp_path / "a").model())
    users = np.arange(world.histories.n_users)
    query = model.retrieve(reading_batch(world, users, world.split_ends("train"), model.length)).query.detach()
    assert query.mean(0).abs().max() < 1e-3
    principal = torch.linalg.eigvalsh(query.T @ query / len(query))
    assert principal.max() < 1.001 and (principal > 0.999).sum() >= len(principal) - 1, principal  # less its floor


def test_precision_does_what_the_run_says_of_it(world: Dataset, whole: Run, tmp_path: Path) -> None:
    """On a CPU too: a run that says bfloat16 was trained in it, and learned about the same."""
    assert whole.config.train.precision == "float32"
    rough = train(tiny(precision="bfloat16"), world, tmp_path / "rough")
    losses = [[row["loss"] for row in run.events("epoch")] for run in (whole, rough)]
    assert losses[0] != losses[1] and losses[0] == pytest.approx(losses[1], rel=0.02)


def test_epochs_say_how_much_was_read_and_learned_from(world: Dataset, tmp_path: Path) -> None:
    """So that budgets can be compared: every target once an epoch, and no more read for it than borders ask for."""
    rows = {}
    for name, objective in (("window", WINDOW), ("all", AllConfig())):
        config = tiny(objective).override("model.memory=none", "model.length=24")
        rows[name] = train(config, world, tmp_path / name).events("epoch")
    targets = int((world.split_ends("train") - world.histories.offsets[:-1] - 1).sum())
    assert {row["targets"] for row in rows["window"] + rows["all"]} == {targets}
    assert {row["events"] for row in rows["all"]} == {targets}, "one row a history: nothing is read twice"
    assert all(targets < row["events"] < 4 * targets for row in rows["window"])


# --- kill -9 ----------------------------------------------------------------------------------------------------------

LONG: dict[str, Any] = {"epochs": 14, "batch": 16}


def train_until_killed(out: str, seconds: float) -> None:
    """Runs in a child process. The system ends it, wherever it is, after so many seconds of processor time, however busy the
    machine is: as `kill -9` would, as nothing here handles this signal."""
    torch.set_num_threads(1)
    config = tiny(**LONG)
    world, timer = load(config.data), [seconds]
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    train(config, world, Path(out), lambda _: signal.setitimer(signal.ITIMER_PROF, timer.pop()) if timer else None)


def left_by_kills(monkeypatch: pytest.MonkeyPatch, config: RunConfig, world: Dataset, out: Path) -> list[Path]:
    """Trains; the folder as a kill before each write of a file or a row would leave it, and last as it is in the end."""
    left: list[Path] = []

    def seen(write: Any) -> Any:
        def inner(*args: Any) -> None:
            left.append(out.with_name(f"{out.name}-{len(left)}"))
            if out.exists():
                shutil.copytree(out, left[-1])
            write(*args)

        return inner

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "replace", seen(os.replace))
        patched.setattr(Run, "append_event", seen(Run.append_event))
        patched.setattr(files.os, "getpid", lambda: 2)  # who goes on is another process
        train(config, world, out)
    return [*left, out]


def test_ten_random_kills_change_nothing(children: Any, world: Dataset, tmp_path: Path) -> None:
    began = time.process_time()
    whole = train(tiny(**LONG), world, tmp_path / "whole")
    epoch = (time.process_time() - began) / LONG["epochs"]
    rng, killed, seen = random.Random(7), Run(tmp_path / "killed"), []
    for _ in range(10):
        child = children.Process(target=train_until_killed, args=(str(killed.path), rng.uniform(0.2, 3) * epoch))
        child.start()
        child.join(60)
        assert child.exitcode in (-signal.SIGPROF, 0), "the child failed by itself"
        seen.append(len(killed.events("epoch")))
    assert len(set(seen)) >= 4, seen  # the kills were spread over its life
    train(tiny(**LONG), world, killed.path)
    assert killed.finished
    assert numbers(whole) == numbers(killed)
    assert (whole.path / WEIGHTS).read_bytes() == (killed.path / WEIGHTS).read_bytes()


def test_a_kill_before_every_single_write_changes_nothing(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the test split is scored once: no kill after the ranks are kept leads to a second look."""
    left = left_by_kills(monkeypatch, tiny(epochs=2), world, tmp_path / "run")
    expected = numbers(Run(left[-1]))
    for out in left:
        with monkeypatch.context() as patched:
            if Run(out).has_report:  # scored: whatever is missing, the test is not scored again
                patched.setattr(training, "evaluate", None)
            assert numbers(train(tiny(epochs=2), world, out)) == expected, out
        assert not [file.name for file in out.iterdir() if file.name.startswith((".resume", ".ranks", ".model", ".config"))]
    assert len(left) > 10  # config, items, start, weights, two epoch rows and resume files, test, end


# --- damaged folders --------------------------------------------------------------------------------------------------


def interrupted(world: Dataset, out: Path) -> Run:
    """A run that broke off in its third epoch."""

    def breaks(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny(), world, out, on_event=breaks)
    return Run(out)


def test_a_torn_last_line_is_skipped_and_mended(world: Dataset, whole: Run, tmp_path: Path) -> None:
    run = interrupted(world, tmp_path / "torn")
    with (run.path / EVENTS).open("a") as file:
        file.write('{"event": "epo')
    assert len(run.events("epoch")) == 3
    assert numbers(train(tiny(), world, run.path)) == numbers(whole)


def test_a_restart_does_not_count_the_epochs_of_an_attempt_that_died(world: Dataset, whole: Run, tmp_path: Path) -> None:
    """Killed before it could be resumed (or its resume file deleted), a run begins again, and so does what is read of it."""
    run = interrupted(world, tmp_path / "a")
    (run.path / RESUME).unlink()
    (run.path / f".{RESUME}.12345").write_bytes(b"a write that a kill cut short")
    assert numbers(train(tiny(), world, run.path)) == numbers(whole)
    assert [row["event"] for row in run.events()] == ["start", *["epoch"] * 3, "test", "end"]
    assert not list(run.path.glob(f".{RESUME}*"))


class Forged:
    """Leaves a folder behind if anything unpickles it."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


@pytest.mark.parametrize("kind", ["cut short", "a pickle", "a list", "no progress", "another shape", "another optimiser"])
def test_a_damaged_resume_file_is_refused_in_one_sentence_and_nothing_is_lost(world: Dataset, tmp_path: Path, kind: str) -> None:
    path = interrupted(world, tmp_path / "a").path / RESUME
    whole = path.read_bytes()
    state = torch.load(path, weights_only=True)
    if kind == "cut short":
        path.write_bytes(whole[:-1000])
    else:
        weights = {**state["model"], "norm.weight": torch.zeros(9)}
        contents: dict[str, Any] = {
            "a pickle": {"model": Forged(tmp_path / "unpickled")},
            "a list": [1, 2],
            "no progress": {name: value for name, value in state.items() if name != "epoch"},
            "another shape": {**state, "model": weights},
            "another optimiser": {**state, "optimizer": {**state["optimizer"], "param_groups": []}},
        }
        torch.save(contents[kind], path)
    before = {file: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    with pytest.raises(InputError, match=r"resume\.pt is damaged; delete it to start this run again") as error:
        train(tiny(), world, path.parent)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400
    assert before == {file: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    assert not (tmp_path / "unpickled").exists()
    path.write_bytes(whole)
    assert train(tiny(), world, path.parent).finished


def test_a_second_training_into_the_same_folder_is_refused(world: Dataset, tmp_path: Path) -> None:
    with Run(tmp_path / "a").lock(), pytest.raises(InputError, match="another process is training"):
        train(tiny(), world, tmp_path / "a")


def locked_by_two(path: Path, forked: Any) -> None:
    """Runs in a child process."""
    with Run(path).lock():
        for file in range(3, 100):
            with suppress(OSError):
                os.set_inheritable(file, True)
        holds = "while [ ! -e go ]; do sleep 0.02; done"
        subprocess.Popen(["sh", "-c", holds], close_fds=False, cwd=path.parent)  # being started, it has its parent's files
        forked.set()
        time.sleep(60)


def test_a_killed_process_may_leave_its_lock_a_moment_later(tmp_path: Path, children: Any) -> None:
    forked = children.Event()
    child = children.Process(target=locked_by_two, args=(tmp_path / "a", forked))
    child.start()
    assert forked.wait(60)
    child.kill()
    child.join()
    began = time.monotonic()
    threading.Timer(0.3, (tmp_path / "go").touch).start()
    with Run(tmp_path / "a").lock():
        assert time.monotonic() - began > 0.1, "it was still held"


def test_changed_data_and_changed_settings_are_refused(world: Dataset, tmp_path: Path) -> None:
    run = interrupted(world, tmp_path / "a")
    with pytest.raises(InputError, match="other settings"):
        train(tiny(seed=5), world, run.path)
    other = load(DataConfig(source="planted", planted=replace(PLANTED, users=41)))
    with pytest.raises(InputError, match="has changed since"):
        train(tiny(), other, run.path)


# --- ends -------------------------------------------------------------------------------------------------------------


def test_stop_keeps_the_best_and_tests_it(world: Dataset, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    run = train(tiny(epochs=500), world, tmp_path / "a", seen.append, stop=lambda: sum(e["event"] == "epoch" for e in seen) >= 4)
    end = run.last_event("end")
    assert end is not None and end["reason"] == "asked to stop"
    assert run.finished and len(run.events("epoch")) == 4
    best = max(run.events("epoch"), key=lambda row: row["valid"]["NDCG@10"])
    assert end["best_epoch"] == best["epoch"]


def test_stop_in_the_first_epoch_still_gives_a_run(world: Dataset, tmp_path: Path) -> None:
    run = train(tiny(epochs=500, batch=1), world, tmp_path / "a", stop=lambda: True)
    assert run.finished and len(run.events("epoch")) == 1


def test_the_time_budget_is_kept(world: Dataset, tmp_path: Path) -> None:
    began = time.process_time()
    run = train(tiny(epochs=10_000, minutes=1 / 60, patience=10_000), world, tmp_path / "a")
    assert time.process_time() - began < 8
    end = run.last_event("end")
    assert end is not None and "budget" in end["reason"] and len(run.events("epoch")) >= 1


def test_a_processor_s_clock_stands_still_while_others_work(world: Dataset, tmp_path: Path) -> None:
    """A step that waits a second costs a run by the wall its budget, and one by the processor nothing."""

    def wait(event: dict[str, Any]) -> None:
        if event["event"] == "start":
            began.append(time.monotonic())
        elif event["event"] == "step":  # one an epoch here
            time.sleep(0.15)
        waited.append(time.monotonic() - began[0])

    for clock in ("processor", "wall"):
        began, waited = list[float](), list[float]()
        settings = {"epochs": 6, "minutes": 0.6 / 60, "clock": clock, "snapshots": False}
        run = train(tiny(**settings), world, tmp_path / clock, on_event=wait)
        seconds = (run.last_event("end") or {})["seconds"]
        assert (seconds < waited[-1] - 0.7) == (clock == "processor")


def test_patience_ends_a_run(world: Dataset, tmp_path: Path) -> None:
    run = train(tiny(epochs=500, patience=2, learning_rate=1e-9), world, tmp_path / "a")
    end = run.last_event("end")
    assert end is not None and end["reason"].startswith("no better validation")


# --- what cannot work -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["window", "all"])
def test_a_two_way_model_refuses_objectives_that_peek(world: Dataset, tmp_path: Path, objective: str) -> None:
    config = tiny().override(f"objective.name={objective}", "model.bidirectional=true")
    with pytest.raises(InputError, match="it can from: last"):
        train(config, world, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_batches_drawn_ahead_are_the_same_and_who_stops_leaves_no_thread() -> None:
    def drawn(most: int) -> Any:
        for number in range(most):
            made.append(threading.current_thread().name)
            yield number
        raise ValueError("no more")

    made: list[str] = []
    with pytest.raises(ValueError, match="no more"):
        for place, number in enumerate(draw_in_advance(drawn(5))):  # type: ignore[arg-type]
            assert place == number and len(made) <= place + 2
    assert place == 4 and all(name.startswith("batches") for name in made)
    for _number in draw_in_advance(drawn(5)):  # type: ignore[arg-type]
        break
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


OPTIMIZERS = """
import sys
import torch
from elastic_core.core.optimizers import Adam, AdamW

def train(kind):
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 3)
    optimizer = kind([{"params": [model.weight], "weight_decay": 0.1}, {"params": [model.bias]}], lr=0.01)
    for step in range(6):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(4, 5)).square().sum().backward()
        optimizer.step()
        if step == 3:
            optimizer.load_state_dict(optimizer.state_dict())
    return torch.cat([model.weight.flatten(), model.bias])

ours = train(Adam), train(AdamW)
assert "torch._dynamo" not in sys.modules
theirs = train(torch.optim.Adam), train(torch.optim.AdamW)
assert all(map(torch.equal, ours, theirs)) and not torch.equal(*ours)
"""


def test_optimizers_are_those_of_torch_without_its_compiler() -> None:
    subprocess.run([sys.executable, "-c", OPTIMIZERS], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
