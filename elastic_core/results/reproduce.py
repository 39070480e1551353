"""Every run behind the result tables, as data: a name, what it varies, and the configuration. Resumable, one by one.

Numbers from the papers are never mixed in here: the tables show only what these runs measured.
"""

import fnmatch
import functools
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from elastic_core import models
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import ALSO_CHOSEN, ALSO_TUNED, grid_point, recipe
from elastic_core.results import store
from elastic_core.run_config import RunConfig
from elastic_core.runs import CONFIG, Run, open_run, run_folder
from elastic_core.runs.training import OnEvent, train

Status = Literal["finished", "interrupted", "missing", "other settings"]

REPEATS, OWN_OUTPUT, OWN_REPEATS = "repeats", "own-output", "own-output-repeats"  # end a run's name: any model can be
REPEAT_COUNTS, LONG_HISTORY = "repeat-counts", "length-1000"
MARKS: dict[str, tuple[str, ...]] = {  # with a repeat bias; one that counts; scoring by another table; both; longer
    REPEATS: ("model.repeat_bias=true",),
    REPEAT_COUNTS: ("model.repeat_bias=true", "model.repeat_counts=true"),
    OWN_OUTPUT: ("model.output=own",),
    OWN_REPEATS: ("model.output=own", "model.repeat_bias=true"),
    LONG_HISTORY: ("model.length=1000", "train.minutes=40"),
}
SIDES, EXPERTS = (8, 16, 32, 64, 128, 256, 512), (4, 8, 16)  # Figure 5
FEWER = (2, 4)  # experts: does a suggestion more often belong to one where fewer are retrieved?
# What Table 3 of the paper takes away, PKM-ACT, and the gate and query norm that keep the memory alive. These runs are causal, so
# PKM-ACT's memories are all asked with the same events, not with each layer's input; only the two-way form asks as it prints.
VARIANTS: dict[str, tuple[str, ...]] = {
    "query-mean": ("model.query=mean",),
    "memory-none": ("model.memory=none",),
    "dispatch-none": ("model.dispatch=none",),
    "pkm-act": ("model.memory=per-layer",),
    "gate-none": ("model.gate=none", "model.balance_weight=0"),
    "norm-layer": ("model.query_norm=layer", "model.balance_weight=0"),
    "no-local": ("model.conv_width=0",),
    "votes": ("model.name=elastic-votes", "objective.retrieval=random"),
    # the paper's own encoder: two-way, P carried on from layer to layer, no convolution; it learns from everybody's last event
    "two-way": ("objective.name=last", "model.bidirectional=true", "model.conv_width=0"),
}
# What other models come in: of interest slots a step taken back; is ELASTIC ahead because of its memory or of the convolution
# beside it? And the other systems of the papers, all tuned alike (results/grid.py). Model → name → settings.
FORMS: dict[str, dict[str, tuple[str, ...]]] = {
    "elastic": VARIANTS
    | {"grid": ("model.conv_width=8",)}
    | {f"side-{side}": (f"model.n_subkeys={side}",) for side in SIDES}
    | {f"k-{k}": (f"model.k={k}",) for k in EXPERTS},
    "elastic-slots": {name: VARIANTS[name] for name in ("memory-none", "query-mean")}
    | {f"k-{k}": (f"model.k={k}",) for k in FEWER}
    | {"side-8": ("model.n_subkeys=8",)},
    "sasrec": {"local": ()},  # SASRec with the convolution that ELASTIC has on the same data, see _each
    "hstu": {"time": ("model.time_bias=previous",)},
    "lisa": {
        "soft": ("model.form=soft", "model.codewords=16"),
        "mini": ("model.form=mini", "model.codewords=32"),
        "plain": ("model.form=plain",),
        "frozen": ("model.form=frozen",),
        "wide": ("model.width=128", "model.dropout=0.1", "train.epochs=200", "train.patience=200"),  # as in the paper
    },
    "sma": {"ctreg": ("model.ctreg_weight=0.1",)},
    "din": {
        "recency": ("model.recency=true",),
        "sma": ("model.intensity=event",),
        "sma-ctreg": ("model.intensity=event", "model.ctreg_weight=0.1"),
    },
    "shan": {"sma": ("model.intensity=state",)},
}
BEGIN = {("lisa", "frozen"): "sasrec"}  # whose weights on the same data, of the first seed, a training begins with
# Systems: models by name, behind a stroke what is changed.
COUNTING = "popularity cooccurrence"
TABLE_3 = "elastic/query-mean elastic/memory-none elastic/dispatch-none elastic/pkm-act elastic/gate-none"  # where truth is known
REST = "elastic/norm-layer elastic/no-local"
# Nobody watches a film twice: who is ahead where every model has a repeat bias?
FILM_SYSTEMS = "sasrec elastic sasrec/local hstu gru4rec lrurec elastic/memory-none elastic-slots"
FIRST = "fpmc gru4rec bert4rec linrec lrurec hstu lisa"  # beside ours and SASRec on every kind of data
PEERS = (
    "fpmc gru4rec bert4rec linrec lrurec hstu hstu/time lisa lisa/plain lisa/frozen lisa/soft lisa/mini sma sma/ctreg din"
    " din/recency din/sma din/sma-ctreg shan shan/sma linformer reformer sinkhorn routing clustered esasrec mamba4rec"
)
LONG = "elastic elastic-slots sasrec linrec lrurec gru4rec lisa hstu fpmc bert4rec"  # recall by gap
CONVERGED = "elastic elastic/memory-none sasrec sasrec/local elastic-slots hstu lrurec"
RECIPE_FOR_ALL = "elastic/memory-none elastic sasrec/local sasrec hstu lrurec esasrec elastic-slots elastic-slots/memory-none"
BEST_THREE = "elastic/memory-none sasrec/local elastic"
SEEDS = (0, 1, 2)
# When does a personal memory pay? Worlds with so many interests, of which everybody has four; 20 items an interest.
INTERESTS, RETRIEVED = (4, 8, 16, 32, 64, 128), (4, 2, 8)
OPENED = ("elastic", "elastic-slots")  # by the app, of what was trained


class System(NamedTuple):
    """What runs that differ only in their seed have in common, a row of a table: a model, what of it is changed (`FORMS`), and by
    which recipe: what any model can be (`MARKS`), a budget, or the folder of somebody's own run."""

    model: str
    variant: str = ""
    mark: str = ""
    budget: str = ""
    own: str = ""

    def __str__(self) -> str:
        """`elastic (memory-none) (20 minutes of processor)`, in tables and addresses."""
        parts = (self.variant, self.mark, self.budget, self.own and f"own: {self.own}")
        return " ".join([self.model, *(f"({part})" for part in parts if part)])

    @property
    def recipe(self) -> tuple[str, ...]:
        """What has to be alike for a comparison."""
        return self[2:]


@dataclass(frozen=True)
class PlannedRun:
    """One run."""

    name: str
    data: str
    system: System
    config: RunConfig
    begin: str = ""  # the run whose weights it begins with

    def run_folder(self, root: Path) -> Path:
        return root / self.name


@functools.cache
def planned_runs() -> tuple[PlannedRun, ...]:
    """All of them, the quick ones first."""
    long = (*_plan_each("planted-long", "popularity", SEEDS[:1]), *_plan_each("planted-long", LONG))
    return (
        *_planted_runs(),
        *long,
        *_grocery_runs(),
        *_checkin_runs(),
        *_movielens_100k_runs(),
        *_video_games_runs(),
        *_movielens_1m_runs(),
        *_interest_curve_runs(),
    )


def select_runs(pattern: str) -> list[PlannedRun]:
    """Rows whose name fits a shell pattern or contains it. Raises InputError if none does."""
    chosen = [row for row in planned_runs() if fnmatch.fnmatch(row.name, pattern) or pattern in row.name]
    if not chosen:
        raise InputError(f"no run fits {pattern!r}; reproduce --list shows them all")
    return chosen


def _planted_runs() -> Iterator[PlannedRun]:
    yield from _plan_each("planted", f"{COUNTING} sasrec elastic elastic-slots", SEEDS[:1])
    yield from _plan_each("planted", "elastic-slots/memory-none")
    yield from _plan_each("planted", "sasrec elastic elastic-slots", SEEDS[1:])
    yield from _plan_each("planted", "sasrec/local")  # is ELASTIC ahead of SASRec because of its memory, or of the convolution?
    yield from _plan_each("planted-64", COUNTING, SEEDS[:1])
    yield from _plan_each("planted-64", "elastic-slots elastic-slots/memory-none sasrec sasrec/local elastic")
    yield from _plan_each("planted-64", FIRST)  # who else finds what slots find?
    yield from _plan_each("planted", f"{_memory_sizes('planted')} {TABLE_3}", SEEDS[:1])
    yield from _plan_each("planted-64", "sasrec", SEEDS[:1], REPEATS)
    yield from _plan_each("planted-64", "elastic-slots/query-mean", SEEDS[:1])
    yield from _plan_each("planted", "elastic/two-way")
    yield from _plan_each("planted-64", "elastic/two-way")


def _movielens_100k_runs() -> Iterator[PlannedRun]:
    yield from _plan_each("ml-100k", COUNTING, SEEDS[:1])
    yield from _plan_each("ml-100k", "sasrec elastic elastic-slots")
    yield from _plan_each("ml-100k", "elastic-slots/memory-none sasrec/local")
    for seed in SEEDS:
        yield from _plan_each("ml-100k", FILM_SYSTEMS, (seed,), REPEATS)
        yield from _plan_each("ml-100k", "elastic/votes", (seed,))
    yield from _plan_each("ml-100k", f"{TABLE_3} {REST}", SEEDS[:1])
    # validation's choice in the grid differs from ELASTIC's own recipe in this alone (tests/results/test_grid.py)
    yield from _plan_each("ml-100k", "elastic/grid")
    for (model, point), seed in itertools.product(ALSO_CHOSEN.items(), SEEDS):
        base, name = ALSO_TUNED[model][0], f"ml-100k-{model}-grid" + (f"-seed{seed}" if seed else "")
        config = grid_point(model, point).override(f"train.seed={seed}")
        yield PlannedRun(name, "ml-100k", System(base, f"{model.removeprefix(base)[1:]}-grid"), config)
    yield from _plan_each("ml-100k", "elastic/two-way")
    yield from _plan_each("ml-100k", _memory_sizes("ml-100k"), SEEDS[:1])
    yield from _plan_each("ml-100k", PEERS)
    yield from _plan_each("ml-100k", "lisa", SEEDS[:1], OWN_OUTPUT)  # codes learned with the items, which score by another table
    yield from _plan_each("ml-100k", "lisa/wide", SEEDS[:1])


def _video_games_runs() -> Iterator[PlannedRun]:
    ours = "sasrec sasrec/local elastic elastic/memory-none elastic-slots elastic-slots/memory-none"
    yield from _plan_each("video-games", COUNTING, SEEDS[:1])
    yield from _plan_each("video-games", f"{ours} {FIRST}")
    yield from _plan_each("video-games", "sasrec elastic", SEEDS[:1], OWN_OUTPUT)


def _grocery_runs() -> Iterator[PlannedRun]:
    yield from _plan_each("groceries", f"{COUNTING} frequency due-again", SEEDS[:1])
    yield from _plan_each("groceries", "elastic-slots elastic-slots/memory-none elastic elastic/memory-none")
    yield from _plan_each("groceries", "sasrec/local sasrec elastic/two-way")
    yield from _plan_each("groceries", "elastic-slots elastic-slots/memory-none sasrec/local", mark=REPEAT_COUNTS)
    yield from _plan_each("groceries", "elastic-slots elastic-slots/memory-none sasrec/local elastic", SEEDS[:1], LONG_HISTORY)
    yield from _plan_each("groceries", "elastic-slots/k-4 elastic-slots/k-2 elastic-slots/side-8", SEEDS[:2])


def _checkin_runs() -> Iterator[PlannedRun]:
    yield from _plan_each("checkins-nyc", f"{COUNTING} frequency", SEEDS[:1])
    yield from _plan_each("checkins-nyc", "elastic-slots elastic-slots/memory-none elastic elastic/memory-none", SEEDS)


def _movielens_1m_runs() -> Iterator[PlannedRun]:
    yield from _plan_each("ml-1m", COUNTING, SEEDS[:1])
    yield from _plan_each("ml-1m-cpu", "elastic elastic/memory-none elastic/votes sasrec sasrec/local elastic-slots")
    yield from _plan_each("ml-1m-cpu", FIRST)
    yield from _plan_each("ml-1m-cpu", "sasrec elastic", SEEDS[:1], REPEATS)
    yield from _plan_each("ml-1m-cpu", "sasrec sasrec/local elastic", mark=OWN_OUTPUT)
    # does the memory pay once nothing is left to learn?
    yield from _plan_each("ml-1m-converged", CONVERGED, SEEDS[:2], OWN_OUTPUT)
    yield from _plan_each("ml-1m-cpu", RECIPE_FOR_ALL, SEEDS[:2], OWN_REPEATS)
    yield from _plan_each("ml-1m-converged", RECIPE_FOR_ALL, SEEDS[:2], OWN_REPEATS)
    yield from _plan_each("ml-1m-converged", BEST_THREE, SEEDS[2:], OWN_REPEATS)
    yield from _plan_each("ml-1m", "sasrec elastic")
    yield from _plan_each("ml-1m", f"{TABLE_3} {REST} elastic/votes", SEEDS[:1])
    yield from _plan_each("ml-1m", "elastic", SEEDS[:1], REPEATS)
    yield from _plan_each("ml-1m", _memory_sizes("ml-1m"), SEEDS[:1])


def _interest_curve_runs() -> Iterator[PlannedRun]:
    """Experts of one's own against the same number for everybody, in worlds that differ in their number of interests alone."""
    for k, seed, interests in itertools.product(RETRIEVED, SEEDS[:2], INTERESTS):
        for model, variant in itertools.product(("elastic-slots", "elastic"), ("", "memory-none")):
            if (k, interests, model) == (4, 64, "elastic-slots"):
                continue  # those of planted-64
            world, changes = f"planted-i{interests}", (VARIANTS[variant] if variant else ())
            sizes = (f"data.planted.items={20 * interests}", f"data.planted.interests={interests}", f"model.k={k}")
            config = recipe("planted-64", model).override(*sizes, *changes, f"train.seed={seed}")
            name = "-".join(filter(None, [world, f"k{k}", model, variant, f"seed{seed}" if seed else ""]))
            yield PlannedRun(name, world, System(model, "-".join(filter(None, [f"k{k}", variant]))), config)


def _memory_sizes(data: str) -> str:
    """Figure 5: other numbers of experts, and of those that are retrieved."""
    base = recipe(data).to_dict()["model"]
    sizes = [f"side-{side}" for side in SIDES if side != base["n_subkeys"]] + [f"k-{k}" for k in EXPERTS if k != base["k"]]
    return " ".join(f"elastic/{size}" for size in sizes)


def _plan_each(data: str, systems: str, seeds: Sequence[int] = SEEDS, mark: str = "") -> Iterator[PlannedRun]:
    """A row a seed and system."""
    for seed, text in itertools.product(seeds, systems.split()):
        model, _, variant = text.partition("/")
        parts = filter(None, [data, model, variant, mark, f"seed{seed}" if seed else ""])
        config, settings = recipe(data, model), (*(FORMS[model][variant] if variant else ()), f"train.seed={seed}")
        if variant == "local":
            settings += (f"model.conv_width={recipe(data).to_dict()['model']['conv_width']}",)
        if mark:
            settings += MARKS[mark]
        if model in OPENED and not (variant or mark or seed):  # the app shows how its memory grew
            settings += ("train.snapshots=true",)
        config = config.override(*settings)
        clock = " of processor" if config.train.clock == "processor" else ""
        learns = bool(models.model_class(model).objective)  # counting takes no time
        budget = f"{config.train.minutes:g} minutes{clock}" if config.train.minutes and learns else ""
        world = data if config.data.source == "planted" else config.data.source
        begin = f"{data}-{BEGIN[model, variant]}" if (model, variant) in BEGIN else ""
        yield PlannedRun("-".join(parts), world, System(model, variant, mark, budget), config, begin)


# --- running ---------------------------------------------------------------------------------------------------------


class _OutOfTime(Exception):
    """Raised between epochs: the run stays as it was saved and goes on next time."""


class Deadline:
    """Watches a run's events and stops it at an epoch border if the next epoch would not fit. `at` is monotonic time."""

    def __init__(self, at: float, on_event: OnEvent) -> None:
        self.at, self.on_event = at, on_event
        self.border, self.longest = time.monotonic(), 0.0

    def __call__(self, event: dict[str, Any]) -> None:
        self.on_event(event)
        now = time.monotonic()
        if event["event"] == "epoch":
            self.longest, self.border = max(self.longest, now - self.border), now
        elif event["event"] == "step" and (now > self.at or (event["done"] == 1 and now + self.longest > self.at)):
            raise _OutOfTime


def run_of(row: PlannedRun, root: Path) -> Run | None:
    """The run of a row: what the tables keep of it, else the folder that is being trained, if there is one."""
    folder = Run(row.run_folder(root))
    return store.stored_runs(root).get(row.name) or (folder if (folder.path / CONFIG).exists() else None)


def planned_status(row: PlannedRun, root: Path) -> Status:
    """Where a row stands."""
    run = run_of(row, root)
    return "missing" if run is None else run_status(row, run)


def run_status(row: PlannedRun, run: Run) -> Status:
    """Whether a run is that of a row. Device and snapshots may differ from the recipe's, and a time budget it does not have."""
    timed = row.config.train.minutes > 0
    if _comparable_config(run.config, timed) != _comparable_config(row.config, timed):
        return "other settings"
    return "finished" if run.finished else "interrupted"


def has_weights(row: PlannedRun, root: Path) -> bool:
    """Whether a row's run can be opened here."""
    return Run(run_folder(root, row.name)).has_weights


def train_planned(
    row: PlannedRun,
    dataset: Dataset,
    root: Path,
    device: str,
    at: float = math.inf,
    on_event: OnEvent = lambda event: None,
) -> bool:
    """Trains one row into its folder, or goes on with what is there, until `at` (monotonic time). True if it is finished now."""
    folder = row.run_folder(root)
    begun = (folder / CONFIG).exists()
    if begun and run_status(row, Run(folder)) == "other settings":
        raise InputError(f"{folder} holds a run with other settings than the recipe has now; move it away first")
    if row.config.train.minutes:  # a budget of time means something on one kind of device only
        device = row.config.train.device
    config = (Run(folder).config if begun else row.config).override(f"train.device={device}")
    begin = open_run(run_folder(root, row.begin)) if row.begin else None
    try:
        train(config, dataset, folder, Deadline(at, on_event), begin=begin)
    except _OutOfTime:
        return False
    return True


def add_run(folder: Path, root: Path) -> PlannedRun:
    """Adds a finished run of one of the rows, whose name its folder has, to the tables in `root`.

    Raises InputError if no row has this name, for other settings than the row's, and for a run that is not finished."""
    run = open_run(folder)
    row = next((row for row in planned_runs() if row.name == folder.resolve().name), None)
    if row is None:
        raise InputError(f"no planned run is called {run.name}; reproduce --list shows them all")
    if run_status(row, run) == "other settings":
        raise InputError(f"{folder} holds a run with other settings than the recipe has now")
    system, recipe = row.system, filter(None, (row.system.mark, row.system.budget))
    kind = f"{system.model}/{system.variant}" if system.variant else system.model
    store.add_run(run, root, kind, ", ".join(recipe), row.data)
    return row


def _comparable_config(config: RunConfig, timed: bool) -> RunConfig:
    budget = config.train.minutes if timed else 0.0
    return replace(config, train=replace(config.train, device="cpu", minutes=budget, snapshots=False))
