"""A plotly figure as the plain dictionary that it is in the end.

`go.Figure` checks every value when it is set, which takes 25 to 50 ms a figure: fine for what is drawn once, most of the wait
for what is drawn anew for every person. A sketch has the same few methods and checks nothing; tests/test_sketches.py holds them
to what plotly makes of the same calls, and every screen's figures to what plotly knows.
A title is written out (`title_text`, not `title`).
"""

import copy
import functools
from collections.abc import Mapping
from functools import partialmethod
from typing import Any, Self

import plotly.graph_objects as go
import plotly.io as pio
from plotly.basedatatypes import BaseFigure
from plotly.subplots import make_subplots

Made = dict[str, Any]
DOMAIN = {"x": "x domain", "y": "y domain"}


class Sketch(BaseFigure):
    """A figure whose parts are dictionaries. With `rows` or `columns` it has several plots, laid out as `make_subplots` does."""

    def __init__(self, rows: int = 1, columns: int = 1, **given: Any) -> None:
        self._traces: list[Made] = []
        self._layout: Made = copy.deepcopy(_plots(rows, columns, _fixed(given))) if (rows, columns) != (1, 1) or given else {}
        self._columns, self._several = columns, rows * columns > 1

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _add(self, kind: str, row: int = 1, col: int = 1, **trace: Any) -> Self:
        at = (row - 1) * self._columns + col
        number = "" if at == 1 else str(at)
        where = {"xaxis": f"x{number}", "yaxis": f"y{number}"} if self._several else {}
        self._traces.append({"type": kind, **where, **_plain(_spelled(trace))})
        return self

    add_bar = partialmethod(_add, "bar")
    add_scatter = partialmethod(_add, "scatter")
    add_scattergl = partialmethod(_add, "scattergl")
    add_heatmap = partialmethod(_add, "heatmap")

    def add_annotation(self, **note: Any) -> Self:
        self._layout.setdefault("annotations", []).append(_spelled(note))
        return self

    def add_vline(self, x: float, **shape: Any) -> Self:
        return self._shape("line", "y", x0=x, x1=x, **shape)

    def add_hline(self, y: float, **shape: Any) -> Self:
        return self._shape("line", "x", y0=y, y1=y, **shape)

    def _shape(self, kind: str, along: str, **shape: Any) -> Self:
        """From end to end of the plot along one axis."""
        across = "y" if along == "x" else "x"
        ends = {f"{along}0": 0, f"{along}1": 1, f"{along}ref": DOMAIN[along], f"{across}ref": across}
        self._layout.setdefault("shapes", []).append({"type": kind, **ends, **_spelled(shape)})
        return self

    add_vrect = partialmethod(_shape, "rect", "y")
    add_hrect = partialmethod(_shape, "rect", "x")

    def update_layout(self, given: Mapping[str, Any] | None = None, **more: Any) -> Self:
        _merge(self._layout, {**(given or {}), **_spelled(more)})
        return self

    def _axes(
        self, kind: str, given: Mapping[str, Any] | None = None, row: int | None = None, col: int | None = None, **more: Any
    ) -> Self:
        names = sorted((name for name in self._layout if name.startswith(kind)), key=lambda name: int(name[5:] or 1)) or [kind]
        for at, name in enumerate(names):
            if row in (None, at // self._columns + 1) and col in (None, at % self._columns + 1):
                _merge(self._layout.setdefault(name, {}), {**(given or {}), **_spelled(more)})
        return self

    update_xaxes = partialmethod(_axes, "xaxis")
    update_yaxes = partialmethod(_axes, "yaxis")

    def update_annotations(self, **given: Any) -> Self:
        for note in self._layout.get("annotations", []):
            _merge(note, _spelled(given))
        return self

    def to_dict(self) -> Made:
        """As of a figure: what plotly draws. Its parts are shared: copy before you change them."""
        return {"data": list(self._traces), "layout": {"template": _template(pio.templates.default), **self._layout}}

    def checked(self) -> go.Figure:
        """The same as plotly's own figure, every value checked. Raises ValueError for what plotly does not know."""
        return go.Figure(self.to_dict())


def _merge(into: Made, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = copy.deepcopy(dict(value)) if isinstance(value, Mapping) else value


def _spelled(given: Mapping[str, Any]) -> Made:
    """`line_width=2` as `line={"width": 2}`; of names that hold a `_` themselves (`error_x`) there are none here."""
    made: Made = {}
    for name, value in given.items():
        first, _, rest = name.partition("_")
        _merge(made, {first: _spelled({rest: value}) if rest else value})
    return made


def _plain(given: Mapping[str, Any]) -> Made:
    """Without what is None, as plotly leaves it out; columns and tables as arrays."""
    return {
        name: _plain(value) if isinstance(value, Mapping) else value.to_numpy() if hasattr(value, "to_numpy") else value
        for name, value in given.items()
        if value is not None
    }


def _fixed(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in given.items())


@functools.lru_cache(maxsize=64)
def _plots(rows: int, columns: int, given: tuple[tuple[str, Any], ...]) -> Made:
    named = {name: list(value) if name in ("column_widths", "row_heights") and value else value for name, value in given}
    layout = make_subplots(rows, columns, **named).to_dict()["layout"]
    layout.pop("template", None)
    return layout


@functools.lru_cache(maxsize=8)
def _template(name: str | None) -> Made:
    return dict(pio.templates[name].to_plotly_json()) if name else {}
