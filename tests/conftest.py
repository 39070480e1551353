"""What all tests share: where the data lies, one small world, and which tests run on this machine, where and in what order."""

import copy
import functools
import logging
import multiprocessing
import os
import shutil
import sys
from collections import Counter
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import install_browser
import pytest
import torch
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

import elastic_core.runs.checkpoints  # noqa: F401 - where runs lie is settled by the folder of its first import
from elastic_core import recipes
from elastic_core.data import Dataset, load, sources
from elastic_core.models import Recommender
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs import Run
from elastic_core.runs.training import train

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"

if SHARED.is_dir():
    os.environ.setdefault("ELASTIC_DATA_DIR", str(SHARED))
# A machine where Python keeps no compiled code would compile all of it anew in every process that is started here.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What tests write, thousands of files that are made sure of one by one, lies in memory where there is plenty.
if os.path.ismount("/dev/shm") and shutil.disk_usage("/dev/shm").free > 2**32:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# How long one example takes is up to whoever else works here. Where a change is judged, its examples are the same every time.
settings.register_profile("shared machine", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("shared machine")
drawn = functools.lru_cache(64)(sources.planted)  # a planted world is drawn once, and whoever loads it has a copy of their own
sources.planted = lambda *asked: copy.deepcopy(drawn(*asked))
logging.getLogger("streamlit.runtime.caching.cache_data_api").disabled = True  # says of every cache that there is no server


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three processes for folders of tests, as some mostly wait, for a browser or for processes they started; none besides this
    one for single files or tests, where starting them takes longer."""
    return 3 if all(Path(name).is_dir() for name in config.args) else 0


class FilesTogether(LoadScopeScheduling):
    """One process takes all tests of a file, as they share what was trained or drawn for them; and those in the browser, which
    share a browser and a server, and load ahead. Files in the order of the tests, see below."""

    def _split_scope(self, nodeid: str) -> str:
        return "browser" if nodeid.startswith("tests/browser/") else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesTogether:
    config.option.loadscopereorder = False  # not by the number of tests
    return FilesTogether(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # What takes long does not begin last, when the other processes may have nothing left to do.
    counts = Counter(item.path for item in items)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (not item.get_closest_marker("browser"), item.path not in slow, -counts[item.path]))
    browser = [item for item in items if item.get_closest_marker("browser")]
    for item in browser:  # a browser waits for a server and both for a processor: what fails is tried once more, and named
        item.add_marker(pytest.mark.flaky(reruns=1))
    if browser and not config.option.collectonly and "not browser" not in config.option.markexpr:
        chromium = install_browser.find() or install_browser.install()
        if chromium is None:
            skip = pytest.mark.skip(reason="no Chromium here; install it (apt-get install chromium), or name one in CHROMIUM")
            for item in browser:
                item.add_marker(skip)
    if "network" not in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("network"):
                item.add_marker(pytest.mark.skip(reason="talks to the outside; asked for with -m network"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """The tensors here are tiny: a second thread would only wait for the first. UMAP sets more, for all that come after it."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture
def real_data() -> Path:
    """The folder with the real data; the test is skipped where there is none."""
    folder = Path(os.environ.get("ELASTIC_DATA_DIR", SHARED))
    if not folder.is_dir():
        pytest.skip("the real data is not here: set ELASTIC_DATA_DIR")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium, for Playwright's executable_path."""
    path = install_browser.find()
    if path is None:
        pytest.skip("no Chromium here")
    return path


@pytest.fixture(scope="session")
def children() -> Any:
    """Processes that are forked from a fresh one with everything imported, these tests too: a start costs milliseconds."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    context = multiprocessing.get_context("forkserver")
    together = ["test_distributed"] if torch.distributed.is_available() else []
    context.set_forkserver_preload(["elastic_core.commands.train", "elastic_core.jobs.job_kinds", "test_trainer", *together])
    with pytest.MonkeyPatch.context() as patched:  # a fork server finds what it imports by the environment alone
        patched.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]))
        forkserver.ensure_running()
    return context


@pytest.fixture(scope="session")
def small_world() -> Dataset:
    """A planted world of 60 people; shared, so never changed."""
    planted = PlantedConfig(users=60, items=60, interests=4, mean_length=20, max_length=40)
    return load(DataConfig(source="planted", planted=planted))


@pytest.fixture(scope="session")
def tiny_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two tiny runs, `tiny` (ELASTIC, with snapshots) and `tiny-peer` (SASRec); shared, so never changed."""
    folder = tmp_path_factory.mktemp("runs")
    small = tuple(f"data.planted.{words}" for words in ("users=80", "items=60", "interests=4", "mean_length=25"))
    for name, model in (("tiny", "elastic"), ("tiny-peer", "sasrec")):
        config = recipes.toy(model).override("train.epochs=2", "train.snapshots=true", *small)
        train(config, load(config.data), folder / name)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_runs: Path) -> tuple[Recommender, Dataset, Run]:
    """A tiny trained ELASTIC, its data and its run."""
    run = Run(tiny_runs / "tiny")
    return run.model(), load(run.config.data), run


@pytest.fixture(scope="session")
def tiny_peer(tiny_runs: Path) -> tuple[Recommender, Dataset, Run]:
    """The SASRec twin of `tiny`."""
    run = Run(tiny_runs / "tiny-peer")
    return run.model(), load(run.config.data), run
