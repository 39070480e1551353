"""The parts of the Experts page: all experts, and of one its people and items, and its neighbours.

Each is drawn for a run, an expert and a person, and returns what is doubtful about it."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.jobs.job_kinds import Ablations
from elastic_core.services.experts import ablation, overview, relations
from elastic_core.services.experts import items as expert_items
from elastic_core.services.experts.items import PushedItems
from elastic_core.services.journey.trace import LEAST_PART
from elastic_core.services.person import inspect
from pages.components import glossary, job_bar, page_context, page_elements
from pages.components.controls import bind_widget, choose_one, choose_without_label, place_button
from pages.experts import cached, charts
from pages.experts import sentences as expert_words
from pages.experts.cached import Subject
from pages.experts.sentences import TEXT

# --- all of them -----------------------------------------------------------------------------------------------------

STATUS = ("all", "hot", "usual", "cold", "dead")
FIRST = ("expert", "name", "interest", "purity", "load", "status", "d_ndcg")


def show_all_experts(subject: Subject, *_: int) -> list[str]:
    """Show all experts as a sortable table."""
    effects, size = cached.all_effects(subject), subject.survey.size
    with page_elements.place_in_row("bottom"):
        st.subheader(f"All {size:,} experts", anchor=False, width="stretch")
        status = choose_one("Show", STATUS, key="exp_show", width="content", help=glossary.EXPERT_LOAD_HELP)
        all_columns = bind_widget(st.toggle, "More columns", key="exp_more")
    columns = page_elements.parse_columns(TEXT("COLUMNS"))
    experts = cached.list_experts(subject, status, effects, tuple(columns))
    order = [name for name in experts if all_columns or name in FIRST]
    alt = f"{len(experts)} experts with row, column, people, status, genres and limits"
    _show_table("exp_table", experts, expert_words.ALL, alt, columns, column_order=order, height=250)
    st.caption("Tick a row to open that expert.")
    counts = cached.expert_table(subject)["status"].value_counts()
    doubts = ["**How busy.** " + ", ".join(f"{counts.get(name, 0)} {name}" for name in STATUS[1:]) + "."]
    if subject.survey.genres:
        labelled, chance = cached.dead_by_chance(subject)
        doubts.append(TEXT("SURE_NAMES", labelled=labelled, size=size, chance=chance))
    if effects is not None:
        n_worse, n_better, chance = ablation.count_clear_effects(effects)
        doubts.append(TEXT("SURE_ALL", worse=n_worse, better=n_better, size=len(effects), chance=chance))
    elif subject.traffic.experts.shape[1] > 1:
        ablations, request_arguments = Ablations(page_context.RUNS), (subject.run, subject.dataset.hash)
        job_bar.offer_job(
            ablations,
            ablations.latest_job(**ablations.make_request(*request_arguments)),
            request_arguments,
            "exp_all",
            TEXT("NOT_MEASURED"),
            "Remove each and measure",
            "This adds a column, the change of NDCG@10. It runs in the background.",
        )
    return doubts


def _show_table(
    key: str, frame: pd.DataFrame, about: page_elements.ChartText, alt: str, columns: dict[str, Any], **more: Any
) -> None:
    """Show experts, one a row; a chosen row becomes the expert of the page."""
    st.session_state[f"{key}_experts"] = frame["expert"].tolist()
    column_looks = {name: look for name, look in columns.items() if name in frame}
    page_elements.show_table(
        key, frame, about, alt, column_config=column_looks, on_select=lambda: _select_row(key),
        selection_mode="single-row", **more,
    )  # fmt: skip


def _select_row(key: str) -> None:
    expert = page_elements.selected_row(key, st.session_state.get(f"{key}_experts", []))
    if expert is not None:
        page_context.select_expert(expert)


# --- who uses it -----------------------------------------------------------------------------------------------------

GROUPS = {
    "top": "Use it most", "middle": "In between", "just in": "Use it, but only just",
    "just out": "Just missed it", "random": "Drawn at random from the rest",
}  # fmt: skip


def show_users_and_items(subject: Subject, expert: int, user: int) -> list[str]:
    """Who uses the expert and what it reads of them, which genres stand out among them, and which items it suggests."""
    _show_example_users(subject, expert)
    _show_genres(subject, expert)
    doubts = _show_items(subject, expert)
    _show_own_experts(subject, user)
    return doubts


def _show_example_users(subject: Subject, expert: int) -> None:
    users, plural = cached.example_users(subject, expert), subject.item_words.plural
    page_elements.show_heading(f"Its people, and the {plural} it reads")
    st.caption(
        TEXT("READS" if subject.survey.of_reading is not None else "READS_NOT", a=subject.item_words.with_article, many=plural)
    )
    for group, rows in users.groupby("group", sort=False):
        st.markdown(f"**{GROUPS[group]}**")
        for row in rows.to_dict("records"):
            _show_user(subject, row)
    page_elements.show_explanation(expert_words.USERS)


def _show_user(subject: Subject, row: dict[str, Any]) -> None:
    button_column, text_column = st.columns([1, 4], vertical_alignment="center")
    number, plural = row["user"] + 1, subject.item_words.plural
    place_button(
        f"Person {number}",
        f"exp_meet_{row['group']}_{number}",
        page_context.select_user,
        int(row["user"]),
        place=button_column,
        width="stretch",
        disabled=page_context.is_locked("user"),
        help="The expert stays.",
    )
    titles = [page_context.escape_markdown(inspect.split_year(subject.dataset.catalog.title(item))[0]) for item in row["items"]]
    k = subject.traffic.experts.shape[1]
    place_text = f"this is number {row['rank']} of their {k} experts" if row["rank"] else f"this is not one of their {k} experts"
    if row["shares"]:
        parts = zip(titles, row["shares"], row["times"], strict=True)
        read_texts = [f"{title} **{share:.0%}** (×\u00a0{times:.1f})" for title, share, times in parts if share >= LEAST_PART]
        reading_text = ", ".join(read_texts) or f"No {plural} yet."
    else:
        reading_text = f"last {plural}: " + ", ".join(titles)
    empty_text = f"; all weights add up to {1 - row['empty']:.0%}" if row["empty"] >= LEAST_PART else ""
    text_column.markdown(f"{reading_text}  \n:small[:gray[{row['events']} {plural} in all{empty_text}; {place_text}]]")


def _show_own_experts(subject: Subject, user: int) -> None:
    """Show how busy the chosen person's experts are."""
    page_elements.show_heading(f"The experts of person {user + 1}")
    frame = overview.hot_experts(subject.traffic, user)
    alt = f"The experts of person {user + 1} with weight, load and status"
    page_elements.show_table("exp_own", frame, expert_words.HOT, alt, column_config=page_elements.parse_columns(TEXT("OWN")))


# --- what it stands for ----------------------------------------------------------------------------------------------

SOURCES = {"people": "In the histories of its people", "reads": "In its slots"}


def _show_genres(subject: Subject, expert: int) -> None:
    survey = subject.survey
    if not survey.genres:
        return
    page_elements.show_heading("Its genres")
    sources = list(SOURCES) if survey.of_reading is not None else ["people"]
    source = choose_without_label("Evidence", sources, "exp_evidence", format_option=SOURCES.__getitem__)
    frame = (survey.of_people if source == "people" else survey.of_reading).genre_table(expert)
    if frame.empty:
        st.write(f"Only {survey.traffic.load[expert]} people use this expert, too few to say anything about genres.")
        return
    reference = "all histories" if source == "people" else "the same histories, read evenly"
    n_users = frame["n"].iloc[0]
    st.markdown(f"Each genre’s share for {n_users} people, divided by its share in {reference}. **× 1** means no difference.")
    first = frame.iloc[0]
    best = f"{first['genre']}, {first['lift']:.2f} ({first['low']:.2f} to {first['high']:.2f})"
    alt = f"Lift of {len(frame)} genres with intervals. First: {best}."
    figure = charts.draw_lifts(frame, page_context.theme_palette())
    page_elements.show_chart("exp_genres", figure, frame, expert_words.GENRES, alt)


def _show_items(subject: Subject, expert: int) -> list[str]:
    """Show what it pushes up and holds back. Return how sure that is."""
    page_elements.show_heading("What it suggests")
    plural, pushed_items = subject.item_words.plural, cached.pushes(subject, expert)
    direct_column, measured_column = st.columns(2, gap="medium")
    with direct_column:
        st.markdown("##### Alone")
        _show_pushed_items(pushed_items, "direct", plural, TEXT("ALONE"), TEXT("ALONE_NOT"))
    with measured_column:
        st.markdown(f"##### Measured, {pushed_items.n_users} people")
        _show_pushed_items(pushed_items, "measured", plural, TEXT("MEASURED", many=plural), TEXT("NOTHING_TO_REMOVE"))
    if "measured" not in pushed_items.table:
        return []
    doubts = [TEXT("SURE_PUSHED", near=expert_items.NEAR, fewest=expert_items.FEWEST)]
    own_agreement, mean, high = pushed_items.agreement, pushed_items.control, pushed_items.control_high
    if not np.isnan(own_agreement):
        count = len(pushed_items.table)
        st.markdown(
            f"**Do the two agree?** They correlate by {own_agreement:+.2f}, "
            f"{'more' if own_agreement > high else 'no more'} than for other experts."
        )
        alt = f"{count} items: direct against measured push of expert {expert}; rank correlation {own_agreement:.2f}."
        figure = charts.draw_agreement(pushed_items.table, page_context.theme_palette())
        page_elements.show_chart("exp_agreement", figure, pushed_items.table, expert_words.ITEMS, alt)
        doubts.append(TEXT("SURE_AGREE", own=own_agreement, count=count, many=plural, mean=mean, high=high))
    return doubts


def _show_pushed_items(pushed_items: PushedItems, by: str, plural: str, explanation: str, missing_reason: str) -> None:
    if by not in pushed_items.table:
        st.write(missing_reason)
        return
    st.caption(explanation)
    raised_items, lowered_items = expert_items.most_pushed(pushed_items.table, by)
    for name, icon, frame in (
        ("Pushed up", ":material/arrow_upward:", raised_items),
        ("Held back", ":material/arrow_downward:", lowered_items),
    ):
        lines = []
        for row in frame.to_dict("records"):
            change_text = f"{row['direct']:+.3f}" if by == "direct" else _format_times(row)
            lines.append(f"- {page_context.escape_markdown(inspect.split_year(row['title'])[0])} :small[{change_text}]")
        st.markdown(f"{icon} **{name}**\n\n" + ("\n".join(lines) or f"no {plural}"))


def _format_times(row: dict[str, float]) -> str:
    doubt_text = "" if row["low"] > 1 or row["high"] < 1 else ", unsure"
    return f"**× {row['times']:.3f}** ({row['low']:.3f} to {row['high']:.3f}), n = {row['n']:.0f}{doubt_text}"


# --- what is around it -----------------------------------------------------------------------------


def show_neighbours(subject: Subject, expert: int, _: int) -> None:
    survey, palette = subject.survey, page_context.theme_palette()
    likeness, lines = relations.cosine_table(survey, subject.model, expert), relations.line_loads(survey, expert)
    for place, line, number in zip(st.columns(2, gap="medium"), ("row", "column"), survey.place(expert), strict=True):
        with place:
            st.markdown(f"##### {line.capitalize()} {number}: {lines[line]:,.0f} uses, {lines['even']:,.0f} if all were equal")
            part = relations.same_line(likeness, expert, line)
            figure = charts.draw_siblings(part, palette, expert, survey.band, line)
            busiest = part.loc[part["load"].idxmax()]
            most = f"{busiest['expert']} with {busiest['load']} people"
            alt = f"People of the {len(part)} experts in {line} {number}; the busiest is {most}."
            page_elements.show_chart(
                f"exp_line_{line}", figure, part, expert_words.SIBLINGS if line == "row" else None, alt, experts=True
            )
    similar_column, joint_column = st.columns(2, gap="medium")
    with similar_column:
        mean_cosine, high = relations.mean_cosine(likeness, expert)
        st.markdown("##### Most similar")
        st.caption(f"The cosine with other experts is {mean_cosine:.2f} on average; only 2.5% of them have more than {high:.2f}.")
        neighbours, columns = relations.nearest_experts(likeness, expert), page_elements.parse_columns(TEXT("NEAR"))
        _show_table("exp_near", neighbours, expert_words.NEAREST, "The most similar experts", columns)
    with joint_column:
        st.markdown("##### Most often used together")
        st.caption(f"Among its {survey.traffic.load[expert]} people. × 1 means as often as by luck.")
        joint_experts = relations.retrieved_together(survey.traffic, expert)
        if joint_experts.empty:
            st.write("Nobody uses it.")
        else:
            _show_table("exp_together", joint_experts, expert_words.TOGETHER, "Experts that the same people use", columns)
