"""What is plugged into the core, and where it lies: models and objectives by their names, and what its sockets are asked for.

A file in `peers/` is a model of that name, one in `objectives/` an objective; nothing is imported before it is asked for.
"""

from pathlib import Path

from elastic_core.core.plugs import plug

HERE = Path(__file__).parent
SLOTS = {"elastic-slots": "elastic_core.slots.elastic_slots"}


def _files(room: str) -> dict[str, str]:
    """Name → module of the files of a room."""
    names = sorted(file.stem for file in (HERE / room).glob("*.py") if file.stem != "__init__")
    return {name.replace("_", "-"): f"elastic_core.{room}.{name}" for name in names}


plug(
    {
        "models": "elastic_core.wiring:MODELS",
        "objectives": "elastic_core.wiring:OBJECTIVES",
        "checked models": "elastic_core.models:build",
        "plugins": "elastic_core.plugins:load",
        "tables by rows": "elastic_core.scale.row_bank:RowBank",
        "a learner of rows": "elastic_core.scale.rows:LearnerOfRows",
        "compiled models": "elastic_core.scale.compiled:compile_in_place",
        "optimizers": "elastic_core.scale.eager:KINDS",
        "batches ahead": "elastic_core.scale.ahead:ahead",
        "causal attention": "elastic_core.scale.causal_attention:causal_attention",
        "the exact softmax": "elastic_core.scale.passes:exact_softmax",
        "linear layers in one pass": "elastic_core.scale.passes:linear_in_one_pass",
        "noise of dropout": "elastic_core.scale.passes:noise",
        "sums over earlier chunks": "elastic_core.scale.passes:sums_before",
        "a convolution with its gradient": "elastic_core.scale.passes:convolution",
        "negatives that a step shares": "elastic_core.scale.sampled_softmax:SharedNegatives",
        "drawn candidates": "elastic_core.data.candidates:DrawnCandidates",
        "ranks in a large catalogue": "elastic_core.scale.stretches:rank_stretches",
        "a memory that events vote for": "elastic_core.slots.voting:VotingMemory",
        "random parts of histories": "elastic_core.slots.random_parts:random_parts",
        "what experts stand for": "elastic_core.slots.standing:Standing",
        "streams of ELASTIC": "elastic_core.following.elastic:ElasticStream",
        "streams of SASRec": "elastic_core.following.sasrec:SASRecStream",
    }
)
MODELS = {"elastic": "elastic_core.core.elastic", "sasrec": "elastic_core.core.sasrec", **SLOTS, **_files("peers")}
OBJECTIVES = {
    "all": "elastic_core.core.objective", "window": "elastic_core.core.objective", **_files("objectives"),
}  # fmt: skip
