"""The server fetches its libraries and opens the first run while the browser fetches its files."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from logging import ERROR, getLogger
from threading import Thread
from typing import TYPE_CHECKING

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services import public

if TYPE_CHECKING:
    from pages.kit.cache import OpenRun

QUIET = 20.0  # seconds for the first visitor, before those are asked
WARNS = "streamlit.runtime.scriptrunner_utils.script_run_context"  # that no visitor asks for what is opened here


def up(
    load_screens: Callable[[], Sequence[Callable[["OpenRun"], None]]],
) -> Callable[[st.App], AbstractAsyncContextManager[None]]:
    """The life of a server, from before its first visitor to after its last. `load_screens` imports what the first page needs,
    and returns what the others would have their first visitor wait for."""

    @asynccontextmanager
    async def life(app: st.App) -> AsyncIterator[None]:
        if warning := public.exposed(st.get_option("server.address")):
            getLogger(__name__).warning(warning)
        Thread(target=begin, args=(load_screens,), daemon=True).start()
        yield

    return life


def begin(load_screens: Callable[[], Sequence[Callable[["OpenRun"], None]]]) -> None:
    """Load the screens, open the first run, and then ask what takes long, once the first visitor has had time to arrive."""
    getLogger(WARNS).setLevel(ERROR)
    warm = load_screens()  # with torch, pandas and plotly behind them: not before the server is up
    from pages.frame import sidebar

    if first := sidebar.open_first():
        time.sleep(QUIET)
        for ask in warm:
            with suppress(InputError):
                ask(first)
