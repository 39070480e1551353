"""What the benches measured: one table, one row a measurement.

    rows = read_rows(Path("checkpoints/benchmarks.csv"), "latency")
    rows[(rows.system == "elastic") & (rows.length == 1024)].processor

| bench | one row is |
| --- | --- |
| `latency` | one pass of one system over a batch of histories |
| `training` | a step of training of one system: what it takes, and how many targets it learns from |
| `events` | one new event of every user of a batch whose states are kept |
| `memory` | the most memory of a process: one that trains a system, one that evaluates it (direction `evaluate`), or the app |
| `crowd` | the app before many visitors at once (tests/load/crowd.py) |
| `libraries` | training beside other libraries: `rate` by the processor, `ratio` to our SASRec (tests/load/libraries.py) |

Seconds are the median over `rounds`, with quartiles (`_low`, `_high`); `processor` is time of the processor.
`ratio`: how many times as fast as fused SASRec in the same rounds. Seconds and bytes are of a whole batch. Columns that say
nothing of a row are empty: NaN, or "" in `TEXTS`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from elastic_core.errors import InputError
from elastic_core.files import write_text

PASS = "direction rows length batch width k n_subkeys heads layers dropout compiled dtype"
TRAINING = "objective span world items negatives"
APP = "users processes think rest duration reruns visitors"
SETTING = [*PASS.split(), *TRAINING.split(), *APP.split()]
TIMES = "seconds seconds_low seconds_high processor processor_low processor_high ratio ratio_low ratio_high"
BYTES = "peak_bytes saved_bytes"  # most bytes of tensors alive at a time; bytes kept for the backward pass
LEARNED = "targets events rate rate_low rate_high rate_overall"  # of a step; targets a second, and over all steps
VISITS = "p95 longest errors start_mb warm_mb end_mb largest_mb grown_mb mb_per_minute mb_per_visitor"
METRICS = [*TIMES.split(), *BYTES.split(), *LEARNED.split(), *VISITS.split()]
MACHINE = ["rounds", "device", "threads", "load_average", "torch", "commit", "date"]
COLUMNS = ["bench", "system", *SETTING, *METRICS, *MACHINE]

TEXTS = "bench system direction rows compiled dtype objective world think device torch commit date".split()
COUNTS = (
    "length batch width k n_subkeys heads layers span items negatives users processes reruns visitors peak_bytes saved_bytes "
    "rounds threads"
).split()
# What can be compared was measured by the same code on the same machine; what is equal in all of this is measured again.
SAME_CODE = ["device", "threads", "torch", "commit"]
SAME = ["bench", "system", *SETTING, *SAME_CODE]


def as_table(measurements: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Return measurements as rows with all `COLUMNS`."""
    table = pd.DataFrame(measurements).reindex(columns=COLUMNS)
    table[TEXTS] = table[TEXTS].astype(object).fillna("").astype(str)
    return table.astype(dict.fromkeys(COUNTS, "Int64") | {name: float for name in COLUMNS if name not in (*TEXTS, *COUNTS)})


def read_rows(path: Path, *benches: str) -> pd.DataFrame:
    """Return the rows of a file, of these benches alone if some are named; none if there is no file.

    Raises InputError for a file of another form."""
    if not path.is_file():
        return as_table([])
    try:
        table = as_table(pd.read_csv(path, dtype=dict.fromkeys(TEXTS, str)))
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} is not a file of benchmark rows: {error}") from None
    return table[table["bench"].isin(benches)].reset_index(drop=True) if benches else table


def write_rows(path: Path, new: pd.DataFrame) -> None:
    """Add rows to a file; a new one replaces an older one that equals it in all of `SAME`."""
    before = read_rows(path)
    rows = pd.concat([before, new], ignore_index=True) if len(before) else new
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, rows.drop_duplicates(SAME, keep="last").to_csv(index=False, lineterminator="\n"))


def newest_together(rows: pd.DataFrame, systems: Iterable[str]) -> pd.DataFrame:
    """Return the newest row of each system, by system, all measured by the same code on the same machine; empty where no code
    has measured all of them."""
    names = list(systems)
    groups = [
        group.sort_values("date", kind="stable").drop_duplicates("system", keep="last").set_index("system", drop=False)
        for _, group in rows[rows["system"].isin(names)].groupby(SAME_CODE)
    ]
    complete = [group.loc[names] for group in groups if len(group) == len(names)]
    return max(complete, key=lambda group: group["date"].max(), default=rows[:0])
