"""The sidebar of every page: run and person, behind *Teaching* the class, behind *More* the rest. It opens what was asked for,
and says when that is not there."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from elastic_core import machine
from elastic_core.data import Dataset
from elastic_core.data.source_catalog import PLANTED, at_hand
from elastic_core.errors import InputError
from elastic_core.models import Recommender, Retrieves, model_class
from elastic_core.run_config import DataConfig
from elastic_core.runs import Run, unreadable_runs
from elastic_core.services.person import inspect
from elastic_core.services.person.user_lookup import find_users, is_id, own_id
from elastic_core.text import number as whole
from pages.components import cache, locks, shell
from pages.components.cache import OpenRun
from pages.components.control import button, number, write_in_address
from pages.components.locks import locked
from pages.components.shell import Context, plain, quoted
from pages.layout import finding, worlds

NOTICE, MEANT, TEACHING = "shell_notice", "shell_meant", "shell_teach_panel"
WRITTEN = "shell_written"  # what this visit wrote into the address last, by control


def sidebar(read_class: Callable[[], None], begin_tour: Callable[[], None]) -> None:
    """The widgets of the frame. Called by navigation.py on every rerun, before the page. `read_class` takes from the address
    which class a visitor is in, `begin_tour` draws the button that starts the tour."""
    machine.one_thread_each()
    locks.read()
    read_class()
    asked = {key: _asked(key) for key in ("run", "vs", "user", "expert")}
    known = runs()
    chosen, problems = _open(known, asked["run"])
    st.session_state[shell.CONTEXT] = None
    if chosen is None:
        st.sidebar.warning("No trained run can be opened. " + " ".join(problems))
        return
    worlds.settle(chosen, asked)
    with st.sidebar:
        begin_tour()
        _run_box(known, chosen)
        user = _user_box(chosen, asked["user"], problems)
        st.session_state[TEACHING] = st.expander("Teaching", key="shell_teaching")
        more = st.expander("More", key="shell_more")
        with more:
            expert = _expert_box(chosen.model, asked["expert"], problems)
            meet = partial(shell.meet, keep_expert=False)
            finding.box(chosen.dataset, chosen.run.config.data, "find_who", meet, locked("user"))
            other = _other_box(known, chosen, asked["vs"], problems)
            st.caption(f"Folder: {quoted(chosen.run.name)}")
            for note in chosen.dataset.notes:
                st.caption(plain(note))
        st.session_state[shell.CONTEXT] = Context(chosen, user, expert, other)
        worlds.remember(chosen.dataset, user)
        locks.notice()
    _say(problems, chosen.run, user)


def runs() -> dict[str, Run]:
    """All that can be opened, the best first."""
    return {run.name: run for run in cache.runs(shell.RUNS, preference)}


def close(class_panel: Callable[[], None]) -> None:
    """The lower end of the sidebar. Called by navigation.py after the page, when the page has named its controls."""
    if st.session_state[shell.CONTEXT] is not None:
        locks.named()
        with st.session_state[TEACHING]:
            class_panel()
            locks.builder(shell.link())


def open_first() -> OpenRun | None:
    """Opens what the first visitor will see, if its data is on this machine. A failure is theirs to read, on the page."""
    machine.one_thread_each()
    run = next(iter(cache.runs(shell.RUNS, preference)), None)
    with suppress(InputError):
        if run is not None and at_hand(run.config.data.source):
            opened = cache.open_run(run, cache.dataset(run.config.data))
            cache.example(opened)
            if inspect.memory_size(opened.model):
                cache.traffic(opened)
                return opened
    return None


def _asked(key: str) -> str | None:
    """What session or address ask for, before Streamlit drops what it cannot use. Untrusted text. A run that the address has
    come to name by itself, as Back does, goes before the session's."""
    said = st.query_params.get(key)
    if key in ("run", "vs") and said is not None and said != st.session_state.get(WRITTEN, {}).get(key):
        return said
    if key in st.session_state:
        return str(st.session_state[key])
    return st.query_params.get(key)


def preference(run: Run) -> tuple[bool | int | str, ...]:
    """Finished first, shipped before local, with a memory before without, experts that were asked to stand for items before
    others, worlds with a known truth before real data, those of many interests first."""
    model, data = run.config.model, run.config.data
    local = run.name.startswith("local-")
    remembers = issubclass(model_class(model.name), Retrieves) and getattr(model, "memory", "") != "none"
    stand = remembers and getattr(model, "interest_weight", 0) > 0
    interests = data.planted.interests if data.source == PLANTED else 0
    return not run.last("test"), local, not remembers, not stand, -interests, run.name


def _open(runs: dict[str, Run], asked: str | None) -> tuple[OpenRun | None, list[str]]:
    """The run that was asked for, else the one that was open, else the best other one, and why it is another. Drops from `runs`
    what cannot be opened."""
    problems: list[str] = []
    lacking: list[DataConfig] = []  # data that cannot be had are said once, not for every run on them
    wanted = st.session_state.pop(shell.WANTED, None) or asked
    if wanted and wanted not in runs:
        fault = next((f for f in unreadable_runs(shell.RUNS) if wanted in (f.name, f.path.name)), None)
        if fault is not None:
            problems.append(f"The run {quoted(fault.name)} cannot be shown: {plain(fault.reason)}.")
        elif wanted in [run.name for run in cache.ranked_runs(shell.RUNS)]:
            again = f"`python -m elastic_core reproduce --only {wanted}` trains it again."
            problems.append(f"The weights of the run {quoted(wanted)} did not come along. {again}")
        else:
            problems.append(f"There is no run called {quoted(wanted)} here.")
    for name in [wanted, asked, *list(runs)]:
        run = runs.get(name or "")
        if run is None:
            continue
        try:
            if run.config.data in lacking:
                del runs[run.name]
                continue
            opened = cache.open_run(run, _dataset(run, lacking))
        except InputError as error:
            problems.append(f"The run {plain(cache.label(run))} cannot be shown: {plain(error)}.")
            del runs[run.name]
            continue
        if st.session_state.get("run") != run.name:
            st.session_state["run"] = run.name
        return opened, problems
    return None, problems


def _dataset(run: Run, lacking: list[DataConfig]) -> Dataset:
    try:
        return cache.dataset(run.config.data)
    except InputError:
        lacking.append(run.config.data)
        raise


def _run_box(runs: dict[str, Run], chosen: OpenRun) -> None:
    labels = cache.labels(shell.RUNS)  # a run that is gone is called by its folder
    st.selectbox(
        "Trained run", list(runs), key="run", format_func=lambda name: labels.get(name, str(name)),
        help="A model with its settings and weights.", disabled=locked("run"),
    )  # fmt: skip
    _write("run", chosen.run.name)
    said, graded = shell.describe(chosen.run, chosen.dataset)
    st.caption(said, help=graded)


def _write(key: str, name: str | None) -> None:
    """Puts a run into the address by its folder's name: bound to it, a list would write what people read."""
    write_in_address(key, name)
    st.session_state[WRITTEN] = {**st.session_state.get(WRITTEN, {}), key: name}


def _user_box(chosen: OpenRun, asked: str | None, problems: list[str]) -> int:
    """The person's number from 1. What the address or an earlier run left may not exist here: then it says so."""
    data, default = chosen.dataset, cache.example(chosen) + 1
    people = data.histories.n_users
    if MEANT in st.session_state:
        st.session_state["user"] = st.session_state.pop(MEANT)
    asked = _by_own_id(data, asked, problems)
    if asked is not None and not 1 <= (whole(asked) or 0) <= people:
        problems.append(f"There is no person {quoted(asked)} here (1 to {people}), so you see person {default}.")
        if "user" in st.session_state:
            st.session_state["user"] = default
    value = number(
        "Person", 1, people, default, key="user", help=f"1 to {people:,}.",
        on_change=shell.look_at, args=(None,),
    )  # fmt: skip
    if st.session_state.get(MEANT, value) != value:
        st.rerun()  # the box begins with what the address says; from the second run on it can be told
    st.session_state.pop(MEANT, None)
    if own_id(data, int(value) - 1):
        st.caption(f"Their id in the data: {quoted(own_id(data, int(value) - 1))}")
    button(
        "Surprise me", "shell_surprise", shell.surprise, icon="casino", width="stretch", help="Someone at random.",
        disabled=locked("user"),
    )  # fmt: skip
    return int(value) - 1


def _by_own_id(data: Dataset, asked: str | None, problems: list[str]) -> str | None:
    """`?who=u_8841`: a person by their id in the data, which holds where a number would not; then the number says it."""
    who = st.query_params.get(shell.WHO)
    if who is None:
        return asked
    del st.query_params[shell.WHO]
    found = [user for user in find_users(data, who) if is_id(data, user, who)]
    if not found:
        problems.append(f"Nobody here has the id {quoted(who)}.")
        return asked
    st.session_state[MEANT] = found[0] + 1
    return str(found[0] + 1)


def _expert_box(model: Recommender, asked: str | None, problems: list[str]) -> int | None:
    """The expert's number from 0, or nothing. Models without a memory have none."""
    size = inspect.memory_size(model)
    if not size:
        return None
    if asked not in (None, "None", "") and not _is_below(str(asked), size):
        problems.append(f"There is no expert {quoted(asked)} in this run (0 to {size - 1}).")
        shell.look_at(None)
    value = number(
        "Expert",
        0,
        size - 1,
        None,
        key="expert",
        placeholder="the person’s strongest",
        help=f"One of {size:,} in this run’s memory, the same on every page.",
    )
    return None if value is None else int(value)


def _is_below(text: str, size: int) -> bool:
    """Does Streamlit read a number from 0 to `size - 1` from this? It takes `1e1` for 10."""
    try:
        return float(text).is_integer() and 0 <= float(text) < size
    except (ValueError, OverflowError):
        return False


def _other_box(runs: dict[str, Run], chosen: OpenRun, asked: str | None, problems: list[str]) -> OpenRun | None:
    """A second run on the same data that opens, or none."""
    run = chosen.run
    names = [name for name, other in runs.items() if name != run.name and other.config.data == run.config.data]
    if asked not in (None, "None", "") and asked not in names:
        problems.append(f"There is no other run {quoted(asked)} on the same data to compare with.")
        st.session_state["vs"] = None
    elif asked in names and st.session_state.get("vs") != asked:
        st.session_state["vs"] = asked
    labels = cache.labels(shell.RUNS)
    value = st.selectbox(
        "Compare with", names, index=None, key="vs", placeholder="none", format_func=lambda name: labels.get(name, str(name)),
        help="A second run on the same data.", disabled=locked("vs"),
    )  # fmt: skip
    _write("vs", value)
    if not value:
        return None
    try:
        return cache.open_run(runs[value], chosen.dataset)
    except InputError as error:
        problems.append(f"The second run {plain(labels.get(value, value))} cannot be shown: {plain(error)}.")
        return None


def _say(problems: list[str], run: Run, user: int) -> None:
    """Says what was replaced, until the visitor chooses something else."""
    if problems:
        shown = f" Showing the run {plain(cache.label(run))}."
        st.session_state[NOTICE] = (" ".join(problems) + shown, run.name, user)
    text, *about = st.session_state.get(NOTICE, ("", run.name, user))
    if text and about == [run.name, user]:
        st.warning(text, icon=":material/info:")
    else:
        st.session_state.pop(NOTICE, None)
