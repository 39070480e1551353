"""Experts as knobs: turn the chosen person's experts up and down, lend them another, and see their list answer beside it."""

from collections.abc import Hashable, Mapping
from typing import Any

import streamlit as st

from elastic_core.services.experts.steering import SAMPLE, Steered, Turn
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Words
from elastic_core.text import number as whole
from pages.experts import answers, words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import control, person, view

LEND, BY, KNOB = "exp_lend", "exp_lend_by", "exp_turn_"
Number = st.column_config.NumberColumn


def show(of: Subject, user: int) -> None:
    """Sliders on the left, what they do on the right."""
    said = inspect.words(of.data)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        turn = _knobs(of, user)
    found = answers.steered(of, user, turn)
    with right:
        _list(of, found, said, turn)
    if turn.still:
        view.explain(words.KNOBS)
        return
    _meaning(of, found)
    _cost(of, turn)


def _knobs(of: Subject, user: int) -> Turn:
    own = of.survey.traffic.experts[user].tolist()
    st.markdown("**Factors** :small[1 = as it is, 0 = off; named by what the vector pushes up, weak: within chance]")
    place, factors = st.columns(2, gap="small"), []
    lent = _lent(of, own)
    for rank, expert in enumerate(own):
        if lent is not None and rank == len(own) - 1:
            continue  # the weakest gives its place
        factor = control.bound(place[rank % 2].slider, _name(of, expert), 0.0, 4.0, 1.0, 0.25, key=f"{KNOB}{expert}")
        factors += [(expert, factor)] if factor != 1 else []
    by = 1.0
    if lent is not None:
        by = control.bound(place[(len(own) - 1) % 2].slider, f"{_name(of, lent)}, lent", 0.0, 4.0, 1.0, 0.25, key=BY)
    _left_out(own)
    return Turn(tuple(sorted(factors)), lent, by)


def _lent(of: Subject, own: list[int]) -> int | None:
    """Whom they are lent; None for nobody, and for one they have."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lent = control.number(
            "Lend them expert", 0, of.survey.size - 1, None, key=LEND, placeholder="nobody", width=200,
            help="Takes place and gate of their weakest.",
        )  # fmt: skip
        st.button("Reset", icon=":material/restart_alt:", key="exp_turn_reset", on_click=_reset, args=(own,))
    if lent is None or int(lent) not in own:
        return None if lent is None else int(lent)
    st.caption(f"They retrieve expert {lent} already.")
    return None


def _name(of: Subject, expert: int) -> str:
    genre = answers.named(of)[expert]
    return f"{expert} · {shell.plain(genre)}{' (weak)' if answers.weak(of, expert) else ''}" if genre else f"{expert} · no label"


def _left_out(own: list[int]) -> None:
    """An address may turn experts that this person does not retrieve."""
    asked = [name.removeprefix(KNOB) for name in st.query_params if name.startswith(KNOB)]
    gone = [number for number in asked if whole(number) not in (None, *own)]
    if gone:
        st.caption(f"Expert {shell.plain(', '.join(gone[:8]))} is turned in the address, but not retrieved by this person.")


def _reset(own: list[int]) -> None:
    for key, usual in ((LEND, None), (BY, 1.0), *((f"{KNOB}{expert}", 1.0) for expert in own)):
        if not shell.locked(key):
            st.session_state[key] = usual


def _list(of: Subject, found: Steered, said: Words, turn: Turn) -> None:
    middle, low, high = found.limits
    if turn.still:
        st.markdown(f"**Their ten {said.many}, as they are**")
    else:
        null = (
            f"other experts turned alike: {middle:.0f} ({low:.0f} to {high:.0f}, {len(found.chance)} tries)"
            if len(found.chance)
            else "all are turned alike: nothing to compare with"
        )
        st.markdown(
            f"**{found.fresh} of {len(found.change.table)} {said.many} {'is' if found.fresh == 1 else 'are'} new** "
            f":small[({null})]. What they {said.did} next {found.change.truth_moved}."
        )
        named = found.table[found.table["genre"] != ""].head(2)
        st.caption("  \n".join(words.turned_line(row) for row in named.to_dict("records")))
    person.ranked(shell.context(), found.change, found.truth, changed=not turn.still)


def _meaning(of: Subject, found: Steered) -> None:
    table = found.table
    shown = table.assign(what=[_turned(row) for row in table.to_dict("records")]).drop(columns=["expert", "factor", "lent"])
    names: dict[str, object] = {"what": "Turned", "genre": "Stands for"}
    for part, of_ in (("", "ten"), ("chance_", "chance")):
        names |= {
            f"{part}before": Number(f"Of {of_}, before", format="percent"), f"{part}after": Number("after", format="percent"),
            f"{part}null": Number("other turns", format="percent", help=f"Median of {len(found.chance)} random turns alike"),
            f"{part}low": Number("from", format="percent", help="2.5%"),
            f"{part}high": Number("to", format="percent", help="97.5%"),
        }  # fmt: skip
    alt = "Share of what each turned expert stands for among the ten, before and after, beside random turns"
    view.table("exp_turned", shown[list(names)], words.KNOBS, alt, column_config=names)


def _turned(row: Mapping[Hashable, Any]) -> str:
    return f"{row['expert']} × {row['factor']:g}{', lent' if row['lent'] else ''}"


def _cost(of: Subject, turn: Turn) -> None:
    """What the turn costs everybody: kept once measured."""
    touched = answers.touched(of, turn)
    found = answers.known_cost(of, turn)
    if found is None:
        some = f"{SAMPLE} of the {touched:,}" if touched > SAMPLE else f"the {touched:,}"
        with st.container(horizontal=True, vertical_alignment="center"):
            pressed = st.button(
                "What does it cost everybody?", icon=":material/science:", key="exp_turn_cost", disabled=not touched,
                help="Two passes, kept; any other control ends them.",
            )  # fmt: skip
            place = st.empty()
            place.caption(f"For {some} people whom it touches.")
        if not pressed:
            return
        bar = place.progress(0.0)
        found = answers.cost(of, turn, lambda share: _tell(bar, share))
        place.empty()
    st.markdown(words.cost_line(found))
    view.remember("exp_turn_cost_rows", found)


def _tell(bar: "st.delta_generator.DeltaGenerator", share: float) -> None:
    bar.progress(min(share, 1.0), text=f"{share:.0%}")
