"""Speed: when does linear beat quadratic, on this machine? Measured now, shipped, and reported: never mixed."""

import streamlit as st

from elastic_core.services.speed import claims, curves
from pages.frame import shell
from pages.kit import view
from pages.kit.control import bound, one_of
from pages.speed import answers, live, parts

SOURCES = (curves.SHIPPED, curves.MEASURED)
PARTS = ("Reading a history", "One new event", "Stages", "A training step", "Calculator", "LISA’s claims")
TIMES = {"clock": "ms", "processor": "processor"}

now = shell.context()
st.title("When does linear beat quadratic, on this machine?", anchor=False)
st.write("ELASTIC’s cost grows with the history’s length N, SASRec’s with its square; the machine decides where they cross.")
measurement = live.panel()
part = one_of("View", PARTS, key="spd_part", label_visibility="collapsed")
source = one_of("Source", SOURCES, key="spd_source") if part in PARTS[:3] else SOURCES[0]


def lines() -> None:
    """Time and memory of one source."""
    table = answers.shipped(shell.RUNS)
    if source == curves.MEASURED:
        table = measurement.latencies() if measurement else table[:0]
        if measurement and measurement.cut and not table.empty:
            st.warning(measurement.cut)
    if table.empty:
        st.info("Nothing measured yet: start a measurement above." if source == curves.MEASURED else "No rows came along.")
    else:
        _drawn(table)
    parts.reported()


def _drawn(table) -> None:  # type: ignore[no-untyped-def]
    found = {curves.shape_name(shape): shape for shape in curves.shapes(table)} or {"": None}
    with st.container(horizontal=True, vertical_alignment="top"):
        if len(found) > 1:
            if st.session_state.get("spd_shape") not in found:
                st.session_state.pop("spd_shape", None)
            name = bound(st.selectbox, "Machine and shape", list(found), key="spd_shape", width=420)
        else:
            name = next(iter(found))
        mine = curves.of_shape(table, found[name]) if found[name] else table
        usual = "processor" if curves.busy_machine(mine) else "clock"
        by = one_of(
            "Time by", list(TIMES), key="spd_time_by", default=usual,
            help="A busy machine stretches the processor’s time less; it has no quartiles here.",
        )  # fmt: skip
    column = TIMES[by]
    parts.headline(mine, column)
    st.caption(f"{source.capitalize()}: {shell.plain(curves.machine(mine))}")
    if len(set(mine["length"])) > 1:
        parts.reading(mine, column)


def measured(kind: str):  # type: ignore[no-untyped-def]
    """Stages or events of the chosen source."""
    if source == curves.MEASURED:
        return getattr(measurement, kind)() if measurement else curves.table_of(shell.RUNS / "none")
    return curves.table_of(shell.RUNS / "benchmarks" / f"{kind}.csv")


if part == PARTS[0]:
    lines()
elif part == PARTS[1]:
    parts.event(measured("events"))
elif part == PARTS[2]:
    parts.stages(measured("stages"))
elif part == PARTS[3]:
    parts.steps(answers.steps(shell.RUNS))
elif part == PARTS[4]:
    parts.calculator()
else:
    parts.claims(claims.of_lisa(shell.RUNS))
commands = {PARTS[1]: "--people 1,64 --threads 1", PARTS[3]: "--stages", PARTS[5]: "--lisa"}
command = commands.get(part, "--passes forward --threads 1")
view.foot(f"nice python -m elastic_core bench {command}", source=source, view=part)
