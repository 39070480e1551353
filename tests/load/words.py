"""How many words every screen shows: at once, in panels that are shut at first, and in tooltips.

  python tests/load/words.py --out checkpoints/benchmarks/words.csv
  python tests/load/words.py --texts experts tour         two screens, every text of them

Streamlit's test driver opens a screen, then every part of it behind its switches. A row for the screen as it opens, one for
every part (`experts › People`), and one for all parts together (`experts, all parts`), where what stands in several counts once.
Counted are texts, headings of tables, names of controls; not what stands in the data (titles, numbers, options of lists), in
code or within a chart. A word has a letter in it.
"""

import argparse
import html
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEY = ("screen", "commit")
PARTS = {
    "keys": ("keys_step", "keys_part"), "experts": ("exp_part",), "traffic": ("trf_part",), "evidence": ("ev_depth", "cmp_part"),
    "data": ("dat_part",), "journey": ("jrn_part",), "method": ("mth_part",), "speed": ("spd_part", "spd_more"),
}  # fmt: skip
SHUT = ("expander", "popover", "tab")
Found = tuple[str, str, str]  # where it stands (shown, panels, help), what kind of element, its text


def words(text: str) -> int:
    """Words with a letter; markup, code, formulas and icons are none."""
    text = re.sub(r"```.*?```|`[^`]*`|\\$[^$]*\\$|:material/\w+:", " ", text, flags=re.DOTALL)
    text = re.sub(r":[a-z]+(-[a-z]+)?\[", " ", re.sub(r"\]\([^)]*\)", " ", text))
    return sum(any(letter.isalpha() for letter in word) for word in re.split(r"[\s·|/]+", text))


def texts(node: Any, shut: bool = False) -> Iterator[Found]:
    """Everything to be read below a node of Streamlit's tree."""
    for child in node.children.values():
        block = getattr(child, "children", None) is not None
        proto = child.proto
        if block:
            kind = str(child.type)
            panel = (proto.popover if kind == "popover" else proto) if kind in SHUT else None
            if panel is not None:
                yield ("panels" if shut else "shown"), kind, str(panel.label)
                if getattr(panel, "help", ""):
                    yield "help", kind, str(panel.help)
            is_open = panel is None or getattr(panel, "expanded", False) or getattr(panel, "open", False)
            yield from texts(child, shut or not is_open)
        else:
            yield from _element(str(child.type), child, proto, "panels" if shut else "shown")


def _element(kind: str, child: Any, proto: Any, where: str) -> Iterator[Found]:
    if getattr(proto, "help", ""):
        yield "help", kind, str(proto.help)
    if kind in ("code", "latex", "empty", "divider", "component", "bidi_component"):
        return
    if kind in ("dataframe", "arrow_data_frame", "table"):
        yield from _headings(child, where)
        return
    if kind == "html":
        body = re.sub(r"(?s)<(style|script|ol|ul)\b.*?</\1>", " ", str(proto.body))
        yield where, kind, html.unescape(re.sub(r"<[^>]*>", " ", body))
        return
    label = getattr(proto, "label", "")
    if label and not str(label).isdecimal():
        yield where, kind, str(label)
    if kind in ("button_group", "radio"):
        for option in proto.options:
            yield where, kind, str(getattr(option, "content", option))
    for part in ("body", "placeholder", "text"):
        if isinstance(text := getattr(proto, part, ""), str) and text:
            yield where, kind, text


def _headings(child: Any, where: str) -> Iterator[Found]:
    given = json.loads(child.proto.columns or "{}") if hasattr(child.proto, "columns") else {}
    for name in child.value.columns:
        column = given.get(str(name), {})
        if not column.get("hidden"):
            yield where, "heading", str(column.get("label") or name)
            if column.get("help"):
                yield "help", "heading", str(column["help"])


def total(found: Iterator[Found] | list[Found]) -> dict[str, int]:
    count = {"shown": 0, "panels": 0, "help": 0}
    for where, _, text in found:
        count[where] += words(text)
    return count


def screens(only: list[str], run: str, user: int) -> Iterator[tuple[str, list[Found]]]:
    """Name of a screen or part, and what stands there."""
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "pages" / "navigation.py"), default_timeout=300)
    app.query_params["run"], app.query_params["user"] = run, str(user)
    app.run()
    if not only or "frame" in only:
        yield "frame", list(texts(app.sidebar))
    for screen in sorted(path.parent.name for path in (ROOT / "pages").glob("*/page.py")):
        if only and screen not in only:
            continue
        app.switch_page(f"{screen}/page.py").run()
        assert not app.exception, app.exception
        opening = list(texts(app.main))
        yield screen, opening
        every = dict.fromkeys(opening)
        for key in PARTS.get(screen, ()):
            group = next((one for one in app.get("button_group") if one.key == key), None)
            for option in list(group.options)[1:] if group is not None else []:
                app.session_state[key] = option
                app.run()
                assert not app.exception, app.exception
                found = list(texts(app.main))
                every |= dict.fromkeys(found)
                yield f"{screen} › {option}", found
        if PARTS.get(screen):
            yield f"{screen}, all parts", list(every)
    if not only or "tour" in only:
        yield from _tour(app)


def _tour(app: Any) -> Iterator[tuple[str, list[Found]]]:
    steps, every = importlib.import_module("pages.tour.steps").STEPS, []
    for stop in range(1, len(steps) + 1):
        app.session_state["tour_at"] = stop
        app.switch_page(steps[stop - 1].page).run()
        every += list(texts(app._tree.children[3]))
    yield "tour", every


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("screens", nargs="*", help="only these (folders in pages/, `frame`, `tour`)")
    parser.add_argument("--run", default="ml-100k-elastic")
    parser.add_argument("--user", type=int, default=28)
    parser.add_argument("--out", default="")
    parser.add_argument("--texts", action="store_true", help="print every text instead of the rows")
    given = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "load")]
    say = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"]
    commit = subprocess.run(say, capture_output=True, text=True, check=False).stdout.strip()
    rows: list[dict[str, str | int | float]] = []
    for screen, found in screens(given.screens, given.run, given.user):
        if given.texts:
            print(f"\n=== {screen}")
            for where, kind, text in found:
                print(f"{where:<7}{kind:<13}{words(text):>4}  {' '.join(text.split())}")
        rows.append({"screen": screen, **total(found), "commit": commit})
        print("{screen:<32}{shown:>6}{panels:>6}{help:>6}".format(**rows[-1]), flush=True)
    if given.out:
        importlib.import_module("crowd").write(Path(given.out), rows, KEY)
    return 0


if __name__ == "__main__":
    sys.exit(main())
