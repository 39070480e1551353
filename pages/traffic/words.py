"""What the Traffic page says about its charts, and its numbers as tables with a sentence each."""

import pandas as pd

from elastic_core.memory.gauges import Gauges
from elastic_core.services.traffic.load import Chance, Traffic, health_of
from pages.kit.view import About

BAND = "tests/test_traffic.py::test_the_band_covers_a_simulated_random_router"
RANDOM = "The random router picks k different experts for each person at random and is simulated on this page’s people."
LOAD = About(
    "Who carries the traffic, and is that more than chance?",
    "For every person, k experts are retrieved from their history. An expert’s load is how many people retrieve it, or the sum "
    f"of their gates scaled to the same total. {RANDOM} The grey band holds 95% of its experts.",
    "Some experts always look hot: about 5 in 100 lie outside the band by chance alone. And hot says often used, not good: see "
    "the expert’s own page for what it changes.",
    test=BAND,
)
SHARE = About(
    "Are the same experts hot in every batch of people?",
    "People are cut into twelve batches in the order of the data. A stripe is one expert’s share of a batch’s traffic; the seven "
    "busiest over everybody are shown, the rest would fill up to 100%. Dashed: what the seven busiest of a random router hold.",
    "The seven were picked because they are busy, so they must not be compared with seven average experts; the dashed line "
    "makes the same choice for the random router.",
    test="tests/test_traffic.py::test_tables_add_up_to_people_times_k",
)
GRID = About(
    "Why is an expert dead: by itself, or with its row or column?",
    "An expert’s score is its row’s sub-key score plus its column’s. The bars are the sums over a row or a column, with the band "
    "of the random router. Below: the squared correlation of load with row load times column load.",
    "Position means nothing here beyond row and column: neighbouring rows are not alike. A random router also scores above zero "
    "in the squared correlation, so compare with the number beside it.",
    test="tests/test_traffic.py::test_a_collapsed_router_stands_out",
)
HEALTH = About(
    "How uneven is the memory, in numbers?",
    "In use: anybody retrieves it. Gini: 0 even, towards 1 one expert carries all. KL: divergence of the load from even in nats, "
    "0 = even, with every choice counted once or by its gate. Carry 50%: the fewest experts that hold half of the traffic. By "
    f"row × column: the share of the differences between experts that row and column loads explain. {RANDOM}",
    "Even is not good by itself: a random router is perfectly healthy here and knows nothing about anybody. These numbers only "
    "say whether the memory is alive.",
    formula=r"\mathrm{KL} = \sum_e p_e \log (K p_e)",
    test="tests/test_traffic.py::test_gini_divergence_and_holders_are_their_definitions",
)
LORENZ = About(
    "What share of the traffic do the quietest experts carry?",
    "Experts are put in order of load, the quietest first, and their traffic is added up. The Gini is the area between the curve "
    "and the diagonal, times two.",
    "A random router does not follow the diagonal either, because counts scatter. The distance to the dashed line matters.",
    test="tests/test_traffic.py::test_the_area_above_the_lorenz_curve_is_the_gini",
)
SIZE = About(
    "How large should the memory be, and how much of it is used?",
    "Every finished run in the checkpoints folder on the same data whose configuration differs from the chosen run in √K, k and "
    "seed alone. NDCG@10 on the test split, ranked against all unseen items; bars are 95% intervals over people.",
    "Each run alone: seeds differ by about as much as neighbouring settings. Use falls in a larger memory by counting alone, "
    "because people · k choices cannot reach many more experts than that.",
    test="tests/test_traffic.py::test_figure_five_compares_only_runs_that_differ_in_nothing_else",
)
GAUGES = About(
    "Do the experts follow what somebody watched, or how much?",
    "Experts of one part of a history found again by another part (1 = all of them), and how well which experts somebody gets "
    "tells, for people held out, the logarithm of their history’s length and the genres in it (R² of a ridge regression: 1 "
    "exactly, 0 nothing).",
    "Length may be told a little even by a router of interests: the cross shows what the popularity of the films alone tells, "
    "because active people watch rarer ones. A high overlap means something only where strangers’ is low.",
    test="tests/test_routing.py::test_the_gauges_tell_a_router_of_interests_from_one_of_activity",
)
EPOCHS = About(
    "Was the memory alive from the start?",
    "After each epoch the run counts whom its validation people retrieve: share of experts used, entropy of the load as a share "
    "of its maximum, Gini.",
    "Counted on the histories without their last two events, so the numbers differ a little from those above.",
    test="tests/test_traffic.py::test_figure_five_compares_only_runs_that_differ_in_nothing_else",
)
HEAT = About(
    "Do experts keep their place while the model learns?",
    "The run kept every expert’s load after each epoch (validation people). Experts are in the order of their final load.",
    "An expert that keeps its load need not keep its people: load says how many, not who.",
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
    asleep = f"{dead or 'none'} {'is' if dead < 2 else 'are'} dead (a random router leaves {by_chance})"
    return (
        f"**{used:,} of {now.size:,} experts are in use** by {now.people:,} people; {asleep}. "
        f"The memory is used {even} chance: **{hot} experts are busier and {cold} quieter than chance allows**, and "
        f"{mine['half']:.0f} experts carry half of the traffic (random: {chance['half']:.0f})."
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
        f"From a random quarter of a history the memory {stable} **{found.quarter:.0%}** of the person’s experts again (a "
        f"stranger’s quarter: {found.quarter_stranger:.0%}). Which experts somebody gets tells how long their history is "
        f"{length} the popularity of what they chose does by itself (kinds of items: R² {found.length_kinds:.2f}). "
        f"With all events drawn at random, so that only their number is left to tell, R² is **{found.count:.2f}** "
        "(a router of interests: 0)."
    )


def explained(now: Traffic, band: Chance, table: pd.DataFrame, sides: pd.DataFrame) -> str:
    """Do rows and columns explain the dead experts?"""
    mine, chance = health_of(now)["marginals"], band.health.loc["marginals"]
    text = (
        f"Row and column loads account for **{mine:.0%}** of the differences between experts "
        f"(random router: {chance['low']:.0%} to {chance['high']:.0%})."
    )
    cold = sides[sides["state"].isin(("cold", "dead"))]
    rows, columns = (set(cold.loc[cold["half"] == half, "key"]) for half in ("row", "column"))
    inside, dead = table["row"].isin(rows) | table["column"].isin(columns), table["state"] == "dead"
    if not dead.any():
        return text + " No expert is dead."
    there = int((dead & inside).sum())
    return (
        f"{text} **{there} of the {dead.sum()} dead experts** {'lies' if there == 1 else 'lie'} in one of {len(cold)} rows and "
        f"columns that are quieter than chance allows, as do {inside.mean():.0%} of all experts."
    )
