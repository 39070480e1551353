"""A run without experts: what it has in their place. Codewords, weights on events, intensities, or one state."""

from collections.abc import Callable

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.peers.parts.capabilities import Attends, Quantises
from elastic_core.services.experts import codewords as coded
from elastic_core.services.experts import intensities as timed
from elastic_core.services.experts import weights
from elastic_core.services.experts.codewords import Words
from elastic_core.services.experts.weights import Looked
from elastic_core.services.person import inspect
from pages.experts import charts
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import cache, prose, view
from pages.kit.control import one_of, switch
from pages.kit.kept import asking, kept

SAYS = prose.of(__file__)
COLUMNS = view.numbers("percent", "events", "held out", "by chance") | {"titles": st.column_config.Column(width="medium")}
PART, BOOK = "exp_instead", "exp_book"
CODES, LOOKS, OFTEN = "Codewords", "What it looks at", "Intensities"


_judged = asking(kept(16, "Judging what each codeword’s items have in common …"), coded.judge_words)
_spread = asking(kept(64), coded.spread)
_looked = asking(kept(64), weights.looked)
_everybody = asking(kept(8, "Taking events away from other people, too …"), weights.weights_of_everybody)
_intensities = asking(kept(64), timed.intensities)
_surprise = asking(kept(8), timed.surprise)


def show(now: Context) -> None:
    """Show the whole screen, with the parts that this run can fill."""
    parts: dict[str, Callable[[Context], None]] = {CODES: codewords} if isinstance(now.model, Quantises) else {}
    parts[LOOKS] = looks
    if _intensities(now, now.user) is not None:
        parts[OFTEN] = intensities
    view.title("What does this run have in place of experts?")
    has = (
        "It writes each item in codewords, and counts how often each one occurs in a history." if CODES in parts
        else "It weighs every event of a history, and more so where many events of its kind are happening." if OFTEN in parts
        else "Here is how it reads a history."
    )  # fmt: skip
    st.write(f"This run has no interest memory, so it has no experts. {has}")
    chosen = switch("Part", list(parts), PART) if len(parts) > 1 else LOOKS
    parts[chosen](now)
    view.foot("python -m elastic_core evaluate", now.run.name)


def codewords(now: Context) -> None:
    """Show which items share a word, and how this person's history is spread over words."""
    codes = coded.codewords(now.model)
    books, size = codes.words.shape[:2]
    how = "to one word" if codes.shares is None else "in parts to the words"
    st.markdown(f"Every item belongs {how} of each of **{books} codebooks** of {size} words.")
    book = one_of("Codebook", list(range(1, books + 1)), key=BOOK, width="content")
    found = _judged(now, book)
    if found.genres:
        st.markdown(_genres(found, size))
    table = found.table.sort_values("share", ascending=False)
    shown = table.assign(label=table["label"].where(table["label"] != "", "too few items")).rename(
        columns={"share": "events", "label": "genre", "held": "held out", "chance": "by chance", "sure": "beyond it"}
    )
    columns = ["word", "items", "events", "titles", *(["genre", "held out", "by chance", "beyond it"] if found.genres else [])]
    alt = f"Codewords of codebook {book}, busiest first"
    view.table("exp_codewords", shown[columns], SAYS.about("CODEWORDS"), alt, height=330, column_config=COLUMNS)
    spread = _spread(now, now.user)
    view.heading(f"The words in the history of person {now.user + 1}")
    row = spread.books.iloc[book - 1]
    low, high = row["low"], row["high"]
    told = "fewer than luck" if row["spread"] < low else "more than luck" if row["spread"] > high else "as many as by luck"
    st.markdown(
        f"The last {spread.events} events use about **{row['spread']:.1f} words** of codebook {book}: {told}. As many events, "
        f"drawn from everybody: {low:.1f} to {high:.1f}."
    )
    shares = spread.table[spread.table["book"] == book]
    alt = f"Share of the last {spread.events} events on each of {len(shares)} words of codebook {book}, beside everybody’s."
    view.chart("exp_spread", cache.drawn(charts.spread, shares, shell.palette()), spread.table, SAYS.about("SPREAD"), alt)


def _genres(found: Words, size: int) -> str:
    """Say whether the words of a codebook stand for genres."""
    if not found.items:
        return "No word of this codebook has enough items for a genre."
    high = found.limits[1]
    sure = "Yes, more than luck" if found.held > high else "No more than luck"
    return (
        f"Do words stand for genres? **{sure}.** Each word got its genre from one half of its items. In the other half, "
        f"**{found.held:.0%}** have this genre, too (words dealt out at random: {found.chance:.0%}, at most "
        f"{high:.0%} in 95%). {found.used} of {size} words are used."
    )


def looks(now: Context) -> None:
    """Show weights beside what removal measures, or removal alone."""
    what, palette = now.words, shell.palette()
    stay = now.stay
    try:
        found = _looked(now, now.user, stay)
    except InputError as error:
        st.write(f"Not known here: {shell.plain(error)}.")
        return
    name = shell.plain(inspect.split_year(now.dataset.catalog.title(found.found.target))[0])
    st.markdown(
        f"Person {now.user + 1} {what.did} **{name}** next. The run puts it at rank {found.found.rank} of "
        f"{found.found.running:,}. Which {what.many} speak for it?"
    )
    if not found.weights:
        st.markdown(weights.why_none(now.model))
    if found.found.nothing:
        st.markdown(f"If we remove any one {what.one}, nothing changes. This model does not read the history in that way.")
        return
    if found.weights:
        st.markdown(_agreed(found))
    table = found.found.table
    figure = cache.drawn(charts.looks, table, found.even, palette)
    largest = table.loc[table["change"].abs().idxmax()]
    alt = (
        f"{'Weight and effect' if found.weights else 'Effect'} of each of the last {len(table)} events. The largest "
        f"effect: {inspect.split_year(largest['title'])[0]}, times {largest['times']:.2f}."
    )
    shown = table if found.weights else table.drop(columns=["attention", "usual"])
    view.chart("exp_looks", figure, shown, SAYS.about("LOOKS" if found.weights else "REMOVAL"), alt)
    if isinstance(now.model, Attends):
        everybody(now, stay)


def _agreed(found: Looked) -> str:
    """Say whether weights and effects agree."""
    own = found.found.agreement
    if own is None:
        return "There are too few events, or all weights are the same. So nothing can be compared."
    low, high = found.shuffled
    return (
        f"Do weights and effects agree? Correlation **{own.correlation:+.2f}** (1: fully, 0: not at all). Weights in random "
        f"order: {low:+.2f} to {high:+.2f}. Weights of {found.people} other people: {found.others:+.2f} on average."
    )


def everybody(now: Context, stay: bool) -> None:
    """Say whether it is so for others."""
    try:
        found = _everybody(now, stay)
    except InputError as error:
        st.caption(f"Not known for all people: {shell.plain(error)}.")
        return
    low = found.difference[0] - found.difference[1]
    verdict = "the weights say something about the person" if low > 0 else "the weights may say only how old an event is"
    own, theirs, apart = (f"{mean:+.2f} ± {half:.2f}" for mean, half in found[1:])
    st.markdown(
        f"Over {found.people} people: their own weights {own}, those of somebody else {theirs}. The difference is {apart}. "
        f"So {verdict}."
    )


def intensities(now: Context) -> None:
    """Show how intensely each kind of event was happening, beside a constant."""
    found, palette = _intensities(now, now.user), shell.palette()
    assert found is not None
    st.markdown(
        f"How intensely each of {found.marks} kinds of events is happening for person {now.user + 1}. Just before an event, its "
        f"own kind had **{found.own:.2f}** on average (no difference: 1)."
    )
    alt = (
        f"Intensity of {found.table['mark'].nunique()} kinds of events over the last events of person {now.user + 1}; 1 is even."
    )
    view.chart("exp_often", cache.drawn(charts.intensities, found.table, palette), found.table, SAYS.about("OFTEN"), alt)
    surprise = _surprise(now)
    if surprise is None:
        st.markdown("These data have no times, so nothing can explain them.")
        return
    trained = (
        "The run was trained for this (CTReg)."
        if now.model.auxiliary_weights()
        else "The run was not trained for this (no CTReg)."
    )
    less, half = surprise.difference
    verdict = "better than" if less < -half else "worse than" if less > half else "as well as"
    ours, constant, apart = (
        f"{mean:{sign}.2f} ± {half:.2f}" for (mean, half), sign in zip(surprise[1:], ("", "", "+"), strict=True)
    )
    st.markdown(
        f"**Do they explain when events come, and which?** {trained} They do {verdict} a constant. Surprise over "
        f"{surprise.people} people: {ours}, constant {constant} (nats per event). The difference is {apart}."
    )
