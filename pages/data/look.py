"""The first part of the Data page: one dataset's card, one person's split, how long histories are, how popular items."""

import functools

import streamlit as st

from elastic_core.core.config import DataConfig
from elastic_core.data import Dataset
from elastic_core.data.origins import SOURCES
from elastic_core.errors import InputError
from elastic_core.services.data import cards as data_cards
from elastic_core.services.data.cards import Card
from elastic_core.services.data.shelf import Shelf
from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Words
from pages.data import answers, charts
from pages.frame import finding, shell
from pages.kit import cache, plot, view
from pages.kit.control import bound

SPLIT = view.About(
    "Which events may a model learn from?",
    "Events stand in order of time. What a model reads ends before what it is asked.",
    "A dot is an event, not a liking: low ratings count like high ones. With one last event a person, only means over many say "
    "anything.",
    test="tests/test_data_cards.py::test_the_split_picture_holds_out_the_last_two",
)
LENGTHS = view.About(
    "How much is known about each person?",
    "People by the length of their whole history, after the k-core.",
    "Bins grow like powers: a bar on the right covers many more lengths. Most people lie below the mean.",
    test="tests/test_data_cards.py::test_histograms_lose_nobody",
)
ITEMS = view.About(
    "Do a few items carry most of the events?",
    "Items by number of events, in all parts of the split; bins grow like powers.",
    "The few items on the right can hold most events: a model that only knows popularity gets those right.",
    test="tests/test_data_cards.py::test_histograms_lose_nobody",
)
OVERVIEW = view.About(
    "How do the datasets differ?",
    "Counted on this machine, repeats and rare items dropped.",
    "Results on different data cannot be compared: a longer list of items is a harder task.",
    test="tests/test_data_cards.py::test_a_card_counts_what_a_loop_counts",
)


def part() -> str | None:
    """Returns the name of the source that is shown, if it has one that holds everywhere."""
    now: shell.Context | None = st.session_state.get(shell.CONTEXT)
    current = now.run.config.data if now else None
    choices = data_cards.at_hand_choices(Shelf(shell.RUNS / "uploads").choices(), current)
    name = bound(
        st.selectbox,
        "Data",
        list(choices),
        key="dat_source",
        help="All that is on this machine; nothing is downloaded",
    )
    place = st.empty()
    try:
        data, card = answers.card(choices[name], lambda sentence: place.info(shell.plain(sentence)) and None)
    except InputError as error:
        place.error(f"These data cannot be shown: {shell.plain(str(error))}.")
        return None
    place.empty()
    words = inspect.words(data)
    _facts(card, words)
    _split(data, choices[name], now.user if now is not None and now.dataset.hash == data.hash else None)
    _shapes(data, card, words)
    _terms(card, data.understood)
    _all(choices)
    return choices[name].source if choices[name].source in SOURCES else None


def _facts(card: Card, words: Words) -> None:
    with st.container(horizontal=True):
        for label, value, help in (
            ("People", f"{card.people:,}", ""),
            (words.many.capitalize(), f"{card.items:,}", ""),
            ("Events", f"{card.events:,}", f"One person {words.did} one {words.one} once"),
            ("Density", f"{card.density:.2%}", f"Events, of all pairs of a person and a {words.one}"),
            ("Median length", f"{card.median:,.0f}", "Half of the people have at most so many events"),
        ):
            st.metric(label, value, border=True, width=148 if len(value) < 7 else 190, help=help or None)
    core = f"{card.k_core}-core" if card.k_core else "no k-core"
    st.caption(f"{shell.plain(card.label)}, {card.span}, {core}, split {card.hash}.", help=f"k-core: {notes.WORDS['k-core']}.")
    if card.ties:
        st.caption(f"Equal times: {card.ties}.")


def _terms(card: Card, understood: tuple[tuple[str, str], ...]) -> None:
    st.subheader("Where it comes from", anchor=False)
    st.markdown(f"**How exact is the copy?** {shell.plain(card.exact)}")
    if understood:
        said = "; ".join(f"{what}: {shell.plain(said)}" for what, said in understood)
        st.markdown(f"**How was it read?** {said[:1].upper()}{said[1:]}.")
    st.markdown(f"**Licence.** {shell.plain(card.licence)}")
    if card.official:
        st.caption(shell.plain(card.official))
    for note in card.notes:
        st.caption(f"Note: {shell.plain(note)}")


def _split(data: Dataset, source: DataConfig, chosen: int | None) -> None:
    st.subheader("One person, and what is held out", anchor=False)
    user = chosen
    if user is None:
        people, key = data.histories.n_users, f"dat_person_{data.hash}"
        left, right = st.columns(2)
        with left:
            number = st.number_input("Person of these data", 1, people, 1, key=key)
        with right:
            finding.box(data, source, f"dat_who_{data.hash}", functools.partial(_meet, key))
        user = int(number) - 1
    table = data_cards.split_table(data, user)
    last, name = table.iloc[-1]["title"], finding.called(data, user)
    length = int(data.histories.lengths[user])
    cut = f" Only the latest {len(table)} are drawn." if len(table) < length else ""
    st.write(
        f"{name[:1].upper()}{name[1:]} has {length:,} events; a model learns from all but the last two and is judged by where it "
        f"puts **{shell.plain(last)}**.{cut}"
    )
    alt = f"The {len(table)} latest events of person {user + 1}: two held out, the last is {last}"
    view.chart("dat_split", cache.drawn(charts.split, table, plot.palette(shell.is_dark())), table, SPLIT, alt)


def _meet(key: str, user: int) -> None:
    st.session_state[key] = user + 1


def _shapes(data: Dataset, card: Card, words: Words) -> None:
    colours = plot.palette(shell.is_dark())
    left, right = st.columns(2)
    with left:
        st.subheader("How long histories are", anchor=False)
        st.caption(f"{card.shortest:,} to {card.longest:,} events.")
        frame = data_cards.length_histogram(data)
        alt = f"People by length of history: {card.shortest} to {card.longest} events, median {card.median:.0f}"
        figure = cache.drawn(charts.histogram, frame, "people", "events in the history", colours)
        view.chart("dat_lengths", figure, frame, LENGTHS, alt)
    with right:
        st.subheader(f"How popular {words.many} are", anchor=False)
        share = data_cards.top_share(data)
        st.caption(f"The most popular tenth of the {words.many} has {share:.0%} of all events.")
        frame = data_cards.popularity_histogram(data)
        alt = f"Items by number of events; the most popular tenth has {share:.0%} of all events"
        figure = cache.drawn(charts.histogram, frame, "items", f"events of the {words.one}", colours, words.many)
        view.chart("dat_items", figure, frame, ITEMS, alt)


def _all(choices: dict[str, DataConfig]) -> None:
    """Every dataset side by side; reading the large ones takes a while, so only when asked for."""
    st.subheader("All data on this machine", anchor=False)
    st.write(", ".join(shell.plain(name) for name in choices) + ".")
    if st.button("Count them all", key="dat_count", help="A few seconds for the large ones"):
        st.session_state["dat_counted"] = True
    if st.session_state.get("dat_counted"):
        cards, bar = [], st.progress(0.0, "Reading …")
        for i, (name, config) in enumerate(choices.items()):
            bar.progress(i / len(choices), f"Reading {shell.plain(name)} …")
            try:
                cards.append(answers.counted(config))
            except InputError as error:
                st.caption(f"{shell.plain(name)} cannot be read: {shell.plain(str(error))}.")
        bar.empty()
        formats = {name: st.column_config.NumberColumn(format="localized") for name in ("people", "items", "events", "longest")}
        formats |= {"density": st.column_config.NumberColumn(format="percent")}
        formats |= {name: st.column_config.NumberColumn(format="%.1f") for name in ("mean length", "median length")}
        alt = "All datasets on this machine with people, items, events, density and lengths of history"
        view.table("dat_overview", data_cards.overview(cards), OVERVIEW, alt, column_config=formats)
    missing = data_cards.elsewhere()
    if len(missing):
        st.caption("Known, but not on this machine: " + ", ".join(missing["data"]) + ".")
