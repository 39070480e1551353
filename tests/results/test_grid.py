"""One grid for every model: what it trains, what it keeps, what a kill leaves, and that the recipes are what validation chose."""

import time
from pathlib import Path

import pandas as pd
import pytest

from elastic_core import recipes
from elastic_core.commands import main, reproduce
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import ALSO_TUNED, CHOSEN, GRID, grid_point, recipe
from elastic_core.results.grid import COLUMNS, FILE, VALID, grid_folder, read_outcomes, train_grid
from elastic_core.results.reproduce import planned_runs
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run

SHIPPED = Path(__file__).resolve().parents[2] / "checkpoints" / FILE


def points_of(model: str) -> set[str]:
    outcomes = read_outcomes(SHIPPED)
    return set(outcomes.loc[outcomes["model"] == model, "point"])


def best_outcome(outcomes: pd.DataFrame, model: str) -> str | None:
    """The point of the grid that validation chooses for a model: the highest mean, ties to the first of the grid.

    Raises InputError where it was tried on different data."""
    mine = outcomes[(outcomes["model"] == model) & outcomes["point"].isin(list(GRID))]
    if mine["data_hash"].nunique() > 1:
        raise InputError(f"the trainings of {model} were judged on different data; no best of them can be named")
    mine = mine.assign(place=mine["point"].map({point: place for place, point in enumerate(GRID)}))
    mine = mine.sort_values([VALID, "place"], ascending=[False, True])
    return str(mine["point"].iloc[0]) if len(mine) else None


def small(model: str, point: str) -> RunConfig:
    """A point of the grid in little: what it is about stays."""
    little = recipes.toy(model).override("model.length=8", "model.width=8", "data.planted.users=60", "data.planted.items=60")
    return little.override(*GRID[point], "train.epochs=2", "data.planted.interests=4", "data.planted.mean_length=20")


def test_every_point_is_trained_once_and_kept_as_validation_saw_it(small_world: Dataset, tmp_path: Path) -> None:
    assert not train_grid("sasrec", small_world, tmp_path, at=time.monotonic(), config=small), "no time, nothing finished"
    assert read_outcomes(tmp_path / FILE).empty
    assert train_grid("sasrec", small_world, tmp_path, config=small)
    found = read_outcomes(tmp_path / FILE)
    assert found["point"].tolist() == sorted(GRID)
    for each in found.itertuples():
        run = Run(grid_folder(tmp_path, "sasrec", each.point))
        epochs = {row["epoch"]: row["valid"]["NDCG@10"] for row in run.events("epoch")}
        assert found.loc[each.Index, VALID] == epochs[each.best_epoch] == max(epochs.values()) and each.epochs == len(epochs)
        assert run.config.model.dropout == float(each.point.split("-")[1])
    chosen = best_outcome(found, "sasrec")
    assert found.loc[found["point"] == chosen, VALID].tolist() == [found[VALID].max()]
    assert best_outcome(found, "other") is None
    before = (tmp_path / FILE).read_text()
    assert train_grid("sasrec", small_world, tmp_path, config=small) and (tmp_path / FILE).read_text() == before


def test_the_command_prints_what_validation_said(
    small_world: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train_grid("sasrec", small_world, tmp_path, config=small)
    monkeypatch.setattr(reproduce, "load", lambda *given: small_world)
    monkeypatch.setattr(reproduce, "train_grid", lambda *given: True)
    assert main(["reproduce", "--grid", "sasrec", "--root", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for score in read_outcomes(tmp_path / FILE)[VALID]:
        assert f"valid {score:.4f}" in printed


def test_a_point_nobody_knows_and_a_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known are plain"):
        grid_point("sasrec", "lucky")
    with pytest.raises(InputError, match="nothing to tune"):
        grid_point("popularity", "plain-0.2")
    (tmp_path / FILE).write_text("data,model\nx,y\n")
    with pytest.raises(InputError, match="not a table"):
        read_outcomes(tmp_path / FILE)


def test_the_recipes_are_what_validation_chose_among_all_points() -> None:
    for model, point in CHOSEN.items():
        assert best_outcome(read_outcomes(SHIPPED), model) == point, model
        assert points_of(model) == set(GRID), f"{model} was not tried at every point"
        assert recipe("ml-100k", model) == grid_point(model, point)


def test_what_is_tuned_beside_the_registered_models_had_every_point() -> None:
    for name, (model, changes) in ALSO_TUNED.items():
        assert points_of(name) == set(GRID), f"{name} was not tried at every point"
        for point in GRID:
            assert grid_point(name, point) == grid_point(model, point).override(*changes) != grid_point(model, point)
        chosen = best_outcome(read_outcomes(SHIPPED), name)
        assert chosen is not None
        found_rows = [row for row in planned_runs() if row.name.startswith(f"ml-100k-{name}-grid")]
        assert [row.config for row in found_rows] == [grid_point(name, chosen).override(f"train.seed={n}") for n in range(3)]


def test_elastic_has_a_row_learned_as_the_grid_chose_for_it() -> None:
    chosen = best_outcome(read_outcomes(SHIPPED), "elastic")
    assert chosen is not None and points_of("elastic") == set(GRID)
    for seed, row in enumerate(row for row in planned_runs() if row.system[:2] == ("elastic", "grid")):
        assert row.config == grid_point("elastic", chosen).override(f"train.seed={seed}")
    assert seed == 2


def test_trainings_on_different_data_have_no_best() -> None:
    one = ("planted", "a" * 16, "sasrec", "plain-0.2", 0, 0.1, 1, 2, 3.0, 4, "")
    other = ("planted", "b" * 16, "sasrec", "averaged-0.3", 0, 0.2, 1, 2, 3.0, 4, "")
    assert best_outcome(pd.DataFrame([one], columns=COLUMNS), "sasrec") == "plain-0.2"
    with pytest.raises(InputError, match="different data"):
        best_outcome(pd.DataFrame([one, other], columns=COLUMNS), "sasrec")


def test_an_unknown_model_is_said_before_anything_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--grid", "lucky", "--root", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1 and not list(tmp_path.iterdir())
