"""Collections stay short, and what was set aside while it lived is freed later."""

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from pages.frame import garbage


class Part:
    """Something that holds itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = list(gc.callbacks)
    gc.callbacks[:] = []
    garbage.keep_short()
    garbage.keep_short()
    assert len(gc.callbacks) == 1
    yield
    gc.callbacks[:] = before
    gc.unfreeze()


def collected() -> float:
    began = time.thread_time()
    gc.collect()
    return time.thread_time() - began


def test_what_lives_on_is_looked_at_once_and_freed_in_time(keeper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.disable()  # no earlier look, however little is left until the next one
    much, part = [[i] for i in range(400_000)], Part()
    gone, first = weakref.ref(part), collected()
    gc.enable()
    assert first > garbage.SLOW and gc.get_freeze_count() >= len(much)
    del part
    assert collected() < first / 4 and gone() is not None, "set aside, so not looked at"
    monkeypatch.setattr(garbage, "AGAIN", -1.0)
    gc.collect()
    assert gone() is None and gc.get_freeze_count() >= len(much), "everything was looked at, and set aside again"


def test_everything_is_looked_at_sooner_when_much_has_come(keeper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "SOON", -1.0)
    gc.collect()
    part = Part()
    gone = weakref.ref(part)
    gc.freeze()
    del part
    gc.collect()
    assert gone() is not None, "little has come"
    much = [float(i) for i in range(2 * garbage.MUCH)]
    gc.collect()
    assert gone() is None and much
