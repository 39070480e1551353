"""What the Experts page says of runs without experts: explanations of its charts, and numbers as sentences."""

import pandas as pd
import streamlit as st

from elastic_core.services.experts.codewords import Spread, Words
from elastic_core.services.experts.intensities import Intensities, Surprise
from elastic_core.services.experts.weights import Everybody, Looked
from elastic_core.services.person.influence import LAST
from elastic_core.services.person.inspect import Words as Called
from pages.kit.view import About

TESTS = "tests/test_instead.py::"
CODEWORDS = About(
    "Which items share a codeword, and have they anything in common?",
    "Each item is written as one word of every codebook (or belongs to words in parts; counted is the strongest). Titles: the "
    "most popular. Genre: the one furthest above its share of all items, among one half of the items. Held out: which part of "
    "the word’s items in the other half have it. By chance: the same with codes shuffled among items; words keep their sizes.",
    "A later codebook writes what the earlier ones left over, so its words alone need not mean anything. A popular genre holds "
    "by chance, too: read the two columns together.",
    test=TESTS + "test_labels_of_planted_words_hold_and_shuffled_ones_do_not",
)
SPREAD = About(
    "Which words is this history on?",
    "Bars: the share of the events read that is on each word of this codebook. Lines: the same of everybody’s events. The number "
    "of words is e to the entropy; its band is that of as many events drawn from everybody’s.",
    "The words are those of the first layer; attention then asks how often each occurred, later events counting more.",
    r"e^{-\sum_w p_w \log p_w}",
    TESTS + "test_a_history_of_one_word_is_on_one_word",
)
LOOKS = About(
    "Does where the model looks tell what would change its mind?",
    f"Above: which part of its reading the last event gives each of the last {LAST} events, mean over heads and layers (signs "
    "left out where weights have them). Line: the mean of people with histories of like length, as many events ago. Dotted: "
    "all read alike. Below: what taking the event away does to the log-chance of what came next. Correlation: Spearman’s, of "
    "weight with the size of the effect.",
    "Recent events get weight and have effects in most histories. Only where the own weights agree better than other people’s do "
    "they say something of this person.",
    r"\Delta_i = \log p(y \mid x) - \log p(y \mid x \setminus x_i)",
    TESTS + "test_weights_that_are_the_effects_agree_and_strangers_do_not",
)
REMOVAL = About(
    "Which events would change its mind?",
    f"Each of the last {LAST} events is taken away once, and the model reads the rest anew. Bars: what that does to the "
    "log-chance of what came next.",
    "Events can stand in for each other: two alike may both show little, though together they matter.",
    r"\Delta_i = \log p(y \mid x) - \log p(y \mid x \setminus x_i)",
    "tests/test_influence.py::test_the_batch_equals_one_by_one",
)
OFTEN = About(
    "Which kinds of events does the model take to be happening?",
    "After every event, the intensity of each kind (genre) as the model sees it with the time since the event before, mean over "
    "layers. Shown are the kinds that this person met most. Attention to an event is multiplied by the intensity of its kind.",
    "An intensity that modulates well need not be how often things happen: unless trained to (CTReg), it is a gate. "
    "Constant at 1, it would be plain attention.",
    r"\lambda_k = \phi_k \log\left(1 + e^{(w_k \cdot g_k + \mu_k) / \phi_k}\right)",
    TESTS + "test_surprise_of_constant_intensities_is_the_constant",
)
COLUMNS = {name: st.column_config.NumberColumn(format="percent") for name in ("events", "held out", "by chance")} | {
    "titles": st.column_config.Column(width="medium"),
}


def has(parts: list[str]) -> str:
    """What there is, in a sentence."""
    if "Codewords" in parts:
        return "It writes items in codewords and looks at how often each occurred in a history."
    if "Intensities" in parts:
        return "It weighs every event of a history, more where its kind is happening intensely."
    return "Here is how it reads a history."


def codes(found: Words) -> str:
    size = int(found.books["words"].iloc[0])
    parts = "in parts to the words" if found.soft else "to one word"
    return f"Every item belongs {parts} of each of **{len(found.books)} codebooks** of {size} words."


def judged(found: Words, book: int) -> str:
    row = found.books.iloc[book - 1]
    if not row["items"]:
        return "No word of this codebook has items enough to be given a genre."
    sure = "beyond chance" if row["held"] > row["high"] else "no more than chance explains"
    return (
        f"Do words stand for genres? Of items not looked at when labels were given, **{row['held']:.0%}** have the genre of "
        f"their word (codes shuffled: {row['chance']:.0%}, 95% up to {row['high']:.0%}): {sure}. "
        f"{row['used']:.0f} of {row['words']:.0f} words are used."
    )


def listed(table: pd.DataFrame, genres: bool) -> pd.DataFrame:
    shown = table.assign(label=table["label"].where(table["label"] != "", "too few items"))
    shown = shown.rename(
        columns={"share": "events", "label": "genre", "held": "held out", "chance": "by chance", "sure": "beyond it"}
    )
    columns = ["word", "items", "events", "titles", *(["genre", "held out", "by chance", "beyond it"] if genres else [])]
    return shown[columns]


def spread(found: Spread, book: int, user: int) -> str:
    row = found.books.iloc[book - 1]
    low, high = row["low"], row["high"]
    told = "fewer than chance" if row["spread"] < low else "more than chance" if row["spread"] > high else "as chance has it"
    return (
        f"The last {found.events} events lie on **{row['spread']:.1f} words** of codebook {book}, as if evenly; as many events "
        f"drawn from everybody’s lie on {low:.1f} to {high:.1f}: {told}."
    )


def asked(found: Looked, user: int, name: str, what: Called) -> str:
    return (
        f"Person {user + 1} {what.did} **{name}** next; it stands at rank {found.found.rank} of {found.found.running:,}. Which "
        f"{what.many} speak for it?"
    )


def agreed(found: Looked) -> str:
    own = found.found.agreement
    if own is None:
        return "Too few events, or weights all alike: no correlation."
    low, high = found.shuffled
    return (
        f"Rank correlation of weight with the size of the effect: **{own.correlation:+.2f}**. Weights shuffled: {low:+.2f} to "
        f"{high:+.2f} in 95% of draws. The weights of {found.people} people of like length: {found.others:+.2f} on average."
    )


def everybody(found: Everybody) -> str:
    own, theirs, apart = found.own, found.stranger, found.difference
    tells = apart[0] > apart[1]
    verdict = (
        "so the weights tell something of the person." if tells
        else "so this does not show that the weights tell more than how long ago an event was."
    )  # fmt: skip
    return (
        f"Over {found.people} people: own weights {own[0]:+.2f} ± {own[1]:.2f}, somebody else’s of like length {theirs[0]:+.2f} "
        f"± {theirs[1]:.2f}; the difference is {apart[0]:+.2f} ± {apart[1]:.2f}, {verdict}"
    )


def often(found: Intensities, user: int) -> str:
    return (
        f"How intensely each of {found.marks} kinds of events is happening for person {user + 1}, after every event. What then "
        f"came had an intensity of **{found.own:.2f}** on average; constant: 1."
    )


def surprised(found: Surprise) -> str:
    ours, constant, apart = found.model, found.constant, found.difference
    trained = "It was trained to explain them (CTReg)." if found.trained else "It was not trained to explain them (no CTReg)."
    verdict = "better than" if apart[0] < -apart[1] else "worse than" if apart[0] > apart[1] else "as well as"
    return (
        f"**Do intensities explain when events come, and which?** {trained} Surprise over {found.people} people, in nats an "
        f"interval: {ours[0]:.2f} ± {ours[1]:.2f}; constant: {constant[0]:.2f} ± {constant[1]:.2f}; difference {apart[0]:+.2f} ± "
        f"{apart[1]:.2f}: {verdict} a constant."
    )
