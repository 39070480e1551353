"""The tables of Evidence: those of the report, one protocol each, and a claim only where the one rule allows it."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shipped import CHECKPOINTS, shipped_run
from test_readme import kept

from elastic_core import labels, report
from elastic_core.comparisons import compare_runs
from elastic_core.evaluation import verdict
from elastic_core.evaluation.compare import Contrast
from elastic_core.reproduce import System, rows
from elastic_core.results.store import load as load_runs
from elastic_core.runs import CONFIG, Run, list_runs, ranks
from elastic_core.services.evidence import judging, systems
from elastic_core.services.train import beside

MADE_UP = {
    "planted-popularity": 0.02, "planted-cooccurrence": 0.05, "planted-sasrec": 0.05, "planted-sasrec-seed1": 0.051,
    "planted-elastic": 0.2, "planted-elastic-seed1": 0.21, "planted-elastic-slots": 0.02,
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, named = tmp_path_factory.mktemp("kept"), {row.name: row for row in rows()}
    for seed, (name, good) in enumerate(MADE_UP.items()):
        kept(folder, named[name], good, seed)
    return folder


def group(root: Path) -> systems.Group:
    (found,), faults = systems.groups([Run(path.parent) for path in root.glob(f"*/{CONFIG}")])
    assert not faults
    return found


def test_the_tables_are_those_of_the_report(root: Path) -> None:
    mine, theirs = group(root), report.data_sets(root)["planted"]
    assert list(mine.systems) == list(theirs) and mine.key == "planted" and mine.people == 2_000
    for protocol in ("full", "pop100"):
        table, told = judging.standings(mine, protocol, compare_runs), report.measured_systems(theirs, protocol)
        same = ["system", "NDCG@10", "± 95%", "HR@10", "MRR@10", "people", "parameters", "seconds", "runs"]
        assert table[same].to_dict("list") == told[same].to_dict("list")
    found = judging.system_differences(mine, System("elastic"), "full", compare_runs)
    told = report.difference_table(theirs, "full").query("A == 'ELASTIC'")
    assert found[["system", "difference", "low", "high", "p", "adjusted"]].to_numpy().tolist() == (
        told[["B", "A − B", "low", "high", "p", "p adjusted"]].to_numpy().tolist()
    )


def test_a_claim_needs_the_adjusted_p_and_one_run_claims_nothing(root: Path) -> None:
    clear = Contrast(0.1, 0.05, 0.15, 0.001, True)
    assert verdict.better(clear) == verdict.better(clear, 0.04) == "A"
    assert verdict.better(clear, 0.05) == verdict.better(clear, float("nan")) == ""
    assert verdict.better(clear._replace(seeds_counted=False), 0.001) == ""
    table = judging.standings(group(root), "full", compare_runs).set_index("label")
    words = table["beside the baseline"]
    assert words["cooccurrence"] == "the best baseline" and words["elastic"].startswith("above Co-occurrence by 0.")
    assert words["elastic-slots"].endswith("trained once: no claim") and words["sasrec"].endswith("may be chance")
    assert table["seeds"].isna().sum() == 2 and table.loc["sasrec", "seeds"] == 2


def test_runs_of_somebodys_own_stand_beside_and_change_no_claim_of_the_report(root: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(root, tmp_path / "runs"))
    before = judging.system_differences(group(folder), System("elastic"), "full", compare_runs)
    for name, changes in (("local-a", ("model.dropout=0.7",)), ("local-b", ("train.seed=7",)), ("local-c", ())):
        run = Run(Path(shutil.copytree(folder / "planted-elastic", folder / name)))
        (run.path / CONFIG).write_text(json.dumps(run.config.override(*changes).to_dict()))
    mine = group(folder)
    assert [run.name for run in mine.systems[System("elastic")]] == ["planted-elastic", "planted-elastic-seed1", "local-b"]
    assert System("elastic", own="local-a") in mine.systems and not any(system.own == "local-c" for system in mine.systems)
    after = judging.system_differences(mine, System("elastic"), "full", compare_runs)
    assert after["label"].tolist() == [*before["label"], "elastic (own: local-a)"]
    assert after["family"].tolist()[-1] == "other runs here" and systems.of_run([mine], folder / "local-b") == (
        mine,
        System("elastic"),
    )
    own = judging.system_differences(mine, System("elastic", own="local-a"), "full", compare_runs)
    assert len(own) == len(mine.systems) - 1


def test_trainings_of_ones_own_stand_beside_the_baselines_of_their_cards(root: Path, tmp_path: Path) -> None:
    """Where no baseline was run; in the protocol in which the data are judged, and without a claim."""
    for name in ("planted-sasrec", "planted-sasrec-seed1", "planted-elastic"):
        shutil.copytree(root / name, tmp_path / name)
    alone = judging.standings(group(tmp_path), "full-seen", compare_runs)
    assert set(alone["beside the baseline"]) == {"no baseline was run here"}
    counts = (
        beside.BesideRow("Co-occurrence", 0.2, 0.1, 0.3, -0.05, -0.08, -0.02),
        beside.BesideRow("Popularity", 0.1, 0.08, 0.12, 0.05),
    )
    again = (dataclasses.replace(counts[0], difference=0.03), counts[1])
    for name, rows_of in (("planted-sasrec", counts), ("planted-sasrec-seed1", again)):
        beside.keep_beside(
            Run(tmp_path / name), beside.Beside(2_000, 0.01, (*rows_of, beside.BesideRow("Vast", fault="too large")), "full-seen")
        )
    mine = group(tmp_path)
    assert judging.fitting(mine) == "full-seen"
    table = judging.standings(mine, "full-seen", compare_runs).set_index("system")
    assert table.index.tolist()[:2] == ["Popularity", "Co-occurrence"] and len(table) == 4
    assert table.loc["Co-occurrence", "NDCG@10"] == 0.2 and table.loc["Co-occurrence", "± 95%"] == pytest.approx(0.1)
    words = table["beside the baseline"]
    assert words["Co-occurrence"] == "the best baseline" and words["Popularity"] == "a baseline"
    assert words["SASRec"] == "below Co-occurrence by 0.0100, no claim"
    assert judging.rivals(mine, table.reset_index()) and "Popularity" not in judging.rivals(mine, table.reset_index())
    other = judging.standings(mine, "full", compare_runs)
    assert len(other) == 2 and set(other["beside the baseline"]) == {"no baseline was run here"}, "cards are of one protocol"
    shutil.copytree(tmp_path / "planted-sasrec", tmp_path / "alone" / "planted-sasrec")
    only = group(tmp_path / "alone")
    alone = judging.standings(only, "full-seen", compare_runs)
    nobody = judging.system_differences(only, System("sasrec"), "full-seen", compare_runs)
    assert judging.system_summary(alone, nobody, "SASRec") == "SASRec is below Co-occurrence by 0.0500, trained once: no claim."
    shutil.copytree(root / "planted-popularity", tmp_path / "planted-popularity")
    assert "Co-occurrence" not in set(judging.standings(group(tmp_path), "full-seen", compare_runs)["system"]), "a run goes first"


def test_the_summary_has_a_subject_whoever_is_better() -> None:
    table = pd.DataFrame({"system": ["a", "b", "c"], "label": ["a", "b", "c"], "seeds": [3, 3, 1]})
    found = pd.DataFrame({"system": ["b", "c"], "family": "other systems", "seeds_counted": [True, False]})
    for who, told in {
        "A": "1 of 2 systems of others (our own variants are not counted), and worse than none",
        "B": "0 of 2 systems of others (our own variants are not counted), and worse than b",
    }.items():
        said = judging.system_summary(table, found.assign(who=[who, ""]), "a")
        assert said == f"a is better than {told}. 1 trained only once, so nothing is claimed."
    close = judging.system_summary(table, found.assign(who=["A", ""], seeds_counted=True), "a")
    assert close.endswith("worse than none. 1 is too close to call: c.")
    both = judging.system_summary(table, found.assign(who=["A", "B"]), "a")
    assert both == "a is better than 1 of 2 systems of others (our own variants are not counted), and worse than c."


def test_ten_systems_matter_and_the_rest_is_not_lost() -> None:
    din, rest = System("din"), [System("sasrec", mark="repeats"), System("elastic", "memory-none")]
    found = systems.Group("", "", "", {system: [] for system in (*judging.MATTER, din, *rest)})
    labels = list(map(str, found.systems))
    table = pd.DataFrame({"system": labels, "label": labels, "NDCG@10": 0.1, "people": 70})
    assert judging.matters(found, table, din)["label"].tolist() == labels[:11]
    assert len(judging.matters(found, table[:8], din)) == 8, "few are all shown"
    shown = judging.with_chance(table.reindex(columns=judging.SYSTEMS).astype(object), 0.01)
    assert shown["NDCG@10"].tolist()[:2] == [0.01, 0.1] and shown["label"].tolist()[0] == "", "no run of it can be opened"
    assert judging.with_chance(table, None) is table


def test_what_cannot_be_read_is_named_and_the_rest_stands(root: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(root, tmp_path / "runs"))
    (folder / "planted-sasrec" / ranks.FILE).write_bytes(b"damaged")
    (found,), (fault,) = systems.groups([Run(path.parent) for path in folder.glob(f"*/{CONFIG}")])
    assert fault.name == "planted-sasrec" and len(found.systems) == 5 and len(found.systems[System("sasrec")]) == 1
    assert systems.groups([]) == ([], []) and systems.groups(list_runs(tmp_path)) == ([], [])


def test_the_paper_stands_beside_its_own_data_only() -> None:
    shipped = {each.key: each for each in systems.groups(load_runs(CHECKPOINTS))[0]}
    none = lambda a, b, protocol: None  # noqa: E731
    table = judging.standings(shipped["ml-1m"], "pop100", none).set_index("label")[judging.PAPER]
    assert table["elastic (20 minutes of processor)"] == report.PAPER["elastic"][0] and np.isnan(table["popularity"])
    assert judging.standings(shipped["ml-1m"], "full", none)[judging.PAPER].isna().all()
    assert judging.standings(shipped["planted"], "pop100", none)[judging.PAPER].isna().all()


def test_every_shipped_run_has_a_name_that_can_be_read_and_no_other_has() -> None:
    runs = load_runs(CHECKPOINTS)
    names = {run.name: labels.run_called(run) for run in runs if not run.name.startswith("local-")}
    assert len(set(names.values())) == len(names) > 150
    for folder, name in names.items():
        system, data, *seed = name.split(" · ")
        assert len(system) < 90 and len(data) < 45 and "-seed" not in name and folder not in name, name
        assert not seed or (len(seed) == 1 and seed[0].startswith("seed ")), name
    assert names["ml-100k-elastic"] == "ELASTIC · MovieLens-100K · seed 0"
    assert names["ml-100k-elastic-memory-none-repeats-seed1"] == (
        "ELASTIC, no memory, with a repeat bias · MovieLens-100K · seed 1"
    )
    assert names["planted-long-popularity"] == "Popularity · Made-up world (16 interests, long histories)"


def test_a_run_of_ones_own_is_called_by_its_folder_too(tmp_path: Path) -> None:
    shipped = shipped_run("planted-elastic")
    mine = Run(Path(shutil.copytree(shipped.path, tmp_path / "local-mine")))
    assert labels.run_called(mine) == f"{labels.run_called(shipped)} · mine"
    (mine.path / CONFIG).write_text("{")
    assert labels.run_called(Run(mine.path)) == "local-mine", "all that is left of it"


def test_two_runs_beside_each_other_are_called_what_tells_them_apart() -> None:
    runs = {name: shipped_run(name) for name in
            ("ml-1m-cpu-elastic", "ml-1m-cpu-sasrec-local", "planted-elastic", "planted-elastic-seed1")}  # fmt: skip
    asked = list(runs.values())
    assert labels.apart(*asked[:2]) == ("ELASTIC", "SASRec with ELASTIC's local convolution")
    assert labels.apart(*asked[2:]) == ("ELASTIC · seed 0", "ELASTIC · seed 1")
