"""One person as people see them: the history as a ribbon of covers, and what they are recommended."""

from collections.abc import Sequence

import streamlit as st

from elastic_core.services.person import attribution, inspect
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.recommend import Moved
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import plot, tiles
from pages.kit.tiles import Tile

SHOWN = 12
MARKS = {"up": "↑ from {}", "down": "↓ from {}", "new": "new, was {}", "same": "="}


def colours(now: Context) -> tiles.Colours:
    return tiles.Colours(inspect.common_genres(now.dataset), plot.palette(shell.is_dark()))


def history(now: Context, start: Situation, here: Situation) -> None:
    """The most recent events, oldest first; what was removed stays, faded and struck through."""
    words, table = inspect.words(now.dataset), inspect.history_table(now.dataset, start.read, SHOWN, now.user)
    earlier = table["position"].iloc[0] - 1
    more = f"{earlier} earlier {words.many}, then the" if earlier else "The"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("1 · The history", anchor=False, width="content")
        st.caption(f"{more} last {len(table)}, oldest first. Colour: first listed genre.", width="stretch")
        finder(now)
    cells = []
    for row in table.to_dict("records"):
        name, year = inspect.split_year(row["title"])
        cells.append(Tile(name, year, row["genres"], faded=row["position"] > here.events))
    st.html(tiles.ribbon(cells, colours(now), f"The last {len(table)} {words.many} of person {now.user + 1}"))


def suggestions(now: Context, here: Situation, change: Moved, changed: bool) -> None:
    """The ten likeliest, what moved if something was `changed`, and what really came next in gold."""
    edit = inspect.silence(here.silenced) if here.silenced else None
    why = attribution.reasons(now.model, here.read, change.table["item"].tolist(), edit)
    ranked(now, change, here.answer.truth, changed, [reason.sentence(now.dataset) for reason in why or []])


def ranked(now: Context, change: Moved, truth: int | None, changed: bool, why: Sequence[str] = ()) -> None:
    """The same of any answer; `why` says of every suggestion who makes it."""
    words, rows = inspect.words(now.dataset), []
    note = f"{words.did} next"
    for place, row in enumerate(change.table.to_dict("records")):
        name, year = inspect.split_year(row["title"])
        mark = MARKS[row["change"]].format(row["was"] or "seen") if changed else ""
        by = why[place] if why else ""
        rows.append(Tile(name, year, row["genres"], str(row["rank"]), mark, note, row["is_truth"], why=by))
    rank = change.truth_after
    if truth is not None and rank and rank > len(rows):
        catalog = now.dataset.catalog
        name, year = inspect.split_year(catalog.title(truth))
        mark = f"was {change.truth_before}" if changed else ""
        rows.append(Tile(name, year, catalog.genres[truth] if catalog.genres else (), str(rank), mark, note, gold=True))
    st.html(tiles.ranking(rows, colours(now), "Suggestions, best first"))
    if len(change.gone):
        gone = [f"{_plain_name(row.title)} (now {row.now or 'seen'})" for row in change.gone.itertuples()]
        st.caption(f"Gone from the ten: {', '.join(gone)}.")


def _plain_name(title: object) -> str:
    return shell.plain(inspect.split_year(str(title))[0])


def finder(now: Context) -> None:
    """From a title to people who have it in their history."""
    words = inspect.words(now.dataset)
    with st.popover(f"Find someone who {words.did} …", icon=":material/search:"):
        text = st.text_input(
            "Part of a title", key="find_text", max_chars=80, placeholder=_plain_name(now.dataset.catalog.title(1))
        )
        if not text.strip():
            st.caption(f"Type a word of a title, choose one of the {words.many}, then a person.")
            return
        found = inspect.find_items(now.dataset, text)
        if found.empty:
            st.write(f"No title has these words. There are {now.dataset.catalog.n_items:,} {words.many}.")
            return
        titles = dict(zip(found["item"], found["title"], strict=True))
        item = st.selectbox(words.one.capitalize(), list(titles), format_func=titles.__getitem__)
        people = inspect.people_with(now.dataset, int(item), now.split)
        if people.empty:
            st.write(f"Nobody {words.did} it before the last event of their history.")
            return
        st.caption(f"{len(people):,} people {words.did} it. Those who did so most recently:")
        with st.container(horizontal=True):
            for user in people["user"].head(6):
                st.button(f"Person {user + 1}", key=f"find_{user}", on_click=shell.meet, args=(int(user),))


def tables(now: Context, start: Situation, change: Moved) -> None:
    """The same as plain tables, to read out, sort, search and download."""
    words = inspect.words(now.dataset)
    panel = st.expander("Show as tables", icon=":material/table:", on_change="rerun")
    if not panel.open:
        return
    with panel:
        st.markdown("**The whole history, oldest first**")
        st.dataframe(
            inspect.history_table(now.dataset, start.read, start.events, now.user), hide_index=True, alt="The whole history"
        )
        st.markdown(f"**The ten likeliest {words.many}**")
        st.dataframe(change.table, hide_index=True, alt="The suggestions with score, earlier rank and change")
