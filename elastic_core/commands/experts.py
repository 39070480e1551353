"""What do the experts of a run stand for, and do they matter?

Without --expert: a table of all experts. Load is how many people retrieve an expert, its status compares that with a uniformly
random router; the genre is the most over-represented one in the histories of its people, with its lift and an interval that
holds for all genres together. With --effects also what happens to NDCG@10 of its people (all unmet items ranked) without it.

With --knobs: does the list move towards what an expert stands for when it is turned up, and what does that cost? Several runs,
joined by commas (training seeds of one model), are judged together: every person's mean over them.

With --expert: its people, genres, what it pushes up and down, the effects of removing and of replacing it, its neighbours.

With --user: the experts that one person's history retrieves, best first, and how many people share each.

  elastic experts planted-elastic
  elastic experts groceries-elastic-slots --user 42
  elastic experts ml-100k-elastic --sort people_low --top 20
  elastic experts ml-100k-elastic --effects --csv
  elastic experts ml-100k-elastic-slots --knobs
  elastic experts ml-100k-elastic-slots,ml-100k-elastic-slots-seed1 --knobs
  elastic experts ml-100k-elastic --expert 145 --swap 50
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from pandas import DataFrame

from elastic_core.commands.options import CsvOption, JsonOption
from elastic_core.commands.run_lookup import Loaded, load_run, print_note
from elastic_core.data.repeats import count_repeats
from elastic_core.errors import InputError
from elastic_core.memory.item_clusters import cluster_users
from elastic_core.memory.routing import COLD, DEAD, HOT, USUAL, route_users
from elastic_core.memory.user_experts import user_experts
from elastic_core.services.experts import ablation, knobs, overview, relations
from elastic_core.services.experts import expert_users as expert_people
from elastic_core.services.experts import items as expert_items
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.experts.evidence import Evidence, count_names, count_names_by_chance, name_experts
from elastic_core.services.experts.overview import Survey
from elastic_core.services.person import attribution

FORMATS = {
    name: shape
    for shape, names in {
        "{:.2%}": "traffic votes mean_votes", "{:.2f}": "spread", "{:.0%}": "purity purity_chance",
        "{:.4f}": "ndcg_before ndcg_after", "{:+g}": "d_rank_median",
        "{:+.4f}": "d_ndcg low high d_ndcg_low d_ndcg_high ndcg_low ndcg_high",
        "{:+.2%}": "d_own own_low own_high d_other other_low other_high d_gap gap_low gap_high d_instead instead_low instead_high"
        " d_beyond beyond_low beyond_high",
    }.items()
    for name in names.split()
}  # fmt: skip


def run_command(
    run_name: Annotated[
        str, typer.Argument(metavar="RUN", help="A run folder, or its name below checkpoints/; with --knobs several.")
    ],
    expert: Annotated[int | None, typer.Option(metavar="N", help="One expert in full, counted from 0.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="The experts of one person, by their raw id.")] = None,
    swap: Annotated[
        int | None, typer.Option(metavar="N", help="Which expert to put in its place (default: a random used one).")
    ] = None,
    sort: Annotated[str, typer.Option(metavar="COLUMN", help="Largest first by this column.")] = "load",
    top: Annotated[int, typer.Option(metavar="N", help="Only the first N rows; 0: all.")] = 0,
    effects: Annotated[bool, typer.Option("--effects", help="Also remove every expert from its people and judge them.")] = False,
    turn_knobs: Annotated[
        bool, typer.Option("--knobs", help="Turn everybody's experts up and down, and lend them others.")
    ] = False,
    csv: CsvOption = False,
    as_json: JsonOption = False,
) -> None:
    if turn_knobs:
        knob_tables = [knobs.measure_knobs(_load_population(_with_experts(name))) for name in run_name.split(",")]
        print(frame_text(knobs.knob_table(knob_tables), csv, as_json), end="")
        return
    if user is not None and (expert is not None or effects):
        raise InputError("--user goes without --expert and --effects")
    loaded = _with_experts(run_name)
    context = _load_population(loaded)
    number = None if user is None else loaded.dataset.user_number(user)
    survey = overview.survey_experts(context)
    if number is not None:
        print(frame_text(_list_own_experts(context, survey, number), csv, as_json), end="")
        return
    if expert is not None:
        for number in (expert, swap or 0):
            survey.place(number)  # raises where there is none
        print_expert(context, survey, expert, swap)
        return
    frame = overview.expert_table(survey)
    if effects:
        print_note("Removing every expert from its people.")
        effect_table = ablation.remove_each(context)
        limit_names = {"low": "d_ndcg_low", "high": "d_ndcg_high"}
        frame = frame.merge(effect_table.rename(columns=limit_names).drop(columns="n"), on="expert", how="left")
    if sort not in frame:
        raise InputError(f"--sort must be one of {', '.join(frame.columns)}, not {sort!r}")
    frame = frame.sort_values(sort, ascending=False, kind="stable")
    print(frame_text(frame.head(top) if top > 0 else frame, csv, as_json), end="")
    if not csv and not as_json:
        print_summary(loaded, survey)


def _with_experts(name: str) -> Loaded:
    loaded = load_run(name)
    if not loaded.model.retrieves:
        raise InputError(f"{loaded.run.name} has no interest memory, so it has no experts")
    return loaded


def _load_population(loaded: Loaded) -> EvaluationContext:
    return EvaluationContext(loaded.model, loaded.dataset, route_users(loaded.model, loaded.dataset, "test"))


def frame_text(frame: DataFrame, csv: bool, as_json: bool) -> str:
    if as_json:
        return str(frame.to_json(orient="records", lines=True))
    return str(frame.to_csv(index=False)) if csv else table_text(frame) + "\n"


def table_text(frame: DataFrame) -> str:
    formats = {name: (FORMATS.get(name) or "{:.2f}").format for name in frame.select_dtypes("float").columns}
    return str(frame.to_string(index=False, formatters=formats, na_rep=""))


def _list_own_experts(context: EvaluationContext, survey: Survey, user: int) -> DataFrame:
    """The experts that a person retrieves, best first: where they lie, name, votes or scores, and how many people use each."""
    table, names = user_experts(context.model, context.dataset, user), overview.expert_names(survey, context.model)
    table = table.assign(
        status=overview.hot_experts(context.traffic, user)["kind"],
        name=[names[expert].genre if expert in names and names[expert].holds else "" for expert in table["expert"]],
    )
    ways = ["votes", "mean_votes"] if "votes" in table else ["row_score", "column_score", "score"]
    return table[["rank", "expert", "row", "column", *ways, "gate", "load", "status", "name"]]


def print_summary(loaded: Loaded, survey: Survey) -> None:
    counts, (low, high) = pd.Series(survey.status()).value_counts(), survey.band
    words = ", ".join(f"{counts.get(name, 0)} {name}" for name in (HOT, USUAL, COLD, DEAD))
    print(f"{loaded.run.name}: {survey.n_users:,} people, {survey.size} experts: {words}")
    print(f"a uniformly random router gives an expert {low} to {high} people in 95% of cases")
    if survey.genres:
        labelled, chance = survey.by_chance()
        print(f"{labelled} experts have an over-represented genre; with people shuffled among experts: {chance:.1f}")
        clusters = cluster_users(loaded.model, loaded.dataset, survey.size, survey.traffic.experts.shape[1])
        n_cluster_names = count_names(replace(survey.of_people, experts=clusters))
        print(
            _names_text("what their people choose", survey.of_people)
            + f", with clusters of item vectors in their place {n_cluster_names}"
        )
        if survey.of_reading is not None:
            print(_names_text("what they hold or read", survey.of_reading))
    if shares := attribution.share_agreement(loaded.model, loaded.dataset, keep_seen=count_repeats(loaded.dataset).stay):
        print(
            f"{shares.n_users:,} people's likeliest item has an expert that owns it: in {shares.owners:.0%} it is the one whose "
            f"removal lowers the item most (chance {shares.chance:.0%}); shares ~ what removal takes: {shares.correlation:+.2f} "
            f"(another person's shares: {shares.shuffled:+.2f})"
        )


def _names_text(source: str, evidence: Evidence) -> str:
    """How many names that half of the people gave hold for the other half."""
    names = name_experts(evidence)
    holds, dealt = sum(name.holds for name in names.values()), count_names_by_chance(evidence)
    return (
        f"names by {source}: {len(names)} chosen on half of the people, {holds} hold for the others; dealt at random {dealt:.1f}"
    )


def print_expert(context: EvaluationContext, survey: Survey, expert: int, replacement: int | None) -> None:
    """Everything about one expert, as text."""
    traffic, (row, column), label = context.traffic, survey.place(expert), overview.label_expert(survey, expert)
    print(f"expert {expert}: row {row}, column {column}; {survey.status()[expert]}, retrieved for {traffic.load[expert]} people")
    if label is not None:
        evidence = f"lift {label.lift:.2f} ({label.low:.2f} to {label.high:.2f}, n = {label.n})"
        print(f"label: {label.text}{' (weak)' if label.is_weak else ''}; {evidence}" if label.genres else "label: too few people")
    users = expert_people.example_users(context, survey, expert)
    for user in users.to_dict("records"):
        titles = "; ".join(context.dataset.catalog.title(item) for item in user["items"][:3])
        reading_text = "reads" if user["rank"] else "recent, not read"
        print(f"  {user['group']:<9} person {user['user'] + 1:>5}  margin {user['margin']:+.3f}  {reading_text}: {titles}")
    _print_items(context, expert)
    if traffic.load[expert]:
        swapped = ablation.draw_used_expert(traffic, expert) if replacement is None else replacement
        print(table_text(ablation.measure_effects(context, expert, swapped)))
    every = relations.cosine_table(survey, context.model, expert)
    print("nearest by vector   ", _numbers_text(relations.nearest_experts(every, expert, 5), "cosine"))
    print("retrieved together   ", _numbers_text(relations.retrieved_together(traffic, expert, 5), "lift"))


def _print_items(context: EvaluationContext, expert: int) -> None:
    pushes = expert_items.measure_pushes(context, expert)
    for by in ("direct", "measured"):
        for way, frame in zip(("up  ", "down"), expert_items.most_pushed(pushes.table, by, top=5), strict=True):
            print(f"{by:<8} {way}  {'; '.join(frame['title'])}")
    if np.isfinite(pushes.agreement):
        items, control = context.model.n_items, f"{pushes.control:+.2f}, 97.5%: {pushes.control_high:+.2f}"
        print(f"agreement of the two: Spearman {pushes.agreement:+.2f} over {items:,} items (other experts' direct: {control})")


def _numbers_text(frame: DataFrame, value: str) -> str:
    return ", ".join(f"{row['expert']} ({row[value]:.2f})" for row in frame.to_dict("records")) or "none"
