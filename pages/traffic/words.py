"""What the Traffic page says about its charts (words.md), and its numbers as tables with a sentence each."""

import pandas as pd

from elastic_core.memory.gauges import Gauges
from elastic_core.services.traffic.load import Chance, Traffic, health_of
from pages.kit import prose

SAYS = prose.of(__file__)
LOAD, SHARE, GRID, HEALTH, LORENZ, SIZE, GAUGES, EPOCHS, HEAT, REACH, USE = SAYS.abouts(
    "LOAD SHARE GRID HEALTH LORENZ SIZE GAUGES EPOCHS HEAT REACH USE"
)
NAMES = {
    "used": "In use",
    "gini": "Gini",
    "kl": "KL, by people",
    "kl_weighted": "KL, by weight",
    "half": "Carry 50%",
    "ninety": "Carry 90%",
    "ninety_nine": "Carry 99%",
    "marginals": "By row and column",
}


def number(name: str, value: float, size: int) -> str:
    if name == "used":
        return f"{value:.1%} ({value * size:.0f})"
    return (
        f"{value:.0%}" if name == "marginals" else f"{value:.0f}" if name in ("half", "ninety", "ninety_nine") else f"{value:.3f}"
    )


def health_table(flows: dict[str, tuple[Traffic, Chance]]) -> pd.DataFrame:
    """One row a number: each run's value and what 95% of random experts give."""
    columns = {"": list(NAMES.values())}
    for run, (now, band) in flows.items():
        mine = health_of(now)
        columns[run] = [number(name, mine[name], now.size) for name in NAMES]
        limits = band.health.loc[list(NAMES)]
        columns["random experts" if len(flows) == 1 else f"random experts for {run}"] = [
            low if (low := number(n, a, now.size)) == (high := number(n, b, now.size)) else f"{low} to {high}"
            for n, a, b in zip(NAMES, limits["low"], limits["high"], strict=True)
        ]
    return pd.DataFrame(columns)


def verdict(now: Traffic, band: Chance, table: pd.DataFrame) -> str:
    """How many experts are in use, and how evenly."""
    states, mine = table["state"].value_counts(), health_of(now)
    hot, cold, dead = (int(states.get(name, 0)) for name in ("hot", "cold", "dead"))
    even = "more uneven than luck" if mine["gini"] > band.health.at["gini", "high"] else "about as even as luck"
    return (
        f"**{now.size - dead:,} of {now.size:,} experts are in use** by {now.people:,} people. {mine['half']:.0f} of them carry "
        f"half of the traffic: {even}. {hot} hot, {cold} cold, {dead} dead."
    )


def doubts(now: Traffic, band: Chance) -> list[str]:
    """What random experts would give."""
    chance, grid = band.health["mean"], band.health.loc["marginals"]
    mine, unused = health_of(now), (1 - chance["used"]) * now.size
    dead, by_chance = round((1 - mine["used"]) * now.size), "none" if unused < 0.5 else f"about {unused:.0f}"
    halves = {"half": mine["half"], "half_by_chance": chance["half"]}
    return [
        SAYS("SURE_CHANCE", dead=f"{dead:,}", by_chance=by_chance, draws=band.draws, **halves),
        SAYS("SURE_GRID", low=grid["low"], high=grid["high"]),
    ]


def gauge_table(found: Gauges) -> pd.DataFrame:
    """gauge, value, null, without (what the null is); no genres, no row."""
    rows = [
        ("Found again: half", found.halves, found.stranger, "half of somebody else’s history"),
        ("Found again: a quarter", found.quarter, found.quarter_stranger, "a quarter of somebody else’s"),
        ("Tells genres (R²)", found.genres, found.genres_shuffled, "experts exchanged among people"),
        ("Tells length (R²)", found.length, found.length_popularity, "the popularity of the items alone"),
        ("Tells length of random events (R²)", found.count, 0.0, "what it should be"),
    ]
    return pd.DataFrame([row for row in rows if row[1] == row[1]], columns=["gauge", "value", "null", "without"])


TELLS = 0.1  # R² from where on experts are said to tell something


def interest_or_activity(found: Gauges) -> str:
    """The gauges in two sentences."""
    taste, counts = found.genres > found.genres_shuffled + TELLS, found.count > TELLS
    said = {
        (True, False): "Experts reflect taste, not just how much somebody watched.",
        (True, True): "Experts reflect taste, and also how much somebody watched.",
        (False, True): "Experts reflect how much somebody watched.",
        (False, False): "What experts reflect is not clear here.",
    }[taste, counts]
    back = f"From a random quarter of a history, **{found.quarter:.0%}** of the person’s experts come back."
    return f"**{said}** {back}" if found.genres == found.genres else back


def interest_doubts(found: Gauges) -> list[str]:
    """The numbers beside them."""
    return [
        SAYS("SURE_QUARTER", people=found.people, stranger=found.quarter_stranger),
        SAYS(
            "SURE_LENGTH", length=found.length, popularity=found.length_popularity, kinds=found.length_kinds, count=found.count
        ),
    ]  # fmt: skip


def explained(now: Traffic, table: pd.DataFrame, sides: pd.DataFrame) -> str:
    """Do rows and columns explain the dead experts?"""
    text = f"Rows and columns explain **{health_of(now)['marginals']:.0%}** of the differences."
    cold = sides[sides["state"].isin(("cold", "dead"))]
    rows, columns = (set(cold.loc[cold["half"] == half, "key"]) for half in ("row", "column"))
    inside, dead = table["row"].isin(rows) | table["column"].isin(columns), table["state"] == "dead"
    if not dead.any():
        return text
    there = int((dead & inside).sum())
    return f"{text} {there} of the {dead.sum()} dead experts {'is' if there == 1 else 'are'} in a cold row or column."
