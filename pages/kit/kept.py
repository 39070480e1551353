"""What the app keeps between reruns is bounded by bytes, all caches of objects together: what was used longest ago goes first.

Streamlit's caches count entries; a figure, a model and somebody's table are one entry each. `kept` is `st.cache_resource`
whose entries stand in one ledger with their size. What they hand out is shared by all visitors and read-only. `copied` is
`st.cache_data`. Both are told what a function is asked about (a run, its model, data), and see for themselves whether it is still
the same.
"""

import functools
import hashlib
import inspect
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core import disk
from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.runs import CONFIG, EVENTS, WEIGHTS, Run, ranks

MOST = 512 * 2**20  # bytes of all kept objects
PLAIN = {str, int, float, bool, type(None)}  # cells that say by their text what they are
SAMPLE = 1000  # of a long list or column, to tell its size by
Given, Made = ParamSpec("Given"), TypeVar("Made")


class Shelf(dict[Any, Any]):
    """The latest `most` things that were made while a page told how far it is, which a kept function cannot do. Read-only."""

    def __init__(self, most: int) -> None:
        self.most, self.lock = most, threading.Lock()

    def put(self, key: object, made: Made) -> Made:
        while len(self) >= self.most:
            self.pop(next(iter(self)))
        self[key] = made
        return made


class Ledger:
    """Size of every kept object and how to let go of it, the one used longest ago first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entries: OrderedDict[int, tuple[int, Callable[[], None]]] = OrderedDict()
        self.total = 0

    def use(self, made: object, given: object, forget: Callable[[], None]) -> None:
        """Called whenever an object is handed out. What no longer has room beside it is forgotten."""
        if made is None:
            return
        with self.lock:
            if id(made) in self.entries:
                self.entries.move_to_end(id(made))
                return
        taken, old = size(made) + size(given), list[Callable[[], None]]()
        with self.lock:
            self.entries[id(made)] = taken, forget
            self.total += taken
            while self.total > MOST and len(self.entries) > 1:
                _, (bytes_, let_go) = self.entries.popitem(last=False)
                self.total -= bytes_
                old.append(let_go)
        for let_go in old:
            let_go()

    def gone(self, made: object) -> None:
        """Called when Streamlit has let go of an object."""
        with self.lock:
            self.total -= self.entries.pop(id(made), (0, None))[0]


@st.cache_resource
def ledger() -> Ledger:
    return Ledger()


def stamp(run: Run) -> str:
    """Changes when the run's files do."""
    folder = str(run.path)
    found = (disk.stamp(f"{folder}/{name}")[1:] for name in (CONFIG, WEIGHTS, EVENTS, ranks.FILE))
    return "/".join("-".join(map(str, numbers)) for numbers in found)


def stamped(runs: Iterable[Run]) -> str:
    """What tells these runs, as they are now, from others: one text, which is hashed in one piece."""
    return "\0".join(part for run in runs for part in (str(run.path), stamp(run)))


def shown(data: Dataset) -> str:
    """What tells data from others by all that a page may show of them: events, when they happened, what items are called."""
    if data not in _shown:
        catalog, histories = data.catalog, data.histories
        digest = hashlib.sha256(f"{data.hash} {data.label} {data.has_times}".encode())
        digest.update(np.ascontiguousarray(histories.times).data)
        for names in (histories.user_ids, catalog.ids, catalog.titles, catalog.genres):
            digest.update("\0".join(map(str, () if names is None else names)).encode(errors="surrogatepass"))
        _shown[data] = digest.hexdigest()
    return _shown[data]


_shown: WeakKeyDictionary[Dataset, str] = WeakKeyDictionary()


def identity(given: object) -> object:
    """What tells an argument from others: a run by its path and files as they are now, a file by its path and as it is now, data
    by what can be `shown` of them, a table by its `cells`, what says itself `kept_as` by that. Others are hashed by Streamlit."""
    if isinstance(given, Run):
        return stamped([given])
    if isinstance(given, Path):
        return str(given), disk.stamp(given)
    if isinstance(given, Dataset):
        return shown(given)
    if isinstance(given, list) and given and all(isinstance(each, Run) for each in given):
        return stamped(given)
    if isinstance(given, pd.DataFrame):
        return cells(given)
    if type(given) in (list, tuple):
        return tuple(map(identity, given))  # type: ignore[arg-type]
    return getattr(given, "kept_as", given)


def cells(frame: pd.DataFrame) -> object:
    """What tells a table from others: its names, types, rows' names and cells; itself where those are no numbers or plain texts.

    Streamlit asks pandas for a hash of every row, which takes a small table ten times as long."""
    names = [frame.index.name, *((name, str(column.dtype)) for name, column in frame.items())]
    digest = hashlib.sha256(repr(names).encode(errors="surrogatepass"))
    for column in (frame.index, *(column for _, column in frame.items())):
        values = None if isinstance(column.dtype, pd.CategoricalDtype) else column.to_numpy()
        if values is None or (values.dtype == object and not PLAIN.issuperset(map(type, values))):
            return frame
        told = values.tobytes() if values.dtype != object else repr(values.tolist()).encode(errors="surrogatepass")
        digest.update(b"%d " % len(told) + told)
    return digest.hexdigest()


def kept(most: int, spinner: bool | str = False) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Keep what a function made of its arguments (`identity`), at most so many times and together with all else within `MOST`
    bytes. What is handed out is shared: never change it. Arguments that begin with `_` do not tell entries apart."""

    def keep(make: Callable[..., Made]) -> Callable[..., Made]:
        held = st.cache_resource(max_entries=most, show_spinner=spinner, on_release=lambda made: ledger().gone(made))(make)

        def call(key: tuple[object, ...], given: inspect.BoundArguments) -> Made:
            made = held(key, given)
            ledger().use(made, key, lambda: held.clear(key, None))  # holds no argument: a model must not live as long as its map
            return made

        return call

    return _once(keep)


def copied(
    most: int, spinner: bool | str = False, seconds: float | None = None
) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """As `kept`, but every visitor gets a copy of their own; believed for so many seconds, if some are given."""
    return _once(st.cache_data(max_entries=most, show_spinner=spinner, ttl=seconds))


def asking(
    keep: Callable[[Callable[..., Made]], Callable[..., Made]], service: Callable[Concatenate[Recommender, Dataset, Given], Made]
) -> Callable[Concatenate[Any, Given], Made]:
    """What a service answers about a model and its data, kept (`keep`: as `kept(4)`) and asked about an opened run."""
    shape = inspect.signature(service)
    of = inspect.Parameter("of", inspect.Parameter.POSITIONAL_ONLY)

    @functools.wraps(service)
    def make(of: Any, /, *given: Given.args, **more: Given.kwargs) -> Made:
        return service(of.model, of.dataset, *given, **more)

    make.__signature__ = shape.replace(parameters=[of, *list(shape.parameters.values())[2:]])  # type: ignore[attr-defined]
    return keep(make)


def _once(keep: Callable[..., Any]) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    def decorate(make: Callable[Given, Made]) -> Callable[Given, Made]:
        shape = inspect.signature(make)

        def asked(key: tuple[object, ...], _given: inspect.BoundArguments) -> Made:
            return make(*_given.args, **_given.kwargs)

        own = inspect.signature(asked)
        functools.update_wrapper(asked, make)  # Streamlit tells functions apart by their names and source
        asked.__signature__ = own  # type: ignore[attr-defined]
        held = keep(asked)

        @functools.wraps(make)
        def call(*given: Given.args, **more: Given.kwargs) -> Made:
            bound = shape.bind(*given, **more)
            bound.apply_defaults()
            told = (identity(each) for name, each in bound.arguments.items() if not name.startswith("_"))
            return held(tuple(told), bound)  # type: ignore[no-any-return]

        return call

    return decorate


def size(thing: object) -> int:
    """About how many bytes an object holds. Models and data inside another object are somebody else's."""
    seen, waiting, total = {0}, [(thing, 1.0, True)], 0.0
    while waiting:
        each, times, top = waiting.pop()
        if id(each) in seen or each is None or (isinstance(each, (Dataset, Recommender)) and not top):
            continue
        seen.add(id(each))
        total += times * _own(each)
        if isinstance(each, Recommender):
            inside = [*each.parameters(), *each.buffers()]
        elif isinstance(each, dict):
            inside = [*each.keys(), *each.values()]
        elif isinstance(each, (list, tuple, set, frozenset)):
            inside = list(each)
        elif isinstance(each, np.ndarray) and each.dtype == object:
            inside = each.ravel().tolist()
        elif hasattr(each, "__dict__") and not isinstance(each, (pd.DataFrame, pd.Series, type)) and not hasattr(each, "nbytes"):
            inside = list(vars(each).values())
        else:
            continue
        step = max(len(inside) // SAMPLE, 1)
        waiting += [(part, times * step, False) for part in inside[::step]]
    return int(total)


def _own(each: object) -> int:
    """Bytes of one object without what it refers to."""
    if isinstance(each, pd.DataFrame):
        few = each.iloc[:: max(len(each) // SAMPLE, 1)]
        return int(few.memory_usage(deep=True).sum() * len(each) / max(len(few), 1))
    return int(each.nbytes) if hasattr(each, "nbytes") else sys.getsizeof(each)  # arrays, series and tensors
