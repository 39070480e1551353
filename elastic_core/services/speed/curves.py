"""From benchmark rows to what may be said about them: time and memory against N, exponents, crossing lengths, words.

Times and memory are per history (of a batch), so that batches of different sizes can stand on one axis. Rows from
different sources are never mixed: every function here is given the rows of one.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core.bench.events import ROOM
from elastic_core.bench.latency import ROWS, Row
from elastic_core.bench.profile import StageRow
from elastic_core.bench.stages import WHOLE as WHOLE_PASS
from elastic_core.bench.store import LONGEST, MOST_LENGTH, MOST_SYSTEMS, read_kind, read_rows, read_table
from elastic_core.errors import InputError
from elastic_core.services.speed.costs import LABELS

MEASURED, SHIPPED, REPORTED = "measured now", "shipped measurement", "reported in the paper"
COLUMNS = (
    "source", "system", "label", "length", "batch", "ms", "low", "high", "processor", "memory", "rounds", "width", "k", "side",
    "threads", "load", "device", "torch", "commit", "date",
)  # fmt: skip
NUMBERS = ("length", "ms", "low", "high", "processor", "rounds", "histories", "width", "k", "side", "threads", "load")
WHOLE = ("length", "rounds", "histories", "width", "k", "side", "threads")
WORDS = ("system", "device", "torch", "commit", "date")
TIMES = {"ms": "by the clock", "processor": "of the processor"}


class Reported(NamedTuple):
    """A figure that somebody else published, with what it was measured on."""

    what: str
    value: str
    where: str


PAPER = (
    Reported("Inference", "2.68 times as fast as SASRec", "N = 1,024, XLong; the GPU is not named"),
    Reported("GPU memory", "about 90% less", "likewise"),
)


def tidy(rows: Sequence[Row], source: str) -> pd.DataFrame:
    """One line a system and length, per history: milliseconds (median, quartiles, processor) and megabytes at the peak.

    Only the pass that scores the next item (last row, forward). Of several measurements the latest counts.
    """
    lines = [
        (
            source, r.system, LABELS.get(r.system, r.system), r.length, r.batch, *(1e3 * t / r.batch for t in
            (r.median, r.low, r.high, r.processor)), r.peak / r.batch / 1e6, r.rounds, r.width, r.k, r.side, r.threads, r.load,
            r.device, r.torch, r.commit, r.date,
        )
        for r in rows
        if (r.rows, r.direction) == ("last", "forward")
    ]  # fmt: skip
    table = pd.DataFrame(lines, columns=list(COLUMNS))
    same = ["system", "length", "width", "k", "side", "threads", "device"]
    return (
        table.sort_values("date", kind="stable")
        .drop_duplicates(same, keep="last")
        .sort_values(["system", "length"], ignore_index=True)
    )


def shipped(checkpoints: Path) -> pd.DataFrame:
    """What came with the project; empty if it cannot be read."""
    try:
        return tidy(read_rows(checkpoints / "benchmarks" / "latency.csv"), SHIPPED)
    except InputError:
        return tidy([], SHIPPED)


def table_of(file: Path) -> pd.DataFrame:
    """`stages.csv` or `events.csv` as the background process wrote it; empty if it cannot be read or lacks what it holds."""
    texts = [*WORDS, "stage"] if file.stem == "stages" else [*WORDS]
    try:
        table = read_table(file, texts)
        numbers, words = table[list(NUMBERS)].astype(float), table[texts].fillna("").map(lambda text: text[:LONGEST])
    except (ValueError, KeyError, OverflowError):  # what is not found, no file, no table, no number
        return pd.DataFrame()
    sizes, times = numbers[list(WHOLE)], numbers[["ms", "low", "high", "processor"]]
    measured = (
        ((sizes >= 1) & (sizes <= MOST_LENGTH) & (sizes % 1 == 0)).all(axis=None)
        and ((times >= 1e-6) & (times <= 1e12)).all(axis=None)
        and numbers["load"].between(0, MOST_LENGTH).all()
        and words["system"].nunique() <= MOST_SYSTEMS
    )
    numbers = numbers.astype(dict.fromkeys(WHOLE, int)) if measured else numbers[:0]
    return table.assign(**numbers, **words) if measured else pd.DataFrame()


def trusted(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Stages or events by the clock, or, from a busy machine, by the processor's time (which has no quartiles); and which."""
    if not busy_machine(table):
        return table, "by the clock"
    same = dict.fromkeys(("ms", "low", "high"), table["processor"])
    return table.assign(**same), "of the processor, because the machine was busy"


def shapes(table: pd.DataFrame) -> list[tuple[str, int, int, int, int]]:
    """(device, threads, d, k, √K) of the curves in a table, the one with most lengths first."""
    keys = ["device", "threads", "width", "k", "side"]
    found = table.groupby(keys)["length"].nunique().sort_values(ascending=False, kind="stable")
    return [tuple(key) for key in found.index if found[key] > 1]


def shape_name(shape: tuple[str, int, int, int, int]) -> str:
    """`cpu (x86_64, 2 cores), 1 thread, d = 64, k = 8, √K = 16`."""
    device, threads, width, k, side = shape
    return f"{device}, {threads} thread{'s' if threads > 1 else ''}, d = {width}, k = {k}, √K = {side}"


def of_shape(table: pd.DataFrame, shape: tuple[str, int, int, int, int]) -> pd.DataFrame:
    mask = np.ones(len(table), dtype=bool)
    for name, value in zip(("device", "threads", "width", "k", "side"), shape, strict=True):
        mask &= (table[name] == value).to_numpy()
    return table[mask]


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


def fit(table: pd.DataFrame, system: str, column: str = "ms", start: int = 0) -> Fit | None:
    """A straight line through the logarithms, from length `start` on; None with fewer than two lengths."""
    rows = table[(table["system"] == system) & (table["length"] >= start) & (table[column] > 0)]
    if len(rows) < 2:
        return None
    x, y = np.log(rows["length"].to_numpy(float)), np.log(rows[column].to_numpy(float))
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    residual = y - y.mean() - slope * centred
    error = math.sqrt(float(residual @ residual) / (len(x) - 2) / float(centred @ centred)) if len(x) > 2 else math.nan
    with np.errstate(over="ignore"):
        factor = float(np.exp(y.mean() - slope * x.mean()))  # infinite for a line that is nearly upright
    return Fit(slope, error, factor, int(rows["length"].min()), int(rows["length"].max()), len(rows))


def fits(table: pd.DataFrame, column: str, start: int) -> pd.DataFrame:
    """label, exponent, ±, from, to, lengths: one row a system that can be fitted."""
    names = dict(zip(table["system"], table["label"], strict=True))
    found = [(label, fit(table, system, column, start)) for system, label in names.items()]
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
    found = [
        float(math.exp(n[i] - r[i] * (n[i + 1] - n[i]) / (r[i + 1] - r[i])))
        for i in range(len(n) - 1)
        if (r[i] < 0) != (r[i + 1] < 0)
    ]
    return found


def rounded(length: float) -> float:
    """A crossing as it is said and drawn: it is not known to the single event."""
    return round(length, -1 if length >= 100 else 0)


def words(table: pd.DataFrame, ours: str, peer: str, column: str = "ms") -> str:
    """Where the peer wins, where we win, and where they cross; no length is left out."""
    ratio, us, them = versus(table, ours, peer, column), LABELS.get(ours, ours), LABELS.get(peer, peer)
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
    places = sorted(among.get_indexer(lengths))
    starts = [i for i, place in enumerate(places) if i == 0 or place != places[i - 1] + 1]
    parts = list[str]()
    for start, end in zip(starts, [*starts[1:], len(places)], strict=True):
        names = [f"{int(among[place]):,}" for place in places[start:end]]
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
    try:
        rows = [row for row in read_kind(checkpoints / "benchmarks" / "profile.csv", StageRow) if row.rows == ROWS[1]]
    except InputError:
        rows = []
    whole = {row.system: row for row in rows if row.stage == WHOLE_PASS}  # of several measurements the last
    of_it = {key: [row for row in rows if row.pass_key == last.pass_key] for key, last in whole.items()}
    if not all(row.measured for found in of_it.values() for row in found) or len(of_it) > MOST_SYSTEMS:
        return pd.DataFrame()
    return pd.DataFrame(
        [
            {
                "system": row.system, "stage": row.stage, "there": 1e3 * row.processor, "back": 1e3 * row.processor_back,
                "kept": row.kept / 1e6, "length": row.length, "histories": row.batch, "k": row.k, "width": row.width,
                "side": row.side, "device": row.device, "threads": row.threads, "load": row.load, "torch": row.torch,
                "commit": row.commit, "date": row.date,
            }
            for found in of_it.values()
            for row in found
        ]
    )  # fmt: skip


def memory_words(table: pd.DataFrame) -> str:
    """How the peaks compare at the longest length that ELASTIC and each SASRec share."""
    said = []
    for peer in ("sasrec-eager", "sasrec-fused"):
        ratio = versus(table, "elastic", peer, "memory")
        if len(ratio):
            length, times = int(ratio.index[-1]), float(ratio.iloc[-1])
            amount = f"{times:.1f}" if times >= 2 else f"{times:.2f}"
            said.append(f"{LABELS[peer]} needs {amount} times as much at N = {length:,}")
    return f"Memory, compared with ELASTIC (causal): {'; '.join(said)}." if said else ""


def event_words(wide: pd.DataFrame) -> str:
    """One new event, kept state against reading again, in words; `wide` has a row a length and a column a system (ms)."""
    if "elastic-stream" not in wide:
        return "The kept state was not measured."
    step = wide["elastic-stream"]
    start, end = step.index[[0, -1]]
    said = f"With a kept state, one step takes {step.min():.2f} to {step.max():.2f} ms, from N = {start:,} to {end:,}."
    if "elastic-refresh" in wide:
        mean = (step + wide["elastic-refresh"] / ROOM).iloc[-1]
        said += f" A refresh every {ROOM} events makes it {mean:.2f} ms on average at the longest."
    for peer, name in (("elastic", "ELASTIC"), ("sasrec-fused", "SASRec (fused)")):
        ratio = (wide[peer] / step).dropna() if peer in wide else pd.Series(dtype=float)
        if len(ratio):
            first, last = ratio.iloc[[0, -1]]
            said += f" {name}, reading all again, takes {first:,.1f} times as long at the shortest, {last:,.1f} at the longest."
    return said


def machine(table: pd.DataFrame) -> str:
    """Where and when, in one sentence; busy machines are called so."""
    if table.empty:
        return "Nothing measured yet."
    first, load = table.iloc[0], table["load"].max()
    days = sorted({str(date)[:10] for date in table["date"]})
    busy = f" The machine was busy (load up to {load:.1f}), so trust the processor’s time." if busy_machine(table) else ""
    name = shape_name(tuple(first[["device", "threads", "width", "k", "side"]]))
    commits = " and ".join(sorted(set(table["commit"].astype(str))))
    return f"{name}; float32, torch {first['torch']}, {' and '.join(days)}, code {commits}.{busy}"


def busy_machine(table: pd.DataFrame) -> bool:
    return bool((table["load"] > table["threads"] + 0.5).any())
