"""Speed: when is ELASTIC faster? Measured now, shipped, and reported: never mixed."""

from pathlib import Path

import streamlit as st

from elastic_core.services.speed import curves
from pages.frame import shell
from pages.kit import prose, view
from pages.kit.control import bound, one_of, switch
from pages.kit.kept import copied
from pages.speed import live, parts

SAYS = prose.of(__file__)
SOURCES = (curves.SHIPPED, curves.MEASURED)
READING, EVENT, CALCULATOR, MORE = PARTS = ("Reading a history", "One new event", "Calculator", "More")
STAGES, STEP, CLAIMS = DEEPER = ("Stages", "A training step", "LISA’s claims")
READ = {"latency": curves.shipped, "profile": curves.training_steps, "gpu": curves.graphics_card}
TIMES = {"clock": "ms", "processor": "processor"}


def shipped(name: str):  # type: ignore[no-untyped-def]
    """What a shipped file of `READ` says, read again when it changes; empty if there is none."""
    return _shipped(shell.RUNS, name, shell.RUNS / "benchmarks" / f"{name}.csv")


@copied(12)
def _shipped(checkpoints: Path, name: str, file: Path):  # type: ignore[no-untyped-def]
    return READ[name](checkpoints)


def lines() -> None:
    """Time and memory of one source: the curves, what they say, and behind `How sure?` where they are from."""
    heading, doubt = st.container(), st.expander("How sure?", icon=":material/help:", key="spd_sure")
    with doubt:
        source = one_of("Numbers", SOURCES, key="spd_source")
        table = shipped("latency") if source == curves.SHIPPED or not measurement else measurement.latencies()
        if source == curves.MEASURED and not measurement:
            table = table[:0]
        shape, column = (None, "ms") if table.empty else _chosen(table)
    with heading:
        if table.empty:
            st.info(SAYS("nothing") if source == curves.MEASURED else SAYS("no rows"))
        else:
            if source == curves.MEASURED and measurement and measurement.cut:
                st.warning(measurement.cut)
            mine = curves.of_shape(table, shape) if shape else table
            on(mine, source)
            if source == curves.SHIPPED and (card := shipped("gpu")):
                st.markdown(SAYS("graphics card", **card))
            shown = parts.forms(mine)
            if len(set(shown["length"])) > 1:
                parts.reading(shown, column, doubt)
            parts.headline(shown, column)
    with doubt:
        if not table.empty:
            st.caption(f"{source.capitalize()}: {shell.plain(curves.machine(mine))}")
        parts.reported()


def on(table, source: str) -> None:  # type: ignore[no-untyped-def]
    """Says below the title where the numbers are from."""
    if len(table):
        where.caption(f"{source.capitalize()}: {shell.plain(curves.place(table))}")


def _chosen(table):  # type: ignore[no-untyped-def]
    """Which machine and shape, and by which time."""
    found = {curves.shape_name(shape): shape for shape in curves.shapes(table)} or {"": None}
    with view.row("top"):
        if len(found) > 1:
            if st.session_state.get("spd_shape") not in found:
                st.session_state.pop("spd_shape", None)
            name = bound(st.selectbox, "Machine and sizes", list(found), key="spd_shape", width=420)
        else:
            name = next(iter(found))
        mine = curves.of_shape(table, found[name]) if found[name] else table
        usual = "processor" if curves.busy_machine(mine) else "clock"
        by = one_of(
            "Time by", list(TIMES), key="spd_time_by", default=usual,
            help="On a busy machine the processor’s own time changes less.",
        )  # fmt: skip
    return found[name], TIMES[by]


def measured(kind: str):  # type: ignore[no-untyped-def]
    """Stages or events of the chosen source."""
    source = one_of("Numbers", SOURCES, key="spd_source")
    folder = shell.RUNS / ("none" if source == curves.MEASURED else "benchmarks")
    found = getattr(measurement, kind)() if measurement and source == curves.MEASURED else curves.table_of(folder / f"{kind}.csv")
    on(found, source)
    return found


def deeper() -> str:
    st.caption(SAYS("more"))
    part = switch("What", DEEPER, "spd_more")
    if part == STAGES:
        parts.stages(measured("stages"))
    elif part == STEP:
        parts.steps(shipped("profile"))
    else:
        parts.claims(curves.of_lisa(shell.RUNS))
    return part


for asked in (st.session_state.get("spd_part"), st.query_params.get("spd_part")):
    if asked in DEEPER:  # links from before these stood behind More
        st.session_state["spd_part"], st.session_state["spd_more"] = MORE, asked
        break

now = shell.context()
view.title("When is ELASTIC faster?")
where = st.container()  # the line of the machine
st.write(SAYS("idea"))
part = switch("View", PARTS, "spd_part")
measurement = live.panel()
if part == READING:
    lines()
elif part == EVENT:
    parts.event(measured("events"))
elif part == CALCULATOR:
    parts.calculator()
else:
    part = deeper()
commands = {EVENT: "--people 1,64 --threads 1", STEP: "--stages", CLAIMS: "--lisa"}
command = commands.get(part, "--passes forward --threads 1")
view.foot(f"nice python -m elastic_core bench {command}", source=st.session_state.get("spd_source", SOURCES[0]), view=part)
