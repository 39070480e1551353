"""A visitor's own data: what is left of a file after the k-core, and the store that keeps accepted files and planted worlds.

    checkpoints/uploads/<id>/   data.csv      user, item[, time, title, genres]: checked rows only, absent for a planted world
                                upload.json   label, configuration, what was found; read by people and by this module

Ids are hashes of the content and are only ever looked up in the list. A folder appears whole or not at all.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from elastic_core import files
from elastic_core.data import Dataset
from elastic_core.data.baskets import hold_out_baskets
from elastic_core.data.preprocessing import Rule, preprocess, size_notes
from elastic_core.data.reading.archives import Limits, Upload, display_name
from elastic_core.data.reading.column_question import describe_missing
from elastic_core.data.reading.column_roles import IN_ORDER, ROLES, Choice
from elastic_core.data.reading.reader import RawTable, Table, open_table, read_rows, read_titles
from elastic_core.data.reading.time_columns import Dates
from elastic_core.data.source_catalog import CARD, LICENCE_OWN, PLANTED
from elastic_core.data.synthetic import planted
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs import list_runs
from elastic_core.services import public

MOST_KEPT, MOST_BYTES = 20, 20 * 2**20
LIMITS = Limits(unpacked=100 * 2**20, ratio=200, rows=2_000_000, columns=2_000, files=200)
ENDINGS = "csv tsv txt dat data inter json jsonl ndjson xlsx parquet pq arrow feather gz bz2 xz zst zip tar tgz".split()
ACCEPTED = "CSV, TSV, JSON, Excel, Parquet or Arrow, plain or in gz or zip"
MOST_CARD, MOST_DATA = 2**18, 2**28  # bytes that are read
ID = re.compile(r"[0-9a-f]{12}")
COUNTS = ("people", "items", "events")
LONGEST_LABEL = 40
DATA = "data.csv"
Kind = Literal["file", "planted"]
TEMPLATE = """user,item,time,title,genres
anna,b1,2024-01-05T20:15:00,The First Book,Fiction|History
anna,b2,2024-02-11T19:00:00,Another Book,Science
anna,b3,2024-02-15T18:30:00,A Third Book,Fiction
ben,b1,2024-01-09T08:30:00,The First Book,Fiction|History
ben,b3,2024-03-01T21:45:00,A Third Book,Fiction
ben,b2,2024-03-04T21:00:00,Another Book,Science
"""


class FileOutcome(NamedTuple):
    """What a file becomes. `steps`: how many events, people and items each rule leaves, and why."""

    label: str
    table: Table
    dataset: Dataset
    k_core: int
    ties: Rule
    steps: pd.DataFrame


def open_upload(name: str, data: bytes, skip_torn: bool = False) -> tuple[RawTable, dict[str, str]]:
    """The table inside an upload and the guessed columns; without what is torn in an archive, if that is to be skipped. Raises
    InputError with one sentence."""
    public.refuse_in_public("upload")
    if len(data) > MOST_BYTES:
        raise InputError(
            f"{display_name(name)} has {files.size_text(len(data))}; at most {files.size_text(MOST_BYTES)} can be sent"
        )
    raw_table = open_table(Upload(name, data), limits=LIMITS, skip_torn=skip_torn)
    return raw_table, {ours: column for ours, column in raw_table.proposal.roles.items() if ours in ROLES}


def describe_open_question(raw_table: RawTable) -> str:
    """What the file does not say of its columns, and which could be meant; nothing where all are known."""
    return describe_missing(raw_table, raw_table.proposal) if raw_table.proposal.missing else ""


def check_upload(raw_table: RawTable, mapping: dict[str, str], dates: Dates = "", titles: Upload | None = None) -> Table:
    """Every row looked at; a time of "" says that the rows are in order. Raises InputError if the mapping cannot be used, or
    if too many rows cannot; Undecided if its dates can be read in two ways and `dates` does not say which."""
    chosen = {ours: column for ours, column in mapping.items() if column or (ours, column) == IN_ORDER}
    choice_made, guess = raw_table.choose(chosen), raw_table.proposal
    roles = {*chosen, *(["clock"] if "time" in chosen else [])}
    columns = {ours: choice_made.roles[ours] for ours in (*ROLES, "clock") if ours in roles and ours in choice_made.roles}
    reasons = {ours: guess.why[ours] for ours, column in columns.items() if guess.roles.get(ours) == column and ours in guess.why}
    choice = Choice(columns, {**choice_made.why, **reasons})
    for ours in choice.missing:
        raise InputError(
            f"{raw_table.label} needs a column for the {ours}; it has: {', '.join(raw_table.sample.column_names[:9])}"
        )
    table = read_rows(dataclasses.replace(raw_table, mapping=chosen, notes=list(raw_table.notes), layout_notes=[]), choice, dates)
    if titles is None:
        return table
    notes = list[str]()
    return dataclasses.replace(table, items=read_titles(titles, "", notes, LIMITS), notes=(*table.notes, *notes))


def preprocess_upload(label: str, table: Table, k_core: int, ties: Rule = "") -> FileOutcome:
    """Repeats out, k-core, split. Raises InputError if too little is left to learn from."""
    data = hold_out_baskets(
        preprocess(table, name="upload", label=label, licence=LICENCE_OWN, k_core=k_core, ties=ties), "", ties
    )
    data = dataclasses.replace(data, notes=(*data.notes, *size_notes(data)))
    events = table.events
    distinct_events = events.drop_duplicates(["user", "item", "time"]) if table.timed else events
    repeats_text = "rows with the same person, item and time count once"
    if not table.timed:
        repeats_text = "without times, a repeated row is a new event"
    rows = [
        ("in the file", table.faults.rows, None, None, "every row below the column names"),
        ("can be read", *_count_events(events), "rows that cannot be used are left out; they are listed above"),
        ("each once", *_count_events(distinct_events), repeats_text),
        (
            "not too rare", len(data.histories.items), data.histories.n_users, data.catalog.n_items,
            f"items with fewer than {k_core} events and people with fewer than {max(k_core, 3)} are dropped",
        ),
    ]  # fmt: skip
    steps = pd.DataFrame(rows, columns=["step", "events", "people", "items", "why"])
    return FileOutcome(label, table, data, k_core, ties, steps.astype({"people": "Int64", "items": "Int64"}))


def _count_events(events: pd.DataFrame) -> tuple[int, int, int]:
    return len(events), int(events["user"].nunique()), int(events["item"].nunique())


def same_source(one: DataConfig, other: DataConfig) -> bool:
    """Whether both read the same file, or draw the same world."""
    if PLANTED in (one.source, other.source):
        return one.source == other.source and one.planted == other.planted
    return Path(one.source).resolve() == Path(other.source).resolve()


# --- the store -------------------------------------------------------------------------------------------------------


class StoredData(NamedTuple):
    """One accepted upload or planted world. `label` is unique in the store; it goes through the form of the Train page."""

    id: str
    kind: Kind
    label: str
    config: DataConfig
    facts: dict[str, Any]
    when: str


class UploadStore:
    """Everything kept below a folder. Safe to use from several processes at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list_stored(self) -> list[StoredData]:
        """Everything that can be read, oldest first."""
        every = [stored for stored in self._list_folders() if isinstance(stored, StoredData)]
        return sorted(every, key=lambda stored: (stored.when, stored.id))

    def list_unreadable(self) -> list[files.UnreadableFolder]:
        """The folders in the store that are none of ours, and why."""
        return [stored for stored in self._list_folders() if not isinstance(stored, StoredData)]

    def _list_folders(self) -> Iterator[StoredData | files.UnreadableFolder]:
        for path in files.list_entries(self.folder, "[0-9a-f]*"):
            try:
                yield _read_card(path)
            except InputError as error:
                yield files.UnreadableFolder(path, str(error))

    def get(self, data_id: str) -> StoredData:
        """Raises InputError if there is none of that id (ids are looked up in the list, never made into paths)."""
        for stored in self.list_stored():
            if stored.id == data_id:
                return stored
        raise InputError("these data are not kept here any more")

    def list_choices(self) -> dict[str, DataConfig]:
        return {stored.label: stored.config for stored in self.list_stored()}

    def store_upload(self, outcome: FileOutcome, label: str = "") -> StoredData:
        """Stores the checked rows. The same rows again, with any k-core, replace what is there."""
        public.refuse_in_public("upload")
        text = _csv_text(outcome.table)
        data_id = hashlib.sha256(text.encode()).hexdigest()[:12]
        notes = [*outcome.table.notes, *outcome.dataset.notes]
        facts = {
            **_count_facts(outcome.dataset),
            "hash": outcome.dataset.hash,
            "left out": outcome.table.faults.count,
            "notes": notes,
        }
        columns = {"user": "user", "item": "item", "time": "time" if outcome.dataset.has_times else ""}
        source, ties = str(_relative_place(self.folder / data_id / DATA)), outcome.ties
        config = DataConfig(source=source, k_core=outcome.k_core, columns=columns, ties=ties)
        return self._write_data(data_id, "file", label or outcome.label, config, facts, text)

    def plant(self, config: PlantedConfig, k_core: int = 5, label: str = "") -> StoredData:
        """Stores the recipe of a planted world. Raises InputError if it cannot be drawn."""
        public.refuse_in_public("upload")
        world = planted(config, k_core)
        data_config = DataConfig(source=PLANTED, planted=config, k_core=k_core)
        data_id = hashlib.sha256(json.dumps(dataclasses.asdict(data_config), sort_keys=True).encode()).hexdigest()[:12]
        return self._write_data(
            data_id, "planted", label or f"Planted, {config.interests} interests", data_config, _count_facts(world), None
        )

    def delete_data(self, data_id: str) -> None:
        """Out of sight in one step, then gone. Runs trained on it stay, but need the file to be shown."""
        public.refuse_in_public("deletion")
        unreadable_ids = {fault.path.name for fault in self.list_unreadable()}
        files.remove_folder(self.folder / (data_id if data_id in unreadable_ids else self.get(data_id).id), self.folder)

    def runs_on(self, data_id: str, root: Path) -> list[str]:
        """Names of the runs that need these data, whatever their k-core: it may have been kept again with another since."""
        config = self.get(data_id).config
        return [run.name for run in list_runs(root) if same_source(config, run.config.data)]

    def _write_data(
        self, data_id: str, kind: Kind, label: str, config: DataConfig, facts: dict[str, Any], text: str | None
    ) -> StoredData:
        others = [stored for stored in self.list_stored() if stored.id != data_id]
        if len(others) >= MOST_KEPT:
            raise InputError(f"{MOST_KEPT} data sets are kept here already; delete one first")
        name = f"{_safe_label(label)} · {data_id[:4]}"
        card = {"kind": kind, "label": name, "config": dataclasses.asdict(config), "facts": facts}
        card["when"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        new_folder = self.folder / f".new-{data_id}-{os.getpid()}-{time.time_ns()}"
        try:
            new_folder.mkdir(parents=True)
            if text is not None:
                (new_folder / DATA).write_text(text, encoding="utf-8", newline="")
            (new_folder / CARD).write_text(json.dumps(card, indent=1), encoding="utf-8")
            if (place := self.folder / data_id).is_dir():  # it holds the same rows, so only its card is replaced
                files.write_text(place / CARD, json.dumps(card, indent=1))
            else:
                os.replace(new_folder, place)
        except OSError as error:
            raise InputError(f"the data could not be stored: {files.error_reason(error)}") from None
        finally:
            shutil.rmtree(new_folder, ignore_errors=True)
        return self.get(data_id)


def _count_facts(data: Dataset) -> dict[str, Any]:
    return dict(zip(COUNTS, (data.histories.n_users, data.catalog.n_items, len(data.histories.items)), strict=True))


def _relative_place(path: Path) -> Path:
    """As the run's configuration names it: below the working folder without its own address, so that it can move."""
    absolute = path.resolve()
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute


def _csv_text(table: Table) -> str:
    frame = table.events.astype({"user": object, "item": object})
    if table.items is not None:
        frame = frame.merge(table.items, on="item", how="left")
        if "genres" in frame:
            frame["genres"] = frame["genres"].map(lambda tags: "|".join(tags) if isinstance(tags, tuple) else "")
    return str(frame.to_csv(index=False, lineterminator="\n"))


def _safe_label(label: str) -> str:
    """A label for lists and addresses: letters, digits and a few marks."""
    return "".join(c if c.isalnum() or c in " .,-_()" else " " for c in label).strip()[:LONGEST_LABEL].strip() or "data"


def _read_card(path: Path) -> StoredData:
    """One folder of the store, which may be anybody's. Raises InputError with one sentence."""
    files.check_folder(path)
    card = files.read_object(path / CARD, MOST_CARD, path)
    kind, label, facts, when = (card.get(name) for name in ("kind", "label", "facts", "when"))
    # as `_write_data` writes it: two folders cannot share a label, and nothing in it can format or load anything
    words, _, start = str(label).rpartition(" · ")
    if not ID.fullmatch(path.name) or not isinstance(label, str) or start != path.name[:4] or words != _safe_label(words):
        raise InputError(f"its {CARD} is of other data than its name")
    if not isinstance(when, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", when):
        raise InputError(f"its {CARD} does not say when it was kept")
    if not isinstance(facts, dict) or not all(type(facts.get(name)) is int and 0 <= facts[name] < 2**53 for name in COUNTS):
        raise InputError(f"its {CARD} does not count people, items and events")
    if not isinstance(card.get("config"), dict):
        raise InputError(f"its {CARD} has no configuration")
    config = DataConfig.from_dict(card["config"])
    if kind == "file":
        # the folder may have moved
        config = dataclasses.replace(config, source=str(_relative_place(files.check_regular_file(path / DATA, MOST_DATA, path))))
    elif kind != "planted" or config.source != PLANTED:
        raise InputError(f"its {CARD} is neither of a file nor of a planted world")
    return StoredData(path.name, kind, label, config, facts, when)
