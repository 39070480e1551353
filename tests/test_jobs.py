"""Background trainings: what is theirs beyond test_background.py."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from test_background import fork, holder

from elastic_core import models, objectives
from elastic_core.core.config import TrainConfig
from elastic_core.core.elastic import ElasticConfig
from elastic_core.core.objective import WindowConfig
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Training, Trainings
from elastic_core.jobs.queue import start_next, worker_alive
from elastic_core.run_config import DataConfig, PlantedConfig, RunConfig
from elastic_core.runs import EVENTS
from elastic_core.services.train import estimate, presets, run_table

TIMEOUT = 120.0
PLANTED = DataConfig(source="planted", planted=PlantedConfig(users=60, items=50, interests=4, mean_length=14, max_length=24))


def tiny(epochs: int = 2, **data: Any) -> RunConfig:
    return RunConfig(
        data=DataConfig(**data) if data else PLANTED,
        model=ElasticConfig(length=8, width=8, layers=1, n_subkeys=4, k=2),
        objective=WindowConfig(span=4),
        train=TrainConfig(batch=16, epochs=epochs, patience=epochs),
    )


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trainings]:
    """A list whose workers are forks of this process."""
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", fork)
    jobs = Trainings(tmp_path / "checkpoints")
    yield jobs
    for job in jobs.list_jobs():
        if job.state in ("queued", "running"):
            jobs.stop(job.id)
    wait(lambda: not worker_alive(jobs.folder))
    for child in map(int, (jobs.root / "children").read_text().split()):
        with suppress(ChildProcessError):  # a child of a child
            os.waitpid(child, 0)


def wait(ready: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not ready():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.05)


def state(jobs: Trainings, job: Training) -> str:
    return jobs.get_job(job.id).state


def pid(job: Training) -> int:
    return holder(job)


def started(jobs: Trainings, job: Training, epochs: int = 1) -> None:
    wait(lambda: len(jobs.get_job(job.id).run.events("epoch")) >= epochs)


def test_a_killed_training_is_interrupted_and_can_be_continued_or_discarded(jobs: Trainings) -> None:
    job = jobs.submit(tiny(10_000))
    started(jobs, job, 2)
    os.kill(pid(job), signal.SIGKILL)
    wait(lambda: state(jobs, job) == "interrupted")
    start_next(jobs.root)
    time.sleep(0.3)
    assert not worker_alive(jobs.folder), "an interrupted training does not start again by itself"
    done = len(job.run.events("epoch"))
    jobs.resume(job.id)
    started(jobs, job, done + 2)
    assert len(job.run.events("start")) == 1, "it went on where it was"
    os.kill(pid(job), signal.SIGKILL)
    wait(lambda: state(jobs, job) == "interrupted")
    jobs.discard(job.id)
    assert jobs.list_jobs() == [] and not job.run.path.exists()


def test_what_cannot_be_trained_says_so_and_makes_way(jobs: Trainings, tmp_path: Path) -> None:
    bad, good = jobs.submit(tiny(source=str(tmp_path / "missing.csv"))), jobs.submit(tiny(), "good")
    wait(lambda: state(jobs, good) == "finished")
    assert state(jobs, bad) == "failed"
    assert "there is no file" in jobs.get_job(bad.id).reason and not bad.run.path.exists()
    assert "there is no file" in jobs.get_job(bad.id).log


# --- without processes ------------------------------------------------------------------------------------------------


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trainings:
    """A list that starts nothing."""
    monkeypatch.setattr("elastic_core.jobs.queue.start_worker", lambda *given: None)
    return Trainings(tmp_path)


def test_names_are_free_and_plain(idle: Trainings) -> None:
    names = [idle.submit(tiny()).run.name for _ in range(3)]
    assert names == ["local-elastic-planted", "local-elastic-planted-2", "local-elastic-planted-3"]
    assert idle.submit(tiny(source="Loja São Paulo.csv")).run.name == "local-elastic-loja-sao-paulo"
    for bad in ("../etc", "A b", "local-" + "x" * 80, "ä"):
        with pytest.raises(InputError, match="small letters"):
            idle.submit(tiny(), bad)
    with pytest.raises(InputError, match="already"):
        idle.submit(tiny(), "elastic-planted")


# --- presets, estimates, tables ---------------------------------------------------------------------------------------


def test_every_preset_can_be_built_learned_from_and_changed() -> None:
    data = load(PLANTED)
    for chosen, budget in product(presets.list_variants(), presets.BUDGETS):
        config = presets.make_config(data, chosen, budget)
        assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
        model = models.outline(config.model, 50)
        assert model is None or config.objective.name in objectives.honest_objectives(model)
        assert presets.config_differences(config, presets.changed_config(config, {"train.seed": 3})) == ["train.seed: 0 → 3"]
    found = estimate.estimate_time(presets.make_config(data, presets.list_variants()[0], presets.BUDGETS[0]), data)
    assert found.is_timed and found.seconds >= 0 and found.memory_mb > 100


@pytest.mark.parametrize(("own", "protocol"), [(3, "full-seen"), (9, "full")])
def test_where_people_return_the_best_epoch_is_chosen_as_the_test_is_judged(own: int, protocol: str, tmp_path: Path) -> None:
    """Everybody goes round so many items of their own, nine events long."""
    rows = [f"u{user},i{(7 * user + event % own) % 40},{1_600_000_000 + event}" for user in range(60) for event in range(9)]
    (tmp_path / "clicks.csv").write_text("\n".join(["user,item,time", *rows]))
    config = presets.make_config(
        load(DataConfig(source=str(tmp_path / "clicks.csv"))), presets.find_variant("ELASTIC"), presets.BUDGETS[0]
    )
    assert config.train.valid_protocol == protocol and config.model.repeat_bias == (protocol == "full-seen")


def test_twins_share_what_they_can() -> None:
    config = presets.make_config(load(PLANTED), presets.find_variant("ELASTIC"), presets.BUDGETS[1], seed=5)
    assert presets.config_differences(config, presets.twin_config(config, presets.find_variant("PKM-ACT"))) == [
        "model.memory: shared → per-layer"
    ]
    other = presets.twin_config(config, presets.find_variant("SASRec"))
    assert (other.model.length, other.model.width, other.train.seed) == (config.model.length, config.model.width, 5)
    assert presets.twin_config(config, presets.find_variant("ELASTIC, two-way")).objective.name == "last"


def test_settings_that_cannot_work_are_one_sentence() -> None:
    config = presets.make_config(load(PLANTED), presets.find_variant("ELASTIC, two-way"), presets.BUDGETS[0])
    for values in ({"model.k": 100_000}, {"objective.name": "window"}, {"model.width": 7}, {"model.nonsense": 1}):
        with pytest.raises(InputError):
            presets.changed_config(config, values)
    causal = presets.make_config(load(PLANTED), presets.find_variant("ELASTIC"), presets.BUDGETS[0])
    name = presets.form_settings(causal, "objective")[0]
    assert (name.key, name.value, name.choices) == ("objective.name", "window", ("window", "last"))
    made = presets.changed_config(causal, {"objective.name": "last", "objective.span": 9, "objective.loss": "sampled"})
    assert (made.objective.name, made.objective.loss) == ("last", "sampled")
    kinds = {setting.key: setting.kind for setting in presets.form_settings(config, "model")}
    assert (kinds["model.n_subkeys"], kinds["model.gate"], kinds["model.dropout"]) == ("int", "choice", "float")


def test_tables_of_runs(idle: Trainings, tmp_path: Path) -> None:
    from elastic_core.runs.training import train

    run = train(tiny(), load(PLANTED), tmp_path / "local-a")
    half = train(tiny(), load(PLANTED), tmp_path / "local-b")
    (half.path / EVENTS).write_text("\n".join((half.path / EVENTS).read_text().splitlines()[:2]) + '\n{"event": "ep')
    table = run_table.runs_table([run, half]).set_index("run")
    assert table.loc["local-a", "people"] == 60 and table.loc["local-a", "ended"] == "all epochs done"
    assert table.loc["local-b", "ended"] == "not finished" and table.loc["local-b", "epochs"] == 1
    assert list(run_table.training_curves([run, half])["epoch"]) == [1, 2, 1]
    assert run_table.system_name(run.config) == "ELASTIC"
