"""When do personal experts pay? Personal minus shared experts, against how many interests share an expert."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from elastic_core.results import personal_gain
from elastic_core.results.personal_gain import gain_sentence, personal_gains
from elastic_core.results.systems import DataSet
from elastic_core.runs import Run
from pages.components import cache, page_context, page_elements, page_text, results
from pages.components.cache import cached_data
from pages.evidence import charts

TEXT = page_text.load_page_text(__file__)
QUESTION = "When do personal experts pay?"


def show_personal_gain(measured: Sequence[DataSet]) -> None:
    panel = st.expander(QUESTION, key="ev_gain", on_change="rerun")
    if not panel.open:
        return
    with panel:
        runs = [run for data_set in measured for runs in data_set.systems.values() for run in runs]
        gains = _compute_gains(runs, page_context.RUNS / personal_gain.FILE, measured)
        sentence = gain_sentence(gains)
        st.markdown(page_context.escape_markdown(sentence))
        if not gains.empty:
            figure = cache.cached_figure(charts.draw_personal_gain, gains, page_context.theme_palette())
            alt = f"NDCG@10 of personal minus shared experts on {len(gains)} pairs of systems, with intervals. {sentence}"
            page_elements.show_chart("ev_gain_chart", figure, gains, TEXT.chart_text("GAIN"), alt)


@cached_data(4, "Comparing personal with shared experts …")
def _compute_gains(runs: list[Run], file: Path, _measured: Sequence[DataSet]) -> pd.DataFrame:
    return personal_gains(_measured, personal_gain.read_interest_counts(file.parent), results.compare_systems)
