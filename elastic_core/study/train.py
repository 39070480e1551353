"""The study itself, in a folder. Every step leaves a file, so that a study killed at any moment goes on with the same command.

study.json            the request, the plan, the recipe, what every round showed, the finalists, the validation of baselines
clock.json            seconds it has taken so far, over all its processes
recipes/<recipe>/     runs that chose the recipe, where people often return to what they know
last/<system>-seed0/  runs (runs/__init__.py); everybody's last event is held out
time/<system>-seed0/  runs that learned up to a date
last/<run>.npz        what was measured of the run of the same name besides its ranks (measurements.py)
costs.json            what an answer takes, all systems in turns
answer.json           the answer (answer.py)
study.html            the same as one page
"""

import json
from collections.abc import Callable
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
from elastic_core.core.train import NO_MINUTES
from elastic_core.data import Dataset, load
from elastic_core.data.by_time import by_time
from elastic_core.data.repeats import count_repeats, fitting_protocol
from elastic_core.errors import InputError
from elastic_core.recipes import JUDGED, REPEATS, STUDIED, objective_settings, study_recipe, usual_length
from elastic_core.results.statistics import detectable_from_interval, paired_difference
from elastic_core.run_config import RunConfig
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate
from elastic_core.runs.training import train
from elastic_core.study import measurements, plan
from elastic_core.study.holdout import STUDY, Holdout, baselines, cuts_of, read_study, stamp
from elastic_core.study.parts import system_name
from elastic_core.study.plan import SEEDS, Plan, Probe, Split, probe
from elastic_core.study.request import MAX_BYTES, StudyClock, StudyRequest

CLOCK, COSTS, ANSWER, PAGE, LOCK = "clock.json", "costs.json", "answer.json", "study.html", ".lock"
Report = Callable[[float, float, str], None]  # seconds that are done, of at most so many, and what is done now
RECIPES: dict[str, dict[str, Any]] = {  # of every model, where people often return to what they know
    "plain": {},
    "repeat-bias": {"repeat_bias": True},
    "repeat-counts": {"repeat_bias": True, "repeat_counts": True},
    "repeat-bias-own-output": {"repeat_bias": True, "output": "own"},
}
TRIED_WITH = "sasrec (local)"  # the system that tries them
WORTH_GOING_ON = 0.2  # of a training's share
SLACK = 1.05  # of the budget: a system that would end beyond it is left out


@dataclass
class Study:
    """A study and its folder."""

    request: StudyRequest
    folder: Path
    report: Report = lambda done, of, text: None
    probe: Callable[[RunConfig, Dataset], Probe] = probe
    faults: dict[str, str] = field(default_factory=dict)  # why a system was not trained, or a way of holding out not used

    @cached_property
    def data(self) -> Dataset:
        return load(self.request.data)

    @cached_property
    def holdouts(self) -> dict[Split, Holdout]:
        """The ways of holding out, as far as they leave enough users to test."""
        holdouts: dict[Split, Holdout] = {}
        k = self.request.data.k_core
        core = f" (data with more people, or fewer dropped: the k-core is {k})" if k else ""
        for split in self.request.splits:
            try:
                dataset = by_time(self.data) if split == "time" else self.data
                if (users := len(dataset.users_with_target("test"))) < plan.MIN_USERS:
                    raise InputError(f"{users:,} people can be asked, and a study needs {plan.MIN_USERS} at least{core}")
                holdouts[split] = Holdout(split, dataset, self.folder, self.request.systems, self.protocol)
            except InputError as error:
                self.faults[split] = str(error)
        return holdouts

    @property
    def holdout(self) -> Holdout:
        """The first one, in which systems are chosen and more is measured."""
        return next(iter(self.holdouts.values()))

    @cached_property
    def protocol(self) -> str:
        """Of all numbers: where people often choose again what they have seen, that stays among the candidates."""
        return fitting_protocol(self.data)

    @property
    def plan(self) -> Plan:
        return Plan(**read_study(self.folder)["plan"])

    @property
    def recipe(self) -> str:
        """What all systems learn besides: a key of `RECIPES`."""
        return str(read_study(self.folder).get("recipe", "plain"))

    @property
    def recipe_scores(self) -> dict[str, float]:
        """What validation said of the recipes; empty where none were tried."""
        return dict(read_study(self.folder).get("recipe_scores", {}))

    # --- the steps ------------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """All of it, or what is left of it. Returns the answer.

        Raises InputError with one sentence where the data cannot be read or are too few, where the folder is another study's and
        where another process is at it.
        """
        with files.explain_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / LOCK, thread_local=False)
        try:
            lock.acquire(timeout=files.LOCK_SECONDS)
        except Timeout:
            raise InputError(f"another process is at this study: {self.folder}") from None
        try:
            self._check_folder()
            if (answer := self._read_answer()) is not None:
                return answer
            self.clock = StudyClock(self.folder / CLOCK, self.request.clock)
            with self.clock.running():
                return self._work()
        finally:
            lock.release()

    def _check_folder(self) -> None:
        state = read_study(self.folder)
        if state.get("request") and {**state["request"], "minutes": 0} != {**self.request.to_dict(), "minutes": 0}:
            raise InputError(f"{self.folder} already holds another study; choose another folder")
        if state.get("plan") and state["plan"]["minutes"] != self.request.minutes:  # a larger budget goes on with what is there
            state["length"] = state.pop("plan")["length"]
            for chosen in ("finalists", "rounds", "seeds"):
                state.pop(chosen, None)
        self._write_state(state | {"request": self.request.to_dict()})

    def _read_answer(self) -> dict[str, Any] | None:
        """The answer, if it was given to these minutes."""
        with suppress(InputError):
            answer = files.read_object(self.folder / ANSWER, MAX_BYTES, self.folder)
            if answer.get("minutes") == self.request.minutes and (self.folder / PAGE).exists():
                return answer
        return None

    def _work(self) -> dict[str, Any]:
        from elastic_core.study import page
        from elastic_core.study.answer import answer_study

        self._say("Reading the data")
        if not self.holdouts:
            raise InputError(f"{self.data.label}: {next(iter(self.faults.values()))}")
        state = read_study(self.folder)
        if (known := state.get("data_hash", self.data.hash)) != self.data.hash:
            raise InputError(f"{self.data.label} has changed since this study began ({known}, now {self.data.hash})")
        self._write_state(state | {"data_hash": self.data.hash})
        for holdout in self.holdouts.values():
            for label in baselines():
                self._count(holdout, label)
        if "plan" not in read_study(self.folder):
            self._make_plan()
        if "recipe" not in read_study(self.folder):
            self._choose_recipe()
        if "finalists" not in read_study(self.folder):
            self._choose_finalists()
        for split in self.plan.splits:
            for label in read_study(self.folder)["finalists"]:
                self._train_finalist(self.holdouts[split], label)
        self._use_what_is_left()
        self._add_trainings()
        self._measure()
        self._say("Writing the answer")
        answer = answer_study(self)
        files.write_text(self.folder / PAGE, page.render_page(answer))
        files.write_text(self.folder / ANSWER, json.dumps(answer, indent=1))
        return answer

    def _count(self, holdout: Holdout, label: str) -> None:
        """A baseline, fitted and ranked; its validation is asked apart, as it has no epochs."""
        run, key = holdout.run(label), f"{holdout.split} {label}"
        state = read_study(self.folder)
        if label in self.faults or (run.finished and key in state.get("valid", {})):
            return
        self._say(f"Counting: {system_name(label)}")
        config = RunConfig(
            data=self.request.data, model=ModelConfig.known[label](), objective=objective_settings(label), train=TrainConfig()
        )
        try:
            train(config, holdout.data, run.path)
            model, users = run.model(holdout.data), draw_users(holdout.data, JUDGED)
            report = evaluate(model, holdout.data, "valid", (self.protocol,), users=users)
            score = report.metrics[self.protocol][measurements.METRIC]
            self._write_state(state | {"valid": state.get("valid", {}) | {key: score}})
        except InputError as error:  # a catalogue too large for a table of pairs
            self.faults[label] = str(error)

    def _make_plan(self) -> None:
        self._say("Timing a few steps")
        systems, dataset = self.request.systems, self.holdout.data
        state = read_study(self.folder)
        longest = usual_length(dataset)
        probed = self.probe(self._config(self.holdout, systems[0], 0, 60, longest, "plain"), dataset)
        longest = state.get("length", longest)  # trainings that are there read so many
        earlier = [run for holdout in self.holdouts.values() for label in systems for run in holdout.all_runs(label)]
        spent = max(self.clock.seconds - sum(map(_seconds_trained, earlier)), 0.0)
        trials = plan.TRIALS if self._returns_often and "recipe" not in state else 0
        new_plan = plan.plan_study(self.request.minutes, spent, probed, list(self.holdouts), longest, systems, trials)
        self._write_state(state | {"plan": new_plan._asdict()})
        self._say(self._describe_plan())

    @property
    def _returns_often(self) -> bool:
        return count_repeats(self.holdout.data, "valid").share >= REPEATS

    def _describe_plan(self) -> str:
        """What so many users and minutes can find, before anything is trained. Each training adds noise of its own."""
        current, rounds = self.plan, len(self.plan.rounds)
        finals = SEEDS * min(len(current.systems), plan.FINALISTS) * len(current.splits)
        text = f"{len(current.systems)} systems are trained briefly, the best longer, and of" if rounds > 1 else "Of"
        text += f" the finalists there are {finals} trainings of {current.share:.3g} seconds each."
        counted = sorted(set(self.holdout.systems) - set(STUDIED), key=self.holdout.valid)
        if len(counted) < 2:
            return text
        second, first = (self.holdout.values(label) for label in counted[-2:])
        contrast = paired_difference(first, second, (False, False))
        least, users = detectable_from_interval(contrast.low, contrast.high), first.shape[1]
        return (
            f"{text} With {users:,} people a difference of {least:.4f} can be found at best, where {system_name(counted[-1])} "
            f"without any training has {first.mean():.4f}; to find half of that takes {4 * users:,} people."
        )

    def _choose_recipe(self) -> None:
        """By validation, where people often return to what they know: with a number for that, with an output table too?"""
        if not self._returns_often:
            self._write_state(read_study(self.folder) | {"recipe": "plain"})
            return
        label = TRIED_WITH if TRIED_WITH in self.plan.systems else self.plan.systems[0]
        share, scores = max(self.plan.share * plan.PARTS[0], plan.FLOOR), dict[str, float]()
        for recipe in RECIPES:
            run = Run(self.folder / "recipes" / recipe)
            self._train(self.holdout, label, 0, share, run, f"Choosing a recipe, {recipe}", recipe)
            if run.finished:
                scores[recipe] = max(float(row["valid"][measurements.METRIC]) for row in run.events("epoch"))
        best = max(scores, key=lambda recipe: scores[recipe], default="repeat-bias")
        self._write_state(read_study(self.folder) | {"recipe": best, "recipe_scores": scores})

    def _choose_finalists(self) -> None:
        """The rounds of successive halving, on the first way of holding out. A round that is over is not judged anew."""
        holdout, rounds = self.holdout, self.plan.rounds
        for number, share in enumerate(rounds[:-1], 1):
            over: list[dict[str, float]] = read_study(self.folder).get("rounds", [])
            if number <= len(over):
                continue
            for label in plan.choose_third(over[-1]) if over else self.plan.systems:
                if label not in self.faults:
                    what = f"Round {number} of {len(rounds)}, {system_name(label)}"
                    self._train(holdout, label, 0, share, holdout.run(label), what)
            valid = {label: holdout.valid(label) for label in self.plan.systems if holdout.finished_runs(label)}
            self._write_state(read_study(self.folder) | {"rounds": [*over, valid]})
        able = [label for label in self.plan.systems if label not in self.faults]
        last = {label: score for each in read_study(self.folder).get("rounds", []) for label, score in each.items()}
        self._write_state(read_study(self.folder) | {"finalists": plan.choose_finalists(last, able)})

    def _train_finalist(self, holdout: Holdout, label: str) -> None:
        """All trainings of a system, or none where they would end beyond `SLACK` of the budget; one that has had them goes on
        with more even so, as all finalists have the same."""
        runs, share = holdout.all_runs(label), self.plan.share
        waiting = [run for run in runs if not _had_share(run, share)]
        if not waiting or label in self.faults:
            return
        needed = sum(max(share - _seconds_trained(run), 0.0) + self.plan.besides for run in waiting)
        late = self.clock.seconds + needed + self.plan.after > SLACK * self.request.minutes * 60
        if late and holdout.trained and label not in holdout.trained:
            self.faults[f"{holdout.split} {label}"] = plan.OUT_OF_TIME
            return
        for seed, run in enumerate(runs):
            by_date = ", by time" if holdout.split == "time" else ""
            what = f"Final, {system_name(label)}{by_date}, training {seed + 1} of {SEEDS}"
            self._train(holdout, label, seed, share, run, what)

    def _train(
        self, holdout: Holdout, label: str, seed: int, share: float, run: Run, what: str, recipe: str | None = None
    ) -> None:
        """One training, until it has had so many seconds in all, or stops by itself."""
        if _had_share(run, share):
            return
        self.clock.write()

        def on_event(event: dict[str, Any]) -> None:
            if event["event"] in ("start", "step", "epoch"):
                self._say(what, event.get("epoch", 0))

        config = self._config(holdout, label, seed, share, self.plan.length, self.recipe if recipe is None else recipe)
        try:
            train(config, holdout.data, run.path, on_event=on_event)
        except InputError as error:
            self.faults[label] = str(error)

    def _config(self, holdout: Holdout, label: str, seed: int, share: float, length: int, recipe: str) -> RunConfig:
        """What one of the trainings is told."""
        dataset = holdout.data
        sizes = (length, dataset.catalog.n_items, dataset.histories.n_users)
        config = study_recipe(label, self.request.data, *sizes, self.protocol, RECIPES[recipe])
        return config.replace_values(
            {"train.seed": seed, "train.minutes": round(share / 60, 4), "train.clock": self.request.clock}
        )

    def _use_what_is_left(self) -> None:
        """Where some trainings stopped by themselves, those that the clock ended go on with the time that is left, all alike."""
        cut = [
            (holdout, label)
            for holdout in self.holdouts.values()
            for label in holdout.trained
            if any(NO_MINUTES in str(run.last_event("end").get("reason")) for run in holdout.finished_runs(label))
        ]
        seconds_left = plan.PLANNED * self.request.minutes * 60 - self.clock.seconds - self.plan.after
        more = seconds_left / (SEEDS * len(cut)) - self.plan.besides if cut else 0.0
        if more < WORTH_GOING_ON * self.plan.share or not cut:
            return
        self._write_state(read_study(self.folder) | {"plan": self.plan._replace(share=self.plan.share + more)._asdict()})
        for holdout, label in cut:
            self._train_finalist(holdout, label)

    def _add_trainings(self) -> None:
        """While there is time for it, all finalists are trained once more, one way of holding out after the other: most of what
        is not known is the luck of training."""
        finalists = read_study(self.folder)["finalists"]
        if not finalists or any(label not in holdout.trained for holdout in self.holdouts.values() for label in finalists):
            return
        for _ in range(SEEDS, plan.MAX_SEEDS):
            for split in self.plan.splits:
                self._train_once_more(self.holdouts[split], finalists)

    def _train_once_more(self, holdout: Holdout, finalists: list[str]) -> None:
        """All finalists, in this way of holding out; or none, where there is no time for all."""
        seed = holdout.seeds
        waiting = [label for label in finalists if not holdout.run(label, seed).finished]
        longest = [max(map(_seconds_trained, holdout.finished_runs(label))) for label in waiting]
        measuring = self.plan.after / (SEEDS * len(finalists))  # of one run more
        needed = sum(longest) + len(waiting) * (self.plan.besides + measuring)
        if self.clock.seconds + needed + self.plan.after > plan.PLANNED * self.request.minutes * 60:
            return
        for label in waiting:
            what = f"Time is left, {system_name(label)}, training {seed + 1}"
            self._train(holdout, label, seed, self.plan.share, holdout.run(label, seed), what)
        if all(holdout.run(label, seed).finished for label in finalists):
            state = read_study(self.folder)
            self._write_state(state | {"seeds": state.get("seeds", {}) | {holdout.split: seed + 1}})

    def _measure(self) -> None:
        """What is asked of the compared systems besides their ranks, on the first way of holding out."""
        holdout, best = self.holdout, self.holdout.best
        for label in holdout.systems:
            for run in holdout.finished_runs(label):
                measured = holdout.read_measured(run)
                cuts = [] if label not in STUDIED else cuts_of(run)[: None if label == best else 1]
                if "lists" in measured and len(measured.get("cuts", ())) == len(cuts) + bool(cuts):
                    continue
                self._say(f"Asking {system_name(label)}")
                model = run.model(holdout.data)
                measured["lists"] = measurements.list_best(model, holdout.data, self.protocol)
                if cuts:
                    short = measurements.score_by_cut(model, holdout.data, self.protocol, cuts)
                    users = measurements.sample_users(holdout.data)
                    full_scores = run.report().user_values(self.protocol, measurements.METRIC)[users]
                    measured["cuts"] = np.concatenate([short, full_scores[None]])
                holdout.write_measured(run, measured)
        runs = {label: holdout.finished_runs(label)[0] for label in holdout.systems}
        stamps = {label: stamp(run) for label, run in runs.items()}
        with suppress(InputError):
            if files.read_object(self.folder / COSTS, MAX_BYTES, self.folder).get("of") == stamps:
                return
        self._say("Timing answers")
        models = {label: run.model(holdout.data) for label, run in runs.items()}
        costs = measurements.measure_costs(models, holdout.data, seconds=min(8.0, self.request.minutes))
        files.write_text(self.folder / COSTS, json.dumps({"of": stamps, "costs": costs}, indent=1))

    # --- files ----------------------------------------------------------------------------------------------------------

    def read_costs(self) -> dict[str, dict[str, float]]:
        return dict(files.read_object(self.folder / COSTS, MAX_BYTES, self.folder)["costs"])

    def _write_state(self, state: dict[str, Any]) -> None:
        files.write_text(self.folder / STUDY, json.dumps(state, indent=1))

    def _say(self, text: str, epoch: int = 0) -> None:
        done = self.clock.seconds
        self.report(done, max(60 * self.request.minutes, done), text + (f", epoch {epoch}" if epoch else ""))


def _seconds_trained(run: Run) -> float:
    """What a training has taken so far, as its log says."""
    rows = run.events("epoch")
    return float(rows[-1]["seconds"]) if rows else 0.0


def _had_share(run: Run, share: float) -> bool:
    """Whether it has had so many seconds, as with a last epoch that overran its budget, or stopped by itself."""
    try:
        minutes = run.config.train.minutes
    except InputError:
        return False
    reason = str(run.last_event("end").get("reason"))
    return run.finished and (max(minutes * 60, _seconds_trained(run)) >= share - 0.01 or NO_MINUTES not in reason)
