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
from pages.components import control_locks, page_context, page_text, presenter_mode
from pages.components.cache import cached_resource
from pages.components.controls import place_button
from pages.tour import lesson, worksheet
from pages.tour.steps import STEPS, Step

CODE, KEY, ME, SAID = "class_code", "class_key", "class_me", "class_said"
OUT, GOES = "class_out", "class_goes"
PANEL, PLANNED, PROJECTED = "class_panel", "class_planned", "class_projected"  # opened by a press, once; below an open panel
TEXT = page_text.load_page_text(__file__)
SMALL, LARGE = 200, 520  # pixels of the code to scan, in the panel and for a projector
SERVE = "python -m streamlit run app.py --server.address 0.0.0.0"
POLL = 3  # seconds between two looks of a waiting browser


def _classes() -> Classes:
    """In a file, so that a class may be spread over several processes of the app."""
    return _open_classes(str(page_context.RUNS / "jobs" / "classes.sqlite"))


@cached_resource(1)
def _open_classes(file: str) -> Classes:
    return Classes(Path(file))


def read() -> None:
    """What the address says of a class; stays for the visit and in the address. Called by the frame before any widget."""
    key, code = st.query_params.get(page_context.TEACH), st.query_params.get(page_context.CLASS)
    if key is not None and re.fullmatch(r"[A-Za-z0-9_-]{16}", key):
        st.session_state[KEY], code = key, classes.new_class_code(key)
    if code is not None:
        code = code.strip().upper()
        st.session_state[SAID] = None if classes.is_code(code) else code
        st.session_state[CODE] = code if classes.is_code(code) else None
    if st.session_state.get(CODE):
        st.query_params[page_context.CLASS] = st.session_state[CODE]
        if st.session_state.get(KEY):
            st.query_params[page_context.TEACH] = st.session_state[KEY]
    else:
        st.query_params.pop(page_context.CLASS, None)
        st.query_params.pop(page_context.TEACH, None)


def code() -> str | None:
    """The code of the class this visitor is in."""
    return st.session_state.get(CODE)


def teaches() -> bool:
    return bool(st.session_state.get(KEY))


def panel() -> None:
    """In the sidebar: open a class, its code and link, the lesson, the worksheet, presenter mode, and starting over."""
    inside, name = code(), "Class"
    if wrong := st.session_state.get(SAID):
        st.warning(f"{page_context.quote_code(wrong)} is no code of a class: a code has {classes.LENGTH} letters or digits.")
    label = f"{name} {inside}" if inside else name
    with st.popover(label, icon=":material/groups:", key=PANEL, width="stretch", on_change="rerun"):
        if not inside:
            st.write(TEXT("open"))
            place_button("Open a class", "class_open", _open, icon="add")
        else:
            _invite(inside)
            place_button("Leave the class", "class_leave", _leave, icon="logout")
        if teaches() or not inside:  # a pupil does not see the answers
            presenter_mode.show_presenter_switch()
            place_button(
                "Plan and answers", "class_lesson", st.session_state.update, {PLANNED: True, PANEL: False}, icon="menu_book"
            )
        sheet = lesson.sheet()
        st.download_button(
            "Worksheet to print", lambda: worksheet.html(sheet), "elastic-worksheet.html", "text/html", key="class_sheet",
            on_click=_taken, icon=":material/print:", help="The tour on paper, with the 4 × 4, times and names of this view.",
        )  # fmt: skip
        place_button("Start over", "class_over", _over, icon="restart_alt", help="Forgets all of this visit, for the next pupil.")
    if st.session_state.pop(PLANNED, False):
        lesson.show()
    if st.session_state.pop(PROJECTED, False) and inside:
        _projected(inside)


def _invite(inside: str) -> None:
    """The link for everybody, with a code to scan; where nobody else can reach it, how to change that."""
    here, link = _classes().come(inside, _me()), _link(inside)
    st.write(f"**{inside}** · {here} {'visitor' if here == 1 else 'visitors'} so far. The link for everybody:")
    st.code(link or _link(inside, anyhow=True), language=None, wrap_lines=True)
    if link is None:
        if teaches():
            st.caption(TEXT("here only"))
            st.code(SERVE, language="bash", wrap_lines=True)
    else:
        st.image(invitation.qr_code(link, SMALL), caption="To scan with a phone", width=SMALL)
        place_button("Show it large", "class_large", st.session_state.update, {PROJECTED: True, PANEL: False}, icon="qr_code_2")
    if teaches():
        st.caption(TEXT("teacher"))


@st.dialog("Come into the class", width="large")
def _projected(inside: str) -> None:
    """The link and the code to scan, for a projector."""
    if link := _link(inside):
        left, right = st.columns([1, 1], vertical_alignment="center")
        left.image(invitation.qr_code(link, LARGE), width=LARGE)
        right.title(inside, anchor=False)
        right.subheader(page_context.escape_markdown(link), anchor=False)


def _taken() -> None:
    st.toast(TEXT("sheet"), icon=":material/print:")


def bet(stop: int, step: Step, chosen: str | None) -> bool:
    """Counts a pupil's bet. True if the answer may be shown: outside a class, or when the teacher has released it."""
    inside = code()
    if inside is None:
        return True
    shared = _classes()
    shared.come(inside, _me())
    if chosen is not None and not teaches():
        shared.bet(inside, _me(), stop, step.options.index(chosen))
    _tally(inside, stop, step)
    return shared.released(inside, stop)


def lead(stop: int) -> None:
    """The teacher went to this stop."""
    if teaches():
        _classes().lead(st.session_state[KEY], stop)


@st.fragment(run_every=POLL)
def _tally(inside: str, stop: int, step: Step) -> None:
    """How many have bet, and with the answer on what: before, others would follow the most. Looks again by itself."""
    shared, out = _classes(), _classes().released(inside, stop)
    counts, before = shared.counts(inside, stop, len(step.options)), st.session_state.get(OUT, (stop, out))
    st.session_state[OUT] = (stop, out)
    if GOES in st.session_state or (before[0] == stop and before[1] != out):
        st.rerun()  # the whole page: it goes elsewhere, or shows the answer
    many = f"{sum(counts)} {'bet' if sum(counts) == 1 else 'bets'} in class {inside}"
    later = "." if teaches() else ". The answer comes when your teacher shows it."
    told = ": " + " · ".join(f"{o} **{n}**" for o, n in zip(step.options, counts, strict=True)) if out else later
    st.markdown(f":material/groups: {many}{told}")
    if teaches():
        label = "Hide the answer again" if out else "Show the answer to the class"
        place_button(label, "class_release", _release, stop, not out, icon="visibility")
    elif (there := shared.leads(inside)) and there != stop:
        place_button(f"Your teacher is at stop {there}", "class_follow", _follow, icon="directions_walk")


def _follow() -> None:
    inside = code()
    if inside and (there := _classes().leads(inside)):
        st.session_state[GOES] = there


def going() -> int | None:
    """The stop that a visitor asked to be taken to, once."""
    there = st.session_state.pop(GOES, None)
    return there if there and 1 <= there <= len(STEPS) else None


def _release(stop: int, out: bool) -> None:
    if teaches():
        _classes().release(st.session_state[KEY], stop, out)


def _open() -> None:
    st.session_state[KEY] = key = classes.new_key()
    st.session_state[CODE], st.session_state[SAID], st.session_state[PANEL] = classes.new_class_code(key), None, True


def _leave() -> None:
    for name in (KEY, CODE, SAID):
        st.session_state.pop(name, None)
    for name in (page_context.TEACH, page_context.CLASS):
        st.query_params.pop(name, None)


def _over() -> None:
    """A fresh visit on the same address; the class stays, and what the teacher's link holds."""
    kept = {name: st.session_state[name] for name in (KEY, CODE, ME, control_locks.HELD) if name in st.session_state}
    st.session_state.clear()
    st.session_state.update(kept)
    st.query_params.clear()


def _me() -> str:
    """A name that only counts: made up for this visit."""
    return st.session_state.setdefault(ME, secrets.token_hex(8))


def _link(inside: str, anyhow: bool = False) -> str | None:
    """The address for everybody, with the run and person in view; None where no other machine can reach it, but, `anyhow`, what
    works on this one."""
    seen = (st.context.url or "").split("?")[0]
    base = invitation.reachable_address(seen, st.get_option("server.address")) or (seen if anyhow else None)
    view = {name: value for name in ("run", "user") if (value := st.session_state.get(name) or st.query_params.get(name))}
    return None if base is None else f"{base}?{urlencode({page_context.CLASS: inside, 'tour': 1, **view})}"
