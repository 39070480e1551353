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
from test_cli import refused
from torch import Tensor

from elastic_core import models
from elastic_core.core.batches import Batch
from elastic_core.core.elastic import ElasticConfig, MemoryConfig, QueryNetwork, top_pairs
from elastic_core.core.objective import WindowConfig
from elastic_core.errors import InputError
from elastic_core.machine import find_device

TRAIN = ["train", "--recipe=toy", "--out=run"]  # k = 4, n_subkeys = 8
BENCH = ["bench", "--width=8", "--k=2", "--n-subkeys=4", "--rounds=3", "--directions=forward", "--lengths=8"]
EVENTS = ["bench", "events", *BENCH[1:]]
NO_CUDA = "the device 'cuda' is not available"


# --- by exception ----------------------------------------------------------------------------------------------------


def longer_than_the_model_reads() -> Tensor:
    model = models.build(ElasticConfig(length=8, width=8, n_subkeys=4, k=2), 20).eval()
    return model.score(Batch(items := torch.ones(1, 9, dtype=torch.int64), items))


@pytest.mark.parametrize(
    ("call", "naming"),
    [
        (lambda: top_pairs(torch.zeros(1, 2, 4), 17), "k must lie in 1 … n_subkeys² = 16, not 17"),
        (lambda: top_pairs(torch.zeros(1, 2, 4), 0), "k must lie in 1 … n_subkeys² = 16, not 0"),
        (lambda: MemoryConfig(n_subkeys=4, k=17), "k must lie in 1 … n_subkeys² = 16, not 17"),
        (lambda: MemoryConfig(n_subkeys=1), "n_subkeys must lie in 2 … 4096"),
        (lambda: MemoryConfig(n_subkeys=math.nan), "n_subkeys must be a number, not nan"),  # type: ignore[arg-type]
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
                "k=65", "k=0", "k=-1", "k=2.5", "K=64", "n_subkeys=0", "n_subkeys=-3", "n_subkeys=1",
                "n_subkeys=4.5", "n_subkeys=8x8", "n_subkeys=nan",
                "length=1", "length=0",
            )
        ),
        ([*TRAIN, "--set=objective.span=0"], "objective.span"),
        ([*TRAIN, "--set=objective.span=-4"], "objective.span"),
        *(
            ([*measured, wrong], naming)
            for measured in (BENCH, EVENTS)
            for wrong, naming in (
                ("--k=17", "model.k must lie in 1 … n_subkeys² = 16"), ("--k=0", "model.k"), ("--n-subkeys=0", "model.n_subkeys"),
                ("--n-subkeys=2.5", "--n-subkeys"), ("--width=-2", "model.width"), ("--heads=0", "model.heads"),
            )
        ),
        ([*BENCH, "--lengths=-5"], "--lengths"),
        ([*BENCH, "--max-memory=nan"], "--max-memory"),
        ([*BENCH, "--minutes=nan"], "--minutes"),
        (["reproduce", "--only=planted", "--minutes=nan"], "--minutes"),
        ([*TRAIN, "--device=cuda"], NO_CUDA),
        ([*TRAIN, "--device=cuda:99"], "cuda:99"),
        ([*TRAIN, "--device=abacus"], "abacus"),
        ([*TRAIN, "--set=train.device=cuda"], NO_CUDA),
        ([*BENCH, "--device=cuda"], NO_CUDA),
        ([*BENCH, "--device=abacus"], "abacus"),
        ([*EVENTS, "--device=cuda"], NO_CUDA),
        (["bench", "training", "--device=cuda"], NO_CUDA),
        (["bench", "--gpu"], NO_CUDA),
        (["reproduce", "--only=planted", "--device=cuda"], NO_CUDA),
        (["evaluate", "run", "--device=cuda"], NO_CUDA),
        (["serve", "--device=cuda"], "no such option: --device"),  # which has no other device than the processor
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
