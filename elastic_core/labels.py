"""What people call a row of a table (`System`): a model, one with something changed, or somebody's own run; and what they call a
run, its data and a model.

A repeat bias, or scoring by a table of its own, is a recipe, as any model can be: it is compared with its like.
"""

import re
from collections.abc import Sequence

from elastic_core.comparisons import needs_training
from elastic_core.core.config import ModelConfig
from elastic_core.data.source_catalog import PLANTED
from elastic_core.errors import InputError
from elastic_core.reproduce import EXPERTS, OWN_OUTPUT, OWN_REPEATS, REPEATS, SIDES, System, rows
from elastic_core.runs import Run

UNEVEN = "†"  # of a run that was trained while a target's weight still depended on its batch
UNEVEN_NOTE = f"{UNEVEN} trained while a target's weight still depended on its batch (`checkpoints/LOG.md`); other rows were not."
FLOORS = ("popularity", "cooccurrence")  # need no training
CONTROLS = {
    ("sasrec", "local"): "SASRec with ELASTIC's local convolution",
    ("hstu", "time"): "HSTU with time",
    ("lisa", "soft"): "LISA-Soft",
    ("lisa", "mini"): "LISA-Mini",
    ("sma", "ctreg"): "SMA + CTReg",
    ("din", "recency"): "DIN with recency",
    ("din", "sma"): "DIN + SMA",
    ("din", "sma-ctreg"): "DIN + SMA + CTReg",
    ("shan", "sma"): "SHAN + SMA",
}
OURS = ("elastic", "elastic-slots")
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
}
VARIANTS = {
    (model, name): about
    for model, variants in zip(OURS, (ELASTIC_VARIANTS, SLOT_VARIANTS), strict=True)
    for name, about in variants.items()
}

ABOUT_MET = "with a learned number for what was met before (ours)"
MARKED = {
    REPEATS: "with a repeat bias",
    OWN_OUTPUT: "scored by a table of its own",
    OWN_REPEATS: "scored by a table of its own, with a repeat bias",
}
BUDGET = re.compile(r" \([\d.]+ minutes[^()]*\)")  # of a name, where all that are compared have the same


def model_label(kind: str) -> str:
    """What people call a model: `elastic-slots` → ELASTIC with interest slots."""
    known = ModelConfig.known.get(kind)
    return (known.label or kind) if known else kind


def is_variant(system: System) -> bool:
    """Whether this is one of our models with one thing changed, whatever the recipe."""
    return system[:2] in VARIANTS


def recipe_in_words(system: System) -> str:
    """What is put behind a name: `, with a repeat bias (20 minutes)`."""
    mark = f", {MARKED[system.mark]}" if system.mark else ""
    return "".join([mark, *(f" ({part})" for part in (system.budget, system.own and f"own: {system.own}") if part)])


def explain_system(system: System) -> str:
    """What a control or a variant is called, with its recipe; nothing for other systems."""
    about = CONTROLS.get(system[:2]) or (f"{model_label(system.model)}: {VARIANTS[system[:2]]}" if is_variant(system) else "")
    return f"{about}{recipe_in_words(system)}" if about else ""


def in_words(system: System) -> str:
    """The same, and other systems by their model and recipe."""
    return explain_system(system) or f"{model_label(system.model)}{recipe_in_words(system)}"


def system_order(system: System) -> tuple[int, str, bool, bool]:
    """Floors first, then the peers by name, ours last; a control stands behind what it changes, and a recipe behind that."""
    kind = system.model
    group = FLOORS.index(kind) if kind in FLOORS else 9 + OURS.index(kind) if kind in OURS else len(FLOORS)
    return group, model_label(kind), system[:2] in CONTROLS or is_variant(system), bool(system.mark)


def named(system: System, runs: list[Run]) -> str:
    """`elastic (20 minutes)` → ELASTIC, K = 16², k = 8 (20 minutes)."""
    if known := explain_system(system):
        return known
    model = runs[0].config.model
    size = f", K = {model.side}², k = {model.k}" if hasattr(model, "side") and hasattr(model, "k") else ""
    mark = f" {UNEVEN}" if any("targets" not in row for run in runs for row in run.events("epoch")) else ""
    return f"{model_label(system.model)}{size}{recipe_in_words(system)}{mark}"


# A variant in a run's name, where what stands before the first comma or bracket of `VARIANTS` does not tell it from others.
SHORT = {
    "grid": "settings of the grid", "memory-none-grid": "no memory, settings of the grid", "votes": "votes and meaning",
    "query-mean": "one average query",
}  # fmt: skip
LONG = 500  # events: a made-up world with longer histories says so


def data_called(run: Run) -> str:
    """Return what people call the data of a run: `MovieLens-100K`, `Made-up world (64 interests)`. Raises InputError for a
    configuration that cannot be read."""
    data = run.config.data
    if data.source == PLANTED:
        long = ", long histories" if data.planted.mean_length > LONG else ""
        return f"Made-up world ({data.planted.interests} interests{long})"
    return str(run.last("start").get("data") or data.source)


def run_called(run: Run) -> str:
    """Return what people call a run: `ELASTIC · MovieLens-100K · seed 0`. No two shipped runs are called alike; the name of
    one's own ends with that of its folder, which is all that is left of a run that cannot be read."""
    try:
        kind = run.config.model.name  # who has the name of a run that came along, and other settings, is somebody's own
        planned = next((row.system for row in rows() if row.name == run.name and row.system.model == kind), None)
        system = _briefly(planned) if planned else model_label(kind)
        seed = f"seed {run.config.train.seed}" if needs_training(run) else ""
        own = "" if planned else run.name.removeprefix("local-")
        return " · ".join(filter(None, (system, data_called(run), seed, own)))
    except InputError:
        return run.name


def apart(a: Run, b: Run) -> tuple[str, str]:
    """Return what two runs are called beside each other: the system, and of the rest no more than tells them apart."""
    one, two = (run_called(run).split(" · ") for run in (a, b))
    if BUDGET.findall(one[0]) == BUDGET.findall(two[0]):
        one[0], two[0] = (BUDGET.sub("", parts[0]) for parts in (one, two))
    if one[0] != two[0]:
        return one[0], two[0]
    mine, theirs = ([part for part in parts if part not in others] for parts, others in ((one, two), (two, one)))
    return " · ".join((one[0], *(mine or [a.name]))), " · ".join((two[0], *(theirs or [b.name])))


def _briefly(system: System) -> str:
    """`in_words`, with a variant in a few words: `ELASTIC, no memory`."""
    if not is_variant(system):
        return in_words(system)
    told = SHORT.get(system.variant) or re.split(r": | \(|, ", VARIANTS[system[:2]])[0]
    return f"{model_label(system.model)}, {told}{recipe_in_words(system)}"


def join_names(names: Sequence[str]) -> str:
    """Return names as a sentence has them: `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
