"""The guided tour: one card at the lower edge of the window, bound to the address (`tour=3`), left and taken up at any time."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.tour.answers import Answer, Asked
from pages.frame import shell
from pages.kit import cache
from pages.tour import classroom
from pages.tour.steps import STEPS, Step

PARAMETER, AT, ARRIVED = "tour", "tour_at", "tour_arrived"
MEASURED, FOLDED = "tour_measured", "tour_folded"
HEIGHT = 168  # pixels of the card: with what is around it a quarter of a window of 800; what is longer scrolls within
COMPACT = """<style>
[data-testid="stBottomBlockContainer"] { padding-top: .5rem; padding-bottom: .75rem }
.st-key-tour_panel { padding: .4rem .8rem }
.st-key-tour_panel :is(p, label, [data-testid="stAlertContainer"]) { font-size: .875rem; line-height: 1.35 }
.st-key-tour_panel button { min-height: 1.9rem; padding-block: 0 }
.st-key-tour_panel [data-testid="stAlertContainer"] { padding: .5rem .7rem }
</style>"""


def at() -> int:
    """Which stop, from 1; 0 outside the tour."""
    asked = st.query_params.get(PARAMETER, "")
    if AT not in st.session_state and asked.isdecimal() and 1 <= int(asked[:3]) <= len(STEPS):
        st.session_state[AT] = int(asked[:3])
    return int(st.session_state.get(AT, 0))


def button() -> None:
    """In the sidebar: begin, or leave."""
    if at():
        st.button("Leave the tour", icon=":material/close:", key="tour_leave", on_click=_go, args=(0,), width="stretch")
    else:
        seen = st.session_state.get("tour_left")
        label = f"Go on with the tour ({seen} of {len(STEPS)})" if seen else f"Tour: {len(STEPS)} stops"
        st.button(label, icon=":material/tour:", key="tour_begin", on_click=_go, args=(seen or 1,), width="stretch")


def arrive() -> None:
    """Takes the visitor to the stop's page with its settings, once per stop. Called before the page runs."""
    if there := classroom.going():
        _go(there)
    stop = at()
    if not stop:
        st.query_params.pop(PARAMETER, None)
        return
    step = STEPS[stop - 1]
    if st.session_state.get(ARRIVED) == stop:
        st.query_params[PARAMETER] = str(stop)
        return
    st.session_state[ARRIVED] = stop
    for key, value in step.bound.items():
        if key != "expert":  # its box is already drawn in this run
            st.session_state[key] = value
    st.switch_page(step.page, query_params={PARAMETER: str(stop)})


def panel() -> None:
    """The stop, docked: the page scrolls above it, so it neither covers nor pushes away what it points at."""
    stop = at()
    if not stop:
        return
    step = STEPS[stop - 1]
    end = "" if step.title.endswith("?") else "."
    folded = bool(st.session_state.get(FOLDED))
    st.html(COMPACT)
    with st.bottom, st.container(border=True, key="tour_panel", height="content" if folded else HEIGHT, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**Tour, {stop} of {len(STEPS)}: {step.title}{end}**", width="stretch")
            if st.session_state.get(ARRIVED) == stop:
                st.page_link(step.page, label="There", icon=":material/place:")
            st.button("Back", key="tour_back", icon=":material/arrow_back:", on_click=_go, args=(stop - 1,), disabled=stop == 1)
            last = stop == len(STEPS)
            st.button(
                "Finish" if last else "Next stop", key="tour_next", icon=":material/arrow_forward:", type="primary",
                on_click=_go, args=(0 if last else stop + 1,),
            )  # fmt: skip
            st.button("Unfold" if folded else "Fold", key="tour_fold", on_click=_fold, type="tertiary")
        if folded:
            return
        does, bets, answers = st.columns([4, 3, 3] if st.session_state.get(f"tour_bet_{stop}") or classroom.code() else [4, 5, 1])
        done = ":material/check_circle:" if step.done(st.session_state) else ":material/radio_button_unchecked:"
        does.markdown(f"{step.text}  \n{done} {step.task}  \n:material/visibility: {step.look[:1].upper()}{step.look[1:]}")
        with bets:
            bet = st.radio(f"**Bet:** {step.question}", step.options, index=None, key=f"tour_bet_{stop}", horizontal=True)
        with answers:
            _answer(stop, step, bet)


def _answer(stop: int, step: Step, bet: str | None) -> None:
    """A bet first, then what was measured."""
    shown = classroom.bet(stop, step, bet)
    if not shown or (bet is None and not classroom.code()):
        return
    answer = _measured(step)
    if answer is None:
        st.info("The answer needs a run with an interest memory: choose an ELASTIC run on the left.")
        return
    if answer.option is None:
        st.info(shell.plain(answer.reason))
        return
    right = step.options[answer.option]
    verdict = "Right." if bet == right else f"Not here: **{right}**." if bet else f"It is **{right}**."
    (st.success if bet == right else st.info)(f"{verdict} {shell.plain(answer.reason)}")


def _measured(step: Step) -> Answer | None:
    """Measured once for a stop, a run and a person."""
    now = shell.context()
    if step.memory and not now.model.retrieves:
        return None
    about = (step.title, now.run.name, now.user, now.other and now.other.name)
    if st.session_state.get(MEASURED, (None, None))[0] != about:
        st.session_state[MEASURED] = (about, _measure(step))
    return st.session_state[MEASURED][1]


def _measure(step: Step) -> Answer:
    now = shell.context()
    traffic = cache.traffic(now.run, now.model, now.dataset, now.split) if now.model.retrieves else None
    try:
        return step.answer(Asked(now.run, now.model, now.dataset, now.user, traffic, shell.RUNS, now.split))
    except InputError as error:
        return Answer(None, f"It could not be measured here: {error}")


def _fold() -> None:
    st.session_state[FOLDED] = not st.session_state.get(FOLDED)


def _go(stop: int) -> None:
    if not stop and st.session_state.get(AT):
        st.session_state["tour_left"] = st.session_state[AT] if st.session_state[AT] < len(STEPS) else None
    st.session_state[AT] = stop
    classroom.lead(stop)
    st.session_state.pop(ARRIVED, None)
    if stop and "expert" in STEPS[stop - 1].bound:
        shell.look_at(None)
