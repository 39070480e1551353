"""Brings a run folder of an older version up to date: what its settings are called, and what is no setting any more.

`config.json` carries the number of its format. A folder of an older one opens as it is while nothing in it has changed its
meaning; else the sentence that refuses it names the command `convert`, which rewrites the folder here.
"""

import json
from pathlib import Path
from typing import Any

from elastic_core import files
from elastic_core.data.source_catalog import source_names
from elastic_core.errors import InputError, value_text
from elastic_core.run_config import FORMAT, OLDEST, PARTS, RunConfig, known_settings
from elastic_core.runs import CONFIG, MOST_CONFIG, open_run

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
    kept: dict[str, Any] = {}
    for part in PARTS:
        section = plain.get(part)
        if not isinstance(section, dict):
            raise InputError(f"the configuration lacks the section {part!r}")
        if part == "model" and section.get("name") == "elastic" and section.get("query") == "votes":
            section = {**section, "name": "elastic-votes"}  # a model of its own now
        if part == "data" and section.get("source") not in source_names():
            section = {"baskets": "no", **section}  # no older version knew of baskets
        kept[part] = _without_removed(section, part, known_settings(part, section))
    return RunConfig.from_dict(kept)


def _without_removed(section: dict[str, Any], path: str, known: dict[str, Any]) -> dict[str, Any]:
    """A section without the settings that are none any more; `known` are the names that it may have today."""
    kept = {}
    for name, value in section.items():
        place = f"{path}.{name}"
        if isinstance(value, dict) and isinstance(known.get(name), dict) and name != "columns":
            kept[name] = _without_removed(value, place, known[name])
        elif name in known:
            kept[name] = value
        elif place not in REMOVED or REMOVED[place] != value:
            setting = f"{place}={value_text(value)}"
            raise InputError(f"this version has no setting {setting}; open the run with the version that made it")
    return kept


def convert_run(folder: Path) -> bool:
    """Brings a run's folder up to date. False if it was. Raises InputError if this version cannot have such a run.

    The configuration is written last and as a whole: a conversion that breaks off can be made again."""
    run = open_run(folder)
    plain = files.read_object(folder / CONFIG, MOST_CONFIG, folder)
    number = plain.pop("format", OLDEST)
    if number == FORMAT:
        return False
    if number != OLDEST:
        raise InputError(f"{run.name}/{CONFIG} has the format {value_text(number)}, which this version does not know")
    with run.lock():
        run.save_config(convert_settings(plain))
    return True


def converted_text(settings: str) -> str:
    """The settings of a stored run (JSON, runs.csv), brought up to date."""
    plain = {key: value for key, value in files.parse_json(settings).items() if key != "format"}
    return json.dumps(convert_settings(plain).to_dict(), separators=(",", ":"))
