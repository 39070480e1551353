"""The systems as all outside the core know them: the contract they keep, and their list (core/registry.py says where they are).
A file of a model needs nothing else of the core but what it is made of (core/layers.py).

**A new model** is one file in `elastic_core/peers/`, or in a folder that ELASTIC_PLUGINS names: a frozen configuration class with
a `name`, whose settings come beside those of `ModelConfig` (length, width, layers, heads, dropout; a number has its bounds,
`rank: Annotated[int, Within(1, 512)] = 64`), and a class with `@register`. Copy the nearest peer. The class begins from

    Blocks       (peers/parts/blocks.py)    SASRec's blocks around another `attention`, and nothing else to define: linformer.py
    Stepwise     (peers/parts/stepwise.py)  recurrent: `forward`, and `read_on` from what it kept: gru4rec.py
    Recommender  (here)                     anything else, by `forward` and `last_state`: layers of attention, hstu.py; attention
                                            over a bag of events, shan.py. Without training `fit` and `score`: popularity.py

`self.events = embedded(config, self.n_items, positions=True)` (peers/parts/blocks.py) is the usual input: `x = self.events(
batch.items, batch.padded)` are the items' rows times √d, plus positions, with dropout, zero on padding, not normalised. Scores
are a state's products with the same table, unless `scorer` says otherwise. Its docstring says which settings are not used.

A layer with a bias, and any recurrence, must not run over that padding: `left_align` (core/layers.py) turns the rows, as
gru4rec.py does. The file's name is the model's `name`, with _ for -.

It is given a `Batch`: `items [B, N]`, left-padded with 0, so the newest event is the last column; `real [B, N]`, True on events;
`mask`, the same or None where nothing is padded; `times` or None. `forward` answers `Encoded(states)`, `[B, N, d]`, of which none
is used at padding, `last_state` the last of them, `[B, d]`. `objective` is what it learns from: "all" (every position at once) if
it is `causal`, that is, if no state depends on a later event; "last" if not; "cloze" if it `masks`. tests/test_contracts.py holds
it to this: no state sees its target, neither padding nor other rows change one, the loss reaches every parameter, and no step
waits for its device (no `.item()`, no index that is a mask).

All else has a default. `variants` names it in the app. `saved_per_event` prices a training before its first step: the default, of
blocks of width d around an attention that holds its N x N weights, is safe for most; define it if tests/test_budget.py says that
it is not, or where a long history costs less (`self.saved_by_blocks()`): how many numbers one event keeps in one of `layers`
layers, never less than it does, a whole step at most 8 times that. What it takes: `bench --systems NAME --lengths 256`; N x N
vectors are made again by rows under `checkpoint` (din.py). What only some tell, as `last_weights`, is in
peers/parts/capabilities.py.
"""

# ruff: noqa: F401
# mypy: implicit-reexport

from elastic_core.core.batches import Batch, SeenItems
from elastic_core.core.building import build, outline
from elastic_core.core.config import ConvWidth, Few, Length, ModelConfig, Several, Weight, Within
from elastic_core.core.contract import (
    MODELS,
    Attribution,
    BeginsWithItems,
    Edit,
    Encoded,
    Judge,
    Mixture,
    PairwiseScorer,
    Recommender,
    Retrieved,
    RetrievingModel,
    Scorer,
    StreamingModel,
    Trace,
    TracingModel,
    Variant,
    as_retrieving_model,
    as_tracing_model,
    balance_penalty,
    can_retrieve,
    can_stream,
    check_data,
    model_class,
    register,
)  # fmt: skip
from elastic_core.core.histories import Catalog


def model_names() -> tuple[str, ...]:
    """Those of this package by name, then your own."""
    return tuple(MODELS)
