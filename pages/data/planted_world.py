"""The third part of the Data page: plant a world whose truth is known, keep it, and score experts against it."""

import json
from dataclasses import asdict

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.data.source_catalog import PLANTED
from elastic_core.errors import InputError
from elastic_core.memory.recovery import MOST_USERS
from elastic_core.run_config import PlantedConfig
from elastic_core.services.data import cards
from elastic_core.services.evidence import meaning
from pages.components import cache, expert_meaning, page_context, page_elements, page_text
from pages.components.controls import bind_widget, number_input, place_button
from pages.data import cached, charts, upload

START = PlantedConfig(users=1_000, items=400, interests=12, mean_length=60)
WHOLE_NUMBERS = (
    ("users", "People", 50, 5_000, 50, ""),
    ("items", "Items", 40, 2_000, 20, "At least four for each interest"),
    ("interests", "Interests", 2, 32, 1, "Groups of items, each with its own order"),
    ("interests_per_user", "Interests a person", 1, 8, 1, "With more of them, two people share more"),
    ("mean_length", "Mean length", 8, 200, 4, "The mean length of a history; a few are much longer"),
    ("seed", "Seed", 0, 10_000, 1, "Another seed draws another world of the same kind"),
)
SHARES = (
    ("popularity", "Skew of popularity", 2.0, "0: all items are alike; 1: Zipf’s law"),
    ("noise", "Noise", 1.0, "The part of the events that follows no interest"),
    ("determinism", "Order", 1.0, "How often an interest goes on with one of three known next items"),
    ("drift", "Drift", 1.0, "The chance, at each event, that tastes change"),
)
TEXT = page_text.load_page_text(__file__)
BLOCKS, PATH, GAPS = map(TEXT.chart_text, ("BLOCKS", "PATH", "GAPS"))
SCORE = page_text.parse_chart_text(TEXT("SCORE", people=f"{MOST_USERS:,}"))


def show_planted_world() -> None:
    st.write(TEXT("world"))
    config = _choose_rules()
    try:
        data = cached.draw_world(config)
    except InputError as error:
        st.error(f"This world cannot be drawn: {page_context.escape_markdown(error)}.")
    else:
        _show_truth(data)
        with page_elements.place_in_row():
            if not page_context.is_switched_off("upload"):
                place_button(
                    "Keep this world", "dat_plant", _store_world, config, icon="save", type="primary",
                    help="The Train page then offers it as data.",
                )  # fmt: skip
            text = json.dumps(asdict(config), indent=1)
            st.download_button("Rules (JSON)", text, "planted.json", "application/json", key="dat_rules", on_click="ignore")
    upload.show_last_outcome()
    upload.show_stored_data()
    _show_scores()


def _choose_rules() -> PlantedConfig:
    values: dict[str, int | float] = {}
    places = st.columns(5)
    for i, (name, label, lowest, highest, step, about) in enumerate(WHOLE_NUMBERS):
        values[name] = number_input(
            label, lowest, highest, getattr(START, name), step, key=f"dat_{name}", place=places[i % 5], help=about or None
        )
    for i, (name, label, share_high, about) in enumerate(SHARES):
        values[name] = bind_widget(
            places[(i + 1) % 5].slider,
            label,
            0.0,
            share_high,
            float(getattr(START, name)),
            0.02 if name == "drift" else 0.05,
            key=f"dat_{name}",
            help=about,
        )
    return PlantedConfig(**values)  # type: ignore[arg-type]


def _show_truth(data: Dataset) -> None:
    truth, colours = cards.measured_truth(data), page_context.theme_palette()
    counts = {"people": f"{data.histories.n_users:,}", "items": f"{data.catalog.n_items:,}"}
    counts |= {"events": f"{int(data.histories.lengths.sum()):,}", "length": f"{truth['mean length']:.0f}"}
    shares = {"interests": f"{truth['interests a person']:.1f}", "shared": f"{truth['shared by two people']:.1f}"}
    st.caption(TEXT("drawn", **counts, **shares, noise=f"{truth['noise']:.0%}", top=f"{truth['top tenth']:.0%}"))
    left_column, right_column = st.columns(2)
    with left_column:
        page_elements.show_heading("The truth: interests and their items")
        table = cards.interest_blocks(data)
        alt = f"Events by planted interest and item: {table['interest'].nunique() - 1} blocks on the diagonal, and a row of noise"
        page_elements.show_chart(
            "dat_blocks", charts.draw_interest_blocks(table, colours), table[table["events"] > 0], BLOCKS, alt
        )
    with right_column:
        page_elements.show_heading("One person’s interests over time")
        user = int(st.number_input("Person of this world", 1, data.histories.n_users, 1, key="dat_one", width=220)) - 1
        path = cards.interest_path(data, user)
        counts = path["interest"].value_counts()
        alt = f"Events of person {user + 1} by true interest: " + ", ".join(f"{name} {n}" for name, n in counts.items())
        page_elements.show_chart("dat_path", charts.draw_interest_path(path, colours), path, PATH, alt)


def _store_world(config: PlantedConfig) -> None:
    with upload.catch_refusal():
        stored = upload.upload_store().plant(config)
        st.session_state[upload.LAST_OUTCOME] = (True, TEXT("kept world", label=page_context.escape_markdown(stored.label)))


def _show_scores() -> None:
    page_elements.show_heading("Did a model find the interests?")
    able = (run for run in cache.list_openable_runs(page_context.RUNS) if run.config.data.source == PLANTED)
    runs = {run.name: run for run in able if getattr(run.config.model, "memory", "none") != "none"}
    if not runs:
        st.caption(TEXT("no world"))
        return
    called = {name: cache.label_run(run) for name, run in runs.items()}
    run = runs[st.selectbox("Run on a made-up world", list(runs), format_func=called.__getitem__, key="dat_scored", width=420)]
    row = expert_meaning.meaning_row(run, "dat_score")
    if row is None:
        return
    try:
        curves = cached.measure_recall(cache.ranked_runs(page_context.RUNS), cache.load_dataset(run.config.data), run.name)
    except InputError as error:
        st.error(f"{page_context.escape_markdown(error)}.")
        return
    table = meaning.recovery_table(row)
    own_system, nulls = table.iloc[0], table.set_index("model").iloc[1:-1]
    ours = {"events": f"{own_system['events']:.2f}", "people": f"{own_system['people']:.2f}"}
    random = f"{nulls.loc['keys drawn anew', 'people']:.2f}"
    st.write(TEXT("found", **ours, broken=f"{nulls['events'].max():.2f}", random=random))
    alt = "How well experts tell the interests, beside broken models"
    page_elements.show_table(
        "dat_recovery", table, SCORE, alt, column_config=page_elements.number_columns("%.3f", "people", "events")
    )
    if len(curves):
        page_elements.show_heading("What does it remember?")
        n_systems, own_system = curves["system"].nunique(), cards.system_of(run.name)
        alt = f"Share of the oracle’s NDCG@10 by gap for {n_systems} systems on this world, falling as the gap grows."
        page_elements.show_chart(
            "dat_gaps", charts.draw_gaps(curves, own_system, page_context.theme_palette()), curves, GAPS, alt
        )
