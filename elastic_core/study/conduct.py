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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from elastic_core import files
from elastic_core.core.config import ModelConfig, TrainConfig
from elastic_core.core.evaluate import draw_users
from elastic_core.data import Dataset, load
from elastic_core.data.by_time import by_time
from elastic_core.data.repeats import count_repeats, fitting_protocol
from elastic_core.errors import InputError
from elastic_core.recipes import JUDGED, REPEATS, STUDIED, objective_settings, usual_length
from elastic_core.results.statistics import detectable_from_interval, paired_difference
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate
from elastic_core.runs.training import train
from elastic_core.study import asking, plan
from elastic_core.study.asked import MOST_BYTES, Clock, StudyAsked
from elastic_core.study.pieces import name
from elastic_core.study.plan import LATE, SEEDS, WAYS, Plan, Probe, Way, probe
from elastic_core.study.side import STUDY, Side, baselines, cuts_of, read_kept, stamp

CLOCK, COSTS, ANSWER, PAGE, LOCK = "clock.json", "costs.json", "answer.json", "study.html", ".lock"
Tell = Callable[[float, float, str], None]  # seconds that are done, of so many, and what is done now
MORE = 0.2  # of a training's share, from which it is worth to go on
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
    def sides(self) -> dict[Way, Side]:
        """The ways of holding out, as far as they leave enough people to ask."""
        found: dict[Way, Side] = {}
        k = self.asked.data.k_core
        core = f" (data with more people, or fewer dropped: the k-core is {k})" if k else ""
        for way in self.asked.ways:
            try:
                split = by_time(self.data) if way == "time" else self.data
                if (people := len(split.users_with_target("test"))) < plan.FEWEST:
                    raise InputError(f"{people:,} people can be asked, and a study needs {plan.FEWEST} at least{core}")
                found[way] = Side(way, split, self.folder, self.asked.labels, self.protocol)
            except InputError as error:
                self.faults[way] = str(error)
        return found

    @property
    def side(self) -> Side:
        """The first, of which more is asked."""
        return next(iter(self.sides.values()))

    @cached_property
    def protocol(self) -> str:
        """Of all numbers: where people mostly choose again what they have seen, that stays among the candidates."""
        return fitting_protocol(self.data)

    @cached_property
    def plan(self) -> Plan:
        return Plan(**read_kept(self.folder)["plan"])

    # --- conducting -----------------------------------------------------------------------------------------------------

    def conduct(self) -> dict[str, Any]:
        """All of it, or what is left of it. Returns the answer.

        Raises InputError with one sentence where the data cannot be read or are too few, where the folder is another study's and
        where another process is at it.
        """
        with files.explain_write_errors(self.folder):
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
        kept = read_kept(self.folder)
        if kept.get("asked") and {**kept["asked"], "minutes": 0} != {**self.asked.plain(), "minutes": 0}:
            raise InputError(f"{self.folder} already holds another study; choose another folder")
        if kept.get("plan") and kept["plan"]["minutes"] != self.asked.minutes:
            kept["before"] = kept.pop("plan")["length"]  # a larger budget goes on with what is there
        self._keep(kept | {"asked": self.asked.plain()})

    def _over(self) -> dict[str, Any] | None:
        """The answer, if it was given to these minutes."""
        with suppress(InputError):
            found = files.read_object(self.folder / ANSWER, MOST_BYTES, self.folder)
            if found.get("minutes") == self.asked.minutes and (self.folder / PAGE).exists():
                return found
        return None

    def _work(self) -> dict[str, Any]:
        from elastic_core.study import answers, sheet

        self._say("Reading the data")
        if not self.sides:
            raise InputError(f"{self.data.label}: {next(iter(self.faults.values()))}")
        kept = read_kept(self.folder)
        if (found := kept.get("data_hash", self.data.hash)) != self.data.hash:
            raise InputError(f"{self.data.label} has changed since this study began ({found}, now {self.data.hash})")
        self._keep(kept | {"data_hash": self.data.hash})
        for side in self.sides.values():
            for label in baselines():
                self._count(side, label)
        if "plan" not in read_kept(self.folder):
            self._plan()
        for side, label in self._order():
            self._train(side, label, SLACK)
        for label in self.plan.left_out:  # where trainings stopped by themselves there is time for more of them
            self._train(self.side, label, plan.KEPT)
        self._use_what_is_left()
        self._measure()
        self._say("Writing the answer")
        answer = answers.answer(self)
        files.write_text(self.folder / PAGE, sheet.page(answer))
        files.write_text(self.folder / ANSWER, json.dumps(answer, indent=1))
        return answer

    def _count(self, side: Side, name: str) -> None:
        """A baseline, fitted and ranked; its validation is asked apart, as it has no epochs."""
        run, key = side.run(name), f"{side.way} {name}"
        kept = read_kept(self.folder)
        if name in self.faults or (run.finished and key in kept.get("valid", {})):
            return
        self._say(f"Counting: {ModelConfig.known[name].label or name}")
        config = RunConfig(
            data=self.asked.data, model=ModelConfig.known[name](), objective=objective_settings(name), train=TrainConfig()
        )
        try:
            train(config, side.data, run.path)
            model, some = run.model(side.data), draw_users(side.data, JUDGED)
            found = evaluate(model, side.data, "valid", (self.protocol,), users=some).metrics[self.protocol][asking.METRIC]
            self._keep(kept | {"valid": kept.get("valid", {}) | {key: found}})
        except InputError as error:  # a catalogue too large for a table of pairs
            self.faults[name] = str(error)

    def _plan(self) -> None:
        self._say("Timing a few steps")
        labels, data = self.asked.labels, self.side.data
        longest = usual_length(data)
        kept = read_kept(self.folder)
        # trainings that are there stay as they are
        often = "before" not in kept and count_repeats(data, "valid").share >= REPEATS
        self._keep(kept | {"repeat_bias": kept.get("repeat_bias", often)})
        found = self.probe(self._config(self.side, labels[0], 0, 60, longest), data)
        trained = sum(_seconds(run) for side in self.sides.values() for label in labels for run in side.all_runs(label))
        spent = max(self.clock.seconds - trained, 0.0)
        longest = read_kept(self.folder).get("before", longest)  # trainings that are there read so many
        made = plan.make(self.asked.minutes, spent, found, list(self.sides), longest, labels)
        self._keep(read_kept(self.folder) | {"plan": made._asdict()})
        self.__dict__.pop("plan", None)
        self._say(self._outlook())

    @property
    def repeat_bias(self) -> bool:
        """Whether all systems learn a number for seen items, as people often return to them."""
        return bool(read_kept(self.folder).get("repeat_bias", False))

    def _outlook(self) -> str:
        """What so many people and minutes can find, before anything is trained. Each training adds noise of its own."""
        trainings = SEEDS * sum(len(labels) for labels in self.plan.trained.values())
        planned = f"Planned are {trainings} trainings of {self.plan.share:.0f} seconds each"
        counted = sorted(set(self.side.systems) - set(STUDIED), key=self.side.valid)
        if len(counted) < 2:
            return f"{planned}."
        second, first = (self.side.values(label) for label in counted[-2:])
        contrast = paired_difference(first, second, (False, False))
        least, people = detectable_from_interval(contrast.low, contrast.high), first.shape[1]
        return (
            f"{planned}. With {people:,} people a difference of {least:.4f} can be found at best, where {name(counted[-1])} "
            f"without any training has {first.mean():.4f}; to find half of that takes {4 * people:,} people."
        )

    def _config(self, side: Side, label: str, seed: int, share: float, length: int) -> RunConfig:
        return plan.config(
            label, seed, share, length, self.asked.clock, self.asked.data, side.data, self.protocol, self.repeat_bias
        )

    def _order(self) -> list[tuple[Side, str]]:
        trained = self.plan.trained
        return [(self.sides[way], label) for way in WAYS for label in trained.get(way, ())]

    def _left(self, among: Sequence[tuple[Side, str]]) -> float:
        """Seconds that trainings have left to take."""
        runs = [run for side, label in among for run in side.all_runs(label) if not self._done(run)]
        return sum(max(self.plan.share - _seconds(run), 0.0) + self.plan.besides for run in runs)

    def _done(self, run: Run) -> bool:
        """Whether it has had its share, or stopped by itself."""
        try:
            minutes = run.config.train.minutes
        except InputError:
            return False
        reason = str(run.last_event("end").get("reason"))
        return run.finished and (minutes * 60 >= self.plan.share - 1 or "budget of" not in reason)

    def _train(self, side: Side, label: str, most: float) -> None:
        """Both trainings of a system, or none where they would end beyond the budget: all that are there had the same."""
        runs = side.all_runs(label)
        if all(map(self._done, runs)) or label in self.faults:
            return
        late = self.clock.seconds + self._left([(side, label)]) + self.plan.after > most * self.asked.minutes * 60
        if late and (side, label) != self._order()[0]:
            self.faults[f"{side.way} {label}"] = LATE
            return
        self.clock.keep()
        for seed, run in enumerate(runs):
            if self._done(run):
                continue

            def heard(event: dict[str, Any], seed: int = seed) -> None:
                if event["event"] in ("start", "step", "epoch"):
                    where = "" if side.way == "last" else ", by time"
                    self._say(f"Training {name(label)}{where}, {seed + 1} of {SEEDS}", event.get("epoch", 0))

            config = self._config(side, label, seed, self.plan.share, self.plan.length)
            try:
                train(config, side.data, run.path, on_event=heard)
            except InputError as error:
                self.faults[label] = str(error)
                return

    def _use_what_is_left(self) -> None:
        """Where some trainings stopped by themselves, those that the clock ended go on with the time that is left, all alike."""
        trained = [(side, label) for side in self.sides.values() for label in side.trained]
        cut = [
            (side, label)
            for side, label in trained
            if any("budget of" in str(run.last_event("end").get("reason")) for run in side.runs(label))
        ]
        if not cut:
            return
        left = plan.KEPT * self.asked.minutes * 60 - self.clock.seconds - self.plan.after
        more = left / sum(len(side.runs(label)) for side, label in cut) - self.plan.besides
        if more < MORE * self.plan.share:
            return
        self._keep(read_kept(self.folder) | {"plan": self.plan._replace(share=self.plan.share + more)._asdict()})
        self.__dict__.pop("plan", None)
        for side, label in cut:
            self._train(side, label, SLACK)

    def _measure(self) -> None:
        """What is asked of the trained systems besides their ranks, on the first way of holding out."""
        side, best = self.side, self.side.best
        for label in side.systems:
            for run in side.runs(label):
                kept = side.measured(run)
                cuts = [] if label not in STUDIED else cuts_of(run)[: None if label == best else 1]
                if "lists" in kept and len(kept.get("cuts", ())) > len(cuts) - (not cuts):
                    continue
                self._say(f"Asking {name(label)}")
                model = run.model(side.data)
                kept["lists"] = asking.best_lists(model, side.data, self.protocol)
                if cuts:
                    short = asking.by_cut(model, side.data, self.protocol, cuts)
                    whole = run.report().user_values(self.protocol, asking.METRIC)[asking.some_people(side.data)]
                    kept["cuts"] = np.concatenate([short, whole[None]])
                side.keep_measured(run, kept)
        runs = {label: side.runs(label)[0] for label in side.systems}
        stamps = {label: stamp(run) for label, run in runs.items()}
        with suppress(InputError):
            if files.read_object(self.folder / COSTS, MOST_BYTES, self.folder).get("of") == stamps:
                return
        self._say("Timing answers")
        opened = {label: run.model(side.data) for label, run in runs.items()}
        found = asking.costs(opened, side.data, seconds=min(8.0, self.asked.minutes))
        files.write_text(self.folder / COSTS, json.dumps({"of": stamps, "costs": found}, indent=1))

    # --- files ----------------------------------------------------------------------------------------------------------

    def costs(self) -> dict[str, dict[str, float]]:
        found = files.read_object(self.folder / COSTS, MOST_BYTES, self.folder)
        return dict(found["costs"])

    def _keep(self, plain: dict[str, Any]) -> None:
        files.write_text(self.folder / STUDY, json.dumps(plain, indent=1))

    def _say(self, text: str, epoch: int = 0) -> None:
        done = self.clock.seconds
        left = self.asked.minutes * 60 - done
        if "plan" in self.__dict__ or "plan" in read_kept(self.folder):
            left = self._left(self._order()) + self.plan.after
        self.tell(done, done + max(left, 0.0), text + (f", epoch {epoch}" if epoch else ""))


def _seconds(run: Run) -> float:
    """What a training has taken so far, as its log says."""
    rows = run.events("epoch")
    return float(rows[-1]["seconds"]) if rows else 0.0
