"""Disks that are full or read-only, places that are no folders, clocks that are set back: one sentence, and nothing is lost."""

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Forked, command

from elastic_core import recipes
from elastic_core.commands import main
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.jobs import job_kinds, queue, worker
from elastic_core.jobs.job_kinds import Trainings
from elastic_core.jobs.queue import begin_job, end_job, open_table, start_next
from elastic_core.runs import EVENTS, Run
from elastic_core.runs.training import train

ROOT = Path(__file__).resolve().parents[2]
WORLD = ("users=60", "items=60", "interests=4", "mean_length=20", "max_length=40")
MODEL = ("length=8", "width=8", "n_subkeys=4", "k=2")
SMALL = ("train.epochs=2", "train.snapshots=true", *(f"data.planted.{x}" for x in WORLD), *(f"model.{x}" for x in MODEL))
CONFIG = recipes.toy().override(*SMALL)
CLONE_NEWNS, CLONE_NEWUSER, NONE_HERE = 0x20000, 0x10000000, 77
LEVELS = (300, 5_000, 25_000)  # bytes that are left; the largest file has 30,000


@pytest.fixture
def left() -> Iterator[Callable[[int | None], None]]:
    """`left(n)`: from now on no file of this process may grow beyond n bytes, as if the disk ended there; None: it may again."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before[0] if size is None else size, before[1]))

    yield limit
    limit(None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Run]:
    """The data, and a run that nothing disturbed."""
    world = load(CONFIG.data)
    return world, train(CONFIG, world, tmp_path_factory.mktemp("whole") / "run")


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_a_training_whose_disk_fills_up_is_one_sentence_and_goes_on_when_there_is_room(
    whole: tuple[Dataset, Run], tmp_path: Path, left: Callable[[int | None], None], level: int
) -> None:
    """Whatever the moment: what is there can be read, nothing is half-written, the numbers are those of an undisturbed run."""
    world, undisturbed = whole
    left(level)
    try:
        train(CONFIG, world, tmp_path / "run")
        said = ""
    except InputError as error:
        said = str(error)
    finally:
        left(None)
    assert bool(said) == (level < 30_000 or not Run(tmp_path / "run").finished)
    assert not said or ("cannot be written" in said and "\n" not in said and len(said) < 400)
    run = Run(tmp_path / "run")
    assert not list(run.path.rglob(".*.[0-9]*")), "nothing half-written is left"
    text = (run.path / EVENTS).read_text() if (run.path / EVENTS).exists() else ""
    assert text == "" or text.endswith("\n"), "a row is there as a whole or not at all"
    assert len(run.events()) == len(text.splitlines())
    again = train(CONFIG, world, run.path)
    assert again.finished and [row["loss"] for row in again.events("epoch")] == [
        row["loss"] for row in undisturbed.events("epoch")
    ]
    assert again.last_event("test")["protocols"] == undisturbed.last_event("test")["protocols"]  # type: ignore[index]


def on_a_disk_of(kilobytes: int, place: str) -> None:
    """Runs in a child process: a file system of its own in memory, where this user may have one."""
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None).unshare(CLONE_NEWNS | CLONE_NEWUSER):
        sys.exit(NONE_HERE)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(text)

    def mount(options: str, *words: str) -> None:
        subprocess.run(["mount", "-o", options, *words, place], check=True)

    words = ["train", "--recipe=toy", *(f"--set={setting}" for setting in SMALL), "--out"]
    mount(f"size={kilobytes}k", "-t", "tmpfs", "tmpfs")
    ends = [main([*words, f"{place}/run"])]
    mount("remount,size=64m")
    ends += [main([*words, f"{place}/run"])]
    mount("remount,ro")
    ends += [main([*words, f"{place}/other"]), main(["evaluate", f"{place}/run"])]
    assert ends == [2, 0, 2, 0], ends


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 16, 48, 96] if "ELASTIC_LONG" in os.environ else [16])
def test_a_disk_that_is_really_full_and_then_read_only(tmp_path: Path, children: Any, size: int) -> None:
    code, out, err = Forked(children, on_a_disk_of, size, str(tmp_path), folder=ROOT).ended()
    if code == NONE_HERE:
        pytest.skip("no file system of its own can be had here")
    assert code == 0 and "Traceback" not in err, err
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 2 and "No space left" in errors[0] + "No space left" * (size > 40) and "Read-only" in errors[1]
    assert "NDCG@10" in out


@pytest.mark.parametrize("make", [lambda place: place.write_text("mine"), lambda place: place.symlink_to("/dev/null")])
def test_an_out_that_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], object]) -> None:
    place = tmp_path / "out"
    make(place)
    before = place.lstat()
    words = ["train", "--recipe", "toy", *(f"--set={setting}" for setting in SMALL), "--out"]
    for out in (place, place / "below"):
        assert main([*words, str(out)]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("error: ") and ("is a file" in said or "cannot be written" in said)
    assert place.lstat().st_mtime_ns == before.st_mtime_ns and place.lstat().st_mode == before.st_mode


def printed_to_a_full_disk() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    command("data", "--list")


def test_what_is_printed_to_a_full_disk_is_one_sentence(children: Any) -> None:
    code, _, err = Forked(children, printed_to_a_full_disk, folder=ROOT).ended()
    assert (code, err.strip()) == (2, "error: No space left on device")


# --- the queue ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that a worker was started for; none really is."""
    ids: list[str] = []
    monkeypatch.setattr(queue, "start_worker", lambda root, job_id, threads: ids.append(job_id))
    return ids


@pytest.fixture
def jobs(tmp_path: Path, started: list[str]) -> Trainings:
    return Trainings(tmp_path)


def put(jobs: Trainings, count: int) -> None:
    """So many jobs, without asking for them one by one."""
    plain = jobs.submit(CONFIG).plain
    with open_table(jobs.folder, write=True) as table:
        requests = [(json.dumps({**plain, "run": f"local-{number}"}),) for number in range(1, count)]
        table.executemany("INSERT INTO jobs (kind, request, threads) VALUES ('train', ?, 1)", requests)


def test_a_hundred_jobs_and_two_servers_on_one_checkout(jobs: Trainings, started: list[str]) -> None:
    put(jobs, 120)
    other = Trainings(jobs.root)
    began = time.process_time()
    for server in (jobs, other) * 5:
        start_next(server.root)
        assert len(server.list_jobs()) == 120
    assert time.process_time() - began < 10 and len(started) == 1, "one worker is on its way, and no second is started"
    order = [job.id for job in jobs.list_jobs()]
    assert order == sorted(order) == [job.id for job in other.list_jobs()]
    for job_id in order[-20:]:  # a worker takes the first, does it and ends: always the oldest
        with open_table(jobs.folder, write=True) as table:
            table.execute("DELETE FROM worker")
            table.execute("DELETE FROM jobs WHERE id < ?", (int(job_id),))
        start_next(jobs.root)
        assert started[-1] == job_id and begin_job(jobs.folder, job_id)
        end_job(jobs.folder, job_id, "finished", "")
    assert {job.state for job in other.list_jobs()} == {"finished"}


@pytest.mark.parametrize("level", [0, 100, 400])
def test_a_queue_on_a_full_disk_says_so_and_keeps_its_jobs(
    jobs: Trainings, left: Callable[[int | None], None], level: int
) -> None:
    job = jobs.submit(CONFIG)
    left(level)
    with pytest.raises(InputError, match="cannot be written"):
        jobs.submit(CONFIG, "another")
    assert [listed.id for listed in jobs.list_jobs()] == [job.id], "the list can be read all the same"
    left(None)
    assert [listed.id for listed in jobs.list_jobs()] == [job.id] and not jobs.list_unreadable()
    assert jobs.submit(CONFIG, "another").run.name == "local-another"


def work_on_a_full_disk(root: Path, job: str, begun: bool) -> None:
    """Runs in a child process: its files may have 20 bytes, or 1,000 from when its training has begun until it gives up what it
    has put aside."""
    usual, unlink = job_kinds.train, Path.unlink

    def full(*given: Any, **more: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        usual(*given, **more)

    def give_up(path: Path, missing_ok: bool = False) -> None:
        if path.name == worker.SPARE and path.exists():
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, resource.RLIM_INFINITY))
        unlink(path, missing_ok)

    job_kinds.train, Path.unlink = full, give_up  # type: ignore[assignment,method-assign]
    queue.start_worker = lambda *given: (root / "spawned").touch()  # type: ignore[assignment]
    if not begun:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
    worker.do_job(root, job)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # for what it has not said yet


@pytest.mark.parametrize("begun", [False, True])
def test_a_worker_whose_disk_is_full(jobs: Trainings, children: Any, begun: bool) -> None:
    """One that cannot begin leaves its job in the queue and starts no next one, which would fare alike, and the one after it too,
    for ever; one that has begun says so: the room for its last word was put aside."""
    job = jobs.submit(CONFIG)
    code, _, err = Forked(children, work_on_a_full_disk, jobs.root, job.id, begun, folder=jobs.root).ended()
    assert code == 0 and "Traceback" not in err, err
    after = jobs.get_job(job.id)
    if begun:
        assert after.state == "failed" and "cannot be written" in after.reason and not (job.path / worker.SPARE).exists()
        jobs.resume(job.id)
    else:
        assert not (jobs.root / "spawned").exists()
    assert jobs.get_job(job.id).state == "queued"
