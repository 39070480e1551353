"""A run without experts: how far back it looks and depends; of a run with codewords, how evenly they are used."""

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from elastic_core.core.histories import Split
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Quantises
from elastic_core.services.experts.codewords import codewords
from elastic_core.services.traffic import reach
from elastic_core.services.traffic.reach import Reach, Use
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import cache, plot, view
from pages.kit.kept import kept
from pages.traffic import instead_charts as charts

TESTS = "tests/test_reach.py::"
REACH = view.About(
    "How far back does this model look, and how far back does its answer depend?",
    "Weight: the last event’s reading of events so long ago, mean over heads and layers. Effect: share of the summed effects "
    "when each is taken away once. Of the last 50 events, means over people. Dotted: all alike.",
    "Little effect far back: the model forgets, or old events say little. A large weight is no effect.",
    test=TESTS + "test_who_reads_only_the_last_events_has_no_reach",
)
USE = view.About(
    "Are the codewords used evenly, and is that chance?",
    "Bars: share of training events on each word, the busiest first, mean over codebooks. Band: 95% of random assignments of "
    "items to words; few popular items make even those uneven.",
    "A word is busy because its items are alike, or because one is popular.",
    test=TESTS + "test_a_random_assignment_is_within_its_own_band",
)


def show(now: Context) -> None:
    """The whole screen."""
    what = "events and words" if isinstance(now.model, Quantises) else "events"
    st.title(f"Which {what} carry the load?", anchor=False)
    st.write("This run has no interest memory, so no traffic; this carries its answers instead.")
    palette, key = plot.palette(shell.is_dark()), (str(now.run.path), cache.stamp(now.run), now.dataset.hash)
    try:
        found = _reach(key, now.split, cache.repeats(now.dataset, now.split).stay, now.model, now.dataset)
    except InputError as error:
        st.write(f"Not known here: {shell.plain(str(error))}.")
    else:
        st.subheader("How far back", anchor=False)
        st.markdown(_back(found.table))
        alt = "; ".join(f"{row.ago} events ago: {row.effect:.0%} of the effect" for row in found.table.itertuples())
        view.chart("trf_reach", _drawn(charts.reach, found.table, palette), found.table, REACH, alt)
        looked = f"; weights over {found.looked}" if found.table["weight"].notna().all() else ""
        st.caption(f"Effects over {found.asked} people{looked}.")
    if isinstance(now.model, Quantises):
        used = _use(key, now.model, now.dataset)
        st.subheader("Load of the codewords", anchor=False)
        low, high = used.chance
        told = "more evenly than" if used.even > high else "less evenly than" if used.even < low else "as evenly as"
        st.markdown(
            f"Events lie as if evenly on **{used.even:.1f} of {used.size} words** of a codebook; with words drawn at random "
            f"{low:.1f} to {high:.1f}: {told} chance has it."
        )
        alt = f"Share of events on the {used.size} words of a codebook, the busiest first, beside a random assignment."
        view.chart("trf_use", _drawn(charts.use, used.table, palette), used.table, USE, alt)
    view.foot("python -m elastic_core evaluate", now.run.name)


def _back(table: pd.DataFrame) -> str:
    recent = table.iloc[:3]
    if not table["effect"].any():
        return "No event has an effect: this model does not read the history."
    words = f"The last five events have **{recent['effect'].sum():.0%}** of the effect"
    if table["weight"].notna().all():
        words += f" and {recent['weight'].sum():.0%} of the weight"
    return f"{words}; were all alike, {recent['even'].sum():.0%}."


def _drawn(draw: object, table: pd.DataFrame, palette: plot.Palette) -> go.Figure:
    return cache.drawn(draw, table, palette)  # type: ignore[arg-type]


@kept(16, "Taking events away from some people …")
def _reach(key: tuple[str, ...], split: Split, stay: bool, _model: Recommender, _data: Dataset) -> Reach:
    return reach.reach(_model, _data, split, stay)


@kept(4)
def _use(key: tuple[str, ...], _model: Quantises, _data: Dataset) -> Use:
    return reach.use(codewords(_model), _data)
