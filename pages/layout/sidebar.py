"""The sidebar of every page: run and person, behind *Teaching* the class, behind *More* the rest. It opens what was asked for,
and says when that is not there."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from elastic_core import machine
from elastic_core.data import Dataset
from elastic_core.data.source_catalog import GROCERIES, PLANTED, at_hand
from elastic_core.errors import InputError
from elastic_core.models import Recommender, RetrievingModel, model_class
from elastic_core.run_config import DataConfig
from elastic_core.runs import Run, unreadable_runs
from elastic_core.services.person import inspect
from elastic_core.services.person.user_lookup import find_users, is_id, own_id
from elastic_core.text import parse_number
from pages.components import cache, control_locks, page_context
from pages.components.cache import OpenRun
from pages.components.control_locks import is_locked
from pages.components.controls import number_input, place_button, write_in_address
from pages.components.page_context import Context, escape_markdown, quote_code
from pages.layout import user_search, world_switch

NOTICE, MEANT, TEACHING = "shell_notice", "shell_meant", "shell_teach_panel"
WRITTEN = "shell_written"  # what this visit wrote into the address last, by control


def show_sidebar(read_class: Callable[[], None], begin_tour: Callable[[], None]) -> None:
    """The widgets of the frame. Called by navigation.py on every rerun, before the page. `read_class` takes from the address
    which class a visitor is in, `begin_tour` draws the button that starts the tour."""
    machine.prepare_to_serve()
    control_locks.read_locks()
    read_class()
    requested = {key: _requested_value(key) for key in ("run", "vs", "user", "expert")}
    known = runs_by_name()
    chosen, problems = _open_requested_run(known, requested["run"])
    st.session_state[page_context.CONTEXT] = None
    if chosen is None:
        st.sidebar.warning("No trained run can be opened. " + " ".join(problems))
        return
    world_switch.settle_user(chosen, requested)
    with st.sidebar:
        begin_tour()
        _run_box(known, chosen)
        user = _user_box(chosen, requested["user"], problems)
        meet = partial(page_context.select_user, keep_expert=False)
        user_search.show_search_box(chosen.dataset, chosen.run.config.data, "find_who", meet, is_locked("user"))
        st.session_state[TEACHING] = st.expander("Teaching", key="shell_teaching")
        more = st.expander("More", key="shell_more")
        with more:
            expert = _expert_box(chosen.model, requested["expert"], problems)
            other = _other_box(known, chosen, requested["vs"], problems)
            st.caption(f"Folder: {quote_code(chosen.run.name)}")
            for note in chosen.dataset.notes:
                st.caption(escape_markdown(note))
        st.session_state[page_context.CONTEXT] = Context(chosen, user, expert, other)
        world_switch.remember_user(chosen.dataset, user)
        control_locks.show_lock_notice(can_release=page_context.CLASS not in st.query_params)
    _show_problems(problems, chosen.run, user)


def runs_by_name() -> dict[str, Run]:
    """All that can be opened, the best first."""
    return {run.name: run for run in cache.list_openable_runs(page_context.RUNS, run_preference)}


def show_sidebar_end(class_panel: Callable[[], None]) -> None:
    """The lower end of the sidebar. Called by navigation.py after the page, when the page has named its controls."""
    if st.session_state[page_context.CONTEXT] is not None:
        control_locks.update_lock_notice()
        with st.session_state[TEACHING]:
            class_panel()
            code = st.query_params.get(page_context.CLASS)
            control_locks.show_link_builder(page_context.view_address(**({page_context.CLASS: code} if code else {})))


def open_default_run() -> OpenRun | None:
    """Opens what the first visitor will see, if its data is on this machine. A failure is theirs to read, on the page."""
    machine.prepare_to_serve()
    run = next(iter(cache.list_openable_runs(page_context.RUNS, run_preference)), None)
    with suppress(InputError):
        if run is not None and at_hand(run.config.data.source):
            opened = cache.open_run(run, cache.load_dataset(run.config.data))
            cache.example_user(opened)
            if inspect.memory_size(opened.model):
                cache.route_everybody(opened)
                return opened
    return None


def _requested_value(key: str) -> str | None:
    """What session or address ask for, before Streamlit drops what it cannot use. Untrusted text. A run that the address has
    come to name by itself, as Back does, goes before the session's; where neither names one, it is the run shown last, because
    an address loses its run when a page is left."""
    in_address, written = st.query_params.get(key), st.session_state.get(WRITTEN, {}).get(key)
    if key in ("run", "vs") and in_address is not None and in_address != written:
        return in_address
    if key in st.session_state:
        return str(st.session_state[key])
    return written if in_address is None else in_address


def run_preference(run: Run) -> tuple[bool | int | str, ...]:
    """Finished first, shipped before local, with a memory before without, experts that were asked to stand for items before
    others, real shoppers before made-up worlds, those of many interests first."""
    model, data = run.config.model, run.config.data
    local = run.name.startswith("local-")
    remembers = issubclass(model_class(model.name), RetrievingModel) and getattr(model, "memory", "") != "none"
    stand = remembers and getattr(model, "interest_weight", 0) > 0
    interests = data.planted.interests if data.source == PLANTED else 0
    return not run.last_event("test"), local, not remembers, not stand, data.source != GROCERIES, -interests, run.name


def _open_requested_run(runs: dict[str, Run], requested: str | None) -> tuple[OpenRun | None, list[str]]:
    """The run that was asked for, else the one that was open, else the best other one, and why it is another. Drops from `runs`
    what cannot be opened."""
    problems: list[str] = []
    lacking: list[DataConfig] = []  # data that cannot be had are said once, not for every run on them
    wanted = st.session_state.pop(page_context.WANTED, None) or requested
    if wanted and wanted not in runs:
        fault = next((f for f in unreadable_runs(page_context.RUNS) if wanted in (f.name, f.path.name)), None)
        if fault is not None:
            problems.append(f"The run {quote_code(fault.name)} cannot be shown: {escape_markdown(fault.reason)}.")
        elif wanted in [run.name for run in cache.ranked_runs(page_context.RUNS)]:
            again = f"`elastic reproduce --only {wanted}` trains it again."
            problems.append(f"The weights of the run {quote_code(wanted)} did not come along. {again}")
        else:
            problems.append(f"There is no run called {quote_code(wanted)} here.")
    for name in [wanted, requested, *list(runs)]:
        run = runs.get(name or "")
        if run is None:
            continue
        try:
            if run.config.data in lacking:
                del runs[run.name]
                continue
            opened = cache.open_run(run, _load_dataset(run, lacking))
        except InputError as error:
            problems.append(f"The run {escape_markdown(cache.label_run(run))} cannot be shown: {escape_markdown(error)}.")
            del runs[run.name]
            continue
        if st.session_state.get("run") != run.name:
            st.session_state["run"] = run.name
        return opened, problems
    return None, problems


def _load_dataset(run: Run, lacking: list[DataConfig]) -> Dataset:
    try:
        return cache.load_dataset(run.config.data)
    except InputError:
        lacking.append(run.config.data)
        raise


def _run_box(runs: dict[str, Run], chosen: OpenRun) -> None:
    labels = cache.label_runs(page_context.RUNS)  # a run that is gone is called by its folder
    st.selectbox(
        "Trained run", list(runs), key="run", format_func=lambda name: labels.get(name, str(name)),
        help="A model with its settings and weights.", disabled=is_locked("run"),
    )  # fmt: skip
    _write_run("run", chosen.run.name)
    sentence, graded = page_context.describe_quality(chosen.run, chosen.dataset)
    st.caption(sentence, help=graded)


def _write_run(key: str, name: str | None) -> None:
    """Puts a run into the address by its folder's name: bound to it, a list would write what people read."""
    write_in_address(key, name)
    st.session_state[WRITTEN] = {**st.session_state.get(WRITTEN, {}), key: name}


def _user_box(chosen: OpenRun, requested: str | None, problems: list[str]) -> int:
    """The person's number from 1. What the address or an earlier run left may not exist here: then it says so."""
    data, default = chosen.dataset, cache.example_user(chosen) + 1
    n_users = data.histories.n_users
    if MEANT in st.session_state:
        st.session_state["user"] = st.session_state.pop(MEANT)
    requested = _by_own_id(data, requested, problems)
    if requested is not None and not 1 <= (parse_number(requested) or 0) <= n_users:
        problems.append(f"There is no person {quote_code(requested)} here (1 to {n_users}), so you see person {default}.")
        if "user" in st.session_state:
            st.session_state["user"] = default
    value = number_input(
        "Person", 1, n_users, default, key="user", help=f"1 to {n_users:,}.",
        on_change=page_context.select_expert, args=(None,),
    )  # fmt: skip
    if st.session_state.get(MEANT, value) != value:
        st.rerun()  # the box begins with what the address says; from the second run on it can be told
    st.session_state.pop(MEANT, None)
    if own_id(data, int(value) - 1):
        st.caption(f"Their id in the data: {quote_code(own_id(data, int(value) - 1))}")
    place_button(
        "Surprise me",
        "shell_surprise",
        page_context.select_random_user,
        icon="casino",
        width="stretch",
        help="Someone at random.",
        disabled=is_locked("user"),
    )
    return int(value) - 1


def _by_own_id(data: Dataset, requested: str | None, problems: list[str]) -> str | None:
    """`?who=u_8841`: a person by their id in the data, which holds where a number would not; then the number says it."""
    own_id = st.query_params.get(page_context.OWN_ID_PARAMETER)
    if own_id is None:
        return requested
    del st.query_params[page_context.OWN_ID_PARAMETER]
    matches = [user for user in find_users(data, own_id) if is_id(data, user, own_id)]
    if not matches:
        problems.append(f"Nobody here has the id {quote_code(own_id)}.")
        return requested
    st.session_state[MEANT] = matches[0] + 1
    return str(matches[0] + 1)


def _expert_box(model: Recommender, requested: str | None, problems: list[str]) -> int | None:
    """The expert's number from 0, or nothing. Models without a memory have none."""
    size = inspect.memory_size(model)
    if not size:
        return None
    if requested not in (None, "None", "") and not _is_below(str(requested), size):
        problems.append(f"There is no expert {quote_code(requested)} in this run (0 to {size - 1}).")
        page_context.select_expert(None)
    value = number_input(
        "Expert",
        0,
        size - 1,
        None,
        key="expert",
        placeholder="this person’s strongest",
        help=f"One of {size:,} in this run’s memory, the same on every page.",
    )
    return None if value is None else int(value)


def _is_below(text: str, size: int) -> bool:
    """Does Streamlit read a number from 0 to `size - 1` from this? It takes `1e1` for 10."""
    try:
        return float(text).is_integer() and 0 <= float(text) < size
    except (ValueError, OverflowError):
        return False


def _other_box(runs: dict[str, Run], chosen: OpenRun, requested: str | None, problems: list[str]) -> OpenRun | None:
    """A second run on the same data that opens, or none."""
    run = chosen.run
    names = [name for name, other in runs.items() if name != run.name and other.config.data == run.config.data]
    if requested not in (None, "None", "") and requested not in names:
        problems.append(f"There is no other run {quote_code(requested)} on the same data to compare with.")
        st.session_state["vs"] = None
    elif requested in names and st.session_state.get("vs") != requested:
        st.session_state["vs"] = requested
    labels = cache.label_runs(page_context.RUNS)
    value = st.selectbox(
        "Compare with", names, index=None, key="vs", placeholder="none", format_func=lambda name: labels.get(name, str(name)),
        help="A second run on the same data.", disabled=is_locked("vs"),
    )  # fmt: skip
    _write_run("vs", value)
    if not value:
        return None
    try:
        return cache.open_run(runs[value], chosen.dataset)
    except InputError as error:
        problems.append(f"The second run {escape_markdown(labels.get(value, value))} cannot be shown: {escape_markdown(error)}.")
        return None


def _show_problems(problems: list[str], run: Run, user: int) -> None:
    """Says what was replaced, until the visitor chooses something else."""
    if problems:
        note = f" Showing the run {escape_markdown(cache.label_run(run))}."
        st.session_state[NOTICE] = (" ".join(problems) + note, run.name, user)
    text, *about = st.session_state.get(NOTICE, ("", run.name, user))
    if text and about == [run.name, user]:
        st.warning(text, icon=":material/info:")
    else:
        st.session_state.pop(NOTICE, None)
