"""What the Memory map page says about its pictures: explanations (text.md), and numbers as sentences."""

import pandas as pd
import streamlit as st

from elastic_core.services.map.trust import Region
from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
MAP, NEAR, TRUST = TEXT.chart_texts("MAP NEAR TRUST")
NEAR_COLUMNS = {
    "in truth": st.column_config.NumberColumn(width=76, format="expert %d", help="Nearest in all numbers, the best first"),
    "cosine": st.column_config.Column(width=58, help="1 = the same direction"),
    "map place": st.column_config.Column(width=76, help="How near it is on the map: 1 = the nearest"),
    "on map": st.column_config.NumberColumn(width=76, format="expert %d", help="Nearest on the map, the best first"),
    "true?": st.column_config.Column(width=52, help="Also near in truth?"),
}


def describe_regions(text: bool, region: Region) -> tuple[str, str]:
    """Do like experts lie together in the original space: a sentence, and how sure it is."""
    alike, low, high, near = region
    if text:
        number, chance = f"{alike:.1%} of the {near} nearest have the same", f"{low:.1%} to {high:.1%}"
    else:
        number, chance = f"an expert and its {near} nearest have a correlation of {alike:.2f}", f"{low:.2f} to {high:.2f}"
    places = 3 if text else 2  # as they are shown: nobody reads "more than 5 to 9%" of 9%
    mine, least, most = (round(value, places) for value in (alike, low, high))
    where = "Yes, more" if mine > most else "No more" if mine >= least else "Less"
    return f"Do experts of one colour lie together? **{where} than by luck.**", TEXT("SURE_COLOUR", number=number, chance=chance)


def describe_trust(panel: pd.DataFrame, method: str, agreement: float | None) -> tuple[str, list[str]]:
    """Can the map be trusted: a sentence, and how sure it is."""
    mine = panel[(panel["map"] == method) & (panel["of"] == "experts")]
    null = panel[(panel["map"] == method) & (panel["of"] != "experts")]
    if mine.empty or null.empty:
        return "", []
    best, noise, near = mine["overlap"].mean(), null["overlap"].mean(), int(panel["neighbours"].iloc[0])
    gain = (mine["trust"].min() - null["trust"].max()) / max(1 - null["trust"].max(), 1e-9)
    word = "Yes, clearly more than" if gain > 0.3 else "Somewhat more than" if gain > 0.1 else "Hardly more than"
    sentence = (
        f"Can you trust it? **{word} a map of random numbers.** It keeps {best:.0%} of an expert’s {near} nearest "
        f"(random: {noise:.0%})."
    )
    doubts = [TEXT("SURE_TRUST", trust=mine["trust"].mean(), noise=null["trust"].mean())]
    if agreement is not None and method == "UMAP":
        doubts.append(TEXT("SURE_SEEDS", agreement=agreement))
    return sentence, doubts
