"""Rows that cannot be used. One rule for files sent to the app and files named on the command line: up to a tenth of the rows is
left out, and it is always said how many and which lines first; a file with more is refused, for it was probably misunderstood.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from elastic_core.errors import InputError

SHARE = 0.1
LISTED, NAMED = 20, 3  # faults that are kept for a table, and that a sentence names


@dataclass(frozen=True)
class Faults:
    """The first bad rows by line, how many in all of how many rows, and how many of each kind."""

    first: tuple[tuple[int, str], ...] = ()
    count: int = 0
    rows: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    unit: str = "line"

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(self.first, columns=[self.unit, "what is wrong"])

    @property
    def rest(self) -> int:
        return self.count - len(self.first)

    def list_first(self) -> str:
        """`line 3: the time is missing; line 9: …` for the first few."""
        more = "; …" if self.count > NAMED else ""
        return "; ".join(f"{self.unit} {line}: {what}" for line, what in self.first[:NAMED]) + more

    def sentence(self) -> str:
        """What was left out, without a full stop; nothing where all rows are good."""
        if not self.count:
            return ""
        rows, are = f"{self.count:,} of {self.rows:,} rows", "was" if self.count == 1 else "were"
        return f"{rows} cannot be used and {are} left out ({self.list_first()})"


def weigh_faults(bad_rows: Iterable[tuple[int, str]], rows: int, label: str, unit: str = "line") -> Faults:
    """Return the faults of a file of so many rows. Raises InputError where they are more than the share."""
    ordered = sorted(bad_rows)
    kinds = Counter(what for _, what in ordered)
    faults = Faults(tuple(ordered[:LISTED]), len(ordered), rows, dict(kinds.most_common()), unit)
    if faults.count > SHARE * rows:
        hint = "perhaps other columns were meant"
        if any(" no date" in what for what in kinds):
            hint = "write times as 2023-12-31 18:50:22"
        elif "is missing" in next(iter(faults.kinds)):
            hint = "fill these cells in, or take the rows out"
        raise InputError(
            f"{label}, {faults.list_first()}: {faults.count:,} of {rows:,} rows cannot be used, and at most a tenth may be "
            f"left out; {hint}"
        )
    return faults
