"""The systems as all outside the core know them: the contract they keep, their list (wiring.py says where they are), and what is
asked of one before it is built: has the machine room for it, and can it keep and score its items as its settings say? A file of a
model needs nothing else of the core but what it is made of (core/layers.py).

**A new model** is one file in `elastic_core/peers/`, or in a folder that ELASTIC_PLUGINS names: a frozen configuration class with
a `name`, whose settings come beside those of `ModelConfig` (length, width, layers, heads, dropout; a number has its bounds,
`rank: Annotated[int, Within(1, 512)] = 64`), and a class with `@register`. Copy the nearest peer. The class begins from

    Blocks       (peers/parts/blocks.py)    SASRec's blocks around another `attention`, and nothing else to define: linformer.py
    Stepwise     (peers/parts/stepwise.py)  recurrent: `forward`, and `advance`, which reads on from what it kept: gru4rec.py
    Recommender  (here)                     anything else, by `forward` and `last_state`: layers of attention, hstu.py; attention
                                            over a bag of events, shan.py. Without training `fit` and `score`: popularity.py

`self.events = embedded(config, self.n_items, positions=True)` (peers/parts/blocks.py) is the usual input: `x = self.events(
batch.items, batch.padded)` are the items' rows times √d, plus positions, with dropout, zero on padding, not normalised. Scores
are a state's products with the same table, unless `scorer` says otherwise. Its docstring says which settings are not used.

It is given a `Batch`: `items [B, N]`, left-padded with 0, so the newest event is the last column; `real [B, N]`, True on events;
`mask`, the same or None where nothing is padded; `times` or None. `forward` answers `Encoded(states)`, `[B, N, d]`, of which none
is used at padding, `last_state` the last of them, `[B, d]`. `objective` is what it learns from: "all" (every position at once) if
it is `causal`, that is, if no state depends on a later event; "last" if not; "cloze" if it `masks`. tests/test_contracts.py holds
it to this: no state sees its target, neither padding nor other rows change one, the loss reaches every parameter, and no step
waits for its device (no `.item()`, no index that is a mask).

All else has a default. `variants` names it in the app. `kept_per_event` prices a training before its first step: the default, of
blocks of width d around an attention that holds its N x N weights, is safe for most; define it if tests/test_budget.py says that
it is not, or where a long history costs less (`self.kept_by_blocks()`): how many numbers one event keeps in one of `layers`
layers, never less than it does, a whole step at most 8 times that. What it takes: `bench --systems NAME --lengths 256`; N x N
vectors are made again by rows under `checkpoint` (shan.py). What only some tell, as `last_weights`, is in
peers/parts/capabilities.py.
"""

# ruff: noqa: F401
# mypy: implicit-reexport

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from elastic_core.core.batches import Batch, Met
from elastic_core.core.config import ConvWidth, Few, Length, ModelConfig, Several, Weight, Within
from elastic_core.core.contract import (
    MODELS,
    Attribution,
    Edit,
    Encoded,
    Judge,
    Pairs,
    Recommender,
    Retrieved,
    Retrieves,
    Scorer,
    Streams,
    Trace,
    Traces,
    Variant,
    balance_penalty,
    can_retrieve,
    can_stream,
    check_data,
    memory_of,
    model_class,
    register,
    tracing,
)  # fmt: skip
from elastic_core.core.histories import Catalog
from elastic_core.core.plugs import plugged
from elastic_core.errors import InputError

LARGEST = 1e12  # of a weight: far beyond any that was learned, far below what float32 overflows from
MOST_PARAMETERS = 200_000_000  # and buffers: 0.8 GB of weights, 3.2 GB with gradients and the optimiser's two moments


def names() -> tuple[str, ...]:
    """Those of this package by name, then your own."""
    return tuple(MODELS)


def build(config: ModelConfig, catalog: Catalog | int) -> Recommender:
    """A fresh model for a catalogue; a number stands for that many items of which nothing else is known.

    Raises InputError for an unknown name, listing the known ones, for a model beyond the budget, before it is built, and for one
    that cannot keep or score its items as asked."""
    known = Catalog.numbered(catalog) if isinstance(catalog, int) else catalog
    outline(config, known)
    made = model_class(config.name)(config, known)
    if config.items_by_rows and not any(bank.padding for bank in made.banks().values()):
        raise InputError(f"{config.name} has no item table that is learned by rows: take model.item_bank=dense")
    if config.output == "own" and made.trained and (made.output is None or made.scorer().table is not made.output.weight):
        raise InputError(f"{config.name} scores items in a way of its own: take model.output=tied")
    return made


def outline(config: ModelConfig, catalog: Catalog | int) -> Recommender | None:
    """The model's shapes without its numbers, in milliseconds and no memory; None where only building it could tell.

    Raises InputError with the number and the bound if it would hold more than MOST_PARAMETERS, items by rows among them, or more
    in experts that are kept by rows than a machine holds (scale/row_bank.py)."""
    known = Catalog.numbered(catalog) if isinstance(catalog, int) else catalog
    kind = model_class(config.name)
    if not kind.objective:
        return None  # it has no weights: what it counts from its data has bounds of its own
    try:
        with shapes_only():
            found = kind(config, known)
    except InputError:
        raise
    except (RuntimeError, NotImplementedError, TypeError):  # it asks for a number while it is built
        return None
    banks = found.banks()
    items = [bank.weight for bank in banks.values() if bank.padding]  # sooner or later every row is changed, and written to disk
    numbers = sum(tensor.numel() for tensor in (*found.parameters(), *found.buffers(), *items))
    if numbers > MOST_PARAMETERS:
        raise InputError(
            f"this model would have {numbers:,} parameters for {known.n_items:,} items; at most {MOST_PARAMETERS:,} are allowed"
        )
    if banks:
        plugged("tables by rows").check_room(banks)
    return found


def learned_numbers(model: Recommender) -> int:
    """How many numbers of a model a training may change: its parameters and the rows of its banks."""
    return sum(table.numel() for table in (*model.parameters(), *(bank.weight for bank in model.banks().values())))


# --- shapes without numbers ------------------------------------------------------------------------------------------


SCALED = ("mul", "rmul", "div", "truediv", "rtruediv", "add", "radd", "sub", "rsub", "normalize")  # with numbers alone


@contextmanager
def shapes_only() -> Iterator[None]:
    """Inside, what modules make of numbers is without them."""
    with torch.device("meta"), _Unfilled():
        yield


class _Unfilled(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, name = (*args, *(kwargs or {}).values()), getattr(func, "__name__", "")
        if func in (torch.eye, torch.randn):
            sizes = (args[0], args[-1]) if func is torch.eye else args
            return torch.empty(*sizes, **{key: value for key, value in (kwargs or {}).items() if key != "generator"})
        if func is torch.arange and all(isinstance(number, int) for number in args):
            return torch.empty(len(range(*args)), dtype=(kwargs or {}).get("dtype") or torch.int64)
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__") and name != "requires_grad_")
        tensors = [value for value in given if isinstance(value, Tensor)]
        if tensors and tensors[0].is_meta and (in_place or (name.strip("_") in SCALED and len(tensors) == 1)):
            return tensors[0] if in_place else torch.empty(tensors[0].shape, dtype=tensors[0].dtype)
        return func(*args, **(kwargs or {}))
