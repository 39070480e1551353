"""The systems, one file each. Every module here registers itself when the package is imported."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from elastic_core.models.registry import Encoded, Recommender, build, model_class, names, register  # noqa: E402

__all__ = ["Encoded", "Recommender", "build", "model_class", "names", "register"]
