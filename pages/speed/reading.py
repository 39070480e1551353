"""What the Speed page draws of measured rows: curves with their exponents, and one new event."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from elastic_core.services.speed import curves
from pages.components import cache, page_context, page_elements, page_text
from pages.components.controls import bind_widget, choose_one
from pages.speed import charts

TEXT = page_text.load_page_text(__file__)
PEERS = ("sasrec-fused", "sasrec-eager")
FORMS = ("elastic", "elastic-two-way")
USUAL = {"elastic", "sasrec-fused"}
USUAL_LENGTH = 1024  # of the history that the page opens with
TIMES = {"clock": "ms", "processor": "processor"}
FITS = page_elements.parse_columns(TEXT("FITS"))


def choose_shape(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Let a machine and sizes be chosen, and by which time; returns their rows and the column of the time."""
    if table.empty:
        return table, "ms"
    shapes = {curves.shape_name(shape): shape for shape in curves.list_shapes(table)}
    with page_elements.place_in_row("top"):
        name = next(iter(shapes), "")
        if len(shapes) > 1:
            if st.session_state.get("spd_shape") not in shapes:
                st.session_state.pop("spd_shape", None)
            name = bind_widget(st.selectbox, "Machine and sizes", list(shapes), key="spd_shape", width=420)
        rows = curves.of_shape(table, shapes[name]) if name else table
        by = choose_one(
            "Time by", list(TIMES), key="spd_time_by", default="processor" if curves.busy_machine(rows) else "clock",
            help="On a busy machine the processor’s own time changes less.",
        )  # fmt: skip
    return rows, TIMES[by]


def choose_systems(table: pd.DataFrame, place: DeltaGenerator) -> pd.DataFrame:
    """The two that are in use, unless all forms are chosen."""
    if not set(table["system"]) > USUAL:
        return table
    if bind_widget(place.toggle, "Also the paper’s versions", key="spd_all", help=TEXT("forms")):
        return table
    return table[table["system"].isin(USUAL)]


def curves_of(table: pd.DataFrame, column: str, doubt: DeltaGenerator) -> None:
    """Time and memory against N, and in one sentence those of the N that was dragged to; who is faster where, and the fitted
    exponents, stand where the doubt is."""
    lengths = sorted(set(table["length"].tolist()))
    figures, length = st.container(), lengths[-1]
    if len(lengths) > 1:
        length = _choose_length(lengths)
        start, below = _first_length(lengths, doubt), (doubt.container(), doubt.container())
        with figures:
            left_column, right_column = st.columns(2, gap="medium")
        with left_column:
            crossings = curves.crossing_table(curves.speed_ratio(table, "elastic", "sasrec-fused", column))
            _show_curve("spd_time", table, column, "milliseconds", start, length, TEXT.chart_text("TIME"), crossings, below[0])
        with right_column:
            _show_curve("spd_memory", table, "memory", "megabytes", start, length, TEXT.chart_text("MEMORY"), [], below[1])
    if sentence := curves.history_sentence(table, length, column):
        st.markdown(f"**{sentence}**")
    ours = next((name for name in FORMS if name in set(table["system"])), "")
    for peer in [name for name in PEERS if name in set(table["system"])]:
        doubt.markdown(f"- {page_context.escape_markdown(curves.speed_sentence(table, ours, peer, column))}")
    if memory := curves.memory_words(table):
        doubt.markdown(f"- {page_context.escape_markdown(memory)}")


def _choose_length(lengths: list[int]) -> int:
    if st.session_state.get("spd_at") not in lengths:
        st.session_state.pop("spd_at", None)
    usual = min(lengths, key=lambda n: abs(n - USUAL_LENGTH))
    return int(bind_widget(st.select_slider, "N, events in the history", lengths, usual, "{:,}".format, key="spd_at"))


def _first_length(lengths: list[int], doubt: DeltaGenerator) -> int:
    """Where fitted lines begin: short histories are mostly fixed costs."""
    long = [n for n in lengths if n >= 256]
    default = long[0] if len(long) > 2 else lengths[0]
    if st.session_state.get("spd_from") not in lengths:
        st.session_state.pop("spd_from", None)
    place = lengths.index(default)
    return int(bind_widget(doubt.selectbox, "Lines begin at N =", lengths, index=place, key="spd_from", width=200))


def _show_curve(
    key: str, table: pd.DataFrame, column: str, unit: str, start: int, length: int, about: page_text.ChartText,
    crossings: list[float], below: DeltaGenerator,
) -> None:  # fmt: skip
    fits = {system: fit for system in set(table["system"]) if (fit := curves.fit_line(table, system, column, start)) is not None}
    title = f"{unit} per history"
    figure = cache.cached_figure(charts.draw_curves, table, fits, page_context.theme_palette(), column, title, crossings, length)
    exponents = curves.fit_exponents(table, column, start)
    words = "; ".join(f"{row[0]} grows as N to the {row[1]:.2f}" for row in exponents.itertuples(index=False))
    page_elements.show_chart(key, figure, table, about, f"{title} against history length. {words}.")
    below.markdown(f"**{'Memory' if column == 'memory' else 'Time'}**")
    below.dataframe(
        exponents, hide_index=True, key=f"{key}_fits", alt=f"Fitted exponents. {words}.",
        column_config=FITS, column_order=list(FITS),
    )  # fmt: skip


def show_paper_numbers() -> None:
    """The paper's own numbers, apart from ours."""
    with st.container(border=True):
        claims = "; ".join(f"{what}: **{value}** ({where})" for what, value, where in curves.PAPER)
        st.markdown(TEXT("paper", told=claims))


def new_event(table: pd.DataFrame, source: str) -> None:
    """One new event after histories of all lengths."""
    table, clock = curves.trusted_rows(table)
    words = curves.event_words(table.pivot_table(index="length", columns="system", values="ms"))
    st.markdown(page_context.escape_markdown(f"{words} Times are {clock}."))
    figure = cache.cached_figure(charts.draw_new_events, curves.with_refresh(table), page_context.theme_palette())
    page_elements.show_chart("spd_event", figure, table, TEXT.chart_text("EVENT"), f"Time of one new event. {words}")
    st.caption(f"{source.capitalize()}: {page_context.escape_markdown(curves.machine_text(table))}")
