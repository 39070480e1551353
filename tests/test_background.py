"""The contract of background jobs, for every kind there is: they outlive everything, take turns, and no kill leaves a list that
lies. Most tests put a body that only counts in place of a kind's own and let the worker be a copy of this process."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest

from elastic_core.core.config import TrainConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.objective import WindowConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.files import printable_text
from elastic_core.jobs import queue, worker
from elastic_core.jobs.job_kinds import KINDS
from elastic_core.jobs.queue import (
    STALE,
    STARTING,
    STOPPED,
    Job,
    JobContext,
    Queue,
    begin_job,
    end_job,
    open_table,
    start_next,
    worker_alive,
    worker_lock,
)
from elastic_core.memory.routing import route_users
from elastic_core.models import Recommender
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.services.evidence import meaning
from elastic_core.services.experts import ablation
from elastic_core.services.map import compute, layouts
from elastic_core.services.map.layouts import Settings
from elastic_core.services.speed.plan import Plan

Tiny = tuple[Recommender, Dataset, Run]
SMALL = Plan(lengths=(16, 32), systems=("elastic", "sasrec-fused"), histories=2, repeats=3, k=2, n_subkeys=4, width=16)


def _training(jobs: Queue[Any], data: Dataset) -> Job[Any]:
    source = Run(jobs.root / "tiny").config.data
    model = ElasticConfig(length=8, width=8, layers=1, n_subkeys=4, k=2)
    config = RunConfig(data=source, model=model, objective=WindowConfig(span=4), train=TrainConfig(batch=16, epochs=1))
    return jobs.submit(config)  # type: ignore[attr-defined]


ASK: dict[str, Callable[[Any, Dataset], Job[Any]]] = {
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
def ask(tiny: Tiny) -> Callable[[Queue[Any]], Job[Any]]:
    return lambda jobs: ASK[jobs.kind](jobs, tiny[1])


def wait(ready: Callable[[], object], seconds: float = 60.0, state: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"nothing happened in time {state()}"
        time.sleep(0.02)


def holder(job: Job[Any]) -> int:
    with open_table(job.path.parent) as table:
        return int(table.execute("SELECT pid FROM jobs WHERE id = ?", (int(job.id),)).fetchone()[0])


def counts(self: Queue[Any], job: Job[Any], context: JobContext) -> str:
    for step in range(10_000):
        context.report_step(step, 10_000, f"step {step}")
        if not self.stops_at_once and context.is_stopping():
            return STOPPED
        time.sleep(0.02)
    return ""


def fork(root: Path, job_id: str, threads: int) -> None:
    """A worker that is a fork of this process, which spares it the seconds of its imports."""
    if child := os.fork():
        while os.getsid(child) != child:  # as `Popen` does: before that, who kills this process group kills the worker
            time.sleep(0.001)
        with (root / "children").open("a") as file:
            file.write(f"{child}\n")
        return
    try:
        os.setsid()
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))  # pytest's own go elsewhere
        worker.do_job(root, job_id)
    finally:
        os._exit(0)


@pytest.fixture
def forked(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker is a fork, and all that it does is count."""
    children = root / "children"
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", fork)
    for name in KINDS:
        monkeypatch.setattr(KINDS[name], "do_work", counts)
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
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda root, job_id, threads: found.append(job_id))
    return found


def test_every_kind_is_asked_for_here() -> None:
    assert set(ASK) == set(KINDS)


def test_progress_a_second_asker_and_stop(kind: str, root: Path, ask: Callable[..., Job[Any]], forked: None) -> None:
    mine, theirs = KINDS[kind](root), KINDS[kind](root)  # two servers on one checkout
    job = ask(mine)
    wait(lambda: theirs.get_job(job.id).share > 0)
    assert theirs.get_job(job.id).state == "running" and theirs.get_job(job.id).text.startswith("step ")
    again = ask(theirs)
    assert (again.id == job.id) == (kind != "train"), "the same is asked for once; a training again is another run"
    theirs.stop(job.id)
    wait(lambda: mine.get_job(job.id).state == "stopped", 20)
    assert "step 1" in mine.get_job(job.id).log and STOPPED in mine.get_job(job.id).log and mine.get_job(job.id).reason == STOPPED
    after = again if kind == "train" else ask(mine)
    assert after.id > job.id
    wait(lambda: theirs.get_job(after.id).share > 0)
    assert holder(after) != holder(job), "the next one began"


def try_to_resume(jobs: Any, job_id: str) -> bool:
    try:
        jobs.resume(job_id)
    except InputError as error:
        assert "is running; only an interrupted or failed one" in str(error)
        return False
    return True


def test_kill_of_the_worker(kind: str, root: Path, ask: Callable[..., Job[Any]], forked: None) -> None:
    jobs = KINDS[kind](root)
    job = ask(jobs)
    wait(lambda: jobs.get_job(job.id).share > 0)
    with pytest.raises(InputError, match="stop it first"):
        jobs.discard(job.id)
    os.kill(holder(job), signal.SIGKILL)
    wait(lambda: jobs.get_job(job.id).state == "interrupted")
    start_next(root)
    time.sleep(0.1)
    assert not worker_alive(jobs.folder), "it does not start again by itself"
    if kind != "train":
        assert ask(jobs).id > job.id, "nobody joins what will not end"
        jobs.stop(jobs.list_jobs()[-1].id)
        wait(lambda: not worker_alive(jobs.folder))
    wait(lambda: try_to_resume(jobs, job.id))  # a worker for the job that was stopped may start only now, and look for it
    wait(lambda: jobs.get_job(job.id).state == "running")
    os.kill(holder(job), signal.SIGKILL)
    wait(lambda: jobs.get_job(job.id).state == "interrupted")
    jobs.discard(job.id)
    with pytest.raises(InputError, match=f"no {jobs.noun} .* any more"):
        jobs.get_job(job.id)


def test_one_works_at_a_time_the_oldest_first_whatever_its_kind(
    root: Path, ask: Callable[..., Job[Any]], spawned: list[str]
) -> None:
    """So that nothing disturbs a timing."""
    queues = {kind: KINDS[kind](root) for kind in KINDS}
    with worker_lock(root / "jobs"):
        first, second = ask(queues["train"]), ask(queues["map"])
        assert not spawned, "somebody works"
    start_next(root)
    start_next(root)
    assert spawned == [first.id], "the oldest, and one worker is on its way"
    queues["train"].stop(first.id)
    with open_table(root / "jobs", write=True) as table:
        table.execute("DELETE FROM worker")
    start_next(root)
    assert spawned == [first.id, second.id]


def test_who_only_asks_is_no_worker(root: Path, ask: Callable[..., Job[Any]], spawned: list[str]) -> None:
    """To ask who holds the lock is to hold it for an instant. A job that waits then would wait until somebody looked again."""
    lock = worker_lock(root / "jobs")
    lock.acquire()
    Timer(0.1, lock.release).start()
    job = ask(KINDS["train"](root))
    assert spawned == [job.id]


def test_a_worker_that_comes_while_one_looks_is_seen(
    root: Path, ask: Callable[..., Job[Any]], spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a second one is started, and while that waits for the lock in vain, nobody starts the next job."""
    lock = worker_lock(root / "jobs")

    def look(folder: Path, patience: float = 0.0) -> bool:
        alive = worker_alive(folder, patience)
        if not lock.is_locked:  # the worker comes right after the first look
            lock.acquire()
            with open_table(folder, write=True) as table:
                table.execute("DELETE FROM worker")
        return alive

    job = ask(KINDS["train"](root))
    monkeypatch.setattr(queue, "worker_alive", look)
    start_next(root)
    assert lock.is_locked and spawned == [job.id]


def test_a_worker_that_waits_in_vain_is_waited_for_no_longer(
    root: Path, ask: Callable[..., Job[Any]], spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WAIT", 0.1)
    first, second = ask(KINDS["train"](root)), ask(KINDS["map"](root))
    with worker_lock(root / "jobs"):
        worker.do_job(root, second.id)
        assert spawned == [first.id], "somebody works"
    start_next(root)
    assert spawned == [first.id, first.id], "and nobody is on the way"


def test_who_asks_at_once_on_many_servers(kind: str, root: Path, ask: Callable[..., Job[Any]], spawned: list[str]) -> None:
    with ThreadPoolExecutor(8) as servers:
        found = {job.id for job in servers.map(lambda _: ask(KINDS[kind](root)), range(8))}
    assert len(found) == (8 if kind == "train" else 1) and len(spawned) == 1
    assert [job.id for job in KINDS[kind](root).list_jobs()] == sorted(found)


def test_what_the_table_says_is_the_state(
    kind: str, root: Path, ask: Callable[..., Job[Any]], spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = KINDS[kind](root)
    job = ask(jobs)
    state = lambda: jobs.get_job(job.id).state  # noqa: E731

    def write(text: str, *values: object) -> None:
        with open_table(jobs.folder, write=True) as table:
            table.execute(text, values)

    assert state() == "queued" and len(spawned) == 1
    for started in (time.time() + 3_600, time.time() - STARTING - 1):
        write("UPDATE worker SET started = ?", started)
        start_next(root)
        start_next(root)
    assert len(spawned) == 3, "a worker that never came is not waited for, nor one of a clock that was set back"
    assert begin_job(jobs.folder, job.id)
    assert state() == "interrupted", "nobody holds the lock"
    with worker_lock(root / "jobs"):
        assert state() == "running"
        for beat in (time.time() + 3_600, time.time() - STALE - 1):
            write("UPDATE jobs SET beat = ?", beat)
            assert state() == "not responding"
        assert not begin_job(jobs.folder, job.id), "the next worker says of the last one's job that it was interrupted"
        assert state() == "interrupted"
    for word in ("finished", "stopped", "failed"):
        write("UPDATE jobs SET state = 'running'")
        end_job(jobs.folder, job.id, word, "it\x1b broke")
        end_job(jobs.folder, job.id, "finished", "a second word")
        assert state() == word and jobs.get_job(job.id).reason == printable_text("it\x1b broke")
    assert jobs.get_job(job.id).seconds < 60


def test_ids_lead_nowhere_and_jobs_end_in_the_list(
    kind: str, root: Path, ask: Callable[..., Job[Any]], spawned: list[str]
) -> None:
    jobs = KINDS[kind](root)
    good = ask(jobs)
    for bad in ("../tiny", "", ".", "worker.lock", "1"):
        for act in (jobs.discard, jobs.stop, jobs.resume):
            with pytest.raises(InputError):
                act(bad)
    jobs.stop(good.id)
    assert jobs.list_jobs() == [] and Run(root / "tiny").finished


def test_lists_have_an_end(root: Path, spawned: list[str]) -> None:
    jobs = KINDS["speed"](root)
    for repeats in range(3, 12):
        job = jobs.submit(replace(SMALL, repeats=repeats))  # type: ignore[attr-defined]
        assert begin_job(jobs.folder, job.id)
        end_job(jobs.folder, job.id, "finished", "")
    assert jobs.max_ended is not None and len(jobs.list_jobs()) == jobs.max_ended + 1
    assert jobs.latest_job("finished") is not None and jobs.latest_job("finished", k=3) is None


class FAKE:
    class UMAP:
        def __init__(self, **given: Any) -> None:
            self.seed = given["random_state"]

        def fit_transform(self, x: np.ndarray) -> np.ndarray:
            return x[:, :2] + self.seed


@pytest.mark.slow
def test_every_kind_does_its_work_in_processes_that_outlive_the_app(
    root: Path, tiny: Tiny, ask: Callable[..., Job[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are asked for at once; the app is killed -9 with its process group while they wait or have hardly begun. One
    starts as it does in the app, the others are forked."""
    usual = queue.start_worker
    last = lambda root, job_id, threads: (usual if job_id == f"{len(KINDS):06}" else fork)(root, job_id, threads)  # noqa: E731
    monkeypatch.setattr(queue, "start_worker", last)
    monkeypatch.setattr("elastic_core.study.train.SLACK", 1e9)
    monkeypatch.setattr("elastic_core.study.plan.FLOOR", 0.1)
    monkeypatch.setitem(sys.modules, "umap", FAKE)
    if not (app := os.fork()):
        os.setpgid(0, 0)
        for kind in reversed(KINDS):  # the training is the last: its worker, which is no fork, starts no other
            ask(KINDS[kind](root))
        (tmp_path / "asked").touch()
        time.sleep(600)
    wait((tmp_path / "asked").exists)
    os.killpg(app, signal.SIGKILL)
    os.waitpid(app, 0)
    jobs = {kind: KINDS[kind](root) for kind in KINDS}
    ended = lambda: all(each.list_jobs()[0].ended for each in jobs.values())  # noqa: E731
    wait(ended, 240, lambda: [(each.list_jobs()[0], each.list_jobs()[0].log) for each in jobs.values()])  # starts nothing
    assert {each.list_jobs()[0].state for each in jobs.values()} == {"finished"}, [
        each.list_jobs()[0].log for each in jobs.values()
    ]
    assert len({holder(each.list_jobs()[0]) for each in jobs.values()}) == len(KINDS)

    run, (model, data, _) = Run(root / "tiny"), tiny
    assert jobs["train"].list_jobs()[0].run.finished  # type: ignore[attr-defined]
    assert sorted(set(jobs["speed"].list_jobs()[0].read_latencies()["length"])) == [16, 32]  # type: ignore[attr-defined]
    assert sorted(set(jobs["speed"].list_jobs()[0].read_new_events()["length"])) == [16, 32]  # type: ignore[attr-defined]
    assert jobs["study"].read_answer(jobs["study"].list_jobs()[0].request)["minutes"] == 0.03  # type: ignore[attr-defined]
    store = layouts.read_store(run, compute.values_of(run))
    assert store is not None and {*map(Settings().key, layouts.SEEDS), Settings().key(0, "null")} <= set(store.layouts)
    assert meaning.of_runs(root, [run])["tiny"].users > 0
    context = ablation.EvaluationContext(model, data, route_users(model, data, "test"))
    found, expected = jobs["experts"].read_effects(run, data.hash), ablation.remove_each(context)  # type: ignore[attr-defined]
    assert found.dtypes.tolist() == expected.dtypes.tolist()
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), atol=1e-9)
    (run.path / "model.safetensors").write_bytes(b"other weights")
    assert jobs["experts"].read_effects(run, data.hash) is None, "what was found of other weights is no answer"  # type: ignore[attr-defined]


def test_a_job_that_ends_while_the_list_is_read_is_no_interrupted_one(
    root: Path, ask: Callable[..., Job[Any]], spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker says how it ended and frees the lock after the list was read, and before somebody looks who holds it."""
    jobs = KINDS["map"](root)
    job = ask(jobs)
    assert begin_job(jobs.folder, job.id)

    def leave(folder: Path) -> bool:
        end_job(folder, job.id, "finished", "")
        return False

    monkeypatch.setattr(queue, "worker_alive", leave)
    assert jobs.get_job(job.id).state == "finished"
