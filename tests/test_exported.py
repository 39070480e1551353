"""A run as one file: it scores as the run does, in any number of people, and nothing is written that does not."""

import sys
from pathlib import Path

import pytest
import torch

from elastic_core import exported
from elastic_core.commands import main
from elastic_core.core.batches import history_batch
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender, build
from elastic_core.peers.popularity import PopularityConfig
from elastic_core.runs import Run

Tiny = tuple[Recommender, Dataset, Run]


@torch.no_grad()
def test_the_file_scores_as_the_run_does(tiny_peer: Tiny, tmp_path: Path) -> None:
    model, data, run = tiny_peer
    assert main(["export", str(run.path), "--out", str(tmp_path / "model.pt2")]) == 0
    files = {"items": "", "length": ""}
    program = torch.export.load(str(tmp_path / "model.pt2"), extra_files=files).module()
    assert ["", *files["items"].splitlines()] == data.catalog.ids.astype(str).tolist() and int(files["length"]) == model.length
    items = torch.cat([history_batch(data.histories.user_items(user), model.length).items for user in range(5)])
    assert program(items)[:, 0].isneginf().all(), "padding is no suggestion"
    for user in range(5):
        expected = model.score(history_batch(data.histories.user_items(user), model.length))[:, 1:]
        torch.testing.assert_close(program(items)[user : user + 1, 1:], expected, atol=1e-4, rtol=0)
        torch.testing.assert_close(program(items[user : user + 1])[:, 1:], expected, atol=1e-4, rtol=0)


def test_what_scores_otherwise_or_has_no_weights_is_not_written(
    tiny_peer: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, data, run = tiny_peer
    with pytest.raises(InputError, match="no weights"):
        exported.export_program(build(PopularityConfig(), data.catalog))
    assert main(["export", str(run.path), "--out", str(tmp_path / "model.txt")]) == 2
    monkeypatch.setattr(exported, "NEAR", -1.0)
    assert main(["export", str(run.path), "--out", str(tmp_path / "model.pt2")]) == 2 and not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def traced(tiny: Tiny) -> exported.ExportedProgram:
    return exported.export_program(tiny[0])


def test_experts_are_exported_too(traced: exported.ExportedProgram) -> None:
    assert traced.differs <= exported.NEAR and exported.NEAR == 1e-4


def test_onnx_scores_as_the_run_does_and_knows_its_items(
    tiny: Tiny, traced: exported.ExportedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.setattr("elastic_core.commands.export.export_program", lambda model: traced)
    model, data, run = tiny
    file = tmp_path / "model.onnx"
    assert main(["export", str(run.path), "--out", str(file)]) == 0
    session = onnxruntime.InferenceSession(str(file))
    assert ["", *session.get_modelmeta().custom_metadata_map["items"].splitlines()] == data.catalog.ids.astype(str).tolist()
    batch = history_batch(data.histories.user_items(3), model.length)
    (scores,) = session.run(["scores"], {"items": batch.items.numpy()})
    assert session.get_modelmeta().custom_metadata_map["length"] == str(model.length) and scores[0, 0] == -float("inf")
    torch.testing.assert_close(torch.from_numpy(scores)[:, 1:], model.score(batch)[:, 1:].detach(), atol=1e-4, rtol=0)
    file.unlink()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["export", str(run.path), "--out", str(file)]) == 2 and not file.exists()
