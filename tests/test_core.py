"""The core alone: what it imports, how few files a training runs through, and that fused operations change no number."""

import ast
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from elastic_core.core import dispatch, layers
from elastic_core.core import objective as objectives
from elastic_core.core.batches import SeenItems
from elastic_core.core.building import build
from elastic_core.core.config import ObjectiveConfig, TrainConfig
from elastic_core.core.contract import Scorer
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.objective import build as build_objective
from elastic_core.core.sasrec import SASRecConfig
from elastic_core.core.step import Optimization
from elastic_core.core.train import fit
from elastic_core.data import Dataset, planted
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "elastic_core"
GROUND = {"core", "files", "errors", "plugins"}  # what the core may import: itself, and how files and faults are spoken of
# A training also needs optimizers without a compiler, how often people return, and where runs lie without a checkout.
STEP_FILES, TRAINING_FILES = 9, 55 + 3


@pytest.fixture
def world() -> Dataset:
    return planted(PlantedConfig(users=40, items=30, interests=4, mean_length=20, max_length=30))


def learner_of(config: ElasticConfig | SASRecConfig, world: Dataset, objective: str) -> Optimization:
    torch.manual_seed(0)
    model = build(config, world.catalog).train()
    learned = build_objective(ObjectiveConfig.known[objective](), world, config.length)
    return Optimization(model, learned, TrainConfig(), torch.device("cpu"))


def losses(config: ElasticConfig | SASRecConfig, world: Dataset, objective: str) -> list[float]:
    learner = learner_of(config, world, objective)
    torch.manual_seed(1)
    return [
        float(learner.step(batch).total) for _, batch in zip(range(3), learner.objective.epoch_batches(0, 0, 8), strict=False)
    ]


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").glob("*.py")), ids=lambda path: path.stem)
def test_the_core_imports_nothing_of_the_rooms_around_it(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        rooms = {name.split(".")[1] for name in names if name.startswith("elastic_core.")}
        assert rooms <= GROUND, f"{path.name} imports {rooms - GROUND}"


CASES = [
    (ElasticConfig(length=16, width=16, n_subkeys=4, k=3, dropout=0.0), "window"),
    (SASRecConfig(length=16, width=16, dropout=0.0), "all"),
]


@pytest.mark.parametrize(("config", "objective"), CASES, ids=["elastic", "sasrec"])
def test_fused_operations_change_no_number(
    config: ElasticConfig | SASRecConfig, objective: str, world: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the same losses by torch's own operations alone."""

    def plain_softmax(states: Tensor, targets: Tensor, scorer: Scorer, met: SeenItems | None = None) -> Tensor:
        return functional.cross_entropy(scorer(states, met)[:, 1:], targets - 1, reduction="sum")

    fused = losses(config, world, objective)
    monkeypatch.setattr(layers, "fits_one_pass", lambda x, weight: False)
    monkeypatch.setattr(layers, "causal_convolution", lambda x, taps: layers.convolve_rows(x, taps.flip(0), 0))
    monkeypatch.setattr(dispatch, "sums_before", lambda x: functional.pad(x.cumsum(2)[:, :, :-1], (0, 0, 0, 0, 1, 0)))
    monkeypatch.setattr(objectives, "full_softmax", plain_softmax)
    assert losses(config, world, objective) == pytest.approx(fused, rel=2e-6)


def test_a_step_of_elastic_runs_through_few_files(world: Dataset) -> None:
    learner = learner_of(CASES[0][0], world, "window")
    first, second, *_ = learner.objective.epoch_batches(0, 0, 8)
    learner.step(first)  # what is looked up once is known now
    files = set()

    def seen(frame: FrameType, event: str, argument: object) -> None:
        files.add(frame.f_code.co_filename)

    sys.settrace(seen)
    try:
        learner.step(second)
    finally:
        sys.settrace(None)
    run = sorted(Path(name).relative_to(PACKAGE) for name in files if name.startswith(str(PACKAGE)))
    assert len(run) <= STEP_FILES and {path.parts[0] for path in run} == {"core"}, run


def test_the_core_trains_and_keeps_the_best_weights_without_a_run_folder(world: Dataset) -> None:
    model_config, learned = CASES[0][0], ObjectiveConfig.known["window"]()
    config = RunConfig(data=DataConfig(source="planted"), model=model_config, objective=learned, train=TrainConfig(epochs=2))
    model = fit(config, world)
    untrained = build(config.model, world.catalog)
    assert not model.training
    assert not torch.equal(model.events.items.weight, untrained.events.items.weight)


TRAIN = """
import sys
from pathlib import Path
from elastic_core.commands import main
code = main(["train", "--recipe", "toy", "--set", "train.epochs=1", "--set", "data.planted.users=60", "--out", sys.argv[1]])
files = {str(getattr(module, "__file__", None)) for module in list(sys.modules.values())}
print(*sorted(file for file in files if Path(file).is_relative_to(sys.argv[2])), sep="\\n")
sys.exit(code)
"""


def test_a_training_executes_few_files_of_the_package(tmp_path: Path) -> None:
    words = [sys.executable, "-c", TRAIN, str(tmp_path / "run"), str(PACKAGE)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    files = [Path(line).relative_to(PACKAGE) for line in done.stdout.splitlines() if line.startswith(str(PACKAGE))]
    assert len(files) + 1 <= TRAINING_FILES, files  # and __main__
    assert not {"peers", "slots", "services", "bench"} & {file.parts[0] for file in files}
