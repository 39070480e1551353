"""A corpus of hostile folders: each is a line with its sentence, none reaches its neighbours, nothing outside is touched."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from folders import JOBS, NO_FOLDER, ODD_NAMES, RUNS, SECRET, UPLOADS, Bomb, Odd

from elastic_core import recipes
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.runs import Run, list_runs, unreadable_runs
from elastic_core.services.data.shelf import Shelf, checked, folded, opened
from elastic_core.services.experts import relations
from elastic_core.services.map import layouts
from elastic_core.services.traffic import over_time
from elastic_core.services.train import beside, outcome, run_table
from elastic_core.services.train.jobs import Jobs
from elastic_core.services.train.watching import watch

GOOD = "user,item,time\n" + "".join(f"u{u},i{(i + u) % 7},{1_000_000_000 + u * 7 + i}\n" for u in range(6) for i in range(7))
QUICK = 5.0  # seconds of processor time that a list may take at most, whatever lies in it


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A place beside the lists. Whatever a test does, it looks the same afterwards, and nothing was unpickled."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir())
    yield folder
    assert sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir()) == before
    assert (folder / "secret").read_text() == SECRET
    assert not Path(Bomb.place).exists()


def sentence(text: str, wanted: str) -> None:
    assert wanted in text
    assert len(text) < 700 and text.isprintable() and "Traceback" not in text and SECRET not in text


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(tiny_runs: Path, outside: Path) -> Path:
    return Path(shutil.copytree(tiny_runs, outside.parent / "runs"))


LOADED: dict[str, Dataset] = {}  # most runs are of the same data


def loaded(run: Run) -> Dataset:
    if (known := repr(run.config.data)) not in LOADED:
        LOADED[known] = load(run.config.data)
    return LOADED[known]


def readers(run: Run) -> None:
    """What lists, tables and pictures ask of a run without opening it; none may fail."""
    run_table.runs_table([run])
    run_table.curves([run])
    over_time.by_epoch(run)
    over_time.load_by_epoch(run)
    layouts.snapshots(run)
    relations.load_by_epoch(run, 3)
    layouts.read_store(run, np.zeros((64, 32), dtype=np.float32))
    beside.kept(run)
    with suppress(InputError):
        outcome.outcome(run, [run]).table(run.name)
    assert not run.last("test") or run.last("test")["protocols"]


@pytest.mark.parametrize("odd", RUNS, ids=lambda odd: odd.id)
def test_a_run(runs: Path, odd: Odd) -> None:
    shutil.copytree(runs / "tiny", runs / "odd")
    odd.tamper(runs / "odd")
    began = time.process_time()
    listed, faults = [run.name for run in list_runs(runs)], unreadable_runs(runs)
    if odd.says and not odd.opened:
        assert listed == ["tiny", "tiny-peer"]
        (fault,) = faults
        assert fault.name == "odd"
        sentence(fault.reason, odd.says)
    else:
        assert listed == ["odd", "tiny", "tiny-peer"] and not faults
        run = Run(runs / "odd")
        readers(run)
        if odd.opened:
            with pytest.raises(InputError) as error:
                run.model(loaded(run))
            sentence(str(error.value), odd.says)
        else:
            run.model(loaded(run))
    assert time.process_time() - began < QUICK


@pytest.mark.parametrize("what", NO_FOLDER)
def test_something_else_in_the_list_of_runs(runs: Path, what: str) -> None:
    make, _ = NO_FOLDER[what]
    make(runs / "odd")
    assert [run.name for run in list_runs(runs)] == ["tiny", "tiny-peer"]
    if what == "a link to a folder outside":  # that a run could be found there does not make it one of ours
        (runs / "odd").unlink()
        (runs / "odd").symlink_to(runs / "tiny")
        assert [run.name for run in list_runs(runs)] == ["tiny", "tiny-peer"]
        assert [fault.reason for fault in unreadable_runs(runs)] == ["it is a link, and links are not followed"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_no_page_could_show(runs: Path, name: bytes) -> None:
    shutil.copytree(os.fsencode(runs / "tiny"), os.path.join(os.fsencode(runs), name))  # noqa: PTH118, pathlib knows no bytes
    assert [run.name for run in list_runs(runs)] == ["tiny", "tiny-peer"]
    (fault,) = unreadable_runs(runs)
    sentence(fault.reason, "its name holds characters")
    sentence(fault.name, "")
    fault.name.encode("utf-8")


# --- jobs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def jobs(tiny_runs: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """A list that starts nothing, with a good job between two places for odd ones, and runs beside it."""
    monkeypatch.setattr(Jobs, "_spawn", lambda self, job: None)
    root = Path(shutil.copytree(tiny_runs, outside.parent / "runs"))
    (root / "victim").mkdir()
    jobs = Jobs(root)
    jobs.submit(recipes.toy(), "good")
    return jobs


def place(jobs: Jobs, name: str = "20200101-000000-000000") -> Path:
    (good,) = jobs.all()
    folder = Path(shutil.copytree(good.path, jobs.folder / name))
    (folder / "job.json").write_text(json.dumps({**json.loads((folder / "job.json").read_text()), "run": "local-odd"}))
    return folder


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if ".gone" not in str(path)}


@pytest.mark.parametrize("odd", JOBS, ids=lambda odd: odd.id)
def test_a_job(jobs: Jobs, odd: Odd) -> None:
    before = everything(jobs.root)
    folder = place(jobs)
    odd.tamper(folder)
    listed, faults = jobs.all(), jobs.unreadable()
    assert listed[-1].run.name == "local-good"
    for job in listed:
        watch(job)
        job.log.encode("utf-8")
    if odd.says:
        assert len(listed) == 1
        (fault,) = faults
        sentence(fault.reason, odd.says)
        with pytest.raises(InputError):
            jobs.resume(folder.name)
    else:
        assert [job.run.name for job in listed] == ["local-odd", "local-good"] and not faults
        assert SECRET not in listed[0].log + listed[0].reason
    assert (jobs.next() or listed[-1]).run.name in ("local-odd", "local-good")
    jobs.discard(folder.name)
    assert everything(jobs.root) - {"jobs/start.lock", "jobs/starting"} == before - {"jobs/start.lock", "jobs/starting"}


@pytest.mark.parametrize("what", NO_FOLDER)
def test_something_else_in_the_list_of_jobs(jobs: Jobs, what: str) -> None:
    make, says = NO_FOLDER[what]
    make(jobs.folder / "20200101-000000-000000")
    assert [job.run.name for job in jobs.all()] == ["local-good"]
    (fault,) = jobs.unreadable()
    sentence(fault.reason, says)
    jobs.discard(fault.path.name)
    assert not jobs.unreadable() and not os.path.lexists(jobs.folder / fault.path.name)


@pytest.mark.parametrize("name", [*ODD_NAMES, b"", b"-evil", b"99999999-999999-999999x", b".."])
def test_an_odd_name_of_a_job(jobs: Jobs, name: bytes) -> None:
    (good,) = jobs.all()
    odd = os.path.join(os.fsencode(jobs.folder), b"2020" + name)  # noqa: PTH118, pathlib knows no bytes
    shutil.copytree(os.fsencode(good.path), odd)
    assert [job.run.name for job in jobs.all()] == ["local-good"]
    (fault,) = jobs.unreadable()
    sentence(fault.reason, "its name")
    fault.name.encode("utf-8")
    jobs.discard(fault.path.name)
    assert not jobs.unreadable() and not os.path.lexists(odd)


@pytest.mark.parametrize("what", NO_FOLDER)
def test_a_run_of_a_job_that_is_none_is_never_removed(jobs: Jobs, what: str) -> None:
    """`local-odd` is not a folder: the job cannot be read, and discarding it leaves what stands there, and what that leads to."""
    make, says = NO_FOLDER[what]
    folder = place(jobs)
    make(jobs.root / "local-odd")
    if what == "an empty folder":
        assert [job.run.name for job in jobs.all()] == ["local-odd", "local-good"]
        return
    (fault,) = jobs.unreadable()
    sentence(fault.reason, says)
    jobs.discard(folder.name)
    assert os.path.lexists(jobs.root / "local-odd")


# --- uploads ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shelf = Shelf(tmp_path_factory.mktemp("shelf") / "uploads")
    for name, text in (("good.csv", GOOD), ("odd.csv", GOOD.replace("u1", "w1"))):
        sheet, mapping = opened(name, text.encode())
        shelf.keep(folded(sheet.shown, checked(sheet, mapping), 5), name)
    return shelf.folder


@pytest.fixture
def shelf(kept: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.chdir(outside.parent)
    return Shelf(Path(shutil.copytree(kept, outside.parent / "uploads")))


@pytest.mark.parametrize("odd", UPLOADS, ids=lambda odd: odd.id)
def test_an_upload(shelf: Shelf, odd: Odd) -> None:
    good, other = sorted(shelf.all(), key=lambda kept: kept.label)
    odd.tamper(shelf.folder / other.id)
    assert [kept.id for kept in shelf.all()] == [good.id] and list(shelf.choices()) == [good.label]
    (fault,) = shelf.unreadable()
    sentence(fault.reason, odd.says)
    with pytest.raises(InputError, match="not kept here"):
        shelf.get(other.id)
    shelf.delete(fault.path.name)
    assert [path.name for path in shelf.folder.iterdir()] == [good.id]
    assert load(good.config).histories.n_users == 6


@pytest.mark.parametrize("what", NO_FOLDER)
def test_something_else_on_the_shelf(shelf: Shelf, what: str) -> None:
    make, says = NO_FOLDER[what]
    make(shelf.folder / "0123456789ab")
    assert len(shelf.all()) == 2
    (fault,) = shelf.unreadable()
    sentence(fault.reason, says)
    shelf.delete(fault.path.name)
    assert len(list(shelf.folder.iterdir())) == 2


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    cases = [*RUNS, *JOBS, *UPLOADS]
    assert len(cases) >= 400 and len({(kind, odd.id) for kind in (RUNS, JOBS, UPLOADS) for odd in kind}) == len(cases)
