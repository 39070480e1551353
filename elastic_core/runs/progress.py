"""A training as people watch it, in a terminal or a notebook: a line an epoch, and a bar, by tqdm where it is installed."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TextIO

from elastic_core.core.config import TrainConfig
from elastic_core.core.train import ALL_DONE, NO_MINUTES, NO_PATIENCE, training_clock

GOES_ON = {NO_PATIENCE: "more train.patience", NO_MINUTES: "more --minutes", ALL_DONE: "more train.epochs"}
BAR = "{desc} {percentage:3.0f}%|{bar}| {elapsed} {postfix}"


class Progress:
    """Takes the trainer's events. `lines`: a line for every event that stays, on `out` (stderr); the bar is for who watches."""

    def __init__(self, train: TrainConfig, lines: bool = True, out: TextIO | None = None) -> None:
        self.train, self.lines, self.out = train, lines, out or sys.stderr
        self.now = training_clock(train)
        self.began, self.best, self.valid = self.now(), 0.0, ""
        self.bar = _make_bar(self.out)

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "step":
            self._move_bar(event)
        elif kind == "start":
            first = f", from {event['from']}" if "from" in event else ""
            self._line(f"{event['data']}, {event['parameters']:,} parameters, {event['device']}, seed {event['seed']}{first}")
        elif kind == "epoch":
            value = event["valid"]["NDCG@10"]
            mark, self.best = ("*" if value > self.best else " "), max(self.best, value)
            self.valid = f", validation NDCG@10 {value:.4f} (best {self.best:.4f})"
            used_text = f"  experts used {event['used']:.0%}" if "used" in event else ""
            learned = f"epoch {event['epoch']:>3}  loss {event['loss']:.4f}  valid NDCG@10 {value:.4f}{mark}"
            self._line(f"{learned}{used_text}  {event['seconds']:.0f} s")
        elif kind == "test":
            self._line(describe_test(event))
        elif kind == "end":
            self._line(f"{event['reason']}; best epoch {event['best_epoch']}")
        elif kind == "reopened":
            self._line(f"goes on after epoch {event['epoch']} ({event['reason']}); its test will be scored again at the new end")
        elif kind == "over":
            more = next((more for words, more in GOES_ON.items() if event["reason"].startswith(words)), "a larger budget")
            self._line(f"it has ended ({event['reason']}); {more} would go on")
        if kind in ("end", "over"):
            self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def _move_bar(self, event: dict[str, Any]) -> None:
        if self.bar is None:
            return
        parts = [(event["epoch"] - 1 + event["done"] / max(event["of"], 1)) / self.train.epochs]
        if self.train.minutes:
            parts.append((self.now() - self.began) / (60 * self.train.minutes))
        self.bar.n = min(round(100 * max(parts)), 100)
        self.bar.set_description(f"epoch {event['epoch']:>3}", refresh=False)
        self.bar.set_postfix_str(f"loss {event['loss']:.4f}{self.valid}")

    def _line(self, text: str) -> None:
        if not self.lines:
            return
        if self.bar is not None:
            self.bar.write(text, file=self.out)
        else:
            self.out.write(f"{text}\n")
        self.out.flush()


def describe_test(event: dict[str, Any]) -> str:
    """What a test came to, by the protocol that fits the data."""
    basket, protocol = event.get("basket"), event.get("protocol", "full")
    scores = event["protocols"][protocol]
    line = f"test ({event['users']:,} people, protocol {protocol}): NDCG@10 {scores['NDCG@10']:.4f}, HR@10 {scores['HR@10']:.4f}"
    return line + (f", whole basket: NDCG@10 {basket['basket NDCG@10']:.4f}" if basket else "")


def _make_bar(out: TextIO) -> Any:
    """A bar of tqdm in a terminal or a notebook; None where nobody watches, or without tqdm."""
    if not out.isatty() and "ipykernel" not in sys.modules:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=100, bar_format=BAR, file=out, dynamic_ncols=True)


@contextlib.contextmanager
def stop_on_signals(*numbers: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Hear these signals inside; what is given tells whether one has come. A second SIGINT interrupts at once.

    Outside the main thread, which alone hears signals, nothing changes."""
    signals = list[int]()
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def hear(number: int, frame: FrameType | None) -> None:
        if signals and number == signal.SIGINT:
            raise KeyboardInterrupt
        signals.append(number)

    before = {number: signal.signal(number, hear) for number in numbers}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
