"""What a study has answered, as its folder tells it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from elastic_core import files
from elastic_core.errors import InputError
from elastic_core.study.request import MAX_BYTES
from elastic_core.study.train import ANSWER


def read_answer(folder: Path) -> dict[str, Any] | None:
    """The answer in the folder of a study; None while there is none, and for a file that no study writes."""
    with suppress(InputError, KeyError, TypeError, ValueError, AttributeError):
        plain = files.read_object(folder / ANSWER, MAX_BYTES, folder)
        if files.is_number(plain["minutes"]) and files.is_number(plain["seconds"]):
            texts = {name: str(plain[name]) for name in ("title", "headline", "data", "protocol")}
            sections = [_read_section(section) for section in plain["sections"]]
            return {**texts, "minutes": plain["minutes"], "seconds": plain["seconds"], "sections": sections}
    return None


def _read_section(plain: dict[str, Any]) -> dict[str, Any]:
    key = str(plain["key"])
    if not key.isidentifier() or not all(isinstance(sentence, str) for sentence in plain["sentences"]):
        raise ValueError("no section")
    parts = [_read_part(part) for part in plain["parts"]]
    texts = {name: str(plain[name]) for name in ("question", "answer")}
    return {"key": key, **texts, "sentences": list(plain["sentences"]), "parts": parts}


def _read_part(plain: dict[str, Any]) -> dict[str, Any]:
    """A table or a picture in its own form only. Raises ValueError, KeyError or TypeError."""
    if plain["kind"] == "table":
        columns, rows = list(map(str, plain["columns"])), [list(map(str, row)) for row in plain["rows"]]
        if any(len(row) != len(columns) for row in rows):
            raise ValueError("no table")
        return {"kind": "table", "columns": columns, "rows": rows}
    titles = {"kind": str(plain["kind"]), "x_title": str(plain["x_title"]), "y_title": str(plain["y_title"])}
    if plain["kind"] == "points":
        names = ("x", "y", "low", "high")
        return titles | {"points": [{"name": str(p["name"]), **{n: float(p[n]) for n in names}} for p in plain["points"]]}
    x = list(map(str, plain["x"]))
    series = [{"name": str(s["name"]), **{n: list(map(float, s[n])) for n in ("y", "low", "high")}} for s in plain["series"]]
    if titles["kind"] != "lines" or any(len(s[n]) != len(x) for s in series for n in ("y", "low", "high")):
        raise ValueError("no picture")
    return titles | {"x": x, "series": series}
