"""What the core cannot work with: one clear sentence, by exception to who calls it, with exit code 2 to who types it.

Sizes of the memory and of the query network, states of followed people, and devices that are not there. Bad files are in
tests/data/test_bad_input.py, bad names and words in tests/test_cli.py.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from test_cli import refused
from torch import Tensor

from elastic_core import models
from elastic_core.commands import main
from elastic_core.core.batches import Batch
from elastic_core.core.elastic import ElasticConfig, MemoryConfig, QueryNetwork, top_pairs
from elastic_core.core.objective import WindowConfig
from elastic_core.errors import InputError
from elastic_core.following.people import Followed
from elastic_core.machine import find_device
from elastic_core.runs import Run

TRAIN = ["train", "--recipe=toy", "--out=run"]  # k = 4, side = 8
BENCH = ["bench", "--width=8", "--k=2", "--side=4", "--tokens=64", "--rounds=3", "--passes=forward", "--lengths=8"]
OPERATIONS, CATALOGUE, PEOPLE = [*BENCH, "--operations"], [*BENCH, "--catalogue=10000"], [*BENCH, "--people=1"]
NO_CUDA = "the device 'cuda' is not available"


# --- by exception ----------------------------------------------------------------------------------------------------


def longer_than_the_model_reads() -> Tensor:
    model = models.build(ElasticConfig(length=8, width=8, side=4, k=2), 20).eval()
    return model.score(Batch(items := torch.ones(1, 9, dtype=torch.int64), items))


@pytest.mark.parametrize(
    ("call", "naming"),
    [
        (lambda: top_pairs(torch.zeros(1, 2, 4), 17), "k must lie in 1 … side² = 16, not 17"),
        (lambda: top_pairs(torch.zeros(1, 2, 4), 0), "k must lie in 1 … side² = 16, not 0"),
        (lambda: MemoryConfig(side=4, k=17), "k must lie in 1 … side² = 16, not 17"),
        (lambda: MemoryConfig(side=1), "side must lie in 2 … 4096"),
        (lambda: MemoryConfig(side=math.nan), "side must be a number, not nan"),  # type: ignore[arg-type]
        (lambda: WindowConfig(span=0), "span must lie in 1"),
        (lambda: QueryNetwork(8, 4, 1, stride=1), "stride of 2 or more"),
        (lambda: QueryNetwork(8, 4, 1, stride=0), "stride of 2 or more"),
        (lambda: QueryNetwork(8, 4, 1, window=0), "window of 1 or more"),
        (lambda: QueryNetwork(8, 4, 1, window=-64), "window of 1 or more"),
        (lambda: QueryNetwork(8, 4, 1, stride=2)(torch.zeros(1, 9, 4), None), "cover 8 events, not 9"),
        (longer_than_the_model_reads, "8 events, not 9"),
        (lambda: find_device("cuda"), NO_CUDA),
    ],
)
def test_a_call_is_refused_in_one_sentence(call: Callable[[], object], naming: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_cuda(monkeypatch)
    with pytest.raises(InputError) as refused:
        call()
    assert naming in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("length", [2, 7, 8, 9, 64, 65, 200])
def test_strides_cover_every_length_to_its_oldest_event(length: int) -> None:
    """Whatever the length, the query depends on the first event and on the last."""
    torch.manual_seed(0)
    for stride in (2, 3, 8, 1_024):
        network, x = QueryNetwork(length, 4, 1, stride), torch.randn(1, length, 4, requires_grad=True)
        (gradient,) = torch.autograd.grad(network(x, None).square().sum(), x)
        assert (gradient[0, [0, -1]].abs().sum(-1) > 0).all()


# --- by exit code ----------------------------------------------------------------------------------------------------


def without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that has CUDA too."""
    real = torch.empty

    def empty(*sizes: Any, **options: Any) -> Tensor:
        if getattr(options.get("device"), "type", "") == "cuda":
            raise RuntimeError("Found no NVIDIA driver on your system.")
        return real(*sizes, **options)

    monkeypatch.setattr("elastic_core.machine.torch.empty", empty)


@pytest.mark.parametrize(
    ("words", "naming"),
    [
        *(
            ([*TRAIN, f"--set=model.{given}"], f"model.{given.split('=')[0]}")
            for given in (
                "k=65", "k=0", "k=-1", "k=2.5", "K=64", "side=0", "side=-3", "side=1", "side=4.5", "side=8x8", "side=nan",
                "length=1", "length=0",
            )
        ),
        ([*TRAIN, "--set=objective.span=0"], "objective.span"),
        ([*TRAIN, "--set=objective.span=-4"], "objective.span"),
        *(
            ([*measured, wrong], naming)
            for measured in (BENCH, OPERATIONS, CATALOGUE, PEOPLE)
            for wrong, naming in (
                ("--k=17", "model.k must lie in 1 … side² = 16"), ("--k=0", "model.k"), ("--side=0", "model.side"),
                ("--side=2.5", "--side"), ("--width=-2", "model.width"), ("--heads=0", "model.heads"),
            )
        ),
        ([*BENCH, "--lengths=-5"], "--lengths"),
        ([*BENCH, "--memory=nan"], "--memory"),
        ([*BENCH, "--minutes=nan"], "--minutes"),
        (["reproduce", "--only=planted", "--minutes=nan"], "--minutes"),
        ([*TRAIN, "--device=cuda"], NO_CUDA),
        ([*TRAIN, "--device=cuda:99"], "cuda:99"),
        ([*TRAIN, "--device=abacus"], "abacus"),
        ([*TRAIN, "--set=train.device=cuda"], NO_CUDA),
        ([*BENCH, "--device=cuda"], NO_CUDA),
        ([*BENCH, "--device=abacus"], "abacus"),
        ([*OPERATIONS, "--device=cuda"], NO_CUDA),
        ([*CATALOGUE, "--device=cuda"], NO_CUDA),
        ([*PEOPLE, "--device=cuda"], NO_CUDA),
        (["bench", "--bank", "--device=cuda"], NO_CUDA),
        (["reproduce", "--only=planted", "--device=cuda"], NO_CUDA),
        (["evaluate", "run", "--device=cuda"], NO_CUDA),
        (["stream", "run", "--events=-", "--device=cuda"], "--device=cuda"),  # these two have no other device than the processor
        (["serve", "--device=cuda"], "--device=cuda"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)  # fmt: skip
def test_a_command_is_refused_in_one_sentence(
    words: list[str], naming: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    without_cuda(monkeypatch)
    refused(words, naming, capsys)
    assert not list(tmp_path.iterdir()), "nothing is written of what cannot work"


# --- states of followed people ---------------------------------------------------------------------------------------

Change = Callable[[dict[str, Tensor], dict[str, str]], object]
BROKEN: dict[str, tuple[Change, str]] = {
    "version": (lambda kept, told: told.update(version="2"), "of version 2"),
    "format": (lambda kept, told: told.update(format="weights"), "no states"),
    "model": (lambda kept, told: told.update(model="gru4rec"), "states of gru4rec"),
    "weights": (lambda kept, told: told.update(weights="0" * 16), "other weights"),
    "room": (lambda kept, told: told.update(room="9999"), "room"),
    "people": (lambda kept, told: told.update(people='["a", "a"]'), "whose"),
    "nan": (lambda kept, told: kept["kept/0.total"].mul_(math.nan), "0.total that are none"),
    "nan state": (lambda kept, told: kept["states"][0, :1].fill_(math.nan), "states that are none"),
    "infinite": (lambda kept, told: kept["kept/0.mass"].div_(0), "0.mass that are none"),
    "shape": (lambda kept, told: kept.update({"kept/0.total": kept["kept/0.total"][:, 1:]}), "0.total is"),
    "kind": (lambda kept, told: kept.update({"kept/0.mass": kept["kept/0.mass"].double()}), "float64"),
    "missing": (lambda kept, told: kept.pop("kept/0.echo"), "0.echo is"),
    "items": (lambda kept, told: kept["histories"].add_(1_000_000), "histories beyond"),
    "used": (lambda kept, told: kept["used"].sub_(99), "used beyond"),
}  # fmt: skip


@pytest.fixture(scope="module")
def followed(tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with events in `new.csv` and, written by the command, the states of the runs `tiny` and `tiny-peer` after them."""
    folder = tmp_path_factory.mktemp("followed")
    raw = Run(tiny_runs / "tiny").raw_ids()
    (folder / "new.csv").write_text("".join(f"{who},{raw[i]}\n" for i in range(1, 6) for who in ("ann", "bob")))
    for run in ("tiny", "tiny-peer"):
        assert main(["stream", str(tiny_runs / run), f"--events={folder}/new.csv", f"--state={folder}/{run}"]) == 0
    return folder


@pytest.mark.parametrize("what", [*BROKEN, "other model", "other weights", "cut short"])
def test_states_of_another_and_states_that_are_not_sound(
    what: str, followed: Path, tiny_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = tmp_path / "states.safetensors", Run(tiny_runs / "tiny").model()
    with safe_open(followed / ("tiny-peer" if what == "other model" else "tiny"), framework="pt") as file:
        told, kept = file.metadata(), {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
    change, naming = BROKEN.get(what, (lambda kept, told: None, "sasrec" if what == "other model" else what))
    change(kept, told)
    save_file({key: part.contiguous() for key, part in kept.items()}, path, told)
    if what == "other weights":
        with torch.no_grad():
            next(model.parameters())[0, 0] += 1e-3
    elif what == "cut short":
        path.write_bytes(path.read_bytes()[:50])
    before = path.read_bytes()
    with pytest.raises(InputError) as found:
        Followed.load(path, model)
    assert naming in str(found.value) and "\n" not in str(found.value)
    if what != "other weights":
        refused(["stream", str(tiny_runs / "tiny"), f"--events={followed}/new.csv", f"--state={path}"], naming, capsys)
    assert path.read_bytes() == before, "a file that cannot be gone on from stays what it is"


def test_a_state_that_is_no_longer_a_number_does_not_replace_one_that_is(followed: Path, tiny_runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "states.safetensors"
    people = Followed.load(followed / "tiny", Run(tiny_runs / "tiny").model())
    people.save(path)
    before = path.read_bytes()
    people.states[0, 0] = math.nan
    with pytest.raises(InputError, match="numbers in states that are none"):
        people.save(path)
    assert path.read_bytes() == before
