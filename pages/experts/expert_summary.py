"""The top of the Experts page: which expert, how to get to another, and three answers in one line each."""

import streamlit as st

from elastic_core.services.experts import ablation, overview, relations
from elastic_core.services.person import attribution
from pages.components import cache, glossary, page_context, page_elements
from pages.components.controls import bind_widget, place_button
from pages.experts import cached, sentences
from pages.experts.cached import Subject

USE_BADGES = {
    "hot": ":orange-badge[hot]", "usual": ":gray-badge[usual]", "cold": ":blue-badge[cold]",
    "dead": ":red-badge[dead]",
}  # fmt: skip


def show_navigation(subject: Subject, expert: int, user: int, strongest: int, reason: str) -> None:
    """Offer the previous and the next of the person's experts, the one that the page opens with, and any by luck; where this one
    stands, and the `reason` for which it was opened."""
    own_experts, is_locked = subject.traffic.experts[user].tolist(), page_context.is_locked("expert")
    place = own_experts.index(expert) if expert in own_experts else -1
    ways = (
        ("previous", "Previous expert", "chevron_left", own_experts[max(place, 0) - 1], None),
        ("next", "Next expert", "chevron_right", own_experts[(place + 1) % len(own_experts)], None),
        ("back", "Back to this person", "person", strongest, reason),
    )
    with page_elements.place_in_row():
        for key, name, icon, number, help in ways:
            place_button(
                name,
                f"exp_go_{key}",
                page_context.select_expert,
                number,
                icon=icon,
                help=help,
                disabled=is_locked or number == expert,
            )
        place_button(
            "Random",
            "exp_go_lucky",
            _select_random_expert,
            subject,
            expert,
            icon="casino",
            disabled=is_locked,
            help="Any expert that somebody uses.",
        )
        row, column = subject.survey.place(expert)
        place_text = f"Interest expert: {glossary.WORDS['interest expert']}. This one stands in row {row}, column {column}."
        st.caption(reason if expert == strongest else "", help=place_text)


def _select_random_expert(subject: Subject, expert: int) -> None:
    turn = st.session_state.get("exp_luck", 0)
    st.session_state["exp_luck"] = turn + 1
    page_context.select_expert(ablation.draw_used_expert(subject.traffic, expert, seed=turn))


def show_summary(subject: Subject, expert: int, user: int) -> list[str]:
    """Answer what it stands for, who uses it and whether it matters. Return how sure that is."""
    meaning_column, use_column, effect_column = st.columns(3, border=True)
    with meaning_column:
        doubts = _show_meaning(subject, expert)
    with use_column:
        survey, (low, high) = subject.survey, subject.survey.band
        load, use_text = f"{survey.traffic.load[expert]} of {survey.n_users:,} people", USE_BADGES[str(survey.status()[expert])]
        st.markdown(f"**Who uses it?** {use_text}\n\n#### {load}")
        has_text = "has" if expert in survey.traffic.experts[user] else "does not have"
        equal_load = survey.traffic.experts.size / survey.size
        st.caption(f"If all experts were used equally, it would be {equal_load:.0f}. Person {user + 1} {has_text} it.")
        doubts.append(sentences.TEXT("SURE_BAND", low=low, high=high))
    with effect_column:
        verdict, sentence, effect_details = _describe_effect(subject, expert)
        st.markdown(f"**Do lists get worse without it?**\n\n#### {verdict}")
        st.caption(sentence)
    return doubts + effect_details


def _show_meaning(subject: Subject, expert: int) -> list[str]:
    """Show its one name, which every screen uses, with the evidence that chose it; return the other evidence."""
    label, own_ranking, truth_notes = overview.label_expert(subject.survey, expert), cached.alone(subject, expert), []
    if subject.survey.interest_counts is not None:  # a made-up world, in which the truth is known
        row = cached.expert_table(subject).iloc[expert]
        truth_notes = ["**True interest.** It has none, because it reads nothing."]
        if row["interest"]:
            values = {"events": row["events"], "chance": row["purity_chance"], "part": row["purity"]}
            truth_notes = [sentences.TEXT("SURE_PLANTED", interest=page_context.escape_markdown(row["interest"]), **values)]
    name = cache.expert_names(subject).get(expert)
    if name is not None and name.holds:
        st.markdown(f"**What does it stand for?**\n\n#### {page_context.escape_markdown(name.genre)}")
        template = "BY_SLOT" if attribution.can_attribute(subject.model) else "BY_PEOPLE"  # type: ignore[arg-type]
        st.caption(sentences.TEXT(template, genre=page_context.escape_markdown(name.genre), lift=name.lift))
        truth_notes.insert(0, sentences.TEXT("SURE_NAME", low=name.low, n=name.n))
        if (check := cache.name_check(subject)) is not None:
            truth_notes.insert(1, sentences.TEXT("SURE_CHECK", size=subject.survey.size, **check._asdict()))
    elif subject.survey.genres:
        st.markdown(f"**What does it stand for?**\n\n#### {sentences.TEXT('NO_NAME')}")
        st.caption(sentences.TEXT("NO_NAME_WHY"))
    else:
        st.markdown(
            f"**What does it stand for?**\n\n#### {sentences.first_titles(own_ranking, ' · ') or sentences.TEXT('NO_NAME')}"
        )
        st.caption(sentences.TEXT("BY_TITLES") if own_ranking.titles else "")
    return truth_notes + sentences.meaning_notes(label, own_ranking)


def _describe_effect(subject: Subject, expert: int) -> tuple[str, str, list[str]]:
    """Return a verdict, a sentence, and how sure that is."""
    if not subject.traffic.load[expert]:
        return "To nobody", "Nobody uses it.", []
    if subject.traffic.experts.shape[1] < 2:
        return "It is the only one", "Each person has one expert, and without it nothing reads the history.", []
    row, matched_row = cached.measure_removal(subject, expert), cached.measure_matched_removal(subject, expert)
    return *sentences.describe_effect(row, matched_row), sentences.effect_notes(row, matched_row)


def show_dead_notice(subject: Subject, expert: int) -> bool:
    """Show the plain notice on a dead expert. True if the visitor wants to see the rest anyway."""
    survey = subject.survey
    (row, column), lines = survey.place(expert), relations.line_loads(survey, expert)
    st.warning(
        f"**Expert {expert} is dead: nobody in this data uses it.** Its row {row} is used {lines['row']:.0f} times and its "
        f"column {column} {lines['column']:.0f} times; with equal use it would be {lines['even']:.0f}. Its vector is still the "
        "random start, or what it learned early in training.",
        icon=":material/hide_source:",
    )
    return bind_widget(st.toggle, "Show anyway", key="exp_anyway")
