"""Which moment and which version the journey page looks at. The address holds both; trees too large for it stay in the session.

Every act goes through `do`, `undo` or `go` in a widget's callback: it makes another tree and writes its short code into the
bound text box `jrn_edits`, from which the next rerun reads it, as a fresh visitor's first run does.
"""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey import versions
from elastic_core.services.journey.text import LONGEST_CODE, decode, from_json, short
from elastic_core.services.journey.versions import Cut, Edit, Tree
from elastic_core.text import number as whole
from pages.frame import shell
from pages.frame.shell import Context
from pages.kit import handed
from pages.kit.control import bound

MOMENT, CODE = "jrn_t", "jrn_edits"
BASE, TREES, NOW, SAID = "jrn_base", "jrn_trees", "jrn_now", "jrn_said"
MOST_TREES = 16


def settle(now: Context) -> int:
    """The last moment of this person. Another person starts at it; a moment they do not have is said and replaced."""
    last, known = len(now.dataset.histories.of(now.user)) - 1, st.session_state.get(BASE)
    asked = st.session_state.get(MOMENT, st.query_params.get(MOMENT))
    fits = asked is None or 1 <= (whole(asked) or 0) <= last
    if handed.waiting(now, handed.JOURNEY):
        st.session_state[MOMENT] = last
    elif known is not None and (known.data, known.user) != (now.dataset.hash, now.user):
        st.session_state[MOMENT] = st.session_state.pop("jrn_wanted_t", last)
    elif not fits:
        say(f"This person has no moment {shell.quoted(asked)} (1 to {last}). So you see the last one.")
        st.session_state[MOMENT] = last
    return last


def code_box(now: Context, moment: int) -> Tree:
    """The bound box with the edits as a code, and the tree it stands for."""
    fresh, trees = versions.start(now.dataset, now.user, moment), st.session_state.setdefault(TREES, {})
    kept = trees.get(fresh.base)
    if st.session_state.get(BASE) not in (None, fresh.base):
        st.session_state[CODE] = short(kept) if kept else ""
    if (found := handed.take(now, handed.JOURNEY)) is not None:
        kept = _handed(kept or fresh, found)
        trees[fresh.base] = kept
        st.session_state[CODE] = short(kept)
    st.session_state[BASE] = fresh.base
    help_ = "Also in the address. Paste a code to see its versions."
    code = bound(st.text_input, "Edits as a code", key=CODE, called="Edits", max_chars=LONGEST_CODE, help=help_).strip()
    if kept is None or short(kept) != code:
        try:
            kept = decode(code, fresh)
        except InputError as error:
            say(f"The edits in the address cannot be used: {shell.plain(error)}. You see the history as it was.")
            kept = fresh
        if kept.current and handed.last(now) is None:
            _give(kept)  # an address brought them
        trees[fresh.base] = kept
        while len(trees) > MOST_TREES:
            trees.pop(next(iter(trees)))
    st.session_state[NOW] = kept
    return kept


def _handed(tree: Tree, found: handed.Edited) -> Tree:
    """What was done to this person on another screen, as a version of its own."""
    if found.silenced:
        say(f"On Start, expert {', '.join(map(str, found.silenced))} was silenced. Here all experts work.")
    tree, gone = tree.go(0), sorted(found.removed or ())
    stops = [place + 1 for place in gone if place + 1 not in gone]
    starts = [place for place in gone if place - 1 not in gone]
    for stretch in reversed([*map(Cut, starts, stops)]):  # from the end, so that places stay what they are
        tree = tree.then(stretch)
    return tree


def _give(tree: Tree) -> None:
    """Tells Start which events of the whole history this version took away; None where it is another version."""
    now, here = shell.context(), tree.here
    whole_history = tree.base.events == len(now.dataset.histories.of(now.user)) - 1
    only_cut = bool(here.items) and not (here.own or here.added or here.moved)
    if whole_history or tree.current:
        gone = tuple(sorted(set(range(len(tree.original))) - set(here.origins)))
        handed.give(now, handed.JOURNEY, gone if only_cut and whole_history else None)


def say(sentence: str) -> None:
    """To be read at the top of the page, once."""
    st.session_state[SAID] = [*st.session_state.get(SAID, []), sentence]


def said() -> None:
    for sentence in dict.fromkeys(st.session_state.pop(SAID, [])):
        st.warning(sentence, icon=":material/info:")


def sentence(error: InputError) -> str:
    """What is wrong, as a sentence for a place that reads Markdown."""
    text = shell.plain(error)
    return f"{text[:1].upper()}{text[1:]}."


def do(edit: Edit) -> None:
    """For callbacks: a new version."""
    try:
        _keep(st.session_state[NOW].then(edit))
    except InputError as error:
        say(sentence(error))


def undo() -> None:
    _keep(st.session_state[NOW].undo())


def go(number: int) -> None:
    _keep(st.session_state[NOW].go(number))


def reach(moment: int) -> None:
    """For callbacks: read up to this event."""
    st.session_state[MOMENT] = moment


def load(now: Context, text: bytes) -> None:
    """For callbacks: the versions of a file, and its person and moment with them."""
    try:
        tree = from_json(now.dataset, text)
    except InputError as error:
        say(f"The file was not loaded: {shell.plain(error)}.")
        return
    user, events = tree.base.user, tree.base.events
    if user != now.user:
        if shell.locked("user"):
            say(f"The file was not loaded: it is about person {user + 1}, and this link shows only person {now.user + 1}.")
            return
        shell.meet(user, keep_expert=False)
        st.session_state["jrn_wanted_t"] = events
    reach(events)
    _keep(tree)


def _keep(tree: Tree) -> None:
    st.session_state.setdefault(TREES, {})[tree.base] = tree
    st.session_state[CODE] = short(tree)
    _give(tree)
