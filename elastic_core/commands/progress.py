"""Training as it looks in a terminal: a bar that redraws itself, or a line per epoch where nobody watches."""

import contextlib
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TextIO

BLOCKS = 24


class Progress:
    """Takes the trainer's events and writes them to `out` (stderr)."""

    def __init__(self, epochs: int, out: TextIO | None = None) -> None:
        self.epochs, self.out = epochs, out or sys.stderr
        self.best = 0.0

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "step" and self.out.isatty():
            self._redraw(event)
        elif kind == "start":
            first = f", from {event['from']}" if "from" in event else ""
            self._line(f"{event['data']}, {event['parameters']:,} parameters, {event['device']}, seed {event['seed']}{first}")
        elif kind == "epoch":
            value = event["valid"]["NDCG@10"]
            mark, self.best = ("*" if value > self.best else " "), max(self.best, value)
            used = f"  experts used {event['used']:.0%}" if "used" in event else ""
            learned = f"epoch {event['epoch']:>3}  loss {event['loss']:.4f}  valid NDCG@10 {value:.4f}{mark}"
            self._line(f"{learned}{used}  {event['seconds']:.0f} s")
        elif kind == "test":
            basket = event.get("basket")
            protocol = "full-seen" if basket else "full"  # of what is new to a household a list says little
            scores = event["protocols"][protocol]
            told = f"NDCG@10 {scores['NDCG@10']:.4f}, HR@10 {scores['HR@10']:.4f}"
            told += f", whole basket: NDCG@10 {basket['basket NDCG@10']:.4f}" if basket else ""
            self._line(f"test ({event['users']:,} people, protocol {protocol}): {told}")
        elif kind == "end":
            self._line(f"{event['reason']}; best epoch {event['best_epoch']}")
        elif kind == "reopened":
            self._line(f"goes on after epoch {event['epoch']} ({event['reason']}); its test will be scored again at the new end")
        elif kind == "over":
            self._line(f"it has ended ({event['reason']}); more --minutes, train.epochs or train.patience would go on")

    def _redraw(self, event: dict[str, Any]) -> None:
        done = min(event["done"] / max(event["of"], 1), 1.0)
        bar = "█" * round(done * BLOCKS)
        text = f"epoch {event['epoch']:>3}/{self.epochs} {bar:·<{BLOCKS}} {done:4.0%}  loss {event['loss']:.4f}"
        self.out.write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\033[K")
        self.out.flush()

    def _line(self, text: str) -> None:
        self.out.write(f"\r\033[K{text}\n" if self.out.isatty() else f"{text}\n")
        self.out.flush()


@contextlib.contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Hear SIGINT and SIGTERM inside; what is given tells whether one has come. A second SIGINT interrupts at once."""
    heard = list[int]()

    def hear(number: int, frame: FrameType | None) -> None:
        if heard and number == signal.SIGINT:
            raise KeyboardInterrupt
        heard.append(number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(heard)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
