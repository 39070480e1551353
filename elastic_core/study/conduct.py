"""Conducts a study in a folder. Every step leaves a file, so that a study killed at any moment goes on with the same command.

study.json            what was asked, and the plan
clock.json            seconds it has taken so far, over all its processes
last/<system>-seed0/  runs (runs/__init__.py); leave-one-out
time/<system>-seed0/  runs that learned up to a date; the file beside a run has the same name
last/<run>.npz        what was asked of a run besides its ranks (asking.py)
costs.json            what an answer takes, all systems in turns
answer.json           the answer (answers.py)
study.html            the same as one page
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from elastic_core import disk, models
from elastic_core.core.config import ModelConfig, RunConfig, TrainConfig
from elastic_core.core.evaluate import drawn_people, evaluate
from elastic_core.data import Dataset, load
from elastic_core.data.by_time import by_time
from elastic_core.errors import InputError
from elastic_core.recipes import JUDGED, STUDIED, objective_settings
from elastic_core.runs import Run
from elastic_core.runs.training import train
from elastic_core.services.train import beside
from elastic_core.study import asking, plan
from elastic_core.study.asides import LATE
from elastic_core.study.asked import MOST_BYTES, Clock, StudyAsked
from elastic_core.study.pieces import name
from elastic_core.study.plan import CUTS, SEEDS, WAYS, Plan, Probe, Way, probe

STUDY, CLOCK, COSTS, ANSWER, PAGE, LOCK = "study.json", "clock.json", "costs.json", "answer.json", "study.html", ".lock"
MOST_MEASURES = 2**28  # bytes that are read
Tell = Callable[[float, float, str], None]  # seconds that are done, of so many, and what is done now
SLACK = 1.05  # of the budget: a system that would end beyond it is left out


@dataclass
class Study:
    """A study and its folder."""

    asked: StudyAsked
    folder: Path
    tell: Tell = lambda done, of, text: None
    probe: Callable[[RunConfig, Dataset], Probe] = probe
    faults: dict[str, str] = field(default_factory=dict)  # why a label was not trained, or a way of holding out not asked

    @cached_property
    def data(self) -> Dataset:
        return load(self.asked.data)

    @cached_property
    def held_out(self) -> dict[Way, Dataset]:
        """The data by way of holding out, as far as that leaves enough people to ask."""
        found: dict[Way, Dataset] = {}
        k = self.asked.data.k_core
        core = f" (data with more people, or fewer dropped: the k-core is {k})" if k else ""
        for way in self.asked.ways:
            try:
                split = by_time(self.data) if way == "time" else self.data
                if (people := len(split.asked("test"))) < plan.FEWEST:
                    raise InputError(f"{people:,} people can be asked, and a study needs {plan.FEWEST} at least{core}")
                found[way] = split
            except InputError as error:
                self.faults[way] = str(error)
        return found

    @cached_property
    def protocol(self) -> str:
        """Of all numbers: where people choose again what they have met, that stays among the candidates."""
        return beside.fitting(self.data)

    @cached_property
    def plan(self) -> Plan:
        kept = self._kept()
        return Plan(**kept["plan"])

    @property
    def baselines(self) -> list[str]:
        return [name for name in models.names() if not models.model_class(name).objective]

    def run(self, way: Way, label: str, seed: int = 0) -> Run:
        word = re.sub(r"[^a-z0-9]+", "-", label).strip("-")
        return Run(self.folder / way / (f"{word}-seed{seed}" if label in STUDIED else word))

    def runs(self, way: Way, label: str) -> list[Run]:
        """Those that are finished, by seed."""
        some = [self.run(way, label, seed) for seed in range(SEEDS if label in STUDIED else 1)]
        return [run for run in some if run.finished and run.has_report]

    def systems(self, way: Way) -> list[str]:
        """The labels of which all trainings are finished: baselines, then what was trained."""
        wanted = [(label, 1) for label in self.baselines] + [(label, SEEDS) for label in self.asked.labels]
        return [label for label, many in wanted if len(self.runs(way, label)) == many]

    def valid(self, way: Way, label: str) -> float:
        """NDCG@10 on validation, by which systems are chosen: the mean over trainings of their best epoch."""
        best = []
        for run in self.runs(way, label):
            rows = [float(row["valid"][asking.METRIC]) for row in run.events("epoch")]
            best.append(max(rows) if rows else self._kept()["valid"][f"{way} {label}"])
        return float(np.mean(best))

    def measured(self, way: Way, run: Run) -> dict[str, np.ndarray]:
        """What was asked of a run besides its ranks; nothing where it was not asked, or has gone on since."""
        try:
            file = disk.regular(self._beside(way, run), MOST_MEASURES, self.folder)
            with np.load(file, allow_pickle=False) as kept:
                found = dict(kept)
        except (InputError, OSError, ValueError, KeyError):
            return {}
        return found if str(found.pop("of", "")) == _stamp(run) else {}

    # --- conducting -----------------------------------------------------------------------------------------------------

    def conduct(self) -> dict[str, Any]:
        """All of it, or what is left of it. Returns the answer.

        Raises InputError with one sentence where the data cannot be read or are too few, where the folder is another study's and
        where another process is at it.
        """
        with disk.said(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / LOCK, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise InputError(f"another process is at this study: {self.folder}") from None
        try:
            self._check()
            if (over := self._over()) is not None:
                return over
            self.clock = Clock(self.folder / CLOCK, self.asked.clock)
            with self.clock.running():
                return self._work()
        finally:
            lock.release()

    def _check(self) -> None:
        kept = self._kept()
        if kept.get("asked") and {**kept["asked"], "minutes": 0} != {**self.asked.plain(), "minutes": 0}:
            raise InputError(f"{self.folder} already holds another study; choose another folder")
        if kept.get("plan") and kept["plan"]["minutes"] != self.asked.minutes:
            kept["before"] = kept.pop("plan")["length"]  # a larger budget goes on with what is there
        self._keep(kept | {"asked": self.asked.plain()})

    def _over(self) -> dict[str, Any] | None:
        """The answer, if it was given to these minutes."""
        with suppress(InputError):
            found = disk.read_object(self.folder / ANSWER, MOST_BYTES, self.folder)
            if found.get("minutes") == self.asked.minutes and (self.folder / PAGE).exists():
                return found
        return None

    def _work(self) -> dict[str, Any]:
        from elastic_core.study import answers, sheet

        self._say("Reading the data")
        if not self.held_out:
            raise InputError(f"{self.data.label}: {next(iter(self.faults.values()))}")
        kept = self._kept()
        if (found := kept.get("data_hash", self.data.hash)) != self.data.hash:
            raise InputError(f"{self.data.label} has changed since this study began ({found}, now {self.data.hash})")
        self._keep(kept | {"data_hash": self.data.hash})
        for way in self.held_out:
            for label in self.baselines:
                self._count(way, label)
        if "plan" not in self._kept():
            self._plan()
        for way, label in self._order():
            self._train(way, label, SLACK)
        for label in self.plan.left_out:  # where trainings stopped by themselves there is time for more of them
            self._train(next(iter(self.held_out)), label, plan.KEPT)
        self._measure()
        self._say("Writing the answer")
        answer = answers.answer(self)
        disk.write_text(self.folder / PAGE, sheet.page(answer))
        disk.write_text(self.folder / ANSWER, json.dumps(answer, indent=1))
        return answer

    def _count(self, way: Way, name: str) -> None:
        """A baseline, fitted and ranked; its validation is asked apart, as it has no epochs."""
        run, key = self.run(way, name), f"{way} {name}"
        kept = self._kept()
        if name in self.faults or (run.finished and key in kept.get("valid", {})):
            return
        self._say(f"Counting: {ModelConfig.known[name].label or name}")
        config = RunConfig(
            data=self.asked.data, model=ModelConfig.known[name](), objective=objective_settings(name), train=TrainConfig()
        )
        data = self.held_out[way]
        try:
            train(config, data, run.path)
            some = drawn_people(data, JUDGED)
            found = evaluate(run.model(data), data, "valid", (self.protocol,), users=some).metrics[self.protocol][asking.METRIC]
            self._keep(kept | {"valid": kept.get("valid", {}) | {key: found}})
        except InputError as error:  # a catalogue too large for a table of pairs
            self.faults[name] = str(error)

    def _plan(self) -> None:
        self._say("Timing a few steps")
        labels, data = self.asked.labels, next(iter(self.held_out.values()))
        longest, clock = plan.usual_length(data), self.asked.clock
        found = self.probe(plan.config(labels[0], 0, 60, longest, clock, self.asked.data, data, self.protocol), data)
        trained = sum(_seconds(self.run(way, label, seed)) for way in WAYS for label in labels for seed in range(SEEDS))
        spent = max(self.clock.seconds - trained, 0.0)
        longest = self._kept().get("before", longest)  # trainings that are there read so many
        made = plan.make(self.asked.minutes, spent, found, list(self.held_out), longest, labels)
        self._keep(self._kept() | {"plan": made.plain()})
        self.__dict__.pop("plan", None)

    def _order(self) -> list[tuple[Way, str]]:
        trained = self.plan.trained
        return [(way, label) for way in WAYS for label in trained.get(way, ())]

    def _left(self, among: Sequence[tuple[Way, str]]) -> float:
        """Seconds that trainings have left to take."""
        return sum(
            max(self.plan.share - _seconds(run), 0.0) + self.plan.besides
            for way, label in among
            for run in (self.run(way, label, seed) for seed in range(SEEDS))
            if not self._done(run)
        )

    def _done(self, run: Run) -> bool:
        """Whether it has had its share, or stopped by itself."""
        try:
            minutes = run.config.train.minutes
        except InputError:
            return False
        reason = str((run.last("end") or {}).get("reason"))
        return run.finished and (minutes * 60 >= self.plan.share - 1 or "budget of" not in reason)

    def _train(self, way: Way, label: str, most: float) -> None:
        """Both trainings of a system, or none where they would end beyond the budget: all that are there had the same."""
        runs = [self.run(way, label, seed) for seed in range(SEEDS)]
        if all(map(self._done, runs)) or label in self.faults:
            return
        late = self.clock.seconds + self._left([(way, label)]) + self.plan.after > most * self.asked.minutes * 60
        if late and (way, label) != self._order()[0]:
            self.faults[f"{way} {label}"] = LATE
            return
        data = self.held_out[way]
        self.clock.keep()
        for seed, run in enumerate(runs):
            if self._done(run):
                continue

            def heard(event: dict[str, Any], seed: int = seed) -> None:
                if event["event"] in ("start", "step", "epoch"):
                    where = "" if way == "last" else ", by time"
                    self._say(f"Training {name(label)}{where}, {seed + 1} of {SEEDS}", event.get("epoch", 0))

            mine, clock = self.plan, self.asked.clock
            config = plan.config(label, seed, mine.share, mine.length, clock, self.asked.data, data, self.protocol)
            try:
                train(config, data, run.path, on_event=heard)
            except InputError as error:
                self.faults[label] = str(error)
                return

    def _measure(self) -> None:
        """What is asked of the trained systems besides their ranks, on the first way of holding out."""
        way, data = next(iter(self.held_out.items()))
        best = self.best(way, trained=True)
        for label in self.systems(way):
            for run in self.runs(way, label):
                kept = self.measured(way, run)
                cuts = [] if label not in STUDIED else cuts_of(run.config.model.length)[: None if label == best else 1]
                if "lists" in kept and len(kept.get("cuts", ())) > len(cuts) - (not cuts):
                    continue
                self._say(f"Asking {name(label)}")
                model = run.model(data)
                kept["lists"] = asking.best_lists(model, data, self.protocol)
                if cuts:
                    short = asking.by_cut(model, data, self.protocol, cuts)
                    whole = run.report().values(self.protocol, asking.METRIC)[asking.some_people(data)]
                    kept["cuts"] = np.concatenate([short, whole[None]])
                self._write(way, run, kept)
        stamps = {label: _stamp(self.runs(way, label)[0]) for label in self.systems(way)}
        with suppress(InputError):
            if disk.read_object(self.folder / COSTS, MOST_BYTES, self.folder).get("of") == stamps:
                return
        self._say("Timing answers")
        opened = {label: self.runs(way, label)[0].model(data) for label in stamps}
        found = asking.costs(opened, data, seconds=min(8.0, self.asked.minutes))
        disk.write_text(self.folder / COSTS, json.dumps({"of": stamps, "costs": found}, indent=1))

    def best(self, way: Way, trained: bool) -> str | None:
        """The best system by validation, of those that learn or of those that only count."""
        some = [label for label in self.systems(way) if (label in STUDIED) == trained]
        return max(some, key=lambda label: self.valid(way, label), default=None)

    # --- files ----------------------------------------------------------------------------------------------------------

    def costs(self) -> dict[str, dict[str, float]]:
        found = disk.read_object(self.folder / COSTS, MOST_BYTES, self.folder)
        return dict(found["costs"])

    def _kept(self) -> dict[str, Any]:
        try:
            return disk.read_object(self.folder / STUDY, MOST_BYTES, self.folder)
        except disk.Absent:
            return {}

    def _keep(self, plain: dict[str, Any]) -> None:
        disk.write_text(self.folder / STUDY, json.dumps(plain, indent=1))

    def _beside(self, way: Way, run: Run) -> Path:
        return self.folder / way / f"{run.name}.npz"

    def _write(self, way: Way, run: Run, found: dict[str, np.ndarray]) -> None:
        def fill(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, of=np.array(_stamp(run)), **found)  # type: ignore[arg-type]

        disk.write_whole(self._beside(way, run), fill)

    def _say(self, text: str, epoch: int = 0) -> None:
        done = self.clock.seconds
        left = self.asked.minutes * 60 - done
        if "plan" in self.__dict__ or "plan" in self._kept():
            left = self._left(self._order()) + self.plan.after
        self.tell(done, done + max(left, 0.0), text + (f", epoch {epoch}" if epoch else ""))


def cuts_of(length: int) -> list[int]:
    """The lengths below what a model reads."""
    return [cut for cut in CUTS if cut < length]


def _seconds(run: Run) -> float:
    """What a training has taken so far, as its log says."""
    rows = run.events("epoch")
    return float(rows[-1]["seconds"]) if rows else 0.0


def _stamp(run: Run) -> str:
    """Of its weights: what was asked of others does not count."""
    end, start = run.last("end") or {}, run.last("start") or {}
    return f"{start.get('time')} {end.get('seconds')} {end.get('best_epoch')}"
