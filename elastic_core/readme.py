"""The tables of README.md and checkpoints/RESULTS.md, from the ranks that the named runs keep.

`readme_summary` is the README's: both ELASTICs beside counting and SASRec. `results` is all: every protocol, both ELASTICs
against their own variants, each with and without a number for what was met, what is below counting, hosts with and without
self-modulating attention.
"""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from elastic_core import disk
from elastic_core.comparisons import average, compare_runs
from elastic_core.core.evaluate import PROTOCOLS
from elastic_core.data import load
from elastic_core.data.source_catalog import PLANTED
from elastic_core.errors import InputError
from elastic_core.evaluation.compare import Comparison
from elastic_core.evaluation.verdict import p_text
from elastic_core.labels import (
    ABOUT_MET,
    FLOORS,
    OURS,
    UNEVEN,
    UNEVEN_NOTE,
    VARIANTS,
    in_words,
    is_variant,
    model_label,
    named,
    recipe_in_words,
)
from elastic_core.report import against, data_sets, families, references, told_met
from elastic_core.reproduce import OWN_OUTPUT, REPEATS, System, rows
from elastic_core.runs import Run
from elastic_core.tables import (
    METRICS,
    NO_RANKS,
    Claim,
    Systems,
    claims,
    markdown,
    means,
    remembered_by_systems,
    reports_of,
    spread,
)
from elastic_core.tuning import TABLE, outcomes

BEGIN, END = "<!-- results -->", "<!-- /results -->"
# Self-modulating attention: host, and what was added; NDCG@10 of both as the paper has them (Amazon, Koubei, Tmall).
SASREC_THERE, DIN_THERE = (0.16131, 0.27070, 0.34326), (0.13443, 0.24186, 0.33855)
MODULATED: tuple[tuple[System, System, str, tuple[float, ...], tuple[float, ...]], ...] = (
    (System("sasrec"), System("sma"), "SASRec + SMA", SASREC_THERE, (0.16475, 0.27862, 0.35214)),
    (System("sasrec"), System("sma", "ctreg"), "SASRec + SMA + CTReg", SASREC_THERE, (0.16529, 0.28083, 0.35811)),
    (System("din"), System("din", "sma"), "DIN + SMA", DIN_THERE, (0.13383, 0.25444, 0.34580)),
    (System("din"), System("din", "sma-ctreg"), "DIN + SMA + CTReg", DIN_THERE, (0.13296, 0.25411, 0.35062)),
    (System("shan"), System("shan", "sma"), "SHAN + SMA", (), ()),
)

IN_ORDER = ("ml-100k", "ml-1m", "amazon-video-games", "planted", "planted-64")
MORE = "More: our other model against each system, what is below counting and how it learned, hosts with and without"


def rewrite(root: Path) -> list[Path]:
    """Writes the tables anew between `BEGIN` and `END`: of the README beside `root`, and of RESULTS.md in it.

    Raises InputError where a file is missing or has no such place; then none is written."""
    texts, root = {}, root.resolve()
    for path, tables in ((root.parent / "README.md", readme_summary), (root / "RESULTS.md", results)):
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


def readme_summary(root: Path) -> str:
    """What stands in the README between `BEGIN` and `END`: both of our models beside counting and SASRec, a line a data set."""
    return "\n\n".join([BEGIN, *_summary(_in_order(root)), END])


def results(root: Path) -> str:
    """What stands in RESULTS.md between `BEGIN` and `END`: systems, ELASTIC against each, and its variants, by data."""
    parts = [part for systems in _in_order(root) for part in _shown(systems, root)]
    notes = [UNEVEN_NOTE] if any(UNEVEN in part for part in parts) else []
    return "\n\n".join([BEGIN, *parts, *notes, END])


def _in_order(root: Path) -> list[Systems]:
    found = data_sets(root)
    return [found[data] for name in IN_ORDER for data in found if data.split(" (")[0] == name]


def _score(runs: list[Run], protocol: str = "full") -> str:
    """NDCG@10 with its interval."""
    return means(runs, [(protocol, METRICS[0])])[0]


def _summary(every: Sequence[Systems]) -> Iterable[str]:
    """One table: NDCG@10 of a data set and recipe, and ELASTIC minus SASRec, bold where it may be claimed."""
    lines = []
    for systems in every:
        judged = {floor: reports for floor in map(System, FLOORS) if floor in systems and (reports := reports_of(systems[floor]))}
        best = max(judged, key=lambda floor: average(judged[floor], "full", METRICS[0]).mean, default=None)
        for ours in (system for system in references(systems) if system.model == OURS[0] and system.mark != REPEATS):
            sasrec, slots = ours._replace(model="sasrec"), ours._replace(model=OURS[1])
            shown = (best, sasrec, sasrec._replace(variant="local"), ours, slots)
            cells = [_score(systems[one]) if one in systems else "" for one in shown]
            claim = dict(against(systems, ours, families(systems, ours)["peers"], "full")).get(sasrec)  # as in RESULTS
            lines.append([_titled(systems)[0] + recipe_in_words(ours), *cells, _told_briefly(claim) if claim else ""])
    if lines:
        heads = ["NDCG@10, all unmet items, ± 95% over people", "best by counting", model_label("sasrec"), "with our convolution"]
        yield markdown([*heads, model_label(OURS[0]), "with interest slots", "ELASTIC minus SASRec: 95%, p"], lines)


def _told_briefly(claim: Claim) -> str:
    c = claim.found
    if c is None:
        return NO_RANKS
    mark, sure = "**" if claim.who else "", p_text(claim.adjusted) if c.seeds_counted else "one run"
    return f"{mark}{c.difference:+.4f}{mark} ({c.low:+.4f} to {c.high:+.4f}), {sure}"


def _shown(systems: Systems, root: Path) -> Iterable[str]:
    """The tables of one data set: the systems, ELASTIC against each and what carries it; the others behind a click."""
    yield from _results(systems)
    yield from _compared(systems, OURS[0])
    yield from _carried(systems)
    yield from _remembered_shares(systems)
    yield from _marked_lines(systems, REPEATS, "Told what was met before, by one learned number")
    yield from _marked_lines(systems, OWN_OUTPUT, "Items scored by a table of their own")
    more = [*_compared(systems, *OURS[1:]), *_below(systems, root), *_modulated(systems)]
    if more:
        yield f"<details>\n<summary>{MORE}</summary>"
        yield from more
        yield "</details>"


def _titled(systems: Systems) -> tuple[str, str]:
    """What a data set is called, and how many people and items it has."""
    some = next(iter(systems.values()))[0]  # a baseline has its table of items, runs that are kept for their ranks have none
    start, test = some.last("start"), some.last("test")
    world = f" ({some.config.data.planted.interests} interests)" if some.config.data.source == PLANTED else ""
    size = f"{test.get('users', 0):,} people, {some.n_items():,} items, data {start.get('data_hash')}"
    return f"{start.get('data')}{world}", size


def _results(systems: Systems) -> Iterable[str]:
    """The systems of one data set."""
    plain = {system: runs for system, runs in systems.items() if not is_variant(system)}
    if not plain:
        return
    name, size = _titled(plain)
    yield f"### {name}\n\n{size}"
    measured = [*((protocol, "NDCG@10") for protocol in PROTOCOLS), ("full", "HR@10")]
    heads = ["NDCG@10 ± 95% over people", "seeds", *PROTOCOLS, "full HR@10", "spread of seeds, full"]
    lines = [(named(one, of), _seeds(of), *means(of, measured), spread(of, "full", METRICS[0])) for one, of in plain.items()]
    yield markdown(heads, lines)


def _compared(systems: Systems, *ours: str) -> Iterable[str]:
    """Each of these models of ours against its rivals, under every protocol."""
    for system in references(systems):
        if system.model in ours:
            pairs = [(named(peer, systems[peer]), systems[peer]) for peer in families(systems, system)["peers"]]
            yield _against(f"{named(system, systems[system])} minus", systems[system], pairs, PROTOCOLS)


def _carried(systems: Systems) -> Iterable[str]:
    """Our models against forms of their own that lack one thing, in the order of their training."""
    trained = [row.name for row in rows()]
    for whole in sorted(references(systems), key=lambda system: (system.model, trained.index(systems[system][0].name))):
        parts = [
            (about, systems[system])
            for (model, variant), about in VARIANTS.items()
            if model == whole.model and (system := whole._replace(variant=variant)) in systems
        ]
        parts += [(ABOUT_MET, systems[told]) for told in told_met(systems, whole)]
        if parts:
            of = f"{model_label(whole.model)}{recipe_in_words(whole)}"
            yield _against(f"What carries it: {of} minus", systems[whole], parts, ("full", "full-seen"), own=True)


def _remembered_shares(systems: Systems) -> Iterable[str]:
    """Where the truth is planted: what each system, and slots with a step taken back, remember of an interest by its silence."""
    some = next(run for runs in systems.values() for run in runs)
    if some.config.data.source != PLANTED:
        return
    shown = {in_words(one): runs for one, runs in systems.items() if one.model == OURS[1] or not is_variant(one)}
    table = remembered_by_systems(shown, load(some.config.data))
    if table.empty:
        return
    people = dict(zip(table["gap"], table["people"], strict=True))
    lines = [
        [name, _seeds(shown[str(name)]), *(f"{share:.2f}" for share in mine["share"])]
        for name, mine in table.groupby("system", sort=False)
    ]
    heads = [f"{gap} ({many:,})" for gap, many in people.items()]
    yield markdown(["Share of the oracle, full-seen, by gap (people)", "seeds", *heads], lines)


def _marked_lines(systems: Systems, mark: str, title: str) -> Iterable[str]:
    """Each system with and without what any of them can be: with a repeat bias, where items seldom come again, or scoring
    by a table of its own."""
    pairs = {
        in_words(plain): (systems[plain], runs)
        for system, runs in systems.items()
        if system.mark == mark and (plain := system._replace(mark="")) in systems
    }
    if not pairs:
        return
    found, lines = {protocol: _gains(pairs, protocol) for protocol in ("full", "full-seen")}, []
    for name, sides in pairs.items():
        cells = []
        for protocol, of in found.items():
            cells += [_score(side, protocol) for side in sides] + [_difference(of[name].found)]
        claim = found["full"][name]
        better = {"A": "**better with it**", "B": "**better without**"}.get(claim.who, claim.words)
        lines.append([name, ", ".join(str(len(side)) for side in sides), *cells, better])
    heads = [title, "seeds without, with"]
    heads += [f"{protocol}{what}" for protocol in ("full", "full-seen") for what in (" without", " with", ": 95%, p")]
    yield markdown([*heads, "claim, full"], lines)


def _below(systems: Systems, root: Path) -> Iterable[str]:
    """The trained systems whose test mean is below the best baseline's, and how their training went: the means over seeds."""
    mean = {one: average(reports, "full", METRICS[0]).mean for one, runs in systems.items() if (reports := reports_of(runs))}
    best = max((floor for floor in map(System, FLOORS) if floor in mean), key=lambda floor: mean[floor], default=None)
    if best is None:
        return
    low = [one for one in mean if one.model not in FLOORS and mean[one] < mean[best]]
    tried, lines = outcomes(root / TABLE), []
    for system, claim in against(systems, best, low, "full") if low else ():
        c, curves = claim.found, [curve for run in claim.runs if (curve := run.events("epoch"))]
        if c is None or not curves:
            continue
        tops = [max(curve, key=lambda epoch: float(epoch["valid"][METRICS[0]])) for curve in curves]
        ends = [curve[-1] for curve in curves]
        valid, last = (statistics.fmean(e["valid"][METRICS[0]] for e in epochs) for epochs in (tops, ends))
        loss, left = (statistics.fmean(e["loss"] for e in epochs) for epochs in (tops, ends))
        here = (str(system), claim.runs[0].last("start").get("data_hash"))
        points = [f"{each.point} {each.valid:.3f}" for each in tried if (each.model, each.data_hash) == here]
        who = f"**{model_label(best.model)} is better**" if claim.who == "A" else claim.words
        lines.append([
            claim.name, f"{-c.difference:+.4f} ({-c.high:+.4f} to {-c.low:+.4f}), {p_text(c.p)}", who,
            ", ".join(f"{top['epoch']} of {len(curve)}" for top, curve in zip(tops, curves, strict=True)),
            f"{valid:.4f} → {last:.4f}", f"{loss:.2f} → {left:.2f}", ", ".join(points),
        ])  # fmt: skip
    if lines:
        name = model_label(best.model)
        heads = [f"Below {name}, full, test", "minus it: 95%, p", "claim", "best epoch", "validation, best → end"]
        yield markdown([*heads, "loss, best → end", "points of the grid tried, validation"], lines)


def _modulated(systems: Systems) -> Iterable[str]:
    """Each host with and without self-modulating attention and CTReg, where any was run."""
    if not any(system in systems for _, system, *_ in MODULATED):
        return
    pairs = {name: (systems.get(host, []), systems.get(system, [])) for host, system, name, *_ in MODULATED}
    found = _gains({name: sides for name, sides in pairs.items() if all(sides)}, "full")
    heads = [
        "Self-modulating attention, previous interval, full",
        "host alone",
        "with it",
        "with − without: 95%, p",
        "claim",
        "paper’s gain",
    ]
    lines = []
    for _, _, name, before, after in MODULATED:
        claim, told = found.get(name), [_score(of) if of else "not run" for of in pairs[name]]
        better = {"A": f"**{name} is better**", "B": "**the host alone is better**"}.get(claim.who, claim.words) if claim else ""
        gain = f"{sum(after) / sum(before) - 1:+.1%}" if before else "–"
        lines.append([name, *told, _difference(claim.found if claim else None), better, gain])
    yield markdown(heads, lines)


def _gains(pairs: dict[str, tuple[list[Run], list[Run]]], protocol: str) -> dict[str, Claim]:
    """What may be said of each name's runs with something (second) minus those without (first), adjusted for them all."""
    without = {id(after): before for before, after in pairs.values()}
    there = [(name, after) for name, (_, after) in pairs.items()]
    found = claims([], there, protocol, lambda _, after, protocol: compare_runs(after, without[id(after)], protocol))
    return {claim.name: claim for claim in found}


def _difference(c: Comparison | None) -> str:
    return f"{c.difference:+.4f} ({c.low:+.4f} to {c.high:+.4f}), {p_text(c.p)}" if c else ""


def _against(title: str, runs: list[Run], peers: list[tuple[str, list[Run]]], protocols: Sequence[str], own: bool = False) -> str:
    """One row a peer: its own NDCG@10 (`own`), ELASTIC minus it under each protocol, whether training noise is counted, and what
    may be claimed under `full`, after Holm's adjustment for the number of peers that could be claimed about."""
    heads = [title, *(["full"] if own else []), *(f"{protocol}: 95%, p" for protocol in protocols), "claim, full"]
    lines = []
    for claim in claims(runs, peers, protocols[0]):
        mine = [_score(claim.runs)] if own else []
        if claim.found is None:
            lines.append([claim.name, *mine, *[""] * len(protocols), NO_RANKS])
            continue
        found = [claim.found, *(compare_runs(runs, claim.runs, each) for each in protocols[1:])]
        cells = [_difference(each) for each in found]
        better = {"A": model_label(runs[0].config.model.name), "B": claim.name}.get(claim.who)
        lines.append([claim.name, *mine, *cells, f"**{better} is better**" if better else claim.words])
    return markdown(heads, lines)


def _seeds(runs: list[Run]) -> str:
    return str(len(runs)) if runs[0].last("start").get("parameters") else "–"
