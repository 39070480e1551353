"""Speed: when is ELASTIC faster? Measured now, shipped, and reported: never mixed."""

from pathlib import Path

import pandas as pd
import streamlit as st

from elastic_core.services.speed import curves
from pages.components import page_context, page_elements, page_text
from pages.components.cache import cached_data
from pages.components.controls import choose_one, choose_without_label
from pages.speed import calculator, reading
from pages.speed.measurement import show_panel

TEXT = page_text.load_page_text(__file__)
SOURCES = (curves.SHIPPED, curves.MEASURED)
READING, EVENT, CALCULATOR = PARTS = ("Reading a history", "One new event", "Calculator")


@cached_data(12)
def shipped_passes(file: Path) -> pd.DataFrame:
    """The passes that came with the project, read again when the file changes."""
    return curves.read_passes(file)


@cached_data(12)
def shipped_events(file: Path) -> pd.DataFrame:
    return curves.new_events(file)


@cached_data(12)
def graphics_card(checkpoints: Path, file: Path) -> dict[str, str]:
    return curves.graphics_card(checkpoints)


def reading_a_history() -> None:
    """The curves, one N in words, and behind *How sure?* where they are from."""
    heading, doubt = st.container(), st.expander("How sure?", icon=":material/help:", key="spd_sure")
    with doubt:
        source = choose_one("Numbers", SOURCES, key="spd_source")
        table = shipped_passes(file)
        if source == curves.MEASURED:
            table = measurement.read_latencies() if measurement else table[:0]
        table, column = reading.choose_shape(table)
    with heading:
        if table.empty:
            st.info(TEXT("nothing measured" if source == curves.MEASURED else "nothing shipped"))
        else:
            if source == curves.MEASURED and measurement and measurement.gap_text:
                st.warning(measurement.gap_text)
            reading.curves_of(reading.choose_systems(table, doubt), column, doubt)
        if card := graphics_card(page_context.RUNS, file):  # also beside numbers of this machine
            st.markdown(TEXT("graphics card", **card))
    with doubt:
        if not table.empty:
            st.caption(f"{source.capitalize()}: {page_context.escape_markdown(curves.machine_text(table))}")
        reading.show_paper_numbers()


def one_new_event() -> None:
    source = choose_one("Numbers", SOURCES, key="spd_source")
    table = shipped_events(file)
    if source == curves.MEASURED:
        table = measurement.read_new_events() if measurement else table[:0]
    if table.empty:
        st.info(TEXT("nothing measured" if source == curves.MEASURED else "nothing shipped"))
    else:
        reading.new_event(table, source)


context = page_context.require_context()
page_elements.show_title("When is ELASTIC faster?")
st.write(TEXT("idea"))
part = choose_without_label("View", PARTS, "spd_part")
answer = st.container()  # the chart first, and below it what may be measured
measurement, file = show_panel(), curves.shipped_file(page_context.RUNS)
with answer:
    {READING: reading_a_history, EVENT: one_new_event, CALCULATOR: calculator.show_calculator}[part]()
command = "events --batch 8 --threads 1" if part == EVENT else "latency --directions forward --threads 1"
page_elements.show_footer(f"nice elastic bench {command}", source=st.session_state.get("spd_source", SOURCES[0]), view=part)
