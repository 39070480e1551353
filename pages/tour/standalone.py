"""Makes `checkpoints/product-keys.html`: the search of Product keys and the strip of Start in one file that needs no server.

    python -m pages.tour.standalone

The two screens are opened without a browser, and what they hand to their pictures is put into one page, beside the JavaScript and
the styles that the app uses. So make it again after a change of `search_picture.js`, `strip.js`, their styles or their words.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from streamlit.testing.v1 import AppTest

from pages.components import page_context

ROOT = Path(__file__).parents[2]
TEMPLATE, PAGE = Path(__file__).with_suffix(".html"), ROOT / "checkpoints" / "product-keys.html"
SOURCES = {"drawSearch": "keys/search_picture", "drawStrip": "start/strip"}  # what draws a picture, and its files in `pages/`
RUN, HOUSEHOLDS = "groceries-elastic-slots", 3
DIGITS = 4  # significant digits of the strip's numbers: more than a picture shows
REST = "Point at anything, and its path lights up."
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def collect_data() -> dict[str, Any]:
    """Return what both pictures draw: the 4 × 4, and for each household the strip with and without its last product. `dark` holds
    what is another in the dark theme, at the same place."""
    themes = []
    for is_dark in (False, True):
        with patch.object(page_context, "is_dark", return_value=is_dark):
            search = _picture_data(_open_screen("keys/page.py"), "elastic_search")
            themes.append({"search": search, "households": _collect_households()})
    return themes[0] | {"dark": _find_changes(*themes)}


def _find_changes(before: Any, after: Any) -> Any:
    """Return the parts of `after` that differ: of a list with names or lists in it, by index."""
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and isinstance(before[0], dict | list):
        before, after = dict(enumerate(before)), dict(enumerate(after))
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return {str(name): _find_changes(before[name], after[name]) for name in after if before[name] != after[name]}
    return after


def compose_page(data: dict[str, Any]) -> str:
    """Return the page with these numbers, and with styles, scripts and theme as they are now."""
    themes = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    parts = {f"{name} theme": _theme_variables(themes[name]) for name in ("light", "dark")}
    for function, source in SOURCES.items():
        file = ROOT / "pages" / source
        parts[f"{file.name}.css"] = file.with_suffix(".css").read_text(encoding="utf-8").strip()
        script = file.with_suffix(".js").read_text(encoding="utf-8").strip()
        parts[f"{file.name}.js"] = script.replace("export default function", f"window.{function} = function")
    parts["data"] = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        page = page.replace(f"/* {name} */", part)
    return page


def _theme_variables(theme: dict[str, Any]) -> str:
    colours = {re.sub("([A-Z])", r"-\1", name).lower(): value for name, value in theme.items() if isinstance(value, str)}
    return " ".join(f"--st-{name}: {value};" for name, value in colours.items())


def read_data(page: str) -> dict[str, Any]:
    """Return the numbers of a page."""
    match = DATA.search(page)
    assert match is not None, "the page holds no data"
    return dict(json.loads(match[1]))


def _collect_households() -> list[dict[str, Any]]:
    """The household that Start opens with, and others drawn at random."""
    app = _open_screen("start/page.py")
    user_input = app.number_input(key="user")
    drawn_numbers = np.random.default_rng(0).choice(int(user_input.max or 1), HOUSEHOLDS, replace=False) + 1
    other_numbers = [int(number) for number in drawn_numbers if number != user_input.value][: HOUSEHOLDS - 1]
    households = []
    for number in (int(user_input.value or 1), *other_numbers):
        app.number_input(key="user").set_value(number).run()
        as_is = _strip_data(app)
        without_last = _strip_data(app.button(key="start_remove").click().run())
        app.button(key="start_reset").click().run()
        households.append({"name": f"Household {number}", "as_is": as_is, "without_last": without_last})
    return households


def _strip_data(app: AppTest) -> dict[str, Any]:
    """Nothing computes an answer to a click here, so clicks are locked."""
    data = _round_numbers(_picture_data(app, "elastic_strip"))
    return data | {"locked": dict.fromkeys(data["locked"], True), "says": data["says"] | {"rest": REST}}


def _open_screen(page: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / "navigation.py"), default_timeout=600)
    app.query_params["run"] = RUN
    app.run()
    return app if page == "start/page.py" else app.switch_page(str(ROOT / "pages" / page)).run()


def _picture_data(app: AppTest, component: str) -> dict[str, Any]:
    """What a screen hands to the browser for one picture."""
    assert not app.exception, app.exception
    (picture,) = (each.proto for each in app.get("bidi_component") if each.proto.component_name == component)
    return dict(json.loads(picture.json))


def _round_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _round_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_round_numbers(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


if __name__ == "__main__":
    PAGE.write_text(compose_page(collect_data()), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {PAGE.stat().st_size / 1000:.0f} kB\n")
