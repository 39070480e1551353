"""The systems, one file each: those of `core/`, `slots/` and `peers/` register themselves when this module is imported."""

import importlib
import pkgutil

from elastic_core import peers
from elastic_core.core import elastic_model, sasrec  # noqa: F401
from elastic_core.slots import elastic_slots  # noqa: F401

for _module in pkgutil.iter_modules(peers.__path__):
    importlib.import_module(f"{peers.__name__}.{_module.name}")

from elastic_core.core.contract import (  # noqa: E402
    Attends,
    Codewords,
    Encoded,
    Met,
    Modulates,
    Pairs,
    Quantises,
    Recommender,
    Retrieves,
    Scorer,
    Stream,
    Streams,
    Trace,
    Traces,
    Variant,
    can_retrieve,
    can_stream,
    check_data,
    memory_of,
    open_stream,
    tracing,
)
from elastic_core.core.registry import MOST_BANK, MOST_PARAMETERS, build, model_class, names, outline, register  # noqa: E402

__all__ = [
    "MOST_BANK", "MOST_PARAMETERS", "Attends", "Codewords", "Encoded", "Met", "Modulates", "Pairs", "Quantises", "Recommender",
    "Retrieves", "Scorer", "Stream", "Streams", "Trace", "Traces", "Variant", "build", "can_retrieve", "can_stream", "check_data",
    "memory_of", "model_class", "names", "open_stream", "outline", "register", "tracing",
]  # fmt: skip
