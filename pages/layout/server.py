"""What stands around the pages: the server’s start, the headers of its answers, old addresses, what a failed page says."""

import ctypes
import gc
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from logging import ERROR, getLogger
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import streamlit as st
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from elastic_core.errors import InputError
from elastic_core.services import public

if TYPE_CHECKING:
    from pages.components.cache import OpenRun

# --- start ---

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # as malloc.h has them
QUIET = 20.0  # seconds that the first visitor has before slow questions are answered in advance
BETWEEN_COLLECTIONS = 20.0  # seconds between two collections of garbage
NO_VISITOR = "streamlit.runtime.scriptrunner_utils.script_run_context"  # its warning that nobody asks for what is opened here
LoadScreens = Callable[[], Sequence[Callable[["OpenRun"], None]]]


def make_lifespan(load_screens: LoadScreens) -> Callable[[st.App], AbstractAsyncContextManager[None]]:
    """The life of the server. `load_screens` imports the screens and returns what others would have their first visitor wait for.

    It saves the first visitor 3.4 s of processor time, and the first of Evidence another 4 s."""

    @asynccontextmanager
    async def life(app: st.App) -> AsyncIterator[None]:
        if warning := public.exposure_warning(st.get_option("server.address")):
            getLogger(__name__).warning(warning)
        gc.disable()  # until the first run is open: to import libraries and collect at once takes a third longer
        Thread(target=open_first_run, args=(load_screens,), daemon=True).start()
        Thread(target=collect_garbage, daemon=True).start()
        yield

    return life


def share_memory_pools() -> None:
    """Let all threads of the server use two pools of memory, and give large pieces back to the system at once.

    Each rerun is a thread, and glibc gives every thread a pool: in 500 reruns the server takes up to 1,950 MB instead of 1,040.
    There is nothing to do elsewhere than on Linux."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            libc = ctypes.CDLL(None)
            libc.mallopt(M_ARENA_MAX, 2)
            libc.mallopt(M_MMAP_THRESHOLD, 2**22)  # bytes; else it grows with each large tensor


def freeze_objects() -> None:
    """Take what is there now out of garbage collection: to look through what the libraries keep takes 200 ms, while all visitors
    wait."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def open_first_run(load_screens: LoadScreens) -> None:
    """Import torch, pandas and plotly, open the first run, and later answer what takes long."""
    getLogger(NO_VISITOR).setLevel(ERROR)
    share_memory_pools()
    try:
        slow_questions = load_screens()
        from pages.layout import sidebar  # imports the libraries, too: not before the server is up

        first = sidebar.open_default_run()
    finally:
        gc.freeze()  # what is garbage already goes below
        gc.enable()
    time.sleep(QUIET)
    if first is not None:
        for ask in slow_questions:
            with suppress(InputError):
                ask(first)
    freeze_objects()


def collect_garbage() -> None:
    """Every so often, as long as the server lives. Streamlit would do it after every rerun (runner.postScriptGC): a third of the
    server's time."""
    while True:
        time.sleep(BETWEEN_COLLECTIONS)
        gc.collect()


# --- headers and uploads ---

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
HEADERS = ((b"content-security-policy", b"frame-ancestors 'self'"), (b"x-frame-options", b"SAMEORIGIN"))
FILES = "/_stcore/upload_file"


class Guard:
    """ASGI middleware: no other site may frame the app, and in public mode no file is taken in at all.

    A page without an uploader is no protection: Streamlit's address for files takes them from any session."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif FILES in scope["path"] and public.is_public():
            await guarded({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await guarded({"type": "http.response.body", "body": f"{public.refusal_reason('upload')}.".encode()})
        else:
            await self.app(scope, receive, guarded)


# --- old addresses ---

DEPTH = "ev_depth"
OLD_PAGES = {"learned": "Claims", "results": "Systems", "compare": "Systems"}  # to which depth of Evidence


def _redirect_to_evidence(request: Request) -> RedirectResponse:
    """Links to a page that is part of Evidence now go on working, with all they ask for; also below a path of its own."""
    page = request.url.path.strip("/").rpartition("/")[2]
    return RedirectResponse(f"evidence?{urlencode({DEPTH: OLD_PAGES[page], **request.query_params})}", status_code=307)


ROUTES = [Route(f"/{page}", _redirect_to_evidence) for page in OLD_PAGES]


# --- failures ---


def explain_failure(error: Exception) -> bool:
    """What a visitor reads when a page fails in a way that nobody foresaw: one sentence and a way on. The log has the rest.

    Called by Streamlit, inside the script, with what the script did not catch; True: its own box is not shown."""
    kind = type(error).__name__
    with st.container(key="failure"):
        st.error(f"This page met something that it was not made for ({kind}). Nothing is lost: trained runs and files are kept.")
        st.link_button("Open the page without its settings", st.context.url or "/", icon=":material/restart_alt:")
    return True
