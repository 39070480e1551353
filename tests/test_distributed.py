"""Several processes train what one would: the same curve, the same weights; and none of them goes on without the others."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Forked, command, free_port
from test_trainer import MODEL, PLANTED, WINDOW, numbers

from elastic_core import disk, models, objectives, recipes, runs
from elastic_core.core.config import TrainConfig
from elastic_core.data import Dataset, load
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import RESUME, WEIGHTS, Run
from elastic_core.runs import training as loop
from elastic_core.runs.training import train
from elastic_core.scale.distributed import joined

if not torch.distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

ELASTIC = {"model.name": "elastic", "model.side": 4, "model.k": 2, "model.balance_weight": 0.1}
SYSTEMS: dict[str, dict[str, Any]] = {
    "elastic-window": {**ELASTIC, "objective.span": 4},
    "elastic-votes-patience": {**ELASTIC, "model.query": "votes", "objective.span": 4, "train.epochs": 9, "train.patience": 1},
    "elastic-random-sampled": {
        **ELASTIC, "objective.span": 4, "objective.retrieval": "random", "objective.loss": "sampled", "objective.negatives": 20
    },
    "slots-window": {"model.name": "elastic-slots", "model.side": 4, "model.k": 2, "model.interest_weight": 0.1},
    "sasrec-all": {"model.name": "sasrec", "objective.name": "all"},
}  # fmt: skip
HOSTS = ("sasrec", "bert4rec", *models.names())


def host_of(objective: str) -> str:
    """The first model that may learn from it."""
    return next(name for name in HOSTS if objective in objectives.honest(models.build(recipes.model_settings(name), 9)))


SYSTEMS |= {
    name: {"model.name": host_of(name), "objective.name": name}
    for name in objectives.names()
    if name not in (WINDOW.name, *(changes.get("objective.name") for changes in SYSTEMS.values()))
}


def asked(**changes: Any) -> RunConfig:
    """A small training without dropout, whose noise each process draws for itself. Its decay shows a gradient that is too large
    by any factor, which Adam alone would not, and its clipping is at work in some steps."""
    train = TrainConfig(batch=32, epochs=3, patience=99, ema_decay=0.9, learning_rate=0.01, weight_decay=0.01, max_grad_norm=0.3)
    config = RunConfig(data=DataConfig(source="planted", planted=PLANTED), model=MODEL, objective=WINDOW, train=train)
    names = {key: value for key, value in changes.items() if key.endswith(".name")}
    rest = {key: value for key, value in changes.items() if key not in names}
    return config.replaced(names).replaced({"model.dropout": 0.0} | rest)


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(asked().data)


def state_of(config: RunConfig, dataset: Dataset, out: Path, **given: Any) -> dict[str, Any]:
    """Trains; what the learner of this process holds in the end."""
    held: list[Any] = []
    usual = loop.Training._prepared

    def prepared(self: Any, resume: Any) -> Any:
        held.append(usual(self, resume))
        return held[-1]

    loop.Training._prepared = prepared  # type: ignore[method-assign]
    try:
        train(config, dataset, out, **given)
    finally:
        loop.Training._prepared = usual  # type: ignore[method-assign]
    return held[-1].state() if held else {}


def one_rank(rank: int, count: int, port: int, plain: dict[str, Any], out: str, trouble: str) -> None:
    """Runs in a child process. `trouble`: what happens to the last rank in the middle of its second epoch."""
    torch.set_num_threads(1)
    known = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in known.items()})
    if rank:
        Run.append = Run.lock = runs.write_whole = disk.write_whole = lambda *_: os._exit(3)  # type: ignore[assignment,method-assign]
    config, said = RunConfig.from_dict(plain), Path(f"{out}-{rank}.txt")
    steps = [0]
    if trouble and rank == count - 1:
        _trouble(trouble, steps)
    try:
        with joined() as ranks:
            stop = (lambda: steps[0] > 3) if trouble == "asked" else None
            torch.save(state_of(config, load(config.data), Path(out), stop=stop, ranks=ranks), f"{out}-{rank}.pt")
            Path(f"{out}-{rank}.seed").write_text(str(torch.initial_seed()))
    except InputError as error:
        said.write_text(f"{type(error).__name__}: {error}")
        os._exit(2)


def _trouble(kind: str, steps: list[int]) -> None:
    usual = loop.Learner.step

    def step(self: Any, batch: Any) -> Any:
        steps[0] += 1
        if steps[0] == self.steps + 2 and kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif steps[0] == self.steps + 2 and kind == "memory":
            raise MemoryError
        return usual(self, batch)

    loop.Learner.step = step  # type: ignore[method-assign]


def together(children: Any, config: RunConfig, out: Path, count: int = 2, trouble: str = "") -> list[int]:
    """Exit codes of so many processes that train one run."""
    given = (count, free_port(), config.to_dict(), str(out), trouble)
    born = [children.Process(target=one_rank, args=(rank, *given)) for rank in range(count)]
    for child in born:
        child.start()
    for child in born:
        child.join(120)
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


@pytest.mark.parametrize("name", SYSTEMS)
def test_two_processes_learn_what_one_does(name: str, children: Any, world: Dataset, tmp_path: Path) -> None:
    config = asked(**SYSTEMS[name])
    alone = flat(state_of(config, world, tmp_path / "one"))
    assert together(children, config, tmp_path / "two") == [0, 0]
    first, second = (flat(torch.load(tmp_path / f"two-{rank}.pt", weights_only=True)) for rank in range(2))
    assert first.keys() == second.keys() == alone.keys()
    assert all(torch.equal(first[key], second[key]) for key in first), "the processes hold the same, bit for bit"
    for key in alone:
        if key.startswith(("/model/", "/average/")):  # statistics of queries are inverse roots, which magnify what sums leave
            close = {"atol": 1e-4, "rtol": 1e-4} if ".norm." in key else {"atol": 5e-6, "rtol": 0.0}
            torch.testing.assert_close(first[key], alone[key], **close, msg=lambda text, key=key: f"{key}: {text}")
    one, two = Run(tmp_path / "one"), Run(tmp_path / "two")
    assert (one.last("end") or {})["reason"] == (two.last("end") or {})["reason"]
    assert (one.last("end") or {})["best_epoch"] == (two.last("end") or {})["best_epoch"]
    for a, b in zip(one.events("epoch"), two.events("epoch"), strict=True):
        assert (a["targets"], a["events"], a["step"]) == (b["targets"], b["events"], b["step"])
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["auxiliary"] == pytest.approx(b["auxiliary"], abs=1e-5) and a["valid"] == pytest.approx(b["valid"], abs=1e-5)
    assert (two.last("start") or {})["processes"] == 2 and "processes" not in (one.last("start") or {})
    assert {file.name for file in one.path.iterdir()} == {file.name for file in two.path.iterdir()}


def test_dropout_is_each_process_s_own_and_learns_alike(children: Any, world: Dataset, tmp_path: Path) -> None:
    config = asked(**SYSTEMS["sasrec-all"], **{"model.dropout": 0.2, "train.epochs": 4})
    train(config, world, tmp_path / "one")
    assert together(children, config, tmp_path / "two") == [0, 0]
    one, two = ([row["loss"] for row in Run(tmp_path / which).events("epoch")] for which in ("one", "two"))
    assert one != two and one == pytest.approx(two, rel=0.02)
    assert (tmp_path / "two-0.seed").read_text() != (tmp_path / "two-1.seed").read_text()


@pytest.fixture(scope="module")
def disturbed() -> RunConfig:
    """With dropout: noise follows from the epoch and the rank, so two that go on are two that were never disturbed."""
    return asked(**SYSTEMS["elastic-window"], **{"model.dropout": 0.2})


@pytest.fixture(scope="module")
def undisturbed(children: Any, disturbed: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("two") / "whole")
    assert together(children, disturbed, run.path) == [0, 0]
    return run


@pytest.mark.slow
@pytest.mark.parametrize(("trouble", "code"), [("killed", -signal.SIGKILL), ("memory", 2)])
def test_whoever_is_missed_ends_the_others_and_the_run_goes_on(
    trouble: str, code: int, children: Any, disturbed: RunConfig, undisturbed: Run, tmp_path: Path
) -> None:
    assert together(children, disturbed, tmp_path / "run", trouble=trouble) == [2, code]
    missed = (tmp_path / "run-0.txt").read_text()
    assert missed.startswith("PeerEnded: another process of this training has ended") and "\n" not in missed
    if trouble == "memory":
        assert (tmp_path / "run-1.txt").read_text().startswith("InputError: memory ran out: reduce one of train.batch (32)")
    run, whole = Run(tmp_path / "run"), undisturbed
    assert len(run.events("epoch")) == 1 and (run.path / RESUME).exists()
    assert together(children, disturbed, run.path) == [0, 0]
    assert numbers(run) == numbers(whole) and (run.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()


def test_two_go_on_where_one_was(children: Any, world: Dataset, tmp_path: Path) -> None:
    config = asked(**SYSTEMS["sasrec-all"])

    def breaks(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, world, tmp_path / "run", breaks)
    whole = train(config, world, tmp_path / "whole").events("epoch")
    assert together(children, config, tmp_path / "run") == [0, 0]
    went_on = Run(tmp_path / "run").events("epoch")
    assert [row["loss"] for row in went_on] == pytest.approx([row["loss"] for row in whole], abs=1e-5)


def test_who_is_asked_to_stop_stops_all(children: Any, tmp_path: Path) -> None:
    assert together(children, asked(**{**SYSTEMS["sasrec-all"], "train.epochs": 500}), tmp_path / "run", trouble="asked") == [
        0,
        0,
    ]
    run = Run(tmp_path / "run")
    assert (run.last("end") or {})["reason"] == "asked to stop" and len(run.events("epoch")) == 1 and run.finished


@pytest.mark.parametrize(
    ("changes", "naming"),
    [
        ({**ELASTIC, "model.bank": "rows"}, "model.bank = rows is learned by one process"),
        ({**ELASTIC, "train.batch": 1}, "a step of 1 rows cannot be shared by 2 processes; take a larger train.batch"),
        ({**ELASTIC, "train.device": "cuda:99"}, "cuda:99"),
    ],
)
def test_what_cannot_work_is_said_once(changes: dict[str, Any], naming: str, children: Any, tmp_path: Path) -> None:
    assert together(children, asked(**changes), tmp_path / "run") == [2, 2]
    first, second = ((tmp_path / f"run-{rank}.txt").read_text() for rank in range(2))
    assert first.startswith("InputError: ") and second.startswith("Elsewhere: ") and naming in first and naming in second
    assert not Run(tmp_path / "run").events("epoch")


# --- as people start it ----------------------------------------------------------------------------------------------


WORDS = ("train", "--recipe=toy", "--set=data.planted.users=40", "--set=train.epochs=2", "--out=run")


@pytest.mark.slow
def test_torchrun_trains_one_run_and_says_everything_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1]), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "elastic_core", *WORDS]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and done.stdout == "run\n", done.stderr
    assert sum(line.startswith("epoch ") for line in done.stderr.splitlines()) == 2
    assert Run(tmp_path / "run").finished and (Run(tmp_path / "run").last("start") or {})["processes"] == 2


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
    assert errors == ["error: model.k must lie in 1 … side² = 64, not 65"]
