"""The third part of the Data page: plant a world whose truth is known, keep it, and score experts against it."""

import json
from dataclasses import asdict

import streamlit as st

from elastic_core.core.config import PlantedConfig
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory.recovery import PEOPLE
from elastic_core.runs import Run
from elastic_core.services.data import cards
from elastic_core.services.evidence import meaning
from pages.data import answers, charts, upload
from pages.frame import shell
from pages.kit import asked, cache, plot, view
from pages.kit.control import bound, number

START = PlantedConfig(users=1_000, items=400, interests=12, mean_length=60)
WHOLE = (
    ("users", "People", 50, 5_000, 50, ""),
    ("items", "Items", 40, 2_000, 20, "At least four for each interest"),
    ("interests", "Interests", 2, 32, 1, "Groups of items with an order of their own"),
    ("interests_per_user", "Interests a person", 1, 8, 1, "The more, the more two people share"),
    ("mean_length", "Mean length", 8, 200, 4, "Of a history; a few are much longer"),
    ("seed", "Seed", 0, 10_000, 1, "Another one, another world of the same kind"),
)
SHARES = (
    ("popularity", "Skew of popularity", 2.0, "0: all items alike; 1: Zipf’s law"),
    ("noise", "Noise", 1.0, "Share of events that follow no interest"),
    ("determinism", "Order", 1.0, "How often an interest goes on with one of three known successors"),
    ("drift", "Drift", 1.0, "Chance, at each event, that tastes change"),
)
BLOCKS = view.About(
    "Which truth should a model find?",
    "A square counts, logarithmically, the events that an interest of the person or noise (row) moved to a group of items "
    "(column).",
    "No model sees this, only who met what. An event off the diagonal replaces an item that would have come twice in a row.",
    test="tests/test_data_cards.py::test_interest_blocks_hold_every_event_once",
)
PATH = view.About(
    "How does one person move between interests?",
    "A mark is an event in the row of its interest; crosses are noise. Drift swaps interests.",
    "Runs of one interest need no reason: a heavy one comes up again by chance.",
    test="tests/test_data_cards.py::test_a_persons_path_is_the_truth_of_their_events",
)
SCORE = view.About(
    "Do experts stand for the planted interests?",
    f"Adjusted mutual information (AMI), at most {PEOPLE:,} people: 0 is chance, 1 the same grouping. People: strongest "
    "expert against heaviest interest. Events: the expert that takes an event most against its interest.",
    "Read keys against keys drawn anew, values against noise and swapped ones; shuffled truth would flatter both. Interests "
    "drift: the last row is the most there is.",
    test="tests/test_routing.py::test_recovery_stands_beside_models_with_broken_keys_and_values",
)
GAPS = view.About(
    "How far back does a model remember where a person was?",
    "NDCG@10, seen items kept, as a share of the oracle’s, who knows every interest and its rules; the mean over seeds. Dotted: "
    "popularity, which knows nothing of the person.",
    "At gap 1 the last event is enough. A high first point and a steep fall are local order, not interests.",
    test="tests/test_routing.py::test_what_is_remembered_is_a_share_of_the_oracle_by_gap",
)


def part() -> None:
    st.write("Here the truth is known: people follow a few interests each. Keep a world, train on it, and score the experts.")
    config = _controls()
    try:
        data = answers.world(config)
    except InputError as error:
        st.error(f"This world cannot be drawn: {shell.plain(str(error))}.")
    else:
        _truth(data)
        with st.container(horizontal=True, vertical_alignment="center"):
            if not shell.off("upload"):
                st.button(
                    "Keep this world", type="primary", icon=":material/save:", key="dat_plant", on_click=_keep, args=(config,),
                    help="The Train page offers it as data",
                )  # fmt: skip
            text = json.dumps(asdict(config), indent=1)
            st.download_button("Rules (JSON)", text, "planted.json", "application/json", key="dat_rules", on_click="ignore")
    upload.say()
    upload.kept()
    _scores()


def _controls() -> PlantedConfig:
    values: dict[str, int | float] = {}
    places = st.columns(5)
    for i, (name, label, low, high, step, about) in enumerate(WHOLE):
        values[name] = number(
            label, low, high, getattr(START, name), step, key=f"dat_{name}", place=places[i % 5], help=about or None
        )
    for i, (name, label, share_high, about) in enumerate(SHARES):
        values[name] = bound(
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


def _truth(data: Dataset) -> None:
    found, colours = cards.measured_truth(data), plot.palette(shell.is_dark())
    st.caption(
        f"Drawn: {data.histories.n_users:,} people, {data.catalog.n_items:,} items, {int(data.histories.lengths.sum()):,} events "
        f"(mean length {found['mean length']:.0f}), {found['noise']:.0%} noise, {found['interests a person']:.1f} interests a "
        f"person over time; at last two people share {found['shared by two people']:.1f}; the most popular tenth has "
        f"{found['top tenth']:.0%} of the events."
    )
    left, right = st.columns(2)
    with left:
        st.subheader("The truth: interests and their items", anchor=False)
        table = cards.interest_blocks(data)
        alt = f"Events by planted interest and item: {table['interest'].nunique() - 1} blocks on the diagonal, and a row of noise"
        view.chart("dat_blocks", charts.blocks(table, colours), table[table["events"] > 0], BLOCKS, alt)
    with right:
        st.subheader("One person’s interests over time", anchor=False)
        user = int(st.number_input("Person of this world", 1, data.histories.n_users, 1, key="dat_one", width=220)) - 1
        path = cards.interest_path(data, user)
        counts = path["interest"].value_counts()
        alt = f"Events of person {user + 1} by true interest: " + ", ".join(f"{name} {n}" for name, n in counts.items())
        view.chart("dat_path", charts.path(path, colours), path, PATH, alt)


def _keep(config: PlantedConfig) -> None:
    try:
        kept = upload.shelf().plant(config)
        sentence = f"Kept as **{shell.plain(kept.label)}**. The Train page offers it now."
        st.session_state[upload.SAID] = (True, sentence)
    except InputError as error:
        st.session_state[upload.SAID] = (False, f"{shell.plain(str(error))}.")


def _scores() -> None:
    st.subheader("Did a model find the interests?", anchor=False)
    runs = {run.name: run for run in cache.runs(shell.RUNS) if _planted(run)}
    if not runs:
        st.caption("No run on a planted world with a memory yet. Keep a world, train ELASTIC on it, and come back.")
        return
    called = {name: cache.called(run) for name, run in runs.items()}
    run = runs[st.selectbox("Run on a planted world", list(runs), format_func=called.__getitem__, key="dat_scored", width=420)]
    row = asked.row(run, "dat_score")
    if row is None:
        return
    try:
        curves = answers.remembered(cache.scored(shell.RUNS), cache.dataset(run.config.data, lambda sentence: None), run.name)
    except InputError as error:
        st.error(f"{shell.plain(str(error))}.")
        return
    table = meaning.recovered(row)
    own, nulls = table.iloc[0], table.set_index("model").iloc[1:-1]
    st.write(
        f"The expert that takes an event tells its interest with AMI **{own['events']:.3f}**; with keys or values broken it is "
        f"{nulls['events'].max():.3f} at best. A person’s strongest expert tells their heaviest interest with "
        f"**{own['people']:.3f}**; with keys drawn anew, {nulls.loc['keys drawn anew', 'people']:.3f}. Each expert’s own "
        "interest is on the Experts page."
    )
    formats = {name: st.column_config.NumberColumn(format="%.3f") for name in ("people", "events")}
    view.table("dat_recovery", table, SCORE, "How well experts tell the interests, beside broken models", column_config=formats)
    if len(curves):
        st.subheader("What does it remember?", anchor=False)
        many, own = curves["system"].nunique(), cards.system_of(run.name)
        alt = f"Share of the oracle’s NDCG@10 by gap for {many} systems on this world, falling as the gap grows."
        view.chart("dat_gaps", charts.gaps(curves, own, plot.palette(shell.is_dark())), curves, GAPS, alt)


def _planted(run: Run) -> bool:
    try:
        config = run.config
    except InputError:
        return False
    return config.data.source == "planted" and getattr(config.model, "memory", "none") != "none"
