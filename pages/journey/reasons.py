"""Reasons that are tested: what each event changes by its removal, beside attention; how the experts read; the way so far."""

import math

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey.shown import span_titles, strongest
from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from elastic_core.services.person.influence import LAST
from elastic_core.services.person.inspect import Situation, Words
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers, charts, dispatcher, state
from pages.kit import cache, plot, view
from pages.kit.control import one_of

NEXT, TOP = "what came next", "the top suggestion"
FEW, ALL = "12 strongest", "all, latest first"
INFLUENCE = view.About(
    "Which events speak for the item?",
    f"Each of the last {LAST} events is taken away once and stays out of the ranking. Bars: the fall of log-chance; ×2: having "
    "it doubles the chance. Attention: the last event’s (in ELASTIC through the experts), mean over heads and layers; "
    "Spearman’s correlation with the effect’s size.",
    "Attention says where the model looked, not what would change. Two alike may both show little, though together they matter. "
    "The interval takes events as independent: rough.",
    r"\Delta_i = \log p(y \mid x) - \log p(y \mid x \setminus x_i)",
    "tests/test_influence.py::test_the_batch_equals_one_by_one",
)
READING = view.About(
    "What does each expert read?",
    "Softmax weights of one layer, mean over heads; hotter: more than even. The table has every event and layer, beside what "
    "the other experts give.",
    "Where an expert looks is not why an item is recommended: the removal above tests that.",
    test="tests/test_journey.py::test_aggregation_keeps_every_weight",
)
ALONG = view.About(
    "How did experts and rank change as this history grew?",
    "At up to 40 even moments the model reads the events before; ranked among all items not met until then. Diamond: validation.",
    "Circles flatter the model: it learned from them. The star is a fair test, but of one event of one person.",
    test="tests/test_journey.py::test_along_time_equals_moment_after_moment",
)


def influence(now: Context, here: Situation, words: Words) -> None:
    """Removal of each event, next to attention."""
    st.subheader(f"Which {words.many} are behind it?", anchor=False)
    truth, top = here.answer.truth, int(here.answer.table["item"].iloc[0])
    with st.container(horizontal=True):
        options = [NEXT, TOP] if truth is not None else [TOP]
        asked = one_of("Behind", options, key="jrn_for")
        show = one_of("Show", [FEW, ALL], key="jrn_show", default=FEW)
    target = truth if truth is not None and asked != TOP else top
    try:
        found = answers.influence(now.run, now.model, now.dataset, tuple(here.read.items.tolist()), target, here.stay)
    except InputError as error:
        st.write(state.sentence(error))
        return
    name = inspect.split_year(now.dataset.catalog.title(target))[0]
    st.markdown(
        f"**{shell.plain(name)}**, rank {found.rank} of {found.running:,}. Orange: the {words.one} makes it likelier; blue: less "
        f"likely. {found.sentence}"
    )
    if found.nothing:
        st.markdown(f"Taking any single {words.one} away changes nothing: this model does not read the history that way.")
        return
    rows = strongest(found.table, 12 if show != ALL else None)
    labels = [_label(row.position, row.title) for row in rows.itertuples()]
    alt = f"Effect of removing each event on the chance of {name}; the largest: {labels[0]}, times {rows['times'].iloc[0]:.2f}."
    figure = cache.drawn(charts.influence, rows, labels, plot.palette(shell.is_dark()))
    view.chart("jrn_influence", figure, found.table, INFLUENCE, alt)


def _label(position: int, title: str) -> str:
    name = inspect.split_year(title)[0].replace("<", "‹").replace(">", "›")  # plotly reads tags in labels
    return f"{position}. {name if len(name) <= 20 else name[:19] + '…'}"


def reading(now: Context, here: Situation) -> None:
    """The dispatcher, and every weight of it on demand."""
    dispatcher.draw(now, here)
    panel = st.expander("Every weight, layer by layer", icon=":material/table:", on_change="rerun", key="jrn_weights")
    if panel.open:
        with panel:
            _weights(now, here)


def _weights(now: Context, here: Situation) -> None:
    """The aggregation map, and how the last event reads the experts."""
    layer, which = 1, ""
    try:
        found = answers.reading(now.run, now.model, now.dataset, here.read.items, 0)
        if found.layers > 1:
            layers = list(range(1, found.layers + 1))
            layer = one_of("Layer", layers, key="jrn_layer", default=1, help=notes.WORDS["layer"]) or 1  # fmt: skip
            which = f", layer {layer}"
            found = answers.reading(now.run, now.model, now.dataset, here.read.items, layer - 1)
    except InputError as error:
        st.write(state.sentence(error))
        return
    if not math.isnan(found.alike):
        st.markdown(
            f"**Do they divide the work?** Two experts’ weights correlate by {found.alike:+.2f} on average "
            f"({len(found.slots)} experts{which}): 1 = all look at the same events, 0 = each has its own."
        )
    titles = [title.replace("<", "‹").replace(">", "›") for title in span_titles(now.dataset, here.read.items, found.cells)]
    figure = cache.drawn(charts.aggregation, found.cells, found.slots, titles, plot.palette(shell.is_dark()))
    top = found.slots.sort_values("reads").iloc[-1]
    alt = f"Experts by events{which}. The last event reads expert {top['expert']:.0f} most, {top['reads']:.0%}."
    films = cache.reads(now.run, now.model, now.dataset, here.read.items)
    view.chart("jrn_reading", figure, found.cells if films is None else films, READING, alt)


def along(now: Context, moment: int, stay: bool) -> None:
    """The way so far: rank and experts at many moments; a click goes there."""
    st.subheader("The whole journey", anchor=False)
    figure, mine, other, drawn, count = answers.way(now, moment, shell.is_dark(), stay)
    some = f" Shown: today’s experts and the most used, {drawn} of {count}." if drawn < count else ""
    dotted = f" Dotted: {shell.plain(now.other.name)}." if now.other else ""
    marks = "Circles: trained on; diamond: validation; star: test."
    st.caption(f"Without your edits. Gold line: now; click a mark to go there. {marks}{some}{dotted}")
    last = mine.ranks.iloc[-1]
    alt = f"Rank of the next item at {len(mine.ranks)} moments; at the last, the test, rank {last['rank']} of {last['running']}."
    table = mine.ranks
    if other is not None:
        table = mine.ranks.merge(other.ranks[["event", "rank"]], on="event", suffixes=("", "_second_run"))
    there = mine.ranks[mine.ranks["event"] <= max(moment, mine.ranks["event"].min())].iloc[-1]
    st.markdown(
        f"After **{there['event']}** {inspect.words(now.dataset).many}: {shell.plain(str(there['title']))} came next, at rank "
        f"**{there['rank']:,}** of {there['running']:,} (shuffled: {(there['running'] + 1) / 2:,.0f})."
    )
    view.chart("jrn_along", figure, table, ALONG, alt, on_select=None if shell.locked(state.MOMENT) else _picked)


def _picked() -> None:
    points = st.session_state["jrn_along"]["selection"]["points"]
    if points:
        state.reach(int(points[0]["customdata"][0]))
