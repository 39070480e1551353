"""A run without experts: its item vectors or its codewords laid flat, with this person's history on them."""

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Quantises
from elastic_core.services.map import items
from elastic_core.services.map.items import Laid
from elastic_core.services.person import inspect
from elastic_core.services.person.recommend import reading
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import cache, plot, view
from pages.kit.control import one_of
from pages.kit.kept import kept
from pages.map import instead_charts as charts

ITEMS, WORDS, OF = "Items", "Codewords", "map_of"
ABOUT = view.About(
    "Do items (or codewords) of one kind lie together, and where is this history?",
    "Vectors that score the items, by direction, along the two axes of largest variance (PCA). Kind: first listed genre, or the "
    "codebook. Rings: this person’s last events; star: what came next.",
    "Two axes hold a small part of the variance: marks that touch may be far apart.",
    test="tests/test_reach.py::test_planted_kinds_lie_together_and_shuffled_ones_do_not",
)


def show(now: Context) -> None:
    """The whole screen."""
    coded = isinstance(now.model, Quantises)
    st.title("Where do items lie for this run?" if not coded else "Where do items and codewords lie for this run?", anchor=False)
    st.write("No interest memory, so no experts to lay flat; it has a vector for each item.")
    chosen = one_of("Of", [ITEMS, WORDS], key=OF, label_visibility="collapsed") if coded else ITEMS
    key, palette = (str(now.run.path), cache.stamp(now.run), now.dataset.hash), plot.palette(shell.is_dark())
    try:
        found = _laid(key, chosen == WORDS, now.model, now.dataset)
    except InputError as error:
        st.write(f"None here: {shell.plain(str(error))}.")
        view.foot("python -m elastic_core evaluate", now.run.name)
        return
    read, what = reading(now.dataset, now.user, now.split), inspect.words(now.dataset)
    history = frozenset(read.items[-now.model.length :].tolist()) if chosen == ITEMS else frozenset()
    figure = cache.drawn(charts.laid, found.table, history, read.truth if chosen == ITEMS else None, palette)
    alt = f"PCA map of {len(found.table):,} {chosen.lower()}, coloured by kind."
    view.chart("map_items", figure, found.table, ABOUT, alt)
    st.caption(
        f"{len(found.table):,} of {found.total:,} {chosen.lower()}; the two axes hold {sum(found.shares):.0%} of the variance."
        + (f" Rings: person {now.user + 1}’s {what.many}; star: what came next." if chosen == ITEMS else "")
    )
    share, low, high = found.alike
    told = "more than chance" if share > high else "less than chance" if share < low else "no more than chance"
    kind = "first genre" if chosen == ITEMS else "codebook"
    st.markdown(
        f"In the original space, **{share:.0%}** of the {found.near} nearest have the same {kind} (shuffled: {low:.0%} to "
        f"{high:.0%}): {told}."
    )
    view.foot("python -m elastic_core evaluate", now.run.name)


@kept(8, "Laying vectors flat …")
def _laid(key: tuple[str, ...], words: bool, _model: Recommender, _data: Dataset) -> Laid:
    return items.words(_model) if words and isinstance(_model, Quantises) else items.items(_model, _data)
