"""The answers to the tour's questions, measured on the person and the run in view. Each: which option is right, and why.

Options are counted from 0, in the order in which the tour offers them.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from elastic_core.data import Dataset
from elastic_core.data.repeats import ONLY_UNSEEN, WITH_SEEN, count_repeats, fitting_protocol
from elastic_core.memory.routing import COLD, HOT, USUAL, RoutedUsers, check_expert_count, random_load_limits
from elastic_core.models import Recommender, as_retrieving_model
from elastic_core.results.compare import Comparison, claim_sentence, side_of_zero, with_its_seeds
from elastic_core.results.compare import find_winner as who_is_better
from elastic_core.results.store import load
from elastic_core.results.systems import labels_apart, run_label
from elastic_core.runs import Run
from elastic_core.services.edits import Edit, Remove
from elastic_core.services.experts import ablation
from elastic_core.services.experts.overview import hot_experts
from elastic_core.services.journey.trace import opening_events
from elastic_core.services.keys import gate, search, votes
from elastic_core.services.map import layouts, trust
from elastic_core.services.person import inspect
from elastic_core.services.person.influence import influence_of_user
from elastic_core.services.person.model_trace import strongest_expert
from elastic_core.services.person.prediction import Prediction, predict_user
from elastic_core.services.person.recommend import compare_lists
from elastic_core.services.person.user_lookup import sample_indices
from elastic_core.services.speed import curves
from elastic_core.text import true_minus

AMONG = {ONLY_UNSEEN: "among new items", WITH_SEEN: "among all items"}


class TourContext(NamedTuple):
    """What a question is about. `traffic` is None for models without a memory."""

    run: Run
    model: Recommender
    dataset: Dataset
    user: int
    traffic: RoutedUsers | None
    checkpoints: Path


class Answer(NamedTuple):
    """`option` is None where nothing was measured: then no bet is right or wrong."""

    option: int | None
    reason: str


def last_event(context: TourContext) -> Answer:
    """How many of the ten suggestions stay when the last event is forgotten?"""
    last = int(context.dataset.readable_lengths()[context.user])
    before, after = _start_prediction(context), _start_prediction(context, Remove(last, last))
    stay = 10 - compare_lists(before.recommendation, after.recommendation).counts["new"]
    return Answer(0 if stay == 10 else 1 if stay >= 5 else 2, f"{stay} of the ten suggestions of person {context.user + 1} stay.")


def _start_prediction(context: TourContext, *edits: Edit) -> Prediction:
    """As the start page opens with it."""
    return predict_user(context.model, context.dataset, context.user, edits, count_repeats(context.dataset).stay)


def answer_comparisons(context: TourContext) -> Answer:
    """How many comparisons with keys does the search need?"""
    side = round(inspect.memory_size(context.model) ** 0.5)
    return Answer(
        1,
        f"Here 2 × 4 = 8 short dot products replace 16 long ones. For {side**2:,} experts, {2 * side} short ones "
        f"replace {side**2:,} long ones.",
    )


def votes_won(context: TourContext) -> Answer:
    """Which part of all votes do a person's experts have?"""
    if not search.has_votes(context.model):
        return Answer(None, "In this run the whole history makes one search, so there are no votes to count.")
    sums = votes.vote_sums(votes.retrieve_by_vote(context.model, context.dataset, context.user)).dropna(subset="expert")
    won = float(sums["votes"].sum())
    text = (
        f"The {len(sums)} experts of person {context.user + 1} have {won:.0%} of all votes. An average person "
        f"gives the same experts {sums['usual'].sum():.0%}."
    )
    return Answer(0 if won < 0.2 else 1 if won <= 0.5 else 2, text)


def answer_dispatch(context: TourContext) -> Answer:
    """How many links do a person's events and experts take?"""
    start = _start_prediction(context)
    assert start.retrieved is not None
    k, plural = start.retrieved.experts.shape[1], inspect.item_words(context.dataset).plural
    n = opening_events(start.n_read, k)
    return Answer(
        1,
        f"{n} {plural} and {k} experts need {n} × {k} lines there and {n} × {k} back, {2 * n * k:,} in all. All pairs would be "
        f"{n} × {n} = {n * n:,}.",
    )


def answer_starved_keys(context: TourContext) -> Answer:
    """What learns without the gate?"""
    table = gate.gradient_table(context.model, context.dataset, context.user)
    dead = table.loc[table["without_gate"] == 0, "group"].tolist()
    named = ", ".join(dead) or "none"
    return Answer(1 if dead else 0, f"Without the gate, the gradient is exactly 0 in: {named}. Training never changes them.")


def answer_holders(context: TourContext) -> Answer:
    """Is the person's strongest expert hot, usual or cold?"""
    assert context.traffic is not None
    hot, (low, high) = hot_experts(context.traffic, context.user), random_load_limits(context.traffic)
    first = hot[hot["expert"] == strongest_expert(context.model, _start_prediction(context))].iloc[0]
    text = (
        f"Expert {first['expert']:.0f} is the strongest of person {context.user + 1}. {first['load']:.0f} of "
        f"{len(context.traffic.experts):,} people use it. If experts were chosen at random, it would be {low} to {high}."
    )
    return Answer((HOT, USUAL, COLD).index(first["kind"]), text)


def looked_at_or_decisive(context: TourContext) -> Answer:
    """Is the event that is read the most the one whose removal changes the chance of what came next the most?"""
    influence = influence_of_user(context.model, context.dataset, context.user, count_repeats(context.dataset).stay)
    table = influence.table
    seen, decisive = int(table["attention"].idxmax()), int(table["change"].abs().idxmax())
    titles = [f"{table['position'][row]}. {inspect.split_year(table['title'][row])[0]}" for row in (seen, decisive)]
    text = f"“{titles[0]}” is read most, and “{titles[1]}” decides most. {influence.sentence}"
    return Answer(0 if seen == decisive else 1, text)


def unused_by_chance(context: TourContext) -> Answer:
    """Were experts drawn at random, how many would nobody retrieve?"""
    assert context.traffic is not None
    load, (low, _, used) = context.traffic.load, context.traffic.random_router(draws=50)
    unused_share, n_unused = 1 - used, int((load == 0).sum())
    verdict = "more than chance gives" if n_unused > (low == 0).sum() else "no more than chance gives"
    text = (
        f"If experts were chosen at random, {unused_share * len(load):.0f} of the {len(load):,} would have no users (mean of 50 "
        f"tries). In this run {n_unused:,} have none, which is {verdict}. "
        f"{context.traffic.used_share:.0%} of the memory is in use."
    )
    return Answer(0 if unused_share < 0.05 else 1 if unused_share < 0.3 else 2, text)


def answer_swap(context: TourContext) -> Answer:
    """Does replacing the strongest expert, for everybody who retrieves it, change NDCG@10 by more than chance explains?"""
    assert context.traffic is not None
    expert = strongest_expert(context.model, _start_prediction(context))
    assert expert is not None
    other = ablation.draw_used_expert(context.traffic, expert, apart=True)
    everybody = ablation.EvaluationContext(context.model, context.dataset, context.traffic)
    before = ablation.rank_edited(everybody, ablation.retrieving_users(context.traffic, expert))
    row = ablation.effect_row("", ablation.swap_expert(everybody, expert, other, before))
    is_clear = side_of_zero(row["low"], row["high"]) != ""
    text = (
        f"Expert {other} took the place of expert {expert} for the {row['n']:.0f} people who use {expert} and not {other}. "
        f"NDCG@10 changes by {row['d_ndcg']:+.4f} (95% interval {row['low']:+.4f} to {row['high']:+.4f})."
    )
    return Answer(0 if is_clear else 1, text)


def answer_seeds(context: TourContext) -> Answer:
    """Do runs that differ only in their seed score the same?"""
    runs = with_its_seeds(context.run, load(context.checkpoints))
    protocol = fitting_protocol(context.dataset)
    scores = {run.config.train.seed: run.report().mean_interval(protocol, "NDCG@10").mean for run in runs if run.has_report}
    if len(scores) < 2:
        return Answer(None, f"There is only one seed of {run_label(context.run)} here. Train a second one, and compare.")
    spread = max(scores.values()) - min(scores.values())
    text = ", ".join(f"seed {seed} {score:.4f}" for seed, score in sorted(scores.items()))
    sentence = f"NDCG@10 {AMONG[protocol]}: {text}. The seed alone changes it by up to {spread:.4f}."
    return Answer(0 if spread < 1e-6 else 1, sentence)


def answer_better(context: TourContext, comparison: Comparison, other: Run) -> Answer:
    """Is one of two systems better than chance explains, the chance of training among it?"""
    own_label, other_label = labels_apart(context.run, other)
    text = true_minus(
        f"{claim_sentence(comparison, own_label, other_label)} Under {comparison.protocol}, their NDCG@10 is "
        f"{comparison.mean_a:.4f} and {comparison.mean_b:.4f}, the difference {comparison.difference:+.4f} "
        f"(95% {comparison.low:+.4f} to {comparison.high:+.4f})."
    )
    return Answer({"A": 0, "": 1, "B": 2}[who_is_better(comparison)], text)


def map_keeps(context: TourContext) -> Answer:
    """How many of an expert's nearest neighbours does the flat map keep? Counted as the map's own page counts them."""
    check_expert_count(context.model)
    values = as_retrieving_model(context.model).expert_values().numpy()
    n_compared = min(len(values), trust.MOST)
    count = trust.judged_neighbours(n_compared)
    share_kept = neighbours_kept(values, layouts.project_pca(values), count)
    sample_text = (
        f"{n_compared:,} of {len(values):,} experts, drawn at random" if n_compared < len(values) else f"{len(values):,} experts"
    )
    text = f"The map keeps {share_kept:.0%} of an expert’s {count} nearest neighbours (mean over {sample_text})."
    return Answer(0 if share_kept > 0.9 else 1 if share_kept > 0.5 else 2, text)


def faster_when(context: TourContext) -> Answer:
    """Is ELASTIC faster than SASRec at every length?"""
    rows = curves.shipped_rows(context.checkpoints)
    if rows.empty:
        return Answer(None, "No measurement came with this copy. You can make one on this page.")
    rows, column = curves.usual_shape(rows)
    text = curves.speed_sentence(rows, "elastic", "sasrec-fused", column)
    ratio = curves.speed_ratio(rows, "elastic", "sasrec-fused", column)
    return Answer(0 if len(ratio) and (ratio >= 1).all() else 2 if len(ratio) and (ratio < 1).all() else 1, text)


def neighbours_kept(values: np.ndarray, flat: np.ndarray, k: int = 5) -> float:
    """Mean share of an expert's `k` nearest in `values` (cosine) that are also among its `k` nearest on a map `flat`.

    Among as many experts as the map's own page judges: nobody can hold every distance between a quarter of a million."""
    keep = sample_indices(len(values), trust.MOST, seed=0)
    return trust.mean_overlap(
        trust.nearest_points(values[keep], k, angles=True), trust.nearest_points(flat[keep], k, angles=False)
    )
