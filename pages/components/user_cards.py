"""One person as people see them: the history as a ribbon of covers, and what they are recommended."""

from collections.abc import Sequence

import streamlit as st

from elastic_core.services.person import attribution, inspect
from elastic_core.services.person.null_edits import NullEdits
from elastic_core.services.person.prediction import Prediction
from elastic_core.services.person.recommend import BELOW, ListChange, scale_experts
from pages.components import cache, item_cards, page_context
from pages.components.controls import choose_one
from pages.components.item_cards import ItemCard
from pages.components.page_context import Context

MARKS = {"up": "was {}", "down": "was {}", "new": "new", "same": "=", BELOW: "was {}"}
NEXT_BASKET = "was in the next basket"
ALL_ITEMS, UNSEEN_ITEMS = "everything", "what is new to them"


def genre_colours(context: Context) -> item_cards.GenreColours:
    kind = "hobby" if context.dataset.truth is not None else "first listed genre"
    return item_cards.GenreColours(inspect.first_genres(context.dataset, context.user), page_context.theme_palette(), kind)


def choose_keep_seen(context: Context, key: str) -> bool:
    """Do items stay in the running that the person has met? Asked only where people choose again what they have met; how many of
    them do decides what is asked for at first. `key` is the page's own."""
    repeats = cache.measure_repeats(context.dataset)
    if not repeats.again:
        return False
    words = context.item_words
    repeats_text = (
        f"{repeats.again:,} of {repeats.people:,} people ({repeats.share:.0%}) {words.verb} next what they had "
        f"{words.participle} before."
    )
    choice = choose_one(
        f"Which {words.plural} are ranked?", [ALL_ITEMS, UNSEEN_ITEMS], key=key,
        default=ALL_ITEMS if repeats.stay else UNSEEN_ITEMS, help=repeats_text,
    )  # fmt: skip
    if choice != ALL_ITEMS:
        st.caption("Fewer items compete now, so do not compare these ranks with those among all items.")
    return choice == ALL_ITEMS


def show_history_row(context: Context, cards: list[ItemCard], label: str, note: str) -> None:
    """A history as covers; below them a note, and what their colours mean."""
    shades = genre_colours(context)
    st.html(item_cards.history_row_html(cards, shades, label) + item_cards.legend_html(shades, note))


def show_suggestions(context: Context, prediction: Prediction, change: ListChange, changed: bool) -> None:
    """The ten likeliest, what moved if something was `changed`, and what really came next in gold."""
    edit = scale_experts(prediction.scales)
    why = attribution.find_reasons(context.model, prediction.history, change.table["item"].tolist(), edit)
    if len({reason.expert for reason in why or []}) < 2:
        why = None  # an expert that is named beside every suggestion tells none from another
    show_ranked_items(context, change, changed, [reason.sentence(context.dataset.catalog) for reason in why or []])
    if note := note_seen_next(prediction):
        st.caption(note)


def note_seen_next(prediction: Prediction) -> str:
    """What is said of a list of new items where what really came next is none, and is ranked all the same; else nothing."""
    if prediction.keep_seen or not prediction.history.next_is_seen:
        return ""
    return "★ is not new to this person. Its number says where it would stand among what is new."


def show_ranked_items(context: Context, change: ListChange, changed: bool, why: Sequence[str] = ()) -> None:
    """The same of any answer; `why` says of every suggestion who makes it."""
    words, rows = context.item_words, []
    names = inspect.told_apart(change.table["title"].tolist(), context.dataset.catalog.ids[change.table["item"]].tolist())
    for place, row in enumerate([*change.table.to_dict("records"), *change.below.to_dict("records")]):
        name, year = inspect.split_year(row["title"])
        name = names[place] if place < len(names) else name
        mark = MARKS[row["change"]].format(row["was"] or "seen") if changed else ""
        by = why[place] if place < len(why) else ""
        rows.append(
            ItemCard(name, year, row["genres"], str(row["rank"]), mark, label_next_item(context), row["is_truth"], why=by)
        )
    st.html(item_cards.ranking_html(rows, genre_colours(context), "Suggestions, best first"))
    if len(change.lost_rows):
        cards_gone = []
        for row in change.lost_rows.to_dict("records"):
            name, year = inspect.split_year(row["title"])
            mark = f"out, now {row['now'] or words.participle}"
            cards_gone.append(ItemCard(name, year, row["genres"], str(row["rank"]), mark, gold=row["is_truth"], faded=True))
        st.markdown(f"**Left the ten** :small[:gray[({len(cards_gone)})]]")
        st.html(item_cards.ranking_html(cards_gone, genre_colours(context), "Left the ten"))


def describe_truth(prediction: Prediction, change: ListChange, name: str) -> str:
    """What an edit did to what really came next: to the item called `name`, or to the guessed part of the next basket."""
    if prediction.recommendation.truth is None:
        return ""
    return f"★ {change.basket_guessed}" if len(prediction.history.basket) > 1 else f"{name} {change.truth_moved}."


def label_next_item(context: Context) -> str:
    """What is written beside an item that really came next."""
    return NEXT_BASKET if context.dataset.in_baskets else f"{context.item_words.verb} next"


def name_user_experts(context: Context, prediction: Prediction) -> dict[int, str]:
    """What this person's experts are called, where a name holds."""
    names = {expert: cache.expert_name(context.open_run, expert) for expert in prediction.active_experts}
    return {expert: name for expert, name in names.items() if name}


def show_null_comparison(null: NullEdits, context: Context, others: str) -> None:
    """What an edit did, beside the same edit of `others`."""
    done = str(null.table["done"].iloc[0])
    rows = null.rows(context.item_words.verb)
    st.html(
        item_cards.null_comparison_html(
            rows, f"{done[:1].upper()}{done[1:]}:", f"{null.n} {others} (median and range)", page_context.theme_palette()
        )
    )
