"""One grid for every model: what it trains, what it keeps, what a kill leaves, and that the recipes are what validation chose."""

import time
from pathlib import Path

import pytest

from elastic_core import recipes
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.recipes import ALSO_TUNED, CHOSEN, GRID, grid_point, recipe
from elastic_core.reproduce import rows
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.tuning import TABLE, best, folder, outcomes, tune

SHIPPED = Path(__file__).resolve().parents[1] / "checkpoints" / TABLE


def small(model: str, point: str) -> RunConfig:
    """A point of the grid in little: what it is about stays."""
    little = recipes.toy(model).override("model.length=8", "model.width=8", "data.planted.users=60", "data.planted.items=60")
    return little.override(*GRID[point], "train.epochs=2", "data.planted.interests=4", "data.planted.mean_length=20")


def test_every_point_is_trained_once_and_kept_as_validation_saw_it(small_world: Dataset, tmp_path: Path) -> None:
    assert not tune("sasrec", small_world, tmp_path, at=time.monotonic(), config=small), "no time, nothing finished"
    assert outcomes(tmp_path / TABLE) == []
    assert tune("sasrec", small_world, tmp_path, config=small)
    found = outcomes(tmp_path / TABLE)
    assert [each.point for each in found] == sorted(GRID)
    for each in found:
        run = Run(folder(tmp_path, "sasrec", each.point))
        epochs = {row["epoch"]: row["valid"]["NDCG@10"] for row in run.events("epoch")}
        assert each.valid == epochs[each.best_epoch] == max(epochs.values()) and each.epochs == len(epochs)
        assert run.config.model.dropout == float(each.point.split("-")[1])
    chosen = best(found, "sasrec")
    assert chosen is not None and chosen.valid == max(each.valid for each in found) and best(found, "other") is None
    before = (tmp_path / TABLE).read_text()
    assert tune("sasrec", small_world, tmp_path, config=small) and (tmp_path / TABLE).read_text() == before


def test_a_point_nobody_knows_and_a_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known are plain"):
        grid_point("sasrec", "lucky")
    with pytest.raises(InputError, match="nothing to tune"):
        grid_point("popularity", "plain-0.2")
    (tmp_path / TABLE).write_text("data,model\nx,y\n")
    with pytest.raises(InputError, match="not a table"):
        outcomes(tmp_path / TABLE)


def test_the_recipes_are_what_validation_chose_among_all_points() -> None:
    found = outcomes(SHIPPED)
    for model, point in CHOSEN.items():
        chosen = best(found, model)
        assert chosen is not None and chosen.point == point, f"{model}: tuning.csv says {chosen}"
        assert {each.point for each in found if each.model == model} == set(GRID), f"{model} was not tried at every point"
        assert recipe("ml-100k", model) == grid_point(model, point)


def test_what_is_tuned_beside_the_registered_models_had_every_point() -> None:
    found = outcomes(SHIPPED)
    for name, (model, changes) in ALSO_TUNED.items():
        assert {each.point for each in found if each.model == name} == set(GRID), f"{name} was not tried at every point"
        for point in GRID:
            assert grid_point(name, point) == grid_point(model, point).override(*changes) != grid_point(model, point)
        chosen = best(found, name)
        assert chosen is not None
        found_rows = [row for row in rows() if row.name.startswith(f"ml-100k-{name}-grid")]
        assert [row.config for row in found_rows] == [
            grid_point(name, chosen.point).override(f"train.seed={n}") for n in range(3)
        ]


def test_elastic_has_a_row_learned_as_the_grid_chose_for_it() -> None:
    chosen = best(outcomes(SHIPPED), "elastic")
    assert chosen is not None
    assert {each.point for each in outcomes(SHIPPED) if each.model == "elastic"} == set(GRID)
    for seed, row in enumerate(row for row in rows() if row.system[:2] == ("elastic", "grid")):
        assert row.config == grid_point("elastic", chosen.point).override(f"train.seed={seed}")
    assert seed == 2
