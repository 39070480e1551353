"""Reasons that are tested: what each event changes by its removal, beside attention; how the experts read; the way so far."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey.shown import span_titles, strongest
from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Situation, Words
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers, charts, dispatcher, state
from pages.journey.words import ALONG, INFLUENCE, READING, SAYS
from pages.kit import cache, view
from pages.kit.control import one_of, switch

NEXT, TOP = "what came next", "the top suggestion"
FEW, ALL = "12 strongest", "all, latest first"


def influence(now: Context, here: Situation, words: Words) -> list[str]:
    """Removal of each event, next to attention. Says how sure that is."""
    truth, top = here.answer.truth, int(here.answer.table["item"].iloc[0])
    with view.row("top"):
        options = [NEXT, TOP] if truth is not None else [TOP]
        asked = switch("Behind", options, "jrn_for")
        show = switch("Show", [FEW, ALL], "jrn_show")
    target = truth if truth is not None and asked != TOP else top
    try:
        found = answers.influence(now, tuple(here.read.items.tolist()), target, here.stay)
    except InputError as error:
        st.write(state.sentence(error))
        return []
    if found.nothing:
        st.markdown(SAYS("NOTHING", one=words.one))
        return []
    name = inspect.split_year(now.dataset.catalog.title(target))[0]
    st.markdown(SAYS("MATTERS", name=shell.plain(name), rank=found.rank, running=found.running, one=words.one))
    st.markdown(found.sentence)
    rows = strongest(found.table, 12 if show != ALL else None)
    labels = [_label(row.position, row.title) for row in rows.itertuples()]
    alt = f"Effect of removing each event on the chance of {name}; the largest: {labels[0]}, times {rows['times'].iloc[0]:.2f}."
    figure = cache.drawn(charts.influence, rows, labels, shell.palette())
    view.chart("jrn_influence", figure, found.table, INFLUENCE, alt)
    if found.agreement is not None:
        low, high, n = found.agreement.low, found.agreement.high, found.agreement.n
        return [f"**Attention.** The correlation is {low:+.2f} to {high:+.2f} (95%, n = {n} events, taken as independent)."]
    return []


def _label(position: int, title: str) -> str:
    name = inspect.split_year(title)[0].replace("<", "‹").replace(">", "›")  # plotly reads tags in labels
    return f"{position}. {name if len(name) <= 20 else name[:19] + '…'}"


def reading(now: Context, here: Situation) -> None:
    """The dispatcher, and every weight of it on demand."""
    dispatcher.draw(now, here)
    panel = st.expander("Every weight", icon=":material/table:", on_change="rerun", key="jrn_weights")
    if panel.open:
        with panel:
            _weights(now, here)


def _weights(now: Context, here: Situation) -> None:
    """The aggregation map, and how the last event reads the experts."""
    layer = 1
    try:
        found = answers.reading(now, here.read.items, 0)
        if found.layers > 1:
            layers = list(range(1, found.layers + 1))
            layer = one_of("Layer", layers, key="jrn_layer", help=notes.WORDS["layer"])
            found = answers.reading(now, here.read.items, layer - 1)
    except InputError as error:
        st.write(state.sentence(error))
        return
    titles = [title.replace("<", "‹").replace(">", "›") for title in span_titles(now.dataset, here.read.items, found.cells)]
    figure = cache.drawn(charts.aggregation, found.cells, found.slots, titles, shell.palette())
    top = found.slots.sort_values("reads").iloc[-1]
    alt = f"Experts by events in layer {layer}. The last event reads expert {top['expert']:.0f} most, {top['reads']:.0%}."
    films = cache.reads(now, here.read.items)
    view.chart("jrn_reading", figure, found.cells if films is None else films, READING, alt)


def along(now: Context, moment: int, stay: bool) -> None:
    """The way so far: rank and experts at many moments; a click goes there."""
    figure, mine, other, drawn, count = answers.way(now, now.other, now.user, moment, shell.palette(), stay)
    some = f" Shown: today’s experts and the most used ({drawn} of {count})." if drawn < count else ""
    dotted = f" Dotted: {shell.plain(now.other.run.name)}." if now.other else ""
    st.caption(f"{SAYS('OVER_TIME')}{some}{dotted}")
    last = mine.ranks.iloc[-1]
    alt = f"Rank of the next item at {len(mine.ranks)} moments; at the last, the test, rank {last['rank']} of {last['running']}."
    table = mine.ranks
    if other is not None:
        table = mine.ranks.merge(other.ranks[["event", "rank"]], on="event", suffixes=("", "_second_run"))
    there = mine.ranks[mine.ranks["event"] <= max(moment, mine.ranks["event"].min())].iloc[-1]
    many, title = now.words.many, shell.plain(str(there["title"]))
    found, running = {"event": there["event"], "rank": there["rank"], "luck": (there["running"] + 1) / 2}, there["running"]
    st.markdown(SAYS("CAME_NEXT", many=many, title=title, running=running, **found))
    view.chart("jrn_along", figure, table, ALONG, alt, on_select=None if shell.locked(state.MOMENT) else _picked)


def _picked() -> None:
    if mark := view.clicked("jrn_along"):
        state.reach(int(mark[0]))
