"""Tables and figures of the named runs, from their folders alone: the systems, and each ELASTIC against every other.

    <protocol>.csv                       what every system reached, with its interval, seeds, parameters, seconds and device
    <data>-<protocol>-differences.csv    interval and p over people and training seeds, p after Holm's adjustment, the claim
    <data>-<protocol>.html               the differences drawn (plotly.min.js beside it serves them all)
    <data>-<protocol>.png, .svg          the same as pictures, where they are asked for
    report.md                            all of it as one page

A table has one protocol, and tables of two are not joined (`joined`). The paper's own values stand beside MovieLens-1M, labelled.
"""

import importlib.util
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from elastic_core import disk, text
from elastic_core.comparisons import average, compare_runs
from elastic_core.core.evaluate import PROTOCOLS
from elastic_core.errors import InputError
from elastic_core.labels import FLOORS, OURS, is_variant, model_label, named, system_order
from elastic_core.reproduce import REPEATS, System, rows
from elastic_core.runs import Run
from elastic_core.tables import NO_RANKS, Asked, Claim, Systems, claims, finished, markdown, reports_of

WIDE = 1100  # pixels of a picture
METRICS = ("NDCG@10", "HR@10", "MRR@10")
# Table 2 of the ELASTIC paper on MovieLens-1M: NDCG@10, HR@10, MRR@10. Most probably measured as pop100, whatever its text says.
PAPER = {
    "fpmc": (0.3220, 0.5233, 0.2599),
    "gru4rec": (0.4033, 0.6382, 0.3300),
    "sasrec": (0.4190, 0.6606, 0.3435),
    "bert4rec": (0.3182, 0.5389, 0.2497),
    "linrec": (0.4158, 0.6556, 0.3412),
    "hstu": (0.4090, 0.6586, 0.3312),
    "elastic": (0.4256, 0.6619, 0.3517),
}
PREFACE = (
    "Test split, leave one out, chosen on validation. `± 95%` is over people, `spread` over training seeds; intervals and p "
    "of differences are over both, adjusted by Holm among the rows that could be claimed. One run claims nothing. "
    f"Runs that keep no ranks are left out ({NO_RANKS}). Protocols cannot be compared with each other."
)
PAPER_COLUMN = "the paper's NDCG@10 (its protocol, its MovieLens-1M)"


def data_sets(root: Path) -> dict[str, Systems]:
    """Finished systems by data set, each in the order of the tables."""
    found = finished(rows(), root)
    return {data: dict(sorted(systems.items(), key=lambda each: system_order(each[0]))) for data, systems in found.items()}


def measured_systems(systems: Systems, protocol: str) -> DataFrame:
    """One row a system that keeps ranks. `± 95%` is over people, `spread` the standard deviation of NDCG@10 over seeds."""
    lines = []
    for system, runs in systems.items():
        reports = reports_of(runs)
        if reports is None:
            continue
        start = runs[0].last("start")
        found = {metric: average(reports, protocol, metric) for metric in METRICS}
        single = [report.metrics[protocol]["NDCG@10"] for report in reports]
        seconds = [float(run.last("end").get("seconds", 0)) for run in runs]
        lines.append({
            "data": start.get("data", ""), "protocol": protocol, "system": named(system, runs), "seeds": len(runs),
            **{metric: interval.mean for metric, interval in found.items()}, "± 95%": 1.96 * found["NDCG@10"].error,
            "spread": statistics.stdev(single) if len(single) > 1 else None, "people": len(reports[0].users),
            "parameters": start.get("parameters", 0), "seconds": statistics.fmean(seconds),
            "device": ", ".join(sorted({str(run.last("start").get("device", "?")) for run in runs})),
            "runs": ", ".join(run.name for run in runs), **_papers(system, runs[0], protocol),
        })  # fmt: skip
    return DataFrame(lines)


def difference_table(systems: Systems, protocol: str) -> DataFrame:
    """Each ELASTIC minus every other system, NDCG@10; its own variants are adjusted for among themselves, peers likewise."""
    lines = []
    for ours in references(systems):
        kind = ours.model
        for family, part in families(systems, ours).items():
            for _, claim in against(systems, ours, part, protocol):
                if claim.found is None:
                    continue
                better = {"A": f"{model_label(kind)} is better", "B": f"{claim.name} is better"}.get(claim.who, claim.words)
                lines.append({
                    "protocol": protocol, "A": model_label(kind), "B": claim.name, "family": family,
                    "seeds of A": len(systems[ours]), "seeds of B": len(claim.runs),
                    "A − B": claim.found.difference, "low": claim.found.low, "high": claim.found.high,
                    "p": claim.found.p, "p adjusted": claim.adjusted, "claim": better,
                })  # fmt: skip
    return DataFrame(lines)


def references(systems: Systems) -> list[System]:
    """The systems that the others are compared with: every ELASTIC that is no variant."""
    return [system for system in systems if system.model in OURS and not is_variant(system)]


def families(systems: Systems, ours: System) -> dict[str, list[System]]:
    """What one of ours is compared with, by question; every pair once. Floors stand beside every recipe."""
    alike = [system for system in systems if system.recipe == ours.recipe]
    rivals = [system for system in systems if not is_variant(system) and (system in alike or system.model in FLOORS)]
    return {
        "peers": [system for system in rivals if system.model not in OURS[OURS.index(ours.model) :]],
        "its own variants": [
            *(system for system in alike if is_variant(system) and system.model == ours.model),
            *(told_met(systems, ours)),
        ],
    }


def told_met(systems: Systems, ours: System) -> list[System]:
    """The same system with a repeat bias, where it was run beside one that has none."""
    told = ours._replace(mark=REPEATS)
    return [told] if not ours.mark and told in systems else []


def against(
    systems: Systems, ours: System, others: Sequence[System], protocol: str, compare: Asked = compare_runs
) -> list[tuple[System, Claim]]:
    """Each of the others, and what may be claimed of `ours` against it, adjusted for them all."""
    peers = [(named(system, systems[system]), systems[system]) for system in others]
    return list(zip(others, claims(systems[ours], peers, protocol, compare), strict=True))


def joined(tables: Sequence[DataFrame]) -> DataFrame:
    """Tables of one protocol below each other. Raises InputError for two: their numbers answer two questions."""
    found = pd.concat(tables, ignore_index=True)
    protocols = sorted(set(found["protocol"]))
    if len(protocols) > 1:
        raise InputError(f"numbers measured as {' and '.join(protocols)} cannot stand in one table")
    return found


def write_report(root: Path, out: Path, pictures: bool = False) -> list[Path]:
    """All tables and figures into the folder `out`; with `pictures` as PNG and SVG, too, which takes a Chromium.

    Raises InputError where nothing is finished below `root`, or nothing here can make pictures."""
    if pictures and importlib.util.find_spec("kaleido") is None:
        raise InputError('pictures are made by kaleido: pip install -e ".[pictures]"')
    found = data_sets(root)
    if not found:
        raise InputError(f"none of the named runs is finished below {root}/")
    page, files, drawn = ["# Results", "", PREFACE], list[Path](), dict[Path, Any]()
    with disk.said(out):
        out.mkdir(parents=True, exist_ok=True)
    for protocol in PROTOCOLS:
        tables = {data: measured_systems(systems, protocol) for data, systems in found.items()}
        tables = {data: table for data, table in tables.items() if not table.empty}
        if tables:
            files.append(_save(out / f"{protocol}.csv", joined(list(tables.values())).to_csv(index=False)))
        for data, table in tables.items():
            title, against = f"{table['data'][0]}, {protocol}", difference_table(found[data], protocol)
            page += ["", f"## {title}", "", _markdown(table.drop(columns=["data", "protocol", "runs"]))]
            if not against.empty:
                page += ["", _markdown(against.drop(columns="protocol"))]
                files.append(_save(out / f"{data}-{protocol}-differences.csv", against.to_csv(index=False)))
                drawn[out / f"{data}-{protocol}.html"] = _drawn(against, title)
    for path, figure in drawn.items():
        with disk.said(path):
            figure.write_html(path, include_plotlyjs="directory")
    files += [*drawn, *(_pictures(drawn) if pictures else [])]
    return [*files, _save(out / "report.md", "\n".join(page) + "\n")]


def _papers(system: System, run: Run, protocol: str) -> dict[str, float | None]:
    if run.config.data.source != "ml-1m" or protocol != "pop100":
        return {}
    known = system.model in PAPER and not is_variant(system) and not system.mark
    return {PAPER_COLUMN: PAPER[system.model][0] if known else None}


def _markdown(table: DataFrame) -> str:
    def cell(value: object) -> str:
        if isinstance(value, float):
            return "" if value != value else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4f}"
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    return markdown([str(name) for name in table], [[cell(value) for value in line] for line in table.itertuples(index=False)])


def _pictures(drawn: Mapping[Path, Any]) -> list[Path]:
    """Every figure as PNG and as SVG, by one Chromium."""
    import plotly.io

    files = [path.with_suffix(suffix) for suffix in (".png", ".svg") for path in drawn]
    try:
        with disk.said(files[0]):
            heights = [figure.layout.height for figure in drawn.values()] * 2
            plotly.io.write_images([*drawn.values()] * 2, files, width=WIDE, height=heights, scale=2)
    except RuntimeError as error:  # no Chromium: it says how to get one
        raise InputError(f"no pictures were made: {' '.join(str(error).split())}") from None
    return files


def _drawn(table: DataFrame, title: str) -> Any:
    """Every difference with its interval, filled where something may be claimed. Needs no network."""
    import plotly.graph_objects as go

    names = [text.figure(f"{a} − {b}") for a, b in zip(table["A"], table["B"], strict=True)]
    fill = ["#0b6e99" if claim.endswith("is better") else "#ffffff" for claim in table["claim"]]
    figure = go.Figure()
    figure.add_vline(x=0)
    figure.add_scatter(
        x=table["A − B"], y=names, mode="markers", customdata=table[["claim"]].map(text.figure),
        error_x={"symmetric": False, "array": table["high"] - table["A − B"], "arrayminus": table["A − B"] - table["low"]},
        marker={"size": 10, "color": fill, "line": {"width": 2, "color": "#0b6e99"}},
        hovertemplate="%{y}<br>%{x:+.4f}<br>%{customdata[0]}<extra></extra>",
    )  # fmt: skip
    figure.update_layout(title=text.figure(title), height=160 + 28 * len(table), margin={"l": 8, "t": 60})
    figure.update_xaxes(title="NDCG@10, 95% over people and training seeds; filled: may be claimed")
    figure.update_yaxes(autorange="reversed", tickmode="linear", automargin=True)
    return figure


def _save(path: Path, content: str) -> Path:
    with disk.said(path):
        disk.write_text(path, content)
    return path
