"""Memory runs out at any moment: one sentence with the numbers to reduce, and the last whole epoch goes on, bit for bit."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from test_trainer import numbers, tiny
from torch.utils._python_dispatch import TorchDispatchMode

from elastic_core import recipes
from elastic_core.commands import main
from elastic_core.data import Dataset, load
from elastic_core.errors import NO_MEMORY, InputError, out_of_memory
from elastic_core.jobs import worker
from elastic_core.jobs.job_kinds import Trainings
from elastic_core.jobs.queue import JobContext, begin_job
from elastic_core.runs import EVENTS, RESUME, WEIGHTS, Run
from elastic_core.runs.training import train

CPU = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."
REFUSALS = [
    torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB"),
    RuntimeError(CPU),
    MemoryError(),
]
SIZES = "train.batch (32), model.length (8), model.width (8), model.layers (1), model.k (2), model.n_subkeys (4)"


class Allocator(TorchDispatchMode):
    """Counts what torch works on, and refuses at one moment."""

    def __init__(self, moment: int = 0, refusal: BaseException | None = None) -> None:
        super().__init__()
        self.moment, self.refusal, self.count = moment, refusal, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        if self.refusal is not None and self.count == self.moment:
            raise self.refusal
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def world() -> Dataset:
    return load(tiny().data)


@pytest.fixture(scope="module")
def whole(world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, int]:
    """An undisturbed run, and how many operations it takes where the process has trained before: its first training makes some
    that no later one does."""
    folder = tmp_path_factory.mktemp("whole")
    train(tiny(ema_decay=0.9), world, folder / "first")
    with Allocator() as counted:
        run = train(tiny(ema_decay=0.9), world, folder / "run")
    return run, counted.count


@pytest.mark.parametrize(("share", "refusal"), [*zip((0.01, 0.35, 0.5, 0.8, 0.97, 1.0), 2 * REFUSALS, strict=True)], ids=str)
def test_wherever_it_runs_out_the_run_goes_on_bit_for_bit(
    share: float, refusal: BaseException, world: Dataset, whole: tuple[Run, int], tmp_path: Path
) -> None:
    """From the first operations, the model's, to the last, the test's; most are in the middle of an epoch."""
    run, operations = whole
    out = Run(tmp_path / "run")
    with pytest.raises(InputError, match=re.escape(SIZES)) as said, Allocator(max(1, int(share * operations)), refusal):
        train(tiny(ema_decay=0.9), world, out.path)
    kept = (out.path / RESUME).exists()
    assert kept == (share > 0.3)
    assert ("the same command goes on" if kept else "no epoch was done yet") in str(said.value)
    assert "\n" not in str(said.value) and not list(out.path.glob(".*.[0-9]*")), "no half of a file is left"
    train(tiny(ema_decay=0.9), world, out.path)
    assert numbers(out) == numbers(run)
    assert (out.path / WEIGHTS).read_bytes() == (run.path / WEIGHTS).read_bytes()


@pytest.mark.parametrize(
    ("file", "reader"), [(RESUME, "elastic_core.runs.torch.load"), (WEIGHTS, "elastic_core.runs.weights.load_file")]
)
def test_no_file_is_called_damaged_for_want_of_memory(
    file: str, reader: str, world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a resume file, the sentence would advise to delete it."""

    def refuses(*_: Any, **__: Any) -> None:
        raise RuntimeError(CPU)

    run = train(tiny(epochs=1), world, tmp_path / "run")
    run.save_resume({"epoch": 1})
    monkeypatch.setattr(reader, refuses)
    with pytest.raises(RuntimeError, match="allocate memory"):
        run.load_resume() if file == RESUME else run.model()
    monkeypatch.setattr("elastic_core.runs.torch.save", refuses)
    with pytest.raises(RuntimeError, match="allocate memory"):  # nor a disk full
        run.save_resume({"epoch": 1})


def test_other_errors_are_not_taken_for_it() -> None:
    assert all(map(out_of_memory, [*REFUSALS, RuntimeError("could not create a primitive")]))
    assert not any(map(out_of_memory, (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("out of memory"))))


def test_on_the_command_line_and_in_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny()

    def refuses(*_: Any, **__: Any) -> None:
        raise RuntimeError(CPU)

    monkeypatch.setattr("elastic_core.core.objective.full_softmax", refuses)
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--recipe=toy", "--set=data.planted.users=40", "--out=run"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: memory ran out: reduce one of train.batch (64)") and not Path("run").exists()
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    jobs = Trainings(tmp_path / "checkpoints")
    job = jobs.submit(config)
    assert begin_job(jobs.folder, job.id)
    worker.run_job(jobs, job, JobContext(job))
    job = jobs.get_job(job.id)
    assert job.state == "failed" and job.reason.startswith("memory ran out: reduce one of train.batch (32)")
    monkeypatch.setattr("elastic_core.jobs.job_kinds.load", refuses)  # before there is anything to reduce
    job = jobs.submit(config)
    assert begin_job(jobs.folder, job.id)
    worker.run_job(jobs, job, JobContext(job))
    assert jobs.get_job(job.id).reason == NO_MEMORY


# --- for once, really ------------------------------------------------------------------------------------------------

CHILD = """
import resource, sys
from pathlib import Path
from elastic_core import recipes
from elastic_core.commands import main
words, room = sys.argv[2:], int(sys.argv[1])
main([*words, "--out=warm", "--set=model.width=8", "--set=train.epochs=1"])  # imports what a training needs
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
sys.exit(main([*words, "--out=run"]))
"""
WIDE = [
    "train", "--recipe=toy", "--set=data.planted.users=60", "--set=data.planted.items=50", "--set=data.planted.mean_length=40",
    "--set=model.width=256", "--set=model.length=64", "--set=train.batch=128", "--set=train.epochs=2", "--set=train.patience=9",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts its address space in /proc")
def test_a_process_that_may_have_no_more_address_space(tmp_path: Path) -> None:
    """The allocators refuse by themselves: a sentence and exit code 2, and what was there is there and goes on."""

    def start(room: int) -> subprocess.CompletedProcess[str]:
        root = str(Path(__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        words = [sys.executable, "-c", CHILD, str(room), *WIDE]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)

    words = [word.removeprefix("--set=") for word in WIDE if word.startswith("--set=")]
    config = recipes.toy().override(*words)
    dataset = load(config.data)
    first = start(60 * 2**20)
    error = first.stderr.splitlines()[-1]
    assert first.returncode == 2 and error.startswith("error: memory ran out: reduce one of train.batch (128)"), first.stderr
    assert "Traceback" not in first.stderr and not (tmp_path / "run").exists(), "nothing was learned"

    def breaks(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, dataset, tmp_path / "run", breaks)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in (RESUME, WEIGHTS, EVENTS)}
    again = start(60 * 2**20)
    assert again.returncode == 2 and "the last whole epoch is kept" in again.stderr.splitlines()[-1], again.stderr
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before
    run, whole = train(config, dataset, tmp_path / "run"), train(config, dataset, tmp_path / "whole")
    assert numbers(run) == numbers(whole) and (run.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()
