"""What a model learns from, one objective a file. Every module here registers itself when the package is imported, and then
those of your own (plugins.py), which may bring models and objectives: both lists are complete by now."""

import importlib
import pkgutil

from elastic_core.core import all_positions, window  # noqa: F401

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from elastic_core import plugins  # noqa: E402
from elastic_core.core.objective import Loss, Objective, Rows, build, check, honest, names, objective_class, register  # noqa: E402

__all__ = ["Loss", "Objective", "Rows", "build", "check", "honest", "names", "objective_class", "register"]

plugins.load()
