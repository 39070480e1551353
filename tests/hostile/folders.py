"""Runs, jobs, uploads and resume files as a stranger, a broken disk or a bad joke may leave them. Each has one right answer:
a part of the sentence that says why it cannot be read, or none where only what is odd does not count.

What is generated follows from the lists below and one seed; nothing here is kept as a file.
"""

import json
import os
import pickle
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

Break = Callable[[Path], Any]
SECRET = "the stranger must not read or change this"


class Bomb:
    """Would leave a folder behind if anything unpickled it."""

    place = "/tmp/elastic-was-executed"

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.place,)


@dataclass(frozen=True)
class Odd:
    """`says`: a part of the sentence; empty where the folder stays readable."""

    id: str
    tamper: Break
    says: str = ""
    opened: bool = False  # said when it is opened, not in the list: the list would have to read all of it


def write(name: str, data: str | bytes) -> Break:
    return lambda folder: (folder / name).write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)


def change(name: str, **values: Any) -> Break:
    """Sets `section__key`, or `key`, in a JSON file; a value of `...` takes it out."""

    def apply(folder: Path) -> None:
        plain = json.loads((folder / name).read_text())
        for path, value in values.items():
            *sections, key = path.split("__")
            holder = plain
            for section in sections:
                holder = holder[section]
            holder.pop(key, None) if value is ... else holder.update({key: value})
        (folder / name).write_text(json.dumps(plain))

    return apply


def instead(name: str, make: Callable[[Path], Any]) -> Break:
    """Something else where a file was."""

    def apply(folder: Path) -> None:
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        make(place)

    return apply


# --- what may stand where a file belongs ---------------------------------------------------------------------------------


def _socket(place: Path) -> None:
    before = Path.cwd()
    os.chdir(place.parent)  # the address of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)
    finally:
        os.chdir(before)


def _sparse(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(2**40)


NO_FILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a folder": (lambda place: place.mkdir(), "is no regular file"),
    "a full folder": (lambda place: (place / "x" / "y").mkdir(parents=True), "is no regular file"),
    "a pipe": (lambda place: os.mkfifo(place), "is no regular file"),
    "a socket": (_socket, "is no regular file"),
    "a link to an endless device": (lambda place: place.symlink_to("/dev/zero"), "is a link"),
    "a link to a secret": (lambda place: place.symlink_to(_secret(place)), "is a link"),
    "a link to a system file": (lambda place: place.symlink_to("/etc/hostname"), "is a link"),
    "a link to nowhere": (lambda place: place.symlink_to("nowhere"), "is a link"),
    "a link to itself": (lambda place: place.symlink_to(place.name), "is a link"),
    "a terabyte of nothing": (_sparse, "at most"),
}


def _secret(place: Path) -> Path:
    """The nearest file called `secret` above: the tests lay it outside of the list."""
    return next(parent / "outside" / "secret" for parent in place.parents if (parent / "outside" / "secret").exists())


NO_OBJECT: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is not valid JSON"),
    "cut": ('{"run": "local-', "is not valid JSON"),
    "words": ("hello", "is not valid JSON"),
    "a list": ("[1]", "must hold an object"),
    "a number": ("7", "must hold an object"),
    "nothing": ("null", "must hold an object"),
    "a text": ('"x"', "must hold an object"),
    "bytes": (bytes(range(256)), "is not a UTF-8 text file"),
    "UTF-16": ("{}".encode("utf-16"), "is not a UTF-8 text file"),
    "NUL": ("\0" * 100, "is not valid JSON"),
    "a byte order mark": ("\ufeff{}", "is not valid JSON"),
    "deep lists": ("[" * 100_000, "nested too deeply"),
    "deep objects": ('{"a":' * 50_000 + "1" + "}" * 50_000, "at most"),
    "deep objects, fewer": ('{"a":' * 20_000 + "1" + "}" * 20_000, "nested too deeply"),
    "5,000 digits": ('{"run": ' + "9" * 5_000 + "}", "thousands of digits"),
    "half a character": ('{"run": "\\ud800"}', "half a character"),
    "half a character as a key": ('{"\\udfff": 1}', "half a character"),
    "a megabyte of room": (" " * 2**20, "at most"),
    "two objects": ("{}{}", "is not valid JSON"),
    "a pickle": (pickle.dumps({"run": 1}), "is not a UTF-8 text file"),
}


NO_BYTES = {what: NO_OBJECT[what] for what in ("empty", "bytes", "NUL", "a megabyte of room", "a pickle")}  # for no JSON


def files(name: str) -> Iterator[Odd]:
    for what, (make, says) in NO_FILE.items():
        yield Odd(f"{name}: {what}", instead(name, make), says)


def objects(name: str) -> Iterator[Odd]:
    for what, (data, says) in NO_OBJECT.items():
        yield Odd(f"{name}: {what}", write(name, data), says)


EACH_KIND = ("a full folder", "a pipe", "a link to a secret", "a link to itself", "a terabyte of nothing")


def harmless(name: str) -> Iterator[Odd]:
    """One of each kind where the file is not needed: nothing is said, and the folder stays."""
    for what in EACH_KIND:
        yield Odd(f"{name}: {what} (harmless)", instead(name, NO_FILE[what][0]))
    for what, (data, _) in NO_BYTES.items():
        yield Odd(f"{name}: {what} (harmless)", instead(name, lambda place, data=data: write(place.name, data)(place.parent)))


# --- runs ------------------------------------------------------------------------------------------------------------

NUMBERS: tuple[Any, ...] = (-1, 0, 10**30, float("nan"), float("inf"), None, "8", True, [8], {"a": 8}, 1e308)
SETTINGS = ("model__heads", "model__layers", "model__side", "train__batch", "train__seed", "data__k_core")
WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("an unknown section", {"evil": {"a": 1}}, "evil"), ("an unknown key", {"model__evil": 1}, "model.evil"),
    ("an unknown model", {"model__name": "../../evil"}, "unknown model"), ("no model", {"model": {}}, "model"),
    ("width as text", {"model__width": "wide"}, "model.width"), ("k larger than K", {"model__k": 10_000}, "model.k"),
    ("side one", {"model__side": 1}, "model.side"), ("heads do not divide", {"model__heads": 5}, "heads"),
    ("a choice that is none", {"model__gate": "open"}, "model.gate"), ("no batch", {"train__batch": 0}, "train.batch"),
    ("people negative", {"data__planted__users": -5}, "data.planted"), ("data of numbers", {"data": 3}, "data"),
)  # fmt: skip
LINES = {
    "ten megabytes of junk": b"x" * (10 * 2**20),
    "ten megabytes of rows": b'{"event": "epoch"}\n' * (10 * 2**20 // 19),
    "one endless line": b'{"event": "start", "data": "' + b"x" * (3 * 2**20) + b'"}\n',
    "deep lines": (b"[" * 50_000 + b"\n") * 20,
    "binary": bytes(range(256)) * 100,
    "half a character": b'{"event": "start", "data": "\\ud800"}\n',
    "5,000 digits": b'{"event": "epoch", "epoch": ' + b"9" * 5_000 + b"}\n",
}
ODD_ROWS: tuple[dict[str, Any], ...] = (
    {"event": "start", "data": ["x"], "parameters": "many"},
    {"event": "start", "parameters": -3},
    {"event": "start", "data": "x" * 10_000},
    {"event": "epoch", "epoch": 10**9, "loss": 1.0, "seconds": 1.0, "valid": {"NDCG@10": 0.1}},
    {"event": "epoch", "epoch": True, "loss": 1.0, "seconds": 1.0, "valid": {"NDCG@10": 0.1}},
    {"event": "epoch", "epoch": [1], "loss": 1.0, "seconds": 1.0, "valid": {"NDCG@10": 0.1}},
    {"event": "epoch", "epoch": 3, "loss": float("nan"), "seconds": 1.0, "valid": {"NDCG@10": 0.1}},
    {"event": "epoch", "epoch": 3, "loss": 1.0, "seconds": float("inf"), "valid": {"NDCG@10": 0.1}},
    {"event": "epoch", "epoch": 3, "loss": 1.0, "seconds": 1.0, "valid": {}},
    {"event": "epoch", "epoch": 3, "loss": 1.0, "seconds": 1.0, "valid": {"NDCG@10": "high"}},
    {"event": "epoch", "epoch": 3, "loss": 1.0, "seconds": 1.0, "valid": {"NDCG@10": 0.1}, "used": "all"},
    {"event": "epoch", "epoch": 3, "loss": 1.0, "seconds": 1.0, "valid": {"NDCG@10": 0.1}, "entropy": float("nan")},
    {"event": "test", "protocols": {"full": {}}},
    {"event": "test", "protocols": {"full": 3}},
    {"event": "test", "protocols": {"full": {"NDCG@10": None}}},
    {"event": "test", "protocols": {}, "users": "everybody"},
    {"event": "test", "protocols": {}, "errors": [1]},
    {"event": "end", "reason": 7, "seconds": 1.0},
    {"event": "end", "reason": "x", "seconds": "1"},
    {"event": ["end"]},
    {"event": {"a": 1}},
)


def weights(alter: Callable[[dict[str, torch.Tensor]], Any]) -> Break:
    def apply(folder: Path) -> None:
        found = load_file(folder / "model.safetensors")
        alter(found)
        save_file(found, folder / "model.safetensors")

    return apply


def _renamed(items: Path) -> None:
    items.write_text(items.read_text().replace("\n1,", "\n1,x"))


def append(line: str) -> Break:
    def apply(folder: Path) -> None:
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(line + "\n")

    return apply


def snapshot(**tensors: Any) -> Break:
    kept = {name: torch.as_tensor(values) for name, values in tensors.items()}
    return lambda folder: save_file(kept, folder / "epochs" / "0001.safetensors")


def _runs() -> Iterator[Odd]:
    yield from objects("config.json")
    for name in ("config.json", "model.safetensors", "metrics.jsonl", "items.csv"):
        yield from files(name)
    for place in SETTINGS:
        rng = random.Random(place)
        for value in rng.sample(NUMBERS, 5):
            if (place, value) not in (("train__seed", 0), ("data__k_core", 0)):
                yield Odd(f"config.json: {place} is {value!r}", change("config.json", **{place: value}), place.replace("__", "."))
    yield Odd("config.json: layers of a million", change("config.json", model__layers=10**6), "model.layers must lie in")
    yield Odd("config.json: columns of lists", change("config.json", data__columns={"user": [1]}), "data.columns must map")
    yield Odd("config.json: a world of 10⁹", change("config.json", data__planted__users=10**9), "data.planted.users")
    yield Odd(
        "config.json: a world of 10⁹ events",
        change("config.json", data__planted__users=10**6, data__planted__mean_length=1000, data__planted__max_length=1000),
        "data.planted would be a world of",
    )
    yield Odd("config.json: a device with a bell", change("config.json", train__device="cpu\a"), "train.device must be")
    yield Odd("config.json: a source that turns", change("config.json", data__source="\u202eanted"), "data.source must be")
    yield Odd("config.json: 200 GB of experts", change("config.json", model__side=4096, model__width=4096), "parameters", True)
    for what, given, says in WRONG:
        yield Odd(f"config.json: {what}", change("config.json", **given), says)
    for source, says in (("/etc/passwd", "has no columns"), ("http://127.0.0.1:9/x.csv", "http://127.0.0.1:9/x.csv")):
        yield Odd(f"config.json: data from {source}", change("config.json", data__source=source), says, True)
    for what, alter, says in (
        ("one is missing", lambda found: found.pop("norm.weight"), "norm.weight"),
        ("one too many", lambda found: found.update(evil=torch.zeros(1)), "evil"),
        ("another shape", lambda found: found.update({"events.items.weight": torch.zeros(61, 7)}), "events.items.weight"),
        ("a temperature beyond all", lambda found: found["memories.0.keys.log_temperature"].fill_(500.0), "no item gets a score"),
    ):
        yield Odd(f"weights: {what}", weights(alter), says, True)
    for name in ("model.safetensors", "items.csv"):
        yield Odd(f"{name}: empty", write(name, ""), name, True)
        yield Odd(f"{name}: a pickle", write(name, pickle.dumps(Bomb())), name, True)
    yield Odd("items.csv: missing", lambda folder: (folder / "items.csv").unlink(), "items.csv", True)
    yield Odd("items.csv: cut short", lambda folder: os.truncate(folder / "items.csv", 40), "other items", True)
    yield Odd("items.csv: others", lambda folder: _renamed(folder / "items.csv"), "other items", True)
    yield Odd("weights: cut short", lambda folder: os.truncate(folder / "model.safetensors", 1_000), "cannot be read", True)
    for what, data in LINES.items():
        yield Odd(f"metrics.jsonl: {what}", write("metrics.jsonl", data), "at most" if len(data) > 2**23 else "")
    for i, row in enumerate(ODD_ROWS):
        yield Odd(f"metrics.jsonl: odd row {i}", append(json.dumps(row)))
    yield Odd("items.csv: an endless cell", write("items.csv", f'id,raw\n1,"{"x" * 131_073}"\n'), "no table of items", True)
    yield Odd("items.csv: a quotation that never ends", write("items.csv", 'id,raw\n1,"x\n'), "items", True)
    yield Odd("items.csv: NUL", write("items.csv", "id,raw\n1,\0\n"), "items", True)
    for what, value in (("NaN", np.nan), ("infinite", np.inf), ("3e38", 3e38), ("-3e38", -3e38)):
        for tensor in ("norm.weight", "events.items.weight", "memories.0.keys.sub_keys", "memories.0.values.weight"):
            alter = weights(lambda found, tensor=tensor, value=value: found[tensor].view(-1)[-1:].fill_(value))
            yield Odd(f"weights: {what} in {tensor}", alter, tensor, True)
    yield Odd(
        "weights: of doubles beyond",
        weights(lambda w: w.update({"norm.bias": w["norm.bias"].double() + 1e300})),
        "norm.bias",
        True,
    )
    yield Odd(
        "weights: a header of exabytes", write("model.safetensors", (2**62).to_bytes(8, "little") + b"{}"), "cannot be read", True
    )
    yield Odd(
        "weights: a deep header",
        write("model.safetensors", (99_999).to_bytes(8, "little") + b"[" * 99_999),
        "cannot be read",
        True,
    )
    yield from harmless("resume.pt")
    yield from harmless("ranks.safetensors")
    yield from harmless("epochs/0001.safetensors")
    yield from harmless("maps/umap.npz")
    loads, values = np.zeros(64, np.int32), np.zeros((64, 32), np.float32)
    yield Odd("snapshot: of another size", snapshot(load=loads[:9], values=values[:9, :4].copy()))
    yield Odd("snapshot: load alone", snapshot(load=loads))
    yield Odd("snapshot: loads below nothing", snapshot(load=loads - 1, values=values))
    yield Odd("snapshot: loads that are shares", snapshot(load=loads.astype(np.float32), values=values))
    yield Odd("snapshot: values that are none", snapshot(load=loads, values=values * np.nan))
    yield Odd("snapshot: a table of loads", snapshot(load=np.zeros((64, 64), np.int32), values=values))


RUNS = tuple(_runs())

# --- what may lie in a list instead of a folder ----------------------------------------------------------------------------

NO_FOLDER: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a file": (lambda place: place.write_text("x"), "it is no folder"),
    "a pipe": (lambda place: os.mkfifo(place), "it is no folder"),
    "a link to a folder outside": (lambda place: place.symlink_to(_secret(place).parent), "it is a link"),
    "a link to the system": (lambda place: place.symlink_to("/etc"), "it is a link"),
    "a link to nowhere": (lambda place: place.symlink_to("nowhere"), "it is a link"),
    "a link to itself": (lambda place: place.symlink_to(place.name), "it is a link"),
    "an empty folder": (lambda place: place.mkdir(), "has no"),
}
ODD_NAMES = (b"\xff\xfe", b"\x1b[2J", "\u202e".encode(), b"x" * 200, b"line\nbreak")

# --- jobs ------------------------------------------------------------------------------------------------------------

RUN_NAMES: tuple[Any, ...] = (
    "../victim", "../../outside", "/etc", "local-../victim", "local-a/../../outside", "local-/etc", "..", ".", "", "local-",
    "tiny", "local-\0", "local-\n", "local-" + "x" * 500, "local-ä/b", "LOCAL-x", 7, None, ["local-x"], {"local": "x"}, True,
    "jobs",
)  # fmt: skip


def _jobs() -> Iterator[Odd]:
    yield from objects("job.json")
    # whatever is a link in the folder refuses it: what is written there would land elsewhere
    yield from files("job.json")
    for i, name in enumerate(RUN_NAMES):
        yield Odd(f"job.json: run {i} ({str(name)[:20]!r})", change("job.json", run=name), "names no run")
    yield Odd("job.json: no run", change("job.json", run=...), "names no run")
    for value in (..., [], "x", None, 3):
        yield Odd(f"job.json: configuration {value!r}", change("job.json", config=value), "holds no configuration")
    yield Odd("job.json: an empty configuration", change("job.json", config={}), "lacks the section")
    yield Odd("job.json: no heads", change("job.json", config__model__heads=0), "model.heads must lie in")
    yield Odd("job.json: an unknown model", change("job.json", config__model__name="../x"), "unknown model")
    for what, (data, says) in NO_OBJECT.items():
        yield Odd(f"end.json: {what}", write("end.json", data), says)
    for what, (make, says) in NO_FILE.items():
        yield Odd(f"end.json: {what}", instead("end.json", make), "is a link" if "link" in what else says)
    for value in (
        {},
        {"state": "running"},
        {"state": 3},
        {"state": ["finished"]},
        {"state": "failed", "reason": [1]},
        {"reason": "x"},
    ):
        yield Odd(f"end.json: {json.dumps(value)}", write("end.json", json.dumps(value)), "does not say how it ended")
    for name in ("progress.json", "begun.json", "beat", "stop", "log.txt", "spare"):
        for what in EACH_KIND:
            yield Odd(f"{name}: {what}", instead(name, NO_FILE[what][0]), "is a link" if "link" in what else "")
    for what, (data, _) in NO_OBJECT.items():
        yield Odd(f"progress.json: {what}", write("progress.json", data))
    for value in NUMBERS:
        text = json.dumps({"event": "step", "epoch": 1, "done": value, "of": 3, "loss": 1.0})
        yield Odd(f"progress.json: done is {value!r}", write("progress.json", text))
    yield Odd("log.txt: a novel", write("log.txt", "x" * 10**6 + "\n" + "\x1b[2J\0" * 99))


JOBS = tuple(_jobs())

# --- uploads ---------------------------------------------------------------------------------------------------------


def _uploads() -> Iterator[Odd]:
    yield from objects("upload.json")
    yield from files("upload.json")
    yield from files("data.csv")
    for value in (..., "other", 3, None, ["file"]):
        yield Odd(f"upload.json: kind {value!r}", change("upload.json", kind=value), "neither of a file nor")
    for value in (
        ...,
        "",
        7,
        None,
        "mine",
        "mine · ffff",
        "![x](http://127.0.0.1:9/y) · {id}",
        "<script> · {id}",
        "x" * 999 + " · {id}",
    ):
        yield Odd(f"upload.json: label {str(value)[:30]!r}", _label(value), "of other data than its name")
    for value in (
        ...,
        [],
        None,
        {"people": 1},
        {"people": "x", "items": 1, "events": 1},
        {"people": -1, "items": 1, "events": 1},
    ):
        yield Odd(f"upload.json: facts {value!r}", change("upload.json", facts=value), "does not count people")
    for value in (..., 7, "yesterday", "2026-01-01 00:00:00\n", None):
        yield Odd(f"upload.json: when {value!r}", change("upload.json", when=value), "when it was kept")
    for value in (..., [], 3, None):
        yield Odd(f"upload.json: configuration {value!r}", change("upload.json", config=value), "has no configuration")
    for value in NUMBERS:
        if value != 0 or value is None or isinstance(value, bool):
            yield Odd(f"upload.json: core {value!r}", change("upload.json", config__k_core=value), "k_core")
    yield Odd("upload.json: an unknown key", change("upload.json", config__evil=1), "unknown key")
    yield Odd("upload.json: columns of lists", change("upload.json", config__columns={"user": [1]}), "data.columns")
    yield Odd("upload.json: a planted world of 10⁹", change("upload.json", config__planted__users=10**9), "data.planted")
    yield Odd("upload.json: a file that says planted", change("upload.json", kind="planted"), "neither of a file nor")
    yield Odd("data.csv: none", lambda folder: (folder / "data.csv").unlink(), "has no data.csv")


def _label(value: Any) -> Break:
    def apply(folder: Path) -> None:
        said = value.replace("{id}", folder.name[:4]) if isinstance(value, str) else value
        change("upload.json", label=said)(folder)

    return apply


UPLOADS = tuple(_uploads())
