"""What is said of the claims stays true: answers and numbers follow from the runs and rows at hand, and change with them."""

import dataclasses
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest
from ranked_runs import PLAN, meaning_row, runs_below, write_ranked_run, write_ranked_runs
from shipped import CHECKPOINTS, shipped_run

from elastic_core.bench.rows import read_rows, write_rows
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory import recovery, routing_metrics
from elastic_core.models import Recommender
from elastic_core.results import claims
from elastic_core.results.claims import QUESTIONS, Finding, Verdict, answer_question
from elastic_core.results.compare import compare_runs, noise_of_comparison
from elastic_core.results.reproduce import System
from elastic_core.results.statistics import detectable_from_interval
from elastic_core.results.systems import DataSet, data_sets
from elastic_core.results.table import difference_table
from elastic_core.runs import Run
from elastic_core.services.evidence import meaning
from elastic_core.services.evidence.speed import speed_verdict

BY_KEY = {question.key: question for question in QUESTIONS}


def world(root: Path, good: dict[str, float]) -> list[DataSet]:
    """Runs on the made-up world of 16 interests, by the end of their names."""
    write_ranked_runs(root, {f"planted-{name}": value for name, value in good.items()})
    return data_sets(runs_below(root))[0]


def answer_of(verdict: Verdict) -> str:
    """Of its first finding."""
    return verdict.findings[0].answer if verdict.findings else "not known"


def films(names: dict[System, str]) -> DataSet:
    """Two seeds each of shipped runs on films, whose ranks need no data."""
    runs = {system: [shipped_run(f"ml-100k-{name}{seed}") for seed in ("", "-seed1")] for system, name in names.items()}
    return DataSet("ml-100k", "Films", "", systems=runs)


def test_every_sentence_is_what_the_runs_say(tmp_path: Path) -> None:
    good = {"elastic": 0.2, "elastic-seed1": 0.201, "sasrec": 0.05, "sasrec-seed1": 0.051, "cooccurrence": 0.5}
    groups = world(tmp_path, good)
    better, worse = (answer_question(BY_KEY[key], groups, difference_table) for key in ("sasrec", "baseline"))
    assert (answer_of(better), answer_of(worse)) == ("yes", "no")
    found = compare_runs(
        *([Run(tmp_path / f"planted-{name}{seed}") for seed in ("", "-seed1")] for name in ("elastic", "sasrec"))
    )
    (one,) = better.findings
    assert (one.difference, one.low, one.high, one.n) == (found.difference, found.low, found.high, found.users)
    assert f"{found.difference:+.4f} (95% {found.low:+.4f} to {found.high:+.4f}; 2,000 people, trainings: 2 and 2" in one.sentence
    assert set(one.runs) == {f"planted-{name}{seed}" for name in ("elastic", "sasrec") for seed in ("", "-seed1")}
    nothing = answer_question(BY_KEY["gate"], groups, difference_table)
    assert not nothing.findings and "No finished run on" in nothing.absent and not nothing.marks_by_data()
    assert better.marks_by_data() == {"planted": "▲"} and worse.marks_by_data() == {"planted": "▼"}


def test_one_run_or_an_interval_with_zero_is_not_known_and_says_what_could_have_been_found(tmp_path: Path) -> None:
    groups = world(tmp_path / "once", {"elastic": 0.2, "sasrec": 0.05})
    once = answer_question(BY_KEY["sasrec"], groups, difference_table)
    (one,) = once.findings
    assert one.answer == "not known" and "one side was trained once" in one.sentence and one.why == claims.TRAINED_ONCE
    alike = world(tmp_path / "twice", {"elastic": 0.1, "elastic-seed1": 0.1, "cooccurrence": 0.1})
    level = answer_question(BY_KEY["baseline"], alike, difference_table)
    (one,) = level.findings
    assert one.answer == "not known" and one.low < 0 < one.high and one.why == claims.TOO_CLOSE
    could = detectable_from_interval(one.low, one.high)
    assert f"only {could:.4f} or more would usually be noticed" in one.sentence
    assert could == pytest.approx((one.high - one.low) / 2 * 2.8016 / 1.96, rel=1e-3)
    level = {"elastic": 0.1, "elastic-seed1": 0.1, "sasrec": 0.1, "sasrec-seed1": 0.1}
    peers = world(tmp_path / "peers", level)
    (one,) = answer_question(BY_KEY["sasrec"], peers, difference_table).findings
    could = noise_of_comparison(
        *([Run(tmp_path / "peers" / name) for name in one.runs if kind in name] for kind in ("elastic", "sasrec"))
    )
    assert f"only {could.detectable_difference():.4f} or more would usually be noticed" in one.sentence


def test_a_mark_says_what_a_finding_is_and_a_data_set_has_each_once() -> None:
    yes, no, unknown = Finding("yes", "", data="a"), Finding("no", "", data="a"), Finding("not known", "", data="b")
    once = unknown._replace(why=claims.TRAINED_ONCE)
    assert [each.mark for each in (yes, no, unknown, once)] == ["▲", "▼", "○", "?"]
    assert Verdict("", "", (no, no, yes, unknown), "", "systems").marks_by_data() == {"a": "▼▲", "b": "○"}
    known = yes._replace(where="Films", against="SASRec", difference=0.01, low=0.004, high=0.016, protocol="full")
    assert known.brief == "Films, against SASRec: +0.0100 NDCG@10 under full (95%: +0.0040 to +0.0160)"
    alone = once._replace(where="ELASTIC on Films", difference=-0.01, unit="of the experts")
    assert alone.brief == f"ELASTIC on Films: −0.0100 of the experts, {claims.TRAINED_ONCE}"
    assert yes._replace(sentence="So.").brief == "So."


def test_better_than_sasrec_follows_from_the_fairer_of_two_controls(tmp_path: Path) -> None:
    """SASRec with ELASTIC's convolution decides where it was run; a lead over the plain one is no yes then."""
    elastic, plain, local = System("elastic"), System("sasrec"), System("sasrec", "local")
    shipped = films({elastic: "elastic", plain: "sasrec", local: "sasrec-local"})
    assert {run.config.model.conv_width for side in (elastic, local) for run in shipped.systems[side]} == {16}
    (one,) = answer_question(BY_KEY["sasrec"], [shipped], difference_table).findings
    assert one.difference == compare_runs(shipped.systems[elastic], shipped.systems[local]).difference
    assert set(one.runs) == {run.name for side in (elastic, local) for run in shipped.systems[side]}
    assert "against SASRec with a local convolution" in one.sentence
    del shipped.systems[local]
    (one,) = answer_question(BY_KEY["sasrec"], [shipped], difference_table).findings
    assert one.difference == compare_runs(shipped.systems[elastic], shipped.systems[plain]).difference
    good = {"elastic": 0.2, "elastic-seed1": 0.2, "sasrec": 0.05, "sasrec-seed1": 0.05}
    assert answer_of(answer_question(BY_KEY["sasrec"], world(tmp_path / "plain", good), difference_table)) == "yes"
    fair = good | {"sasrec-local": 0.2, "sasrec-local-seed1": 0.2}
    assert answer_of(answer_question(BY_KEY["sasrec"], world(tmp_path / "fair", fair), difference_table)) == "not known"


def test_of_several_recipes_the_best_by_validation_is_asked_and_a_single_training_comes_last() -> None:
    """Validation prefers the bonus for seen items, 0.156 against 0.141; what was trained once could claim nothing."""
    told = "repeats"
    plain, local = (System("elastic"), System("sasrec", "local"))
    names = {plain: "elastic", local: "sasrec-local", plain._replace(mark=told): "elastic-repeats"}
    group = films(names | {local._replace(mark=told): "sasrec-local-repeats"})

    def asked() -> set[str]:
        (one,) = answer_question(BY_KEY["sasrec"], [group], difference_table).findings
        return {name for name in one.runs if name.startswith("ml-100k-elastic")}

    assert asked() == {"ml-100k-elastic-repeats", "ml-100k-elastic-repeats-seed1"}
    del group.systems[local._replace(mark=told)][1]
    assert asked() == {"ml-100k-elastic", "ml-100k-elastic-seed1"}
    del group.systems[local][1]
    assert asked() == {"ml-100k-elastic-repeats", "ml-100k-elastic-repeats-seed1"}, "once each"
    del group.systems[local._replace(mark=told)]
    assert asked() == {"ml-100k-elastic", "ml-100k-elastic-seed1"}, "the other has no control"


def test_an_interval_without_zero_that_is_no_claim_says_why() -> None:
    """Asked alone it would be one; the p is adjusted for all that was asked of these data together."""
    group = films({System("elastic"): "elastic", System("sasrec"): "sasrec"})
    row = {"family": "other systems", "difference": 0.01, "low": 0.004, "high": 0.016, "n": 943, "seeds_counted": True}
    rest = row | {"label": "lisa", "seeds_counted": False}  # trained once, so nobody adjusts for it
    for adjusted, who, answer in ((0.07, "", "not known"), (0.03, "A", "yes")):
        table = pd.DataFrame([row | {"label": "sasrec", "adjusted": adjusted, "winner": who}, row | {"label": "hstu"}, rest])
        found = answer_question(BY_KEY["sasrec"], [group], lambda *asked, table=table: table)
        (one,) = found.findings
        assert (one.answer, one.why) == (answer, "" if who else "may be luck among 2 comparisons")
        assert ("asked alone this would be a claim" in one.sentence) == (not who) and f"{adjusted:.4f}" in one.sentence


def test_counting_is_whatever_counts_best_on_these_data(tmp_path: Path) -> None:
    """Otherwise a system that is level with the best of them would be called better than counting."""
    groups = world(tmp_path, {"elastic": 0.3, "elastic-seed1": 0.3, "cooccurrence": 0.05, "popularity": 0.3})
    (one,) = answer_question(BY_KEY["baseline"], groups, difference_table).findings
    assert one.against == "Popularity" and one.answer == "not known" and one.protocol == "full"


def test_who_is_told_is_compared_with_who_is_told(tmp_path: Path) -> None:
    """And not with the same system untold, which stands before it in the tables."""
    named = ("elastic", "elastic_repeats", "hstu", "hstu_repeats")
    good = {f"ml_100k_{name}{seed}": 0.2 if name == "hstu" else 0.05 for seed in ("", "_seed1") for name in named}
    known = {name.replace("-", "_"): row for name, row in PLAN.items()}
    for seed, (name, value) in enumerate(good.items()):
        row = known[name]
        config = dataclasses.replace(row.config, data=known["planted_sasrec"].config.data)  # films need not be on this machine
        write_ranked_run(tmp_path, dataclasses.replace(row, config=config), value, seed)
    group = DataSet("ml-100k", "Films", "", systems={
        known[name].system: [Run(tmp_path / known[f"{name}{seed}"].name) for seed in ("", "_seed1")]
        for name in (f"ml_100k_{kind}" for kind in named)
    })  # fmt: skip
    (one,) = answer_question(BY_KEY["hstu"], [group], difference_table).findings
    assert set(one.runs) == {f"ml-100k-{name}-repeats{seed}" for name in ("elastic", "hstu") for seed in ("", "-seed1")}
    del group.systems[System("hstu", mark="repeats")]
    lacking = answer_question(BY_KEY["hstu"], [group], difference_table)
    assert not lacking.findings and "ml-100k-hstu-repeats*" in lacking.command


def test_speed_follows_from_the_rows_and_losses_are_said(tmp_path: Path) -> None:
    assert not speed_verdict(tmp_path).findings and speed_verdict(tmp_path).command
    measured = read_rows(CHECKPOINTS / "benchmarks.csv", "latency")
    ours = measured["system"] == "elastic"
    for factor, answer in ((1.0, "it depends"), (1e-3, "yes"), (1e3, "no")):
        slower = measured.copy()
        slower.loc[ours, ["seconds", "processor"]] *= factor
        write_rows(tmp_path / "benchmarks.csv", slower[~slower["device"].str.contains("NVIDIA")])
        found = speed_verdict(tmp_path)
        assert answer_of(found) == answer and len(found.findings) == 2
        assert ("SASRec is faster at N = 64" in found.findings[0].sentence) == (answer != "yes")


def test_experts_must_beat_every_null_in_every_way_and_several_trainings(tmp_path: Path) -> None:
    groups = world(tmp_path, {"elastic": 0.2, "elastic-seed1": 0.2})
    runs = groups[0].systems[System("elastic")]

    def ask(**values: float) -> list[str]:
        return [answer_of(each) for each in meaning.find_verdicts(groups, {run.name: meaning_row(run, **values) for run in runs})]

    assert ask(trained=0.8, quarter=0.5, quarter_stranger=0.1) == ["yes", "yes"]
    assert ask(trained=0.8, noise_values=0.81, quarter=0.12, quarter_stranger=0.1) == ["no", "not known"], "zero lies inside"
    assert ask(trained=0.8, quarter=0.1, quarter_stranger=0.5)[1] == "no"
    assert ask(trained=math.nan, quarter=0.2, quarter_stranger=0.1)[0] == "not known", "no truth, no score"
    once = meaning.find_verdicts(groups, {runs[0].name: meaning_row(runs[0], trained=0.8)})
    assert [answer_of(each) for each in once] == ["not known", "not known"] and "trained once" in once[0].findings[0].sentence
    nobody = meaning.find_verdicts(groups, {})
    assert all(not each.findings and each.absent for each in nobody)


def test_a_measurement_counts_for_the_weights_it_was_made_on(
    tiny: tuple[Recommender, Dataset, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, dataset, original = tiny
    run = Run(Path(shutil.copytree(original.path, tmp_path / original.name)))
    shares: list[float] = []
    monkeypatch.setattr(routing_metrics, "held_out_r2", lambda x, y, rng: 0.5)  # ridge regressions, tested elsewhere
    found = meaning.measure_meaning(run, model, dataset, shares.append)
    assert (
        found.quarter == routing_metrics.measure_routing(model, dataset).quarter
        and shares == sorted(shares)
        and shares[-1] == 1.0
    )
    told = meaning.recovery_table(found).set_index("model")
    for name, score in recovery.compare_with_nulls(model, dataset, shuffles=1).items():
        assert tuple(told.loc[name]) == pytest.approx((score.strongest.ami, score.events.ami), abs=5e-4), name
    meaning.keep_meaning(tmp_path, found)
    meaning.keep_meaning(tmp_path, found)
    (back,) = meaning.read_meaning(meaning.row_files(tmp_path)[1])
    assert back.quarter == pytest.approx(found.quarter, rel=1e-5) and meaning.of_runs(tmp_path, [run])[run.name] == back
    with (run.path / "model.safetensors").open("ab") as file:
        file.write(b" ")
    assert meaning.of_runs(tmp_path, [run]) == {}
    (run.path / "model.safetensors").unlink()
    assert meaning.of_runs(tmp_path, [run]) == {}, "what was measured here was measured on weights"
    shutil.copy(meaning.row_files(tmp_path)[1], meaning.row_files(tmp_path)[0])
    assert meaning.of_runs(tmp_path, [run])[run.name] == back, "and what came along with a run for its ranks, on those it had"
    for text in ("", "run,weights\n1,2\n", "\x00", "run\n" + "x" * 500):
        meaning.row_files(tmp_path)[1].write_text(text)
        assert meaning.read_meaning(meaning.row_files(tmp_path)[1]) == []
    monkeypatch.setenv("ELASTIC_PUBLIC", "1")
    with pytest.raises(InputError, match="measuring on this machine is off"):
        meaning.keep_meaning(tmp_path, found)
