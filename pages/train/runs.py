"""The lower part of the Train page: all runs in a table, their curves together, and what one can take along."""

import json

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.runs import EVENTS, Run, unreadable_runs
from elastic_core.services import public
from elastic_core.services.method import notes
from elastic_core.services.train import presets, run_table
from elastic_core.services.train.jobs import PREFIX, Jobs
from pages.frame import shell
from pages.frame.sidebar import preference
from pages.kit import cache, plot, unreadable, view
from pages.kit.control import one_of
from pages.kit.view import About
from pages.train import charts

SAID = "train_said"  # of a run that was to be deleted
FORMATS = {"NDCG@10": "%.4f", "best valid": "%.4f", "used experts": "percent", "parameters": "localized", "seconds": "%.0f"}
ABOUT = {
    "loss": About(
        "How fast does the model learn?",
        "Mean over an epoch’s batches: softmax over the catalogue or drawn rivals; without terms for the memory.",
        "Losses of other objectives or numbers of rivals are not comparable. A lower loss can rank worse.",
        r"-\log \frac{e^{s_\text{next}}}{\sum_j e^{s_j}}",
        "tests/test_trainer.py::test_sampled_softmax_tends_to_the_full_one",
    ),
    "NDCG@10": About(
        "Which run ranks better, and when did it stop getting better?",
        "Everybody’s validation item against all unmet ones, mean over people; weights of the best epoch are kept.",
        "The best of many epochs looks better than it is: quote the test.",
        r"\frac{1}{|U|}\sum_u \frac{[r_u \le 10]}{\log_2(1 + r_u)}",
        "tests/test_evaluate.py::test_metrics_match_a_loop_over_people",
    ),
    "used": About(
        "Does the memory stay alive while it trains?",
        "Solid: share of experts that anybody retrieves. Dotted: entropy of their loads, 100% if all carry the same.",
        "Used is not useful: Experts shows what each changes.",
        r"H = -\frac{1}{\log K}\sum_e p_e \log p_e",
        "tests/test_routing.py::test_a_random_router_lies_in_its_own_chance_band_and_a_collapsed_one_does_not",
    ),
}


def table(runs: list[Run]) -> None:
    st.header("Runs")
    unreadable.lines(unreadable_runs(shell.RUNS), "no run", "train_fault")
    if not runs:
        st.info("No run yet. The first one that you train appears here.")
        return
    st.caption("Test, against all unmet items. A few thousandths are within chance for about a thousand people.")
    formats = {name: st.column_config.NumberColumn(format=form, help=notes.WORDS.get(name)) for name, form in FORMATS.items()}
    alt = "All runs: model, data, test result with the number of people, use of the experts, seconds and how each ended"
    found = cache.runs_table(runs)
    order = ["run", "NDCG@10", *found.columns.drop(["run", "NDCG@10"])]  # what is asked first is seen on a phone, too
    st.dataframe(found, hide_index=True, column_config=formats, column_order=order, alt=alt, key="train_table", placeholder="–")


def compare(runs: list[Run]) -> None:
    """Learning curves of the runs that the visitor picks."""
    trained = {run.name: run for run in runs if run.events("epoch")}
    if not trained:
        return
    st.subheader("Curves together")
    now: shell.Context | None = st.session_state.get(shell.CONTEXT)
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    first = [name for name in trained if now and name == now.run.name] or list(trained)[:1]
    chosen = left.multiselect(
        "Runs to compare", list(trained), first, key="train_compare", max_selections=8,
        format_func=lambda name: cache.called(trained[name]) if name in trained else name,
    )  # fmt: skip
    x = one_of("Along", ["epoch", "seconds"], key="train_along", default="epoch", place=right)
    if chosen:
        frame = run_table.curves([trained[name] for name in chosen])
        palette = plot.palette(shell.is_dark())
        figures = {column: cache.drawn(charts.curve, column, frame, palette, x) for column in charts.shown(frame)}
        for place, (column, figure) in zip(st.columns(len(figures)), figures.items(), strict=True):
            with place:
                shown = frame[["run", "epoch", "seconds", *charts.COLUMNS[column]]]
                view.chart(f"train_then_{column}", figure, shown, ABOUT[column], charts.alt(column, frame))


def take_away(runs: list[Run]) -> None:
    """Use one run on every page, or take its files and its command along."""
    if not runs:
        return
    st.subheader("One run")
    by_name = {run.name: run for run in runs}
    now: shell.Context | None = st.session_state.get(shell.CONTEXT)
    first = list(by_name).index(now.run.name) if now and now.run.name in by_name else 0
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    run = by_name[left.selectbox("Run", list(by_name), first, lambda name: cache.called(by_name[name]), key="train_pick")]
    right.button("Use this run", key="train_use", on_click=shell.choose, args=(run.name,), help="On every page", width="stretch")
    config, events = json.dumps(run.config.to_dict(), indent=1), run.path / EVENTS
    with st.container(horizontal=True):
        st.download_button(
            "Configuration (JSON)", config, f"{run.name}.json", "application/json", key="train_get", on_click="ignore"
        )
        metrics = events.read_bytes() if events.exists() else b""
        st.download_button("Metrics (JSON lines)", metrics, f"{run.name}-metrics.jsonl", key="train_rows", on_click="ignore")
        table = run_table.metrics_csv([run])
        st.download_button("Curves (CSV)", table, f"{run.name}-curves.csv", "text/csv", key="train_csv", on_click="ignore")
        if run.name.startswith(PREFIX) and not public.on():
            with st.popover("Delete", icon=":material/delete:", key="train_ask"):
                st.button("Delete for good", key="train_gone", type="primary", on_click=_forget, args=(run.name, runs))
    if SAID in st.session_state:
        done, text = st.session_state.pop(SAID)
        (st.success if done else st.error)(text)
    st.caption("Trains it again, from the saved configuration:")
    command = presets.command(f"{run.name}.json", f"checkpoints/local-again-{run.name.removeprefix('local-')}")
    st.code(command, language="bash", wrap_lines=True)


def _forget(name: str, known: list[Run]) -> None:
    """Who is looking at it looks at the run next that the app would open with."""
    now: shell.Context | None = st.session_state.get(shell.CONTEXT)
    try:
        Jobs(shell.RUNS).remove(name)
    except InputError as error:
        st.session_state[SAID] = (False, f"{shell.plain(str(error))}.")
        return
    st.session_state[SAID] = (True, f"{shell.plain(name)} is deleted.")
    if now is not None and now.run.name == name:
        shell.choose(min((other for other in known if other.name != name), key=preference).name if len(known) > 1 else "")
