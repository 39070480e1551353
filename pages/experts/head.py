"""The top of the Experts page: which expert, how to get to another, and three answers in one line each."""

from collections.abc import Hashable
from typing import Any

import streamlit as st

from elastic_core.services.experts import ablation, overview, relations
from elastic_core.services.method import notes
from pages.experts import answers, words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import view
from pages.kit.control import bound, button

OFTEN = {
    "hot": ":orange-badge[often]", "usual": ":gray-badge[usual]", "cold": ":blue-badge[seldom]",
    "dead": ":red-badge[nobody]",
}  # fmt: skip


def walk(of: Subject, expert: int, strongest: int, why: str) -> None:
    """Previous, next, by luck, and the chosen person's strongest; where this one stands, and `why` it is shown."""
    size, held = of.survey.size, shell.locked("expert")
    ways = (
        ("Previous", "chevron_left", (expert - 1) % size, None),
        ("Next", "chevron_right", (expert + 1) % size, None),
        ("Person’s strongest", "person", strongest, f"Expert {strongest}."),
    )
    with view.row():
        for name, icon, number, help in ways:
            button(name, f"exp_go_{name}", shell.look_at, number, icon=icon, help=help, disabled=held or number == expert)
        button("Random", "exp_go_lucky", _lucky, of, expert, icon="casino", disabled=held, help="Any that somebody uses.")
        row, column = of.survey.place(expert)
        st.caption(
            f"Row {row}, column {column}. {why}",
            help=f"Interest expert: {notes.WORDS['interest expert']}.",
        )


def _lucky(of: Subject, expert: int) -> None:
    turn = st.session_state.get("exp_luck", 0)
    st.session_state["exp_luck"] = turn + 1
    shell.look_at(ablation.random_used(of.traffic, expert, seed=turn))


def cards(of: Subject, expert: int, user: int) -> list[str]:
    """What does it stand for, who uses it, does it matter? Returns how sure that is."""
    found, doubts = of.survey, []
    load, status, (low, high) = int(found.traffic.load[expert]), found.status()[expert], found.band
    meaning, crowd, matter = st.columns(3, border=True)
    with meaning:
        label, alone = overview.label(found, expert), answers.alone(of, expert)
        sure = (words.LUCK if label.weak else words.MORE) if label is not None and label.genres else ""
        st.markdown(f"**What does it stand for?** {sure}\n\n#### {words.named(label, alone)}")
        truth = _planted(of, expert)
        st.caption(words.meaning(label, alone, shell.plain(truth["interest"]) if truth and truth["events"] else ""))
        doubts += words.meaning_doubts(label, alone)
        if truth:
            doubts.append(_true(truth))
    with crowd:
        st.markdown(f"**Who uses it?** {OFTEN[str(status)]}\n\n#### {load} of {found.people:,} people")
        even = found.traffic.experts.size / found.size
        has = "has" if expert in found.traffic.experts[user] else "does not have"
        st.caption(f"Equal use: {even:.0f}. Person {user + 1} {has} it.")
        doubts.append(words.SAYS("SURE_BAND", low=low, high=high))
    with matter:
        doubts += _matter(of, expert, load)
    return doubts


def _matter(of: Subject, expert: int, load: int) -> list[str]:
    if not load:
        st.markdown("**Does it matter?**\n\n#### to nobody")
        st.caption("Nobody uses it.")
    elif of.traffic.experts.shape[1] < 2:
        st.markdown("**Does it matter?**\n\n#### it is the only one")
        st.caption("Each person has one expert. Without it, nothing reads the history.")
    else:
        row = answers.removal(of, expert)
        alike = answers.removal_alike(of, expert)
        verdict, sentence = words.effect(row, alike)
        st.markdown(f"**Does it matter?**\n\n#### {verdict}")
        st.caption(sentence)
        return words.effect_doubts(row, alike)
    return []


def _planted(of: Subject, expert: int) -> dict[Hashable, Any] | None:
    """What is true of it in a made-up world; None where nobody knows."""
    return None if of.survey.met is None else answers.table(of).iloc[expert].to_dict()


def _true(row: dict[Hashable, Any]) -> str:
    if not row["events"]:
        return "**True interest.** None: it reads nothing."
    said = {"events": row["events"], "chance": row["purity_chance"], "part": row["purity"]}
    return words.SAYS("SURE_PLANTED", interest=shell.plain(row["interest"]), **said)


def dead(of: Subject, expert: int) -> bool:
    """The plain notice on a dead expert. True if the visitor wants to see the rest anyway."""
    found = of.survey
    (row, column), lines = found.place(expert), relations.lines(found, expert)
    st.warning(
        f"**Expert {expert} is dead: nobody in this data uses it.** Its row {row} is used {lines['row']:.0f} times, its column "
        f"{column} {lines['column']:.0f} times (equal use: {lines['even']:.0f}). What it holds is a random start, or something "
        "from earlier in training.",
        icon=":material/hide_source:",
    )
    return bound(st.toggle, "Show anyway", key="exp_anyway")
