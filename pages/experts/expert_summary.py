"""The top of the Experts page: which expert, how to get to another, and three answers in one line each."""

import streamlit as st

from elastic_core.services.experts import ablation, overview, relations
from pages.components import cache, glossary, page_context, page_elements
from pages.components.controls import bind_widget, place_button
from pages.experts import cached, sentences
from pages.experts.cached import Subject

OFTEN = {
    "hot": ":orange-badge[often]", "usual": ":gray-badge[usual]", "cold": ":blue-badge[seldom]",
    "dead": ":red-badge[nobody]",
}  # fmt: skip


def show_navigation(of: Subject, expert: int, strongest: int, why: str) -> None:
    """Offer previous, next, by luck, and the chosen person's strongest; where this one stands, and `why` it is shown."""
    size, held = of.survey.size, page_context.is_locked("expert")
    ways = (
        ("Previous", "chevron_left", (expert - 1) % size, None),
        ("Next", "chevron_right", (expert + 1) % size, None),
        ("Person’s strongest", "person", strongest, f"Expert {strongest}."),
    )
    with page_elements.place_in_row():
        for name, icon, number, help in ways:
            place_button(
                name,
                f"exp_go_{name}",
                page_context.select_expert,
                number,
                icon=icon,
                help=help,
                disabled=held or number == expert,
            )
        place_button(
            "Random",
            "exp_go_lucky",
            _select_random_expert,
            of,
            expert,
            icon="casino",
            disabled=held,
            help="Any that somebody uses.",
        )
        row, column = of.survey.place(expert)
        st.caption(f"Row {row}, column {column}. {why}", help=f"Interest expert: {glossary.WORDS['interest expert']}.")


def _select_random_expert(of: Subject, expert: int) -> None:
    turn = st.session_state.get("exp_luck", 0)
    st.session_state["exp_luck"] = turn + 1
    page_context.select_expert(ablation.draw_used_expert(of.traffic, expert, seed=turn))


def show_summary(of: Subject, expert: int, user: int) -> list[str]:
    """Answer what it stands for, who uses it and whether it matters. Return how sure that is."""
    meaning, crowd, matter = st.columns(3, border=True)
    with meaning:
        doubts = _show_meaning(of, expert)
    with crowd:
        found, (low, high) = of.survey, of.survey.band
        load, often = f"{found.traffic.load[expert]} of {found.people:,} people", OFTEN[str(found.status()[expert])]
        st.markdown(f"**Who uses it?** {often}\n\n#### {load}")
        has = "has" if expert in found.traffic.experts[user] else "does not have"
        st.caption(f"Equal use: {found.traffic.experts.size / found.size:.0f}. Person {user + 1} {has} it.")
        doubts.append(sentences.TEXT("SURE_BAND", low=low, high=high))
    with matter:
        verdict, sentence, more = _describe_effect(of, expert)
        st.markdown(f"**Does it matter?**\n\n#### {verdict}")
        st.caption(sentence)
    return doubts + more


def _show_meaning(of: Subject, expert: int) -> list[str]:
    label, alone, truth, told = overview.label_expert(of.survey, expert), cached.alone(of, expert), "", []
    if of.survey.met is not None:  # a made-up world, in which the truth is known
        row = cached.expert_table(of).iloc[expert]
        truth, told = page_context.escape_markdown(row["interest"]), ["**True interest.** None: it reads nothing."]
        if truth:
            said = {"events": row["events"], "chance": row["purity_chance"], "part": row["purity"]}
            told = [sentences.TEXT("SURE_PLANTED", interest=truth, **said)]
    name = cache.expert_names(of).get(expert) if of.dataset.in_baskets else None
    if name is not None and name.holds:  # what Start calls it, too
        st.markdown(f"**What does it stand for?** {sentences.MORE}\n\n#### {page_context.escape_markdown(name.genre)}")
        st.caption(sentences.TEXT("HOLDS", genre=page_context.escape_markdown(name.genre), lift=name.lift))
        return [sentences.TEXT("SURE_NAME", low=name.low, n=name.n), *sentences.meaning_notes(label, alone)]
    sure = (sentences.LUCK if label.weak else sentences.MORE) if label is not None and label.genres else ""
    st.markdown(f"**What does it stand for?** {sure}\n\n#### {sentences.name_expert(label, alone)}")
    st.caption(sentences.describe_meaning(label, alone, truth))
    return sentences.meaning_notes(label, alone) + told


def _describe_effect(of: Subject, expert: int) -> tuple[str, str, list[str]]:
    """Return a verdict, a sentence, and how sure that is."""
    if not of.traffic.load[expert]:
        return "to nobody", "Nobody uses it.", []
    if of.traffic.experts.shape[1] < 2:
        return "it is the only one", "Each person has one expert. Without it, nothing reads the history.", []
    row, alike = cached.measure_removal(of, expert), cached.measure_matched_removal(of, expert)
    return *sentences.describe_effect(row, alike), sentences.effect_notes(row, alike)


def show_dead_notice(of: Subject, expert: int) -> bool:
    """Show the plain notice on a dead expert. True if the visitor wants to see the rest anyway."""
    found = of.survey
    (row, column), lines = found.place(expert), relations.line_loads(found, expert)
    st.warning(
        f"**Expert {expert} is dead: nobody in this data uses it.** Its row {row} is used {lines['row']:.0f} times, its column "
        f"{column} {lines['column']:.0f} times (equal use: {lines['even']:.0f}). What it holds is a random start, or something "
        "from earlier in training.",
        icon=":material/hide_source:",
    )
    return bind_widget(st.toggle, "Show anyway", key="exp_anyway")
