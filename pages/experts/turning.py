"""Experts as knobs: turn the chosen person's experts up and down, lend them another, and see their list answer beside it."""

import streamlit as st

from elastic_core.services.experts.steering import SAMPLE, Steered, Turn, middle_of, touched
from elastic_core.services.person.inspect import Words
from elastic_core.text import number as whole
from pages.experts import answers, words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import person, view
from pages.kit.control import bound, button, number

LEND, BY, KNOB = "exp_lend", "exp_lend_by", "exp_turn_"


def show(of: Subject, _: int, user: int) -> list[str]:
    """Show sliders on the left, what they do on the right. Return what other turns do."""
    said = of.words
    left, right = st.columns([5, 6], gap="medium")
    with left:
        turn = _knobs(of, user)
    found = answers.steered(of, user, turn)
    with right:
        doubts = _list(of, found, said, turn)
    if not turn.experts:
        view.explain(words.KNOBS)
        return doubts
    _cost(of, turn)
    with st.expander("More: every number", icon=":material/table:"):
        _meaning(found)
    return doubts


def _knobs(of: Subject, user: int) -> Turn:
    own = of.traffic.experts[user].tolist()
    st.markdown("**How strong?** :small[1 = as it is, 0 = off]")
    place, factors = st.columns(2, gap="small"), []
    lent = _lent(of, own)
    for rank, expert in enumerate(own):
        if lent is not None and rank == len(own) - 1:
            continue  # the weakest gives its place
        factor = bound(place[rank % 2].slider, _name(of, expert), 0.0, 4.0, 1.0, 0.25, key=f"{KNOB}{expert}")
        factors += [(expert, factor)] if factor != 1 else []
    by = 1.0
    if lent is not None:
        by = bound(place[(len(own) - 1) % 2].slider, f"{_name(of, lent)}, given", 0.0, 4.0, 1.0, 0.25, key=BY)
    _left_out(own)
    return Turn(tuple(sorted(factors)), lent, by)


def _lent(of: Subject, own: list[int]) -> int | None:
    """Return whom they are lent; None for nobody, and for one they have."""
    with view.row("bottom"):
        lent = number(
            "Give them expert", 0, of.survey.size - 1, None, key=LEND, placeholder="nobody", width=200,
            help="Takes the place of their weakest.",
        )  # fmt: skip
        button("Reset", "exp_turn_reset", _reset, own, icon="restart_alt")
    if lent is None or int(lent) not in own:
        return None if lent is None else int(lent)
    st.caption(f"They have expert {lent} already.")
    return None


def _name(of: Subject, expert: int) -> str:
    if genre := answers.genre(of, expert):
        return f"{expert} · {shell.plain(genre)}{' (may be luck)' if answers.weak(of, expert) else ''}"
    return f"{expert} · {words.named(None, answers.alone(of, expert))}"


def _left_out(own: list[int]) -> None:
    """Say where an address turns experts that this person does not retrieve."""
    asked = [name.removeprefix(KNOB) for name in st.query_params if name.startswith(KNOB)]
    gone = [number for number in asked if whole(number) not in (None, *own)]
    if gone:
        st.caption(f"The address turns expert {shell.plain(', '.join(gone[:8]))}, but this person does not use it.")


def _reset(own: list[int]) -> None:
    for key, usual in ((LEND, None), (BY, 1.0), *((f"{KNOB}{expert}", 1.0) for expert in own)):
        if not shell.locked(key):
            st.session_state[key] = usual


def _list(of: Subject, found: Steered, said: Words, turn: Turn) -> list[str]:
    doubts = []
    if not turn.experts:
        st.markdown(f"**Their ten {said.many}, as they are**")
    else:
        new = found.change.counts["new"]
        st.markdown(
            f"**{new} of {len(found.change.table)} {said.many} {'is' if new == 1 else 'are'} new.** What they "
            f"{said.did} next {found.change.truth_moved}."
        )
        rows = found.table[found.table["genre"] != ""].head(2).to_dict("records")
        lines = [
            f"**{shell.plain(row['genre'])}** (expert {row['expert']}): {row['before']:.0%} → {row['after']:.0%} of the ten."
            for row in rows
        ]
        st.caption("  \n".join(lines))
        if len(found.chance):
            middle, low, high = middle_of(found.chance)
            doubts = [words.SAYS("SURE_TURN", middle=middle, low=low, high=high, tries=len(found.chance))]
        doubts += [
            f"**Expert {row['expert']}.** With other experts turned instead: {row['null']:.0%} (95%: {row['low']:.0%} to "
            f"{row['high']:.0%}) {shell.plain(row['genre'])}."
            for row in rows
            if row["null"] == row["null"]
        ]
    person.ranked(shell.context(), found.change, changed=bool(turn.experts))
    return doubts


def _meaning(found: Steered) -> None:
    rows = found.table.to_dict("records")
    turned = [f"{row['expert']} × {row['factor']:g}{', given' if row['lent'] else ''}" for row in rows]
    columns = view.columns(words.SAYS("TURNED", tries=len(found.chance)))
    alt = "The part of each turned expert’s genre among the ten, before and after, beside random turns"
    shown = found.table.assign(what=turned)[list(columns)]
    view.table("exp_turned", shown, words.KNOBS, alt, column_config=columns)


def _cost(of: Subject, turn: Turn) -> None:
    """Say what the turn costs everybody: kept once measured."""
    many = len(touched(of.traffic, turn))
    found = answers.known_cost(of, turn)
    if found is None:
        some = f"{SAMPLE} of the {many:,}" if many > SAMPLE else f"the {many:,}"
        with view.row():
            pressed = st.button(
                "What does it cost everybody?", icon=":material/science:", key="exp_turn_cost", disabled=not many,
                help="Two passes over these people. Any other control stops them.",
            )  # fmt: skip
            place = st.empty()
            place.caption(words.SAYS("COST_NOTE", some=some))
        if not pressed:
            return
        bar = place.progress(0.0)
        found = answers.cost(of, turn, lambda share: bar.progress(min(share, 1.0), text=f"{share:.0%}"))
        place.empty()
    this, other = found.to_dict("records")
    of_ = f"{this['n']:,} of the {this['touched']:,}" if this["touched"] > this["n"] else f"the {this['n']:,}"
    null = "There is no other expert to compare with."
    if other["n"]:
        null = f"Other experts, turned the same way: {words.change(other)}."
    st.markdown(f"For {of_} people whom this turn touches, NDCG@10 changes by **{words.change(this)}**. {null}")
    view.remember("exp_turn_cost_rows", found)
