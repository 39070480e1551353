"""The tables of README.md and checkpoints/RESULTS.md, from the ranks that the planned runs keep (nobody else's numbers).

`readme_tables` is the README's: both ELASTICs beside the baselines and SASRec. `results_tables` has a table per data set: every
system and variant under every protocol, and both ELASTICs minus each. `run_tables` is for any planned runs, on the terminal.
"""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from elastic_core import files
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data.source_catalog import PLANTED
from elastic_core.errors import InputError
from elastic_core.results import store
from elastic_core.results.compare import (
    METRIC,
    NO_RANKS,
    Claim,
    average_over_seeds,
    needs_training,
    p_text,
)
from elastic_core.results.personal_gain import gain_sentence, personal_gains, read_interest_counts
from elastic_core.results.reproduce import PlannedRun, System
from elastic_core.results.systems import (
    BASELINES,
    OURS,
    WITH_REPEATS,
    Systems,
    data_sets,
    is_variant,
    main_elastic,
    main_protocol,
    mark_notes,
    model_label,
    our_systems,
    planned_data_sets,
    recipe_label,
    rivals_of,
    system_title,
    variants_of,
    with_repeat_bias,
)
from elastic_core.results.table import best_baseline, compare_system
from elastic_core.runs import Run

BEGIN, END = "<!-- results -->", "<!-- /results -->"
BASKET_COLUMNS = ("basket NDCG@10", "basket recall@10")
DATA_ORDER = ("ml-100k", "ml-1m", "amazon-video-games", "groceries", "planted", "planted-64")


def rewrite_documents(root: Path) -> list[Path]:
    """Writes the tables anew between `BEGIN` and `END`: of the README beside `root`, and of RESULTS.md in it.

    Raises InputError where a file is missing or has no such place; then none is written."""
    texts, root = {}, root.resolve()
    for path, tables in ((root.parent / "README.md", readme_tables), (root / "RESULTS.md", results_tables)):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}") from None
        if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
            raise InputError(f"{path} has no place for tables between {BEGIN} and {END}")
        texts[path] = text[: text.index(BEGIN)] + tables(root) + text[text.index(END) + len(END) :]
    for path, text in texts.items():
        files.write_text(path, text)
    return list(texts)


def readme_tables(root: Path) -> str:
    """What stands in the README between `BEGIN` and `END`."""
    return "\n\n".join([BEGIN, *_summary_table(_data_in_order(root)), END])


def results_tables(root: Path) -> str:
    """What stands in RESULTS.md between `BEGIN` and `END`."""
    parts = [part for systems in _data_in_order(root) for part in _data_table(systems)]
    return "\n\n".join([BEGIN, *parts, *mark_notes(parts), *_gain_table(root), END])


def _gain_table(root: Path) -> Iterable[str]:
    """Personal minus shared experts by interests an expert: made-up worlds, real data."""
    measured, _ = data_sets(store.load(root))
    gains = personal_gains(measured, read_interest_counts(root))
    if gains.empty:
        return
    yield "## When do personal experts pay?"
    yield gain_sentence(gains)
    lines = [
        (
            row["data"], row["model"], str(row["k"]), f"{row['interests']:,}{'' if row['made up'] else ' (counted)'}",
            f"{row['difference']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})",
            {"A": "personal better", "B": "personal worse"}.get(row["winner"], "not known"), str(row["seeds"]),
        )
        for row in gains.to_dict("records")
    ]  # fmt: skip
    heads = ("data", "model", "k", "interests", "personal minus shared, NDCG@10", "claim", "trainings")
    yield markdown_table(heads, lines)


def run_tables(planned: Iterable[PlannedRun], root: Path, protocol: str = "full") -> str:
    """A section per data set, with 95% intervals over users; `protocol` may be `all` (NDCG@10 under each)."""
    by_data = planned_data_sets(root, planned)
    return "\n\n".join(_run_section(data, systems, protocol) for data, systems in by_data.items()) or "nothing is finished yet"


def _data_in_order(root: Path) -> list[Systems]:
    by_data = planned_data_sets(root)
    return [by_data[data] for name in DATA_ORDER for data in by_data if data.split(" (")[0] == name]


# --- cells ------------------------------------------------------------------------------------------------------------


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *lines))


def _score_cells(runs: list[Run], metric_columns: Sequence[tuple[str, str]]) -> list[str]:
    """`0.1282 ± 0.0168` for each protocol and metric, or why not."""
    if not all(run.has_report for run in runs):
        return [NO_RANKS] + [""] * (len(metric_columns) - 1)
    reports = [run.report() for run in runs]
    intervals = [average_over_seeds(reports, protocol, metric) for protocol, metric in metric_columns]
    return [f"{each.mean:.4f} ± {1.96 * each.error:.4f}" for each in intervals]


def _spread_cell(runs: list[Run], protocol: str) -> str:
    """Standard deviation over seeds."""
    if len(runs) < 2 or not all(run.has_report for run in runs):
        return ""
    return f"{statistics.stdev(run.report().mean_interval(protocol, METRIC).mean for run in runs):.4f}"


def _n_seeds(runs: list[Run]) -> str:
    return str(len(runs)) if runs[0].last_event("start").get("parameters") else "–"


def _data_titles(systems: Systems) -> tuple[str, str]:
    """What a data set is called, and how many users and items it has."""
    run = next(iter(systems.values()))[0]  # a baseline has its table of items, runs that are kept for their ranks have none
    start, test = run.last_event("start"), run.last_event("test")
    world = f" ({run.config.data.planted.interests} interests)" if run.config.data.source == PLANTED else ""
    size = f"{test.get('users', 0):,} people, {run.n_items():,} items, data {start.get('data_hash')}"
    return f"{start.get('data')}{world}", size


# --- README -----------------------------------------------------------------------------------------------------------


def _summary_table(data_sets: Sequence[Systems]) -> Iterable[str]:
    """A row a data set, of the recipe that validates best where ELASTIC and both SASRecs have several seeds: NDCG@10, and ELASTIC
    minus plain SASRec and minus the SASRec that is fair to compare with, bold where it may be claimed."""
    lines = []
    for systems in data_sets:
        ours = main_elastic(systems)
        if ours is None:
            continue
        protocol = main_protocol(systems)
        columns = [best_baseline(systems, protocol), *_summary_systems(ours)]
        claims = compare_system(systems, ours, rivals_of(ours, systems), protocol)  # adjusted as in RESULTS
        _, sasrec, control, *_ = columns
        cells = [_summary_score(systems[each], protocol) if each in systems else "" for each in columns]
        minus = [_summary_claim(claims[rival]) if rival in claims else "" for rival in (sasrec, control)]
        if control in claims:  # a lead over plain SASRec claims nothing beside the fair control
            minus[0] = minus[0].replace("**", "")
        known_text = "" if protocol == "full" else ", known items stay"
        lines.append([_data_titles(systems)[0] + recipe_label(ours) + known_text, *cells, *minus])
    if lines:
        heads = ["NDCG@10 ± 95% over people", "best by counting", model_label("sasrec"), "SASRec with convolution"]
        heads += [model_label(OURS[0]), "interest slots", "ELASTIC minus SASRec: 95%, p"]
        heads += ["ELASTIC minus SASRec with convolution: 95%, p"]
        yield markdown_table(heads, lines)


def _summary_systems(ours: System) -> tuple[System, System, System, System]:
    """SASRec, SASRec with ELASTIC's convolution, ELASTIC and interest slots, all by one recipe."""
    sasrec = ours._replace(model="sasrec")
    return sasrec, sasrec._replace(variant="local"), ours, ours._replace(model=OURS[1])


def _summary_score(runs: list[Run], protocol: str) -> str:
    """`0.1282 ± 0.0168`, which says so where somebody trained once."""
    return _score_cells(runs, [(protocol, METRIC)])[0] + (", one run" if len(runs) == 1 and needs_training(runs[0]) else "")


def _summary_claim(claim: Claim) -> str:
    comparison = claim.comparison
    if comparison is None:
        return NO_RANKS
    bold, p = "**" if claim.winner else "", p_text(claim.adjusted_p) if comparison.seeds_counted else "one run"
    return f"{bold}{comparison.difference:+.4f}{bold} ({comparison.low:+.4f} to {comparison.high:+.4f}), {p}"


# --- RESULTS ----------------------------------------------------------------------------------------------------------


def _data_table(systems: Systems) -> Iterable[str]:
    """One data set: recipe by recipe the baselines, the systems, and our models with one thing changed. Each row has its scores
    and what both our models of the same recipe have more, bold where it may be claimed."""
    name, size = _data_titles(systems)
    yield f"### {name}\n\n{size}"
    protocol = main_protocol(systems)
    heads = ["NDCG@10 ± 95% over people", "seeds", *PROTOCOLS, f"{protocol} HR@10"]
    heads += list(BASKET_COLUMNS) if _in_baskets(systems) else []
    heads += [f"{model_label(model)} minus it, {protocol}: 95%, adjusted p" for model in OURS]
    recipes = list(dict.fromkeys(system.recipe for system in [*our_systems(systems), *systems]))
    lines = [line for recipe in recipes for line in _recipe_rows(systems, recipe, recipe == recipes[0])]
    yield markdown_table(heads, lines)


def _recipe_rows(systems: Systems, recipe: tuple[str, ...], first: bool) -> Iterable[list[str]]:
    """Baselines need no training and belong to every recipe: they stand beside the first, and where something may be claimed."""
    ours = [system for system in our_systems(systems) if system.recipe == recipe]
    may_claim = any(len(systems[system]) > 1 for system in ours)
    compared_systems = [system for system in systems if system.model in BASELINES and (first or may_claim)]
    trained = [system for system in systems if system.model not in BASELINES and system.recipe == recipe]
    claims = {one.model: _claims_of(systems, one) for one in ours}
    main = main_protocol(systems)
    metric_columns = [*((protocol, METRIC) for protocol in PROTOCOLS), (main, "HR@10")]
    biased = [(system, one) for one in ours for system in with_repeat_bias(one, systems)]
    titles = {system: system_title(system, systems[system]) for system in [*compared_systems, *sorted(trained, key=is_variant)]}
    titles |= {system: f"{model_label(one.model)}{recipe_label(one)}: {WITH_REPEATS}" for system, one in biased}
    for system, title in titles.items():
        runs = systems[system]
        minus = [claims.get(model, {}).get(system) for model in OURS]
        cells = [*_score_cells(runs, metric_columns), *(_basket_cells(runs) if _in_baskets(systems) else ())]
        yield [title, _n_seeds(runs), *cells, *(_summary_claim(claim) if claim else "" for claim in minus)]


def _in_baskets(systems: Systems) -> bool:
    return any(run.last_event("test").get("basket") for runs in systems.values() for run in runs)


def _basket_cells(runs: list[Run]) -> list[str]:
    """Mean over seeds of how a list of ten does against the whole last basket."""
    scores = [run.last_event("test").get("basket", {}) for run in runs]
    return [
        f"{statistics.fmean(score[name] for score in scores):.4f}" if all(name in score for score in scores) else ""
        for name in BASKET_COLUMNS
    ]


def _claims_of(systems: Systems, ours: System) -> dict[System, Claim]:
    """One of our models minus its rivals, and minus its own variants, each adjusted for their number."""
    families = rivals_of(ours, systems), variants_of(ours, systems)
    protocol = main_protocol(systems)
    return {system: claim for family in families for system, claim in compare_system(systems, ours, family, protocol).items()}


# --- the terminal -----------------------------------------------------------------------------------------------------


def _run_section(data: str, systems: Systems, protocol: str) -> str:
    first = next(iter(systems.values()))[0]
    start, test = first.last_event("start"), first.last_event("test")
    if protocol == "all":
        metric_columns = [(name, METRIC) for name in PROTOCOLS]
        heads, what = [f"{name} {metric}" for name, metric in metric_columns], "all protocols"
    else:
        metric_columns = [(protocol, metric) for metric in (METRIC, "HR@10")]
        heads, what = [metric for _, metric in metric_columns], f"protocol {protocol}"
    heads = ["system", "seeds", *(f"{head} ± 95%" for head in heads), "spread of seeds", "parameters", "experts used", "device"]
    title = f"{start.get('data', data)}, data {start.get('data_hash', '?')}, test split, {what}, {test.get('users', 0):,} people"
    lines = []
    for system, runs in systems.items():
        used = [test["used"] for run in runs if "used" in (test := run.last_event("test"))]
        starts = [run.last_event("start") for run in runs]
        lines.append([
            str(system), str(len(runs)), *_score_cells(runs, metric_columns), _spread_cell(runs, metric_columns[0][0]),
            f"{starts[0].get('parameters', 0):,}", f"{statistics.fmean(used):.0%}" if used else "",
            ", ".join(sorted({str(start.get("device", "?")) for start in starts})),
        ])  # fmt: skip
    return f"{title}\n\n{markdown_table(heads, lines)}"
