"""The tables of README.md and checkpoints/RESULTS.md, from the ranks that the planned runs keep (nobody else's numbers).

`readme_tables` is the README's: both ELASTICs beside the baselines and SASRec. `results_tables` is all: every protocol, both
ELASTICs against their own variants, each with and without a number for what was seen, what is below the baselines, and hosts with
and without self-modulating attention. `run_tables` is for any planned runs, on the terminal.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from elastic_core import disk
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data import load
from elastic_core.data.source_catalog import PLANTED
from elastic_core.errors import InputError
from elastic_core.results import grid
from elastic_core.results.compare import (
    METRIC,
    NO_RANKS,
    Claim,
    Comparison,
    average_over_seeds,
    compare_if_ranked,
    make_claims,
    p_text,
)
from elastic_core.results.reproduce import OWN_OUTPUT, REPEATS, PlannedRun, System, planned_runs
from elastic_core.results.systems import (
    BASELINES,
    OURS,
    UNEVEN,
    UNEVEN_NOTE,
    VARIANTS,
    WITH_REPEATS,
    Systems,
    fair_sasrec,
    is_variant,
    model_label,
    our_systems,
    planned_data_sets,
    recipe_label,
    rivals_of,
    system_label,
    system_title,
    with_repeat_bias,
)
from elastic_core.results.table import best_baseline, compare_system, remembered_by_systems, result_table
from elastic_core.runs import Run

BEGIN, END = "<!-- results -->", "<!-- /results -->"
DATA_ORDER = ("ml-100k", "ml-1m", "amazon-video-games", "groceries", "planted", "planted-64")
# Self-modulating attention: host, and what was added; NDCG@10 of both as the paper has them (Amazon, Koubei, Tmall).
SASREC_THERE, DIN_THERE = (0.16131, 0.27070, 0.34326), (0.13443, 0.24186, 0.33855)
MODULATED: tuple[tuple[System, System, str, tuple[float, ...], tuple[float, ...]], ...] = (
    (System("sasrec"), System("sma"), "SASRec + SMA", SASREC_THERE, (0.16475, 0.27862, 0.35214)),
    (System("sasrec"), System("sma", "ctreg"), "SASRec + SMA + CTReg", SASREC_THERE, (0.16529, 0.28083, 0.35811)),
    (System("din"), System("din", "sma"), "DIN + SMA", DIN_THERE, (0.13383, 0.25444, 0.34580)),
    (System("din"), System("din", "sma-ctreg"), "DIN + SMA + CTReg", DIN_THERE, (0.13296, 0.25411, 0.35062)),
    (System("shan"), System("shan", "sma"), "SHAN + SMA", (), ()),
)
MORE = "More: our other model against each system, what is below counting and how it learned, hosts with and without"


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
        disk.write_text(path, text)
    return list(texts)


def readme_tables(root: Path) -> str:
    """What stands in the README between `BEGIN` and `END`."""
    return "\n\n".join([BEGIN, *_summary_table(_data_in_order(root)), END])


def results_tables(root: Path) -> str:
    """What stands in RESULTS.md between `BEGIN` and `END`."""
    parts = [part for systems in _data_in_order(root) for part in _data_tables(systems, root)]
    notes = [UNEVEN_NOTE] if any(UNEVEN in part for part in parts) else []
    return "\n\n".join([BEGIN, *parts, *notes, END])


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


def _score_cells(runs: list[Run], measured: Sequence[tuple[str, str]]) -> list[str]:
    """`0.1282 ± 0.0168` for each protocol and metric, or why not."""
    if not all(run.has_report for run in runs):
        return [NO_RANKS] + [""] * (len(measured) - 1)
    reports = [run.report() for run in runs]
    intervals = [average_over_seeds(reports, protocol, metric) for protocol, metric in measured]
    return [f"{each.mean:.4f} ± {1.96 * each.error:.4f}" for each in intervals]


def _score_cell(runs: list[Run], protocol: str = "full") -> str:
    return _score_cells(runs, [(protocol, METRIC)])[0]


def _spread_cell(runs: list[Run], protocol: str) -> str:
    """Standard deviation over seeds."""
    if len(runs) < 2 or not all(run.has_report for run in runs):
        return ""
    return f"{statistics.stdev(run.report().metrics[protocol][METRIC] for run in runs):.4f}"


def _difference_cell(comparison: Comparison | None) -> str:
    """`+0.0150 (+0.0047 to +0.0252), 0.0683`"""
    if comparison is None:
        return ""
    return f"{comparison.difference:+.4f} ({comparison.low:+.4f} to {comparison.high:+.4f}), {p_text(comparison.p)}"


def _claim_cell(claim: Claim, a: str, b: str) -> str:
    return f"**{claim.text(a, b)}**" if claim.winner else claim.text(a, b)


def _n_seeds(runs: list[Run]) -> str:
    return str(len(runs)) if runs[0].last("start").get("parameters") else "–"


def _data_titles(systems: Systems) -> tuple[str, str]:
    """What a data set is called, and how many users and items it has."""
    run = next(iter(systems.values()))[0]  # a baseline has its table of items, runs that are kept for their ranks have none
    start, test = run.last("start"), run.last("test")
    world = f" ({run.config.data.planted.interests} interests)" if run.config.data.source == PLANTED else ""
    size = f"{test.get('users', 0):,} people, {run.n_items():,} items, data {start.get('data_hash')}"
    return f"{start.get('data')}{world}", size


# --- README -----------------------------------------------------------------------------------------------------------


def _summary_table(data_sets: Sequence[Systems]) -> Iterable[str]:
    """One table: NDCG@10 of a data set and recipe, and ELASTIC minus the SASRec that is fair to compare with, bold where it may
    be claimed."""
    lines = []
    for systems in data_sets:
        best = best_baseline(systems, "full")
        for ours in (system for system in our_systems(systems) if system.model == OURS[0] and system.mark != REPEATS):
            sasrec, slots, control = ours._replace(model="sasrec"), ours._replace(model=OURS[1]), fair_sasrec(ours, systems)
            shown = (best, sasrec, sasrec._replace(variant="local"), ours, slots)
            cells = [_score_cell(systems[each]) if each in systems else "" for each in shown]
            claims = compare_system(systems, ours, rivals_of(ours, systems), "full")  # adjusted as in RESULTS
            note = "" if control.variant or sasrec not in claims else "plain SASRec: "
            cells.append(note + _summary_claim(claims[control]) if control in claims else "")
            lines.append([_data_titles(systems)[0] + recipe_label(ours), *cells])
    if lines:
        heads = ["NDCG@10, all unmet items, ± 95% over people", "best by counting", model_label("sasrec"), "with our convolution"]
        heads += [model_label(OURS[0]), "with interest slots", "ELASTIC minus SASRec with our convolution: 95%, p"]
        yield markdown_table(heads, lines)


def _summary_claim(claim: Claim) -> str:
    by_data = claim.comparison
    if by_data is None:
        return NO_RANKS
    bold, p = "**" if claim.winner else "", p_text(claim.adjusted_p) if by_data.seeds_counted else "one run"
    return f"{bold}{by_data.difference:+.4f}{bold} ({by_data.low:+.4f} to {by_data.high:+.4f}), {p}"


# --- RESULTS ----------------------------------------------------------------------------------------------------------


def _data_tables(systems: Systems, root: Path) -> Iterable[str]:
    """The tables of one data set: the systems, ELASTIC against each and what carries it; the others behind a click."""
    yield from _system_table(systems)
    yield from _rival_tables(systems, OURS[0])
    yield from _variant_tables(systems)
    yield from _remembered_table(systems)
    yield from _marked_table(systems, REPEATS, "Told what was met before, by one learned number")
    yield from _marked_table(systems, OWN_OUTPUT, "Items scored by a table of their own")
    more = [*_rival_tables(systems, *OURS[1:]), *_below_baseline_table(systems, root), *_modulated_table(systems)]
    if more:
        yield f"<details>\n<summary>{MORE}</summary>"
        yield from more
        yield "</details>"


def _system_table(systems: Systems) -> Iterable[str]:
    plain = {system: runs for system, runs in systems.items() if not is_variant(system)}
    if not plain:
        return
    name, size = _data_titles(plain)
    yield f"### {name}\n\n{size}"
    measured = [*((protocol, METRIC) for protocol in PROTOCOLS), ("full", "HR@10")]
    heads = ["NDCG@10 ± 95% over people", "seeds", *PROTOCOLS, "full HR@10", "spread of seeds, full"]
    yield markdown_table(heads, [
        (system_title(system, runs), _n_seeds(runs), *_score_cells(runs, measured), _spread_cell(runs, "full"))
        for system, runs in plain.items()
    ])  # fmt: skip


def _rival_tables(systems: Systems, *models: str) -> Iterable[str]:
    """Each of these models of ours against its rivals, under every protocol."""
    for ours in our_systems(systems):
        if ours.model in models:
            peers = {system_title(rival, systems[rival]): systems[rival] for rival in rivals_of(ours, systems)}
            yield _difference_table(f"{system_title(ours, systems[ours])} minus", systems[ours], peers, PROTOCOLS)


def _variant_tables(systems: Systems) -> Iterable[str]:
    """Our models against forms of their own that lack one thing, in the order of their training."""
    trained = [row.name for row in planned_runs()]
    for whole in sorted(our_systems(systems), key=lambda system: (system.model, trained.index(systems[system][0].name))):
        parts = {
            about: systems[system]
            for (model, variant), about in VARIANTS.items()
            if model == whole.model and (system := whole._replace(variant=variant)) in systems
        }
        if biased := with_repeat_bias(whole, systems):
            parts[WITH_REPEATS] = systems[biased[0]]
        if parts:
            title = f"What carries it: {model_label(whole.model)}{recipe_label(whole)} minus"
            yield _difference_table(title, systems[whole], parts, ("full", "full-seen"), show_score=True)


def _difference_table(
    title: str, runs: list[Run], peers: Mapping[str, list[Run]], protocols: Sequence[str], show_score: bool = False
) -> str:
    """One row a peer: its own NDCG@10 (`show_score`), ELASTIC minus it under each protocol, and what may be claimed under the
    first, after Holm's adjustment for the number of peers that could be claimed about."""
    name, lines = model_label(runs[0].config.model.name), []
    claims = make_claims([compare_if_ranked(runs, other, protocols[0]) for other in peers.values()])
    for (peer, other), claim in zip(peers.items(), claims, strict=True):
        cells = [_score_cell(other)] if show_score else []
        cells.append(_difference_cell(claim.comparison))
        cells += [_difference_cell(compare_if_ranked(runs, other, protocol)) for protocol in protocols[1:]]
        lines.append([peer, *cells, _claim_cell(claim, name, peer)])
    heads = [title, *(["full"] if show_score else []), *(f"{protocol}: 95%, p" for protocol in protocols), "claim, full"]
    return markdown_table(heads, lines)


def _remembered_table(systems: Systems) -> Iterable[str]:
    """Where the truth is planted: what each system, and slots with a step taken back, remember of an interest by its silence."""
    run = next(run for runs in systems.values() for run in runs)
    if run.config.data.source != PLANTED:
        return
    shown = {system_label(one): runs for one, runs in systems.items() if one.model == OURS[1] or not is_variant(one)}
    table = remembered_by_systems(shown, load(run.config.data))
    if table.empty:
        return
    people = dict(zip(table["gap"], table["people"], strict=True))
    heads = [f"{gap} ({many:,})" for gap, many in people.items()]
    yield markdown_table(["Share of the oracle, full-seen, by gap (people)", "seeds", *heads], [
        [name, _n_seeds(shown[str(name)]), *(f"{share:.2f}" for share in mine["share"])]
        for name, mine in table.groupby("system", sort=False)
    ])  # fmt: skip


def _marked_table(systems: Systems, mark: str, title: str) -> Iterable[str]:
    """Each system with and without what any of them can be: with a repeat bias, where items seldom come again, or scoring by a
    table of its own."""
    pairs = {
        system_label(plain): (systems[plain], runs)
        for system, runs in systems.items()
        if system.mark == mark and (plain := system._replace(mark="")) in systems
    }
    if not pairs:
        return
    claims, lines = {protocol: _gain_table(pairs, protocol) for protocol in ("full", "full-seen")}, []
    for name, sides in pairs.items():
        cells = []
        for protocol, of_names in claims.items():
            cells += [_score_cell(side, protocol) for side in sides] + [_difference_cell(of_names[name].comparison)]
        claim = claims["full"][name]
        words = {"A": "**better with it**", "B": "**better without**"}.get(claim.winner, claim.text("", ""))
        lines.append([name, ", ".join(str(len(side)) for side in sides), *cells, words])
    heads = [title, "seeds without, with"]
    heads += [f"{protocol}{what}" for protocol in claims for what in (" without", " with", ": 95%, p")]
    yield markdown_table([*heads, "claim, full"], lines)


def _gain_table(pairs: Mapping[str, tuple[list[Run], list[Run]]], protocol: str) -> dict[str, Claim]:
    """What may be said of each name's runs with something (second) minus those without (first), adjusted for them all."""
    comparisons = [compare_if_ranked(after, before, protocol) for before, after in pairs.values()]
    return dict(zip(pairs, make_claims(comparisons), strict=True))


def _below_baseline_table(systems: Systems, root: Path) -> Iterable[str]:
    """The trained systems whose test mean is below the best baseline's, and how their training went: the means over seeds."""
    best = best_baseline(systems, "full")
    if best is None:
        return
    measured = result_table(systems, ["full"], [METRIC])
    means = dict(zip(measured["system"], measured["mean"], strict=True))
    below = [system for system in means if system.model not in BASELINES and means[system] < means[best]]
    outcomes, lines = grid.read_outcomes(root / grid.FILE), []
    for system, claim in compare_system(systems, best, below, "full").items():
        by_data, curves = claim.comparison, [epochs for run in systems[system] if (epochs := run.events("epoch"))]
        if by_data is None or not curves:
            continue
        same = (outcomes["model"] == str(system)) & (outcomes["data_hash"] == systems[system][0].last("start").get("data_hash"))
        points = [f"{point} {valid:.3f}" for point, valid in outcomes.loc[same, ["point", "valid"]].itertuples(index=False)]
        claimed = f"**{model_label(best.model)} is better**" if claim.winner == "A" else claim.text("", "")
        minus = f"{-by_data.difference:+.4f} ({-by_data.high:+.4f} to {-by_data.low:+.4f}), {p_text(by_data.p)}"
        lines.append([system_title(system, systems[system]), minus, claimed, *_training_cells(curves), ", ".join(points)])
    if lines:
        name = model_label(best.model)
        heads = [f"Below {name}, full, test", "minus it: 95%, p", "claim", "best epoch", "validation, best → end"]
        yield markdown_table([*heads, "loss, best → end", "points of the grid tried, validation"], lines)


def _training_cells(curves: list[list[dict]]) -> list[str]:
    """The best epoch of every seed; validation and loss there and at the end, the means over seeds."""
    best = [max(epochs, key=lambda epoch: float(epoch["valid"][METRIC])) for epochs in curves]
    last = [epochs[-1] for epochs in curves]
    valid = [statistics.fmean(epoch["valid"][METRIC] for epoch in epochs) for epochs in (best, last)]
    loss = [statistics.fmean(epoch["loss"] for epoch in epochs) for epochs in (best, last)]
    where = ", ".join(f"{epoch['epoch']} of {len(epochs)}" for epoch, epochs in zip(best, curves, strict=True))
    return [where, f"{valid[0]:.4f} → {valid[1]:.4f}", f"{loss[0]:.2f} → {loss[1]:.2f}"]


def _modulated_table(systems: Systems) -> Iterable[str]:
    """Each host with and without self-modulating attention and CTReg, where any was run."""
    if not any(system in systems for _, system, *_ in MODULATED):
        return
    pairs = {name: (systems.get(host, []), systems.get(system, [])) for host, system, name, *_ in MODULATED}
    claims = _gain_table({name: sides for name, sides in pairs.items() if all(sides)}, "full")
    lines = []
    for _, _, name, before, after in MODULATED:
        claim, scores = claims.get(name), [_score_cell(runs) if runs else "not run" for runs in pairs[name]]
        words = {"A": f"**{name} is better**", "B": "**the host alone is better**"}
        claimed = words.get(claim.winner, claim.text("", "")) if claim else ""
        gain = f"{sum(after) / sum(before) - 1:+.1%}" if before else "–"
        lines.append([name, *scores, _difference_cell(claim.comparison if claim else None), claimed, gain])
    heads = ["Self-modulating attention, previous interval, full", "host alone", "with it", "with − without: 95%, p"]
    yield markdown_table([*heads, "claim", "paper’s gain"], lines)


# --- the terminal -----------------------------------------------------------------------------------------------------


def _run_section(data: str, systems: Systems, protocol: str) -> str:
    first = next(iter(systems.values()))[0]
    start, test = first.last("start"), first.last("test")
    if protocol == "all":
        measured = [(name, METRIC) for name in PROTOCOLS]
        heads, what = [f"{name} {metric}" for name, metric in measured], "all protocols"
    else:
        measured = [(protocol, metric) for metric in (METRIC, "HR@10")]
        heads, what = [metric for _, metric in measured], f"protocol {protocol}"
    heads = ["system", "seeds", *(f"{head} ± 95%" for head in heads), "spread of seeds", "parameters", "experts used", "device"]
    title = f"{start.get('data', data)}, data {start.get('data_hash', '?')}, test split, {what}, {test.get('users', 0):,} people"
    lines = []
    for system, runs in systems.items():
        used = [test["used"] for run in runs if "used" in (test := run.last("test"))]
        starts = [run.last("start") for run in runs]
        lines.append([
            str(system), str(len(runs)), *_score_cells(runs, measured), _spread_cell(runs, measured[0][0]),
            f"{starts[0].get('parameters', 0):,}", f"{statistics.fmean(used):.0%}" if used else "",
            ", ".join(sorted({str(start.get("device", "?")) for start in starts})),
        ])  # fmt: skip
    return f"{title}\n\n{markdown_table(heads, lines)}"
