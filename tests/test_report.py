"""The report: what the kept ranks say and nothing else, one protocol a table, and a sentence where it cannot be written."""

from itertools import combinations, product
from pathlib import Path

import pandas as pd
import pytest
from test_readme import kept

from elastic_core import labels, report
from elastic_core.commands import main
from elastic_core.comparisons import compare_runs
from elastic_core.core.evaluate import PROTOCOLS
from elastic_core.errors import InputError
from elastic_core.evaluation import verdict
from elastic_core.report import data_sets, difference_table, joined, measured_systems, write_report
from elastic_core.reproduce import OWN_OUTPUT, REPEATS, System, rows
from elastic_core.runs import Run


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, named = tmp_path_factory.mktemp("kept"), {row.name: row for row in rows()}
    made_up = {"planted-popularity": 0.02, "planted-sasrec": 0.05, "planted-sasrec-seed1": 0.06, "planted-elastic": 0.2,
               "planted-elastic-seed1": 0.21, "planted-elastic-slots": 0.2}  # fmt: skip
    for seed, (name, good) in enumerate(made_up.items()):
        kept(folder, named[name], good, seed)
    return folder


def test_it_says_what_the_ranks_say(root: Path, tmp_path: Path) -> None:
    files = write_report(root, tmp_path / "out")
    assert all(path.is_file() for path in files) and "cdn" not in (tmp_path / "out" / "planted-full.html").read_text()
    pair = [Run(root / name) for name in ("planted-elastic", "planted-elastic-seed1")]
    peer = [Run(root / name) for name in ("planted-sasrec", "planted-sasrec-seed1")]
    for protocol in PROTOCOLS:
        told = pd.read_csv(tmp_path / "out" / f"{protocol}.csv").set_index("system")
        mine = told.loc["ELASTIC, K = 8², k = 8"]
        values = [run.report().values(protocol, "NDCG@10").mean() for run in pair]
        assert mine["NDCG@10"] == pytest.approx(sum(values) / 2) and mine["seeds"] == 2
        assert mine["spread"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
        against = pd.read_csv(tmp_path / "out" / f"planted-{protocol}-differences.csv")
        line = against[(against["A"] == "ELASTIC") & (against["B"] == "SASRec")].iloc[0]
        found = compare_runs(pair, peer, protocol)
        assert line[["A − B", "low", "high", "p"]].tolist() == pytest.approx([found.difference, found.low, found.high, found.p])
        assert line["p adjusted"] >= line["p"] and line["claim"] == "ELASTIC is better"
        once = against[against["A"] == "ELASTIC with interest slots"]
        assert set(once["B"]) == {"Popularity", "SASRec", "ELASTIC, K = 8², k = 8"} and set(once["claim"]) == {verdict.ONE_RUN}
        assert once["p adjusted"].isna().all()


def test_claims_are_adjusted_for_their_number(root: Path) -> None:
    """Holm by hand: the smallest p of two peers counts twice."""
    found = difference_table(data_sets(root)["planted"], "full")
    mine = found[found["A"] == "ELASTIC"].sort_values("p")
    smaller, larger = mine["p"]
    assert mine["p adjusted"].tolist() == pytest.approx([min(2 * smaller, 1), max(2 * smaller, larger)])


def test_protocols_are_never_mixed(root: Path) -> None:
    systems = data_sets(root)["planted"]
    tables = {protocol: measured_systems(systems, protocol) for protocol in PROTOCOLS}
    for one, other in combinations(PROTOCOLS, 2):
        with pytest.raises(InputError, match="cannot stand in one table"):
            joined([tables[one], tables[other]])
        with pytest.raises(InputError, match="cannot stand in one table"):
            joined([pd.concat([tables[one].head(1), tables[other].tail(1)])])
    assert len(joined([tables["full"], tables["full"]])) == 2 * len(tables["full"])


def test_what_cannot_be_written_is_one_sentence(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    assert main(["report", "--root", str(root), "--out", str(tmp_path / "taken")]) == 2
    assert main(["report", "--root", str(tmp_path), "--out", str(tmp_path / "new")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "none of the named runs is finished" in said[1]
    assert (tmp_path / "taken").read_text() == "mine" and not (tmp_path / "new").exists()


def test_pictures_are_made_where_a_chromium_is(
    root: Path, tmp_path: Path, chromium: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER_PATH", chromium)
    monkeypatch.setattr("elastic_core.report.PROTOCOLS", ("full",))
    pictures = [path for path in write_report(root, tmp_path / "out", pictures=True) if path.suffix in (".png", ".svg")]
    assert [path.name for path in pictures] == ["planted-full.png", "planted-full.svg"]
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"<svg")
    assert "ELASTIC − SASRec" in (tmp_path / "out" / "planted-full.svg").read_text(encoding="utf-8")


def test_without_anything_to_draw_with_it_says_how_to_get_it(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["report", "--root", str(root), "--out", str(tmp_path / "out"), "--pictures"]) == 2
    assert "pip install" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_recipe_is_told_from_what_a_variant_changes() -> None:
    """Of one budget, systems stand beside each other, and a variant beside the model it changes; never across budgets."""
    minutes, none = "20 minutes of processor", System("elastic", "memory-none")
    short, short_none, short_peer = (
        System("elastic", budget=minutes),
        none._replace(budget=minutes),
        System("sasrec", budget=minutes),
    )
    assert str(short_none._replace(mark=REPEATS)) == f"elastic (memory-none) (repeats) ({minutes})"
    assert (
        str(System("elastic", own="mine")) == "elastic (own: mine)"
        and labels.is_variant(short_none)
        and not labels.is_variant(short)
    )
    for system, mark in product((System("hstu"), System("sasrec", "local", budget=minutes), none), labels.MARKED):
        told = system._replace(mark=mark)
        assert labels.MARKED[mark] in labels.in_words(told) and labels.in_words(system) != labels.in_words(told)
        assert labels.is_variant(told) == labels.is_variant(system) and told.recipe != system.recipe
    elastic, sasrec, popularity = map(System, ("elastic", "sasrec", "popularity"))
    systems = {system: list[Run]() for system in (short, short_none, short_peer, elastic, none, sasrec, popularity)}
    assert report.references(systems) == [short, elastic]
    assert report.families(systems, short) == {"peers": [short_peer, popularity], "its own variants": [short_none]}
    assert report.families(systems, elastic) == {"peers": [sasrec, popularity], "its own variants": [none]}
    told = elastic._replace(mark=REPEATS)
    marked = systems | {told: [], told._replace(mark=OWN_OUTPUT): []}
    assert report.families(marked, elastic)["its own variants"] == [none, told]
    assert not report.families(marked, told)["its own variants"], "every pair once"
