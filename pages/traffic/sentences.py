"""What the Traffic page says about its charts (text.md), and its numbers as tables with a sentence each."""

import pandas as pd

from elastic_core.memory.routing_metrics import RoutingMetrics
from elastic_core.services.traffic.load import UsageReport
from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
LOAD, SHARE, GRID, GAUGES, EPOCHS, HEAT = TEXT.chart_texts("LOAD SHARE GRID GAUGES EPOCHS HEAT")


def describe_use(flow: UsageReport) -> str:
    """How many experts are in use, and how evenly."""
    traffic, gini, half = flow.now, flow.health.loc["gini"], flow.health.at["half", "here"]
    hot, cold, dead = (int((flow.experts["state"] == state).sum()) for state in ("hot", "cold", "dead"))
    evenness = "more uneven than luck" if gini["here"] > gini["high"] else "about as even as luck"
    return (
        f"**{traffic.size - dead:,} of {traffic.size:,} experts are in use** by {traffic.people:,} people. "
        f"{half:.0f} of them carry "
        f"half of the traffic: {evenness}. {hot} hot, {cold} cold, {dead} dead."
    )


def usage_notes(flow: UsageReport) -> list[str]:
    """What random experts would give."""
    used, half, grid, gini = (flow.health.loc[name] for name in ("used", "half", "marginals", "gini"))
    dead, by_chance = (1 - used["here"]) * flow.now.size, (1 - used["mean"]) * flow.now.size
    return [
        TEXT(
            "SURE_CHANCE", dead=f"{dead:,.0f}", by_chance="none" if by_chance < 0.5 else f"about {by_chance:.0f}",
            draws=flow.draws, half=half["here"], half_by_chance=half["mean"],
        ),
        TEXT("SURE_GRID", low=grid["low"], high=grid["high"]),
        TEXT("SURE_GINI", gini=gini["here"], low=gini["low"], high=gini["high"]),
    ]  # fmt: skip


def gauge_table(metrics: RoutingMetrics) -> pd.DataFrame:
    """gauge, value, null, without (what the null is); no genres, no row."""
    rows = [
        ("Found again: half", metrics.halves, metrics.stranger, "half of somebody else’s history"),
        ("Found again: a quarter", metrics.quarter, metrics.quarter_stranger, "a quarter of somebody else’s"),
        ("Tells genres (R²)", metrics.genres, metrics.genres_shuffled, "experts exchanged among people"),
        ("Tells length (R²)", metrics.length, metrics.length_popularity, "the popularity of the items alone"),
        ("Tells length of random events (R²)", metrics.count, 0.0, "what it should be"),
    ]
    return pd.DataFrame(rows, columns=["gauge", "value", "null", "without"]).dropna(subset="value", ignore_index=True)


TELLS = 0.1  # R² from where on experts are said to tell something


def describe_interest(metrics: RoutingMetrics) -> str:
    """The figures in two sentences."""
    taste, counts = metrics.genres > metrics.genres_shuffled + TELLS, metrics.count > TELLS
    sentence = {
        (True, False): "Experts reflect taste, not just how much somebody watched.",
        (True, True): "Experts reflect taste, and also how much somebody watched.",
        (False, True): "Experts reflect how much somebody watched.",
        (False, False): "What experts reflect is not clear here.",
    }[taste, counts]
    back = f"From a random quarter of a history, **{metrics.quarter:.0%}** of the person’s experts come back."
    return f"**{sentence}** {back}" if metrics.genres == metrics.genres else back


def interest_notes(metrics: RoutingMetrics) -> list[str]:
    """The numbers beside them."""
    return [
        TEXT("SURE_QUARTER", people=metrics.users, stranger=metrics.quarter_stranger),
        TEXT(
            "SURE_LENGTH",
            length=metrics.length,
            popularity=metrics.length_popularity,
            kinds=metrics.length_kinds,
            count=metrics.count,
        ),
    ]


def describe_rows_and_columns(flow: UsageReport) -> str:
    """Do rows and columns explain the dead experts?"""
    text = f"Rows and columns explain **{flow.health.at['marginals', 'here']:.0%}** of the differences."
    dead, cold = flow.experts[flow.experts["state"] == "dead"], flow.sides[flow.sides["state"].isin(("cold", "dead"))]
    if dead.empty:
        return text
    rows, columns = (dead[half].isin(cold.loc[cold["half"] == half, "key"]) for half in ("row", "column"))
    there = int((rows | columns).sum())
    return f"{text} {there} of the {len(dead)} dead experts {'is' if there == 1 else 'are'} in a cold row or column."
