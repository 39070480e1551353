"""The first part of the Data page: one dataset's card, one person's split, how long histories are, how popular items."""

import functools
from typing import Literal

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.data.source_catalog import SOURCES
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.services.data import cards as data_cards
from elastic_core.services.data.cards import Card
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import ItemWords
from pages.components import cache, page_context, page_elements, page_text
from pages.components.cache import cached_resource
from pages.components.controls import bind_widget, place_button
from pages.data import cached, charts
from pages.layout import user_search

TEXT = page_text.load_page_text(__file__)
length_histogram, popularity_histogram, top_share = map(  # numbers alone: titles are not part of what tells data from others
    cached_resource(16), (data_cards.length_histogram, data_cards.popularity_histogram, data_cards.top_share)
)
split_table = cached_resource(32)(data_cards.split_table)
SPLIT, LENGTHS, ITEMS, OVERVIEW = map(TEXT.chart_text, ("SPLIT", "LENGTHS", "ITEMS", "OVERVIEW"))


def show_overview() -> str | None:
    """Returns the name of the source that is shown, if it has one that holds everywhere."""
    context, choices = page_context.current_context(), page_context.data_choices()
    name = bind_widget(
        st.selectbox,
        "Data",
        list(choices),
        key="dat_source",
        help="All data on this machine. Nothing is downloaded.",
    )
    place = st.empty()
    try:
        data = cache.load_dataset(choices[name])
        card = cached.make_card(data, choices[name].k_core, data.label)
    except InputError as error:
        place.error(f"These data cannot be shown: {page_context.escape_markdown(error)}.")
        return None
    place.empty()
    item_words = inspect.item_words(data)
    _show_facts(card, item_words)
    offer_training(name, "dat_train", "tertiary")
    _show_split(data, choices[name], context.user if context is not None and context.dataset.hash == data.hash else None)
    _show_histograms(data, card, item_words)
    with st.expander("Where it comes from", icon=":material/help:"):
        _show_terms(card, data.understood)
    with st.expander("All data on this machine", icon=":material/database:"):
        _show_all_data(choices)
    return choices[name].source if choices[name].source in SOURCES else None


def offer_training(data_name: str, key: str, kind: Literal["primary", "tertiary"]) -> None:
    """A button that opens Train with these data."""
    chosen_data = {"train_data": data_name}
    if place_button("Train on it", key, st.session_state.update, chosen_data, icon="model_training", type=kind):
        st.switch_page("train/page.py", query_params=chosen_data)


def _show_facts(card: Card, item_words: ItemWords) -> None:
    with page_elements.place_in_row("top"):
        for label, value, help in (
            ("People", f"{card.n_users:,}", ""),
            (item_words.plural.capitalize(), f"{card.items:,}", ""),
            ("Events", _in_millions(card.events), f"An event: one person {item_words.verb} one {item_words.singular}"),
            ("Density", f"{card.density:.2%}", f"How many of all pairs of a person and {item_words.with_article} are events"),
            ("Median length", f"{card.median:,.0f}", "Half of the people have at most this many events"),
        ):
            st.metric(label, value, border=True, width=146 if len(value) < 7 else 172, help=help or None)
    values = {"label": page_context.escape_markdown(card.label), "span": card.span}
    st.caption(TEXT("rare", **values, core=card.k_core) if card.k_core else TEXT("all", **values))
    if card.ties:
        st.caption(f"Equal times: {card.ties}.")


def _in_millions(number: int) -> str:
    """1,227,393 → 1.23 M: neither nine figures nor the word fit the card."""
    return f"{number:,}" if number < 1_000_000 else f"{number / 1_000_000:.2f} M"


def _show_terms(card: Card, readings: tuple[tuple[str, str], ...]) -> None:
    st.markdown(f"**How exact is the copy?** {page_context.escape_markdown(card.exact)}")
    if readings:
        meaning = "; ".join(f"{term}: {page_context.escape_markdown(meaning)}" for term, meaning in readings)
        st.markdown(f"**How was it read?** {meaning[:1].upper()}{meaning[1:]}.")
    st.markdown(f"**Licence.** {page_context.escape_markdown(card.licence)}")
    st.caption(f"Split {card.hash}.")
    if card.official:
        st.caption(page_context.escape_markdown(card.official))
    for note in card.notes:
        st.caption(f"Note: {page_context.escape_markdown(note)}")


def _show_split(data: Dataset, source: DataConfig, user_in_view: int | None) -> None:
    page_elements.show_heading("One person, and what the model must guess")
    user = user_in_view
    if user is None:
        n_users, key = data.histories.n_users, f"dat_person_{data.hash}"
        left_column, right_column = st.columns(2)
        with left_column:
            number = st.number_input("Person of these data", 1, n_users, 1, key=key)
        with right_column:
            user_search.show_search_box(data, source, f"dat_who_{data.hash}", functools.partial(_set_user, key))
        user = int(number) - 1
    table = split_table(data, user)
    last_title, name = table.iloc[-1]["title"], user_search.format_user(data, user)
    length = int(data.histories.lengths[user])
    cut_text = f" {TEXT('latest', many=len(table))}" if len(table) < length else ""
    person_values = {"name": name[:1].upper() + name[1:], "length": f"{length:,}"}
    if data.in_baskets:
        n_read, n_next = int(data.readable_lengths()[user]), len(data.next_items(user))
        st.write(TEXT("household", name=person_values["name"], read=f"{n_read:,}", many=n_next) + cut_text)
    else:
        st.write(TEXT("person", **person_values, last=page_context.escape_markdown(last_title)) + cut_text)
    alt = f"The {len(table)} latest events of person {user + 1}: two held out, the last is {last_title}"
    page_elements.show_chart(
        "dat_split", cache.cached_figure(charts.draw_split, table, page_context.theme_palette()), table, SPLIT, alt
    )


def _set_user(key: str, user: int) -> None:
    st.session_state[key] = user + 1


def _show_histograms(data: Dataset, card: Card, item_words: ItemWords) -> None:
    colours = page_context.theme_palette()
    left_column, right_column = st.columns(2)
    with left_column:
        page_elements.show_heading("How long histories are")
        st.caption(f"A history has {card.shortest:,} to {card.longest:,} events.")
        frame = length_histogram(data)
        alt = f"People by length of history: {card.shortest} to {card.longest} events, median {card.median:.0f}"
        figure = cache.cached_figure(charts.draw_histogram, frame, "people", "events in the history", colours)
        page_elements.show_chart("dat_lengths", figure, frame, LENGTHS, alt)
    with right_column:
        page_elements.show_heading(f"How popular {item_words.plural} are")
        share = top_share(data)
        st.caption(f"The most popular tenth of the {item_words.plural} has {share:.0%} of all events.")
        frame = popularity_histogram(data)
        alt = f"Items by number of events; the most popular tenth has {share:.0%} of all events"
        figure = cache.cached_figure(
            charts.draw_histogram, frame, "items", f"events of the {item_words.singular}", colours, item_words.plural
        )
        page_elements.show_chart("dat_items", figure, frame, ITEMS, alt)


def _show_all_data(choices: dict[str, DataConfig]) -> None:
    """Every dataset side by side; reading the large ones takes a while, so only when asked for."""
    st.write(", ".join(page_context.escape_markdown(name) for name in choices) + ".")
    if st.button("Count them all", key="dat_count", help="This takes a few seconds for large data."):
        st.session_state["dat_counted"] = True
    if st.session_state.get("dat_counted"):
        cards, bar = [], st.progress(0.0, "Reading …")
        for i, (name, config) in enumerate(choices.items()):
            bar.progress(i / len(choices), f"Reading {page_context.escape_markdown(name)} …")
            try:
                cards.append(cached.count_card(config))
            except InputError as error:
                st.caption(f"{page_context.escape_markdown(name)} cannot be read: {page_context.escape_markdown(error)}.")
        bar.empty()
        formats = page_elements.number_columns(
            "localized", "people", "items", "events", "longest"
        ) | page_elements.number_columns("percent", "density")
        formats |= page_elements.number_columns("%.1f", "mean length", "median length")
        alt = "All data on this machine with people, items, events, density and lengths of history"
        page_elements.show_table("dat_overview", data_cards.overview_table(cards), OVERVIEW, alt, column_config=formats)
    missing_data = data_cards.unavailable_data()
    if len(missing_data):
        st.caption("These data are known, but not on this machine: " + ", ".join(missing_data["data"]) + ".")
