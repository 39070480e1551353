"""From benchmark rows to what may be said about them: time and memory against N, exponents, crossing lengths, words.

Times and memory are per history (of a batch), so that batches of different sizes can stand on one axis. Rows from
different sources are never mixed: every function here is given the rows of one.
"""

import functools
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from elastic_core import files
from elastic_core.bench.events import REFRESH, ROOM, STREAM
from elastic_core.bench.latency import BOTH, FORWARD
from elastic_core.bench.rows import newest_together, read_rows
from elastic_core.services.speed.costs import LABELS, TIMED_LABELS

MEASURED, SHIPPED = "measured now", "shipped measurement"
Shape = tuple[str, int, int, int, int]
SHAPE = ["device", "threads", "width", "k", "n_subkeys"]  # of a `Shape`
TIMES = {"ms": "by the clock", "processor": "of the processor"}


# What somebody else published, and what it was measured on.
PAPER = (
    ("Inference", "2.68 times as fast as SASRec", "N = 1,024, XLong; the GPU is not named"),
    ("GPU memory", "about 90% less", "compared with a SASRec that stores all N × N scores"),
)

# --- the rows of one source --------------------------------------------------------------------------------------------


def shipped_file(checkpoints: Path) -> Path:
    """Where the rows are that came with the project."""
    return checkpoints / "benchmarks.csv"


def per_history(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line a row, of one history: milliseconds (`ms` with quartiles, `processor`), and megabytes at the peak."""
    per_batch = rows["batch"].astype(float)
    return pd.DataFrame({
        "system": rows["system"], "label": rows["system"].map(lambda system: TIMED_LABELS.get(system, system)),
        "length": rows["length"].astype(int), "batch": rows["batch"].astype(int),
        "ms": 1e3 * rows["seconds"] / per_batch, "low": 1e3 * rows["seconds_low"] / per_batch,
        "high": 1e3 * rows["seconds_high"] / per_batch, "processor": 1e3 * rows["processor"] / per_batch,
        "memory": rows["peak_bytes"].astype(float) / per_batch / 1e6, "rounds": rows["rounds"].astype(int),
        **{name: rows[name].astype(int) for name in ("threads", "width", "k", "n_subkeys")},
        "load": rows["load_average"], **{name: rows[name] for name in ("device", "torch", "commit", "date")},
    })  # fmt: skip


def read_passes(file: Path) -> pd.DataFrame:
    """Return the passes on a processor that score the next item (last row, forward): of the largest batch, the latest."""
    rows = read_rows(file, "latency")
    scoring = (rows["rows"] == "last") & (rows["direction"] == FORWARD) & (rows["compiled"] == "")
    table = per_history(rows[scoring & rows["device"].str.startswith("cpu")])
    latest = table.sort_values(["batch", "date"], kind="stable").drop_duplicates(["system", "length", *SHAPE], keep="last")
    return latest.sort_values(["system", "length"], ignore_index=True)


def shipped_rows(checkpoints: Path) -> pd.DataFrame:
    """Return the passes that came with the project."""
    return read_passes(shipped_file(checkpoints))


def new_events(file: Path) -> pd.DataFrame:
    """Return what one new event took after a history."""
    return per_history(read_rows(file, "events")).reset_index(drop=True)


def graphics_card(checkpoints: Path) -> dict[str, str]:
    """Return how many times as long causal ELASTIC takes as fused SASRec on a GPU: for reading `one` history and for a `step` of
    training, beside `device` and `length`; empty if that was not measured."""
    rows, length = read_rows(shipped_file(checkpoints), "latency"), 1_024
    rows = rows[~rows["device"].str.startswith("cpu") & (rows["compiled"] == "") & (rows["length"] == length)]
    times: dict[str, str] = {}
    for name, which, direction, batch in (("one", "last", FORWARD, 1), ("step", "all", BOTH, 256)):
        same = rows[(rows["rows"] == which) & (rows["direction"] == direction) & (rows["batch"] == batch)]
        pair = newest_together(same, ["elastic", "sasrec-fused"])
        if pair.empty:
            return {}
        times[name] = f"{pair.loc['elastic', 'seconds'] / pair.loc['sasrec-fused', 'seconds']:.1f}"
    return {**times, "device": pair["device"].iloc[0], "length": f"{length:,}"}


def busy_machine(table: pd.DataFrame) -> bool:
    """Whether other programs worked on the machine while these rows were measured."""
    return bool((table["load"] > table["threads"] + 0.5).any())


def trusted_rows(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return rows by the clock, or, from a busy machine, by the processor's time (which has no quartiles); and which."""
    if not busy_machine(table):
        return table, TIMES["ms"]
    same = dict.fromkeys(("ms", "low", "high"), table["processor"])
    return table.assign(**same), f"{TIMES['processor']}, because the machine was busy"


def list_shapes(table: pd.DataFrame) -> list[Shape]:
    """(device, threads, d, k, √K) of the curves in a table, the one with most lengths first."""
    lengths = table.groupby(SHAPE)["length"].nunique().sort_values(ascending=False, kind="stable")
    return [tuple(shape) for shape in lengths.index if lengths[shape] > 1]


def shape_name(shape: Shape) -> str:
    """`cpu (x86_64, 2 cores), 1 thread, 64 numbers an item, 8 of 256 experts`."""
    device, threads, width, k, n_subkeys = shape
    return f"{device}, {threads} thread{'s' if threads > 1 else ''}, {width} numbers an item, {k} of {n_subkeys**2:,} experts"


def shape_text(table: pd.DataFrame) -> str:
    """The machine and the sizes of rows that have them in common."""
    return shape_name(tuple(table.iloc[0][SHAPE])) if len(table) else ""


def of_shape(table: pd.DataFrame, shape: Shape) -> pd.DataFrame:
    return table[(table[SHAPE] == list(shape)).all(axis=1)]


def usual_shape(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows that the Speed screen opens with, and by which time: of the shape with most lengths, by the clock unless the
    machine was busy. Whoever quotes a speed quotes these."""
    choices = list_shapes(table)
    rows = of_shape(table, choices[0]) if choices else table
    return rows, "processor" if busy_machine(rows) else "ms"


def machine_text(table: pd.DataFrame) -> str:
    """Where and when, in one sentence; busy machines are called so."""
    if table.empty:
        return "Nothing measured yet."
    first, load = table.iloc[0], table["load"].max()
    days = sorted({str(date)[:10] for date in table["date"]})
    note = f" Other programs ran beside it (load up to {load:.1f}), so trust the processor’s time more than the clock’s."
    busy_text = note if busy_machine(table) else ""
    commits = " and ".join(sorted(set(table["commit"].astype(str))))
    return f"{shape_text(table)}; float32, torch {first['torch']}, {' and '.join(days)}, code {commits}.{busy_text}"


# --- exponents ----------------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """y ≈ factor · N^exponent over lengths `start` … `end`; `error` is the exponent's standard error (NaN for two points)."""

    exponent: float
    error: float
    factor: float
    start: int
    end: int
    points: int

    def predict(self, length: float) -> float:
        return float(self.factor * length**self.exponent)


def fit_line(table: pd.DataFrame, system: str, column: str = "ms", start: int = 0) -> Fit | None:
    """A straight line through the logarithms, from length `start` on; None with fewer than two lengths."""
    rows = table[(table["system"] == system) & (table["length"] >= start) & (table[column] > 0)]
    if len(rows) < 2:
        return None
    x, y = np.log(rows["length"].to_numpy(float)), np.log(rows[column].to_numpy(float))
    slope, intercept = np.polyfit(x, y, 1)
    error = math.sqrt(np.polyfit(x, y, 1, cov=True)[1][0, 0]) if len(rows) > 2 else math.nan
    first, last = int(rows["length"].min()), int(rows["length"].max())
    return Fit(float(slope), error, float(np.exp(intercept)), first, last, len(rows))


def fit_exponents(table: pd.DataFrame, column: str, start: int) -> pd.DataFrame:
    """label, exponent, ±, from, to, lengths: one row a system that can be fitted."""
    names = dict(zip(table["system"], table["label"], strict=True))
    lines = [(label, fit_line(table, system, column, start)) for system, label in names.items()]
    rows = [(label, fit.exponent, 1.96 * fit.error, fit.start, fit.end, fit.points) for label, fit in lines if fit is not None]
    return pd.DataFrame(rows, columns=["system", "exponent", "± 95%", "from N", "to N", "lengths"])


# --- who is faster, and from where on -----------------------------------------------------------------------------------


def speed_ratio(table: pd.DataFrame, ours: str, peer: str, column: str = "ms") -> pd.Series:
    """How many times slower the peer is, by length, where both were measured."""
    wide = table[table["system"].isin([ours, peer])].pivot_table(index="length", columns="system", values=column)
    if not {ours, peer} <= set(wide.columns):
        return pd.Series(dtype=float)
    return (wide[peer] / wide[ours]).dropna()


def crossing_table(ratio: pd.Series) -> list[float]:
    """Lengths at which the ratio passes 1, between neighbours along a straight line of the logarithms."""
    n, r = np.log(ratio.index.to_numpy(float)), np.log(ratio.to_numpy(float))
    at = np.flatnonzero(np.diff(r < 0))
    return np.exp(n[at] - r[at] * np.diff(n)[at] / np.diff(r)[at]).tolist()


def find_crossing(checkpoints: Path) -> float:
    """From which length on ELASTIC stays faster than SASRec with fused attention, by the shipped rows; NaN where none tell."""
    return _find_crossing(checkpoints, files.file_stamp(shipped_file(checkpoints)))


@functools.lru_cache(maxsize=4)
def _find_crossing(checkpoints: Path, stamp: tuple[int, ...]) -> float:
    table, column = usual_shape(shipped_rows(checkpoints))
    lengths = crossing_table(speed_ratio(table, "elastic", "sasrec-fused", column))
    return round_length(lengths[-1]) if lengths else math.nan


def round_length(length: float) -> float:
    """A crossing as it is said and drawn: it is not known to the single event."""
    return round(length, -1 if length >= 100 else 0)


def speed_sentence(table: pd.DataFrame, ours: str, peer: str, column: str = "ms") -> str:
    """Where the peer wins, where we win, and where they cross; no length is left out."""
    return _speed_comparison(speed_ratio(table, ours, peer, column), LABELS.get(ours, ours), LABELS.get(peer, peer))


def _speed_comparison(ratio: pd.Series, own_name: str, peer_name: str) -> str:
    """The same of how many times slower they are, by length."""
    if ratio.empty:
        return f"{own_name} and {peer_name} were not measured at the same lengths."
    losses, wins = ratio[ratio < 1], ratio[ratio >= 1]
    parts = []
    if len(losses):
        parts.append(
            f"{peer_name} is faster at N = {_list_lengths(losses.index, ratio.index)} (up to {1 / losses.min():.1f} times)."
        )
    if len(wins):
        parts.append(f"{own_name} is faster at N = {_list_lengths(wins.index, ratio.index)} (up to {wins.max():.1f} times).")
    crossed = " and ".join(f"{round_length(n):,.0f}" for n in crossing_table(ratio))
    end = f" They cross near N = {crossed}." if crossed else " They do not cross in this range."
    return " ".join(parts) + end


def _list_lengths(lengths: pd.Index, among: pd.Index) -> str:
    """`64 to 256, 1,024`: three and more that were measured one after the other are a range."""
    places, parts = np.sort(among.get_indexer(lengths)), list[str]()
    for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        names = [f"{int(among[place]):,}" for place in run]
        parts += [f"{names[0]} to {names[-1]}"] if len(names) > 2 else names
    return ", ".join(parts)


def history_sentence(table: pd.DataFrame, length: int, column: str = "ms") -> str:
    """Time and memory of reading one history of this length with ELASTIC and with fused SASRec; empty where one was not
    measured."""
    rows = table[table["length"] == length].set_index("system")
    if not {"elastic", "sasrec-fused"} <= set(rows.index):
        return ""
    costs = {
        name: f"{_short_number(rows.at[name, column])} ms with {_short_number(rows.at[name, 'memory'])} MB"
        for name in ("elastic", "sasrec-fused")
    }
    ratio = rows.at["sasrec-fused", column] / rows.at["elastic", column]
    winner, times = ("ELASTIC", ratio) if ratio > 1 else ("SASRec", 1 / ratio)
    end = f"{winner} is {times:.1f} times as fast" if times >= 1.05 else "they are about equally fast"
    return f"On a processor, ELASTIC reads {length:,} events in {costs['elastic']}, SASRec in {costs['sasrec-fused']}: {end}."


def _short_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def memory_words(table: pd.DataFrame) -> str:
    """How the peaks compare at the longest length that ELASTIC and each SASRec share."""
    parts: list[str] = []
    lengths: list[str] = []
    for peer in ("sasrec-eager", "sasrec-fused"):
        ratio = speed_ratio(table, "elastic", peer, "memory")
        if len(ratio):
            length, times = int(ratio.index[-1]), float(ratio.iloc[-1])
            if times >= 2:
                compared_text = f"{times:.1f} times as much memory as ELASTIC"
            else:
                compared_text = f"{abs(times - 1):.0%} {'more' if times > 1 else 'less'} memory than ELASTIC"
            parts.append(f"{LABELS[peer]} needs {compared_text}")
            lengths.append(f"{length:,}")
    at = f"At N = {' and '.join(dict.fromkeys(lengths))}"
    return f"{at}, {'; '.join(parts)}." if parts else ""


# --- one new event -------------------------------------------------------------------------------------------------------


def event_words(wide: pd.DataFrame) -> str:
    """One new event, kept state against kept keys and values, in words; `wide` has a row a length and a column a system (ms).

    Ours always with its refresh. The peer's first without one, the harder rival: it needs none while its window has room."""
    ours, peer = (_event_text(wide, system, refreshed=True) for system in ("elastic", "sasrec-fused"))
    event_text = _event_text(wide, "sasrec-fused", refreshed=False)
    if ours.empty:
        return "The kept state was not measured."
    sentence = f"One new event takes ELASTIC {ours.min():.2f} to {ours.max():.2f} ms, with a refresh every {ROOM} events."
    if event_text.empty:
        return sentence
    sentence += " SASRec, if it keeps what it computed for earlier events, takes "
    sentence += f"{event_text.min():.2f} to {event_text.max():.2f} ms. "
    sentence += _speed_comparison((event_text / ours).dropna(), LABELS["elastic"], LABELS["sasrec-fused"])
    if len(peer):
        times = peer / ours
        sentence += (
            " If there are more events than SASRec reads at once, it must start again from time to time, too. Then it takes "
        )
        sentence += f"{times.min():.1f} to {times.max():.1f} times as long as ELASTIC."
    return sentence


def with_refresh(table: pd.DataFrame) -> pd.DataFrame:
    """The events with rows `elastic-event` behind them: a step and its part of a refresh, as `event_words` counts ours."""
    step, refresh = (table[table["system"] == f"elastic{part}"].set_index("length") for part in (STREAM, REFRESH))
    ends = ["ms", "low", "high"]
    both = step.assign(**(step[ends] + refresh[ends] / ROOM), system="elastic-event").dropna(subset="ms").reset_index()
    return pd.concat([table, both[table.columns]], ignore_index=True) if len(both) else table


def _event_text(wide: pd.DataFrame, system: str, refreshed: bool) -> pd.Series:
    """Milliseconds of one event by length, with its part of a refresh; empty where it was not measured."""
    step, refresh = f"{system}{STREAM}", f"{system}{REFRESH}"
    if step not in wide or (refreshed and refresh not in wide):
        return pd.Series(dtype=float)
    return (wide[step] + wide[refresh] / ROOM if refreshed else wide[step]).dropna()
