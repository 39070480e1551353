"""Rows of the benches with other values than were measured."""

import dataclasses
from typing import Any

from elastic_core.bench.store import Figure, Row


def but(row: Row, **values: Any) -> Row:
    """The row with another system, other settings, metrics or whereabouts; a number in place of a time has no quartiles."""
    held = {name: dict(getattr(row, name)) for name in ("setting", "figures", "where")}
    own = {name: values.pop(name) for name in ("bench", "system") if name in values}
    for name, value in values.items():
        place = next((part for part in held if name in held[part]), "figures" if isinstance(value, float) else "setting")
        held[place][name] = Figure(value) if place == "figures" else value
    return dataclasses.replace(row, **own, **held)  # type: ignore[arg-type]
