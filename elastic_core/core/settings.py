"""The settings of models with an interest memory, and ELASTIC's own: Table 3's switches and ours.

What each does: core/elastic.py. `memory=per-layer`: in the causal form all its memories are asked with the same events, not with
each layer's input; only the two-way form asks with the layer's input, as PKM-ACT prints it.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from elastic_core.core.config import ConvWidth, Few, ModelConfig, Several, Weight, Within
from elastic_core.errors import InputError


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(ModelConfig):
    side: Annotated[int, Within(2, 4_096)] = 16  # √K
    k: Several = 8
    memory: Literal["shared", "per-layer", "none"] = "shared"
    query: Literal["network", "mean", "votes"] = "network"
    votes: Few = 4  # m, experts an event votes for (query = votes)
    balance_weight: Weight = 0.3  # of the auxiliary loss that spreads what is asked over the sub-keys
    interest_weight: Weight = 0.0  # of the loss that asks experts to stand for items
    bank: Literal["dense", "rows"] = "dense"  # ours: `rows` touches only the experts a step retrieved; from some 30,000 on
    bank_rate: Annotated[float, Within(0, 1e9)] = 0.0  # learning rate of those rows; 0: train.learning_rate

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.items_by_rows and self.interest_weight:
            raise InputError("model.item_bank = rows needs model.interest_weight = 0: experts stand for every item there is")
        if self.k > self.side**2:
            raise InputError(f"model.k must lie in 1 … side² = {self.side**2}, not {self.k}")


@dataclass(frozen=True, kw_only=True)
class ElasticConfig(MemoryConfig, name="elastic", label="ELASTIC"):
    bidirectional: bool = False
    gate: Literal["softmax", "none"] = "softmax"
    query_norm: Literal["whiten", "layer"] = "whiten"
    dispatch: Literal["linear", "none"] = "linear"
    conv_width: ConvWidth = 8
