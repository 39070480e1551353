"""What each open question of the paper costs, measured here: read from finished runs and benchmark rows, or checked live.

Nothing is typed in: where no run exists the effect says so and names the command that would measure it.
"""

import math
import statistics
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch

from elastic_core import models
from elastic_core.comparisons import average, comparable, compare_runs
from elastic_core.core.batches import Batch
from elastic_core.core.config import ModelConfig
from elastic_core.core.evaluate import PROTOCOLS
from elastic_core.errors import InputError
from elastic_core.evaluation import verdict
from elastic_core.evaluation.compare import Comparison
from elastic_core.labels import join_names
from elastic_core.memory.routing import Routing
from elastic_core.reproduce import MARKS, System, rows, run_of
from elastic_core.runs import Run
from elastic_core.services.keys.checks import Printed
from elastic_core.services.method.notes import PAPER, PAPER_METRICS, PAPER_SAYS_DROP, VARIANTS
from elastic_core.services.speed import curves

REPRODUCE = "python -m elastic_core reproduce --only {name}"
MISSING = "Not measured yet."
TABLE_3 = {
    "variant": object, "NDCG@10 here": float, "± 95%": float, "people": "Int64", "seeds": int, "ELASTIC − variant": object,
    "paper, ML-1M, its protocol": float, "run, or what would measure it": object,
}  # fmt: skip
NEEDS = "Choose a run with a memory to see {what} live. "


class Effect(NamedTuple):
    """`text` is Markdown. `source`: the runs or the check behind it. `command`: what would measure what is missing."""

    text: str
    source: str
    command: str = ""


class MeasuredVariant(NamedTuple):
    """One variant on one dataset: the test metric's mean over people and seeds, and its 95% half-width over people."""

    runs: tuple[str, ...]
    mean: float
    half: float
    people: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.half:.4f}"


def measured_variant(root: Path, data: str, variant: str, protocol: str = "full") -> MeasuredVariant | None:
    """What the ranks of a row's finished runs say; None if there are none."""
    found = _runs(root, data, variant)
    if not found:
        return None
    try:
        found = [run for run in found if comparable(found[0], run)]
        reports = [run.report() for run in found]
        mean, error, _, _ = average(reports, protocol, "NDCG@10")
    except (InputError, ValueError):
        return None
    return MeasuredVariant(tuple(run.name for run in found), mean, 1.96 * error, len(reports[0].users))


def against(root: Path, data: str, variant: str, protocol: str = "full") -> Comparison | None:
    """ELASTIC minus a variant of it, on NDCG@10; None if either was not measured."""
    sides = _runs(root, data, "elastic"), _runs(root, data, variant)
    try:
        return compare_runs(*sides, protocol) if variant != "elastic" and all(sides) else None
    except InputError:
        return None


def _runs(root: Path, data: str, variant: str) -> Sequence[Run]:
    marked = System("elastic", mark=variant) if variant in MARKS else System("elastic", variant)
    system = System(variant) if variant in models.names() else marked
    found = list[Run]()
    for run in [run_of(row, root) for row in rows() if row.data == data and row.system == system]:
        with suppress(InputError, OSError):
            if run is not None and run.finished and run.has_report:
                found.append(run)
    return found


def table_3(root: Path, data: str, protocol: str) -> pd.DataFrame:
    """The variants: ours with interval, people, seeds and protocol; the paper's value in a column of its own."""
    lines = list[tuple]()
    for variant, about in VARIANTS.items():
        ours, paper = measured_variant(root, data, variant, protocol), PAPER.get(variant, (None,))[0]
        found = against(root, data, variant, protocol)
        numbers = verdict.numbers(found) if found else ""
        if ours is None:
            lines.append((about, None, None, None, 0, numbers, paper, REPRODUCE.format(name=_name(data, variant))))
        else:
            lines.append((about, ours.mean, ours.half, ours.people, len(ours.runs), numbers, paper, ", ".join(ours.runs)))
    return pd.DataFrame(lines, columns=list(TABLE_3)).astype(TABLE_3)


def spoken(table: pd.DataFrame) -> pd.DataFrame:
    """The same as text for a page: a number with its interval, or that there is none."""
    shown = table[["variant"]].copy()
    numbers = zip(table["NDCG@10 here"], table["± 95%"], strict=True)
    shown["NDCG@10 here ± 95%"] = ["not measured yet" if math.isnan(a) else f"{a:.4f} ± {b:.4f}" for a, b in numbers]
    shown["people"] = ["–" if pd.isna(people) else f"{people:,}" for people in table["people"]]
    shown["seeds"] = table["seeds"]
    shown["ELASTIC − variant"] = table["ELASTIC − variant"]
    paper = table["paper, ML-1M, its protocol"]
    shown[paper.name] = ["not in the paper" if math.isnan(value) else f"{value:.4f}" for value in paper]
    return shown


def _name(data: str, variant: str) -> str:
    return f"{data}-{variant}" if variant in models.names() else f"{data}-elastic-{variant}"


# --- the nine questions ----------------------------------------------------------------------------------------------


def of_gate(root: Path, data: str, gradients: pd.DataFrame | None) -> Effect:
    """a: gradient with and without the gate in the chosen model, and what it costs after training."""
    text = NEEDS.format(what="its gradient")
    if gradients is not None:
        starved = gradients.loc[gradients["without_gate"] == 0, "group"].tolist()
        norms = gradients.set_index("group")["with_gate"]
        said, kept = (join_names(each) or "no parameters" for each in (starved, [f"{norms[group]:.2g}" for group in starved]))
        text = f"In one step of the chosen run, without a gate {said} get exactly 0 as gradient. With it: {kept}. "
    base, without = (measured_variant(root, data, name) for name in ("elastic", "gate-none"))
    if base is None or without is None:
        name = _name(data, "gate-none" if base else "elastic")
        return Effect(text + f"After training: {MISSING.lower()}", "", REPRODUCE.format(name=name))
    text += f"After training, NDCG@10 is {base} with it, and {without} without (full, test, {base.people:,} people on {data})"
    found = against(root, data, "gate-none")
    text += f". The difference is {verdict.numbers(found)}." if found else "."
    return Effect(text, ", ".join(map(_seeded, (base.runs, without.runs))))


def _seeded(runs: tuple[str, ...]) -> str:
    """`ml-100k-elastic (3 seeds)`"""
    return f"{runs[0]} ({len(runs)} seeds)" if len(runs) > 1 else runs[0]


def of_printed(printed: Printed | None) -> Effect:
    """b: Eq. 7 as printed, on the chosen run's own people."""
    if printed is None:
        return Effect(NEEDS.format(what="it"), "")
    text = (
        f"As printed, {printed.queries:,} people keep {printed.shared:.1f} of their {printed.k} experts on average. "
        f"{printed.used_printed} experts come first for somebody, not {printed.used}. q₂ makes no difference."
    )
    return Effect(text, "live, the chosen run")


def of_loss() -> Effect:
    """c: what Eq. 10 would reward."""
    sure, wrong = 0.9, 0.1
    printed, proper = ({p: sign * math.log(p) for p in (sure, wrong)} for sign in (1, -1))
    text = (
        f"For the right item, Equation 10 is {printed[sure]:.2f} at ŷ = {sure} and {printed[wrong]:.2f} at ŷ = {wrong}. So "
        f"whoever makes it small forgets the answer. Cross-entropy: {proper[sure]:.2f} and {proper[wrong]:.2f}."
    )
    return Effect(text, "live")


def of_peeking() -> Effect:
    """d: change the last event of a history; do states before it move?"""
    text = f"With another last event, earlier states move by up to {_moved(True):.2g} in the two-way form, and by "
    text += f"{_moved(False):.1g} in the causal form (not trained, 16 events, states of size 1)."
    return Effect(text, "live; tests/test_contracts.py::test_no_peeking")


@torch.inference_mode()
def _moved(bidirectional: bool) -> float:
    settings = {"length": 16, "width": 16, "layers": 2, "dropout": 0.0, "side": 4, "k": 4, "bidirectional": bidirectional}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = models.build(ModelConfig.known["elastic"](**settings), 40).eval()
    one = torch.arange(1, 17)[None].repeat(8, 1)
    other = one.clone()
    other[:, -1] = torch.arange(20, 28)
    earlier = torch.nn.functional.pad(one[:, :8], (8, 0))  # what the causal form retrieves from lies before the change
    states = [model(Batch(items, items if bidirectional else earlier)).states[:, :-1] for items in (one, other)]
    return float((states[0] - states[1]).abs().max())


def of_protocols(root: Path, data: str) -> Effect:
    """e: the same model, four protocols."""
    found = {p: measured_variant(root, data, "sasrec", p) for p in PROTOCOLS}
    if any(value is None for value in found.values()):
        return Effect(MISSING, "", REPRODUCE.format(name=_name(data, "sasrec")))
    shown = ", ".join(f"{protocol} {value}" for protocol, value in found.items())
    full, easy = found["full"], found["pop100"]
    assert full is not None and easy is not None
    ratio = easy.mean / full.mean
    text = f"The same SASRec has NDCG@10: {shown} ({full.people:,} people). pop100 is {ratio:.1f} times as large as full."
    return Effect(text, _seeded(full.runs))


def of_speed(checkpoints: Path) -> Effect:
    """f: both SASRecs, from the rows and by the time that the Speed screen opens with, and the same tricks for both sides."""
    length, (table, column) = 1_024, curves.usual(curves.shipped(checkpoints))
    own, peers = "elastic-two-way", ("sasrec-eager", "sasrec-fused")
    ratio = {peer: curves.versus(table, own, peer, column).get(length) for peer in peers}
    room = {peer: curves.versus(table, own, peer, "memory").get(length) for peer in peers}
    causal = curves.versus(table, "elastic", "sasrec-fused", column).get(length)
    if causal is None or any(value is None for value in (*ratio.values(), *room.values())):
        return Effect(MISSING, "", f"python -m elastic_core bench --lengths {length}")
    text = (
        f"At {length:,} events, the two-way form takes 1/{ratio[peers[0]]:.1f} of the time of eager SASRec, and "
        f"1/{ratio[peers[1]]:.1f} of fused SASRec. The causal form takes 1/{causal:.1f} of fused. Memory, two-way: "
        f"{_less(1 - 1 / room[peers[0]])} eager, {_less(1 - 1 / room[peers[1]])} fused. Time {curves.TIMES[column]}, forward. "
        f"In the last layer, all compute only the last event. Measured on {curves.shape_name(curves.shapes(table)[0])}."
    )
    return Effect(text, "benchmarks.csv, the rows of the Speed screen")


def _less(share: float) -> str:
    return f"{share:.0%} less than" if share >= 0.01 else f"{-share:.0%} more than" if share <= -0.01 else "about the same as"


def of_averages() -> Effect:
    """g: the average drop that the paper's own table gives."""
    shown = []
    for variant, said in PAPER_SAYS_DROP.items():
        drops = [1 - without / full for full, without in zip(PAPER["elastic"], PAPER[variant], strict=True)]
        says = " and ".join(f"{value:.2f}%" for value in said)
        shown.append(f"{VARIANTS[variant].split(':')[0]}: {statistics.fmean(drops):.2%} (the text says {says})")
    return Effect(f"How much Table 3 itself loses, the mean of {len(PAPER_METRICS)} metrics: {'; '.join(shown)}.", "")


def of_settings(run: Run) -> Effect:
    """h: what the chosen run uses."""
    model, train = run.config.model, run.config.train
    names = {"width": "d", "layers": "L", "heads": "H", "stride": "stride", "dropout": "dropout", "side": "√K", "k": "k"}
    own = ", ".join(f"{shown} {getattr(model, name):g}" for name, shown in names.items() if hasattr(model, name))
    text = f"The chosen run: {own}; {train.optimizer}, learning rate {train.learning_rate:g}, batch {train.batch}."
    return Effect(text, f"{run.name}/config.json")


def of_balance(routing: Routing | None) -> Effect:
    """i: load beside random experts."""
    if routing is None:
        return Effect(NEEDS.format(what="its experts beside random ones"), "")
    low, high, used = routing.chance(draws=100)
    load = sorted(routing.load)
    outside = sum(not a <= value <= b for value, a, b in zip(load, low, high, strict=True)) / len(load)
    text = (
        f"In the chosen run, the busiest expert is used by {max(load):,} of {len(routing.experts):,} people. Among "
        f"random experts, by at most {high[-1]:.0f} (97.5%). In use: {routing.used:.0%}, by luck {used:.0%}. {outside:.0%} of "
        "the experts lie outside the random band."
    )
    return Effect(text, "live, test split")
