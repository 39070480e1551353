"""The addresses of the service: requests, answers, and what is refused, each time in one sentence.

Requests are JSON. What cannot be answered is 4xx with {"error": sentence}: 400 and 422 for what is no such request, 409 where a
user has another number of events than the caller thinks, 413 for one that is too large, 429 for too many at a time. Only /ready
answers 503, while no request is taken.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.exceptions import HTTPException
from starlette.requests import Request as HTTPRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elastic_core import text
from elastic_core.data import Catalog
from elastic_core.errors import InputError
from elastic_core.serving.batcher import Batcher, Busy
from elastic_core.serving.service import Conflict, ListService, Request

MAX_ID, MAX_IDS, MAX_K = 200, 10_000, 1_000
HEALTH = "/health"

Id = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID)]
Ids = Annotated[list[Id], Field(max_length=MAX_IDS)]


@dataclass(frozen=True)
class Limits:
    """What one caller may do."""

    rate: float = 500.0  # requests a second from one address; 0: any number
    body: int = 2**18  # bytes of a request
    waiting: int = 512  # requests that wait at a time
    batch: int = 64  # requests that are answered together


# --- requests and answers ----------------------------------------------------------------------------------------------


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


HISTORY_OR_USER: list[Any] = [
    {"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in ("history", "user")
]


class ListRequest(Strict):
    """A list for a user, or after a history."""

    model_config = ConfigDict(json_schema_extra={"oneOf": HISTORY_OR_USER})
    history: Ids | None = Field(None, description="ids of items, oldest first; instead of a user")
    user: Id | None = Field(None, description="a user whose events were sent, or of the data that the run learned from")
    k: int = Field(10, ge=1, le=MAX_K, description="how many items")
    exclude: Ids = Field([], description="items never to suggest")
    only: Ids | None = Field(None, description="suggest these items alone")
    seen: bool | None = Field(None, description="also items of the history; by default where people often choose such")


class EventsRequest(Strict):
    """What a user did, oldest first; with `k` also a list after it."""

    user: Id
    items: Annotated[list[Id], Field(min_length=1, max_length=MAX_IDS)]
    after: int | None = Field(None, ge=0, le=2**53, description="how many events there were before: else nothing is kept (409)")
    k: int = Field(0, ge=0, le=MAX_K, description="also the next k items")


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
    user: str
    events: int = Field(description="how many there are now")
    unknown: int = Field(description="of those sent, items that the run does not know; they are kept and change no list")
    items: list[Suggestion] | None = None
    basis: str | None = None


class UserAnswer(BaseModel):
    user: str
    events: int


class ForgetAnswer(BaseModel):
    user: str
    forgotten: bool = Field(description="whether anything was kept")


class HealthAnswer(BaseModel):
    status: str


class ReadyAnswer(BaseModel):
    status: str
    run: str
    model: str
    items: int


class Refusal(BaseModel):
    error: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Refusal, "description": what}
    for code, what in ((400, "no request"), (413, "too large"), (422, "no such request"), (429, "too many at a time"))
}
NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Refusal, "description": "it takes no requests now"}}
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"model": Refusal, "description": "another number of events than `after`"}
}  # fmt: skip


# --- addresses ---------------------------------------------------------------------------------------------------------


def create_app(service: ListService, run: str, limits: Limits = Limits()) -> FastAPI:
    """The service for a run, by the name that it is to show."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.batcher = Batcher(service, limits.batch, limits.waiting)
        yield
        app.state.batcher.close()
        service.events.close()

    app = FastAPI(title=f"{run}: the next items", description=__doc__, version="1", lifespan=lifespan, responses=REFUSALS)
    app.add_middleware(LimitRequests, rate=limits.rate, max_body=limits.body)
    _add_error_handlers(app)
    model, catalog = service.ranker.model.config.name, service.ranker.catalog

    async def answer(request: Request) -> Response:
        return _json_response((await app.state.batcher.submit(request)).answer)

    @app.get("/", include_in_schema=False)
    async def page(request: HTTPRequest) -> Response:
        return Response(_page_html(run, model, catalog, str(request.base_url)), media_type="text/html")

    @app.get(HEALTH, response_model=HealthAnswer, summary="whether the process lives; never refused, however busy it is")
    async def health() -> Response:
        return _json_response({"status": "ok"})

    @app.get("/ready", response_model=ReadyAnswer, responses=NOT_READY, summary="whether it can answer now, and for which run")
    async def ready() -> Response:
        if not app.state.batcher.is_ready:
            return _json_response({"error": "too many requests are waiting"}, 503, {"Retry-After": "1"})
        return _json_response({"status": "ok", "run": run, "model": model, "items": catalog.n_items})

    @app.post("/recommend", response_model=ListAnswer, summary="the next items of a user, or after a history")
    async def recommend(body: ListRequest) -> Response:
        if (body.history is None) == (body.user is None):
            raise InputError("give either a user or a history")
        return await answer(Request(**{**body.model_dump(), "user": body.user or ""}))

    @app.post(
        "/events", response_model=EventsAnswer, responses=CONFLICT, summary="what a user did: on the disk when this is answered"
    )
    async def events(body: EventsRequest) -> Response:
        return await answer(Request(user=body.user, events=body.items, after=body.after, k=body.k))

    @app.get("/user", response_model=UserAnswer, summary="how many events there are of a user")
    async def count(user: Annotated[Id, Query()]) -> Response:
        return await answer(Request(user=user, count=True))

    @app.delete("/user", response_model=ForgetAnswer, summary="forget what a user did here")
    async def forget(user: Annotated[Id, Query()]) -> Response:
        return await answer(Request(user=user, forget=True))

    return app


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: HTTPRequest, error: RequestValidationError) -> Response:
        return _json_response({"error": _first_error(error)}, 422)

    @app.exception_handler(InputError)
    async def invalid_input(request: HTTPRequest, error: InputError) -> Response:
        return _json_response({"error": str(error)}, 409 if isinstance(error, Conflict) else 422)

    @app.exception_handler(Busy)
    async def too_busy(request: HTTPRequest, error: Busy) -> Response:
        return _json_response({"error": "too many requests are waiting; ask again in a second"}, 429, {"Retry-After": "1"})

    @app.exception_handler(HTTPException)
    async def http_error(request: HTTPRequest, error: HTTPException) -> Response:
        headers = error.headers
        if error.status_code == 405:
            routes = [route for route in app.routes if getattr(route, "path", "") == request.url.path]
            headers = {"Allow": ", ".join(sorted({method for route in routes for method in getattr(route, "methods", ())}))}
        return _json_response({"error": f"{request.url.path[:100]}: {str(error.detail).lower()}"}, error.status_code, headers)


# --- limits ------------------------------------------------------------------------------------------------------------


class LimitRequests:
    """Refuses a request with more than `max_body` bytes, and one address that sends more than `rate` requests a second.

    A token bucket per address: `rate` tokens come in a second, at most two seconds' worth lie in it, a request takes one.
    """

    MAX_ADDRESSES = 10_000  # whose buckets are remembered

    def __init__(self, app: ASGIApp, rate: float, max_body: int) -> None:
        self.app, self.rate, self.max_body = app, rate, max_body
        self.buckets: dict[str, tuple[float, float]] = {}  # by address: tokens, and the time when there were so many

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.rate and scope["path"] != HEALTH and not self._take_token((scope.get("client") or ("",))[0]):
            sentence = f"more than {self.rate:g} requests a second; ask again in a second"
            await _json_response({"error": sentence}, 429, {"Retry-After": "1"})(scope, receive, send)
            return
        size = 0

        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.max_body:
                raise HTTPException(413, f"a request has at most {self.max_body:,} bytes", {"Connection": "close"})
            return message

        await self.app(scope, receive_limited, send)

    def _take_token(self, address: str) -> bool:
        now, most = time.monotonic(), 2 * self.rate
        tokens, since = self.buckets.pop(address, (most, now))
        tokens = min(tokens + self.rate * (now - since), most)
        allowed = tokens >= 1
        self.buckets[address] = (tokens - allowed, now)
        if len(self.buckets) > self.MAX_ADDRESSES:
            self.buckets.pop(next(iter(self.buckets)))  # the address that asked longest ago
        return allowed


# --- text --------------------------------------------------------------------------------------------------------------


def _json_response(answer: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(body, status, headers, "application/json")


def _first_error(error: RequestValidationError) -> str:
    """The first thing that is wrong, and where."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the request is no JSON: {str(first.get('ctx', {}).get('error', 'it cannot be read')).lower()}"
    place = ".".join(str(part) for part in first["loc"][1:])[:100]
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _page_html(run: str, model: str, catalog: Catalog, address: str) -> str:
    """What the service answers at its root: commands that work here, with items of this run."""
    name, first, last = text.escape_html(run), *(json.dumps(str(catalog.ids[at])) for at in (1, catalog.n_items))

    def curl(route: str, body: str) -> str:
        return text.escape_html(
            f"curl -X POST {address}{route} -H 'content-type: application/json' -d {text.shell_command(body)}"
        )

    commands = [
        curl("recommend", f'{{"history": [{first}, {last}], "k": 5}}'),
        curl("events", f'{{"user": "anna", "items": [{first}], "k": 5}}'),
        curl("recommend", f'{{"user": "anna", "exclude": [{last}]}}'),
    ]
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>
<body style="font: 16px/1.5 sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em">
<h1>{name}</h1><p>{text.escape_html(model)} over {catalog.n_items:,} items. Ask for the next items:</p>
<pre>{chr(10).join(commands)}</pre>
<p><a href="/docs">Try every address</a> (needs the internet for its looks), <a href="/openapi.json">OpenAPI</a>,
<a href="/ready">ready</a>, <a href="/health">health</a>.</p></body></html>"""
