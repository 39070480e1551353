"""The addresses of the service: what is asked, what is answered, and what is refused, each time in one sentence.

Requests are JSON. What cannot be answered is 4xx with {"error": sentence}: 400 and 422 for what is no such request, 409 where
somebody has another number of events than the caller thinks, 413 for one that is too large, 429 for too many at a time.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.exceptions import HTTPException
from starlette.requests import Request as Asked
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastic_core import text
from elastic_core.errors import InputError
from elastic_core.serving.answers import Answers, Conflict, Request
from elastic_core.serving.desk import Busy, Desk

LONGEST_ID, MOST_IDS, MOST_K = 200, 10_000, 1_000
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # borders of the histogram
MOST_CALLERS = 10_000  # addresses whose rate is remembered

Id = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID)]
Ids = Annotated[list[Id], Field(max_length=MOST_IDS)]


@dataclass(frozen=True)
class Limits:
    """What one caller may do. `rate`: requests a second of one address, 0 for any number."""

    rate: float = 500.0
    body: int = 2**18  # bytes
    waiting: int = 512  # requests that wait at a time
    together: int = 64  # requests that are answered together


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


EITHER: list[Any] = [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in ("history", "person")]


class ListAsked(Strict):
    """A list for a person, or after a history."""

    model_config = ConfigDict(json_schema_extra={"oneOf": EITHER})
    history: Ids | None = Field(None, description="ids of items, oldest first; instead of a person")
    person: Id | None = Field(None, description="somebody whose events were sent, or of the data that the run learned from")
    k: int = Field(10, ge=1, le=MOST_K, description="how many items")
    exclude: Ids = Field([], description="items never to suggest")
    only: Ids | None = Field(None, description="suggest these items alone")
    seen: bool = Field(False, description="also items of the history")


class EventsAsked(Strict):
    """What a person did, oldest first; with `k` also a list after it."""

    person: Id
    items: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS)]
    after: int | None = Field(None, ge=0, le=2**53, description="how many events there were before: else nothing is kept (409)")
    k: int = Field(0, ge=0, le=MOST_K, description="also the next k items")


class Suggestion(BaseModel):
    item: str
    title: str
    score: float


class ListAnswer(BaseModel):
    items: list[Suggestion]
    basis: str = Field(description="what the list rests on: history, or popularity where nothing is known")
    known: int | None = Field(None, description="of a history: items that the run knows")
    unknown: int | None = Field(None, description="of a history: items that it does not, which were left out")


class EventsAnswer(BaseModel):
    person: str
    events: int = Field(description="how many there are now")
    unknown: int = Field(description="of those sent, items that the run does not know; they are kept and change no list")
    items: list[Suggestion] | None = None
    basis: str | None = None


class PersonAnswer(BaseModel):
    person: str
    events: int


class Forgotten(BaseModel):
    person: str
    forgotten: bool = Field(description="whether anything was kept")


class Health(BaseModel):
    status: str
    run: str
    model: str
    items: int


class Refusal(BaseModel):
    error: str


REFUSED: dict[int | str, dict[str, Any]] = {
    code: {"model": Refusal, "description": what}
    for code, what in ((400, "no request"), (413, "too large"), (422, "no such request"), (429, "too many at a time"))
}


class ServiceMetrics:
    """What the metrics tell, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("elastic_requests", "requests answered", ("path", "status"), registry=self.registry)
        self.seconds = Histogram("elastic_seconds", "time to answer", ("path",), buckets=SECONDS, registry=self.registry)
        self.batch = Histogram(
            "elastic_batch", "requests answered together", buckets=(1, 2, 4, 8, 16, 32, 64), registry=self.registry
        )
        self.events = Counter("elastic_events", "events kept", registry=self.registry)
        self.unknown = Counter("elastic_unknown_items", "ids of items that the run does not know", registry=self.registry)
        self.lists = Counter("elastic_lists", "lists given", ("basis",), registry=self.registry)
        self.people = Gauge("elastic_people_in_memory", "people whose states are in memory", registry=self.registry)


def create_app(answers: Answers, run: str, limits: Limits = Limits()) -> FastAPI:
    """The service for a run, by the name that it is to show."""
    measured, config = ServiceMetrics(), answers.lister.model.config

    @asynccontextmanager
    async def open_desk(app: FastAPI) -> AsyncIterator[None]:
        app.state.desk = Desk(answers, limits.together, limits.waiting, measured.batch.observe)
        yield
        app.state.desk.close()
        answers.events.close()

    app = FastAPI(
        title=f"{run}: the next items", description=__doc__, version="1", lifespan=open_desk, responses=REFUSED,
        openapi_url="/openapi.json",
    )  # fmt: skip

    async def ask(request: Request) -> dict[str, Any]:
        found = (await app.state.desk.ask(request)).answer
        measured.unknown.inc(found.get("unknown") or 0)
        if "basis" in found:
            measured.lists.labels(found["basis"]).inc()
        return found

    @app.get("/", include_in_schema=False)
    async def about() -> Response:
        return Response(_page(run, config.name, answers.lister.catalog.n_items), media_type="text/html")

    @app.get("/health", response_model=Health, summary="whether the service answers, and with which run")
    async def health() -> Response:
        return _json({"status": "ok", "run": run, "model": config.name, "items": answers.lister.catalog.n_items})

    @app.post("/recommend", response_model=ListAnswer, summary="the next items of a person, or after a history")
    async def recommend(asked: ListAsked) -> Response:
        if (asked.history is None) == (asked.person is None):
            raise InputError("give either a person or a history")
        return _json(await ask(Request(**asked.model_dump())))

    @app.post(
        "/events", response_model=EventsAnswer, summary="what a person did: on the disk when this is answered",
        responses={409: {"model": Refusal, "description": "another number of events than `after`"}},
    )  # fmt: skip
    async def events(asked: EventsAsked) -> Response:
        found = await ask(Request(person=asked.person, events=asked.items, after=asked.after, k=asked.k))
        measured.events.inc(len(asked.items))
        return _json(found)

    @app.get("/person", response_model=PersonAnswer, summary="how many events there are of a person")
    async def person(person: Annotated[Id, Query()]) -> Response:
        return _json(await ask(Request(person=person, count=True)))

    @app.delete("/person", response_model=Forgotten, summary="forget what a person did here")
    async def forget(person: Annotated[Id, Query()]) -> Response:
        return _json(await ask(Request(person=person, forget=True)))

    @app.get("/metrics", summary="for Prometheus", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        measured.people.set(len(answers.people))
        return Response(generate_latest(measured.registry), media_type="text/plain; version=0.0.4")

    def refuse(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
        return _json({"error": sentence}, status, headers)

    @app.exception_handler(RequestValidationError)
    async def no_request(asked: Asked, error: RequestValidationError) -> Response:
        return refuse(422, _sentence(error))

    @app.exception_handler(InputError)
    async def no_input(asked: Asked, error: InputError) -> Response:
        return refuse(409 if isinstance(error, Conflict) else 422, str(error))

    @app.exception_handler(Busy)
    async def too_busy(asked: Asked, error: Busy) -> Response:
        return refuse(429, "too many requests are waiting; ask again in a second", {"Retry-After": "1"})

    @app.exception_handler(HTTPException)
    async def no_address(asked: Asked, error: HTTPException) -> Response:
        allowed = {
            method
            for route in app.routes
            if getattr(route, "path", "") == asked.url.path
            for method in getattr(route, "methods", ())
        }
        headers = {"Allow": ", ".join(sorted(allowed))} if error.status_code == 405 else error.headers
        return refuse(error.status_code, f"{asked.url.path[:100]}: {str(error.detail).lower()}", headers)

    paths = {"/", "/health", "/recommend", "/events", "/person", "/metrics", "/docs", "/openapi.json"}
    app.add_middleware(Gate, limits=limits, measured=measured, paths=paths)
    return app


class Gate:
    """Before everything else: how large, how often; and how long it took."""

    def __init__(self, app: ASGIApp, limits: Limits, measured: ServiceMetrics, paths: set[str]) -> None:
        self.app, self.limits, self.measured, self.paths = app, limits, measured, paths
        self.left: dict[str, tuple[float, float]] = {}  # of every address: requests it may still make, and when that was so

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        path = scope["path"] if scope["path"] in self.paths else "other"
        try:
            if not self._may(scope):
                sentence = f"more than {self.limits.rate:g} requests a second; ask again in a second"
                await _json({"error": sentence}, 429, {"Retry-After": "1"})(scope, receive, sent)
                return
            body = await self._body(receive)
            if body is None:
                sentence = f"a request has at most {self.limits.body:,} bytes"
                await _json({"error": sentence}, 413, {"Connection": "close"})(scope, receive, sent)
                return
            await self.app(scope, _once(body, receive), sent)
        finally:
            self.measured.requests.labels(path, str(status)).inc()
            self.measured.seconds.labels(path).observe(time.perf_counter() - began)

    def _may(self, scope: Scope) -> bool:
        """A bucket an address: `rate` requests come in a second, and at most two seconds' worth lie in it."""
        rate, now = self.limits.rate, time.monotonic()
        if not rate:
            return True
        who = (scope.get("client") or ("",))[0]
        left, since = self.left.pop(who, (2 * rate, now))
        left = min(left + rate * (now - since), 2 * rate)
        may = left >= 1
        self.left[who] = (left - may, now)
        if len(self.left) > MOST_CALLERS:
            self.left.pop(next(iter(self.left)))
        return may

    async def _body(self, receive: Receive) -> bytes | None:
        """All of it; None where it is too large."""
        parts, size = list[bytes](), 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return b"".join(parts)
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.body:
                return None
            if not message.get("more_body"):
                return b"".join(parts)


def _once(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    given = False

    async def read() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


def _json(answer: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(text, status, headers, "application/json")


def _sentence(error: RequestValidationError) -> str:
    """The first thing that is wrong, and where."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the request is no JSON: {str(first.get('ctx', {}).get('error', 'it cannot be read')).lower()}"
    place = ".".join(str(part) for part in first["loc"][1:])[:100]
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _page(run: str, model: str, items: int) -> str:
    name = text.html(run)
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>
<body style="font: 16px/1.5 sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em">
<h1>{name}</h1><p>{text.html(model)} over {items:,} items. Ask for the next items:</p>
<pre>curl -X POST localhost:8600/recommend -H 'content-type: application/json' -d '{{"history": ["50", "181"], "k": 5}}'
curl -X POST localhost:8600/events -H 'content-type: application/json' -d '{{"person": "anna", "items": ["50"], "k": 5}}'
curl -X POST localhost:8600/recommend -H 'content-type: application/json' -d '{{"person": "anna", "exclude": ["181"]}}'</pre>
<p><a href="/docs">Try every address</a> (needs the internet for its looks), <a href="/openapi.json">OpenAPI</a>,
<a href="/health">health</a>, <a href="/metrics">metrics</a>.</p></body></html>"""
