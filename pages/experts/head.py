"""The top of the Experts page: which expert, how to get to another, and three answers in one line each."""

import streamlit as st

from elastic_core.services.experts import ablation, overview, people, relations
from elastic_core.services.method import notes
from pages.experts import answers, words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import busy
from pages.kit.control import bound


def walk(of: Subject, expert: int, strongest: int, why: str) -> None:
    """Previous, next, by luck, and the chosen person's strongest; where this one stands, and `why` it is shown."""
    size, held = of.survey.size, shell.locked("expert")
    ways = (
        ("Previous", ":material/chevron_left:", (expert - 1) % size, None),
        ("Next", ":material/chevron_right:", (expert + 1) % size, None),
        ("Person’s strongest", ":material/person:", strongest, f"Expert {strongest}."),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, icon, number, help in ways:
            st.button(
                name, icon=icon, key=f"exp_go_{name}", on_click=shell.look_at, args=(number,), help=help,
                disabled=held or number == expert,
            )  # fmt: skip
        st.button(
            "Random", icon=":material/casino:", key="exp_go_lucky", on_click=_lucky, args=(of, expert), disabled=held,
            help="Any that somebody retrieves.",
        )  # fmt: skip
        (row, column), side = of.survey.place(expert), of.survey.side
        st.caption(
            f"Of {size:,} experts: row {row}, column {column} of {side} × {side}.{why}",
            help=f"Interest expert: {notes.WORDS['interest expert']}.",
        )


def _lucky(of: Subject, expert: int) -> None:
    turn = st.session_state.get("exp_luck", 0)
    st.session_state["exp_luck"] = turn + 1
    shell.look_at(ablation.random_used(of.survey.traffic, expert, seed=turn))


def cards(of: Subject, expert: int, user: int) -> None:
    """How busy is it, what does it stand for, does it matter?"""
    found = of.survey
    load, status, (low, high) = int(found.traffic.load[expert]), found.status()[expert], found.band
    crowd, meaning, matter = st.columns(3, border=True)
    with crowd:
        colour = {"hot": "orange", "dead": "red", "cold": "blue"}.get(str(status), "gray")
        st.markdown(f"**Who retrieves it?** :{colour}-badge[{status}]\n\n#### {load} of {found.people:,} people")
        st.caption(
            f"A random router: {low} to {high} (95%). {standing(of, expert, user)}",
            help=busy.MEANING,
        )
    with meaning:
        label = overview.label(found, expert)
        name, evidence = words.label_line(label)
        sure = ":gray-badge[weak]" if label is not None and label.weak else ":green-badge[beyond chance]"
        st.markdown(f"**What does it stand for?** {sure if label and label.genres else ''}\n\n#### {shell.plain(name)}")
        st.caption(" ".join([f"{evidence}.", _planted(of, expert), words.alone_line(answers.alone(of, expert))]))
    with matter:
        _matter(of, expert, load)


def _matter(of: Subject, expert: int, load: int) -> None:
    if not load:
        st.markdown("**Does it matter?**\n\n#### to nobody")
        st.caption("Nobody retrieves it.")
    elif of.survey.traffic.experts.shape[1] < 2:
        st.markdown("**Does it matter?**\n\n#### it is the only one")
        st.caption("Each person retrieves one expert; without it nothing reads the history.")
    else:
        verdict, numbers = words.effect_line(answers.removal(of, expert))
        null = words.as_busy(answers.removal_alike(of, expert))
        st.markdown(f"**Does it matter?** :gray-badge[by removal]\n\n#### {verdict}")
        st.caption(f"{numbers}.{null}", help=f"NDCG@10: {notes.WORDS['NDCG@10']}.")


def standing(of: Subject, expert: int, user: int) -> str:
    """Where the expert stands for the chosen person."""
    here = people.standing(of.survey, expert, user)
    if here["gate"]:
        return f"Person {user + 1} retrieves it, rank {here['place']:.0f}, weight {here['gate']:.2f}."
    return f"Person {user + 1} does not retrieve it: rank {here['place']:.0f} of {of.survey.size}, {-here['margin']:.2f} short."


def _planted(of: Subject, expert: int) -> str:
    if of.survey.met is None:
        return ""
    row = answers.table(of).iloc[expert]
    if not row["events"]:
        return "It reads no event most: no planted interest."
    return (
        f"Planted truth: of {row['events']:,} events it reads most, {row['purity']:.0%} belong to "
        f"**{shell.plain(row['interest'])}** (by chance {row['purity_chance']:.0%})."
    )


def dead(of: Subject, expert: int) -> bool:
    """The plain notice on a dead expert. True if the visitor wants to see the rest anyway."""
    found = of.survey
    (row, column), lines = found.place(expert), relations.lines(found, expert)
    st.warning(
        f"**Expert {expert} is dead: nobody in this data retrieves it.** Row {row} is retrieved {lines['row']:.0f} times, column "
        f"{column} {lines['column']:.0f} (even: {lines['even']:.0f}): one sub-key is weak, or both win only for different "
        "people. Its vector is a random start, or what an earlier life in training left.",
        icon=":material/hide_source:",
    )
    return bound(st.toggle, "Show anyway", key="exp_anyway")
