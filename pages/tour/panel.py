"""The tour of five stops and its second lesson, bound to the address (`tour=3`), left and taken up at any time: in the place of
the list of pages where the window is wide, else a slim bar at its lower edge.

A stop first asks for a bet, then for an act, and scrolls to its control and rings it; one button goes through both and on. Bets
are kept, and the end of either lesson counts them."""

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from elastic_core.services.tour.measured_answers import Answer
from pages.components import edits, page_context, page_elements, page_text
from pages.components.controls import place_button
from pages.tour import classroom
from pages.tour.steps import FIRST_LESSON, STEPS, Step, fill_words, measure_answer, stop_label, stop_number

PARAMETER, STOP, ARRIVED, ACTS = "tour", "tour_at", "tour_arrived", "tour_acts"
MEASURED, BETS, TURN, RETURNS = "tour_measured", "tour_bets", "tour_turn", "tour_returns"
SET_ASIDE = "tour_edits_before"  # what the visitor had edited, for the way back
DONE, ANSWERED = "tour_done", "tour_answered"  # stops whose task was done in this visit, and whose answer was asked for
LAST_STOP, COUNTED = "tour_left", "tour_counted"  # the stop at which the tour was left, and the one after which bets are counted
TEXT = page_text.load_page_text(__file__)
END = len(STEPS) + 1  # after the last stop of either lesson: counts the bets
SLIM = """<style>
[data-testid="stBottomBlockContainer"] { padding-top: .25rem; padding-bottom: .4rem }
.st-key-tour_panel { padding: .35rem .8rem; max-height: 38vh; overflow-y: auto }
.st-key-tour_panel :is(p, label, [data-testid="stAlertContainer"]) { font-size: .875rem; line-height: 1.35 }
.st-key-tour_panel button { min-height: 1.9rem; padding-block: 0 }
.st-key-tour_panel [data-testid="stAlertContainer"] { padding: .3rem .6rem }
.st-key-tour_panel [class*="st-key-tour_to_"] button { min-height: 1.6rem }
.st-key-tour_panel [data-testid="stVerticalBlock"] { gap: .3rem }
@media (max-width: 949px) {  /* the buttons stand above the text and stay there, or a phone would cut them off */
  .st-key-tour_panel [data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"]) {
    flex-flow: column-reverse nowrap;
    > [data-testid="stColumn"] { width: 100%; min-width: 100%; flex: none }
    > [data-testid="stColumn"]:last-child {
      position: sticky; top: -.35rem; z-index: 1; padding-block: .2rem; background: var(--st-background-color);
    }
  }
}
@media (min-width: 950px) {  /* where there is room for the list of pages, the tour stands in its place and covers nothing else */
  [data-testid="stBottom"]:has(.st-key-tour_panel) {
    position: static; z-index: auto;
    > div { position: fixed; inset: 0 auto auto 0; width: 18.75rem; min-width: 0; z-index: 1000000; box-shadow: 0 2px 6px #0003 }
    [data-testid="stBottomBlockContainer"] { padding: 0 }
    .st-key-tour_panel { max-height: min(42rem, calc(100vh - 9rem)); border-radius: 0; border-width: 0 }
    [data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"]) { flex-direction: column; align-items: stretch }
    [data-testid="stColumn"] { width: 100%; min-width: 100%; flex: none }
    [role="radiogroup"] { flex-direction: column; align-items: flex-start }
  }
  [data-testid="stSidebar"][data-collapsed="false"] { padding-top: var(--tour-height, 0) }
  body:not(:has([data-testid="stSidebar"][data-collapsed="false"])) [data-testid="stMain"]:has(.st-key-tour_panel) {
    padding-left: 18.75rem;  /* the list is folded away: the page makes room, and the way back to the list stays free */
    [data-testid="stBottom"] > div { top: 3.75rem }
  }
}
</style>"""
BLURRED = 3  # from this stop on the page gets sharp after the bet: it shows the answer
BLUR = """<style>
.stMain [data-testid="stMainBlockContainer"] { filter: blur(14px) }
.stMain::after { content: "The page gets sharp after your bet."; position: fixed; top: 42%; left: 0; right: 0; margin: auto;
  width: fit-content; padding: .5rem 1rem; border-radius: .5rem; font-weight: 600; color: var(--st-text-color);
  background: var(--st-secondary-background-color) }
</style>"""
_point = st.components.v2.component("elastic_pointer", js=(Path(__file__).parent / "pointer.js").read_text(encoding="utf-8"))


class Bet(NamedTuple):
    """What a visitor bet on, and what was right; `right` is None until it was shown, and where nothing could be measured."""

    option: str
    right: str | None = None


def current_stop() -> int:
    """Which stop, from 1; 0 outside the tour."""
    parameter = st.query_params.get(PARAMETER, "")
    if STOP not in st.session_state and parameter.isdecimal() and 1 <= int(parameter[:3]) <= END:
        st.session_state[STOP] = int(parameter[:3])
    return int(st.session_state.get(STOP, 0))


def bets_by_stop() -> dict[int, Bet]:
    """Of this visit, by stop."""
    return st.session_state.setdefault(BETS, {})


def show_begin_button() -> None:
    """In the sidebar: begin, or go on."""
    if not current_stop():
        last_stop = st.session_state.get(LAST_STOP)
        label = f"Go on: {stop_label(last_stop)}" if last_stop else f"Tour: {FIRST_LESSON} stops"
        place_button(label, "tour_begin", _go_to_stop, last_stop or 1, icon="tour", width="stretch")


def open_stop_page() -> None:
    """Takes the visitor to the stop's page with its settings, once per stop. Called before the page runs.

    What the address of a shared link says of a setting goes before the stop's own."""
    if requested_stop := classroom.take_requested_stop():
        _go_to_stop(requested_stop)
    stop = current_stop()
    if not stop:
        st.query_params.pop(PARAMETER, None)
        return
    if stop != END and st.session_state.pop(RETURNS, False):
        st.switch_page(STEPS[stop - 1].page, query_params={PARAMETER: str(stop)})
    if stop == END or st.session_state.get(ARRIVED) == stop:
        st.query_params[PARAMETER] = str(stop)
        return
    step, by_link = STEPS[stop - 1], ARRIVED not in st.session_state
    prefixes = {key.partition("_")[0] + "_" for key in step.bound}  # the frame's own are in place already
    parameters = {key: value for key, value in st.query_params.items() if by_link and key.startswith(tuple(prefixes))}
    st.session_state[ARRIVED] = stop
    for key, value in step.bound.items():
        if key != "expert" and key not in parameters:  # its box is already drawn in this run
            st.session_state[key] = value() if callable(value) else value
    st.switch_page(step.page, query_params={**parameters, PARAMETER: str(stop)})


def show_panel() -> None:
    """The stop: the page scrolls above the bar, and what the task names is brought into view there."""
    stop = current_stop()
    if not stop:
        return
    st.html(SLIM if stop < BLURRED or stop == END or _is_task_time(stop) else SLIM + BLUR)
    with st.bottom, st.container(border=True, key="tour_panel", gap="xsmall"):
        if stop == END:
            _show_summary()
            return
        step, is_task = fill_words(STEPS[stop - 1]), _is_task_time(stop)
        ending = "" if step.title.endswith("?") else "."
        text_place, buttons = st.columns([4, 1.3], gap="small", vertical_alignment="center")
        with text_place:
            st.markdown(f"**{stop_label(stop)}: {step.title}{ending}** {step.text}")
            if stop == 1 and (before := st.session_state.get(SET_ASIDE)) and before.edits:
                st.caption(TEXT("set aside"))
            (_show_task if is_task else _ask_for_bet)(stop, step)
        with buttons.container(horizontal=True, horizontal_alignment="right", gap="small"):
            place_button(
                "Back", "tour_back", _go_back, stop, icon="arrow_back", type="tertiary", disabled=stop == 1 and not is_task
            )
            next_label = "See your bets" if stop in (FIRST_LESSON, len(STEPS)) else "Next stop"
            place_button(
                next_label if is_task else "Skip the bet", "tour_next", _go_forward, stop, icon="arrow_forward",
                type="primary" if is_task else "secondary",
            )  # fmt: skip
            if is_task:
                place_button("Show me", "tour_show", _point_at_target, icon="my_location", type="tertiary")
            place_button("Leave the tour", "tour_leave", _go_to_stop, 0, icon="close", type="tertiary")
        turn_id, colour = f"{stop}/{is_task}/{st.session_state.get(TURN, 0)}", page_context.theme_palette().gold
        _point(data={"keys": list(step.target), "turn": turn_id, "colour": colour}, key="tour_pointer")


def _ask_for_bet(stop: int, step: Step) -> None:
    earlier_bet = bets_by_stop().get(stop)
    index = step.options.index(earlier_bet.option) if earlier_bet else None
    st.radio(
        f"**Your bet:** {step.question}", step.options, index=index, key=f"tour_bet_{stop}", horizontal=True,
        on_change=_store_bet, args=(stop,),
    )  # fmt: skip
    if classroom.class_code() and classroom.count_bet(stop, step, earlier_bet.option if earlier_bet else None):
        _show_answer(stop, step, earlier_bet)


def _store_bet(stop: int) -> None:
    option = st.session_state.get(f"tour_bet_{stop}")
    if option in STEPS[stop - 1].options:
        bets_by_stop()[stop] = Bet(option)
        st.session_state[ACTS] = stop


def _show_task(stop: int, step: Step) -> None:
    """What to do and to look at. What was measured is told when it is done or asked for, and at once to who did not bet."""
    done_stops = st.session_state.setdefault(DONE, set())
    if step.done(st.session_state):
        done_stops.add(stop)
    mark = ":material/check_circle:" if stop in done_stops else ":material/radio_button_unchecked:"
    st.markdown(f"{mark} {step.task} Look at {step.look}")
    bet = bets_by_stop().get(stop)
    may_show = classroom.count_bet(stop, step, bet.option if bet else None)
    answered_stops = st.session_state.setdefault(ANSWERED, set())
    if may_show and (bet is None or classroom.class_code() or stop in done_stops | answered_stops):
        _show_answer(stop, step, bet)
    elif bet:
        st.caption(f"The bet: {step.question} You said: **{bet.option}**.")
        if may_show:
            _store_answer(stop, step, bet)
            place_button("Show the answer", "tour_answer", answered_stops.add, stop)


def _show_answer(stop: int, step: Step, bet: Bet | None) -> None:
    answer = _measure_once(step)
    if answer is None:
        st.info("Only a run with experts can answer this. Choose an ELASTIC run on the left.")
        return
    if answer.option is None:
        st.info(page_context.escape_markdown(answer.reason))
        return
    right = step.options[answer.option]
    if bet is not None:
        _store_answer(stop, step, bet)
    hit = bet is not None and bet.option == right
    st.caption(f"The bet: {step.question}")
    verdict = "Right." if hit else f"Your bet was {bet.option}. Here it is **{right}**." if bet else f"Answer: **{right}**."
    (st.success if hit else st.info)(f"{verdict} {page_context.escape_markdown(answer.reason)}")


def _store_answer(stop: int, step: Step, bet: Bet) -> None:
    answer = _measure_once(step)  # before the page is changed: it is about what was bet on
    if answer is not None and answer.option is not None:
        bets_by_stop()[stop] = Bet(bet.option, step.options[answer.option])


def _show_summary() -> None:
    """What was right, the way back to every stop, and after the first lesson the way into the second."""
    bets, last_stop = bets_by_stop(), st.session_state.get(COUNTED, FIRST_LESSON)
    answered_bets = [bet for stop, bet in bets.items() if stop <= last_stop and bet.right is not None]
    hits = sum(bet.option == bet.right for bet in answered_bets)
    with page_elements.place_in_row(gap="small"):
        bets_text = (
            f"**{hits} of {len(answered_bets)}** bets were right." if answered_bets else "No bet of yours has an answer yet."
        )
        st.markdown(f"**Tour: the end.** {bets_text} {TEXT('remember')}", width="stretch")
        place_button("Back", "tour_back", _go_to_stop, last_stop, icon="arrow_back", type="tertiary")
        if last_stop == FIRST_LESSON:
            label = f"Second lesson: {len(STEPS) - FIRST_LESSON} stops"
            place_button(label, "tour_second", _go_to_stop, FIRST_LESSON + 1, icon="arrow_forward")
        place_button("Finish", "tour_next", _go_to_stop, 0, icon="check", type="primary")
    with st.container(gap=None):
        for stop, step in enumerate(STEPS[:last_stop], start=1):
            bet = bets.get(stop)
            if bet is None or bet.right is None:
                mark, help_text = "remove", "no bet" if bet is None else f"your bet: {bet.option}"
            else:
                mark = "check" if bet.option == bet.right else "close"
                help_text = f"your bet: {bet.option}; measured: {bet.right}"
            label = f"{stop_number(stop)} {step.title}"
            place_button(label, f"tour_to_{stop}", _go_to_stop, stop, icon=mark, type="tertiary", help=help_text)
    _point(data={"keys": [], "turn": "end", "colour": ""}, key="tour_pointer")  # the list of pages begins below the card


def _measure_once(step: Step) -> Answer | None:
    """Measured once for a stop, a run and a person."""
    context = page_context.require_context()
    subject = (step.title, context.run.name, context.user, context.other and context.other.run.name)
    if st.session_state.get(MEASURED, (None, None))[0] != subject:
        st.session_state[MEASURED] = (subject, measure_answer(step))
    return st.session_state[MEASURED][1]


def _is_task_time(stop: int) -> bool:
    """Is it time for the act, after the bet? In a class, a bet whose answer was shown is over."""
    return st.session_state.get(ACTS) == stop or _is_over(stop)


def _is_over(stop: int) -> bool:
    return stop in bets_by_stop() and classroom.is_answer_released(stop)


def _point_at_target() -> None:
    """Back to what the task names, on its page."""
    st.session_state[TURN] = st.session_state.get(TURN, 0) + 1
    st.session_state[RETURNS] = True


def _go_forward(stop: int) -> None:
    if _is_task_time(stop):
        _go_to_stop(END if stop == FIRST_LESSON else stop + 1)
    else:
        st.session_state[ACTS] = stop


def _go_back(stop: int) -> None:
    if _is_task_time(stop) and not _is_over(stop):
        st.session_state[ACTS] = None
    else:
        _go_to_stop(max(stop - 1, 1))


def _go_to_stop(stop: int) -> None:
    last_stop = st.session_state.get(STOP)
    if stop and not last_stop:
        st.session_state[SET_ASIDE] = st.session_state.get(edits.STATE)
    if not stop and (before := st.session_state.pop(SET_ASIDE, None)) and before.edits:
        st.session_state[edits.STATE] = before
        st.query_params.pop(edits.PARAMETER, None)
    if not stop and last_stop:
        st.session_state[LAST_STOP] = last_stop if last_stop not in (len(STEPS), END) else None
    if stop == END:
        st.session_state[COUNTED] = last_stop or FIRST_LESSON
    else:
        classroom.move_class(stop)
    st.session_state[STOP], st.session_state[ACTS] = stop, None
    st.session_state[ARRIVED] = None
    if 0 < stop < END and "expert" in STEPS[stop - 1].bound:
        page_context.select_expert(None)
