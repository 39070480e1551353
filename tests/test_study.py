"""A study of somebody's clicks: held out by the clock, killed and gone on, and no claim where there is nothing."""

import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elastic_core.core.objective import All, AllConfig
from elastic_core.data import load
from elastic_core.data.by_time import by_time
from elastic_core.errors import InputError
from elastic_core.models import build
from elastic_core.peers.cooccurrence import CooccurrenceConfig
from elastic_core.recipes import MEMORIES, STUDIED
from elastic_core.results.statistics import TrainingNoise
from elastic_core.run_config import DataConfig, PlantedConfig
from elastic_core.runs import Run
from elastic_core.runs.ranks import evaluate
from elastic_core.study import measurements, page, plan
from elastic_core.study import train as study_training
from elastic_core.study.plan import CUTS, FINALISTS, PARTS, SEEDS, SPLITS, Probe
from elastic_core.study.questions import Question, answer_in_turn, answer_together
from elastic_core.study.request import StudyClock, StudyRequest
from elastic_core.study.train import ANSWER, PAGE, RECIPES, Study

ROOT = Path(__file__).resolve().parents[1]
WORLD = DataConfig(source="planted", planted=PlantedConfig(users=90, items=40, interests=4, mean_length=20, max_length=40))
LONG = DataConfig(source="planted", planted=PlantedConfig(users=250, items=60, interests=4, mean_length=80, max_length=300))
PAIR = ("elastic-slots", "elastic-slots (memory-none)")


# --- by the clock -------------------------------------------------------------------------------------------------------


def test_by_time_nothing_that_is_learned_is_later_than_anything_that_is_asked() -> None:
    data = load(LONG)
    split = by_time(data, (0.6, 0.8))
    times, (first, second) = split.histories.times, split.dates
    owners = np.repeat(np.arange(split.histories.n_users), split.histories.lengths)
    places = np.arange(len(times))
    learned = All(AllConfig(), split, 50).epoch_rows(np.random.default_rng(0))
    assert len(learned.users) > 20 and times[learned.last].max() < first, "the last target of every row"
    assert split.item_counts().sum() == (times < first).sum()
    assert np.array_equal(split.users_with_target("test"), np.arange(split.tested)) and 10 < split.tested < data.histories.n_users
    for part, low, high in (("valid", first, second), ("test", second, np.inf)):
        for user in split.users_with_target(part):  # type: ignore[arg-type]
            mine = np.flatnonzero((owners == user) & (times >= low) & (times < high))
            before = (owners == user) & (places < mine[0])
            assert split.target_items(part)[user] == split.histories.items[mine[0]]  # type: ignore[arg-type]
            assert split.split_ends(part)[user] == mine[0] and before.any()  # type: ignore[arg-type]
    ids = list(data.histories.user_ids)
    for user in range(split.histories.n_users):
        assert np.array_equal(
            split.histories.user_items(user), data.histories.user_items(ids.index(split.histories.user_ids[user]))
        )
    assert split.hash not in (data.hash, by_time(data, (0.5, 0.8)).hash)
    model = build(CooccurrenceConfig(), split.catalog)
    model.fit(split)
    assert len(evaluate(model, split, "test", ("full",)).users) == split.tested
    with pytest.raises(InputError, match="nobody"):
        by_time(data, (0.0, 0.9))


# --- what may be claimed ------------------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator, people: int, luck: float, gain: float = 0.0, margin: float = 0.0) -> dict[str, Question]:
    """The questions of the smallest study, three systems, of a world in which nothing pays but by `gain`: scores are mostly 0,
    systems suit people unlike, two trainings differ by their luck, a standard deviation of everybody's mean."""
    base = np.where(rng.random(people) < 0.25, rng.random(people), 0.0)

    def system(more: float = 0.0) -> np.ndarray:
        suits = np.where(rng.random(people) < 0.15, rng.normal(0, 0.3, people), 0.0)
        left = np.where(rng.random((SEEDS, people)) < 0.2, rng.normal(0, 0.3, (SEEDS, people)), 0.0)
        return base + suits + left + rng.normal(more, luck, (SEEDS, 1))

    def shorter(side: np.ndarray) -> np.ndarray:
        moved = np.where(rng.random(side.shape) < 0.4, rng.normal(0, 0.2, side.shape), 0.0)
        return side + moved + rng.normal(0, luck / 2, (SEEDS, 1))

    own, shared, best = system(gain), system(), system()
    counted = base + np.where(rng.random(people) < 0.15, rng.normal(0, 0.3, people), 0.0)
    short, pooled = [shorter(side) for side in (best, own, shared)], TrainingNoise.pool_systems([own, shared, best])
    of_short = TrainingNoise.pool_systems([side - less for side, less in zip((best, own, shared), short, strict=True)])
    return {
        "last memory": Question(own, shared, noise=pooled, margin=margin),
        "last counting": Question(best, counted[None], (True, False), pooled),
        "history": Question.of_same(best, short[0], of_short),
    }  # fmt: skip


@pytest.mark.parametrize("luck", [0.0, 0.01, 0.05])
def test_where_nothing_pays_a_study_says_so_in_fewer_than_five_of_a_hundred_worlds(luck: float) -> None:
    rng, worlds = np.random.default_rng(0), 400
    pays = claims = 0
    for i in range(worlds):
        found = answer_together(drawn(rng, (60, 300, 1_000)[i % 3], luck))
        pays += found["last memory"].answer == "yes"
        claims += any(one.answer != "not known" for one in found.values())
    assert pays / worlds <= 0.03 and claims / worlds <= 0.06, (pays, claims)


def test_level_is_said_of_what_differs_by_less_than_the_margin_and_hardly_ever_of_what_differs_by_it() -> None:
    rng, margin = np.random.default_rng(2), 0.03
    same = [answer_together(drawn(rng, 3_000, 0.002, 0.0, margin))["last memory"].answer for _ in range(60)]
    assert same.count("level") > 45 and same.count("yes") + same.count("no") <= 3
    for people, luck in ((60, 0.05), (300, 0.01), (3_000, 0.002)):
        worlds = [answer_together(drawn(rng, people, luck, margin, margin))["last memory"].answer for _ in range(200)]
        assert worlds.count("level") / 200 <= 0.04, (people, luck)
    few = [answer_together(drawn(rng, 60, 0.05, 0.0, margin))["last memory"].answer for _ in range(40)]
    assert "level" not in few, "sixty people cannot rule anything out"


def test_what_pays_is_found_and_what_is_asked_onwards_stops_at_the_first_unknown() -> None:
    rng = np.random.default_rng(1)
    found = [answer_together(drawn(rng, 1_000, 0.002, gain=0.08))["last memory"].answer for _ in range(40)]
    assert found.count("yes") > 30
    people = 500
    same = np.tile(rng.random(people), (SEEDS, 1))

    def loses(by: float) -> Question:
        return Question.of_same(same + rng.normal(by, 0.05, same.shape), same)

    first = answer_together({"history": loses(0.1), "other": loses(0.0)})["history"]
    chain = answer_in_turn([loses(0.05), loses(0.0), loses(0.1)], first, 2)
    assert [one.answer for one in (first, *chain)] == ["yes", "yes", "not known", "not known"]
    alike = Question(same, same + rng.normal(0, 0.05, same.shape), margin=0.1)
    assert answer_together({"level": alike})["level"].answer == "level"
    assert answer_together({"level": alike._replace(cut=True)})["level"].answer == "not known", "it may yet get ahead"
    for cut, answer in ((False, "no"), (True, "not known")):
        (behind,) = answer_together({"behind": Question(same, same + 0.1 + rng.normal(0, 0.05, same.shape), cut=cut)}).values()
        assert behind.behind and behind.answer == answer, "who is behind and still learns is not called worse for good"
    once = answer_together({"once": Question(same[:1] + 1, same)})["once"]
    assert once.answer == "not known" and "one run" in once.numbers


# --- what is planned and measured ---------------------------------------------------------------------------------------


def test_a_plan_keeps_the_budget_in_rounds_that_grow() -> None:
    for minutes in (5, 30, 120):
        for epoch in (0.1, 5.0, 60.0):
            made = plan.plan_study(minutes, 12.0, Probe(epoch, 0.2, 0.8), SPLITS, trials=3)
            shares, trainings = plan.count_work(len(made.systems), len(made.splits), 3)
            assert made.length in (200, 104, 56)
            assert made.share == plan.FLOOR or 12 + made.after + shares * made.share + trainings * made.besides == pytest.approx(
                0.97 * 60 * minutes
            )
            assert set(PAIR) <= set(made.systems), "personal experts are asked against shared ones by any means"
            assert len(made.systems) <= FINALISTS or np.allclose(made.rounds, made.share * np.array(PARTS))
    few, many = (plan.plan_study(minutes, 0, Probe(1, 0.1, 0.4), SPLITS) for minutes in (5, 120))
    assert len(many.systems) > len(few.systems) and "time" in many.splits


def test_finalists_are_the_best_own_experts_their_twin_and_the_best_of_the_others() -> None:
    valid = {label: 0.1 + 0.01 * at for at, label in enumerate(STUDIED)}
    assert plan.choose_third(valid) == ["hstu", "lrurec", "gru4rec", "elastic"]
    assert plan.choose_finalists(valid, list(STUDIED)) == ["elastic", "elastic (memory-none)", "hstu"]
    without = {label: score for label, score in valid.items() if not label.startswith("elastic")}
    assert plan.choose_finalists(without, list(without)) == ["hstu", "lrurec", "gru4rec"]
    ahead = valid | {"elastic-slots (memory-none)": 1.0, "elastic-slots": 0.9}
    assert plan.choose_finalists(ahead, list(STUDIED)) == [*PAIR, "hstu"], "the best of all is among them"


def test_less_history_novelty_and_silence_are_what_a_loop_counts(small_world: object) -> None:
    data = load(WORLD)
    model = build(CooccurrenceConfig(), data.catalog)
    model.fit(data)
    cut = measurements.score_by_cut(model, data, "full", (1, 10))
    assert cut.shape == (2, data.histories.n_users)
    assert np.array_equal(cut[1], evaluate(model, data, "test", ("full",)).user_values("full", "NDCG@10"))
    assert not np.array_equal(cut[0], cut[1])
    counts = np.array([0, 8, 4, 4])
    assert measurements.score_novelty(np.array([[1, 2], [3, 0]]), counts).tolist() == [1.5, 2.0]
    kinds, found = data.catalog.genres, measurements.events_since_alike(data)
    assert kinds is not None
    for user in range(20):
        *read, target = data.histories.user_items(user)
        silence = next((i for i, item in enumerate(reversed(read), 1) if set(kinds[item]) & set(kinds[target])), 0)
        assert found[user] == silence
    shown = measurements.list_best(model, data, "full")
    for user in range(20):
        assert not set(shown[user]) & set(data.histories.user_items(user)[:-1]), "what was met is not listed"


# --- from end to end ----------------------------------------------------------------------------------------------------


def hurry(patched: pytest.MonkeyPatch) -> None:
    """No training is late, and each takes a tenth of a second."""
    patched.setattr(study_training, "SLACK", 1e9)
    patched.setattr(plan, "FLOOR", 0.1)


@pytest.fixture(scope="module", autouse=True)
def hurried() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        hurry(patched)
        yield


def tiny(folder: Path, minutes: float = 0.1) -> Study:
    return Study(
        StudyRequest(WORLD, minutes, ("last",), PAIR, "processor"), folder, probe=lambda config, data: Probe(0.1, 0.05, 0.1)
    )


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study of a tiny world, two systems; their pace is that of the processor."""
    study = tiny(tmp_path_factory.mktemp("study") / "here")
    study.run()
    return study


def test_a_study_ends_in_a_page_that_stands_alone(answered: Study) -> None:
    found = json.loads((answered.folder / ANSWER).read_text())
    assert [section["key"] for section in found["sections"]] == [
        "data", "history", "memory", "systems", "time", "lists", "power", "next", "measured"
    ]  # fmt: skip
    assert set(found["claims"]) == {"history", "last memory elastic-slots", "last counting"}
    html = re.sub(r"<script.*?</script>", "", (answered.folder / PAGE).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not re.search(r"https?:|//|<script|<link|<img|@import|url\(|src=", html)
    assert set(re.findall(r'href="([^"]*)"', html)) == {f"#{s['key']}" for s in found["sections"] if s["answer"]}
    assert html.count("plotly-graph-div") == sum(part["kind"] != "table" for s in found["sections"] for part in s["parts"]) >= 2
    text = " ".join(sentence for section in found["sections"] for sentence in section["sentences"])
    for key in ("history", "memory", "systems"):
        section = next(one for one in found["sections"] if one["key"] == key)
        assert section["answer"] in ("yes", "no", "level", "not known", "it depends")
        assert re.search(r"[+-]0\.\d{4} \(95% [+-]0\.\d{4} to [+-]0\.\d{4}; 90 people; adjusted p", section["sentences"][0])
    assert "it was not asked for (--split)" in text
    shown = page.render_page(found | {"title": "<script>alert(1)</script>"})
    assert "<script>alert" not in shown and "&lt;script&gt;alert(1)" in shown


def test_what_was_measured_of_an_earlier_best_system_is_measured_as_that_of_the_others(answered: Study, tmp_path: Path) -> None:
    """The best is asked how much it must read, the others once; with more time another one may become the best."""
    shutil.copytree(answered.folder, tmp_path / "here")
    (tmp_path / "here" / ANSWER).unlink()
    study = tiny(tmp_path / "here")
    holdout = study.holdout
    run = holdout.finished_runs(next(label for label in holdout.trained if label != holdout.best))[0]
    measured = holdout.read_measured(run)
    holdout.write_measured(run, measured | {"cuts": np.concatenate([measured["cuts"], measured["cuts"]])})
    assert study.run()["claims"].keys() == json.loads((answered.folder / ANSWER).read_text())["claims"].keys()


def test_a_finished_study_is_told_again_and_a_larger_budget_goes_on(answered: Study) -> None:
    spent = StudyClock(answered.folder / study_training.CLOCK).earlier
    again = tiny(answered.folder)
    assert again.run() == json.loads((answered.folder / ANSWER).read_text()), "nothing is done anew"
    with pytest.raises(InputError, match="another study"):
        Study(StudyRequest(WORLD, 0.1, ("last",), PAIR[:1], "processor"), answered.folder).run()
    runs = [answered.holdouts["last"].run(label, seed) for label in PAIR for seed in range(SEEDS)]
    before = [len(run.events("epoch")) for run in runs]
    more = tiny(answered.folder, minutes=0.2).run()
    assert more["minutes"] == 0.2 and more["seconds"] > spent
    for run, epochs in zip(runs, before, strict=True):
        assert len(run.events("epoch")) >= epochs and run.finished


def had_alike(study: Study, labels: Sequence[str]) -> bool:
    """Whether every training had the full share, or stopped by itself; a last epoch may take longer than its budget."""
    runs = [run for label in labels for run in study.holdout.finished_runs(label) if "budget of" in end_of(run)]
    return all(max(60 * run.config.train.minutes, run.events("epoch")[-1]["seconds"]) > study.plan.share - 0.02 for run in runs)


def test_time_that_is_left_goes_to_all_trainings_that_the_clock_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late it is: the first had more time by then."""
    planned, goes_on = plan.plan_study, Study._use_what_is_left
    monkeypatch.setattr(plan, "plan_study", lambda *given: planned(*given)._replace(share=0.1))

    def all_are_late(study: Study) -> None:
        monkeypatch.setattr(study_training, "SLACK", 0.0)
        goes_on(study)

    monkeypatch.setattr(Study, "_use_what_is_left", all_are_late)

    study, told = tiny(tmp_path / "here", minutes=0.3), list[str]()
    study.report = lambda done, of, text: told.append(text)
    found = study.run()
    assert any(
        re.search(r"4 trainings of .* With 90 people a difference of 0\.\d{4} can be found .* takes 360 people\.", text)
        for text in told
    )
    assert had_alike(study, PAIR) and study.plan.share > 0.3, "a tenth of a second was planned for each"
    assert found["seconds"] < 1.1 * 0.3 * 60
    seeds = study.holdout.seeds
    assert 2 <= seeds <= plan.MAX_SEEDS and all(len(study.holdout.finished_runs(label)) == seeds for label in PAIR)


def test_where_all_stop_by_themselves_finalists_are_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = study_training.study_recipe
    monkeypatch.setattr(study_training, "study_recipe", lambda *given: recipe(*given).override("train.epochs=2"))
    study = tiny(tmp_path / "here", minutes=0.5)
    answer = study.run()
    assert study.holdout.seeds == plan.MAX_SEEDS
    assert all(study.holdout.values(label).shape[0] == plan.MAX_SEEDS for label in PAIR)
    measured = next(section for section in answer["sections"] if section["key"] == "measured")
    assert f"trained {plan.MAX_SEEDS} times" in measured["sentences"][0]


def test_where_people_often_return_all_systems_learn_a_number_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody goes round five items of their own, so validation's and the test's are seen ones; or nobody ever returns."""

    def ask(items: int) -> Study:
        rows = [
            f"u{user},i{(7 * user + event % items) % 40},{1_600_000_000 + event}" for user in range(60) for event in range(12)
        ]
        (tmp_path / f"{items}.csv").write_text("\n".join(["user,item,time", *rows]))
        asked = StudyRequest(DataConfig(source=str(tmp_path / f"{items}.csv")), 0.1, ("last",), PAIR, "processor")
        return Study(asked, tmp_path / f"study-{items}", probe=lambda config, data: Probe(0.1, 0.05, 0.1))

    never = ask(12)
    text = " ".join(sentence for section in never.run()["sections"] for sentence in section["sentences"])
    assert never.recipe == "plain" and not never.recipe_scores and "it was tried what helps" not in text
    monkeypatch.setattr(plan, "FLOOR", 1.0)
    study = ask(5)
    text = " ".join(sentence for section in study.run()["sections"] for sentence in section["sentences"])
    assert set(study.recipe_scores) == set(RECIPES) and study.recipe != "plain"
    assert study.recipe == max(study.recipe_scores, key=lambda recipe: study.recipe_scores[recipe])
    assert all(run.config.model.repeat_bias for label in PAIR for run in study.holdouts["last"].finished_runs(label))
    assert "100% of people return" in text and "repeat_bias=true" not in text


def test_of_many_systems_the_best_third_goes_on_and_the_finalists_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "CHOICES", ((5, ("last",)),))
    request = StudyRequest(WORLD, 0.4, ("last",), tuple(STUDIED)[:5], "processor")
    study = Study(request, tmp_path / "here", probe=lambda config, data: Probe(0.1, 0.05, 0.1))
    answer = study.run()
    state, holdout = json.loads((study.folder / study_training.STUDY).read_text()), study.holdout
    assert [set(valid) for valid in state["rounds"]] == [set(request.systems)] * 2
    own, shared = state["finalists"][:2]
    assert (own, shared) in MEMORIES and set(answer["claims"]) == {"history", f"last memory {own}", "last counting"}
    assert holdout.trained == state["finalists"] and set(holdout.stopped) == set(request.systems) - set(holdout.trained)
    minutes = {label: {run.config.train.minutes for run in holdout.finished_runs(label)} for label in request.systems}
    assert had_alike(study, holdout.trained)
    assert all(max(minutes[label]) < max(minutes[own]) for label in holdout.stopped)
    systems = next(section for section in answer["sections"] if section["key"] == "systems")
    rows = systems["parts"][1]["rows"]
    assert len(rows) == 4 + 5 and sum("others were ahead on validation" in row[-1] for row in rows) == 2


def end_of(run: Run) -> str:
    return str(run.last_event("end").get("reason"))


def conducted(folder: Path) -> None:
    """Runs in a child process."""
    with pytest.MonkeyPatch.context() as patched:
        hurry(patched)
        tiny(folder).run()


@pytest.mark.parametrize("at", ["last/elastic-slots-seed0", "last/elastic-slots-memory-none-seed1"])
def test_a_study_that_was_killed_goes_on(at: str, tmp_path: Path, children: Any) -> None:
    child = children.Process(target=conducted, args=(tmp_path / "here",))
    child.start()
    deadline = time.monotonic() + 120
    while not (tmp_path / "here" / at).exists() and child.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    child.kill()
    child.join()
    kept = json.loads((tmp_path / "here" / study_training.STUDY).read_text())
    study = tiny(tmp_path / "here")
    found = study.run()
    assert found["seconds"] >= study.clock.earlier > 0, "the time before the kill counts"
    done = json.loads((study.folder / study_training.STUDY).read_text())["plan"]
    assert done | {"share": 0} == kept["plan"] | {"share": 0} and done["share"] >= kept["plan"]["share"]
    assert had_alike(study, PAIR), "the same for all"
    assert len(study.holdouts["last"].systems) == 6 and (study.folder / PAGE).exists(), "four that count, two that learn"


def test_too_few_people_and_unknown_words_are_one_sentence(tmp_path: Path) -> None:
    few = DataConfig(source="planted", planted=PlantedConfig(users=20, items=40, interests=4, mean_length=20, max_length=40))
    with pytest.raises(InputError, match=r"20 people can be asked, and a study needs 50 at least"):
        Study(StudyRequest(few, 1.0), tmp_path / "few").run()
    for wrong in (
        {"minutes": 0},
        {"minutes": "5"},
        {"splits": []},
        {"splits": ["soon"]},
        {"systems": ["gpt"]},
        {"clock": "sun"},
        {"data": 5},
    ):
        with pytest.raises(InputError):
            StudyRequest.from_dict(StudyRequest(WORLD, 1.0).to_dict() | wrong)
    asked = StudyRequest(WORLD, 1.0)
    assert StudyRequest.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    assert asked.name == StudyRequest(WORLD, 30.0).name != StudyRequest(few, 1.0).name
    assert CUTS[0] == 1, "history begins with the last event alone"
