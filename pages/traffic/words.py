"""What the Traffic page says about its charts, and its numbers as tables with a sentence each."""

import pandas as pd

from elastic_core.memory.gauges import Gauges
from elastic_core.services.traffic.load import Chance, Traffic, health_of
from pages.kit.view import About

BAND = "tests/test_traffic.py::test_the_band_covers_a_simulated_random_router"
RANDOM = "Random router: k different experts a person, drawn for these people."
LOAD = About(
    "Who carries the traffic?",
    f"Load: people who retrieve it, or their gates, scaled to the same total. {RANDOM} Grey: 95% of its experts.",
    "About 5 in 100 lie outside by chance alone; hot says often used, not good.",
    test=BAND,
)
SHARE = About(
    "Are the same experts hot in every batch?",
    "Twelve batches in the order of the data; shares of the seven busiest over everybody. Dashed: the seven busiest of a random "
    "router.",
    "Picked because busy: compare with the dashed line, picked alike.",
    test="tests/test_traffic.py::test_tables_add_up_to_people_times_k",
)
GRID = About(
    "Is an expert dead by itself, or by its row or column?",
    "Bars: sums over a row or column, with a random router’s band. Share: squared correlation of load with row load times "
    "column load.",
    "Neighbouring rows are not alike.",
    test="tests/test_traffic.py::test_a_collapsed_router_stands_out",
)
HEALTH = About(
    "How uneven is the memory, in numbers?",
    "In use: anybody retrieves it. Gini: 0 even, 1 one expert carries all. KL: from even, in nats, choices counted once or by "
    "gate. Carry 50%: the fewest experts that hold half. By row × column: what row and column loads explain.",
    "Even is not good by itself: a random router is healthy and knows nothing about anybody.",
    formula=r"\mathrm{KL} = \sum_e p_e \log (K p_e)",
    test="tests/test_traffic.py::test_gini_divergence_and_holders_are_their_definitions",
)
LORENZ = About(
    "What do the quietest experts carry?",
    "Traffic added up, the quietest first. Gini: twice the area to the diagonal.",
    "A random router leaves the diagonal, too: the distance to the dashed line matters.",
    test="tests/test_traffic.py::test_the_area_above_the_lorenz_curve_is_the_gini",
)
SIZE = About(
    "How large should the memory be, and how much is used?",
    "Finished runs on these data that differ in √K, k and seed alone. NDCG@10, test, against all unmet items; 95% over people.",
    "Seeds differ about as much as neighbouring settings. Use falls by counting alone: people · k choices reach no more.",
    test="tests/test_traffic.py::test_figure_five_compares_only_runs_that_differ_in_nothing_else",
)
GAUGES = About(
    "Do experts follow what somebody watched, or how much?",
    "Overlap: experts of one part of a history found again by another (1 = all). R²: ridge regression from experts to "
    "log-length and genres, on people held out (1 exactly, 0 nothing).",
    "Active people watch rarer items, so even interests tell length a little: the cross is what popularity tells. Overlap "
    "counts only where strangers’ is low.",
    test="tests/test_routing.py::test_the_gauges_tell_a_router_of_interests_from_one_of_activity",
)
EPOCHS = About(
    "Was the memory alive from the start?",
    "Of validation people after each epoch: share of experts used, entropy of the load over its maximum, Gini.",
    "Without the last two events, so a little different from above.",
    test="tests/test_traffic.py::test_figure_five_compares_only_runs_that_differ_in_nothing_else",
)
HEAT = About(
    "Do experts keep their place while the model learns?",
    "Loads after each epoch (validation people), in the order of the last.",
    "Load says how many, not who.",
    test="tests/test_traffic.py::test_last_used_and_heat",
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
