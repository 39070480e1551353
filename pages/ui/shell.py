"""The frame of every page: which run and which person, bound to the address, and the one way for pages to ask for them."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.data.histories import Split
from elastic_core.errors import InputError
from elastic_core.models.registry import Recommender
from elastic_core.runs import Run, list_runs
from pages.ui import cache

RUNS = Path(__file__).resolve().parents[2] / "checkpoints"
CONTEXT, WANTED, NOTICE = "shell_context", "shell_wanted_run", "shell_notice"


@dataclass(frozen=True)
class Context:
    """What a page is about. All parts are shared between sessions and read-only."""

    run: Run
    dataset: Dataset
    model: Recommender
    user: int  # dense, from 0; people see `user + 1`
    split: Split = "test"


def context() -> Context:
    """What the sidebar says. A page that cannot have it says why and stops."""
    chosen: Context | None = st.session_state.get(CONTEXT)
    if chosen is None:
        st.info("This page needs a trained run, and none could be opened. Train one first, or open the start page.")
        st.stop()
    return chosen


def choose(run_name: str) -> None:
    """Make this the chosen run from the next rerun on."""
    st.session_state[WANTED] = run_name


def meet(user: int) -> None:
    """Make this (dense number, from 0) the chosen person. For widget callbacks."""
    st.session_state["user"] = user + 1


def surprise() -> None:
    """Choose a person at random. For widget callbacks."""
    meet(random.randrange(context().dataset.histories.n_users))


def link(**more: str | int) -> str:
    """The full address of this view, defaults written out."""
    now = context()
    return f"{st.context.url or ''}?{urlencode({'run': now.run.name, 'user': now.user + 1, **more})}"


def sidebar() -> None:
    """The widgets of the frame. Called by app.py on every rerun, before the page."""
    asked_run, asked_user = _asked("run"), _asked("user")
    runs = {run.name: run for run in sorted(list_runs(RUNS), key=_preference)}
    place = st.empty()
    chosen, problems = _open(runs, asked_run, _teller(place))
    place.empty()
    st.session_state[CONTEXT] = None
    if chosen is None:
        st.sidebar.warning("No trained run can be opened. " + " ".join(problems))
        return
    run, data, model = chosen
    with st.sidebar:
        _run_box(runs, run, problems)
        user = _user_box(run, data, model, asked_user, problems)
        st.session_state[CONTEXT] = Context(run, data, model, user)
        with st.popover("Copy link", icon=":material/link:", width="stretch"):
            st.write("This address opens the same run and the same person.")
            st.code(link(), language=None, wrap_lines=True)
    _say(problems, run.name, user)


def describe(run: Run, data: Dataset) -> str:
    """What the run is and how good it is, with the protocol of the number."""
    name = {"elastic": "ELASTIC", "sasrec": "SASRec"}.get(run.config.model.name, run.config.model.name)
    test = run.last("test")
    if not test or "full" not in test.get("protocols", {}):
        return f"{name} on {data.label}; not tested yet"
    return f"{name} on {data.label}; test NDCG@10 {test['protocols']['full']['NDCG@10']:.3f}, ranked against all unseen items"


def plain(text: str) -> str:
    """Text from outside for a place that reads Markdown: it can neither format nor load anything."""
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~$:-])", r"\\\1", text)


def quoted(text: str) -> str:
    """What an address asked for, cut short and as code, where nothing turns into a link."""
    short = re.sub(r"[`\s]+", " ", text)[:40].strip()
    return f"`{short}`" if short else "without a name"


def is_dark() -> bool:
    return st.context.theme.type == "dark"


def _asked(key: str) -> str | None:
    """What session or address ask for, before Streamlit drops what it cannot use. Untrusted text."""
    if key in st.session_state:
        return str(st.session_state[key])
    return st.query_params.get(key)


def _preference(run: Run) -> tuple[bool | str, ...]:
    """Finished before unfinished, shipped before local, ELASTIC before others, real data before planted; unreadable last."""
    try:
        model, source = run.config.model.name, run.config.data.source
    except InputError:
        return True, True, True, True, True, run.name
    return False, run.last("test") is None, run.name.startswith("local-"), model != "elastic", source == "planted", run.name


def _open(
    runs: dict[str, Run], asked: str | None, tell: Callable[[str], None]
) -> tuple[tuple[Run, Dataset, Recommender] | None, list[str]]:
    """The run that was asked for, or the best other one, and why it is another. Drops from `runs` what cannot be opened."""
    problems: list[str] = []
    wanted = st.session_state.pop(WANTED, None) or asked
    if wanted and wanted not in runs:
        problems.append(f"There is no run called {quoted(wanted)} here.")
    for name in [wanted, *list(runs)]:
        run = runs.get(name or "")
        if run is None:
            continue
        try:
            data = cache.dataset(run.config.data, tell)
            opened = run, data, cache.opened(run, data)
        except InputError as error:
            problems.append(f"The run {run.name} cannot be shown: {plain(str(error))}.")
            del runs[run.name]
            continue
        if asked != run.name:
            st.session_state["run"] = run.name
        return opened, problems
    return None, problems


def _teller(place: "st.delta_generator.DeltaGenerator") -> Callable[[str], None]:
    """Shows what loading says while it goes on."""
    said: list[str] = []

    def tell(sentence: str) -> None:
        said.append(sentence)
        with place.container(border=True):
            st.markdown("**Getting the data ready.**")
            for line in said:
                st.write(plain(line))

    return tell


def _run_box(runs: dict[str, Run], run: Run, problems: list[str]) -> None:
    names = list(runs)
    st.selectbox("Trained run", names, key="run", bind="query-params", help="A model with its settings and weights.")
    data = cache.dataset(run.config.data, lambda sentence: None)
    st.caption(describe(run, data))
    for note in data.notes:
        st.caption(plain(note))


def _user_box(run: Run, data: Dataset, model: Recommender, asked: str | None, problems: list[str]) -> int:
    """The person's number from 1. What the address or an earlier run left may not exist here: then it says so."""
    people = data.histories.n_users
    default = cache.example(run, model, data) + 1
    if asked is not None and not (asked.isdecimal() and 1 <= int(asked) <= people):
        problems.append(f"There is no person {quoted(asked)} here (1 to {people}), so you see person {default}.")
        if "user" in st.session_state:
            st.session_state["user"] = default
    value = st.number_input(
        "Person", 1, people, default, key="user", bind="query-params", help=f"Any of the {people:,} people in the data."
    )
    st.button("Surprise me", icon=":material/casino:", on_click=surprise, width="stretch", help="Someone at random.")
    return int(value) - 1


def _say(problems: list[str], run: str, user: int) -> None:
    """Says what was replaced, until the visitor chooses something else."""
    if problems:
        st.session_state[NOTICE] = (" ".join(problems) + f" Showing the run {run}.", run, user)
    text, *about = st.session_state.get(NOTICE, ("", run, user))
    if text and about == [run, user]:
        st.warning(text, icon=":material/info:")
    else:
        st.session_state.pop(NOTICE, None)
