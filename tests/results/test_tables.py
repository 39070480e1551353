"""Tables of what every system reached: one protocol each, seeds together, other runs beside them, and what they are called."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ranked_runs import runs_below, write_ranked_runs
from shipped import CHECKPOINTS, shipped_run

from elastic_core.core.candidates import PROTOCOLS
from elastic_core.results import baselines
from elastic_core.results.baselines import BaselineComparison, BaselineRow
from elastic_core.results.compare import compare_runs
from elastic_core.results.reproduce import System
from elastic_core.results.store import load as load_runs
from elastic_core.results.systems import (
    BASELINES,
    DataSet,
    data_sets,
    labels_apart,
    planned_data_sets,
    run_label,
    shorten_titles,
    usual_partner,
)
from elastic_core.results.table import (
    LEADERBOARD,
    MAIN_SYSTEMS,
    PAPER,
    PAPER_COLUMN,
    difference_table,
    leaderboard,
    main_rows,
    memory_size_table,
    protocol_table,
    reference_names,
    result_table,
    system_summary,
    with_chance,
)
from elastic_core.runs import CONFIG, Run, list_runs, ranks

MADE_UP = {
    "planted-popularity": 0.02, "planted-cooccurrence": 0.05, "planted-sasrec": 0.05, "planted-sasrec-seed1": 0.051,
    "planted-elastic": 0.2, "planted-elastic-seed1": 0.21, "planted-elastic-slots": 0.02,
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranked")
    write_ranked_runs(folder, MADE_UP)
    return folder


def measured(root: Path) -> DataSet:
    (data_set,), faults = data_sets(runs_below(root))
    assert not faults
    return data_set


def test_a_row_is_what_the_ranks_say(root: Path) -> None:
    mine, planned = measured(root), planned_data_sets(root)["planted"]
    assert list(mine.systems) == list(planned) and mine.key == "planted" and mine.users == 2_000
    pair, peer = ([Run(root / f"planted-{name}{seed}") for seed in ("", "-seed1")] for name in ("elastic", "sasrec"))
    table = result_table(planned)
    assert len(table) == len(planned) * len(PROTOCOLS) * 3, "one row a system, protocol and metric"
    for protocol in PROTOCOLS:
        values = np.stack([run.report().user_values(protocol, "NDCG@10") for run in pair])
        (row,) = table.set_index(["system", "protocol", "metric"]).loc[[(System("elastic"), protocol, "NDCG@10")]].itertuples()
        assert (row.seeds, row.users) == (2, 2_000) and row.mean == pytest.approx(values.mean())
        assert row.half == pytest.approx(1.96 * values.mean(0).std(ddof=1) / 2_000**0.5)
        assert row.spread == pytest.approx(values.mean(1).std(ddof=1))
        shown = leaderboard(mine, protocol).set_index("label").loc["elastic"]
        assert (shown["NDCG@10"], shown["± 95%"], shown["seeds"]) == (row.mean, row.half, 2)
        line = difference_table(mine, System("elastic"), protocol).set_index("label").loc["sasrec"]
        found = compare_runs(pair, peer, protocol)
        assert line[["difference", "low", "high", "p"]].tolist() == [found.difference, found.low, found.high, found.p]
        assert line["adjusted"] >= line["p"] and line["claim"] == "ELASTIC, K = 8², k = 8 is better"
        (across,) = protocol_table([found]).itertuples()
        assert (across.difference, across.winner, across.n) == (found.difference, "A", 2_000)
    words = leaderboard(mine, "full").set_index("label")["beside the baseline"]
    assert words["cooccurrence"] == "the best baseline" and words["elastic"].startswith("above Co-occurrence by 0.")
    assert words["elastic-slots"].endswith("trained once: no claim") and words["sasrec"].endswith("may be chance")


def test_who_a_system_is_set_against_first() -> None:
    elastic, sasrec, local, popularity = System("elastic"), System("sasrec"), System("sasrec", "local"), System("popularity")
    runs = {
        system: [shipped_run(f"planted-{name}{seed}") for seed in ("", "-seed1")]
        for system, name in ((elastic, "elastic"), (sasrec, "sasrec"), (local, "sasrec-local"))
    }
    runs[popularity] = [shipped_run("planted-popularity")]
    assert usual_partner(elastic, runs) == local and usual_partner(sasrec, runs) == elastic
    assert usual_partner(elastic, {system: runs[system] for system in (elastic, popularity)}) == popularity
    assert usual_partner(elastic, {elastic: runs[elastic]}) is None
    once = runs | {local: runs[local][:1]}
    assert usual_partner(elastic, once) == sasrec, "nothing may be claimed beside what was trained once"


def test_figure_five_compares_only_what_differs_in_size(tmp_path: Path) -> None:
    names = ("elastic", "elastic-side-16", "elastic-k-4", "elastic-memory-none", "elastic-slots", "sasrec")
    write_ranked_runs(tmp_path, {f"planted-{name}": 0.1 for name in names})
    table = memory_size_table(measured(tmp_path).systems, System("elastic"), "full")
    assert table["runs"].tolist() == ["planted-elastic-k-4", "planted-elastic", "planted-elastic-side-16"]
    assert table[["√K", "k"]].to_numpy().tolist() == [[8, 4], [8, 8], [16, 8]]


def test_runs_of_somebodys_own_stand_beside_and_change_no_claim_of_the_report(root: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(root, tmp_path / "runs"))
    before = difference_table(measured(folder), System("elastic"), "full")
    for name, changes in (("local-a", ("model.dropout=0.7",)), ("local-b", ("train.seed=7",)), ("local-c", ())):
        run = Run(Path(shutil.copytree(folder / "planted-elastic", folder / name)))
        (run.path / CONFIG).write_text(json.dumps(run.config.override(*changes).to_dict()))
    mine = measured(folder)
    assert [run.name for run in mine.systems[System("elastic")]] == ["planted-elastic", "planted-elastic-seed1", "local-b"]
    assert System("elastic", own="local-a") in mine.systems and not any(system.own == "local-c" for system in mine.systems)
    after = difference_table(mine, System("elastic"), "full")
    assert after["label"].tolist() == [*before["label"], "elastic (own: local-a)"]
    assert after["family"].tolist()[-1] == "other runs here" and mine.system_of(folder / "local-b") == System("elastic")
    own = difference_table(mine, System("elastic", own="local-a"), "full")
    assert len(own) == len(mine.systems) - 1


def test_trainings_of_ones_own_stand_beside_the_baselines_of_their_cards(root: Path, tmp_path: Path) -> None:
    """Where no baseline was run; in the protocol in which the data are judged, and without a claim."""
    for name in ("planted-sasrec", "planted-sasrec-seed1", "planted-elastic"):
        shutil.copytree(root / name, tmp_path / name)
    alone = leaderboard(measured(tmp_path), "full-seen")
    assert set(alone["beside the baseline"]) == {"no baseline was run here"}
    counts = (
        BaselineRow("Co-occurrence", 0.2, 0.1, 0.3, -0.05, -0.08, -0.02),
        BaselineRow("Popularity", 0.1, 0.08, 0.12, 0.05),
    )
    again = (dataclasses.replace(counts[0], difference=0.03), counts[1])
    for name, rows_of in (("planted-sasrec", counts), ("planted-sasrec-seed1", again)):
        baselines.write_comparison(
            Run(tmp_path / name), BaselineComparison(2_000, 0.01, (*rows_of, BaselineRow("Vast", fault="too large")), "full-seen")
        )
    mine = measured(tmp_path)
    table = leaderboard(mine, "full-seen").set_index("system")
    assert table.index.tolist()[:2] == ["Popularity", "Co-occurrence"] and len(table) == 4
    assert table.loc["Co-occurrence", "NDCG@10"] == 0.2 and table.loc["Co-occurrence", "± 95%"] == pytest.approx(0.1)
    words = table["beside the baseline"]
    assert words["Co-occurrence"] == "the best baseline" and words["Popularity"] == "a baseline"
    assert words["SASRec"] == "below Co-occurrence by 0.0100, no claim"
    assert reference_names(mine, table.reset_index()) and "Popularity" not in reference_names(mine, table.reset_index())
    other = leaderboard(mine, "full")
    assert len(other) == 2 and set(other["beside the baseline"]) == {"no baseline was run here"}, "cards are of one protocol"
    shutil.copytree(tmp_path / "planted-sasrec", tmp_path / "alone" / "planted-sasrec")
    only = measured(tmp_path / "alone")
    alone = leaderboard(only, "full-seen")
    nobody = difference_table(only, System("sasrec"), "full-seen")
    assert system_summary(alone, nobody, "SASRec") == "SASRec is below Co-occurrence by 0.0500, trained once: no claim."
    shutil.copytree(root / "planted-popularity", tmp_path / "planted-popularity")
    assert "Co-occurrence" not in set(leaderboard(measured(tmp_path), "full-seen")["system"]), "a run goes first"


def test_the_summary_has_a_subject_whoever_is_better() -> None:
    table = pd.DataFrame({"system": ["a", "b", "c"], "label": ["a", "b", "c"], "seeds": [3, 3, 1]})
    found = pd.DataFrame({"system": ["b", "c"], "family": "other systems", "seeds_counted": [True, False]})
    for who, told in {
        "A": "1 of 2 other systems, and no system is clearly better than it",
        "B": "0 of 2 other systems, and worse than b",
    }.items():
        said = system_summary(table, found.assign(winner=[who, ""]), "a")
        assert said == f"a is better than {told}. Another was trained only once, so we claim nothing about it."
    close = system_summary(table, found.assign(winner=["A", ""], seeds_counted=True), "a")
    assert close.endswith("better than it. It does not differ clearly from 1 system: c.")
    both = system_summary(table, found.assign(winner=["A", "B"]), "a")
    assert both == "a is better than 1 of 2 other systems, and worse than c."


def test_names_are_without_what_all_share_and_stay_apart() -> None:
    told = [
        "SASRec, with a bonus for seen items (20 minutes)",
        "ELASTIC, K = 16², k = 8, with a bonus for seen items (20 minutes)",
    ]
    assert shorten_titles([*told, "Popularity"]) == ["SASRec", "ELASTIC", "Popularity"]
    assert shorten_titles([*told, "ELASTIC, K = 16², k = 8"]) == [
        "SASRec, with a bonus for seen items", "ELASTIC, with a bonus for seen items", "ELASTIC",
    ]  # fmt: skip
    assert shorten_titles(["ELASTIC, K = 16², k = 8", "ELASTIC, K = 8², k = 8"]) == [
        "ELASTIC, K = 16², k = 8",
        "ELASTIC, K = 8², k = 8",
    ]


def test_the_main_systems_are_shown_and_the_rest_is_not_lost() -> None:
    din, rest = System("din"), [System("sasrec", mark="repeats"), System("elastic", "memory-none")]
    found = DataSet("", "", "", {system: [] for system in (*MAIN_SYSTEMS, din, *rest)})
    labels = list(map(str, found.systems))
    table = pd.DataFrame({"system": labels, "label": labels, "NDCG@10": 0.1, "people": 70})
    assert main_rows(found, table, din)["label"].tolist() == labels[: len(MAIN_SYSTEMS) + 1]
    assert len(main_rows(found, table[:8], din)) == 8, "few are all shown"
    assert main_rows(found, table, rest[0])["label"].tolist() == [*BASELINES, "sasrec (repeats)"], "by the same recipe"
    of_own = main_rows(found, table, System("elastic", own="mine"), din)["label"].tolist()
    assert of_own == labels[: len(MAIN_SYSTEMS) + 1], "beside one's own run those without a mark"
    shown = with_chance(table.reindex(columns=LEADERBOARD).astype(object), 0.01)
    assert shown["NDCG@10"].tolist()[:2] == [0.01, 0.1] and shown["label"].tolist()[0] == "", "no run of it can be opened"
    assert with_chance(table, None) is table


def test_what_cannot_be_read_is_named_and_the_rest_stands(root: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(root, tmp_path / "runs"))
    (folder / "planted-sasrec" / ranks.FILE).write_bytes(b"damaged")
    (found,), (fault,) = data_sets(runs_below(folder))
    assert fault.name == "planted-sasrec" and len(found.systems) == 5 and len(found.systems[System("sasrec")]) == 1
    assert data_sets([]) == ([], []) and data_sets(list_runs(tmp_path)) == ([], [])


def test_the_paper_stands_beside_its_own_data_only() -> None:
    shipped = {each.key: each for each in data_sets(load_runs(CHECKPOINTS))[0]}
    none = lambda a, b, protocol: None  # noqa: E731
    table = leaderboard(shipped["ml-1m"], "pop100", none).set_index("label")[PAPER_COLUMN]
    assert table["elastic (20 minutes of processor)"] == PAPER["elastic"] and np.isnan(table["popularity"])
    assert leaderboard(shipped["ml-1m"], "full", none)[PAPER_COLUMN].isna().all()
    assert leaderboard(shipped["planted"], "pop100", none)[PAPER_COLUMN].isna().all()


def test_every_shipped_run_has_a_name_that_can_be_read_and_no_other_has() -> None:
    runs = load_runs(CHECKPOINTS)
    names = {run.name: run_label(run) for run in runs if not run.name.startswith("local-")}
    assert len(set(names.values())) == len(names) > 150
    for folder, name in names.items():
        system, data, *seed = name.split(" · ")
        assert len(system) < 90 and len(data) < 45 and "-seed" not in name and folder not in name, name
        assert not seed or (len(seed) == 1 and seed[0].startswith("seed ")), name
    assert names["ml-100k-elastic"] == "ELASTIC · MovieLens-100K · seed 0"
    assert names["ml-100k-elastic-memory-none-repeats-seed1"] == (
        "ELASTIC, no memory, with a bonus for seen items · MovieLens-100K · seed 1"
    )
    assert names["planted-long-popularity"] == "Popularity · Made-up world (16 interests, long histories)"


def test_a_run_of_ones_own_is_called_by_its_folder_too(tmp_path: Path) -> None:
    shipped = shipped_run("planted-elastic")
    mine = Run(Path(shutil.copytree(shipped.path, tmp_path / "local-mine")))
    assert run_label(mine) == f"{run_label(shipped)} · mine"
    (mine.path / CONFIG).write_text("{")
    assert run_label(Run(mine.path)) == "local-mine", "all that is left of it"


def test_two_runs_beside_each_other_are_called_what_tells_them_apart() -> None:
    runs = {name: shipped_run(name) for name in
            ("ml-1m-cpu-elastic", "ml-1m-cpu-sasrec-local", "planted-elastic", "planted-elastic-seed1")}  # fmt: skip
    asked = list(runs.values())
    assert labels_apart(*asked[:2]) == ("ELASTIC", "SASRec with a local convolution")
    assert labels_apart(*asked[2:]) == ("ELASTIC · seed 0", "ELASTIC · seed 1")
