"""Every control of every page, asked for nonsense in the address: the page stands, and nobody sees a traceback."""

import re
from pathlib import Path

import pytest
from visits import visit

from pages.components import page_context

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow  # about two minutes in all
PAGES = sorted(str(path.relative_to(ROOT / "pages")) for path in (ROOT / "pages").glob("*/page.py"))
PREFIXES = ("keys", "train", "jrn", "exp", "trf", "map", "spd", "cmp", "dat", "mth", "res", "lrn", "find", "start")
FRAME = ("run", "vs", "user", "expert", "who", "lock", "tour", "class", "teach", "present", "edits", "embed")
NUMBERED = ("exp_scale_3", "exp_scale_" + "9" * 5000, "train_set_model.n_subkeys", "train_set_train.batch")
ROUNDS = 2  # each page is asked so many times for another mixture
NONSENSE = {
    "empty": ("",),
    "endless": ("1e400", "-1e999", "inf", "-Infinity"),
    "numbers": ("-1", "99999999999999999999", "NaN", "0.5"),
    "markup": ("<script>alert(1)</script>", "[x](http://127.0.0.1:9/y)", "![x](file:///etc/passwd)", "`$(id)`"),
    "paths": ("../../etc/passwd", "/dev/zero", "C:\\nul", "file:///proc/self/environ"),
    "size": ("a" * 900, "🙂" * 90, "1," * 400, "r." * 300, "9" * 5000),
    "code": ("\x00\x07\u202e", "'; DROP TABLE runs;--", "{{7*7}}", "%00%ff", "__import__('os')"),
}  # fmt: skip


def controls() -> list[str]:
    """The keys of all widgets, read from the source, so that a new one is asked for nonsense, too."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "pages").rglob("*.py"))
    found = set(re.findall(rf'"((?:{"|".join(PREFIXES)})_[a-z_]+)"', source))
    return [*sorted(found), *FRAME, *NUMBERED]


def test_the_controls_are_found() -> None:
    assert len(controls()) > 60
    assert {"edits", "exp_part", "trf_measure", "keys_step", "res_ours", "who", "present"} <= set(controls())


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("turn", range(ROUNDS))
def test_nonsense_in_every_parameter(tiny_runs: Path, monkeypatch: pytest.MonkeyPatch, page: str, turn: int) -> None:
    monkeypatch.setattr(page_context, "RUNS", tiny_runs)
    words, start = [word for kind in NONSENSE.values() for word in kind], ROUNDS * PAGES.index(page) + turn
    app = visit(page, {key: words[(start + 7 * i) % len(words)] for i, key in enumerate(controls())})
    assert not app.exception, app.exception
    assert app.title or app.header
    assert app.warning and re.search(r"Showing the run .*tiny", app.warning[0].value)
    shown = " ".join(block.proto.body for block in app.get("html"))
    assert "<script>alert" not in shown


LONG = "9" * 5_000  # Python reads no number of so many digits
FOUND = {  # what once broke a page, or may be thought to
    "a person of 5,000 digits": ("start", {"user": LONG}),
    "an expert of 5,000 digits": ("experts", {"expert": LONG}),
    "a moment of 5,000 digits": ("journey", {"jrn_t": LONG}),
    "an expert of 5,000 digits turned": ("experts", {"exp_part": "Turn it", "edits": f"x{LONG}*2"}),
    "edits of 5,000 digits": ("start", {"edits": f"-{LONG}"}),
    "a stretch of 5,000 digits": ("journey", {"edits": f"-1..{LONG},+{LONG}"}),
    "a stop of 5,000 digits": ("start", {"tour": LONG}),
    "nobody": ("start", {"who": ""}),
    "a person by markup": ("evidence", {"ev_depth": "Systems", "who": "<script>alert(1)</script>"}),
    "a person by 5,000 digits": ("journey", {"who": LONG}),
    "a class of markup": ("evidence", {"class": "![x](http://127.0.0.1:9/y)", "teach": "<script>alert(1)</script>"}),
    "a class and a key of another": ("start", {"class": "ABCDEF", "teach": "A" * 16, "tour": "1"}),
    "a class of 5,000 letters": ("evidence", {"class": "A" * 5_000}),
    "a projector that is none": ("evidence", {"present": "maybe", "ev_depth": "x"}),
    "a projector and a lock": ("experts", {"present": "true", "lock": "run,user,class,present,who," + LONG}),
    "data that nobody compared": ("evidence", {"ev_depth": "Systems", "res_data": LONG, "res_protocol": "<b>", "res_ours": "x"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_an_address_that_broke_a_page(tiny_runs: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(page_context, "RUNS", tiny_runs)
    page, address = FOUND[name]
    app = visit(f"{page}/page.py", {"run": "tiny", **address})
    assert not app.exception and app.title, app.exception
    assert app.selectbox(key="run").value == "tiny"
    assert "<script>alert" not in " ".join(block.proto.body for block in app.get("html"))
