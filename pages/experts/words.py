"""What the Experts page says: explanations of its charts, and numbers as sentences."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from elastic_core.services.experts import ablation
from elastic_core.services.experts.evidence import Label
from elastic_core.services.experts.items import Alone
from elastic_core.services.person.inspect import split_year
from elastic_core.text import markdown
from pages.kit.view import About

TESTS = "tests/test_experts.py::"
ALL = About(
    "Which experts are busy, and what do they stand for?",
    "Genre (or decade) of its people: share in their histories over everybody’s, the one with the best lower limit. Genre it "
    "reads: share under its weights (first layer) over the same histories read evenly.",
    "The most striking of hundreds is partly luck: below stands what chance alone would label. Numbers mean nothing across runs.",
    test=TESTS + "test_status_table_and_recovered_interests",
)
HISTOGRAM = About(
    "Who retrieves it, and by how much?",
    "Above 0: the lead over the best expert left out; below: the gap to the weakest taken. Top and just retrieved: highest and "
    "lowest quarter of its people; just missed: as many on the other side.",
    "An expert is meant for few. Raw scores do not compare between people.",
    r"m_u(e) = s_u(e) - s_u^{(k+1)} \;\text{if } e \in \text{top-}k(u), \quad s_u(e) - s_u^{(k)} \;\text{otherwise}",
    TESTS + "test_margins_spread_and_bands_against_sorted_scores",
)
PEOPLE = About(
    "What does it read of its people?",
    "Two people of each band, three at random (always the same). Weights of the first layer, mean over heads.",
    "Top ones make any expert look clear-cut. Weights say what it reads, not what that changes.",
    test=TESTS + "test_examples_are_of_their_band_and_show_what_the_expert_reads",
)
GENRES = About(
    "Which genres stand out around it?",
    "Histories: mean share in its people’s over everybody’s. Reading: share under its weights over the same people’s even "
    "share. Normal intervals of the logarithm over people, 95% for all genres together. Filled: 1 is outside, five people or "
    "more.",
    "Genres and decades are our words, not the model’s; genres overlap.",
    r"\text{lift}_g = \bar s_g(\text{its people}) / \bar s_g(\text{compared with})",
    TESTS + "test_lifts_are_ratios_of_means_and_a_shuffle_seldom_passes",
)
ITEMS = About(
    "Does the vector alone say what the expert does?",
    "Direct: the vector through every layer’s value and output projections, by how much its people read it, centred and scaled "
    "as in the last layer norm, times the item table; no feed-forward, nothing aggregated. Measured: scores with it less "
    "without, less each person’s mean. Spearman’s correlation.",
    "Agreement makes no effect large; only what other vectors do not reach is its own.",
    r"d(e) = E\,\big(\gamma \odot \mathrm{centre}\textstyle\sum_{l,h} c_{lh}\, W^O_{lh} W^{V2}_{lh}\, v_e\big)",
    TESTS + "test_the_direct_road_is_what_the_layer_dispatches",
)
EFFECTS = About(
    "Do its people’s lists change for better or worse?",
    "It is removed from everybody’s k; other gates stay. The next item is ranked among all unmet ones. 95%: paired, "
    "over people. As busy: five of the twenty next in load, up to 40 of their people each; n counts pairs. Replaced: another "
    "takes place and gate, where it is new.",
    "Others of the k may stand in: no change does not mean that it holds nothing. One interval in twenty leaves 0 out by "
    "chance; the verdict needs interval and sign-flip test.",
    r"\Delta = \tfrac1n \textstyle\sum_u \text{NDCG@10}_u(\text{after}) - \text{NDCG@10}_u(\text{before})",
    TESTS + "test_removing_an_expert_equals_a_loop_over_people_and_changes_no_weight",
)
SIBLINGS = About(
    "Is it busy by itself, or by its row or column?",
    "Experts of a line share half of their score. Grey: 95% of a random router.",
    "A shared sub-key means alike queries; the vectors are independent.",
    test=TESTS + "test_rows_columns_and_like_vectors",
)
NEAREST = About(
    "Which experts hold a similar vector?",
    "Cosine between vectors, over all experts.",
    "Similar vectors need not be retrieved by similar people.",
    test=TESTS + "test_rows_columns_and_like_vectors",
)
TOGETHER = About(
    "Which experts share its people?",
    "People who retrieve both, over what two independent experts of these loads share. Order: lower limit of Wilson’s interval.",
    "Experts of one row or column meet often: they share half of their score.",
    r"\text{lift} = n_{ef} \big/ (n_e n_f / U)",
    TESTS + "test_retrieved_together_by_brute_force",
)
EPOCHS = About(
    "When did it find its people?",
    "Who retrieved it when validating after each epoch. Grey: a random router.",
    "The number stays; what it stands for may change.",
    test=TESTS + "test_rows_columns_and_like_vectors",
)
KNOBS = About(
    "Does an expert turned up bring what it stands for?",
    "The factor multiplies its gate (where experts predict one by one: its share; all then sum to 1). Stands for: the genre "
    "its own items prefer most against the average expert’s, or else its people’s beyond chance; weak: shuffled genres reach "
    "as much. Other turns: the same factors on the person’s own experts at random, another one lent. Cost: up to 400 people "
    "whom the turn touches, among all unmet items; 95% over people.",
    "One list moves in steps of 10%; its doing is only what other turns do not reach. What costs nothing may do nothing.",
    test="tests/test_knobs.py::test_a_turn_of_one_person_is_the_knob_and_its_null_the_same_turn_of_others",
)
HOT = About(
    "How busy are this person’s experts?",
    "× everybody: 0 counts in the mean where it is not retrieved.",
    "A rare expert’s factor is large because few retrieve it.",
    test=TESTS + "test_hot_experts_of_a_person",
)


def short(change: str) -> str:
    """What was done, for an axis."""
    for begin, name in (
        ("without another", "another of theirs removed"), ("without an expert as busy", "one as busy removed"),
        ("without", "expert removed"), ("an expert as busy", "replaced by one as busy"),
    ):  # fmt: skip
        if change.startswith(begin):
            return name
    return f"replaced by {change.split()[1]}"


def as_busy(row: Mapping[Hashable, Any] | None) -> str:
    """The null beside a removal."""
    return "" if row is None else f" Experts as busy: {change(row)}."


def label_line(label: Label | None) -> tuple[str, str]:
    """The label and its evidence."""
    if label is None:
        return "no label", "The data has no genres"
    if not label.genres:
        return "no label", f"Only {label.n} people retrieve it: too few to say"
    interval = f"{label.low:.2f} to {label.high:.2f}, n = {label.n}"
    evidence = f"**{markdown(label.genres[0])}** × {label.lift:.2f} in its people’s histories ({interval})"
    return label.text, evidence


def alone_line(found: Alone | None) -> str:
    """What its own vector pushes up, beside what its people say."""
    if found is None:
        return ""
    titles = ", ".join(markdown(split_year(title)[0]) for title in found.titles)
    if not found.genre:
        return f"Its vector alone pushes up {titles}."
    beyond = "beyond" if found.times > found.chance else "within"
    return (
        f"Its vector alone: **{markdown(found.genre)}** × {found.times:.1f} of the average expert’s ({beyond} chance; shuffled "
        f"× {found.chance:.1f}); first {titles}."
    )


VERDICTS = {
    "worse": "its people need it", "better": "its people do better without it", "unclear": "no clear effect",
    "same": "no effect on NDCG@10", "few": "too few people to say",
}  # fmt: skip


def effect_line(row: Mapping[Hashable, Any]) -> tuple[str, str]:
    """What removing it does: a verdict and its numbers."""
    word = ablation.verdict(row)
    others = f"**{row['replaced']:.1f} of 10** suggestions differ"
    if word == "few":
        return VERDICTS[word], f"Only {row['n']} {'retrieves' if row['n'] == 1 else 'retrieve'} it; without it {others}"
    if word == "same":
        return VERDICTS[word], f"NDCG@10 is the same for each of the {row['n']}, though {others}"
    interval = f"{row['low']:+.4f} to {row['high']:+.4f}, n = {row['n']}, p = {row['p']:.2f}"
    return VERDICTS[word], f"NDCG@10 {row['d_ndcg']:+.4f} ({interval}); {others}"


def turned_line(row: Mapping[Hashable, Any]) -> str:
    """What became of a turned expert's genre among the ten."""
    null = f"; other turns {row['null']:.0%} ({row['low']:.0%} to {row['high']:.0%})" if row["null"] == row["null"] else ""
    name = f"{row['expert']} × {row['factor']:g}: **{markdown(row['genre'])}**"
    return f"{name} {row['before']:.0%} → {row['after']:.0%} of ten{null}"


def cost_line(table: pd.DataFrame) -> str:
    """What a turn costs the people whom it touches, beside the same turn of other experts."""
    this, other = table.to_dict("records")
    of_ = f"{this['n']:,} of the {this['touched']:,}" if this["touched"] > this["n"] else f"the {this['n']:,}"
    null = f"other experts turned alike: {change(other)}" if other["n"] else "nobody has others to turn alike"
    return f"**For {of_} people whom this turn touches** NDCG@10 changes by **{change(this)}**; {null}."


def change(row: Mapping[Hashable, Any]) -> str:
    """A difference of NDCG@10 with interval and n."""
    return f"{row['d_ndcg']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f}, n = {row['n']:,})"
