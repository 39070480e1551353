"""Tables of measurements replaced by junk: each says nothing or one sentence, and no screen that quotes one breaks."""

import shutil
import time
from pathlib import Path

import pytest
from folders import SECRET
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from measured import CELLS, TABLES, checkout, columns, files, said, whole, with_cell
from test_readers_fuzzed import CASES
from visits import visit

from elastic_core.disk import showable
from elastic_core.services.train.jobs import Jobs
from pages.frame import shell

ROOT = Path(__file__).resolve().parents[2]
QUICK = 6.0  # seconds of processor time that all who read a table may take at most
DEEPER = ("A training step", "LISA’s claims")
SCREENS = {
    "speed/page.py": "spd_part", "evidence/page.py": "ev_depth", "method/page.py": "mth_part",
    "traffic/page.py": "trf_part",
}  # fmt: skip
MEMORIES = {"meaning", "measured here"}


@pytest.fixture(scope="module")
def good(tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    above = tmp_path_factory.mktemp("measured")
    (above / "outside").mkdir()
    (above / "outside" / "secret").write_text(SECRET)
    return checkout(tiny_runs, above)


def replaced(good: Path, name: str) -> tuple[Path, str]:
    """The table, whole again; of what was measured of memories there are two, which speak of the same, so the other goes."""
    for other in MEMORIES - {name} if name in MEMORIES else ():
        (good / TABLES[other]).unlink(missing_ok=True)
    place = good / TABLES[name]
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    text = whole(good, name).read_text()
    place.write_text(text)
    return place, text


@pytest.mark.parametrize("name", TABLES)
def test_a_table_as_it_came_is_read(good: Path, name: str) -> None:
    place, _ = replaced(good, name)
    everything = said(good, name)
    place.unlink()
    assert said(good, name) != everything, "somebody speaks of it"
    replaced(good, name)


@pytest.mark.parametrize(("name", "what"), [(name, what) for name in TABLES for what, _ in files(name)])
def test_a_table_that_is_none(good: Path, name: str, what: str) -> None:
    place, text = replaced(good, name)
    dict(files(name))[what](place, text)
    began = time.process_time()
    told = said(good, name)
    assert time.process_time() - began < QUICK
    assert not any(SECRET in sentence for sentence in told)
    replaced(good, name)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "column"), [(n, c) for n in TABLES if n != "measured here" for c in columns(n)])
def test_a_cell_that_nobody_measured(good: Path, name: str, column: str) -> None:
    """Every column meets an eighth of the odd cells, or a sixteenth where five tables have it, each with others; `test_any_cell`
    draws from all, and from what is measured here, which is read as what came along."""
    each = 16 if "setting" in columns(name) else 8
    for cell in CELLS[(columns(name).index(column) + 3 * list(TABLES).index(name)) % each :: each]:
        place, text = replaced(good, name)
        place.write_text(with_cell(text, column, cell))
        said(good, name)
    replaced(good, name)


@pytest.mark.slow
@settings(max_examples=CASES, suppress_health_check=list(HealthCheck), deadline=None, derandomize=True, database=None)
@given(
    some.sampled_from(sorted(TABLES)),
    some.integers(0, 10**6),
    some.text(max_size=30) | some.floats().map(str) | some.integers().map(str),
)
def test_any_cell(good: Path, name: str, where: int, cell: str) -> None:
    place, text = replaced(good, name)
    place.write_bytes(with_cell(text, columns(name)[where % len(columns(name))], cell).encode("utf-8", "surrogatepass"))
    said(good, name)
    replaced(good, name)


PAGE_FILES = ("a link to a system file", "NUL", "a column too many", "all rows alike", "each row another system")
PAGE_CELLS = ("setting", "metric", "value", "system", "device", "people", "quarter", "valid", "point")
ODD_CELLS = (*CELLS[:3], CELLS[5], CELLS[16])


@pytest.mark.slow
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize(("kind", "turn"), [("files", 0), ("cells", 3)])
def test_no_screen_that_quotes_them_breaks(
    tiny_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen: str, turn: int, kind: str
) -> None:
    """All tables at once, each odd in another way, and every part of the screen."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text(SECRET)
    root = checkout(tiny_runs, tmp_path)
    for i, (name, file) in enumerate(TABLES.items(), turn):
        if kind == "files":
            dict(files(name))[PAGE_FILES[i % len(PAGE_FILES)]](root / file, whole(root, name).read_text())
            continue
        for column in set(PAGE_CELLS) & set(columns(name)):
            (root / file).write_text(with_cell((root / file).read_text(), column, ODD_CELLS[i % len(ODD_CELLS)]))
    monkeypatch.setattr(shell, "RUNS", root)
    monkeypatch.setattr(Jobs, "_spawn", lambda self, job: None)
    app = visit(screen, {"run": "tiny", "vs": "tiny-peer"})
    parts = [(SCREENS[screen], part) for part in app.segmented_control(key=SCREENS[screen]).options] if SCREENS[screen] else []
    if screen == "speed/page.py":  # its last part has parts
        parts += [("spd_more", part) for part in DEEPER]
    for key, part in parts or [("", None)]:
        if part is not None:
            app.segmented_control(key=key).set_value(part).run()
        assert not app.exception, (part, app.exception)
        shown = " ".join(str(each.value) for each in (*app.markdown, *app.caption, *app.info, *app.error))
        shown = shown.replace("\u2060", "")  # a joiner of ours
        assert SECRET not in shown and "Traceback" not in shown and all(showable(line) for line in shown.splitlines())
