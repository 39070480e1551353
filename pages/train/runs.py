"""The lower part of the Train page: all runs in a table, their curves together, and what one can take along."""

import json

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import PREFIX, Trainings
from elastic_core.runs import EVENTS, Run, unreadable_runs
from elastic_core.services import public
from elastic_core.services.train import presets, run_table
from pages.components import cache, glossary, model_usage, page_context, page_elements, page_text
from pages.components.controls import choose_one, place_button
from pages.layout.sidebar import run_preference
from pages.train import charts

LAST_OUTCOME = "train_said"  # of a run that was to be deleted
FORMATS = {"NDCG@10": "%.4f", "best valid": "%.4f", "used experts": "percent", "parameters": "localized", "seconds": "%.0f"}
TEXT = page_text.load_page_text(__file__)
ABOUT = {name: TEXT.chart_text(name) for name in ("loss", "NDCG@10", "used")}
WIDTHS = {"run": 165, "model": 185, "data": 135}
FIRST = ["run", "NDCG@10", "model", "data", "people", "used experts", "seconds"]  # that fit; the table's menu has the others


def show_run_table(runs: list[Run]) -> None:
    st.header("Runs")
    page_elements.show_unreadable_folders(unreadable_runs(page_context.RUNS), "no run", "train_fault")
    if not runs:
        st.info(TEXT("none"))
        return
    st.caption(TEXT("table"))
    formats = {
        name: st.column_config.NumberColumn(format=form, help=glossary.METRICS.get(name)) for name, form in FORMATS.items()
    }
    formats |= {name: st.column_config.TextColumn(width=width) for name, width in WIDTHS.items()}
    alt = "All runs with model, data, test result, number of people, use of the experts and seconds"
    table = cache.runs_table(runs)
    st.dataframe(table, hide_index=True, column_config=formats, column_order=FIRST, alt=alt, key="train_table", placeholder="–")


def show_run_comparison(runs: list[Run]) -> None:
    """Learning curves of the runs that the visitor picks."""
    trained = {run.name: run for run in runs if run.events("epoch")}
    if not trained:
        return
    panel = st.expander("Curves side by side", icon=":material/show_chart:", on_change="rerun", key="train_curves")
    if panel.open:
        with panel:
            _show_curves(trained)


def _show_curves(trained: dict[str, Run]) -> None:
    context = page_context.current_context()
    left_column, right_column = st.columns([4, 1], vertical_alignment="bottom")
    first = [name for name in trained if context and name == context.run.name] or list(trained)[:1]
    chosen = left_column.multiselect(
        "Runs to compare", list(trained), first, key="train_compare", max_selections=8,
        format_func=lambda name: cache.label_run(trained[name]) if name in trained else name,
    )  # fmt: skip
    x = choose_one("Along", ["epoch", "seconds"], key="train_along", place=right_column)
    if chosen:
        frame = run_table.training_curves([trained[name] for name in chosen])
        palette = page_context.theme_palette()
        figures = {
            column: cache.cached_figure(charts.draw_curve, column, frame, palette, x) for column in charts.list_curves(frame)
        }
        for place, (column, figure) in zip(st.columns(len(figures)), figures.items(), strict=True):
            with place:
                table = frame[["run", "epoch", "seconds", *charts.COLUMNS[column]]]
                page_elements.show_chart(
                    f"train_then_{column}", figure, table, ABOUT[column], charts.describe_curve(column, frame)
                )


def show_model_usage(runs: list[Run]) -> None:
    """Use one run in one's own code, on every page, or take its files and its command along."""
    if not runs:
        return
    with st.expander("Use a model", icon=":material/rocket_launch:"):
        _show_one_run(runs)
    if LAST_OUTCOME in st.session_state:
        done, text = st.session_state.pop(LAST_OUTCOME)
        (st.success if done else st.error)(text)


def _show_one_run(runs: list[Run]) -> None:
    by_name = {run.name: run for run in runs}
    context = page_context.current_context()
    first = list(by_name).index(context.run.name) if context and context.run.name in by_name else 0
    left_column, right_column = st.columns([4, 1], vertical_alignment="bottom")
    run = by_name[
        left_column.selectbox("Run", list(by_name), first, lambda name: cache.label_run(by_name[name]), key="train_pick")
    ]
    place_button(
        "Show it", "train_use", page_context.select_run, run.name, place=right_column, help="On every page", width="stretch"
    )
    model_usage.show_model_usage(
        run, *((context.dataset, context.user) if context and context.run.config.data == run.config.data else ())
    )
    st.markdown("**Its files**")
    events = run.path / EVENTS
    files = {
        "Configuration (JSON)": (".json", json.dumps(run.config.to_dict(), indent=1)),
        "Metrics (JSON lines)": ("-metrics.jsonl", events.read_bytes() if events.exists() else b""),
        "Curves (CSV)": ("-curves.csv", run_table.training_curves([run]).to_csv(index=False)),
    }
    with page_elements.place_in_row("top"):
        for name, (end, content) in files.items():
            st.download_button(name, content, f"{run.name}{end}", key=f"train_file{end}", on_click="ignore")
        if run.name.startswith(PREFIX) and not public.is_public():
            with st.popover("Delete", icon=":material/delete:", key="train_ask"):
                place_button(
                    f"Delete {page_context.escape_markdown(run.name)} for good",
                    "train_gone",
                    _delete_run,
                    run.name,
                    runs,
                    type="primary",
                )
    st.caption("This command trains it again:")
    st.code(presets.retrain_command(run), language="bash", wrap_lines=True)


def _delete_run(name: str, known: list[Run]) -> None:
    """Who is looking at it looks at the run next that the app would open with."""
    context = page_context.current_context()
    try:
        Trainings(page_context.RUNS).delete_run(name)
    except InputError as error:
        st.session_state[LAST_OUTCOME] = (False, f"{page_context.escape_markdown(error)}.")
        return
    st.session_state[LAST_OUTCOME] = (True, f"{page_context.escape_markdown(name)} is deleted.")
    if context is not None and context.run.name == name:
        page_context.select_run(
            min((other for other in known if other.name != name), key=run_preference).name if len(known) > 1 else ""
        )
