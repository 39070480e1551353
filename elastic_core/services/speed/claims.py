"""What LISA claims of its own cost, from the rows that came along (`bench --lisa`): ours and the paper's, a column each."""

from pathlib import Path

import pandas as pd

from elastic_core.bench import lisa
from elastic_core.bench.store import readable_rows

COLUMNS = ["question", "system", "where", "here", "the paper’s"]


def of_lisa(checkpoints: Path) -> pd.DataFrame:
    """One line a figure that was measured; empty if the rows cannot be read."""
    found = lisa.claims(rows) if (rows := readable_rows(checkpoints / "benchmarks" / "lisa.csv", "lisa")) else []
    table = pd.DataFrame(found, columns=COLUMNS).astype({"here": float, "the paper’s": float})
    return table[table["here"].notna()].reset_index(drop=True)
