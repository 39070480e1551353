"""The contract of background jobs, for every kind there is: they outlive everything, take turns, and no kill leaves a list that
lies. Most tests put a body that only counts in place of a kind's own and let the worker be a copy of this process."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elastic_core.core.config import TrainConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.objective import WindowConfig
from elastic_core.data import Dataset
from elastic_core.disk import shown
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.services.background import worker
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import HEAVY, KINDS, LIGHT, STALE, STARTING, STOPPED, Queue, Task, queue
from elastic_core.services.evidence import meaning
from elastic_core.services.experts import ablation
from elastic_core.services.map import compute, layouts
from elastic_core.services.map.layouts import Settings
from elastic_core.services.speed.plan import Plan

Tiny = tuple[Recommender, Dataset, Run]
SMALL = Plan(lengths=(16, 32), systems=("elastic", "sasrec-fused"), histories=2, repeats=3, k=2, side=4, width=16)


def _training(jobs: Queue[Any], data: Dataset) -> Task[Any]:
    source = Run(jobs.root / "tiny").config.data
    model = ElasticConfig(length=8, width=8, layers=1, side=4, k=2)
    config = RunConfig(data=source, model=model, objective=WindowConfig(span=4), train=TrainConfig(batch=16, epochs=1))
    return jobs.submit(config)  # type: ignore[attr-defined]


ASK: dict[str, Callable[[Any, Dataset], Task[Any]]] = {
    "train": _training,
    "speed": lambda jobs, data: jobs.submit(SMALL),
    "map": lambda jobs, data: jobs.submit(Run(jobs.root / "tiny"), Settings(), np.arange(64)),
    "evidence": lambda jobs, data: jobs.submit(Run(jobs.root / "tiny")),
    "experts": lambda jobs, data: jobs.submit(Run(jobs.root / "tiny"), data.hash),
    "study": lambda jobs, data: jobs.submit(Run(jobs.root / "tiny").config.data, 0.03),
}


@pytest.fixture
def root(tiny: Tiny, tmp_path: Path) -> Path:
    shutil.copytree(tiny[2].path, tmp_path / "runs" / "tiny")
    return tmp_path / "runs"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ask(tiny: Tiny) -> Callable[[Queue[Any]], Task[Any]]:
    return lambda jobs: ASK[jobs.kind](jobs, tiny[1])


def wait(ready: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.02)


def holder(job: Task[Any]) -> int:
    return int(json.loads((job.path / "begun.json").read_text())["pid"])


def counts(self: Queue[Any], job: Task[Any], hand: Hand) -> str:
    for step in range(10_000):
        hand.tell(step, 10_000, f"step {step}")
        if not self.at_once and hand.stop():
            return STOPPED
        time.sleep(0.02)
    return ""


def fork(jobs: Queue[Any], job: Task[Any]) -> None:
    """A worker that is a fork of this process, which spares it the seconds of its imports."""
    if child := os.fork():
        with (jobs.root / "children").open("a") as file:
            file.write(f"{child}\n")
        return
    try:
        os.setsid()
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))  # pytest's own go elsewhere
        worker.work(jobs.root, jobs.kind, job.id)
    finally:
        os._exit(0)


@pytest.fixture
def forked(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker is a fork, and all that it does is count."""
    children = root / "children"
    monkeypatch.setattr(Queue, "_spawn", fork)
    for name in KINDS:
        monkeypatch.setattr(type(queue(root, name)), "work", counts)
    yield
    ended: set[int] = set()
    while (
        left := {int(line) for line in children.read_text().split()} - ended
    ):  # one that is killed may just have started another
        for child in left:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):  # a child of a child
                os.waitpid(child, 0)
        ended |= left


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No process is started; which would be."""
    found: list[str] = []
    monkeypatch.setattr(Queue, "_spawn", lambda self, job: found.append(f"{self.kind}/{job.id}"))
    return found


def test_every_kind_is_asked_for_here() -> None:
    assert set(ASK) == set(KINDS)
    assert [queue(".", kind).kind for kind in KINDS] == list(KINDS)


def test_progress_a_second_asker_and_stop(kind: str, root: Path, ask: Callable[..., Task[Any]], forked: None) -> None:
    mine, theirs = queue(root, kind), queue(root, kind)  # two servers on one checkout
    job = ask(mine)
    wait(lambda: theirs.get(job.id).share > 0)
    assert theirs.get(job.id).state == "running" and theirs.get(job.id).text.startswith("step ")
    again = ask(theirs)
    assert (again.id == job.id) == (kind != "train"), "the same is asked for once; a training again is another run"
    theirs.stop(job.id)
    wait(lambda: mine.get(job.id).state == "stopped", 20)
    assert "step 1" in mine.get(job.id).log and STOPPED in mine.get(job.id).log and mine.get(job.id).reason == STOPPED
    after = again if kind == "train" else ask(mine)
    assert after.id > job.id
    wait(lambda: theirs.get(after.id).share > 0)
    assert holder(after) != holder(job), "the lane went on"


def test_kill_of_the_worker(kind: str, root: Path, ask: Callable[..., Task[Any]], forked: None) -> None:
    jobs = queue(root, kind)
    job = ask(jobs)
    wait(lambda: jobs.get(job.id).share > 0)
    with pytest.raises(InputError, match="stop it first"):
        jobs.discard(job.id)
    os.kill(holder(job), signal.SIGKILL)
    wait(lambda: jobs.get(job.id).state == "interrupted")
    jobs.pump()
    time.sleep(0.1)
    assert not jobs.slot.held, "it does not start again by itself"
    if kind != "train":
        assert ask(jobs).id > job.id, "nobody joins what will not end"
        jobs.stop(jobs.all()[-1].id)
        wait(lambda: not jobs.slot.held)
    jobs.resume(job.id)
    wait(lambda: jobs.get(job.id).state == "running")
    os.kill(holder(job), signal.SIGKILL)
    wait(lambda: jobs.get(job.id).state == "interrupted")
    jobs.discard(job.id)
    with pytest.raises(InputError, match=f"no {jobs.noun} .* any more"):
        jobs.get(job.id)


def test_lanes_take_turns_whoever_was_asked(root: Path, ask: Callable[..., Task[Any]], spawned: list[str]) -> None:
    all_ = {kind: queue(root, kind) for kind in KINDS}
    assert {kind for kind, jobs in all_.items() if jobs.lane == HEAVY} == {"train", "speed", "study"}
    assert all_["train"].slot.take()
    first, second = ask(all_["train"]), ask(all_["speed"])
    assert not spawned and ask(all_["map"]).state == "queued" and spawned == [f"map/{all_['map'].all()[0].id}"]
    all_["train"].slot.free()
    all_["speed"].pump()
    assert spawned[1:] == [f"train/{first.id}"], "the oldest of the lane"
    for jobs in all_.values():
        jobs.pump()
    assert len(spawned) == 2, "one process is on its way in each lane"
    (all_["train"].hall / "starting").unlink()
    all_["train"].stop(first.id)
    all_["train"].pump()
    assert spawned[2:] == [f"speed/{second.id}"] and all_["map"].lane == LIGHT


def test_who_asks_at_once_on_many_servers(kind: str, root: Path, ask: Callable[..., Task[Any]], spawned: list[str]) -> None:
    with ThreadPoolExecutor(8) as servers:
        found = {job.id for job in servers.map(lambda _: ask(queue(root, kind)), range(8))}
    assert len(found) == (8 if kind == "train" else 1) and len(spawned) == 1
    assert [job.id for job in queue(root, kind).all()] == sorted(found)


def test_what_the_files_say_is_the_state(kind: str, root: Path, ask: Callable[..., Task[Any]], spawned: list[str]) -> None:
    jobs = queue(root, kind)
    job = ask(jobs)
    state = lambda: jobs.get(job.id).state  # noqa: E731
    assert state() == "queued" and len(spawned) == 1
    os.utime(jobs.hall / "starting", (time.time() + 3_600,) * 2)  # an hour before now it was later
    jobs.pump()
    os.utime(jobs.hall / "starting", (time.time() - STARTING - 1,) * 2)
    jobs.pump()
    jobs.pump()
    assert len(spawned) == 3, "a process that never came is not waited for, nor one of a clock that was set back"
    (job.path / "begun.json").write_text(json.dumps({"pid": os.getpid(), "time": 0}))  # a recycled process id
    note = json.dumps({"kind": kind, "job": job.id, "pid": os.getpid()})
    (jobs.hall / "slot.json").write_text(note)
    (jobs.hall / "slot.lock").touch()
    assert state() == "interrupted"
    with jobs.slot:
        assert state() == "interrupted", "what the last holder left is not what the next one says"
        (jobs.hall / "slot.json").write_text(note)
        assert state() == "not responding"  # held, but without a beat
        (job.path / "beat").touch()
        assert state() == "running"
        for when in (time.time() + 3_600, time.time() - STALE - 1):
            os.utime(job.path / "beat", (when, when))
            assert state() == "not responding"
        (jobs.hall / "slot.json").write_text(json.dumps({"kind": "another", "job": job.id}))
        assert state() == "interrupted"
    for end in ("finished", "stopped", "failed"):
        (job.path / "end.json").write_text(json.dumps({"state": end, "reason": "it\x1b broke"}))
        assert state() == end and jobs.get(job.id).reason == shown("it\x1b broke")
    assert jobs.get(job.id).seconds < 60


BAD = (
    b"",
    b"{",
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 5_000,
    b'{"run": "../x"}',
    b'{"run": 1, "weights": 2, "lengths": 3, "config": {}}',
)


def test_corrupt_jobs_are_no_jobs(kind: str, root: Path, ask: Callable[..., Task[Any]], spawned: list[str]) -> None:
    jobs = queue(root, kind)
    good = ask(jobs)
    for number, data in enumerate(BAD):
        folder = jobs.folder / f"20200101-000000-{number:06}"
        folder.mkdir()
        (folder / "job.json").write_bytes(data)
    (jobs.folder / "2020 other").mkdir()
    assert [job.id for job in jobs.all()] == [good.id] and jobs.next() is not None
    faults = jobs.unreadable()
    assert len(faults) == len(BAD) + 1 and all(0 < len(fault.reason) < 300 and "\n" not in fault.reason for fault in faults)
    jobs.pump()
    assert spawned == [f"{kind}/{good.id}"]
    for bad in ("../tiny", "", ".", "slot.lock"):
        with pytest.raises(InputError):
            jobs.discard(bad)
    for fault in faults:
        jobs.discard(fault.path.name)
    assert not jobs.unreadable() and [job.id for job in jobs.all()] == [good.id]
    (good.path / "progress.json").write_text('{"done": 1, "of"')
    assert jobs.get(good.id).share == 0
    jobs.stop(good.id)
    assert jobs.all() == [] and Run(root / "tiny").finished


def test_lists_have_an_end(root: Path, ask: Callable[..., Task[Any]], spawned: list[str]) -> None:
    jobs = queue(root, "speed")
    for number in range(9):
        folder = jobs.folder / f"20200101-000000-{number:06}"
        folder.mkdir(parents=True)
        (folder / "end.json").write_text('{"state": "finished"}')
        (folder / "job.json").write_text(json.dumps(SMALL.__dict__))
    ask(jobs)
    assert jobs.kept is not None and len(jobs.all()) == jobs.kept + 1
    assert jobs.latest("finished") is not None and jobs.latest("finished", k=3) is None


class FAKE:
    class UMAP:
        def __init__(self, **given: Any) -> None:
            self.seed = given["random_state"]

        def fit_transform(self, x: np.ndarray) -> np.ndarray:
            return x[:, :2] + self.seed


@pytest.mark.slow
def test_every_kind_does_its_work_in_processes_that_outlive_the_app(
    root: Path, tiny: Tiny, ask: Callable[..., Task[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are asked for at once; the app is killed -9 with its process group while they wait or have hardly begun. One
    starts as it does in the app, the others are forked."""
    usual = Queue._spawn
    monkeypatch.setattr(Queue, "_spawn", lambda self, job: (usual if self.kind == "train" else fork)(self, job))
    monkeypatch.setattr("elastic_core.study.conduct.SLACK", 1e9)
    monkeypatch.setattr("elastic_core.study.plan.FLOOR", 0.1)
    monkeypatch.setitem(sys.modules, "umap", FAKE)
    if not (app := os.fork()):
        os.setpgid(0, 0)
        for kind in reversed(KINDS):  # the last training of its lane, whose process is one of its own, starts no other
            ask(queue(root, kind))
        (tmp_path / "asked").touch()
        time.sleep(600)
    wait((tmp_path / "asked").exists)
    os.killpg(app, signal.SIGKILL)
    os.waitpid(app, 0)
    jobs = {kind: queue(root, kind) for kind in KINDS}
    ends = [each.all()[0].path / "end.json" for each in jobs.values()]
    wait(lambda: all(end.exists() for end in ends), 240)  # reads no list, pumps nothing
    assert {each.all()[0].state for each in jobs.values()} == {"finished"}, [each.all()[0].log for each in jobs.values()]
    assert len({holder(each.all()[0]) for each in jobs.values()}) == len(KINDS)

    run, (model, data, _) = Run(root / "tiny"), tiny
    assert jobs["train"].all()[0].run.finished  # type: ignore[attr-defined]
    assert sorted(set(jobs["speed"].all()[0].latencies()["length"])) == [16, 32]  # type: ignore[attr-defined]
    assert sorted(set(jobs["speed"].all()[0].events()["length"])) == [16, 32]  # type: ignore[attr-defined]
    assert jobs["study"].answer(jobs["study"].all()[0].asked)["minutes"] == 0.03  # type: ignore[attr-defined]
    store = layouts.read_store(run, compute.values_of(run))
    assert store is not None and {*map(Settings().key, layouts.SEEDS), Settings().key(0, "null")} <= set(store.layouts)
    assert meaning.of_runs(root, [run])["tiny"].people > 0
    traffic = __import__("elastic_core.memory.routing", fromlist=["routing"]).routing(model, data, "test")
    found, expected = jobs["experts"].effects(run, data.hash), ablation.remove_each(ablation.Population(model, data, traffic))  # type: ignore[attr-defined]
    assert found.dtypes.tolist() == expected.dtypes.tolist()
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), atol=1e-9)
    (run.path / "model.safetensors").write_bytes(b"other weights")
    assert jobs["experts"].effects(run, data.hash) is None, "what was found of other weights is no answer"  # type: ignore[attr-defined]


def test_a_job_that_begins_while_the_list_is_read_is_no_interrupted_one(
    root: Path, ask: Callable[..., Task[Any]], spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process takes the slot after the list asked who is in it, and before its folder is read."""
    jobs = queue(root, "map")
    job = ask(jobs)
    answers = iter(["", job.id, job.id])
    monkeypatch.setattr(Queue, "_current", lambda self: next(answers))
    (job.path / "beat").touch()
    (job.path / "begun.json").write_text("{}")
    assert jobs.get(job.id).state == "running"
