"""The whole corpus in one checkout beside a good run, a good job and a good upload: every page stands and shows the good ones."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import visits
from folders import JOBS, NO_FOLDER, ODD_NAMES, RUNS, SECRET, UPLOADS, Bomb
from streamlit.testing.v1 import AppTest

from elastic_core import recipes
from elastic_core.runs import list_runs, unreadable_runs
from elastic_core.services.data.shelf import Shelf, checked, folded, opened
from elastic_core.services.train.jobs import Jobs
from pages.frame import shell

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(str(path.relative_to(ROOT / "pages")) for path in (ROOT / "pages").glob("*/page.py"))
GOOD = "user,item,time\n" + "".join(f"u{u},i{(i + u) % 7},{1_000_000_000 + u * 7 + i}\n" for u in range(6) for i in range(7))
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tiny_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    above = tmp_path_factory.mktemp("checkout")
    (above / "outside").mkdir()
    (above / "outside" / "secret").write_text(SECRET)
    root = Path(shutil.copytree(tiny_runs, above / "checkpoints"))
    for number, odd in enumerate(RUNS):
        folder = Path(shutil.copytree(tiny_runs / "tiny", root / f"odd-{number:03}"))
        odd.tamper(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Jobs, "_spawn", lambda self, job: None)
        jobs = Jobs(root)
        good = jobs.submit(recipes.toy(), "good").path
    for number, odd in enumerate(JOBS):
        folder = Path(shutil.copytree(good, jobs.folder / f"20200101-000000-{number:06}"))
        (folder / "job.json").write_text(json.dumps({**json.loads((folder / "job.json").read_text()), "run": f"local-{number}"}))
        (folder / "end.json").write_text(json.dumps({"state": "failed", "reason": "it was odd"}))
        odd.tamper(folder)
    shelf = Shelf(root / "uploads")
    sheet, mapping = opened("good.csv", GOOD.encode())
    kept = shelf.keep(folded(sheet.shown, checked(sheet, mapping), 5), "good.csv")
    for number, odd in enumerate(UPLOADS):
        folder = Path(shutil.copytree(shelf.folder / kept.id, shelf.folder / f"{number:012x}"))
        card = json.loads((folder / "upload.json").read_text())
        (folder / "upload.json").write_text(json.dumps({**card, "label": f"odd · {folder.name[:4]}"}))
        odd.tamper(folder)
    for what, (make, _) in NO_FOLDER.items():
        for place in (root, jobs.folder, shelf.folder):
            make(place / f"1{what.replace(' ', '-')}")
    for name in ODD_NAMES:
        for place, source in ((root, root / "tiny"), (jobs.folder, good), (shelf.folder, shelf.folder / kept.id)):
            shutil.copytree(os.fsencode(source), os.path.join(os.fsencode(place), b"1" + name))  # noqa: PTH118
    return root


@pytest.fixture
def visit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    monkeypatch.setattr(shell, "RUNS", checkout)
    monkeypatch.setattr(Jobs, "_spawn", lambda self, job: None)

    def page(name: str, **address: str) -> AppTest:
        app = visits.visit(name, address, timeout=120)
        assert not app.exception, app.exception
        return app

    return page


@pytest.mark.parametrize("name", PAGES)
def test_every_page_stands_among_them(visit: Callable[..., AppTest], checkout: Path, name: str) -> None:
    app = visit(name, run="tiny", vs="tiny-peer")
    assert app.selectbox(key="run").value == "tiny"
    assert not Path(Bomb.place).exists()
    assert (checkout.parent / "outside" / "secret").read_text() == SECRET
    assert [path.name for path in (checkout.parent / "outside").iterdir()] == ["secret"]


def test_the_lists_say_what_cannot_be_read(visit: Callable[..., AppTest], checkout: Path) -> None:
    faults = unreadable_runs(checkout)
    assert len(faults) > 80 and {"tiny", "tiny-peer"} <= {run.name for run in list_runs(checkout)}
    app = visit("train/page.py", run="tiny")
    said = " ".join(str(block.value) for block in (*app.caption, *app.markdown))
    assert said.count("is no run that can be read") == len(faults)
    assert said.count("is no training that can be read") == len(Jobs(checkout).unreadable()) > 80
    assert SECRET not in said and "Traceback" not in said
    app = visit("data/page.py", run="tiny", dat_part="Bring your own")
    said = " ".join(str(block.value) for block in (*app.caption, *app.markdown))
    assert said.count("is no data that can be read") == len(Shelf(checkout / "uploads").unreadable()) > 80


def test_one_that_was_asked_for_is_said_with_its_reason(visit: Callable[..., AppTest]) -> None:
    number = next(i for i, odd in enumerate(RUNS) if odd.id == "metrics.jsonl: a pipe")
    app = visit("keys/page.py", run=f"odd-{number:03}")
    (warning,) = app.warning
    assert "is no regular file" in warning.value and "Showing the run" in warning.value
