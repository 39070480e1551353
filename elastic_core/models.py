"""The systems as all outside the core know them: the contract they keep, and their list (wiring.py says where they are)."""

from elastic_core.core.batches import Met
from elastic_core.core.contract import (
    Encoded,
    Pairs,
    Recommender,
    Retrieves,
    Scorer,
    Streams,
    Trace,
    Traces,
    Variant,
    can_retrieve,
    can_stream,
    check_data,
    memory_of,
    tracing,
)
from elastic_core.core.registry import MOST_PARAMETERS, build, model_class, names, outline, register

__all__ = [
    "MOST_PARAMETERS", "Encoded", "Met", "Pairs", "Recommender", "Retrieves", "Scorer", "Streams", "Trace", "Traces", "Variant",
    "build", "can_retrieve", "can_stream", "check_data", "memory_of", "model_class", "names", "outline", "register", "tracing",
]  # fmt: skip
