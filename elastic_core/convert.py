"""Brings a run folder of an older version up to date: the names of its settings and weights, and settings that no longer exist.

`config.json` carries the number of its format: 1 (never written down), 2, or 3 (today's). The message that refuses an older
folder names the command `convert`, which rewrites the folder with the functions here. No other module knows an older name.
"""

import re
from pathlib import Path
from typing import Any

from elastic_core import files
from elastic_core.data.source_catalog import source_names
from elastic_core.errors import InputError, value_text
from elastic_core.run_config import FORMAT, OLDEST, PARTS, RunConfig, known_settings
from elastic_core.runs import CONFIG, MOST_CONFIG, RESUME, WEIGHTS, WHOLE_EPOCHS, Run, open_run
from elastic_core.runs.weights import read_tensors

# What settings were called until format 2.
RENAMED_SETTINGS = {
    "train.judged_people": "valid_users",
    "train.judged_by": "valid_protocol",
    "model.side": "n_subkeys",
    "model.repeats": "repeat_bias",
    "model.books": "codebooks",
    "model.words": "codewords",
    "model.target_words": "target_codewords",
    "model.reach": "window",
    "model.top": "topk",
    "model.times": "time_bias",
}
# What tensors of `model.safetensors` were called until format 2: patterns of the whole key, tried in this order.
RENAMED_TENSORS = (
    (r"met", "repeat_weight"),
    (r"(memories\.\d+)\.usual", r"\1.mean_vote_share"),
    (r"usual", "mean_interval"),
    (r"standing\.(.+)", r"item_distribution.\1"),
    (r"(layers\.\d+)\.other\.(.+)", r"\1.no_slot.\2"),
    (r"(units\.\d+)\.asks\.(.+)", r"\1.uq_projection.\2"),
    (r"(units\.\d+)\.tells\.(.+)", r"\1.vk_projection.\2"),
    (r"person\.(.+)", r"user_projection.\1"),
    (r"anybody", "base_user"),
    (r"met_before\.(.+)", r"seen_factors.\1"),
    (r"(.+)\.of_keys", r"\1.key_projection"),
    (r"(.+)\.of_values", r"\1.value_projection"),
)

# Settings that are none any more, with the one value that is built in now, which every model had. A run that was trained with
# another value needs the version that trained it.
REMOVED: dict[str, Any] = {
    "model.bank": "dense",
    "model.bank_rate": 0.0,
    "model.item_bank": "dense",
    "model.votes": 4,
    "model.interest_weight": 0.0,
    "model.bidirectional": False,
    "model.personal": "history",
    "model.short": 3,
    "train.max_grad_norm": 5.0,
    "train.compile": "none",
    "data.planted.tempo": 0.0,
}


def convert_settings(plain: dict[str, Any]) -> RunConfig:
    """The configuration that an older one means. Raises InputError for a setting that nothing here corresponds to."""
    sections: dict[str, Any] = {}
    for part in PARTS:
        section = plain.get(part)
        if not isinstance(section, dict):
            raise InputError(f"the configuration lacks the section {part!r}")
        if part == "model" and section.get("name") == "elastic" and section.get("query") == "votes":
            section = {**section, "name": "elastic-votes"}  # a model of its own now
        if part == "data" and section.get("source") not in source_names():
            section = {"baskets": "no", **section}  # no older version knew of baskets
        sections[part] = _without_removed(section, part, known_settings(part, section))
    return RunConfig.from_dict(sections)


def _without_removed(section: dict[str, Any], path: str, known: dict[str, Any]) -> dict[str, Any]:
    """A section without the settings that are none any more; `known` are the names that it may have today."""
    settings = {}
    for name, value in section.items():
        place = f"{path}.{name}"
        name = RENAMED_SETTINGS.get(place, name)
        if isinstance(value, dict) and isinstance(known.get(name), dict) and name != "columns":
            settings[name] = _without_removed(value, place, known[name])
        elif name in known:
            settings[name] = value
        elif place not in REMOVED or REMOVED[place] != value:
            setting = f"{place}={value_text(value)}"
            raise InputError(f"this version has no setting {setting}; open the run with the version that made it")
    return settings


def convert_key(key: str) -> str:
    """What a tensor of a model's state is called today; that of an averaged model has `module.` before it."""
    name = key.removeprefix("module.")
    for pattern, new in RENAMED_TENSORS:
        if match := re.fullmatch(pattern, name):
            return key.removesuffix(name) + match.expand(new)
    return key


def convert_run(folder: Path) -> bool:
    """Brings a run's folder up to date. False if it was. Raises InputError if this version cannot have such a run.

    The configuration is written last and as a whole: a conversion that breaks off can be made again."""
    run = open_run(folder)
    plain = files.read_object(folder / CONFIG, MOST_CONFIG, folder)
    number = plain.pop("format", OLDEST)
    if number == FORMAT:
        return False
    if number not in range(OLDEST, FORMAT):
        raise InputError(f"{run.name}/{CONFIG} has the format {value_text(number)}, which this version does not know")
    with run.lock():
        config = convert_settings(plain)
        _convert_weights(run)
        run.save_config(config)
    return True


def _convert_weights(run: Run) -> None:
    """The keys of the run's weights, and of what continuing its training needs. Files without an older key stay as they are."""
    for name in (WEIGHTS, WHOLE_EPOCHS):
        if not (run.path / name).exists():
            continue
        weights = read_tensors(run.path / name, f"{run.name}/{name}")
        if any(convert_key(key) != key for key in weights):
            run.save_tensors(name, {convert_key(key): values for key, values in weights.items()})
    if (run.path / RESUME).exists() and (state := run.load_resume()) is not None:
        for part in ("model", "average"):
            if isinstance(learned := state.get(part), dict):
                state[part] = {convert_key(key): values for key, values in learned.items()}
        run.save_resume(state)
