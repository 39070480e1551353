"""What a model learns from: the contract of objectives and their list, and those that only some peers learn from, one a file."""

from elastic_core.core.objective import (
    EpochRows,
    LossSum,
    Objective,
    build,
    check_objective,
    honest_objectives,
    objective_class,
    objective_names,
    register,
)

__all__ = [
    "EpochRows",
    "LossSum",
    "Objective",
    "build",
    "check_objective",
    "honest_objectives",
    "objective_class",
    "objective_names",
    "register",
]
