"""What the Experts page says of runs without experts: explanations of its charts (words.md), and numbers as sentences."""

import pandas as pd
import streamlit as st

from elastic_core.services.experts.codewords import Spread, Words
from elastic_core.services.experts.intensities import Intensities, Surprise
from elastic_core.services.experts.weights import Everybody, Looked
from elastic_core.services.person.inspect import Words as Called
from pages.kit import prose, view

CODEWORDS, SPREAD, LOOKS, REMOVAL, OFTEN = prose.of(__file__).abouts("CODEWORDS SPREAD LOOKS REMOVAL OFTEN")
COLUMNS = view.numbers("percent", "events", "held out", "by chance") | {"titles": st.column_config.Column(width="medium")}


def has(parts: list[str]) -> str:
    """What there is, in a sentence."""
    if "Codewords" in parts:
        return "It writes each item in codewords, and counts how often each one occurs in a history."
    if "Intensities" in parts:
        return "It weighs every event of a history, and more so where many events of its kind are happening."
    return "Here is how it reads a history."


def codes(found: Words) -> str:
    """How items are written."""
    size = int(found.books["words"].iloc[0])
    parts = "in parts to the words" if found.soft else "to one word"
    return f"Every item belongs {parts} of each of **{len(found.books)} codebooks** of {size} words."


def judged(found: Words, book: int) -> str:
    """Do words stand for genres?"""
    row = found.books.iloc[book - 1]
    if not row["items"]:
        return "No word of this codebook has enough items for a genre."
    sure = "Yes, more than luck" if row["held"] > row["high"] else "No more than luck"
    return (
        f"Do words stand for genres? **{sure}.** Each word got its genre from one half of its items. In the other half, "
        f"**{row['held']:.0%}** have this genre, too (words dealt out at random: {row['chance']:.0%}, at most "
        f"{row['high']:.0%} in 95%). {row['used']:.0f} of {row['words']:.0f} words are used."
    )


def listed(table: pd.DataFrame, genres: bool) -> pd.DataFrame:
    """The columns that are shown."""
    shown = table.assign(label=table["label"].where(table["label"] != "", "too few items"))
    shown = shown.rename(
        columns={"share": "events", "label": "genre", "held": "held out", "chance": "by chance", "sure": "beyond it"}
    )
    columns = ["word", "items", "events", "titles", *(["genre", "held out", "by chance", "beyond it"] if genres else [])]
    return shown[columns]


def spread(found: Spread, book: int, user: int) -> str:
    """How many words a history uses, beside as many events of everybody."""
    row = found.books.iloc[book - 1]
    low, high = row["low"], row["high"]
    told = "fewer than luck" if row["spread"] < low else "more than luck" if row["spread"] > high else "as many as by luck"
    return (
        f"The last {found.events} events use about **{row['spread']:.1f} words** of codebook {book}: {told}. As many events, "
        f"drawn from everybody: {low:.1f} to {high:.1f}."
    )


def asked(found: Looked, user: int, name: str, what: Called) -> str:
    """Which item is explained."""
    return (
        f"Person {user + 1} {what.did} **{name}** next. The run puts it at rank {found.found.rank} of {found.found.running:,}. "
        f"Which {what.many} speak for it?"
    )


def agreed(found: Looked) -> str:
    """Do weights and effects agree?"""
    own = found.found.agreement
    if own is None:
        return "There are too few events, or all weights are the same. So nothing can be compared."
    low, high = found.shuffled
    return (
        f"Do weights and effects agree? Correlation **{own.correlation:+.2f}** (1: fully, 0: not at all). Weights in random "
        f"order: {low:+.2f} to {high:+.2f}. Weights of {found.people} other people: {found.others:+.2f} on average."
    )


def everybody(found: Everybody) -> str:
    """Do weights tell something of the person?"""
    own, theirs, apart = found.own, found.stranger, found.difference
    verdict = (
        "So the weights say something about the person." if apart[0] > apart[1]
        else "So the weights may say only how old an event is."
    )  # fmt: skip
    return (
        f"Over {found.people} people: their own weights {own[0]:+.2f} ± {own[1]:.2f}, those of somebody else {theirs[0]:+.2f} ± "
        f"{theirs[1]:.2f}. The difference is {apart[0]:+.2f} ± {apart[1]:.2f}. {verdict}"
    )


def often(found: Intensities, user: int) -> str:
    """What intensities were before what came."""
    return (
        f"How intensely each of {found.marks} kinds of events is happening for person {user + 1}. Just before an event, its own "
        f"kind had **{found.own:.2f}** on average (no difference: 1)."
    )


def surprised(found: Surprise) -> str:
    """Do intensities explain times?"""
    ours, constant, apart = found.model, found.constant, found.difference
    trained = "The run was trained for this (CTReg)." if found.trained else "The run was not trained for this (no CTReg)."
    verdict = "better than" if apart[0] < -apart[1] else "worse than" if apart[0] > apart[1] else "as well as"
    return (
        f"**Do they explain when events come, and which?** {trained} They do {verdict} a constant. Surprise over {found.people} "
        f"people: {ours[0]:.2f} ± {ours[1]:.2f}, constant {constant[0]:.2f} ± {constant[1]:.2f} (nats per event). The difference "
        f"is {apart[0]:+.2f} ± {apart[1]:.2f}."
    )
