"""Several processes train what one would: the same curve, the same weights; and none of them goes on without the others."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Forked, command, free_port
from test_trainer import MODEL, PLANTED, WINDOW, numbers

from elastic_core import files, models, objectives, recipes
from elastic_core.core import step as core_step
from elastic_core.core.config import TrainConfig
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import RESUME, WEIGHTS, Run
from elastic_core.runs import training as loop
from elastic_core.runs.training import train
from elastic_core.scale.distributed import PeerEnded, join_processes

if not torch.distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

ELASTIC = {"model.name": "elastic", "model.n_subkeys": 4, "model.k": 2, "model.balance_weight": 0.1}
SYSTEMS: dict[str, dict[str, Any]] = {
    "elastic-window": {**ELASTIC, "objective.span": 4},
    "elastic-votes-patience": {
        **ELASTIC, "model.name": "elastic-votes", "objective.span": 4, "train.epochs": 9, "train.patience": 1
    },
    "elastic-random-sampled": {
        **ELASTIC, "objective.span": 4, "objective.retrieval": "random", "objective.loss": "sampled", "objective.negatives": 20
    },
    "slots-window": {"model.name": "elastic-slots", "model.n_subkeys": 4, "model.k": 2, "model.interest_weight": 0.1},
    "sasrec-all": {"model.name": "sasrec", "objective.name": "all"},
}  # fmt: skip
HOSTS = ("sasrec", "bert4rec", *models.model_names())


def host_of(objective: str) -> str:
    """The first model that may learn from it."""
    return next(
        name for name in HOSTS if objective in objectives.honest_objectives(models.build(recipes.model_settings(name), 9))
    )


SYSTEMS |= {
    name: {"model.name": host_of(name), "objective.name": name}
    for name in objectives.objective_names()
    if name not in (WINDOW.name, *(changes.get("objective.name") for changes in SYSTEMS.values()))
}


def asked(**changes: Any) -> RunConfig:
    """A small training without dropout, whose noise each process draws for itself. Its decay shows a gradient that is too large
    by any factor, which Adam alone would not."""
    train = TrainConfig(batch=32, epochs=3, patience=99, ema_decay=0.9, learning_rate=0.01, weight_decay=0.01)
    config = RunConfig(data=DataConfig(source="planted", planted=PLANTED), model=MODEL, objective=WINDOW, train=train)
    names = {key: value for key, value in changes.items() if key.endswith(".name")}
    rest = {key: value for key, value in changes.items() if key not in names}
    return config.replace_values(names).replace_values({"model.dropout": 0.0} | rest)


CLIPPED = 0.3  # the norm of gradients here, in every process, so that clipping is at work in some steps


@pytest.fixture(scope="module", autouse=True)
def clipped() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_step, "MAX_GRAD_NORM", CLIPPED)
        yield


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(asked().data)


def state_of(config: RunConfig, dataset: Dataset, out: Path, **given: Any) -> dict[str, Any]:
    """Trains; what the learner of this process holds in the end."""
    held: list[Any] = []
    usual = loop.RunTraining._prepare_learner

    def prepared(self: Any, resume: Any) -> Any:
        held.append(usual(self, resume))
        return held[-1]

    loop.RunTraining._prepare_learner = prepared  # type: ignore[method-assign]
    try:
        train(config, dataset, out, **given)
    finally:
        loop.RunTraining._prepare_learner = usual  # type: ignore[method-assign]
    return held[-1].state() if held else {}


def one_rank(rank: int, count: int, port: int, configs: dict[str, dict[str, Any]], folder: Path, trouble: str) -> None:
    """Runs in a child process, one training after another. `trouble`: what happens to the last rank in the middle of its second
    epoch; whoever is to be stopped, is then."""
    torch.set_num_threads(1)
    core_step.MAX_GRAD_NORM = CLIPPED
    known = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in known.items()})
    if rank:
        Run.append_event = Run.lock = files.write_whole = lambda *_: os._exit(3)  # type: ignore[assignment,method-assign]
    with join_processes() as ranks:
        for name, plain in configs.items():
            config, ours = RunConfig.from_dict(plain), folder / f"{name}-{rank}"
            steps = _counted(trouble if rank == count - 1 else "")
            stop = (lambda steps=steps: rank == count - 1 and steps[0] > 3) if name == STOPPED else None
            try:
                torch.save(state_of(config, load(config.data), folder / name, stop=stop, ranks=ranks), f"{ours}.pt")
                Path(f"{ours}.seed").write_text(str(torch.initial_seed()))
            except InputError as error:
                Path(f"{ours}.txt").write_text(f"{type(error).__name__}: {error}")
                if trouble or isinstance(error, PeerEnded):
                    os._exit(2)


STEP = loop.Optimization.step


def _counted(trouble: str) -> list[int]:
    """How many steps are begun from now on."""
    steps = [0]

    def step(self: Any, batch: Any) -> Any:
        steps[0] += 1
        if steps[0] == self.steps + 2 and trouble == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif steps[0] == self.steps + 2 and trouble == "memory":
            raise MemoryError
        return STEP(self, batch)

    loop.Optimization.step = step  # type: ignore[method-assign]
    return steps


def together(children: Any, configs: dict[str, RunConfig], folder: Path, count: int = 2, trouble: str = "") -> list[int]:
    """Exit codes of so many processes that train runs of these names."""
    given = (count, free_port(), {name: config.to_dict() for name, config in configs.items()}, folder, trouble)
    born = [children.Process(target=one_rank, args=(rank, *given)) for rank in range(count)]
    for child in born:
        child.start()
    for child in born:
        child.join(240)
    late = [child for child in born if child.is_alive()]
    for child in late:
        child.kill()
    assert not late, "a process waits for one that has ended"
    return [child.exitcode for child in born]


def flat(state: Any, path: str = "") -> dict[str, torch.Tensor]:
    if isinstance(state, torch.Tensor):
        return {path: state}
    found: dict[str, torch.Tensor] = {}
    for key, part in state.items() if isinstance(state, dict) else ():
        found |= flat(part, f"{path}/{key}")
    return found


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one-row": ({**ELASTIC, "train.batch": 1}, "a step of 1 rows cannot be shared by 2 processes; take a larger train.batch"),
    "no-device": ({**ELASTIC, "train.device": "cuda:99"}, "cuda:99"),
}
NOISY = {**SYSTEMS["sasrec-all"], "model.dropout": 0.2, "train.epochs": 4}
# With dropout: noise follows from the epoch and the rank, so two that go on are two that were never disturbed.
DISTURBED = {**SYSTEMS["elastic-window"], "model.dropout": 0.2}
STOPPED = "stopped"


@pytest.fixture(scope="module")
def two(children: Any, world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all that two processes train here, one after another; `going-on` is what one had begun."""
    folder, going_on = tmp_path_factory.mktemp("two"), asked(**SYSTEMS["sasrec-all"])

    def breaks(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(going_on, world, folder / "going-on", breaks)
    systems = {name: asked(**changes) for name, changes in SYSTEMS.items()}
    systems |= {name: asked(**changes) for name, (changes, _) in REFUSED.items()}
    systems |= {"going-on": going_on, "noisy": asked(**NOISY), "undisturbed": asked(**DISTURBED)}
    systems[STOPPED] = asked(**{**SYSTEMS["sasrec-all"], "train.epochs": 500})
    assert together(children, systems, folder) == [0, 0]
    return folder


@pytest.mark.parametrize("name", SYSTEMS)
def test_two_processes_learn_what_one_does(name: str, two: Path, world: Dataset, tmp_path: Path) -> None:
    alone = flat(state_of(asked(**SYSTEMS[name]), world, tmp_path / "one"))
    first, second = (flat(torch.load(two / f"{name}-{rank}.pt", weights_only=True)) for rank in range(2))
    assert first.keys() == second.keys() == alone.keys()
    assert all(torch.equal(first[key], second[key]) for key in first), "the processes hold the same, bit for bit"
    for key in alone:
        if key.startswith(("/model/", "/average/")):  # statistics of queries are inverse roots, which magnify what sums leave
            close = {"atol": 1e-4, "rtol": 1e-4} if ".norm." in key else {"atol": 5e-6, "rtol": 0.0}
            torch.testing.assert_close(first[key], alone[key], **close, msg=lambda text, key=key: f"{key}: {text}")
    one, both = Run(tmp_path / "one"), Run(two / name)
    assert (one.last_event("end") or {})["reason"] == (both.last_event("end") or {})["reason"]
    assert (one.last_event("end") or {})["best_epoch"] == (both.last_event("end") or {})["best_epoch"]
    for a, b in zip(one.events("epoch"), both.events("epoch"), strict=True):
        assert (a["targets"], a["events"], a["step"]) == (b["targets"], b["events"], b["step"])
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["auxiliary"] == pytest.approx(b["auxiliary"], abs=1e-5) and a["valid"] == pytest.approx(b["valid"], abs=1e-5)
    assert (both.last_event("start") or {})["processes"] == 2 and "processes" not in (one.last_event("start") or {})
    assert {file.name for file in one.path.iterdir()} == {file.name for file in both.path.iterdir()}


def losses(run: Run) -> list[float]:
    return [row["loss"] for row in run.events("epoch")]


def test_dropout_is_each_process_s_own_and_learns_alike(two: Path, world: Dataset, tmp_path: Path) -> None:
    alone, both = losses(train(asked(**NOISY), world, tmp_path / "one")), losses(Run(two / "noisy"))
    assert alone != both and alone == pytest.approx(both, rel=0.02)
    assert (two / "noisy-0.seed").read_text() != (two / "noisy-1.seed").read_text()


def test_two_go_on_where_one_was(two: Path, world: Dataset, tmp_path: Path) -> None:
    whole = train(asked(**SYSTEMS["sasrec-all"]), world, tmp_path / "whole")
    assert losses(Run(two / "going-on")) == pytest.approx(losses(whole), abs=1e-5)


def test_who_is_asked_to_stop_stops_all(two: Path) -> None:
    run = Run(two / STOPPED)
    assert (run.last_event("end") or {})["reason"] == "asked to stop" and len(run.events("epoch")) == 1 and run.finished


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_said_once(name: str, two: Path) -> None:
    first, second = ((two / f"{name}-{rank}.txt").read_text() for rank in range(2))
    naming = REFUSED[name][1]
    assert first.startswith("InputError: ") and second.startswith("Elsewhere: ") and naming in first and naming in second
    assert not Run(two / name).events("epoch")


@pytest.mark.slow
def test_whoever_is_missed_ends_the_others_and_the_run_goes_on(children: Any, two: Path, tmp_path: Path) -> None:
    whole, config = Run(two / "undisturbed"), asked(**DISTURBED)
    for trouble, code in (("killed", -signal.SIGKILL), ("memory", 2)):
        assert together(children, {trouble: config}, tmp_path, trouble=trouble) == [2, code]
        missed = (tmp_path / f"{trouble}-0.txt").read_text()
        assert missed.startswith("PeerEnded: another process of this training has ended") and "\n" not in missed
        assert len(Run(tmp_path / trouble).events("epoch")) == 1 and (tmp_path / trouble / RESUME).exists()
    assert (tmp_path / "memory-1.txt").read_text().startswith("InputError: memory ran out: reduce one of train.batch (32)")
    assert together(children, {"killed": config, "memory": config}, tmp_path) == [0, 0]
    for run in (Run(tmp_path / "killed"), Run(tmp_path / "memory")):
        assert numbers(run) == numbers(whole) and (run.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()


# --- as people start it ----------------------------------------------------------------------------------------------


WORDS = ("train", "--recipe=toy", "--set=data.planted.users=40", "--set=train.epochs=2", "--out=run")


@pytest.mark.slow
def test_torchrun_trains_one_run_and_says_everything_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1]), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "elastic_core", *WORDS]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stdout == "run\n", done.stderr
    assert sum(line.startswith("epoch ") for line in done.stderr.splitlines()) == 2
    assert Run(tmp_path / "run").finished and (Run(tmp_path / "run").last_event("start") or {})["processes"] == 2


def test_what_is_refused_is_said_once(children: Any, tmp_path: Path) -> None:
    """By processes that are told what torchrun tells them."""
    told = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    both = [
        Forked(children, command, *WORDS, "--set=model.k=65", folder=tmp_path, RANK=rank, LOCAL_RANK=rank, **told)
        for rank in "01"
    ]
    first, second = (one.ended() for one in both)
    assert first[0] and second == (first[0], "", "") and first[1] == ""
    errors = [line for line in first[2].splitlines() if line.startswith("error: ")]
    assert errors == ["error: model.k must lie in 1 … n_subkeys² = 64, not 65"]
