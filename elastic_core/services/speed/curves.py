"""From benchmark rows to what may be said about them: time and memory against N, exponents, crossing lengths, words.

Times and memory are per history (of a batch), so that batches of different sizes can stand on one axis. Rows from
different sources are never mixed: every function here is given the rows of one.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core import disk
from elastic_core.bench import lisa
from elastic_core.bench.events import ROOM
from elastic_core.bench.latency import BENCH, BOTH, FORWARD, ROWS
from elastic_core.bench.stages import WHOLE as WHOLE_PASS
from elastic_core.bench.stages import by_pass
from elastic_core.bench.store import Row, readable_rows, select_rows, together
from elastic_core.services.speed.costs import LABELS

MEASURED, SHIPPED = "measured now", "shipped measurement"
MACHINE = ("load", "device", "torch", "commit", "date")
SHAPE = ("width", "k", "side", "threads")
COLUMNS = (
    "source", "system", "label", "length", "batch", "ms", "low", "high", "processor", "memory", "rounds", *SHAPE, *MACHINE,
)  # fmt: skip
TIMED = ("ms", "low", "high", "processor", "rounds")
EVENTS = ("length", "system", *TIMED, "histories", *SHAPE, *MACHINE)
STAGES = ("length", "system", "stage", *TIMED, "megabytes", "histories", *SHAPE, *MACHINE)
STEPS = (
    "system", "stage", "there", "back", "kept", "length", "histories", "k", "width", "side", "device", "threads", "load", "torch",
    "commit", "date",
)  # fmt: skip
Shape = tuple[str, int, int, int, int]
KEYS = ["device", "threads", "width", "k", "side"]  # of a `Shape`
LISA = ["question", "system", "where", "here", "the paper’s"]
TIMES = {"ms": "by the clock", "processor": "of the processor"}


# What somebody else published, and what it was measured on.
PAPER = (
    ("Inference", "2.68 times as fast as SASRec", "N = 1,024, XLong; the GPU is not named"),
    ("GPU memory", "about 90% less", "likewise"),
)


def lines(rows: Iterable[Row], columns: Sequence[str], source: str = "") -> pd.DataFrame:
    """One line a row, per history of its batch: milliseconds (median, quartiles, processor), megabytes at the peak or moved."""
    found = []
    for row in rows:
        each, low, high = (1e3 * end / row.batch for end in row.figures["seconds"])
        found.append(dict(row.setting) | dict(row.where) | {
            "source": source, "system": row.system, "label": LABELS.get(row.system, row.system), "histories": row.batch,
            "ms": each, "low": low, "high": high, "processor": 1e3 * row.processor / row.batch,
            "memory": getattr(row, "peak", math.nan) / row.batch / 1e6, "megabytes": getattr(row, "moved", 0) / row.batch / 1e6,
        })  # fmt: skip
    return pd.DataFrame(found, columns=list(columns))


def tidy(rows: Iterable[Row], source: str) -> pd.DataFrame:
    """Only the pass that scores the next item (last row, forward). Of several measurements the latest counts."""
    table = lines(select_rows(rows, rows="last", direction="forward"), COLUMNS, source)
    same = ["system", "length", *KEYS]
    latest = table.sort_values("date", kind="stable").drop_duplicates(same, keep="last")
    return latest.sort_values(["system", "length"], ignore_index=True)


def of_passes(file: Path, source: str) -> pd.DataFrame:
    """The passes of a file; empty if it cannot be read."""
    return tidy(readable_rows(file, "latency"), source)


def shipped(checkpoints: Path) -> pd.DataFrame:
    """What came with the project; empty if it cannot be read."""
    return of_passes(checkpoints / "benchmarks" / "latency.csv", SHIPPED)


def graphics_card(checkpoints: Path) -> dict[str, str]:
    """Return how many times as long causal ELASTIC takes as fused SASRec on a GPU: for reading `one` history and for a `step` of
    training, beside `device` and `length`; empty if that was not measured."""
    rows = readable_rows(checkpoints / "benchmarks" / "gpu.csv", BENCH)
    sides = {"system": "elastic"}, {"system": "sasrec-fused"}
    asked = {"one": ("last", FORWARD, 1), "step": ("all", BOTH, 256)}
    found = {
        name: together(rows, *sides, rows=which, direction=direction, batch=batch, compiled="", length=1_024)
        for name, (which, direction, batch) in asked.items()
    }
    times = {name: f"{pair[0].seconds / pair[1].seconds:.1f}" for name, pair in found.items() if pair}
    return {**times, "device": rows[0].device, "length": "1,024"} if len(times) == len(asked) else {}


def table_of(file: Path) -> pd.DataFrame:
    """`stages.csv` or `events.csv`; empty if it cannot be read."""
    return lines(readable_rows(file, file.stem), STAGES if file.stem == "stages" else EVENTS)


def trusted(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Stages or events by the clock, or, from a busy machine, by the processor's time (which has no quartiles); and which."""
    if not busy_machine(table):
        return table, "by the clock"
    same = dict.fromkeys(("ms", "low", "high"), table["processor"])
    return table.assign(**same), "of the processor, because the machine was busy"


def shapes(table: pd.DataFrame) -> list[Shape]:
    """(device, threads, d, k, √K) of the curves in a table, the one with most lengths first."""
    found = table.groupby(KEYS)["length"].nunique().sort_values(ascending=False, kind="stable")
    return [tuple(key) for key in found.index if found[key] > 1]


def shape_name(shape: Shape) -> str:
    """`cpu (x86_64, 2 cores), 1 thread, 64 numbers an item, 8 of 256 experts`."""
    device, threads, width, k, side = shape
    return f"{device}, {threads} thread{'s' if threads > 1 else ''}, {width} numbers an item, {k} of {side**2:,} experts"


def place(table: pd.DataFrame) -> str:
    """The machine and the sizes of rows that have them in common."""
    return shape_name(tuple(table.iloc[0][KEYS])) if len(table) else ""


def of_shape(table: pd.DataFrame, shape: Shape) -> pd.DataFrame:
    return table[(table[KEYS] == list(shape)).all(axis=1)]


def usual(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows that the Speed screen opens with, and by which time: of the shape with most lengths, by the clock unless the
    machine was busy. Whoever quotes a speed quotes these."""
    found = shapes(table)
    mine = of_shape(table, found[0]) if found else table
    return mine, "processor" if busy_machine(mine) else "ms"


class Fit(NamedTuple):
    """y ≈ factor · N^exponent over lengths `start` … `end`; `error` is the exponent's standard error (NaN for two points)."""

    exponent: float
    error: float
    factor: float
    start: int
    end: int
    points: int

    def at(self, length: float) -> float:
        return float(self.factor * length**self.exponent)


def fit_line(table: pd.DataFrame, system: str, column: str = "ms", start: int = 0) -> Fit | None:
    """A straight line through the logarithms, from length `start` on; None with fewer than two lengths."""
    rows = table[(table["system"] == system) & (table["length"] >= start) & (table[column] > 0)]
    if len(rows) < 2:
        return None
    x, y = np.log(rows["length"].to_numpy(float)), np.log(rows[column].to_numpy(float))
    centred = x - x.mean()
    slope, width = float(centred @ y / (centred @ centred)), len(x) - 2
    residual = y - y.mean() - slope * centred
    error = math.sqrt(float(residual @ residual / width / (centred @ centred))) if width else math.nan
    with np.errstate(over="ignore"):
        factor = float(np.exp(y.mean() - slope * x.mean()))  # infinite for a line that is nearly upright
    return Fit(slope, error, factor, int(rows["length"].min()), int(rows["length"].max()), len(rows))


def fits(table: pd.DataFrame, column: str, start: int) -> pd.DataFrame:
    """label, exponent, ±, from, to, lengths: one row a system that can be fitted."""
    names = dict(zip(table["system"], table["label"], strict=True))
    found = [(label, fit_line(table, system, column, start)) for system, label in names.items()]
    rows = [(label, f.exponent, 1.96 * f.error, f.start, f.end, f.points) for label, f in found if f is not None]
    return pd.DataFrame(rows, columns=["system", "exponent", "± 95%", "from N", "to N", "lengths"])


def versus(table: pd.DataFrame, ours: str, peer: str, column: str = "ms") -> pd.Series:
    """How many times slower the peer is, by length, where both were measured."""
    wide = table[table["system"].isin([ours, peer])].pivot_table(index="length", columns="system", values=column)
    if not {ours, peer} <= set(wide.columns):
        return pd.Series(dtype=float)
    return (wide[peer] / wide[ours]).dropna()


def crossings(ratio: pd.Series) -> list[float]:
    """Lengths at which the ratio passes 1, between neighbours along a straight line of the logarithms."""
    n, r = np.log(ratio.index.to_numpy(float)), np.log(ratio.to_numpy(float))
    at = np.flatnonzero(np.diff(r < 0))
    return np.exp(n[at] - r[at] * np.diff(n)[at] / np.diff(r)[at]).tolist()


def crossing(checkpoints: Path) -> float:
    """From which length on ELASTIC stays faster than SASRec with fused attention, by the shipped rows; NaN where none tell."""
    return _crossing(checkpoints, disk.stamp(checkpoints / "benchmarks" / "latency.csv"))


@functools.lru_cache(maxsize=4)
def _crossing(checkpoints: Path, stamp: tuple[int, ...]) -> float:
    table, column = usual(shipped(checkpoints))
    found = crossings(versus(table, "elastic", "sasrec-fused", column))
    return rounded(found[-1]) if found else math.nan


def rounded(length: float) -> float:
    """A crossing as it is said and drawn: it is not known to the single event."""
    return round(length, -1 if length >= 100 else 0)


def speed_sentence(table: pd.DataFrame, ours: str, peer: str, column: str = "ms") -> str:
    """Where the peer wins, where we win, and where they cross; no length is left out."""
    return _race(versus(table, ours, peer, column), LABELS.get(ours, ours), LABELS.get(peer, peer))


def _race(ratio: pd.Series, us: str, them: str) -> str:
    """The same of how many times slower they are, by length."""
    if ratio.empty:
        return f"{us} and {them} were not measured at the same lengths."
    losses, wins = ratio[ratio < 1], ratio[ratio >= 1]
    parts = []
    if len(losses):
        parts.append(f"{them} is faster at N = {_listed(losses.index, ratio.index)} (up to {1 / losses.min():.1f} times).")
    if len(wins):
        parts.append(f"{us} is faster at N = {_listed(wins.index, ratio.index)} (up to {wins.max():.1f} times).")
    crossed = " and ".join(f"{rounded(n):,.0f}" for n in crossings(ratio))
    end = f" They cross near N = {crossed}." if crossed else " They do not cross in this range."
    return " ".join(parts) + end


def _listed(lengths: pd.Index, among: pd.Index) -> str:
    """`64 to 256, 1,024`: three and more that were measured one after the other are a range."""
    places, parts = np.sort(among.get_indexer(lengths)), list[str]()
    for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        names = [f"{int(among[place]):,}" for place in run]
        parts += [f"{names[0]} to {names[-1]}"] if len(names) > 2 else names
    return ", ".join(parts)


def stage_words(mine: pd.DataFrame) -> str:
    """How long the whole pass takes, and how much of it the stages account for; nothing where one is missing."""
    parts, passes = mine[mine["stage"] != "whole pass"], mine[mine["stage"] == "whole pass"]
    if parts.empty or passes.empty:
        return ""
    whole = passes.iloc[0]
    return (
        f"One pass over **N = {whole['length']:,}** events takes **{whole['ms']:.2f} ms** per history, with the scores of all "
        f"items. The stages add up to {parts['ms'].sum() / whole['ms']:.0%} of it."
    )


def training_steps(checkpoints: Path) -> pd.DataFrame:
    """Of the shipped steps of training, all rows, what every stage takes a batch (`there`, `back`, ms of the processor) and is
    the first to keep for the way back (`kept`, MB), by `system`; empty if they cannot be read."""
    rows = select_rows(readable_rows(checkpoints / "benchmarks" / "profile.csv", "stages"), rows=ROWS[1])
    of_it = {found[0].system: found for found in by_pass(rows) if select_rows(found, stage=WHOLE_PASS)}  # the last
    shown = [row for found in of_it.values() for row in found]
    table = lines(shown, STEPS)
    return table.assign(
        there=[1e3 * row.processor for row in shown], back=[1e3 * getattr(row, "back", 0) for row in shown],
        kept=[getattr(row, "kept", 0) / 1e6 for row in shown],
    )  # fmt: skip


def memory_words(table: pd.DataFrame) -> str:
    """How the peaks compare at the longest length that ELASTIC and each SASRec share."""
    said = []
    for peer in ("sasrec-eager", "sasrec-fused"):
        ratio = versus(table, "elastic", peer, "memory")
        if len(ratio):
            length, times = int(ratio.index[-1]), float(ratio.iloc[-1])
            said.append(f"{LABELS[peer]} needs {times:.{1 if times >= 2 else 2}f} times as much at N = {length:,}")
    return f"Memory, compared with ELASTIC: {'; '.join(said)}." if said else ""


def event_words(wide: pd.DataFrame) -> str:
    """One new event, kept state against kept keys and values, in words; `wide` has a row a length and a column a system (ms).

    Ours always with its refresh. The peer's first without one, the harder rival: it needs none while its window has room."""
    ours, peer = (_event(wide, system, refreshed=True) for system in ("elastic", "sasrec-fused"))
    alone = _event(wide, "sasrec-fused", refreshed=False)
    if ours.empty:
        return "The kept state was not measured."
    said = f"One new event takes ELASTIC {ours.min():.2f} to {ours.max():.2f} ms, with a refresh every {ROOM} events."
    if alone.empty:
        return said
    said += f" SASRec, which keeps keys and values, takes {alone.min():.2f} to {alone.max():.2f} ms. "
    said += _race((alone / ours).dropna(), LABELS["elastic"], LABELS["sasrec-fused"])
    if len(peer):
        times = peer / ours
        said += " When its window is full, SASRec needs a refresh, too. Then it takes "
        said += f"{times.min():.1f} to {times.max():.1f} times as long as ELASTIC."
    return said


def with_refresh(table: pd.DataFrame) -> pd.DataFrame:
    """The events with rows `elastic-event` behind them: a step and its part of a refresh, as `event_words` counts ours."""
    step, again = (table[table["system"] == f"elastic-{part}"].set_index("length") for part in ("stream", "refresh"))
    ends = ["ms", "low", "high"]
    found = step.assign(**(step[ends] + again[ends] / ROOM), system="elastic-event").dropna(subset="ms").reset_index()
    return pd.concat([table, found[table.columns]], ignore_index=True) if len(found) else table


def _event(wide: pd.DataFrame, system: str, refreshed: bool) -> pd.Series:
    """Milliseconds of one event by length, with its part of a refresh; empty where it was not measured."""
    step, again = f"{system}-stream", f"{system}-refresh"
    if step not in wide or (refreshed and again not in wide):
        return pd.Series(dtype=float)
    return (wide[step] + wide[again] / ROOM if refreshed else wide[step]).dropna()


def machine(table: pd.DataFrame) -> str:
    """Where and when, in one sentence; busy machines are called so."""
    if table.empty:
        return "Nothing measured yet."
    first, load = table.iloc[0], table["load"].max()
    days = sorted({str(date)[:10] for date in table["date"]})
    busy = f" The machine was busy (load up to {load:.1f}), so trust the processor’s time." if busy_machine(table) else ""
    commits = " and ".join(sorted(set(table["commit"].astype(str))))
    return f"{place(table)}; float32, torch {first['torch']}, {' and '.join(days)}, code {commits}.{busy}"


def busy_machine(table: pd.DataFrame) -> bool:
    return bool((table["load"] > table["threads"] + 0.5).any())


def of_lisa(checkpoints: Path) -> pd.DataFrame:
    """What LISA claims of its own cost (`bench --lisa`), ours and the paper's: a line a figure; empty if they cannot be read."""
    found = lisa.claims(rows) if (rows := readable_rows(checkpoints / "benchmarks" / "lisa.csv", "lisa")) else []
    table = pd.DataFrame(found, columns=LISA).astype({"here": float, "the paper’s": float})
    return table[table["here"].notna()].reset_index(drop=True)
