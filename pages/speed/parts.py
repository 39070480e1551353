"""The views of the Speed page: curves with exponents, one new event, stages, and the calculator."""

import pandas as pd
import streamlit as st

from elastic_core.services.speed import costs, curves
from pages.frame import shell
from pages.kit import cache, prose, view
from pages.kit.control import bound, one_of
from pages.speed import charts

SAYS = prose.of(__file__)
PEERS = ("sasrec-fused", "sasrec-eager")
FORMS = {name: costs.LABELS[name] for name in ("elastic", "elastic-two-way")}
STEPS = FORMS | {"sasrec-fused": costs.LABELS["sasrec-fused"]}
USUAL = {"elastic", "sasrec-fused"}
FITS, TERMS = view.columns(SAYS("FITS")), view.columns(SAYS("TERMS"))


def headline(table: pd.DataFrame, column: str) -> None:
    """Where each SASRec is faster and where ELASTIC is, in words; no length left out."""
    ours = next((name for name in FORMS if name in set(table["system"])), "")
    for peer in [name for name in PEERS if name in set(table["system"])]:
        st.markdown(f"- {shell.plain(curves.speed_sentence(table, ours, peer, column))}")
    if memory := curves.memory_words(table):
        st.markdown(f"- {shell.plain(memory)}")


def forms(table: pd.DataFrame) -> pd.DataFrame:
    """The two that are in use, unless all forms are asked for."""
    there = set(table["system"])
    if not there > USUAL or bound(st.toggle, "The paper’s forms, too", key="spd_all", help=SAYS("forms")):
        return table
    return table[table["system"].isin(USUAL)]


def reading(table: pd.DataFrame, column: str, doubt: "st.delta_generator.DeltaGenerator") -> None:
    """Time and memory against N; the fitted exponents stand where the doubt is."""
    lengths = sorted(int(n) for n in set(table["length"]))
    default = next((n for n in lengths if n >= 256), lengths[0]) if sum(n >= 256 for n in lengths) > 2 else lengths[0]
    if st.session_state.get("spd_from") not in lengths:
        st.session_state.pop("spd_from", None)
    start = bound(
        doubt.selectbox,
        "Lines begin at N =",
        lengths,
        index=lengths.index(default),
        key="spd_from",
        width=200,
    )
    (left, right), below = st.columns(2, gap="medium"), doubt.columns(2, gap="medium")
    with left:
        view.heading("Time")
        crossings = curves.crossings(curves.versus(table, "elastic", "sasrec-fused", column))
        _curves("spd_time", table, column, "milliseconds per history", start, SAYS.about("TIME"), crossings, below[0])
    with right:
        view.heading("Memory")
        _curves("spd_memory", table, "memory", "megabytes per history", start, SAYS.about("MEMORY"), [], below[1])


def _curves(
    key: str, table: pd.DataFrame, column: str, title: str, start: int, words: view.About, crossings: list[float],
    below: "st.delta_generator.DeltaGenerator",
) -> None:  # fmt: skip
    found = {system: fit for system in set(table["system"]) if (fit := curves.fit_line(table, system, column, start)) is not None}
    figure = cache.drawn(charts.curves, table, found, shell.palette(), column, title, crossings)
    exponents = curves.fits(table, column, start)
    said = "; ".join(f"{row[0]} grows as N to the {row[1]:.2f}" for row in exponents.itertuples(index=False))
    view.chart(key, figure, table, words, f"{title} against history length. {said}.")
    below.markdown(f"**{'Memory' if column == 'memory' else 'Time'}**")
    below.dataframe(
        exponents, hide_index=True, key=f"{key}_fits", alt=f"Fitted exponents. {said}.",
        column_config=FITS, column_order=list(FITS),
    )  # fmt: skip


def reported() -> None:
    """The paper's own numbers, apart from ours."""
    with st.container(border=True):
        told = "; ".join(f"{each.what}: **{each.value}** ({each.where})" for each in curves.PAPER)
        st.markdown(SAYS("paper", told=told))


def event(table: pd.DataFrame) -> None:
    if table.empty:
        st.info(SAYS("nothing"))
        return
    table, clock = curves.trusted(table)
    wide = table.pivot_table(index="length", columns="system", values="ms")
    st.markdown(shell.plain(f"{curves.event_words(wide)} Times are {clock}."))
    figure = cache.drawn(charts.events, curves.with_refresh(table), shell.palette())
    view.chart("spd_event", figure, table, SAYS.about("EVENT"), f"Time of one new event. {curves.event_words(wide)}")
    st.caption(shell.plain(curves.machine(table)))


def stages(table: pd.DataFrame) -> None:
    if table.empty:
        st.info(SAYS("nothing"))
        return
    system = one_of("Form", FORMS, key="spd_form")
    mine, clock = curves.trusted(table[table["system"] == system])
    if not (words := curves.stage_words(mine)):
        st.info(SAYS("no rows"))
        return
    parts, length = mine[mine["stage"] != "whole pass"], int(mine["length"].iloc[0])
    st.markdown(f"{words} Times are {clock}.")
    figure = cache.drawn(charts.stages, parts, shell.palette(), "ms per history")
    said = ", ".join(f"{row.stage} {row.ms:.2f} ms" for row in parts.itertuples())
    view.chart("spd_stages", figure, mine, SAYS.about("STAGES"), f"Stages of ELASTIC at N = {length:,}: {said}.")
    st.caption(shell.plain(curves.machine(mine)))


def steps(table: pd.DataFrame) -> None:
    """Steps of training, taken apart."""
    known = [] if table.empty else [name for name in STEPS if (table["system"] == name).sum() > 1]
    if not known:
        st.info(SAYS("no rows"))
        return
    system = one_of("System", known, key="spd_step", named=STEPS.__getitem__)
    mine = table[table["system"] == system]
    parts, whole = mine[mine["stage"] != "whole pass"], mine[mine["stage"] == "whole pass"].iloc[0]
    most = shell.plain(parts.loc[parts["kept"].idxmax(), "stage"])
    size = {"histories": whole["histories"], "length": f"{whole['length']:,}"}
    st.markdown(SAYS("step", **size, ms=f"{whole['there']:.0f}", kept=f"{whole['kept']:.0f}", stage=most))
    figure = cache.drawn(charts.steps, parts, shell.palette())
    told = ", ".join(f"{row.stage} {row.there + row.back:.1f} ms" for row in parts.itertuples())
    view.chart("spd_steps", figure, mine, SAYS.about("STEPS"), f"A step of training: {told}.")
    st.caption(shell.plain(curves.machine(mine)))


def calculator() -> None:
    with view.row("top"):
        n = bound(st.select_slider, "N, events read", [2**i for i in range(5, 17)], 1024, key="spd_n", width=300)
        d = bound(st.selectbox, "d, numbers per item", (32, 64, 128, 256), index=1, key="spd_d", width=160)
        k = bound(st.selectbox, "k, experts found", (2, 4, 8, 16, 32), index=2, key="spd_calc_k", width=130)
        side = bound(st.selectbox, "√K, side", (8, 16, 32, 64, 512, 2048), index=1, key="spd_calc_side", width=160)
    shape = costs.Shape(n=n, d=d, k=k, side=side)
    st.markdown(shell.plain(costs.cost_sentence(shape)))
    table = costs.against_length(shape)
    alt = f"Operations per history against its length, by formula. {costs.cost_sentence(shape)}"
    view.chart("spd_flops", cache.drawn(charts.operations, table, shell.palette()), table, SAYS.about("CALCULATOR"), alt)
    which = bound(st.selectbox, "Formulas of", list(costs.LABELS.values()), key="spd_formulas", width=300)
    system = next(name for name, label in costs.LABELS.items() if label == which)
    terms, alt = costs.operations(system, shape), f"Operations of {which} by stage, with formulas"
    view.table("spd_terms", terms, None, alt, column_config=TERMS, column_order=list(TERMS))
    kept = costs.memory(shape)
    number = st.column_config.NumberColumn(format="bytes", width=85)
    view.table(
        "spd_bytes", kept, None, "Bytes by formula", column_config={"what": st.column_config.Column(width=190), "bytes": number},
        column_order=["what", "bytes", "grows", "formula"], row_height=72,
    )  # fmt: skip


def claims(table: pd.DataFrame) -> None:
    """LISA's own figures beside ours."""
    if table.empty:
        st.info(SAYS("no rows"))
        return
    st.markdown(SAYS("lisa"))
    number = st.column_config.NumberColumn(format="%.2f", width=75)
    view.table(
        "spd_claims", table, SAYS.about("CLAIMS"), f"{len(table)} figures of LISA’s cost, each with what it is compared with",
        column_config={"question": st.column_config.Column(width=160), "here": number, "the paper’s": number}, placeholder="–",
        column_order=["question", "system", "here", "the paper’s", "where"], row_height=72,
    )  # fmt: skip
    st.caption("In a terminal: `python -m elastic_core bench --lisa`, about two minutes of one core.")
