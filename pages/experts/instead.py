"""A run without experts: what it has in their place. Codewords, weights on events, intensities, or one state."""

from collections.abc import Callable

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.peers.parts.capabilities import Attends, Codewords, Modulates, Quantises
from elastic_core.services.experts import codewords as coded
from elastic_core.services.experts import intensities as timed
from elastic_core.services.experts import weights
from elastic_core.services.experts.codewords import Spread, Words
from elastic_core.services.person import inspect
from pages.experts import charts
from pages.experts import instead_words as words
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import cache, view
from pages.kit.cache import Opened
from pages.kit.control import one_of, switch
from pages.kit.kept import asking, kept

PART, BOOK = "exp_instead", "exp_book"
CODES, LOOKS, OFTEN = "Codewords", "What it looks at", "Intensities"


@kept(4, "Judging what each codeword’s items have in common …")
def _judged(of: Opened) -> Words:
    return coded.judge_words(_codes(of), of.dataset)


@kept(4)
def _codes(of: Opened) -> Codewords:
    assert isinstance(of.model, Quantises)
    return coded.codewords(of.model)


@kept(64)
def _spread(of: Opened, user: int) -> Spread:
    return coded.spread(_codes(of), of.dataset, user, of.model.length)


_looked = asking(kept(64), weights.looked)
_everybody = asking(kept(8, "Taking events away from other people, too …"), weights.weights_of_everybody)
_intensities = asking(kept(64), timed.intensities)
_surprise = asking(kept(8), timed.surprise)


def show(now: Context) -> None:
    """The whole screen."""
    parts = offered(now)
    view.title("What does this run have in place of experts?")
    st.write(f"This run has no interest memory, so it has no experts. {words.has(list(parts))}")
    names = list(parts)
    chosen = switch("Part", names, PART) if len(names) > 1 else names[0]
    parts[chosen](now)
    view.foot("python -m elastic_core evaluate", now.run.name)


def offered(now: Context) -> dict[str, Callable[[Context], None]]:
    """The parts that this run can fill."""
    found: dict[str, Callable[[Context], None]] = {}
    if isinstance(now.model, Quantises):
        found[CODES] = codewords
    found[LOOKS] = looks
    if isinstance(now.model, Modulates) and _intensities(now, now.user) is not None:
        found[OFTEN] = intensities
    return found


def codewords(now: Context) -> None:
    """Which items share a word, and how this person's history is spread over words."""
    found, palette = _judged(now), shell.palette()
    st.markdown(words.codes(found))
    book = one_of("Codebook", found.books["book"].tolist(), key=BOOK, width="content")
    if found.genres:
        st.markdown(words.judged(found, book))
    table = found.table[found.table["book"] == book].sort_values("share", ascending=False)
    view.table(
        "exp_codewords", words.listed(table, found.genres), words.CODEWORDS, f"Codewords of codebook {book}, busiest first",
        height=330, column_config=words.COLUMNS,
    )  # fmt: skip
    spread = _spread(now, now.user)
    view.heading(f"The words in the history of person {now.user + 1}")
    st.markdown(words.spread(spread, book, now.user))
    shares = spread.table[spread.table["book"] == book]
    alt = f"Share of the last {spread.events} events on each of {len(shares)} words of codebook {book}, beside everybody’s."
    view.chart("exp_spread", cache.drawn(charts.spread, shares, palette), spread.table, words.SPREAD, alt)


def looks(now: Context) -> None:
    """Weights beside what removal measures, or removal alone."""
    what, palette = now.words, shell.palette()
    stay = now.stay
    try:
        found = _looked(now, now.user, stay)
    except InputError as error:
        st.write(f"Not known here: {shell.plain(error)}.")
        return
    name = shell.plain(inspect.split_year(now.dataset.catalog.title(found.found.target))[0])
    st.markdown(words.asked(found, now.user, name, what))
    if not found.weights:
        st.markdown(weights.why_none(now.model))
    if found.found.nothing:
        st.markdown(f"If we remove any one {what.one}, nothing changes. This model does not read the history in that way.")
        return
    if found.weights:
        st.markdown(words.agreed(found))
    figure = cache.drawn(charts.looks, found.found.table, found.even, found.usual, palette)
    largest = found.found.table.loc[found.found.table["change"].abs().idxmax()]
    alt = (
        f"{'Weight and effect' if found.weights else 'Effect'} of each of the last {len(found.found.table)} events. The largest "
        f"effect: {inspect.split_year(largest['title'])[0]}, times {largest['times']:.2f}."
    )
    table = found.found.table.assign(usual=found.usual) if found.weights else found.found.table.drop(columns="attention")
    view.chart("exp_looks", figure, table, words.LOOKS if found.weights else words.REMOVAL, alt)
    if isinstance(now.model, Attends):
        everybody(now, stay)


def everybody(now: Context, stay: bool) -> None:
    """Is it so for others?"""
    try:
        st.markdown(words.everybody(_everybody(now, stay)))
    except InputError as error:
        st.caption(f"Not known for all people: {shell.plain(error)}.")


def intensities(now: Context) -> None:
    """How intensely each kind of event was happening, beside a constant."""
    found, palette = _intensities(now, now.user), shell.palette()
    if found is None:
        return
    st.markdown(words.often(found, now.user))
    alt = (
        f"Intensity of {found.table['mark'].nunique()} kinds of events over the last events of person {now.user + 1}; 1 is even."
    )
    view.chart("exp_often", cache.drawn(charts.intensities, found.table, palette), found.table, words.OFTEN, alt)
    surprise = _surprise(now)
    st.markdown("These data have no times, so nothing can explain them." if surprise is None else words.surprised(surprise))
