"""A class in the app: one code for everybody, bets counted together, answers shown when the teacher says so.

The address carries it: `class=ABCDEF` for everybody, `teach=KEY` for the teacher alone; links for others leave the key out.
"""

import re
import secrets
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from elastic_core.services.tour import classes, invitation
from elastic_core.services.tour.classes import Classes
from pages.components import control_locks, page_context, page_elements, page_text, presenter_mode
from pages.components.cache import cached_resource
from pages.components.controls import place_button
from pages.tour import lesson, worksheet
from pages.tour.steps import STEPS, Step

CODE, KEY, ME, WRONG_CODE = "class_code", "class_key", "class_me", "class_said"
OUT, GOES = "class_out", "class_goes"
PANEL, PLANNED, PROJECTED = "class_panel", "class_planned", "class_projected"  # opened by a press, once; below an open panel
TEXT = page_text.load_page_text(__file__)
SMALL, LARGE = 200, 520  # pixels of the code to scan, in the panel and for a projector
SERVE = "python -m streamlit run app.py --server.address 0.0.0.0"
POLL = 3  # seconds between two looks of a waiting browser


def _shared_classes() -> Classes:
    """In a file, so that a class may be spread over several processes of the app."""
    return _open_classes(str(page_context.RUNS / "jobs" / "classes.sqlite"))


@cached_resource(1)
def _open_classes(file: str) -> Classes:
    return Classes(Path(file))


def read_class() -> None:
    """What the address says of a class; stays for the visit and in the address. Called by the frame before any widget."""
    key, code = st.query_params.get(page_context.TEACH), st.query_params.get(page_context.CLASS)
    if key is not None and re.fullmatch(r"[A-Za-z0-9_-]{16}", key):
        st.session_state[KEY], code = key, classes.new_class_code(key)
    if code is not None:
        code = code.strip().upper()
        st.session_state[WRONG_CODE] = None if classes.is_code(code) else code
        st.session_state[CODE] = code if classes.is_code(code) else None
    if st.session_state.get(CODE):
        st.query_params[page_context.CLASS] = st.session_state[CODE]
        if st.session_state.get(KEY):
            st.query_params[page_context.TEACH] = st.session_state[KEY]
    else:
        st.query_params.pop(page_context.CLASS, None)
        st.query_params.pop(page_context.TEACH, None)


def class_code() -> str | None:
    """The code of the class this visitor is in."""
    return st.session_state.get(CODE)


def is_teacher() -> bool:
    return bool(st.session_state.get(KEY))


def show_class_panel() -> None:
    """In the sidebar: open a class, its code and link, the lesson, the worksheet, presenter mode, and starting over."""
    code, name = class_code(), "Class"
    if wrong_code := st.session_state.get(WRONG_CODE):
        st.warning(
            f"{page_context.quote_code(wrong_code)} is not the code of a class. A code has {classes.LENGTH} letters or digits."
        )
    label = f"{name} {code}" if code else name
    with st.expander(label, icon=":material/groups:", key=PANEL, on_change="rerun"):  # a link that closes a popover leads nowhere
        if not code:
            st.write(TEXT("open"))
            place_button("Open a class", "class_open", _open_class, icon="add")
        else:
            _show_invitation(code)
            place_button("Leave the class", "class_leave", _leave_class, icon="logout")
        if is_teacher() or not (code or control_locks.is_holding()):  # a pupil does not see the answers
            presenter_mode.show_presenter_switch()
            place_button(
                "Plan and answers", "class_lesson", st.session_state.update, {PLANNED: True, PANEL: False}, icon="menu_book"
            )
        filled_worksheet = lesson.fill_worksheet()
        st.download_button(
            "Worksheet to print",
            lambda: worksheet.worksheet_html(filled_worksheet),
            "elastic-worksheet.html",
            "text/html",
            key="class_sheet",
            on_click=_confirm_download,
            icon=":material/print:",
            help="The tour on paper, with the 4 × 4, the times and the names of this view.",
        )
        place_button("Start over", "class_over", _start_over, icon="restart_alt", help="Forgets this visit, for the next pupil.")
    if st.session_state.pop(PLANNED, False):
        lesson.show_lesson()
    if st.session_state.pop(PROJECTED, False) and code:
        _show_large_code(code)


def _show_invitation(code: str) -> None:
    """The link for everybody, with a code to scan; where nobody else can reach it, how to change that."""
    link = _class_address(code)
    _show_visitor_count(code)
    st.write("The link for everybody:")
    st.code(link or _class_address(code, allow_local=True), language=None, wrap_lines=True)
    if link is None:
        if is_teacher():
            st.caption(TEXT("here only"))
            st.code(SERVE, language="bash", wrap_lines=True)
    else:
        st.image(invitation.qr_code(link, SMALL), caption="To scan with a phone", width=SMALL)
        place_button("Show it large", "class_large", st.session_state.update, {PROJECTED: True, PANEL: False}, icon="qr_code_2")
    if is_teacher():
        st.caption(TEXT("teacher"))


@st.fragment(run_every=POLL)
def _show_visitor_count(code: str) -> None:
    """Looks again by itself, as they come."""
    n_visitors = _shared_classes().count_visitor(code, _visitor_id())
    st.write(f"**{code}** · {n_visitors} {'visitor' if n_visitors == 1 else 'visitors'} so far, you among them.")


@st.dialog("Come into the class", width="large")
def _show_large_code(code: str) -> None:
    """The link and the code to scan, for a projector."""
    if link := _class_address(code):
        code_column, text_column = st.columns([1, 1], vertical_alignment="center")
        code_column.image(invitation.qr_code(link, LARGE), width=LARGE)
        text_column.title(code, anchor=False)
        text_column.subheader(page_context.escape_markdown(link), anchor=False)


def _confirm_download() -> None:
    st.toast(TEXT("sheet"), icon=":material/print:")


def count_bet(stop: int, step: Step, option: str | None) -> bool:
    """Counts a pupil's bet. True if the answer may be shown: outside a class, or when the teacher has released it."""
    code = class_code()
    if code is None:
        return True
    shared_classes = _shared_classes()
    shared_classes.count_visitor(code, _visitor_id())
    if option is not None and not is_teacher():
        shared_classes.place_bet(code, _visitor_id(), stop, step.options.index(option))
    _show_bet_counts(code, stop, step)
    return shared_classes.is_released(code, stop)


def is_answer_released(stop: int) -> bool:
    """Whether the teacher of this visitor's class shows the answer of a stop."""
    code = class_code()
    return code is not None and _shared_classes().is_released(code, stop)


def move_class(stop: int) -> None:
    """The teacher went to this stop."""
    if is_teacher():
        _shared_classes().set_teacher_stop(st.session_state[KEY], stop)


@st.fragment(run_every=POLL)
def _show_bet_counts(code: str, stop: int, step: Step) -> None:
    """How many have bet, and with the answer on what: before, others would follow the most. Looks again by itself."""
    shared_classes, is_released = _shared_classes(), _shared_classes().is_released(code, stop)
    counts, shown_state = (
        shared_classes.count_bets(code, stop, len(step.options)),
        st.session_state.get(OUT, (stop, is_released)),
    )
    st.session_state[OUT] = (stop, is_released)
    if GOES in st.session_state or (shown_state[0] == stop and shown_state[1] != is_released):
        st.rerun()  # the whole page: it goes elsewhere, or shows the answer
    bets_text = f"{sum(counts)} {'bet' if sum(counts) == 1 else 'bets'} in class {code}"
    release_text = "." if is_teacher() else ". You see the answer when your teacher shows it."
    suffix = ":" if is_released else release_text
    own_view = " · ".join(f"{option}: {n}" for option, n in zip(step.options, counts, strict=True))  # for who points at it
    st.markdown(f":material/groups: {bets_text}{suffix}", help=own_view if is_teacher() and not is_released else None)
    if is_released:
        bars = [(option, float(n), str(n)) for option, n in zip(step.options, counts, strict=True)]
        st.html(page_elements.bars_html(bars, f"Bets in class {code}", page_context.theme_palette().lit))
    if is_teacher():
        label = "Hide the answer again" if is_released else "Show the answer to the class"
        place_button(label, "class_release", _release_answer, stop, not is_released, icon="visibility")
    elif (teacher_stop := shared_classes.teacher_stop(code)) and teacher_stop != stop:
        shows_text = " and shows the answer" if shared_classes.is_released(code, teacher_stop) else ""
        label = f"Your teacher is at stop {teacher_stop}{shows_text}"
        place_button(label, "class_follow", _follow_teacher, icon="directions_walk")


def _follow_teacher() -> None:
    code = class_code()
    if code and (teacher_stop := _shared_classes().teacher_stop(code)):
        st.session_state[GOES] = teacher_stop


def take_requested_stop() -> int | None:
    """The stop that a visitor asked to be taken to, once."""
    teacher_stop = st.session_state.pop(GOES, None)
    return teacher_stop if teacher_stop and 1 <= teacher_stop <= len(STEPS) else None


def _release_answer(stop: int, is_released: bool) -> None:
    if is_teacher():
        _shared_classes().release_answer(st.session_state[KEY], stop, is_released)


def _open_class() -> None:
    st.session_state[KEY] = key = classes.new_key()
    st.session_state[CODE], st.session_state[WRONG_CODE], st.session_state[PANEL] = classes.new_class_code(key), None, True


def _leave_class() -> None:
    for name in (KEY, CODE, WRONG_CODE):
        st.session_state.pop(name, None)
    for name in (page_context.TEACH, page_context.CLASS):
        st.query_params.pop(name, None)


def _start_over() -> None:
    """A fresh visit on the same address; the class stays, and what the teacher's link holds."""
    values_to_keep = {name: st.session_state[name] for name in (KEY, CODE, ME, control_locks.HELD) if name in st.session_state}
    st.session_state.clear()
    st.session_state.update(values_to_keep)
    st.query_params.clear()


def _visitor_id() -> str:
    """A name that only counts: made up for this visit."""
    return st.session_state.setdefault(ME, secrets.token_hex(8))


def _class_address(code: str, allow_local: bool = False) -> str | None:
    """The address for everybody, with the run and person in view; None where no other machine can reach it, but,
    with `allow_local`, what works on this one."""
    current_address = (st.context.url or "").split("?")[0]
    base = invitation.reachable_address(current_address, st.get_option("server.address")) or (
        current_address if allow_local else None
    )
    view = {name: value for name in ("run", "user") if (value := st.session_state.get(name) or st.query_params.get(name))}
    return None if base is None else f"{base}?{urlencode({page_context.CLASS: code, 'tour': 1, **view})}"
