"""What the Traffic page says about its charts, and its numbers as tables with a sentence each."""

import pandas as pd

from elastic_core.memory.gauges import Gauges
from elastic_core.services.traffic.load import Chance, Traffic, health_of
from pages.kit import prose

_WORDS = prose.of(__file__)
LOAD, SHARE, GRID, HEALTH, LORENZ, SIZE, GAUGES, EPOCHS, HEAT = map(
    _WORDS.about, ("LOAD", "SHARE", "GRID", "HEALTH", "LORENZ", "SIZE", "GAUGES", "EPOCHS", "HEAT")
)
NAMES = {
    "used": "In use",
    "gini": "Gini",
    "kl": "KL, counted",
    "kl_weighted": "KL, by gate",
    "half": "Carry 50%",
    "ninety": "Carry 90%",
    "ninety_nine": "Carry 99%",
    "marginals": "By row × column",
}


def number(name: str, value: float, size: int) -> str:
    if name == "used":
        return f"{value:.1%} ({value * size:.0f})"
    return (
        f"{value:.0%}" if name == "marginals" else f"{value:.0f}" if name in ("half", "ninety", "ninety_nine") else f"{value:.3f}"
    )


def health_table(flows: dict[str, tuple[Traffic, Chance]]) -> pd.DataFrame:
    """One row a number: each run's value and what 95% of random routers give."""
    columns: dict[str, list[str]] = {"": list(NAMES.values())}
    for run, (now, band) in flows.items():
        mine = health_of(now)
        columns[run] = [number(name, mine[name], now.size) for name in NAMES]
        limits = band.health.loc[list(NAMES)]
        columns["random router" if len(flows) == 1 else f"random router for {run}"] = [
            low if (low := number(n, a, now.size)) == (high := number(n, b, now.size)) else f"{low} to {high}"
            for n, a, b in zip(NAMES, limits["low"], limits["high"], strict=True)
        ]
    return pd.DataFrame(columns)


def verdict(now: Traffic, band: Chance, table: pd.DataFrame) -> str:
    """The page in three sentences."""
    states, mine, chance = table["state"].value_counts(), health_of(now), band.health["mean"]
    hot, cold, dead = (int(states.get(name, 0)) for name in ("hot", "cold", "dead"))
    used = now.size - dead
    even = "more unevenly than" if mine["gini"] > band.health.at["gini", "high"] else "about as evenly as"
    by_chance = "none" if chance["used"] > 1 - 0.5 / now.size else f"about {(1 - chance['used']) * now.size:.0f}"
    asleep = f"{dead or 'none'} dead (random router: {by_chance})"
    return (
        f"**{used:,} of {now.size:,} experts are in use** by {now.people:,} people, {asleep}; **{hot} hot, {cold} cold**: {even} "
        f"chance. {mine['half']:.0f} carry half of the traffic (random: {chance['half']:.0f})."
    )


def gauge_table(found: Gauges) -> pd.DataFrame:
    """gauge, value, null, without (what the null is); no genres, no row."""
    rows = [
        ("Odd events ~ even events", found.halves, found.stranger, "another person of like length"),
        ("Whole history ~ a random quarter", found.quarter, found.quarter_stranger, "another person’s quarter"),
        ("Tells genres (R²)", found.genres, found.genres_shuffled, "experts shuffled among people"),
        ("Tells length (R²)", found.length, found.length_popularity, "the popularity of the items alone"),
        ("Tells length of random events (R²)", found.count, 0.0, "a router of interests"),
    ]
    return pd.DataFrame([row for row in rows if row[1] == row[1]], columns=["gauge", "value", "null", "without"])


def interest_or_activity(found: Gauges) -> str:
    """The gauges in two sentences."""
    stable = "finds" if found.quarter >= 0.5 else "finds only"
    length = "more than" if found.length > found.length_popularity + 0.02 else "no more than"
    return (
        f"A random quarter of a history {stable} **{found.quarter:.0%}** of the person’s experts again (a stranger’s: "
        f"{found.quarter_stranger:.0%}). Experts tell the length of a history {length} the popularity of its items does (kinds "
        f"of items: R² {found.length_kinds:.2f}); with all events random, so that only their number tells, R² is "
        f"**{found.count:.2f}** (a router of interests: 0)."
    )


def explained(now: Traffic, band: Chance, table: pd.DataFrame, sides: pd.DataFrame) -> str:
    """Do rows and columns explain the dead experts?"""
    mine, chance = health_of(now)["marginals"], band.health.loc["marginals"]
    text = (
        f"Rows and columns account for **{mine:.0%}** of the differences (random router: {chance['low']:.0%} to "
        f"{chance['high']:.0%})."
    )
    cold = sides[sides["state"].isin(("cold", "dead"))]
    rows, columns = (set(cold.loc[cold["half"] == half, "key"]) for half in ("row", "column"))
    inside, dead = table["row"].isin(rows) | table["column"].isin(columns), table["state"] == "dead"
    if not dead.any():
        return text
    there = int((dead & inside).sum())
    return (
        f"{text} **{there} of the {dead.sum()} dead experts** {'lies' if there == 1 else 'lie'} in one of {len(cold)} cold rows "
        f"and columns, as do {inside.mean():.0%} of all."
    )
