"""When do personal experts pay? Personal minus shared experts, against how many interests share an expert; and how often a
suggestion belongs to one of them."""

from collections.abc import Sequence

import streamlit as st

from elastic_core.results.personal_gain import gain_sentence
from elastic_core.results.systems import DataSet
from elastic_core.services.evidence.ownership import ownership_sentence
from pages.components import cache, page_context, page_elements, page_text, results
from pages.evidence import charts

TEXT = page_text.load_page_text(__file__)
QUESTION = "When do personal experts pay?"


def show_personal_gain(measured: Sequence[DataSet]) -> None:
    panel = st.expander(QUESTION, key="ev_gain", on_change="rerun")
    if not panel.open:
        return
    with panel:
        gains = results.measure_personal_gains(measured, page_context.RUNS)
        sentence = gain_sentence(gains)
        st.markdown(page_context.escape_markdown(sentence))
        if not gains.empty:
            figure = cache.cached_figure(charts.draw_personal_gain, gains, page_context.theme_palette())
            alt = f"NDCG@10 of personal minus shared experts on {len(gains)} pairs of systems, with intervals. {sentence}"
            st.caption(TEXT("MARKS"))
            page_elements.show_chart("ev_gain_chart", figure, gains, TEXT.chart_text("GAIN"), alt)
        owned = results.measure_ownership(measured, page_context.RUNS)
        if owned.empty:
            return
        sentence = ownership_sentence(owned)
        st.markdown(f"**Does a suggestion belong to one expert?** {page_context.escape_markdown(sentence)}")
        figure = cache.cached_figure(charts.draw_ownership, owned, page_context.theme_palette())
        alt = f"The part of people whose first suggestion belongs to one expert, for {len(owned)} systems. {sentence}"
        page_elements.show_chart("ev_owned_chart", figure, owned, TEXT.chart_text("OWNED"), alt)
