"""What a model learns from: the contract of objectives and their list, and those that only some peers learn from, one a file."""

from elastic_core.core.objective import Loss, Objective, Rows, build, check, honest, names, objective_class, register

__all__ = ["Loss", "Objective", "Rows", "build", "check", "honest", "names", "objective_class", "register"]
