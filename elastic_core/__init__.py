"""ELASTIC and its peers: efficient linear attention for sequential interest compression, in plain PyTorch.

The public face, imported when first used:

    config = elastic_core.recipe("ml-100k")
    data = elastic_core.load(config.data)
    run = elastic_core.train(config, data, "checkpoints/local-mine")
    run.recommend(users="16"), run.evaluate(), run.experts(user="16")
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "InputError": "elastic_core.errors",
    "RunConfig": "elastic_core.run_config",
    "recipe": "elastic_core.recipes",
    "load": "elastic_core.data",
    "train": "elastic_core.runs.training",
    "open_run": "elastic_core.runs",
    "compare_runs": "elastic_core.results.compare",
    "Run": "elastic_core.runs",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
