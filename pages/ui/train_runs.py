"""The lower part of the Train page: all runs in a table, their curves together, and what one can take along."""

import json

import streamlit as st

from elastic_core.runs import EVENTS, Run
from elastic_core.services import presets, run_table
from pages.ui import shell
from pages.ui.train_live import curves

FORMATS = {"NDCG@10": "%.4f", "best valid": "%.4f", "used experts": "percent", "parameters": "localized", "seconds": "%.0f"}


def table(runs: list[Run]) -> None:
    st.header("Runs")
    if not runs:
        st.info("No run yet. The first one that you train appears here.")
        return
    st.caption(
        "NDCG@10 is of the test item, ranked against all unseen items, as a mean over the people in the next column. "
        "Differences of a few thousandths are within chance for about a thousand people."
    )
    formats = {name: st.column_config.NumberColumn(format=form) for name, form in FORMATS.items()}
    alt = "All runs: model, data, test result with the number of people, use of the experts, seconds and how each ended"
    st.dataframe(run_table.runs_table(runs), hide_index=True, column_config=formats, alt=alt, key="train_table")


def compare(runs: list[Run]) -> None:
    """Learning curves of the runs that the visitor picks."""
    trained = {run.name: run for run in runs if run.events("epoch")}
    if not trained:
        return
    st.subheader("Curves together")
    now: shell.Context | None = st.session_state.get(shell.CONTEXT)
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    first = [name for name in trained if now and name == now.run.name] or list(trained)[:1]
    chosen = left.multiselect("Runs to compare", list(trained), first, key="train_compare", max_selections=8)
    x = right.segmented_control("Along", ["epoch", "seconds"], default="epoch", required=True, key="train_along")
    if chosen:
        curves(run_table.curves([trained[name] for name in chosen]), "train_then", x)


def take_away(runs: list[Run]) -> None:
    """Use one run on every page, or take its files and its command along."""
    if not runs:
        return
    st.subheader("One run")
    by_name = {run.name: run for run in runs}
    now: shell.Context | None = st.session_state.get(shell.CONTEXT)
    first = list(by_name).index(now.run.name) if now and now.run.name in by_name else 0
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    run = by_name[left.selectbox("Run", list(by_name), first, key="train_pick")]
    right.button(
        "Use this run", key="train_use", on_click=shell.choose, args=(run.name,), help="Shows it on every page.", width="stretch"
    )
    config, events = json.dumps(run.config.to_dict(), indent=1), run.path / EVENTS
    with st.container(horizontal=True):
        st.download_button(
            "Configuration (JSON)", config, f"{run.name}.json", "application/json", key="train_get", on_click="ignore"
        )
        metrics = events.read_bytes() if events.exists() else b""
        st.download_button("Metrics (JSON lines)", metrics, f"{run.name}-metrics.jsonl", key="train_rows", on_click="ignore")
        table = run_table.metrics_csv([run])
        st.download_button("Curves (CSV)", table, f"{run.name}-curves.csv", "text/csv", key="train_csv", on_click="ignore")
    st.write("The command that trains it again, from the saved configuration:")
    st.code(presets.command(f"{run.name}.json", f"checkpoints/local-again-{run.name.removeprefix('local-')}"), language="bash")
