"""What people call a row of a table (`System`), a run, its data and a model; which runs are one system, on which data.

A system is a model, one with something changed, or somebody's own run. A repeat bias, or scoring by a table of its own, is a
recipe, as any model can be: it is compared with its like.
"""

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elastic_core.core.config import ModelConfig
from elastic_core.data.source_catalog import PLANTED
from elastic_core.errors import InputError
from elastic_core.files import UnreadableFolder
from elastic_core.results.baselines import ONLY_UNSEEN, WITH_SEEN
from elastic_core.results.compare import METRIC, evaluation_key, needs_training, setup_key
from elastic_core.results.reproduce import (
    EXPERTS,
    FEWER,
    LONG_HISTORY,
    OWN_OUTPUT,
    OWN_REPEATS,
    REPEAT_COUNTS,
    REPEATS,
    RETRIEVED,
    SIDES,
    PlannedRun,
    System,
    planned_runs,
    run_of,
    run_status,
)
from elastic_core.runs import Run

Systems = dict[System, list[Run]]  # runs that differ only in their seed

UNEVEN = "†"  # of a run that was trained while a target's weight still depended on its batch
DIVERGED = "‡"  # of a run whose training loss rose at the end
MARK_NOTES = {
    UNEVEN: "trained while a target's weight still depended on its batch (`checkpoints/LOG.md`); other rows were not.",
    DIVERGED: "the training loss rose at the end, so the row says little of what this model can do.",
}
BASELINES = ("popularity", "cooccurrence", "frequency", "due-again")  # they only count, and need no training
OURS = ("elastic", "elastic-slots")
CONTROLS = {
    ("sasrec", "local"): "SASRec with a local convolution",
    ("hstu", "time"): "HSTU with time",
    ("lisa", "plain"): "LISA with a plain item table",
    ("lisa", "frozen"): "LISA with a trained SASRec's codes",
    ("lisa", "wide"): "LISA, 128 wide, 200 epochs",
    ("lisa", "soft"): "LISA-Soft",
    ("lisa", "mini"): "LISA-Mini",
    ("sma", "ctreg"): "SMA + CTReg",
    ("din", "recency"): "DIN with recency",
    ("din", "sma"): "DIN + SMA",
    ("din", "sma-ctreg"): "DIN + SMA + CTReg",
    ("shan", "sma"): "SHAN + SMA",
}
ELASTIC_VARIANTS = {
    "dispatch-none": "no dispatcher (self-attention, the experts as extra keys)",
    "no-local": "no local convolution (ours)",
    "query-mean": "average pooling instead of the query network",
    "memory-none": "no memory: the same k interests for everybody",
    "pkm-act": "PKM-ACT: a retrieval before every layer",
    "norm-layer": "layer norm instead of whitening, no balance term",
    "gate-none": "no gate, no balance term: Algorithm 1 as printed, a frozen random router",
    "votes": "experts by votes of the events instead of one query, and the loss that gives them meaning (ours)",
    "two-way": "the paper's own encoder: two-way, no convolution, learned from the last event",
    "grid": "as the grid chose that every other system is tuned on: a convolution 8 wide, not 16",
    **{f"side-{side}": f"{side**2:,} experts (√K = {side})" for side in SIDES},
    **{f"k-{k}": f"k = {k} retrieved" for k in EXPERTS},
}
SLOT_VARIANTS = {
    "memory-none": "no memory: the same slots for k interests that everybody shares",
    "memory-none-grid": "the same without memory, as the grid chose that every other system is tuned on",
    "query-mean": "one query, the mean of the events, instead of votes",
    **{f"k-{k}": f"k = {k} retrieved" for k in FEWER},
    "side-8": "64 experts (√K = 8)",
}
CURVE_VARIANTS = {  # of both, in worlds with more or fewer interests
    **{f"k{k}": f"k = {k} retrieved" for k in RETRIEVED},
    **{f"k{k}-memory-none": f"no memory: the same {k} interests for everybody" for k in RETRIEVED},
}
VARIANTS = {
    (model, name): about
    for model, variants in zip(OURS, (ELASTIC_VARIANTS | CURVE_VARIANTS, SLOT_VARIANTS | CURVE_VARIANTS), strict=True)
    for name, about in variants.items()
}
WITH_REPEATS = "with a learned number for what was met before (ours)"
MARK_LABELS = {
    REPEATS: "with a bonus for seen items",
    REPEAT_COUNTS: "with a bonus per time seen",
    OWN_OUTPUT: "with output table of its own",
    OWN_REPEATS: "with output table and seen-item bonus",
    LONG_HISTORY: "of 1,000 events",
}
# A variant in a run's name, where what stands before the first comma or bracket of `VARIANTS` does not tell it from others.
SHORT_VARIANTS = {
    "grid": "settings of the grid",
    "memory-none-grid": "no memory, settings of the grid",
    "votes": "votes and meaning",
    "query-mean": "one average query",
}
BUDGET = re.compile(r" \([\d.]+ minutes[^()]*\)")  # of a name, where all that are compared have the same
SIZE = re.compile(r", K = \d+², k = \d+")  # of a name
MARK = re.compile("|".join(f", {label}" for label in MARK_LABELS.values()))  # of a name
LONG_HISTORIES = 500  # events: a made-up world with longer histories says so
USUAL_ITEMS = (800, 1_280)  # of the made-up worlds that open in the app; others say how many they have
MADE_UP, FILMS = "made-up worlds", "real films"


# --- labels -----------------------------------------------------------------------------------------------------------


def model_label(model: str) -> str:
    """What people call a model: `elastic-slots` → ELASTIC with interest slots."""
    known = ModelConfig.known.get(model)
    return (known.label or model) if known else model


def is_variant(system: System) -> bool:
    """Whether this is one of our models with one thing changed, whatever the recipe."""
    return system[:2] in VARIANTS


def recipe_label(system: System) -> str:
    """What is put behind a name: `, with a bonus for seen items (20 minutes)`."""
    mark = f", {MARK_LABELS[system.mark]}" if system.mark else ""
    budget = system.budget.replace(" of processor", " of processor time")
    return "".join([mark, *(f" ({part})" for part in (budget, system.own and f"own: {system.own}") if part)])


def system_label(system: System) -> str:
    """What a system is called: its model or control, what is changed in it, and its recipe."""
    if system[:2] in CONTROLS:
        return f"{CONTROLS[system[:2]]}{recipe_label(system)}"
    about = f": {VARIANTS[system[:2]]}" if is_variant(system) else ""
    return f"{model_label(system.model)}{about}{recipe_label(system)}"


def system_title(system: System, runs: Sequence[Run]) -> str:
    """The same with the size of its memory, where that is its own, and marks: ELASTIC, K = 16², k = 8 (20 minutes)."""
    diverged = f" {DIVERGED}" if any(has_diverged(run) for run in runs) else ""
    if system[:2] in CONTROLS or is_variant(system):
        return f"{system_label(system)}{diverged}"
    model = runs[0].config.model
    size = f", K = {model.n_subkeys}², k = {model.k}" if hasattr(model, "n_subkeys") and hasattr(model, "k") else ""
    uneven = f" {UNEVEN}" if any("targets" not in row for run in runs for row in run.events("epoch")) else ""
    return f"{model_label(system.model)}{size}{recipe_label(system)}{uneven}{diverged}"


def shorten_titles(titles: Sequence[str]) -> list[str]:
    """The same without budgets, sizes and recipes, or as many of these in this order as keep them apart."""
    short = list(titles)
    for pattern in (BUDGET, SIZE, MARK):
        shorter = [pattern.sub("", title) for title in short]
        if len(set(shorter)) < len(set(titles)):
            break
        short = shorter
    return short


def mark_notes(titles: Iterable[str]) -> list[str]:
    """What the marks behind these names mean, a sentence each."""
    text = "".join(titles)
    return [f"{mark} {note}" for mark, note in MARK_NOTES.items() if mark in text]


def has_diverged(run: Run) -> bool:
    """Whether the loss of the last two epochs is more than 2 % above the lowest."""
    losses = [float(row["loss"]) for row in run.events("epoch")]
    return len(losses) > 2 and min(losses[-2:]) > 1.02 * min(losses)


def system_order(system: System) -> tuple[int, str, bool, bool]:
    """Baselines first, then the others by name, ours last; a control stands behind what it changes, a recipe behind that."""
    model = system.model
    if model in BASELINES:
        group = BASELINES.index(model)
    else:
        group = 9 + OURS.index(model) if model in OURS else len(BASELINES)
    return group, model_label(model), system[:2] in CONTROLS or is_variant(system), bool(system.mark)


def data_label(run: Run) -> str:
    """What people call the data of a run: `MovieLens-100K`, `Made-up world (64 interests)`. Raises InputError for a configuration
    that cannot be read."""
    data = run.config.data
    if data.source == PLANTED:
        world = data.planted
        more = ", long histories" if world.mean_length > LONG_HISTORIES else f", {world.items:,} items"
        return f"Made-up world ({world.interests} interests{'' if world.items in USUAL_ITEMS else more})"
    return str(run.last_event("start").get("data") or data.source)


def run_label(run: Run) -> str:
    """What people call a run: `ELASTIC · MovieLens-100K · seed 0`. No two shipped runs are called alike; the name of one's own
    ends with that of its folder, which is all that is left of a run that cannot be read."""
    try:
        model = run.config.model.name  # who has the name of a run that came along, and another model, is somebody's own
        planned = next((row.system for row in planned_runs() if row.name == run.name and row.config.model.name == model), None)
        name = short_label(planned) if planned else model_label(model)
        seed = f"seed {run.config.train.seed}" if needs_training(run) else ""
        own = "" if planned else run.name.removeprefix("local-")
        return " · ".join(filter(None, (name, data_label(run), seed, own)))
    except InputError:
        return run.name


def labels_apart(a: Run, b: Run) -> tuple[str, str]:
    """What two runs are called beside each other: the system, and of the rest no more than tells them apart."""
    parts_a, parts_b = (run_label(run).split(" · ") for run in (a, b))
    if BUDGET.findall(parts_a[0]) == BUDGET.findall(parts_b[0]):
        parts_a[0], parts_b[0] = (BUDGET.sub("", parts[0]) for parts in (parts_a, parts_b))
    if parts_a[0] != parts_b[0]:
        return parts_a[0], parts_b[0]
    only_a = [part for part in parts_a if part not in parts_b] or [a.name]
    only_b = [part for part in parts_b if part not in parts_a] or [b.name]
    return " · ".join((parts_a[0], *only_a)), " · ".join((parts_b[0], *only_b))


def short_label(system: System) -> str:
    """`system_label`, with a variant in a few words: `ELASTIC, no memory`."""
    if not is_variant(system):
        return system_label(system)
    about = SHORT_VARIANTS.get(system.variant) or re.split(r": | \(|, ", VARIANTS[system[:2]])[0]
    return f"{model_label(system.model)}, {about}{recipe_label(system)}"


def join_names(names: Sequence[str]) -> str:
    """Names as a sentence has them: `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


# --- what is compared with what ---------------------------------------------------------------------------------------


def our_systems(systems: Iterable[System]) -> list[System]:
    """The systems that the others are compared with: every ELASTIC that is no variant."""
    return [system for system in systems if system.model in OURS and not is_variant(system)]


def rivals_of(ours: System, systems: Iterable[System]) -> list[System]:
    """The other systems of the same recipe, and the baselines, which stand beside every recipe. Of two models of ours only the
    later one is held against the earlier, so that every pair is compared once."""
    later = OURS[OURS.index(ours.model) :]
    return [
        system
        for system in systems
        if not is_variant(system) and (system.recipe == ours.recipe or system.model in BASELINES) and system.model not in later
    ]


def variants_of(ours: System, systems: Iterable[System]) -> list[System]:
    """The same model and recipe with one thing changed; and the same with a repeat bias, where `ours` has no mark."""
    systems = list(systems)
    changed = [system for system in systems if is_variant(system) and system.model == ours.model and system.recipe == ours.recipe]
    return changed + with_repeat_bias(ours, systems)


def with_repeat_bias(ours: System, systems: Iterable[System]) -> list[System]:
    """The same system with a repeat bias, where it was run beside one that has none."""
    biased = ours._replace(mark=REPEATS)
    return [biased] if not ours.mark and biased in systems else []


def fair_sasrec(ours: System, systems: Iterable[System]) -> System:
    """The SASRec that ELASTIC may be called better than: of the same recipe, and with the same local convolution where that was
    run. ELASTIC has one beside its memory, so the plain SASRec lacks two things at once."""
    plain = System("sasrec", "", *ours.recipe)
    with_convolution = plain._replace(variant="local")
    return with_convolution if with_convolution in systems else plain


def best_by_validation(
    candidates: Iterable[System], systems: Systems, beside: Callable[[System], Iterable[System]]
) -> System | None:
    """Of a model by several recipes, the one with the best validation among those of which most may be claimed: where it and all
    that stands `beside` it were trained twice, before once. The first of equals; None where there is no candidate."""

    def rank(system: System) -> tuple[int, float]:
        compared = [systems.get(each, []) for each in (system, *beside(system))]
        seeds = [len(runs) if not runs or needs_training(runs[0]) else 2 for runs in compared]
        best = [max((float(row["valid"][METRIC]) for row in run.events("epoch")), default=0.0) for run in systems[system]]
        return min(2, *seeds), statistics.fmean(best)

    return max(candidates, key=rank, default=None)


def main_elastic(systems: Systems) -> System | None:
    """ELASTIC by the recipe that a table begins with: see `best_by_validation`, beside both SASRecs."""
    recipes = [system for system in our_systems(systems) if system.model == OURS[0] and not system.own]
    return best_by_validation(recipes, systems, lambda one: (one._replace(model="sasrec"), fair_sasrec(one, systems)))


def usual_partner(ours: System, systems: Systems) -> System | None:
    """What a system is set against first: a fair SASRec; else another model of the same recipe, another model, any other. One
    that was trained once comes last, as nothing may be claimed beside it."""
    others = [system for system in systems if system != ours]
    fair = fair_sasrec(ours, others)

    def distance(system: System) -> tuple[bool, bool, bool, bool, bool]:
        once = len(systems[system]) == 1 and needs_training(systems[system][0])
        is_fair = system == fair and ours.model != fair.model
        return once, not is_fair, system.model in BASELINES, system.model == ours.model, system.recipe != ours.recipe

    return min(others, key=distance, default=None)


def main_protocol(systems: Systems) -> str:
    """The protocol of what is claimed: seen items stay among the candidates where users often choose them again."""
    return WITH_SEEN if any(run.keeps_seen for runs in systems.values() for run in runs) else ONLY_UNSEEN


# --- runs by data and system ------------------------------------------------------------------------------------------


@dataclass
class DataSet:
    """What was tested on one data set. `key` is what an address calls it, `title` people, `hash` what its events are."""

    key: str
    title: str
    hash: str
    systems: Systems = field(default_factory=dict)
    users: int = 0

    @property
    def kind(self) -> str:
        """What sort of data it is, where people are told: made up, real films, or by its name."""
        source = next(iter(self.systems.values()))[0].config.data.source
        return MADE_UP if source == PLANTED else FILMS if source.startswith("ml-") else self.title

    def system_of(self, run: Path) -> System | None:
        """The system to which the run in a folder belongs."""
        return next((system for system, runs in self.systems.items() if any(each.path == run for each in runs)), None)


def planned_data_sets(root: Path, planned: Iterable[PlannedRun] | None = None) -> dict[str, Systems]:
    """The finished runs of the plan by data and system, in the order of the tables. What was measured on other events, users or
    candidates than the first of its data stands apart, under a name that says so.

    Raises InputError for a run that cannot be read."""
    by_data: dict[str, Systems] = {}
    first: dict[str, Run] = {}
    for row in planned_runs() if planned is None else planned:
        run = run_of(row, root)
        if run is None or run_status(row, run) != "finished":
            continue
        key, reference = evaluation_key(run), evaluation_key(first.setdefault(row.data, run))
        alike = all(value == expected for value, expected in zip(key, reference, strict=False))
        name = row.data if alike else f"{row.data} ({', '.join(map(str, key))})"
        by_data.setdefault(name, {}).setdefault(row.system, []).append(run)
    return {name: _in_order(systems) for name, systems in by_data.items()}


def data_sets(runs: Sequence[Run]) -> tuple[list[DataSet], list[UnreadableFolder]]:
    """Data sets with their systems in the order of the tables, the one with most systems first; and runs whose ranks cannot be
    read. Any run that is not of the plan is another seed of a system that is, if nothing but its seed differs, or a system of its
    own. Runs that keep no ranks are in neither."""
    by_evaluation, faults = dict[tuple[object, ...], DataSet](), list[UnreadableFolder]()
    plan = {row.name: row for row in planned_runs()}
    for run in sorted(runs, key=lambda run: (run.name not in plan, run.name)):
        if not run.has_report:
            continue
        try:
            key, row = evaluation_key(run), plan.get(run.name)
            if row is not None and run_status(row, run) != "finished":
                row = None
            data_set = by_evaluation.setdefault(key, DataSet("", "", run.report().data_hash))
            _add_run(data_set, run, row)
            data_set.users = len(run.report().users)
            if not data_set.title:
                data_set.title = data_label(run)
                data_set.key = row.data if row is not None else data_set.hash
                if data_set.key in [other.key for other in by_evaluation.values() if other is not data_set]:
                    data_set.key = "-".join(map(str, key))  # the same name, other events, users or candidates
        except InputError as error:
            faults.append(UnreadableFolder(run.path, str(error)))
    tested = [data_set for data_set in by_evaluation.values() if data_set.systems]
    titles = [data_set.title for data_set in tested]
    for data_set in tested:
        data_set.systems = _in_order(data_set.systems)
        data_set.title += f" ({data_set.key})" if titles.count(data_set.title) > 1 else ""
    return sorted(tested, key=lambda data_set: (-len(data_set.systems), data_set.key)), faults


def _add_run(data_set: DataSet, run: Run, row: PlannedRun | None) -> None:
    """Beside the runs that differ from it in nothing but the seed, or by itself. A seed counts once."""
    if row is not None:
        data_set.systems.setdefault(row.system, []).append(run)
        return
    setup = setup_key(run)
    for others in data_set.systems.values():
        if setup_key(others[0]) == setup:
            if needs_training(run) and run.config.train.seed not in {other.config.train.seed for other in others}:
                others.append(run)
            return
    data_set.systems[System(run.config.model.name, own=run.name)] = [run]


def _in_order(systems: Systems) -> Systems:
    return dict(sorted(systems.items(), key=lambda each: system_order(each[0])))
