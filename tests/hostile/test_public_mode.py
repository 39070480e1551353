"""Public mode: what strangers may not do is refused by the services, said by the pages, and no file gets in by another way."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from visits import visit

from elastic_core import recipes
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Ablations, Maps, Meanings, Measurements, Training, Trainings
from elastic_core.jobs.queue import MAX_QUEUED, begin_job, open_table, start_next
from elastic_core.models import Recommender
from elastic_core.run_config import PlantedConfig
from elastic_core.runs import Run
from elastic_core.services import public
from elastic_core.services.data.upload_store import UploadStore, check_upload, open_upload, preprocess_upload
from elastic_core.services.map.layouts import Settings
from elastic_core.services.speed.plan import Plan
from elastic_core.services.train.estimate import estimate_time
from pages.components import page_context
from pages.layout import server

ROWS = "user,item,time\n" + "".join(f"u{u},i{(i + u) % 7},{100 * u + i}\n" for u in range(6) for i in range(7))


def done(work: Coroutine[Any, Any, Any]) -> Any:
    """What it comes to, in a thread of its own: in this one, a browser of another test may keep a loop running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@pytest.fixture
def root(tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, a kept upload, a waiting and an interrupted training; nothing is ever really started."""
    folder = shutil.copytree(tiny_runs, tmp_path / "runs")
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda root, *given: (root / "jobs" / "spawned").touch())
    found, guessed = open_upload("mine.csv", ROWS.encode())
    UploadStore(folder / "uploads").store_upload(preprocess_upload(found.label, check_upload(found, guessed), 5), "mine")
    for name in ("waits", "broke"):
        job = Trainings(folder).submit(recipes.toy(), name)
        if name == "broke":
            assert begin_job(job.path.parent, job.id)
    (folder / "jobs" / "spawned").unlink()
    with open_table(folder / "jobs", write=True) as table:
        table.execute("DELETE FROM worker")
    monkeypatch.setattr(page_context, "RUNS", folder)
    return folder


def job(root: Path, state: str) -> Training:
    return next(job for job in Trainings(root).list_jobs() if job.state == state)


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"}


# Every way to change something on the machine, or to keep it busy.
ACTS: dict[str, Callable[[Path, Any], Any]] = {
    "train": lambda root, world: Trainings(root).submit(recipes.toy()),
    "stop": lambda root, world: Trainings(root).stop(job(root, "queued").id),
    "resume": lambda root, world: Trainings(root).resume(job(root, "interrupted").id),
    "discard": lambda root, world: Trainings(root).discard(job(root, "interrupted").id),
    "delete a run": lambda root, world: Trainings(root).delete_run("local-mine"),
    "send a file": lambda root, world: open_upload("mine.csv", ROWS.encode()),
    "keep a file": lambda root, world: UploadStore(root / "uploads").store_upload(world[1]),
    "plant": lambda root, world: UploadStore(root / "uploads").plant(PlantedConfig(users=60, items=60, interests=4)),
    "delete": lambda root, world: UploadStore(root / "uploads").delete_data(UploadStore(root / "uploads").list_stored()[0].id),
    "measure": lambda root, world: Measurements(root).submit(Plan()),
    "cancel a measurement": lambda root, world: Measurements(root).stop("x"),
    "compute a map": lambda root, world: Maps(root).submit(Run(root / "tiny"), Settings(), np.arange(4)),
    "cancel a map": lambda root, world: Maps(root).stop("x"),
    "ask a memory": lambda root, world: Meanings(root).submit(Run(root / "tiny")),
    "remove every expert": lambda root, world: Ablations(root).submit(Run(root / "tiny"), world[0].hash),
    "time a training": lambda root, world: estimate_time(Run(root / "tiny").config, world[0]),
}


@pytest.mark.parametrize("act", ACTS)
def test_the_services_refuse_it_and_nothing_changes(
    act: str, root: Path, tiny: tuple[Recommender, Dataset, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, guessed = open_upload("mine.csv", ROWS.replace("u1", "v1").encode())
    given = (tiny[1], preprocess_upload(found.label, check_upload(found, guessed), 5))
    monkeypatch.setenv(public.VARIABLE, "1")
    before = everything(root)
    with pytest.raises(InputError, match="off here, because this app is open to everyone"):
        ACTS[act](root, given)
    assert everything(root) == before


def test_what_waits_is_not_started(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(public.VARIABLE, "1")
    start_next(root)
    assert not (root / "jobs" / "spawned").exists() and job(root, "queued")
    monkeypatch.delenv(public.VARIABLE)
    start_next(root)
    assert (root / "jobs" / "spawned").exists(), "it would have been"


@pytest.mark.parametrize("value", ["", "0", "no", "false"])
def test_without_the_mode_all_is_allowed(value: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(public.VARIABLE, value)
    assert not public.is_public() and not public.refusal_reason("training")
    assert Trainings(root).submit(recipes.toy()).state == "queued"


# --- the pages -----------------------------------------------------------------------------------------------------------


def page(name: str, **address: str) -> AppTest:
    app = visit(name, address)
    assert not app.exception, app.exception
    return app


def said(app: AppTest) -> str:
    return " ".join(str(each.value) for each in [*app.info, *app.caption, *app.warning, *app.error])


# Page, address, what it says, and the controls that are gone or cannot be pressed.
OFF = [
    ("train/page.py", {}, "To train, or to stop or delete a training, is off here", ("train_start", "train_out")),
    ("data/page.py", {"dat_part": "Bring your own"}, "Bringing or keeping data of your own is off here", ("dat_file",)),
    ("data/page.py", {"dat_part": "Bring your own"}, "Deleting is off here", ("dat_ask",)),
    ("data/page.py", {"dat_part": "Plant a world"}, "Bringing or keeping data of your own is off here", ("dat_plant",)),
    ("speed/page.py", {}, "Measuring on this machine is off here", ("spd_start",)),
    ("traffic/page.py", {"trf_part": "Interest or activity?"}, "Measuring on this machine is off here", ("trf_ask",)),
    ("evidence/page.py", {"lrn_claim": "interest"}, "Measuring on this machine is off here", ("lrn_measure",)),
    ("experts/page.py", {}, "Measuring on this machine is off here", ("exp_all",)),
    ("map/page.py", {"map_layout": "UMAP"}, "Measuring on this machine is off here", ("map_compute",)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "address", "sentence", "keys"), OFF, ids=[f"{each[0]} {each[3][0]}" for each in OFF])
def test_pages_say_why_and_have_no_such_control(
    name: str, address: dict[str, str], sentence: str, keys: tuple[str, ...], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def controls(app: AppTest) -> list[str]:
        able = [each for each in (*app.button, *app.file_uploader) if not each.disabled]
        return [str(each.key) for each in able if str(each.key).startswith(keys)]

    app = page(name, **address)
    assert sentence not in said(app)
    open_for_me = controls(app)
    monkeypatch.setenv(public.VARIABLE, "1")
    app = page(name, **address)
    assert sentence in said(app) and not controls(app)
    assert open_for_me or name == "data/page.py", "the control is there without the mode, or this looks for nothing"


# --- the queue, and the server -------------------------------------------------------------------------------------------


def test_the_queue_has_an_end_and_says_so(root: Path) -> None:
    jobs = Trainings(root)
    while len([each for each in jobs.list_jobs() if each.state == "queued"]) < MAX_QUEUED:
        jobs.submit(recipes.toy())
    before = len(jobs.list_jobs())
    for more in (lambda: jobs.submit(recipes.toy()), lambda: jobs.resume(job(root, "interrupted").id)):
        with pytest.raises(InputError, match="20 trainings wait already, which is all that the queue holds"):
            more()
    assert len(jobs.list_jobs()) == before
    jobs.stop(job(root, "queued").id)
    assert jobs.submit(recipes.toy()).state == "queued"


@pytest.mark.parametrize(
    ("address", "mode", "warned"),
    [
        ("127.0.0.1", "", False), ("localhost", "", False), ("::1", "", False), ("127.0.0.2", "", False),
        ("unix:///tmp/elastic", "", False), (None, "", True), ("0.0.0.0", "", True), ("::", "", True), ("192.168.1.7", "", True),
        ("example.org", "", True), ("0.0.0.0", "1", False), (None, "1", False),
    ],
)  # fmt: skip
def test_an_open_address_is_warned_of(
    address: str | None, mode: str, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(public.VARIABLE, mode)
    monkeypatch.setattr(server.st, "get_option", {"server.address": address}.__getitem__)
    monkeypatch.setattr(server, "open_first_run", lambda load_screens: None)

    async def live() -> None:
        async with server.make_lifespan(list)(None):  # type: ignore[arg-type]
            pass

    done(live())
    assert ("start and stop trainings, send files, delete" in caplog.text) == warned


async def _ask(path: str) -> dict[str, Any]:
    """What the server answers: status and headers."""
    answer: dict[str, Any] = {"body": b""}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": [(b"x-own", b"1")]})
        await send({"type": "http.response.body", "body": b"own"})

    async def send(message: Any) -> None:
        answer.update({"status": message["status"], **dict(message["headers"])} if "status" in message else {})
        answer["body"] += message.get("body", b"")

    await server.Guard(app)({"type": "http", "path": path, "method": "PUT"}, None, send)  # type: ignore[arg-type]
    return answer


def test_no_file_gets_in_by_another_way_and_nobody_frames_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/_stcore/upload_file/a/b", "/below/_stcore/upload_file/a/b", "/"):
        found = done(_ask(path))
        assert found["status"] == 204 and found[b"x-own"] == b"1" and found["body"] == b"own"
        assert found[b"content-security-policy"] == b"frame-ancestors 'self'" and found[b"x-frame-options"] == b"SAMEORIGIN"
    monkeypatch.setenv(public.VARIABLE, "1")
    assert done(_ask("/"))["status"] == 204
    for path in ("/_stcore/upload_file/a/b", "/below/_stcore/upload_file/a/b"):
        found = done(_ask(path))
        assert found["status"] == 403 and b"off here" in found["body"] and found[b"x-frame-options"] == b"SAMEORIGIN"
