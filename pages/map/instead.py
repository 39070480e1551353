"""A run without experts: its item vectors or its codewords laid flat, with this person's history on them."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.peers.parts.capabilities import Quantises
from elastic_core.services.map import items
from elastic_core.services.map.items import Laid
from elastic_core.services.person.recommend import user_history
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import cache, view
from pages.kit.cache import Opened
from pages.kit.control import switch
from pages.kit.kept import kept
from pages.map import charts, words

ITEMS, WORDS, OF = "Items", "Codewords", "map_of"


def show(now: Context) -> None:
    """The whole screen."""
    coded = isinstance(now.model, Quantises)
    view.title("Where do items lie for this run?" if not coded else "Where do items and codewords lie for this run?")
    st.write(words.SAYS("INSTEAD"))
    chosen = switch("Of", [ITEMS, WORDS], OF) if coded else ITEMS
    try:
        found = _laid(now, chosen == WORDS)
    except InputError as error:
        st.write(f"None here: {shell.plain(error)}.")
        view.foot("python -m elastic_core evaluate", now.run.name)
        return
    read = user_history(now.dataset, now.user)
    history = frozenset(read.items[-now.model.length :].tolist())
    figure = cache.drawn(charts.laid, found.table, history, read.truth, shell.palette())
    alt = f"PCA map of {len(found.table):,} {chosen.lower()}, coloured by kind."
    view.chart("map_items", figure, found.table, words.ITEMS, alt)
    if chosen == ITEMS:
        st.caption(f"Rings: the {now.words.many} of person {now.user + 1}. Star: what came next.")
    share, low, high, near = found.alike
    told = "more than luck" if share > high else "less than luck" if share < low else "no more than luck"
    kind = "first kind" if chosen == ITEMS else "codebook"
    st.markdown(f"In truth, **{share:.0%}** of the {near} nearest have the same {kind}: {told}.")
    view.sure([words.SAYS("SURE_ITEMS", shown=len(found.table), total=found.total, held=found.held, low=low, high=high)])
    view.foot("python -m elastic_core evaluate", now.run.name)


@kept(8, "Laying vectors flat …")
def _laid(of: Opened, coded: bool) -> Laid:
    return items.lay_words(of.model) if coded and isinstance(of.model, Quantises) else items.items(of.model, of.dataset)
