"""The six kinds of jobs: what each request holds, what the work does, and where its result lies."""

import functools
import io
import json
import os
import re
import traceback
import unicodedata
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from elastic_core import files
from elastic_core.data import Dataset, load
from elastic_core.data.repeats import fitting_protocol
from elastic_core.data.source_catalog import card_label
from elastic_core.errors import InputError
from elastic_core.jobs.queue import Job, JobContext, Queue
from elastic_core.memory.routing import route_users
from elastic_core.models import Recommender
from elastic_core.results import baselines
from elastic_core.run_config import DataConfig, RunConfig
from elastic_core.runs import Run
from elastic_core.runs.training import train
from elastic_core.services import public
from elastic_core.services.data.upload_store import same_source
from elastic_core.services.durations import format_duration
from elastic_core.services.evidence import meaning
from elastic_core.services.evidence.fingerprints import weights_fingerprint
from elastic_core.services.experts import ablation
from elastic_core.services.map.compute import compute_layouts
from elastic_core.services.map.layouts import LAID_OUT, Settings
from elastic_core.services.speed.curves import new_events, read_passes
from elastic_core.services.speed.measure import ROWS_FILE, measure_plan
from elastic_core.services.speed.plan import Plan
from elastic_core.services.study.answers import read_answer
from elastic_core.study.request import StudyRequest
from elastic_core.study.train import Study

PREFIX = "local-"
NAME = re.compile(PREFIX + r"[A-Za-z0-9_.-]{1,90}")  # of a run that a job trains: a name and never a path
STUDIES_FOLDER = "studies"
EFFECTS, EFFECTS_BYTES = "effects.csv", 2**27
EFFECT_COLUMNS = ("expert", "n", "d_rank_median", "d_ndcg", "low", "high")


class TrainingRequest(NamedTuple):
    """The name of the run and its configuration."""

    name: str
    config: RunConfig


@dataclass(frozen=True)
class Training(Job[TrainingRequest]):
    """One training."""

    @cached_property
    def run(self) -> Run:
        return Run(self.path.parents[1] / self.request.name)

    @property
    def config(self) -> RunConfig:
        return self.request.config

    @property
    def event(self) -> dict[str, Any]:
        """The last event that was said, if it is one."""
        plain = self.progress
        if plain.get("event") != "step":
            return {"event": plain["event"]} if isinstance(plain.get("event"), str) else {}
        counted = all(files.is_count(plain.get(name)) for name in ("epoch", "done", "of"))
        return plain if counted and files.is_number(plain.get("loss")) else {}


class Trainings(Queue[Training]):
    """The trainings below a checkpoints folder."""

    kind, noun, act, job_class = "train", "training", "training", Training
    stops_at_once, max_ended = False, None

    @classmethod
    def parse_request(cls, plain: dict[str, Any]) -> TrainingRequest:
        name = plain.get("run")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError("its request names no run that this app could have made")
        if not isinstance(plain.get("config"), dict):
            raise InputError("its request holds no configuration")
        return TrainingRequest(name, RunConfig.from_dict(plain["config"]))

    def do_work(self, job: Training, context: JobContext) -> str:
        """Ends after the current step where somebody asks it to; the best weights are kept and tested."""

        def write_event(event: dict[str, Any]) -> None:
            if event["event"] != "step":
                context.print_line(json.dumps(event))
            context.write_progress(event)

        write_event({"event": "data", "source": job.config.data.source})
        dataset = load(job.config.data, progress=context.print_line)
        if not job.run.finished:
            train(job.config, dataset, job.run.path, on_event=write_event, stop=context.is_stopping)
        if baselines.read_comparison(job.run) is None:  # what only counts, on the same people
            try:
                protocol = fitting_protocol(dataset)
                report_progress = lambda name: context.write_progress({"event": "beside", "system": name})  # noqa: E731
                baselines.write_comparison(job.run, baselines.compare_with_baselines(job.run, dataset, protocol, report_progress))
            except Exception:  # the training is done and tested: nothing here may make it a failed one, and the card says it
                traceback.print_exc()
        return str((job.run.last_event("end") or {}).get("reason", ""))

    def has_result(self, request: TrainingRequest) -> bool:
        run = Run(self.root / request.name)
        if os.path.lexists(run.path):
            files.check_folder(run.path)
        return run.finished

    def can_resume(self, job: Training) -> bool:
        """A finished one that has no baselines beside it (results/baselines.py) has only that left to do; any other goes on from
        its last whole epoch."""
        return super().can_resume(job) or (job.state in ("finished", "stopped") and baselines.read_comparison(job.run) is None)

    def remove_unfinished(self, job: Training) -> None:
        if job.run.path.is_dir() and not job.run.finished:
            files.remove_folder(job.run.path, self.folder)

    def submit(self, config: RunConfig, name: str = "") -> Training:
        """Queues a training. Raises InputError for a name that is taken or unusable, and as `add` does."""
        return self.add_job(lambda: {"run": self._choose_name(config, name), "config": config.to_dict()})

    def delete_run(self, name: str) -> None:
        """Deletes a run that was trained here, and what the list says of it, for good. Raises InputError for one that came along,
        and while somebody trains it or a training of it waits to go on."""
        public.refuse_in_public("deletion")
        run = Run(self.root / name)
        if not NAME.fullmatch(name) or not run.path.is_dir():
            raise InputError(f"only runs that were trained here can be deleted, whose names begin with {PREFIX}")
        run_jobs = [job for job in self.list_jobs() if job.run.name == name]
        if any(job.active or job.state == "interrupted" for job in run_jobs):
            raise InputError(f"the training {name} is not over; stop or discard it first")
        with run.lock():
            files.remove_folder(run.path, self.folder)
        for job in run_jobs:
            self.discard(job.id)

    def last_tested(self) -> Training | None:
        """The training that was tested last, as long as it is in the list."""
        done = [job for job in self.list_jobs() if job.state in ("finished", "stopped") and job.run.finished]
        return max(done, key=lambda job: (job.ended or 0.0, job.id), default=None)

    def active_on_data(self, data: DataConfig) -> list[Training]:
        """Trainings that are not over and read these data."""
        return [
            job for job in self.list_jobs() if (job.active or job.state == "interrupted") and same_source(job.config.data, data)
        ]

    def _choose_name(self, config: RunConfig, asked_name: str) -> str:
        """A free run name: the wanted one, or one that says model and data."""
        names = {p.name for p in self.root.glob("*")} | {job.run.name for job in self.list_jobs()}
        if asked_name:
            name = asked_name if asked_name.startswith(PREFIX) else PREFIX + asked_name
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", name):
                raise InputError("a run's name may have small letters, digits and the sign -, at most 54 of them")
            if name in names:
                raise InputError(f"there is a run named {name} already; choose another name")
            return name
        file = Path(config.data.source)  # what was uploaded lies in a file of ours, and has its own name on its card
        title = card_label(file).rpartition(" · ")[0] or file.stem
        plain_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()  # São: Sao
        source = re.sub(r"[^a-z0-9]+", "-", plain_title.lower()).strip("-")[:20]
        model = re.sub(r"[^A-Za-z0-9_.]+", "-", config.model.name)[:40]
        name = f"{PREFIX}{model}-{source or 'data'}"
        return next(free for i in range(1, len(names) + 2) if (free := name if i == 1 else f"{name}-{i}") not in names)


class Studies(Queue[Job[StudyRequest]]):
    """The studies below a checkpoints folder. One that is stopped ends at once, and goes on from its last whole step."""

    kind, noun, act = "study", "study", "training"

    @classmethod
    def parse_request(cls, plain: dict[str, Any]) -> StudyRequest:
        return StudyRequest.from_dict(plain)

    def do_work(self, job: Job[StudyRequest], context: JobContext) -> str:
        last_step = [""]

        def report(done: float, of: float, text: str) -> None:
            if text.partition(", epoch")[0] != last_step[0]:
                last_step[0] = text.partition(", epoch")[0]
                context.print_line(text)
            context.write_progress(
                {
                    "done": round(done),
                    "of": max(round(of), 1),
                    "text": f"{text} · at most {format_duration(max(of - done, 0))} left",
                }
            )

        Study(job.request, self.study_folder(job.request), report).run()
        return ""

    def has_result(self, request: StudyRequest) -> bool:
        answer = self.read_answer(request)
        return answer is not None and answer["minutes"] == request.minutes

    def can_resume(self, job: Job[StudyRequest]) -> bool:
        return super().can_resume(job) or job.state == "stopped"

    def study_folder(self, request: StudyRequest) -> Path:
        return self.root / STUDIES_FOLDER / request.name

    def submit(self, data: DataConfig, minutes: float) -> Job[StudyRequest]:
        """Queues a study of these data, or lets the one that is there go on with so many minutes."""
        return self.add_job(lambda: self.make_request(data, minutes).to_dict())

    def make_request(self, data: DataConfig, minutes: float) -> StudyRequest:
        """The request. Raises InputError for minutes that are none."""
        return StudyRequest.from_dict(StudyRequest(data, minutes).to_dict())

    def latest_study(self, data: DataConfig) -> Job[StudyRequest] | None:
        """The last study of these data, whatever its minutes."""
        name = StudyRequest(data, 1.0).name
        return next((job for job in reversed(self.list_jobs()) if job.request.name == name), None)

    def read_answer(self, request: StudyRequest) -> dict[str, Any] | None:
        """What a study has answered; None while it has not, and for a file that is none that a study writes."""
        return read_answer(self.study_folder(request))


@dataclass(frozen=True)
class Measurement(Job[Plan]):
    """One measurement."""

    @property
    def gap_text(self) -> str:
        """What it did not get to, in words; nothing for one that finished."""
        if self.state == "finished":
            return ""
        done = self.read_latencies()["length"].nunique()
        word = "still running" if self.active else "cancelled" if self.state == "stopped" else self.state
        return f"This measurement is {word}: {done} of {len(self.request.lengths)} lengths, so it says nothing about the others."

    def read_latencies(self) -> pd.DataFrame:
        """As from `curves.read_passes`; empty while nothing is there."""
        return read_passes(self.path / ROWS_FILE)

    def read_new_events(self) -> pd.DataFrame:
        """length, system, milliseconds per person and new event, and where they were measured."""
        return new_events(self.path / ROWS_FILE)


class Measurements(Queue[Measurement]):
    """The measurements below a checkpoints folder."""

    kind, noun, act, job_class, max_ended = "speed", "measurement", "measurement", Measurement, 5

    @classmethod
    def parse_request(cls, plain: dict[str, Any]) -> Plan:
        try:
            return Plan(**{**plain, "lengths": tuple(plain["lengths"]), "systems": tuple(plain["systems"])})
        except (KeyError, TypeError):
            raise InputError("its request holds no plan of a measurement") from None

    def do_work(self, job: Measurement, context: JobContext) -> str:
        measure_plan(job.request, context.path, context.report_step)
        return ""

    def thread_count(self, request: Plan) -> int:
        return request.threads

    def submit(self, plan: Plan) -> Measurement:
        return self.add_job(lambda: asdict(plan))

    def last_with_rows(self) -> Measurement | None:
        """The one that answers: the latest if it runs or finished. After one that failed or was cut, the last that finished; only
        where there is none, what the latest found until then."""
        last = self.latest_job()
        return last if last is None or last.active else self.latest_job("finished") or last


class MapRequest(NamedTuple):
    run: str
    settings: Settings
    experts: np.ndarray

    @property
    def title(self) -> str:
        """Which map, for a sentence."""
        return (
            f"{files.printable_text(self.run)} ({self.settings.neighbours} neighbours, least distance {self.settings.distance:g})"
        )


class Maps(Queue[Job[MapRequest]]):
    """Layouts by UMAP; they go into the store of their run, one by one."""

    kind, noun, act, max_ended = "map", "map", "measurement", 5

    @classmethod
    def parse_request(cls, plain: dict[str, Any]) -> MapRequest:
        name, experts = read_run_name(plain), plain.get("experts")
        if (
            not files.is_count(plain.get("neighbours"))
            or not files.is_number(plain.get("distance"))
            or not isinstance(experts, list)
        ):
            raise InputError("what was asked for is no map")
        if not 0 < len(experts) <= LAID_OUT or not all(files.is_count(expert) for expert in experts):
            raise InputError(f"between 1 and {LAID_OUT:,} experts can be laid out at once, by their numbers")
        settings = Settings(plain["neighbours"], float(plain["distance"]))
        return MapRequest(name, settings, np.array(experts, dtype=np.int64))

    def do_work(self, job: Job[MapRequest], context: JobContext) -> str:
        request = job.request
        compute_layouts(self.find_run(request.run), [request.settings], request.experts, context.report_step)
        return ""

    def submit(self, run: Run, settings: Settings, experts: np.ndarray) -> Job[MapRequest]:
        plain = {"run": run.name, "neighbours": settings.neighbours, "distance": settings.distance}
        return self.add_job(lambda: {**plain, "experts": np.asarray(experts).tolist()})


class RunRequest(NamedTuple):
    run: str
    weights: str
    data: str = ""  # the dataset's hash, where what is found is of these data alone


class RunQueue(Queue[Job[RunRequest]]):
    """Passes over everybody: jobs about one run, with the weights it had when somebody asked."""

    act = "measurement"

    @classmethod
    def parse_request(cls, plain: dict[str, Any]) -> RunRequest:
        weights, data = plain.get("weights"), plain.get("data", "")
        if not isinstance(weights, str) or not isinstance(data, str):
            raise InputError("its request does not say of which weights")
        return RunRequest(read_run_name(plain), weights, data)

    def open_run(self, job: Job[RunRequest], context: JobContext) -> tuple[Run, Recommender, Dataset]:
        """The run, its model in eval mode and its data. Raises InputError where weights or data are others by now."""
        name, weights, data = job.request
        run = self.find_run(name)
        if weights_fingerprint(run) != weights:
            raise InputError(f"{name} was trained again since this was asked for")
        dataset = load(run.config.data, progress=context.print_line)
        if data and dataset.hash != data:
            raise InputError(f"the data of {name} are others by now")
        return run, run.model(dataset), dataset

    def submit(self, run: Run, data: str = "") -> Job[RunRequest]:
        return self.add_job(lambda: self.make_request(run, data))

    def make_request(self, run: Run, data: str = "") -> dict[str, str]:
        """The request for this pass; `data`: the dataset's hash."""
        return {"run": run.name, "weights": weights_fingerprint(run)} | ({"data": data} if data else {})


class Meanings(RunQueue):
    """What the experts of a run stand for; the row goes where services/evidence/meaning.py keeps them."""

    kind, noun = "evidence", "measurement"

    def do_work(self, job: Job[RunRequest], context: JobContext) -> str:
        report_progress = lambda share: context.report_step(round(100 * share), 100, "Asking the memory")  # noqa: E731
        meaning.keep_meaning(self.root, meaning.measure_meaning(*self.open_run(job, context), report_progress))
        return ""


class Ablations(RunQueue):
    """Every expert taken from its people, one after the other; the table stays in the folder of the job."""

    kind, noun = "experts", "pass"

    def do_work(self, job: Job[RunRequest], context: JobContext) -> str:
        run, model, dataset = self.open_run(job, context)
        if not model.retrieves:
            raise InputError(f"{run.name} has no interest memory, so it has no experts")
        report_progress = lambda share: context.report_step(round(100 * share), 100, "Removing every expert from its people")  # noqa: E731
        report_progress(0.0)
        effects = ablation.remove_each(
            ablation.EvaluationContext(model, dataset, route_users(model, dataset, "test")), report_progress
        )
        files.write_text(context.path / EFFECTS, effects.to_csv(index=False))
        return ""

    def read_effects(self, run: Run, data: str) -> pd.DataFrame | None:
        """Return what a finished pass found, as `ablation.remove_each` returns it; None where there is none."""
        job = self.latest_job("finished", **self.make_request(run, data))
        return None if job is None else _read_effects(job.path / EFFECTS, files.file_stamp(job.path / EFFECTS))


@functools.lru_cache(maxsize=16)
def _read_effects(file: Path, stamp: tuple[int, ...]) -> pd.DataFrame | None:
    try:
        table = pd.read_csv(io.BytesIO(files.read_bytes(file, EFFECTS_BYTES, file.parent)))
        return table[list(EFFECT_COLUMNS)].astype("float64").astype({"expert": "int64", "n": "int64"})
    except (ValueError, KeyError, OverflowError):  # what is not found, no file, no table, no number
        return None


def read_run_name(plain: dict[str, Any]) -> str:
    """The run that a request names; whether there is one is seen when the job begins. Raises InputError."""
    name = plain.get("run")
    if not isinstance(name, str) or len(name) > files.LONGEST_NAME or not re.fullmatch(r"[^/\\\0]+", name):
        raise InputError("its request names no run")
    return name


KINDS: dict[str, type[Queue[Any]]] = {each.kind: each for each in (Trainings, Measurements, Maps, Meanings, Ablations, Studies)}
