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
    "Which experts are busy, what do they stand for, and who is dead?",
    "People: in how many people’s k experts it is. Status compares that with a router that picks k experts uniformly at random "
    "for each person: hot above and cold below what 95% of its experts get, dead at nobody. Traffic weights people by gate. "
    "Genre of its people: its share in their histories divided by its share in everybody’s, the genre with the best lower limit; "
    "the limits hold for all genres of an expert together. Genre it reads: the same with the weights it gives the events (first "
    "layer), against the same people’s histories read evenly.",
    "The most striking expert of hundreds is partly luck: the line below says how many labels chance alone would give. Expert "
    "numbers mean nothing across runs.",
    test=TESTS + "test_status_table_and_recovered_interests",
)
HISTOGRAM = About(
    "Who retrieves this expert, and by how much?",
    "Each person’s query scores every expert (row + column sub-key); the best k are retrieved. The cut-off differs from person "
    "to person, so the chart shows the distance to it: above 0, the lead over the best expert left out; below, the gap to the "
    "weakest one taken. Top: the highest quarter of those who retrieve it. Just retrieved: the lowest quarter. Just missed: as "
    "many on the other side.",
    "A high bar far left is normal: an expert is meant for few. The raw score cannot be compared between people.",
    r"m_u(e) = s_u(e) - s_u^{(k+1)} \;\text{if } e \in \text{top-}k(u), \quad s_u(e) - s_u^{(k)} \;\text{otherwise}",
    TESTS + "test_margins_spread_and_bands_against_sorted_scores",
)
PEOPLE = About(
    "Who are its people, and which events of their histories does it read?",
    "Two from each band, and three drawn at random from all who retrieve it (the same three every time). The percentages are the "
    "expert’s own weights over the history in the first layer (mean over heads); they add up to 100% over the whole history.",
    "Looking at the top ones only makes any expert look clear-cut. Weights say what it reads, not what the reading changes.",
    test=TESTS + "test_examples_are_of_their_band_and_show_what_the_expert_reads",
)
GENRES = About(
    "Which genres are over- or under-represented around this expert?",
    "Histories: mean share of a genre in its people’s histories, divided by the mean over everybody. Reading: mean share under "
    "the expert’s weights, divided by the same people’s even share. Intervals are normal in the logarithm, over people, widened "
    "so that all genres hold together in 95% of cases. Full mark: the interval leaves 1 out. A genre needs five people who "
    "met it.",
    "A genre is our word, not the model’s. Genres overlap (a film may have several), and rare genres have wide intervals.",
    r"\text{lift}_g = \bar s_g(\text{its people}) / \bar s_g(\text{compared with})",
    TESTS + "test_lifts_are_ratios_of_means_and_a_shuffle_seldom_passes",
)
ITEMS = About(
    "Does the expert’s vector alone say what the expert does?",
    "Direct: the straight road of its vector through value and output projections of every layer, weighted by how much its "
    "people read it, centred and scaled as the last layer norm does, times the item table. It leaves out the feed-forward "
    "layers and everything the expert aggregates. Measured: each item’s score with the expert less its score without, each "
    "person’s mean taken off, mean over its people. Agreement: Spearman’s rank correlation over all items.",
    "Two measurements that agree do not make the effect large. The control says how well other experts’ vectors would do on the "
    "same measurement: only agreement beyond it is this expert’s own.",
    r"d(e) = E\,\big(\gamma \odot \mathrm{centre}\textstyle\sum_{l,h} c_{lh}\, W^O_{lh} W^{V2}_{lh}\, v_e\big)",
    TESTS + "test_the_direct_road_is_what_the_layer_dispatches",
)
EFFECTS = About(
    "Do the lists of its people get better or worse without it?",
    "For everybody who retrieves it, the expert is taken out of their k (the others keep their gates) and the true next item is "
    "ranked again among all items the person had not met. Interval: 95%, paired bootstrap over people. The second line takes "
    "away another of the same people’s experts, drawn at random: what removing just anything does. The third takes five random "
    "experts about as busy (of the twenty next in load) from up to 40 of their own people each; n counts pairs. In the fourth "
    "another expert takes its place and its gate, for those who do not have that one anyway; in the fifth experts as busy as "
    "that one do. The verdict needs interval and sign-flip test to agree.",
    "A memory with k experts has spares: no change does not mean the expert holds nothing. Few people make wide intervals, and "
    "one in twenty intervals leaves 0 out by chance.",
    r"\Delta = \tfrac1n \textstyle\sum_u \text{NDCG@10}_u(\text{after}) - \text{NDCG@10}_u(\text{before})",
    TESTS + "test_removing_an_expert_equals_a_loop_over_people_and_changes_no_weight",
)
SIBLINGS = About(
    "Is the expert busy by itself, or because its row or column is?",
    "A key is a row sub-key plus a column sub-key, so all experts of a row share one half of their score. Bars: how many people "
    "retrieve each. Grey: what a uniformly random router gives an expert in 95% of cases.",
    "Sharing a sub-key means being asked for by similar queries, not doing similar things: the vectors are independent (see the "
    "cosines).",
    test=TESTS + "test_rows_columns_and_like_vectors",
)
NEAREST = About(
    "Which experts hold a similar vector?",
    "Cosine between the experts’ vectors, over all experts of the memory.",
    "Similar vectors need not be retrieved by similar people. Compare with the usual cosine given above the table.",
    test=TESTS + "test_rows_columns_and_like_vectors",
)
TOGETHER = About(
    "Which experts are retrieved by the same people?",
    "People who retrieve both, divided by what two independent experts with these loads would share. Interval: Wilson’s for the "
    "share, divided by the other’s load. Sorted by the lower limit.",
    "Experts of one row or column meet often because they share half of their score.",
    r"\text{lift} = n_{ef} \big/ (n_e n_f / U)",
    TESTS + "test_retrieved_together_by_brute_force",
)
EPOCHS = About(
    "When did the expert find its people?",
    "How many people retrieved it when validating after each epoch, from the run’s snapshots. Grey: a uniformly random router.",
    "An expert’s number stays, what it stands for may change on the way.",
    test=TESTS + "test_rows_columns_and_like_vectors",
)
KNOBS = About(
    "Does an expert turned up bring what it stands for, and what does that cost?",
    "The factor multiplies the expert’s gate (in a run whose experts predict one by one: its share of the prediction, then all "
    "are made parts of 1 again). A lent expert takes place and gate of the person’s weakest. What it stands for: the genre "
    "that its own item distribution prefers most against the average expert’s, or, where experts have none, the most "
    "over-represented genre of its people if beyond chance. Weak: shuffled genres reach as much. Of ten: the "
    "share with that genre among the ten; of chance: its part of the whole chance of coming next. Other turns: the same factors "
    "dealt at random to the person’s own experts, and another expert lent, drawn at random from those somebody retrieves. "
    "Cost: the same turn for up to 400 of all whom it touches (who "
    "retrieve a turned expert, or lack the lent one), the true next item ranked among all unmet items; 95% bootstrap over "
    "people.",
    "One list of ten is one person’s: a share moves in steps of 10%. Only what moves beyond the other turns is its doing. "
    "A turn that costs nothing may also do nothing.",
    test="tests/test_knobs.py::test_a_turn_of_one_person_is_the_knob_and_its_null_the_same_turn_of_others",
)
HOT = About(
    "Are this person’s experts hot for everyone, shared, or theirs?",
    "Hot for everyone: the status is hot, so more people retrieve it than a random router sends to an expert in 97.5% of cases. "
    "Theirs: no more people than if all experts were equally busy. Shared: between the two. × everybody: the person’s weight "
    "divided by the mean weight over all people (0 for those who do not retrieve it).",
    "A rare expert has a large factor simply because few retrieve it.",
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
    return "" if row is None else f" Random experts as busy, taken from their people: {change(row)}."


def label_line(label: Label | None) -> tuple[str, str]:
    """The label and its evidence."""
    if label is None:
        return "no label", "The data has no genres"
    if not label.genres:
        return "no label", f"Only {label.n} people retrieve it: too few to say"
    interval = f"{label.low:.2f} to {label.high:.2f}, n = {label.n}"
    evidence = f"**{markdown(label.genres[0])}** is × {label.lift:.2f} in its people’s histories ({interval})"
    return label.text, evidence


def alone_line(found: Alone | None) -> str:
    """What its own vector pushes up, beside what its people say."""
    if found is None:
        return ""
    titles = ", ".join(markdown(split_year(title)[0]) for title in found.titles)
    if not found.genre:
        return f"By its vector alone it pushes up most: {titles}."
    beyond = "beyond" if found.times > found.chance else "within"
    return (
        f"By its vector alone: **{markdown(found.genre)}** × {found.times:.1f} of the average expert’s ({beyond} chance: "
        f"shuffled genres reach × {found.chance:.1f}); first {titles}."
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
        return VERDICTS[word], f"Without it NDCG@10 is the same for each of the {row['n']}, though {others}"
    interval = f"{row['low']:+.4f} to {row['high']:+.4f}, n = {row['n']}, p = {row['p']:.2f}"
    return VERDICTS[word], f"Without it NDCG@10 changes by {row['d_ndcg']:+.4f} ({interval}) and {others}"


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
