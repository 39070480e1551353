"""A run without experts: how far back it looks and depends; of a run with codewords, how evenly they are used."""

import pandas as pd
import streamlit as st

from elastic_core.errors import InputError
from elastic_core.peers.parts.capabilities import Quantises
from elastic_core.services.experts.codewords import codewords
from elastic_core.services.traffic import reach
from elastic_core.services.traffic.reach import Use
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import cache, view
from pages.kit.cache import Opened
from pages.kit.kept import asking, kept
from pages.traffic import charts
from pages.traffic.words import REACH, SAYS, USE

_reach = asking(kept(16, "Taking events away from some people …"), reach.reach)


def show(now: Context) -> None:
    """The whole screen."""
    what = "events and words" if isinstance(now.model, Quantises) else "events"
    view.title(f"Which {what} carry the load?")
    st.write(SAYS("INSTEAD"))
    doubts: list[str] = []
    palette = shell.palette()
    try:
        found = _reach(now, now.stay)
    except InputError as error:
        st.write(f"Not known here: {shell.plain(error)}.")
    else:
        view.heading("How far back")
        st.markdown(_back(found.table))
        alt = "; ".join(f"{row.ago} events ago: {row.effect:.0%} of the effect" for row in found.table.itertuples())
        view.chart("trf_reach", cache.drawn(charts.reach, found.table, palette), found.table, REACH, alt)
        doubts = [f"**How far back.** Effects are the mean over {found.asked} people."]
        if found.table["weight"].notna().all():
            doubts.append(f"Weights are the mean over {found.looked} people.")
    if isinstance(now.model, Quantises):
        used = _use(now)
        view.heading("Use of the codewords")
        low, high = used.chance
        told = "more even than luck" if used.even > high else "less even than luck" if used.even < low else "as even as luck"
        st.markdown(f"The events use about **{used.even:.1f} of {used.size} words** of a codebook: {told}.")
        doubts.append(f"**Codewords.** If items got random words, events would use {low:.1f} to {high:.1f} of them.")
        alt = f"Share of events on the {used.size} words of a codebook, the most used first, beside random words."
        view.chart("trf_use", cache.drawn(charts.use, used.table, palette), used.table, USE, alt)
    view.sure(doubts)
    view.foot("python -m elastic_core evaluate", now.run.name)


def _back(table: pd.DataFrame) -> str:
    recent = table.iloc[:3]
    if not table["effect"].any():
        return SAYS("NO_EFFECT")
    words = f"The last five events have **{recent['effect'].sum():.0%}** of the effect"
    if table["weight"].notna().all():
        words += f" and {recent['weight'].sum():.0%} of the weight"
    return f"{words}. If all events were the same: {recent['even'].sum():.0%}."


@kept(4)
def _use(of: Opened) -> Use:
    return reach.use(codewords(of.model), of.dataset)
