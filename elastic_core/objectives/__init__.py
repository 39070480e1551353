"""What a model learns from, one objective a file. Every module here registers itself when the package is imported."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from elastic_core.objectives.contract import Loss, Objective, Rows, build, check, honest, names, objective_class, register  # noqa: E402

__all__ = ["Loss", "Objective", "Rows", "build", "check", "honest", "names", "objective_class", "register"]
