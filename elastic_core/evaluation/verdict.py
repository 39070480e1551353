"""What a comparison allows to be said, in words: the only place that decides whether A may be called better than B.

Only where the interval, with the noise of training in it, leaves out 0, and where the question was one of several asked together
its p still lies below `LEVEL` after Holm's adjustment for them all. A system that was trained once may be ahead by luck of its
seed, so for it there are numbers and no claim.
"""

from typing import Literal, Protocol

import numpy as np

ONE_RUN = "one run: training noise not counted"
NO_CLAIM = "no difference can be claimed"
LEVEL = 0.05
LEAST = 0.0001


class Interval(Protocol):
    """What a verdict needs: `Comparison`, `Contrast` and the rows of the services' tables have it."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def seeds_counted(self) -> bool: ...


class MeasuredDifference(Interval, Protocol):
    @property
    def difference(self) -> float: ...
    @property
    def p(self) -> float: ...


class Counted(Interval, Protocol):
    @property
    def users(self) -> int: ...


def better(found: Interval, adjusted: float | None = None) -> Literal["A", "B", ""]:
    """Who may be called better, if anybody. An interval of NaN claims nothing.

    `adjusted`: its p after the adjustment for all that was asked together; None for a question that was asked alone."""
    if not found.seeds_counted or (adjusted is not None and not adjusted < LEVEL):
        return ""
    return sign(found.low, found.high)


def sign(low: float, high: float) -> Literal["A", "B", ""]:
    """On which side of 0 an interval lies, if it leaves it out. No claim yet: that is `better`."""
    return "A" if low > 0 else "B" if high < 0 else ""


def sentence(found: Counted, a: str, b: str) -> str:
    """What may be claimed about systems called `a` and `b`, in one sentence."""
    who = better(found)
    if not who:
        note = "" if found.seeds_counted else f" ({ONE_RUN})"
        return f"On these {found.users:,} people {NO_CLAIM}{note}."
    return f"{a if who == 'A' else b} is better than {b if who == 'A' else a} on these {found.users:,} people."


def numbers(found: MeasuredDifference) -> str:
    """`+0.0192 (95% +0.0103 to +0.0286, p = 0.0002)`, and that training noise is not in it where it is not."""
    return f"{found.difference:+.4f} ({interval(found)})"


def interval(found: MeasuredDifference) -> str:
    """`95% +0.0103 to +0.0286, p = 0.0002`, and the same remark."""
    note = "" if found.seeds_counted else f"; {ONE_RUN}"
    return f"95% {found.low:+.4f} to {found.high:+.4f}, p {'' if found.p < LEAST else '= '}{p_text(found.p)}{note}"


def p_text(p: float) -> str:
    """A p in four places; where it has more zeros, `< 0.0001`: no model of the noise is so exact."""
    return f"< {LEAST}" if p < LEAST else f"{p:.4f}"


def wilson(share: np.ndarray | float, n: int, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
    """Interval of a share of `n` people, never below 0 or above 1: Wilson's score interval (1927)."""
    middle, reach = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return (middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)
