"""The server fetches its libraries and opens the first run while the browser fetches its files."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from logging import ERROR, getLogger
from threading import Thread

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services import public

QUIET = 20.0  # seconds for the first visitor, before those are asked
WARNS = "streamlit.runtime.scriptrunner_utils.script_run_context"  # that no visitor asks for what is opened here


@asynccontextmanager
async def up(app: st.App) -> AsyncIterator[None]:
    """The life of the server, from before its first visitor to after its last."""
    if warning := public.exposed(st.get_option("server.address")):
        getLogger(__name__).warning(warning)
    Thread(target=_begin, daemon=True).start()
    yield


def _begin() -> None:
    getLogger(WARNS).setLevel(ERROR)
    # With torch, pandas and plotly behind them: not before the server is up. First what navigation.py imports, in its order:
    # two threads that enter a package by two doors may each find half of it.
    from pages.frame import dress, present, screens, sidebar, worlds  # noqa: F401, I001
    from pages.kit import plot, view  # noqa: F401
    from pages.tour import panel  # noqa: F401

    from pages.evidence import cached as evidence
    from pages.experts import answers as experts
    from pages.kit import person  # noqa: F401
    from pages.traffic import answers as traffic

    if first := sidebar.open_first():
        time.sleep(QUIET)
        for screen in (experts, traffic, evidence):  # those that ask everybody, or every run
            with suppress(InputError):
                screen.warm(first)
