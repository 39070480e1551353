"""The switch between the made-up world, real films, the paper's model and a visitor's own run."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from driving import healthy, said
from streamlit.testing.v1 import AppTest

from elastic_core import recipes
from elastic_core.data import load, load_files
from elastic_core.errors import InputError
from elastic_core.runs.training import train
from pages.layout import sidebar, world_switch
from pages.layout.world_switch import FILMS, MADE_UP, OTHER, OWN, PAPER, SHOPPERS

Open = Callable[..., AppTest]
SHIPPED = Path(__file__).parents[2] / "checkpoints"
SMALL = tuple(f"data.planted.{words}" for words in ("users=80", "items=60", "interests=4", "mean_length=25"))  # as `tiny`


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Interest slots on a made-up world and on 20 people of a file in MovieLens-100K's place; under `data` lies that file."""
    folder = tmp_path_factory.mktemp("worlds")
    rng, films = np.random.default_rng(0), folder / "data" / "ml-100k"
    films.mkdir(parents=True)
    rows = [f"{u}\t{i}\t4\t{881250000 + at}" for u in range(1, 21) for at, i in enumerate(1 + rng.permutation(30)[:12])]
    (films / "u.data").write_text("\n".join(rows) + "\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ELASTIC_DATA_DIR", str(films.parent))
        for name, data in (("made-up", SMALL), ("films", ("data.source=ml-100k", "data.k_core=1"))):
            config = recipes.toy("elastic-slots").override("train.epochs=1", *data)
            train(config, load(config.data), folder / "runs" / name)
        yield folder


@pytest.fixture
def both(opened: Open, app_runs: Path, trained: Path) -> Open:
    """The app with these two beside `tiny` and `tiny-peer`, which are the paper's model and its twin in the same world."""
    for run in (trained / "runs").iterdir():
        shutil.copytree(run, app_runs / run.name)
    return opened


def turn(app: AppTest, name: str) -> AppTest:
    return healthy(app.segmented_control(key=world_switch.KEY).set_value(name).run())


def test_the_made_up_world_comes_first_and_the_switch_leads_to_films_and_back(both: Open) -> None:
    app = both()
    assert app.selectbox(key="run").value == "made-up" and "4 hobbies**: we know why they chose" in said(app)
    assert app.segmented_control(key=world_switch.KEY).options == [MADE_UP, FILMS, PAPER]
    healthy(app.number_input(key="user").set_value(77).run())
    healthy(app.number_input(key="expert").set_value(9).run())
    turn(app, FILMS)
    assert app.selectbox(key="run").value == "films" and " films**" in said(app) and not app.warning
    assert app.number_input(key="user").value <= 20 and app.number_input(key="expert").value is None
    healthy(app.number_input(key="user").set_value(3).run())
    turn(app, MADE_UP)
    assert app.number_input(key="user").value == 77 and app.segmented_control(key=world_switch.KEY).value == MADE_UP, (
        "who was met here"
    )
    turn(app, FILMS)
    assert app.number_input(key="user").value == 3 and not app.warning


@pytest.mark.parametrize("page", ["keys", "journey", "experts"])
def test_the_switch_stands_on_every_screen_of_a_run(both: Open, page: str) -> None:
    app = both(f"{page}/page.py")
    assert "we know why they chose" in said(app)
    assert turn(app, FILMS).selectbox(key="run").value == "films" and not app.warning
    assert world_switch.KEY not in [control.key for control in both("train/page.py").segmented_control]


def test_a_link_wins_and_a_run_of_one_s_own_is_offered_to_come_back_to(both: Open, app_runs: Path) -> None:
    shutil.copytree(app_runs / "tiny", app_runs / "local-mine")
    app = both(run="local-mine", user="5")
    assert app.segmented_control(key=world_switch.KEY).value == OWN and "Your run on" in said(app)
    turn(app, PAPER)
    assert app.selectbox(key="run").value == "tiny" and "all its experts make each suggestion together" in said(app)
    assert app.number_input(key="user").value == 5, "the same data, the same person"
    turn(turn(app, FILMS), OWN)
    assert app.selectbox(key="run").value == "local-mine" and app.number_input(key="user").value == 5
    assert OWN in both(run="films").segmented_control(key=world_switch.KEY).options, "also by a link that is opened another day"
    app = both(run="tiny-peer")
    assert app.segmented_control(key=world_switch.KEY).value == OTHER and "chosen on the left" in said(app)
    assert both(run="tiny-peer", lock="run").segmented_control(key=world_switch.KEY).disabled
    assert both(run="films").segmented_control(key=world_switch.KEY).value == FILMS


def test_a_run_whose_file_was_deleted_is_not_offered(both: Open, app_runs: Path, tmp_path: Path) -> None:
    own, clicks = shutil.copytree(app_runs / "tiny", app_runs / "local-mine") / "config.json", tmp_path / "clicks.csv"
    clicks.write_text("user,item\n")
    own.write_text(own.read_text().replace('"source": "planted"', f'"source": "{clicks}"'))
    assert OWN in both(run="films").segmented_control(key=world_switch.KEY).options
    clicks.unlink()
    assert OWN not in both(run="films").segmented_control(key=world_switch.KEY).options


def test_where_films_cannot_be_had_the_switch_says_so_and_goes_on(
    both: Open, app_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*given: object) -> Path:
        raise InputError("there is no network")

    for variable in ("ELASTIC_DATA_DIR", "ELASTIC_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "empty"))
    for fetch in ("download_file", "fetch_wheel"):
        monkeypatch.setattr(load_files, fetch, lost)
    config = app_runs / "films" / "config.json"
    config.write_text(config.read_text().replace('"k_core": 1', '"k_core": 2'))  # data that nobody has opened yet
    app = both(run="tiny", user="5")
    assert f"“{FILMS}” first downloads 5 MB" in said(app)
    turn(app, FILMS)
    assert app.selectbox(key="run").value == "tiny" and app.number_input(key="user").value == 5
    assert "there is no network" in app.warning[0].value and app.segmented_control(key=world_switch.KEY).value == PAPER
    assert turn(app, MADE_UP).selectbox(key="run").value == "made-up" and not app.warning


def test_the_shipped_runs_that_are_offered() -> None:
    runs = {
        run.name: run
        for run in sorted(sidebar.cache.list_openable_runs(SHIPPED, sidebar.run_preference), key=sidebar.run_preference)
    }
    first = next(iter(runs.values()))
    found = {name: run.name for name, run in world_switch.offered_worlds(runs, first).items()}
    assert first.name == found[SHOPPERS] == "groceries-elastic-slots"
    assert found[MADE_UP] == "planted-64-elastic-slots" and found[PAPER] == "planted-64-elastic"
    if "ml-100k-elastic-slots" in runs:
        films = world_switch.offered_worlds(runs, runs["ml-100k-elastic-slots"])
        assert found[FILMS] == films[FILMS].name == "ml-100k-elastic-slots" and films[PAPER].name == "ml-100k-elastic"
