"""What the Memory map page says about its pictures: explanations (text.md), and numbers as sentences."""

import pandas as pd
import streamlit as st

from elastic_core.services.map.trust import Region
from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
MAP, NEAR, TRUST = TEXT.chart_texts("MAP NEAR TRUST")
NEAR_COLUMNS = {
    "in truth": st.column_config.NumberColumn(
        "nearest", width=84, format="expert %d", help="In the full numbers, the nearest first."
    ),
    "cosine": st.column_config.Column(width=62, help="1 is the same direction, 0 is none in common."),
    "map place": st.column_config.Column("on map", width=66, help="How near it is on the map; 1 is the nearest."),
    "on map": st.column_config.NumberColumn("nearest on map", width=110, format="expert %d", help="The nearest first."),
    "true?": st.column_config.Column(width=52, help="Is it also near in the full numbers?"),
}


def describe_regions(text: bool, region: Region) -> tuple[str, str]:
    """Do like experts lie together in the original space: a sentence, and how sure it is."""
    alike, low, high, near = region
    if text:
        number, chance = f"{alike:.1%} of an expert’s {near} nearest have its colour", f"{low:.1%} to {high:.1%}"
    else:
        number = f"an expert’s number and the mean of its {near} nearest have a correlation of {alike:.2f}"
        chance = f"{low:.2f} to {high:.2f}"
    places = 3 if text else 2  # as they are shown: nobody reads "more than 5 to 9%" of 9%
    observed, lowest, highest = (round(value, places) for value in (alike, low, high))
    comparison = "more often than" if observed > highest else "no more often than" if observed >= lowest else "less often than"
    return f"In the full numbers, experts of one colour are neighbours **{comparison} chance** explains.", TEXT(
        "SURE_COLOUR", number=number, chance=chance
    )


def describe_trust(panel: pd.DataFrame, method: str, agreement: float | None) -> tuple[str, list[str]]:
    """How many neighbours the picture keeps, beside one of random numbers: a sentence, and how sure it is."""
    expert_rows = panel[(panel["map"] == method) & (panel["of"] == "experts")]
    null_rows = panel[(panel["map"] == method) & (panel["of"] != "experts")]
    if expert_rows.empty or null_rows.empty:
        return "", []
    best, noise, near = expert_rows["overlap"].mean(), null_rows["overlap"].mean(), int(panel["neighbours"].iloc[0])
    gain = (expert_rows["trust"].min() - null_rows["trust"].max()) / max(1 - null_rows["trust"].max(), 1e-9)
    amount = "much more than" if gain > 0.3 else "a little more than" if gain > 0.1 else "no more than"
    sentence = (
        f"This picture keeps **{best:.0%}** of an expert’s {near} nearest neighbours; with random vectors, it would keep "
        f"{noise:.0%}. **That is {amount} chance.**"
    )
    doubts = [TEXT("SURE_TRUST", trust=expert_rows["trust"].mean(), noise=null_rows["trust"].mean())]
    if agreement is not None and method == "UMAP":
        doubts.append(TEXT("SURE_SEEDS", agreement=agreement))
    return sentence, doubts
