"""The service: its answers are the run's, nothing that it acknowledged is lost, and what is no request is 4xx in a sentence."""

import contextlib
import html
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
import torch
import uvicorn
from forked import free_port
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from test_streaming import N_ITEMS, made

from elastic_core import machine
from elastic_core.commands import main
from elastic_core.data import Catalog, Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.recommendations import ItemRanker
from elastic_core.runs import Run
from elastic_core.serving.app import Limits, create_app
from elastic_core.serving.events import Events
from elastic_core.serving.service import Conflict, ListService, Request

Tiny = tuple[Recommender, Dataset, Run]
ROOT = Path(__file__).resolve().parents[1]


class Served:
    """The service in a thread of this process, at an address."""

    def __init__(self, service: ListService, limits: Limits) -> None:
        self.port = free_port()
        config = uvicorn.Config(create_app(service, "tiny", limits), port=self.port, log_level="warning", access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)

    def close(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join()

    def post(self, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
        found = self.client.post(path, json=body)
        assert found.status_code == status, found.text
        return dict(found.json())


@pytest.fixture
def served(tiny: Tiny, tmp_path: Path) -> Iterator[Served]:
    ranker = tiny[2].ranker
    events = Events(tmp_path / "people.sqlite", ListService.events_to_keep(ranker))
    found = Served(ListService(ranker, events), Limits(rate=0))
    yield found
    found.close()


def ids(found: dict[str, Any]) -> list[str]:
    return [row["item"] for row in found["items"]]


def test_lists_of_everybody_are_those_of_the_run_one_by_one_and_together(served: Served, tiny: Tiny) -> None:
    _, data, run = tiny
    people = [str(raw) for raw in data.histories.user_ids]
    whole = run.recommend(people, k=5, exclude=["3"])
    expected = [rows["item"].tolist() for _, rows in whole.groupby("user", sort=False)]

    def ask(user: int) -> tuple[list[str], list[str]]:
        history = [str(data.catalog.ids[item]) for item in data.histories.user_items(user)]
        by_history = served.post("/recommend", history=[*history, "unheard"], k=5, exclude=["3"])
        assert (by_history["known"], by_history["unknown"], by_history["basis"]) == (len(history), 1, "history")
        return ids(served.post("/recommend", user=people[user], k=5, exclude=["3"])), ids(by_history)

    with ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(ask, range(len(people))))
    assert [user for user, _ in answered] == expected
    if not data.has_times or not run.model().reads_times:
        assert [history for _, history in answered] == expected


def test_people_are_followed_filtered_counted_and_forgotten(served: Served, tiny: Tiny) -> None:
    _, data, run = tiny
    raw = [str(one) for one in data.catalog.ids[1:9]]
    stranger = served.post("/recommend", user="zoë/ü 1", k=3)
    assert stranger["basis"] == "popularity" and ids(stranger) == ids(
        {"items": run.recommend(histories=[[]], k=3).to_dict("records")}
    )
    first = served.post("/events", user="zoë/ü 1", items=[*raw[:3], "unheard"], k=60)
    assert first["events"] == 4 and first["unknown"] == 1 and set(raw[:3]) <= set(ids(first)), "people often return here"
    assert not set(ids(served.post("/recommend", user="zoë/ü 1", k=60, seen=False))) & set(raw[:3])
    again = served.post("/events", user="zoë/ü 1", items=raw[3:5], after=4)
    assert again["events"] == 6 and "items" not in again
    assert "6 events" in served.post("/events", 409, user="zoë/ü 1", items=raw[5:6], after=4)["error"]
    assert served.client.get("/user", params={"user": "zoë/ü 1"}).json()["events"] == 6
    found = served.post("/recommend", user="zoë/ü 1", k=60, only=raw, exclude=raw[6:], seen=False)
    assert set(ids(found)) == set(raw) - set(raw[:5]) - set(raw[6:])
    assert set(raw[:5]) <= set(ids(served.post("/recommend", user="zoë/ü 1", k=60, seen=True)))
    assert served.post("/recommend", user="zoë/ü 1", only=["unheard"])["items"] == []
    known = str(data.histories.user_ids[0])
    held = len(data.histories.user_items(0))
    assert served.post("/events", user=known, items=raw[:1])["events"] == held + 1
    assert served.client.request("DELETE", "/user", params={"user": "zoë/ü 1"}).json()["forgotten"]
    assert served.client.get("/user", params={"user": "zoë/ü 1"}).json()["events"] == 0
    assert served.client.get("/ready").json()["items"] == data.catalog.n_items
    page = html.unescape(served.client.get("/").text)
    assert f"curl -X POST {served.client.base_url}/recommend" in page and f'"history": ["{data.catalog.ids[1]}"' in page
    assert served.client.get("/docs").status_code == 200


def test_what_is_no_request_is_told_in_one_sentence(served: Served) -> None:
    for path, body, status, words in (
        ("/recommend", {}, 422, "either a user or a history"),
        ("/recommend", {"user": "a", "history": []}, 422, "either"),
        ("/recommend", {"user": "a", "k": 0}, 422, "k: "),
        ("/recommend", {"history": "50"}, 422, "history: "),
        ("/recommend", {"history": [50]}, 422, "history.0: "),
        ("/recommend", {"user": "a", "many": 1}, 422, "many: "),
        ("/events", {"user": "a", "items": []}, 422, "items: "),
        ("/events", {"user": "x" * 300, "items": ["1"]}, 422, "user: "),
        ("/nothing", {}, 404, "not found"),
        ("/ready", {}, 405, "not allowed"),
        ("/recommend", {"history": ["x" * 190] * 2_000}, 413, "at most"),
    ):
        error = served.post(path, status, **body)["error"]
        assert words in error and "\n" not in error and len(error) < 250
    for text in (b"", b"{", b"\xff\xfe", b"[1]", b'{"user": "\\ud800"}'):
        assert 400 <= served.client.post("/recommend", content=text).status_code < 500


def test_a_caller_who_asks_too_often_is_told_so(tiny: Tiny) -> None:
    limited = Served(ListService(tiny[2].ranker), Limits(rate=3))
    try:
        found = [limited.client.get("/ready") for _ in range(20)]
        assert {one.status_code for one in found} == {200, 429}
        late = next(one for one in found if one.status_code == 429)
        assert late.headers["Retry-After"] == "1" and "requests a second" in late.json()["error"]
        time.sleep(0.5)
        assert limited.client.get("/ready").status_code == 200
        assert {limited.client.get("/health").status_code for _ in range(20)} == {200}, "who watches the process is never refused"
    finally:
        limited.close()


def test_a_service_that_takes_no_requests_is_alive_and_not_ready(tiny: Tiny) -> None:
    full = Served(ListService(tiny[2].ranker), Limits(rate=0, waiting=0))
    try:
        assert full.client.get("/health").json() == {"status": "ok"}
        ready = full.client.get("/ready")
        assert ready.status_code == 503 and "too many" in ready.json()["error"]
        assert full.client.post("/recommend", json={"user": "a"}).status_code == 429
    finally:
        full.close()


FUZZED = 8  # requests of each kind to each address


def test_fuzzed_requests_never_break_it(served: Served) -> None:
    import schemathesis  # not where tests are collected: half a second in every process

    schema, answered = schemathesis.openapi.from_url(f"http://127.0.0.1:{served.port}/openapi.json"), Counter[int]()
    for operation in (result.ok() for result in schema.get_all_operations()):
        for mode in schemathesis.GenerationMode:

            @settings(max_examples=FUZZED, suppress_health_check=list(HealthCheck), database=None)
            @given(case=operation.as_strategy(generation_mode=mode))
            def fuzz(case: schemathesis.Case) -> None:
                found = case.call()
                answered[found.status_code] += 1
                assert found.status_code < 500, found.text
                assert found.status_code == 200 or set(found.json()) == {"error"}

            with contextlib.suppress(Unsatisfiable):  # an address that takes nothing has nothing that could be wrong
                fuzz()
    assert answered[200] and answered[422] and sum(answered.values()) > 6 * FUZZED


# --- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["elastic", "elastic-slots", "sasrec", "gru4rec"])
def test_a_list_is_a_function_of_the_last_events_however_they_came(name: str) -> None:
    """One by one, many at a time, beside others, or by a service that has just started: the list after the same history."""
    ranker = ItemRanker(made(name), Catalog.from_count(N_ITEMS))
    events, generator = Events(None, ListService.events_to_keep(ranker)), np.random.default_rng(0)
    service = ListService(ranker, events, with_data=False)
    log: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    for turn in range(60):
        users = [user for user in log if generator.random() < 0.6]
        new = {user: [str(i) for i in generator.integers(1, N_ITEMS + 4, generator.integers(1, 4))] for user in users}
        service.answer([Request(user=user, events=items, k=int(generator.integers(0, 5))) for user, items in new.items()])
        for user, items in new.items():
            log[user] += items
        if turn % 7 == 6:
            restarted = ListService(ranker, events, with_data=False)
            requests = [[Request(user=user, k=N_ITEMS) for user in log] for _ in range(2)]
            service.answer(requests[0])
            restarted.answer(requests[1])
            expected = ranker.recommend(histories=log, k=N_ITEMS)
            for row, answers in enumerate(zip(*requests, strict=True)):
                for answered in answers:
                    assert [int(line["item"]) for line in answered.answer["items"]] == [i for i in expected.items[row] if i]
    assert len(log["a"]) > ranker.model.length


def test_only_whole_transactions_are_kept_and_one_process_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "people.sqlite"
    events = Events(path, keep=100)
    with events.transaction():
        events.add_items("a", 0, ["1", "2", "3"])
    with pytest.raises(Exception, match="UNIQUE"), events.transaction():
        events.add_items("b", 0, ["x"])
        events.add_items("a", 2, ["again"])
    assert events.count_events("b") == 0 and (events.count_events("a"), events.last_items("a")) == (3, ["1", "2", "3"])
    with pytest.raises(InputError, match="another process"):
        Events(path, keep=100)
    for n in range(4, 500):
        with events.transaction():
            events.add_items("a", n - 1, [str(n)])
    assert (events.count_events("a"), events.last_items("a")) == (499, [str(n) for n in range(400, 500)])
    assert events._database.execute("SELECT count(*) FROM events").fetchone()[0] < 100 + 64 + 1
    events.close()
    (tmp_path / "other.sqlite").write_text("no database at all, though somebody calls it one")
    with pytest.raises(InputError, match="cannot be used"):
        Events(tmp_path / "other.sqlite", keep=1)
    with pytest.raises(InputError, match="no folder"):
        Events(tmp_path / "no" / "people.sqlite", keep=1)


def test_what_the_disk_does_not_take_is_not_acknowledged(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    service = ListService(tiny[2].ranker)
    service.answer([Request(user="a", events=["1"])])

    def full(*given: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(service.events, "add_items", full)
    failed = Request(user="a", events=["2"])
    service.answer([failed])
    assert isinstance(failed.error, OSError)
    monkeypatch.undo()
    asked, late = Request(user="a", count=True), Request(user="a", events=["2"], after=0)
    service.answer([asked, late])
    assert asked.answer["events"] == 1 and isinstance(late.error, Conflict)


def started(folder: Path, states: Path, port: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "elastic_core", "serve", str(folder)]
    words += ["--port", str(port), "--states", str(states), "--rate", "0"]
    process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"http://127.0.0.1:{port}/ready", timeout=5)
            return process
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(process.communicate()[1].decode())


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill")
def test_what_was_acknowledged_outlives_a_kill(tiny_runs: Path, tiny: Tiny, tmp_path: Path) -> None:
    data, states, port = tiny[1], tmp_path / "people.sqlite", free_port()
    process = started(tiny_runs / "tiny", states, port)
    acknowledged: dict[str, int] = {}
    sent: dict[str, list[str]] = {f"p{i}": [] for i in range(6)}
    items = itertools.cycle(str(raw) for raw in data.catalog.ids[1:])

    def send(user: str) -> None:
        try:
            with httpx.Client(timeout=20) as client:
                while True:
                    sent[user].append(next(items))
                    body = {"user": user, "items": sent[user][-1:], "after": len(sent[user]) - 1}
                    found = client.post(f"http://127.0.0.1:{port}/events", json=body)
                    assert found.status_code == 200, found.text
                    acknowledged[user] = found.json()["events"]
        except httpx.TransportError:
            return

    threads = [threading.Thread(target=send, args=(user,)) for user in sent]
    for thread in threads:
        thread.start()
    enough = 100_000 if "ELASTIC_LONG" in os.environ else 100
    while sum(acknowledged.values()) < enough and any(thread.is_alive() for thread in threads):
        time.sleep(0.02)
    process.kill()
    process.wait()
    for thread in threads:
        thread.join()
    events = Events(states, keep=10_000)  # the file is nobody's any more
    for user, events_sent in sent.items():
        total = events.count_events(user)
        assert acknowledged.get(user, 0) <= total <= len(events_sent) and events.last_items(user) == events_sent[:total]
    found = Request(user="p0", k=5)
    ListService(tiny[2].ranker, events).answer([found])
    assert len(found.answer["items"]) == 5
    events.close()


def test_threads_are_chosen_by_measuring_and_fewer_where_more_hardly_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "thread_counts", lambda: [1, 2, 4])
    clock = [0.0]
    monkeypatch.setattr(machine, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    try:
        for seconds, expected in (({1: 6.0, 2: 2.0, 4: 1.95}, 2), ({1: 1.0, 2: 5.0, 4: 5.0}, 1), ({1: 9.0, 2: 6.0, 4: 2.0}, 4)):

            def job(takes: dict[int, float] = seconds) -> None:
                clock[0] += takes[torch.get_num_threads()]

            assert machine.choose_threads(job, rounds=3) == expected == torch.get_num_threads()
    finally:
        torch.set_num_threads(1)


def test_the_cores_that_others_use_are_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds by the clock, of all processes and of this one, as if read."""
    seconds = [(0, 100.0, 5.0), (0.1, 100.3, 5.1), (1, 104.0, 8.9), (2, 105.2, 8.9), (3, 109.2, 8.9), (4, 109.3, 8.9)]
    worked = iter(seconds)
    monkeypatch.setattr(machine, "_processor_seconds", lambda: next(worked))
    monkeypatch.setattr(machine, "thread_counts", lambda: [1, 2, 4])
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    spare = machine.SpareCores()
    assert spare.count_spare() == 1, "too soon to tell"
    assert [spare.count_spare(), spare.count_spare(), spare.count_spare()] == [4, 3, 1], (
        "0.2, 1.2 and 4 cores were used by others"
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert spare.count_spare() == 3, "what somebody has said holds"
    monkeypatch.undo()
    before, after = machine._processor_seconds(), machine._processor_seconds()
    if sys.platform == "linux":
        assert before is not None and after is not None and all(0 <= x <= y for x, y in zip(before, after, strict=True))


def test_wrong_words_are_one_sentence(tiny_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tiny_runs / "tiny")
    for words in (
        ["--port", "0"],
        ["--max-batch", "0"],
        ["--threads", "0"],
        ["--states", str(tmp_path / "no" / "x")],
    ):
        assert main(["serve", run, *words]) == 2
        assert capsys.readouterr().err.strip().count("error:") == 1
