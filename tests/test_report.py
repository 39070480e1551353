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
from elastic_core.reproduce import rows
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
    short = "(20 minutes of processor)"
    assert labels.plainly(f"elastic (memory-none) {short}") == "elastic (memory-none)" and labels.recipe_of("elastic") == ""
    assert labels.is_variant(f"elastic (memory-none) {short}") and not labels.is_variant(f"elastic {short}")
    assert labels.recipe_of(f"sasrec (local) {short}") == short and labels.recipe_of("sasrec (local)") == ""
    assert labels.recipe_of("elastic (own: mine)") == "(own: mine)"
    words = {labels.MET: "with a repeat bias", labels.OWN_TABLE: "scored by a table of its own"}
    for label, mark in product(("hstu", "elastic", f"sasrec (local) {short}", "elastic (memory-none)"), words):
        told = labels.told_met(label, mark)
        assert labels.told_met(told, mark) == label and labels.plainly(told) == labels.plainly(label) and told != label
        assert labels.is_variant(told) == labels.is_variant(label) and words[mark] in labels.in_words(told)
        assert labels.rival(told, labels.recipe_of(told)) and not labels.rival(told, labels.recipe_of(label))
    assert labels.told_met(f"sasrec (local) {short}") == f"sasrec (local) (repeats) {short}"
    assert labels.rival(f"sasrec (local) {short}", short) and labels.rival("popularity", short)
    assert not labels.rival("sasrec", short) and not labels.rival(f"sasrec {short}", "")
    mine, usual = (f"elastic {short}", f"elastic (memory-none) {short}", f"sasrec {short}"), ("elastic", "elastic (memory-none)")
    systems = {label: list[Run]() for label in (*mine, *usual, "sasrec", "popularity")}
    assert report.references(systems) == [f"elastic {short}", "elastic"]
    assert report.families(systems, f"elastic {short}") == {
        "peers": [f"sasrec {short}", "popularity"], "its own variants": [f"elastic (memory-none) {short}"],
    }  # fmt: skip
    assert report.families(systems, "elastic")["its own variants"] == ["elastic (memory-none)"]
