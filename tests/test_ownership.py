"""How often a first suggestion belongs to one expert: counted by hand, kept beside the runs, told without a claim of one run."""

from pathlib import Path

import numpy as np
import pytest
import torch
from shipped import CHECKPOINTS, FOLDERS
from test_attribution import built

from elastic_core.core.batches import history_batch
from elastic_core.data import Dataset
from elastic_core.results import store
from elastic_core.results.compare import compare_runs
from elastic_core.results.systems import System, data_sets, main_protocol
from elastic_core.runs import open_run
from elastic_core.services.evidence import ownership
from elastic_core.services.evidence.fingerprints import weights_fingerprint
from elastic_core.services.person.recommend import rank_items, scale_experts, user_history


@torch.no_grad()
def test_a_row_is_counted_by_hand(small_world: Dataset) -> None:
    model, run = built(small_world), open_run(FOLDERS / "planted-elastic-slots")
    row = ownership.measure_ownership(run, model, small_world)
    led = belongs = 0
    for user in range(small_world.histories.n_users):
        read = user_history(small_world, user)
        batch = history_batch(read.items, model.length)
        item = int(rank_items(model, small_world, read, top=1, keep_seen=True).table["item"].iloc[0])
        shares = model.attribute_items(batch, torch.tensor([[item]])).parts[0, 0]  # type: ignore[operator]
        if int(shares.argmax()) == 3:
            continue
        led += 1
        after = []
        for expert in model.retrieve(batch).experts[0].tolist():  # type: ignore[operator]
            scores = model.scorer()(model.last_state(batch, edit=scale_experts({expert: 0})))  # type: ignore[call-arg]
            after.append(float(scores[0, 1:].log_softmax(0)[item - 1]))
        belongs += int(np.argmin(after)) == int(shares[:3].argmax())
    assert (row.k, row.n_users, row.led) == (3, small_world.histories.n_users, led)
    assert row.belongs == pytest.approx(belongs, abs=1) and row.chance == pytest.approx(led / 3)  # one near tie
    assert row.run == run.name and row.weights == weights_fingerprint(run)


def test_rows_are_kept_and_the_newest_of_a_run_stays(tmp_path: Path) -> None:
    assert ownership.read_ownership(tmp_path) == []
    rows = [ownership.OwnershipRow("a", "00", "0123456789", 8, 100, 90, 45, 11.25)]
    ownership.write_ownership(tmp_path, rows)
    newer = [ownership.OwnershipRow(name, "ff", "0123456789", 4, 100, 80, 20, 20.0) for name in "ab"]
    ownership.write_ownership(tmp_path, newer)
    assert ownership.read_ownership(tmp_path) == newer


def test_the_table_holds_what_the_rows_and_the_ranks_say() -> None:
    measured, _ = data_sets(store.load(CHECKPOINTS))
    rows = ownership.read_ownership(CHECKPOINTS)
    table = ownership.ownership_table(measured, rows)
    assert table["runs"].sum() == len(rows) and table[["belongs", "chance"]].stack().between(0, 1).all()
    for row in rows:
        folder = FOLDERS / row.run
        assert not folder.exists() or row.weights == weights_fingerprint(open_run(folder)), "measured on other weights"


def test_what_a_setting_costs_is_the_paired_difference_to_the_usual_one() -> None:
    measured, _ = data_sets(store.load(CHECKPOINTS))
    groceries = next(each for each in measured if each.key == "groceries")
    usual = System("elastic-slots", budget="20 minutes of processor")
    changed = usual._replace(variant="memory-none")
    names = [groceries.systems[system][0].name for system in (usual, changed)]
    rows = [ownership.OwnershipRow(name, "00", "0123456789", 8, 100, 80, 40, 10.0) for name in names]
    table = ownership.ownership_table(measured, rows)
    found = compare_runs(groceries.systems[changed], groceries.systems[usual], main_protocol(groceries.systems))
    expected = [value / found.mean_b for value in (found.difference, found.low, found.high)]
    costs = table[["change", "low", "high"]].to_numpy()
    assert np.isnan(costs).all(1).tolist() == [True, False], "the usual one costs nothing beside itself"
    assert costs[1].tolist() == pytest.approx(expected)


def test_the_sentence_names_a_setting_only_where_accuracy_holds() -> None:
    measured, _ = data_sets(store.load(CHECKPOINTS))
    table = ownership.ownership_table(measured, ownership.read_ownership(CHECKPOINTS)).assign(low=float("nan"))
    real = ~table["made up"].astype(bool)
    assert "no setting reaches half" in ownership.ownership_sentence(table[real].assign(belongs=0.43))
    assert "no setting reaches half" in ownership.ownership_sentence(table[real].assign(belongs=0.6, low=-0.02))
    assert "in some setting" in ownership.ownership_sentence(table[real].assign(belongs=0.6, low=-0.005))
    assert "On real data" not in ownership.ownership_sentence(table[~real]) and ownership.ownership_sentence(table[:0]) == ""
