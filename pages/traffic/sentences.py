"""What the Traffic page says about its charts (text.md), and its numbers as tables with a sentence each."""

import math
from collections.abc import Hashable, Mapping

import pandas as pd

from elastic_core.memory.routing_metrics import RoutingMetrics
from elastic_core.services.traffic.load import UsageReport
from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
LOAD, SHARE, GRID, METRICS_TEXT, LEARNING = TEXT.chart_texts("LOAD SHARE GRID GAUGES LEARNING")


def describe_use(flow: UsageReport) -> str:
    """How many experts are in use, and how evenly."""
    traffic, gini, half = flow.now, flow.health.loc["gini"], flow.health.at["half", "here"]
    hot, cold, dead = (int((flow.experts["state"] == state).sum()) for state in ("hot", "cold", "dead"))
    evenness = "more uneven than chance" if gini["here"] > gini["high"] else "about as even as chance"
    in_use = f"{traffic.size - dead:,} of {traffic.size:,}" if dead else f"All {traffic.size:,}"
    nobody = f" {dead} {'is' if dead == 1 else 'are'} dead, used by nobody." if dead else ""
    return (
        f"**{in_use} experts are in use** by {traffic.n_users:,} people.{nobody} The busiest {half:.0f} carry half of the "
        f"traffic, which is {evenness}. {hot} are hot and {cold} cold."
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
        TEXT("SURE_GRID", here=grid["here"], low=grid["low"], high=grid["high"]),
        TEXT("SURE_GINI", gini=gini["here"], low=gini["low"], high=gini["high"]),
    ]  # fmt: skip


def describe_epoch(row: Mapping[Hashable, float], size: int, random_half: float) -> str:
    """How the memory stood after an epoch: `row` of over_time.epochs_to_play."""
    parts = [f"{row['used']:.0%} of the {size:,} experts are in use."]
    if not math.isnan(row["half"]):
        parts.append(
            f"The busiest {row['half']:.0f} carry half of the traffic; with random use, half would need {random_half:.0f}."
        )
    if not math.isnan(row["ndcg"]):
        parts.append(f"The NDCG@10 of validation is {row['ndcg']:.3f}.")
    return " ".join(parts)


def gauge_table(metrics: RoutingMetrics) -> pd.DataFrame:
    """gauge, value, null, without (what the null is); no genres, no row."""
    rows = [
        ("Found again from half", metrics.halves, metrics.stranger, "half of somebody else’s history"),
        ("Found again from a quarter", metrics.quarter, metrics.quarter_stranger, "a quarter of somebody else’s"),
        ("Tells genres (R²)", metrics.genres, metrics.genres_shuffled, "experts shuffled among people"),
        ("Tells length (R²)", metrics.length, metrics.length_popularity, "the popularity of the items alone"),
        ("Tells length of random events (R²)", metrics.count, 0.0, "what it should be"),
    ]
    return pd.DataFrame(rows, columns=["gauge", "value", "null", "without"]).dropna(subset="value", ignore_index=True)


TELLS = 0.1  # R² from where on experts are said to tell something


def describe_interest(metrics: RoutingMetrics) -> str:
    """The figures in two sentences."""
    taste, counts = metrics.genres > metrics.genres_shuffled + TELLS, metrics.count > TELLS
    sentence = {
        (True, False): "Experts reflect taste, not just activity.",
        (True, True): "Experts reflect taste, but activity, too.",
        (False, True): "Experts reflect activity rather than taste.",
        (False, False): "It is not clear what experts reflect here.",
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
    explained = f"**{flow.health.at['marginals', 'here']:.0%}**"
    text = f"Some experts are used more than others. Their rows and columns explain {explained} of the differences."
    dead, cold = flow.experts[flow.experts["state"] == "dead"], flow.sides[flow.sides["state"].isin(("cold", "dead"))]
    if dead.empty:
        return text
    rows, columns = (dead[half].isin(cold.loc[cold["half"] == half, "key"]) for half in ("row", "column"))
    there = int((rows | columns).sum())
    return f"{text} {there} of the {len(dead)} dead experts {'is' if there == 1 else 'are'} in a cold row or column."
