"""The form of the Train page: what to train, how long it will take, and the button."""

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import streamlit as st

from elastic_core.data import Dataset
from elastic_core.data.source_catalog import PLANTED, source_names
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import Run
from elastic_core.services import public
from elastic_core.services.durations import format_duration
from elastic_core.services.speed import curves
from elastic_core.services.train import presets, run_table
from elastic_core.services.train.estimate import estimate_time
from elastic_core.services.train.presets import Setting
from elastic_core.training_time import Estimate
from pages.components import cache, glossary, page_context, page_elements, page_text
from pages.components.cache import cached_data
from pages.components.controls import bind_widget, choose_from_list, choose_one, number_input, place_button
from pages.train.jobs import call_queue

TEXT = page_text.load_page_text(__file__)
FRESH, CHANGE = "A preset", "Change one thing"
QUICK = ("ml-100k", PLANTED)  # over which even two minutes pass more than once
PARTS = {0.1: "a tenth", 0.25: "a quarter", 1 / 3: "a third", 0.5: "half", 2 / 3: "two thirds", 0.75: "three quarters"}
OWN = "train_set_"  # begins the keys of single settings
PRESET_VALUES, MUST_RESET = (
    "train_shown",
    "train_told",
)  # the preset's values as last drawn; which values the browser must be told
SYSTEM = "model (another system)"
HELP = TEXT.named_paragraphs("settings")  # what each is
HELP |= {
    "model.layers": glossary.WORDS["layer"], "model.gate": glossary.WORDS["gate"],
    "objective.prefixes_per_user": "How many beginnings of a history the model learns from in one epoch; 0 means all.",
}  # fmt: skip


def choose_config(runs: list[Run]) -> RunConfig | None:
    """Returns the configuration that is set, or None if it cannot work (the reason is on the page)."""
    how = choose_one("Start from", [FRESH, CHANGE], key="train_how")
    try:
        return _choose_preset() if how == FRESH or not runs else _choose_one_change(runs)
    except InputError as error:
        st.error(f"This cannot be trained: {page_context.escape_markdown(error)}.")
        return None


def show_start_button(config: RunConfig | None) -> None:
    """Name, button, and what the button will cost. The timing probe comes last, when all else is on the page."""
    name = st.text_input("Name of the run", key="train_name", placeholder="made from model and data", max_chars=54)
    place = st.container()
    place_button(
        "Start training",
        "train_start",
        call_queue,
        "submit",
        config,
        name.strip(),
        icon="model_training",
        type="primary",
        disabled=config is None or page_context.is_locked("train_start") or public.is_public(),
        help=public.refusal_reason("training") or None,
    )
    if config is not None and not public.is_public():  # the price is measured
        with place:
            _show_cost(config)


def _choose_preset() -> RunConfig:
    choices = page_context.data_choices()
    data_column, model_column, time_column, seed_column = st.columns([3, 3, 4, 2])
    data = bind_widget(data_column.selectbox, "Data", list(choices), _first_choice(list(choices.values())), key="train_data")
    model = bind_widget(
        model_column.selectbox, "Model", [v.label for v in presets.list_variants()], key="train_model", on_change=_forget_settings
    )
    times = [b.name for b in presets.BUDGETS]
    time = choose_one("Time", times, key="train_time", default=times[1], place=time_column, on_change=_forget_preset_values)
    seed = number_input("Seed", 0, 10_000, 0, key="train_seed", place=seed_column, help=glossary.WORDS["training seed"])
    variant = presets.find_variant(model)
    with page_elements.place_in_row():
        st.caption(variant.about)
        part = {"dat_part": "Bring your own"}
        if place_button("Bring your own file", "train_bring", st.session_state.update, part, icon="upload_file", type="tertiary"):
            st.switch_page("data/page.py", query_params=part)
    size_place = st.empty()
    dataset = cache.load_dataset(choices[data])
    config = _choose_settings(presets.make_config(dataset, variant, presets.find_budget(time), int(seed)))
    size_place.caption(f"{time} allows {presets.size_text(config)}. {_warn_of_few_events(config, dataset)}")
    return config


def _first_choice(choices: list[DataConfig]) -> int:
    """The data in view, which come first; the made-up world where they are shipped and too many for a first try."""
    if choices[0].source in QUICK or choices[0].source not in source_names():
        return 0
    return next((at for at, config in enumerate(choices) if config.source == PLANTED), 0)


def _warn_of_few_events(config: RunConfig, dataset: Dataset) -> str:
    """Of few events the other model is the faster one, by the rows that came along; said where people have more."""
    crossing = curves.find_crossing(page_context.RUNS)
    if dataset.histories.lengths.max() < crossing:
        return ""
    longer_budget = presets.longer_budget(config, crossing)
    return TEXT("few", crossed=f"{crossing:,.0f}", longer=longer_budget) if longer_budget else ""


def _forget_settings() -> None:
    """Another preset, or another setting to change, brings its own values."""
    for key in [key for key in st.session_state if str(key).startswith(OWN)]:
        del st.session_state[key]
    st.session_state[MUST_RESET] = True


def _forget_preset_values() -> None:
    """Another time brings its own sizes; what the visitor set by hand stays."""
    drawn_values = st.session_state.get(PRESET_VALUES, {})
    for key, value in drawn_values.items():
        if key in st.session_state and st.session_state[key] == value:
            del st.session_state[key]
    st.session_state[MUST_RESET] = True


def _choose_settings(config: RunConfig) -> RunConfig:
    """All settings of model and training. Another preset brings its own values."""
    values: dict[str, Any] = {}
    drawn_values: dict[str, Any] = {}
    must_reset = st.session_state.pop(MUST_RESET, False)

    def draw(fields: list[Setting], columns: "Iterator[st.delta_generator.DeltaGenerator]") -> None:
        for field, column in zip(fields, columns, strict=False):
            with column:
                key = f"{OWN}{field.key}"
                drawn_values[key] = _initial_value(field)
                values[field.key] = _place_setting(field, key, must_reset=must_reset)

    with st.expander("All settings"):
        for section, title in (("model", "Model"), ("objective", "Objective"), ("train", "Training")):
            st.markdown(f"**{title}**")
            columns, fields = cycle(st.columns(4)), presets.form_settings(config, section)  # type: ignore[arg-type]
            if section == "objective":  # its name comes first: the boxes beside it are those of the one that is chosen
                draw(fields[:1], columns)
                fields = presets.form_settings(config.replace_values({"objective.name": values["objective.name"]}), section)[1:]
            draw([field for field in fields if field.key != "train.seed"], columns)
    st.session_state[PRESET_VALUES] = drawn_values
    changed_config = presets.changed_config(config, values)
    for difference in presets.config_differences(config, changed_config):
        st.caption(f"Changed: {page_context.escape_markdown(difference)}")
    return changed_config


def _choose_one_change(runs: list[Run]) -> RunConfig:
    """A copy of a run with one setting altered."""
    labels = {run.name: cache.label_run(run) for run in runs}
    run_column, setting_column, value_column = st.columns(3)
    with run_column:
        name = choose_from_list("Copy of", labels, key="train_base", on_change=_forget_settings)
    base = next(run.config for run in runs if run.name == name)
    fields = {f.key: f for section in ("model", "objective", "train") for f in presets.form_settings(base, section)}
    field = bind_widget(
        setting_column.selectbox,
        "Change",
        [SYSTEM, *fields],
        key="train_field",
        format_func=_label_setting,
        on_change=_forget_settings,
    )
    with value_column:
        if field == SYSTEM:
            changed_config = presets.twin_config(
                base,
                presets.find_variant(
                    bind_widget(st.selectbox, "To", [v.label for v in presets.list_variants()], key="train_twin")
                ),
            )
        else:
            must_reset = st.session_state.pop(MUST_RESET, False)
            changed_config = presets.changed_config(
                base, {field: _place_setting(fields[field], f"{OWN}to", label="To", must_reset=must_reset)}
            )
    for difference in presets.config_differences(base, changed_config) or ["nothing yet, so this would repeat the run"]:
        st.caption(f"Changed: {page_context.escape_markdown(difference)}")
    return changed_config


def _initial_value(field: Setting) -> Any:
    """What the widget of a setting starts with."""
    kinds: dict[str, Any] = {"int": lambda value: int(value or 0), "float": float, "text": str}
    return kinds.get(field.kind, lambda value: value)(field.value)


def _place_setting(field: Setting, key: str, label: str = "", must_reset: bool = False) -> Any:
    """The widget that fits the setting. A browser keeps what stands in a box of this key, whatever its default becomes; where it
    must begin anew, `must_reset`, it is set."""
    if must_reset and key not in st.session_state:
        st.session_state[key] = _initial_value(field)
    name, value, widget_options = (
        label or _label_setting(field.key),
        _initial_value(field),
        {"key": key, "help": HELP.get(field.key)},
    )
    if field.kind == "bool":
        return bind_widget(st.toggle, name, value, **widget_options)
    if field.kind == "choice":
        return bind_widget(st.selectbox, name, field.choices, field.choices.index(value), **widget_options)
    if field.kind == "text":
        return bind_widget(st.text_input, name, value, **widget_options)
    steps = {"step": 1} if field.kind == "int" else {"step": None, "format": "%g"}
    return type(value)(number_input(name, value=value, **steps, **widget_options))


def _label_setting(key: str) -> str:
    special = {
        "model.n_subkeys": "sub-keys (√K)",
        "model.k": "k (experts retrieved)",
        "objective.name": "objective",
    }
    return special.get(key, key if key == SYSTEM else key.partition(".")[2].replace("_", " "))


@cached_data(64, ttl=cache.RETRY_SECONDS)
def training_cost(config: RunConfig, data: Dataset) -> Estimate:
    """What this training would cost here: measured once for a configuration and believed for a while."""
    return estimate_time(config, data)


def describe_passes(n_passes: float) -> str:
    """So many passes over the data, in words: `about a third of one pass over the data`."""
    if n_passes < 0.95:
        nearest = min(PARTS, key=lambda part: abs(part - n_passes))
        return f"{'less than' if n_passes < 0.07 else 'about'} {PARTS[nearest]} of one pass over the data"
    count_text = f"{n_passes:.1f}" if n_passes < 3 else f"{n_passes:,.0f}"
    return f"{count_text.removesuffix('.0')} {'pass' if n_passes < 1.05 else 'passes'} over the data"


def _show_cost(config: RunConfig) -> None:
    """What it will cost here, measured now."""
    cost_place = st.empty()
    cost_place.caption("Timing a few real steps of this model …")
    try:
        cost = training_cost(config, cache.load_dataset(config.data))
    except InputError as error:
        cost_place.error(f"This cannot be trained: {page_context.escape_markdown(error)}.")
        return
    size = {"parameters": f"{cost.parameters:,}", "memory": f"{cost.memory_mb:,.0f}"}
    if not cost.steps:
        sentence = TEXT(
            "counted", system=page_context.escape_markdown(run_table.system_name(config)), time=format_duration(cost.seconds)
        )
    elif not cost.is_timed:
        sentence = TEXT("large", **size)
    else:
        limit = (
            f"{config.train.minutes:g} min at most; here " if cost.budget_seconds and cost.fitting_epochs == cost.epochs else ""
        )
        time = f"{limit}{format_duration(cost.seconds)}"
        size |= {"passes": describe_passes(cost.fitting_epochs), "seconds": format_duration(cost.epoch_seconds)}
        sentence = TEXT("cost", time=time[:1].upper() + time[1:], **size)
    cost_place.info(sentence, icon=":material/timer:")
    if cost.is_tight:
        st.warning(TEXT("tight"))


def show_export(config: RunConfig | None) -> None:
    """The same training elsewhere: its configuration and the command."""
    if config is None:
        return
    with st.expander("Train it on another machine"):
        st.markdown(TEXT("elsewhere"))
        st.code(presets.train_command("config.json", "checkpoints/local-mine"), language="bash", wrap_lines=True)
        text = json.dumps(config.to_dict(), indent=1)
        st.download_button("Configuration (JSON)", text, "config.json", "application/json", key="train_config", on_click="ignore")
