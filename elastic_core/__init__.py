"""ELASTIC and its peers: efficient linear attention for sequential interest compression, in plain PyTorch.

    data = elastic_core.load(frame, user="visitor", item="page", time="at")     # a DataFrame, a file, or a name: "ml-100k"
    run = elastic_core.train("elastic", data, minutes=5)
    run.evaluate()
    run.recommend(users=["cust-075"], k=10)
    run.experts(user="cust-075")
    run.embeddings("items")

Each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastic_core.data.sources import load as load
    from elastic_core.errors import InputError as InputError
    from elastic_core.recipes import recipe as recipe
    from elastic_core.results.compare import compare_runs as compare_runs
    from elastic_core.run_config import RunConfig as RunConfig
    from elastic_core.runs import Run as Run
    from elastic_core.runs import open_run as open_run
    from elastic_core.runs.training import train as train

__version__ = "0.2.0"
_HOMES = {
    "InputError": "elastic_core.errors",
    "Run": "elastic_core.runs",
    "RunConfig": "elastic_core.run_config",
    "compare_runs": "elastic_core.results.compare",
    "load": "elastic_core.data.sources",
    "open_run": "elastic_core.runs",
    "recipe": "elastic_core.recipes",
    "train": "elastic_core.runs.training",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
