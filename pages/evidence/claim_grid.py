"""The grid of claims and data sets as HTML: a mark where they meet, and its number on pointing. What is foreign is escaped."""

import re
from collections.abc import Sequence
from pathlib import Path

from elastic_core.results.claims import LEVEL_MARK, UNKNOWN_MARK, Finding, Verdict
from elastic_core.results.systems import MADE_UP, DataSet
from elastic_core.text import escape_html
from pages.components.plot import Palette

CSS = Path(__file__).with_name("claim_grid.css").read_text(encoding="utf-8")
READ_OUT = {"▲": "yes", "▼": "no", "▲▼": "it depends", LEVEL_MARK: "no difference that can be told", UNKNOWN_MARK: "not known"}


def claim_grid_html(verdicts: Sequence[Verdict], data_sets: Sequence[DataSet], colours: Palette) -> str:
    """A row a claim, a column a data set on which some claim was measured, made-up worlds last. What is about no data set, as
    speed, has one wide cell."""
    measured_keys = {finding.data for verdict in verdicts for finding in verdict.findings}
    columns = sorted(
        (data_set for data_set in data_sets if data_set.key in measured_keys), key=lambda data_set: data_set.kind == MADE_UP
    )
    heads = "".join(f'<th scope="col"><span>{escape_html(_short_title(data_set.title))}</span></th>' for data_set in columns)
    rows = "".join(_row_html(verdict, [data_set.key for data_set in columns], colours) for verdict in verdicts)
    tooltip_style = f".told {{ background: {colours.ground}; color: {colours.text}; border: 1px solid {colours.line} }}"
    style = f"{CSS}{tooltip_style} .mark small {{ color: {colours.text} }}"
    return (
        f'<style>{style}</style><table class="claims" aria-label="Claims by data set">'
        f'<thead><tr><th scope="col">Claim</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row_html(verdict: Verdict, keys: Sequence[str], colours: Palette) -> str:
    marks = verdict.marks_by_data()
    if not set(marks) - {""}:  # about no data set, or never measured
        labels = [_mark_html(each.mark, [each], colours, each.where) for each in verdict.findings]
        cells = f'<td class="wide" colspan="{max(len(keys), 1)}">{" ".join(labels)}</td>'
    else:
        findings = {key: [each for each in verdict.findings if each.data == key] for key in keys}
        cells = "".join(f"<td>{_mark_html(marks[key], findings[key], colours) if key in marks else ''}</td>" for key in keys)
    return f'<tr><th scope="row">{escape_html(verdict.claim)}</th>{cells}</tr>'


def _mark_html(mark: str, findings: Sequence[Finding], colours: Palette, label: str = "") -> str:
    findings_text = " · ".join(f"{each.mark} {each.brief}" if len(findings) > 1 else each.brief for each in findings)
    answer = READ_OUT.get(mark, "it depends")
    colour = {"yes": colours.cool[1], "no": colours.warm[1]}.get(answer, colours.text)
    mark_text = f"{mark} <small>{escape_html(label)}</small>" if label else mark
    read_out = escape_html(f"{answer}: {findings_text}")
    return (
        f'<span class="mark" role="img" tabindex="0" aria-label="{read_out}" style="color:{colour}">{mark_text}</span>'
        f'<span class="told" aria-hidden="true">{escape_html(findings_text)}</span>'
    )


def _short_title(title: str) -> str:
    """`MovieLens-1M`, `Made-up: 16 interests`: the whole title stands where one points."""
    return re.sub(r"Made-up world \((.*)\)", r"Made-up: \1", title.removesuffix(" (reassembled)"))
