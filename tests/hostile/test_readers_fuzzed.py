"""Every reader of a stranger's file, given what hypothesis thinks of: what it promises, or one sentence.

60 cases each; ELASTIC_FUZZ_CASES=2000 makes more.
"""

import io
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from safetensors.torch import save_file

from elastic_core import files
from elastic_core.core.histories import Catalog
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.runs.weights import load_model
from elastic_core.services.data.upload_store import check_upload, open_upload

pytestmark = pytest.mark.slow
NAMES = ("user", "item", "time")
CASES = int(os.environ.get("ELASTIC_FUZZ_CASES", "60"))
fuzzed = settings(max_examples=CASES, suppress_health_check=list(HealthCheck), deadline=None, derandomize=True, database=None)
numbers = (
    some.integers() | some.floats() | some.sampled_from([0, 1, -1, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf")])
)
PICK = some.integers(0, 10**6)


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
        model = load_model(path, run.config.model, run.catalog(), "tiny/model.safetensors")
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
        load_model(path, run.config.model, Catalog.from_count(5), "tiny/model.safetensors")
    one_sentence(error.value)


# --- files that are sent -----------------------------------------------------------------------------------------------

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
        sheet, guessed = open_upload("mine", data)
        table = check_upload(sheet, {**dict(zip(NAMES, sheet.sample.column_names, strict=False)), **guessed})
    except InputError as error:
        one_sentence(error)
    else:
        assert len(table.events) + table.faults.count == table.faults.rows and len(table.understood) >= 3


@fuzzed
@given(some.text() | some.integers() | some.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_what_is_shown_can_be_shown(value: Any) -> None:
    said = files.printable_text(value)
    assert said.encode("utf-8") is not None and len(said) <= 100 and files.is_showable(said)
