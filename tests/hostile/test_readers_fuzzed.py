"""Every reader on disk, given what hypothesis thinks of: what it promises, or one sentence.

60 cases each; ELASTIC_FUZZ_CASES=2000 makes more.
"""

import io
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from safetensors.torch import save_file

from elastic_core import disk, recipes
from elastic_core.core.histories import Catalog
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig
from elastic_core.runs import Run, list_runs, ranks, unreadable_runs
from elastic_core.runs.weights import model_from
from elastic_core.services.background.queue import queue
from elastic_core.services.data.shelf import Shelf, checked, folded, opened
from elastic_core.services.experts.jobs import COLUMNS, EFFECTS, _effects
from elastic_core.services.map import layouts
from elastic_core.services.speed.plan import Plan
from elastic_core.services.train import run_table
from elastic_core.services.train.jobs import Jobs
from elastic_core.services.train.watching import watch
from elastic_core.study.asked import StudyAsked

pytestmark = pytest.mark.slow
NAMES = ("user", "item", "time")
CASES = int(os.environ.get("ELASTIC_FUZZ_CASES", "60"))
fuzzed = settings(max_examples=CASES, suppress_health_check=list(HealthCheck), deadline=None, derandomize=True, database=None)
numbers = (
    some.integers() | some.floats() | some.sampled_from([0, 1, -1, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf")])
)
leaves = (
    some.none() | some.booleans() | numbers | some.text(max_size=20) | some.sampled_from(["full", "NDCG@10", "failed", "step"])
)
values = some.recursive(
    leaves, lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4)
)
PICK = some.integers(0, 10**6)


def altered(plain: Any, where: int, value: Any, how: int) -> Any:
    """A copy with one value, anywhere in it, replaced, taken out or put beside."""
    plain = json.loads(json.dumps(plain))
    places: list[tuple[Any, Any]] = []

    def walk(holder: Any) -> None:
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            places.append((holder, key))
            if isinstance(holder[key], dict | list):
                walk(holder[key])

    walk(plain)
    holder, key = places[where % len(places)]
    if how % 4 == 0:
        del holder[key]
    elif how % 4 == 1 and isinstance(holder, dict):
        holder[str(value)[:30]] = holder[key]
    else:
        holder[key] = value
    return plain


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def broken(data: bytes, where: int, how: int) -> bytes:
    """A file with a byte turned, cut short, or a stretch of it doubled or taken out."""
    at = where % (len(data) + 1)
    return (
        data[:at] + bytes([how % 256]) + data[at + 1 :],
        data[:at],
        data[:at] + data[at + 1 + how % 100 :],
        data[:at] + data[max(at - 1 - how % 100, 0) :],
    )[how % 4]


def one_sentence(error: InputError) -> None:
    said = str(error)
    assert "\n" not in said and 5 < len(said) < 1_200 and said.encode("utf-8")


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def root(tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(tiny_runs, tmp_path_factory.mktemp("fuzzed") / "runs"))


def listed(root: Path) -> None:
    """The neighbour is there; the run itself is, too, or is said with its reason; and tables of all of them can be drawn."""
    names, faults = [run.name for run in list_runs(root)], unreadable_runs(root)
    assert "tiny-peer" in names and ("tiny" in names) != bool(faults)
    for fault in faults:
        one_sentence(InputError(fault.reason))
    if "tiny" in names:
        run_table.runs_table([Run(root / "tiny")])
        run_table.curves([Run(root / "tiny")])


@fuzzed
@given(PICK, values, PICK)
def test_config_json(root: Path, where: int, value: Any, how: int) -> None:
    path = root / "tiny" / "config.json"
    whole = (root / "tiny-peer" / "config.json").read_text()
    path.write_bytes(dumped(altered(json.loads(whole), where, value, how)))
    listed(root)


@fuzzed
@given(some.binary(max_size=200) | some.builds(dumped, values))
@example(b'{"model": {"name": "elastic"}}')
def test_config_json_of_anything(root: Path, data: bytes) -> None:
    (root / "tiny" / "config.json").write_bytes(data)
    listed(root)


@fuzzed
@given(PICK, values, PICK, PICK)
def test_metrics_jsonl(tiny_runs: Path, root: Path, where: int, value: Any, how: int, line: int) -> None:
    shutil.copy(tiny_runs / "tiny" / "config.json", root / "tiny")
    lines = (tiny_runs / "tiny" / "metrics.jsonl").read_text().splitlines()
    at = line % len(lines)
    lines[at] = dumped(altered(json.loads(lines[at]), where, value, how)).decode()
    (root / "tiny" / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    listed(root)
    assert not unreadable_runs(root)


@fuzzed
@given(PICK, PICK)
def test_metrics_jsonl_with_a_broken_byte(tiny_runs: Path, root: Path, where: int, how: int) -> None:
    shutil.copy(tiny_runs / "tiny" / "config.json", root / "tiny")
    (root / "tiny" / "metrics.jsonl").write_bytes(broken((tiny_runs / "tiny" / "metrics.jsonl").read_bytes(), where, how))
    listed(root)
    assert not unreadable_runs(root)


@fuzzed
@given(PICK, PICK)
def test_items_csv(tiny_runs: Path, root: Path, where: int, how: int) -> None:
    (root / "tiny" / "items.csv").write_bytes(broken((tiny_runs / "tiny" / "items.csv").read_bytes(), where, how))
    try:
        assert Run(root / "tiny").n_items() > 0
    except InputError as error:
        one_sentence(error)


@fuzzed
@given(PICK, PICK)
def test_weights_with_a_broken_byte(tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory, where: int, how: int) -> None:
    """Most bytes are of numbers, so every second case is in the header."""
    run, path = Run(tiny_runs / "tiny"), tmp_path_factory.getbasetemp() / "weights.safetensors"
    data = (run.path / "model.safetensors").read_bytes()
    header = int.from_bytes(data[:8], "little") + 8
    path.write_bytes(broken(data, where % header if how % 8 < 4 else where, how))
    try:
        model = model_from(path, run.config.model, run.catalog(), "tiny/model.safetensors")
        assert all(part.isfinite().all() for part in model.state_dict().values())
    except InputError as error:
        one_sentence(error)


@fuzzed
@given(
    some.dictionaries(
        some.sampled_from(["norm.weight", "norm.bias", "x"]),
        some.lists(numbers.filter(lambda n: abs(n) < 1e300 or n != n), max_size=40),
    )
)
def test_weights_of_any_numbers(
    tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory, given_: dict[str, list[float]]
) -> None:
    run, path = Run(tiny_runs / "tiny"), tmp_path_factory.getbasetemp() / "weights.safetensors"
    save_file({name: torch.tensor([float(n) for n in numbers_], dtype=torch.float64) for name, numbers_ in given_.items()}, path)
    with pytest.raises(InputError) as error:
        model_from(path, run.config.model, Catalog.numbered(5), "tiny/model.safetensors")
    one_sentence(error.value)


@fuzzed
@given(PICK, PICK)
def test_ranks(tiny_runs: Path, root: Path, where: int, how: int) -> None:
    path = root / "tiny" / ranks.FILE
    path.write_bytes(broken((tiny_runs / "tiny" / ranks.FILE).read_bytes(), where, how))
    try:
        assert ranks.read_ranks(path, "tiny/ranks.safetensors").interval("full", "NDCG@10").mean <= 1
    except InputError as error:
        one_sentence(error)


@fuzzed
@given(PICK, PICK)
def test_snapshots(tiny_runs: Path, root: Path, where: int, how: int) -> None:
    shutil.copy(tiny_runs / "tiny" / "config.json", root / "tiny")
    run, data = Run(root / "tiny"), (tiny_runs / "tiny" / "epochs" / "0001.safetensors").read_bytes()
    header = int.from_bytes(data[:8], "little") + 8
    (run.path / "epochs" / "0001.safetensors").write_bytes(broken(data, where % header if how % 8 < 4 else where, how))
    for table in layouts.snapshots(run)[1]:
        assert table.shape == (run.config.model.side**2, run.config.model.width) and np.isfinite(table).all()  # type: ignore[attr-defined]


@fuzzed
@given(PICK, PICK)
def test_maps(tiny_runs: Path, root: Path, where: int, how: int) -> None:
    shutil.copy(tiny_runs / "tiny" / "config.json", root / "tiny")
    run = Run(root / "tiny")
    table = layouts.snapshots(Run(tiny_runs / "tiny"))[1][-1]
    experts = np.arange(len(table))
    store = layouts.Store(experts, {"umap-15-0.1-0": table[:, :2]}, about={"hash": layouts.values_fingerprint(table)})
    path = layouts.write_store(run, store)
    path.write_bytes(broken(path.read_bytes(), where, how))
    found = layouts.read_store(run, table)
    assert found is None or all(np.isfinite(xy).all() and xy.shape == (len(found.experts), 2) for xy in found.layouts.values())


# --- jobs, maps, measurements, uploads, rows -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Jobs, "_spawn", lambda self, job: None)
        jobs = Jobs(tmp_path_factory.mktemp("jobs"))
        jobs.submit(recipes.toy(), "odd")
        jobs.submit(recipes.toy(), "good")
    return jobs


JOB_FILES: dict[str, Any] = {
    "end.json": {"state": "failed", "reason": "x", "time": 1.0},
    "progress.json": {"event": "step", "epoch": 1, "done": 2, "of": 3, "loss": 1.0, "time": 1.0},
}


@fuzzed
@given(some.sampled_from(["job.json", *JOB_FILES]), PICK, values, PICK)
def test_jobs(jobs: Jobs, name: str, where: int, value: Any, how: int) -> None:
    folder, good = sorted(jobs.folder.glob("2*"))
    asked = {**json.loads((good / "job.json").read_text()), "run": "local-odd"}
    (folder / "job.json").write_text(json.dumps(asked))
    for other in JOB_FILES:
        (folder / other).unlink(missing_ok=True)
    (folder / name).write_bytes(dumped(altered(JOB_FILES.get(name, asked), where, value, how)))
    found, faults = jobs.all(), jobs.unreadable()
    assert found[-1].run.name == "local-good" and len(found) + len(faults) == 2
    for job in found:
        assert job.run.path.parent == jobs.root
        assert 0 <= watch(job).share <= 1
    for fault in faults:
        one_sentence(InputError(fault.reason))


ASKED: dict[str, dict[str, Any]] = {
    "map": {"run": "tiny", "neighbours": 15, "distance": 0.1, "aligned": False, "experts": [1, 2, 3]},
    "speed": asdict(Plan(lengths=(64, 128), systems=("elastic",))),
    "evidence": {"run": "tiny", "weights": "0123"},
    "experts": {"run": "tiny", "weights": "0123", "data": "4567"},
    "study": StudyAsked(DataConfig(source="planted"), 5.0).plain(),
}
PARTS = {"end": JOB_FILES["end.json"], "progress": {"done": 1, "of": 3, "text": "x"}}


@fuzzed
@given(some.sampled_from(sorted(ASKED)), some.sampled_from(["job", *PARTS]), PICK, values, PICK)
def test_jobs_of_other_kinds(root: Path, kind: str, name: str, where: int, value: Any, how: int) -> None:
    jobs = queue(root, kind)
    folder = jobs.folder / "20200101-000000-000000"
    folder.mkdir(parents=True, exist_ok=True)
    for part, plain in {"job": ASKED[kind], **PARTS}.items():
        (folder / f"{part}.json").write_bytes(dumped(altered(plain, where, value, how) if part == name else plain))
    for found in jobs.all():
        assert 0 <= found.share <= 1 and found.seconds >= 0 and disk.showable(found.text + found.reason)
        if kind == "speed":
            assert found.asked.steps() > 0
        if kind == "map":
            assert disk.showable(found.asked.title) and len(found.asked.experts)
    for fault in jobs.unreadable():
        one_sentence(InputError(fault.reason))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    text = "user,item,time\n" + "".join(f"u{u},i{(i + u) % 7},{1_000_000_000 + u * 7 + i}\n" for u in range(6) for i in range(7))
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    for name in ("good", "odd"):
        sheet, mapping = opened(f"{name}.csv", text.replace("u1", name).encode())
        shelf.keep(folded(sheet.shown, checked(sheet, mapping), 5), name)
    return shelf


@fuzzed
@given(PICK, values, PICK)
def test_uploads(shelf: Shelf, where: int, value: Any, how: int) -> None:
    odd = next(path for path in shelf.folder.iterdir() if '"label": "odd' in (path / "upload.json").read_text())
    whole = (odd / "upload.json").read_bytes()
    (odd / "upload.json").write_bytes(dumped(altered(json.loads(whole), where, value, how)))
    try:
        kept, faults = shelf.all(), shelf.unreadable()
    finally:
        (odd / "upload.json").write_bytes(whole)
    assert len(kept) + len(faults) == 2 and any(entry.label.startswith("good") for entry in kept)
    for entry in kept:
        assert f"{entry.facts['people']:,} {entry.facts['items']:,} {entry.facts['events']:,} {entry.when}".encode()
    for fault in faults:
        one_sentence(InputError(fault.reason))


MINE = pd.DataFrame([(f"u{u}", f"i{(i + u) % 7}", 10**9 + u * 7 + i) for u in range(6) for i in range(7)], columns=NAMES)


def sent() -> dict[str, bytes]:
    """The same rows in every kind of file."""
    plain, files = {"index": False}, {"mine.csv": MINE.to_csv(index=False).encode()}
    for name, how, more in (
        ("lines", "json", {"orient": "records", "lines": True}), ("json", "json", {}), ("xlsx", "excel", plain),
        ("parquet", "parquet", plain), ("feather", "feather", {}),
        *((way, "csv", {**plain, "compression": way}) for way in ("gzip", "xz", "zip", "tar")),
    ):  # fmt: skip
        out = io.BytesIO()
        getattr(MINE, f"to_{how}")(out, **more)
        files[name] = out.getvalue()
    return files


SENT = sent()


@fuzzed
@given(
    some.builds(lambda name, where, how: broken(SENT[name], where, how), some.sampled_from(sorted(SENT)), PICK, PICK)
    | some.binary(max_size=300)
    | some.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_what_is_sent(data: bytes) -> None:
    try:
        sheet, guessed = opened("mine", data)
        table = checked(sheet, {**dict(zip(NAMES, sheet.sample.column_names, strict=False)), **guessed})
    except InputError as error:
        one_sentence(error)
    else:
        assert len(table.events) + table.faults.count == table.faults.rows and len(table.understood) >= 3


@fuzzed
@given(PICK, PICK)
def test_tables_of_passes(tmp_path_factory: pytest.TempPathFactory, where: int, how: int) -> None:
    path = tmp_path_factory.getbasetemp() / EFFECTS
    path.write_bytes(broken(",".join(COLUMNS).encode() + b"\n3,10,-1.5,0.01,-0.02,0.04\n7,1,0.0,0.0,,\n", where, how))
    found = _effects(path, (where, how))
    assert found is None or found.dtypes.tolist() == ["int64", "int64", *["float64"] * 4]


@fuzzed
@given(some.text(max_size=300) | some.builds(lambda value: json.dumps(value), values))
def test_json_of_anything(text: str) -> None:
    try:
        found = disk.parse(text)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        json.dumps(found, ensure_ascii=False).encode("utf-8")


@fuzzed
@given(some.text() | some.integers() | some.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_what_is_shown_can_be_shown(value: Any) -> None:
    said = disk.shown(value)
    assert said.encode("utf-8") is not None and len(said) <= 100 and disk.showable(said)
