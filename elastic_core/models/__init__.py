"""The systems, one file each. Every module here registers itself when the package is imported."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from elastic_core.models.contract import (  # noqa: E402
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
from elastic_core.models.registry import MOST_BANK, MOST_PARAMETERS, build, model_class, names, outline, register  # noqa: E402

__all__ = [
    "MOST_BANK", "MOST_PARAMETERS", "Attends", "Codewords", "Encoded", "Met", "Modulates", "Pairs", "Quantises", "Recommender",
    "Retrieves", "Scorer", "Stream", "Streams", "Trace", "Traces", "Variant", "build", "can_retrieve", "can_stream", "check_data",
    "memory_of", "model_class", "names", "open_stream", "outline", "register", "tracing",
]  # fmt: skip
