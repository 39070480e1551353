"""Runs against runs: paired over users, by system, never on another footing; and who may be called better."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ranked_runs import write_ranked_runs
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from shipped import shipped_run

from elastic_core import files, runs
from elastic_core.commands import main
from elastic_core.core.evaluate import Ranks
from elastic_core.errors import InputError
from elastic_core.results import markdown
from elastic_core.results.compare import (
    ONCE_SENTENCE,
    ONE_RUN,
    average_over_seeds,
    claim_sentence,
    compare_reports,
    compare_runs,
    find_winner,
    make_claims,
    needs_training,
    numbers_text,
    p_text,
    with_its_seeds,
)
from elastic_core.results.reproduce import System
from elastic_core.results.statistics import Contrast, paired_difference
from elastic_core.results.systems import data_sets, planned_data_sets
from elastic_core.results.table import leaderboard, result_table
from elastic_core.runs import EVENTS, Run, list_runs, ranks
from elastic_core.runs.ranks import Report
from elastic_core.services.train.outcome import describe_outcome


def report(above: np.ndarray, **changes: object) -> Report:
    ranks = Ranks(above.astype(np.int32), np.zeros(len(above), np.int32))
    fields = {"users": np.arange(len(above)), "split": "test", "data_hash": "abc", "seed": 0, "seconds": 0.0}
    return Report({"full": ranks}, **(fields | changes))  # type: ignore[arg-type]


def places(seed: int, people: int = 400, good: float = 0.1) -> np.ndarray:
    """Places of a system; the larger `good`, the better."""
    return np.random.default_rng(seed).geometric(good, people) - 1


def test_the_paired_difference_equals_a_loop() -> None:
    a, b = [report(places(i, good=0.2)) for i in range(2)], [report(places(i)) for i in range(2, 5)]
    found = compare_reports(a, b)
    total = 0.0
    for user in range(found.users):
        mine, theirs = ([each.user_values("full", "NDCG@10")[user] for each in side] for side in (a, b))
        total += sum(mine) / 2 - sum(theirs) / 3
    assert found.difference == pytest.approx(total / found.users) and found.low < found.difference < found.high
    assert found.means_a == tuple(float(each.user_values("full", "NDCG@10").mean()) for each in a)
    assert average_over_seeds(a, "full", "NDCG@10").mean == pytest.approx(found.mean_a)


def test_one_run_has_no_noise_of_training_to_show_and_nothing_is_claimed() -> None:
    good, bad = [report(places(i, good=0.4)) for i in range(3)], [report(places(9, good=0.05))]
    found = compare_reports(good, bad)
    assert found.low > 0 and not found.seeds_counted and found.means_b == (found.mean_b,)
    assert (
        find_winner(found) == ""
        and claim_sentence(found, "X", "Y").startswith(ONCE_SENTENCE)
        and "better" not in claim_sentence(found, "X", "Y")
    )
    alone = paired_difference(
        np.stack([r.user_values("full", "NDCG@10") for r in good]).mean(0)[None], bad[0].user_values("full", "NDCG@10")[None]
    )
    assert (found.low, found.high, found.p) == pytest.approx((alone.low, alone.high, alone.p), abs=1e-7), "people only"
    floor = compare_reports(good, bad, trained=(True, False))  # one run of what needs no training is all there is
    assert floor.seeds_counted and find_winner(floor) == "A" and claim_sentence(floor, "X", "Y").startswith("X is better than Y")
    assert find_winner(compare_reports(bad, good, trained=(False, True))) == "B"
    assert ONE_RUN in numbers_text(found) and ONE_RUN not in numbers_text(floor)


def test_equal_systems_differ_by_nothing() -> None:
    seeds = [report(places(i)) for i in range(3)]
    found = compare_reports(seeds[:1], seeds[:1])
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)
    found = compare_reports(seeds, seeds)
    assert found.low < 0 < found.high and found.p == 1 and "no difference can be claimed" in claim_sentence(found, "X", "Y")


def test_a_p_is_not_told_more_exactly_than_noise_is_known() -> None:
    assert (p_text(0.01234), p_text(0.0001), p_text(0.00009), p_text(0.0)) == ("0.0123", "0.0001", "< 0.0001", "< 0.0001")
    assert numbers_text(Contrast(0.1, 0.05, 0.15, 1e-9, True)) == "+0.1000 (95% +0.0500 to +0.1500, p < 0.0001)"
    assert numbers_text(Contrast(0.1, 0.05, 0.15, 0.02, True)) == "+0.1000 (95% +0.0500 to +0.1500, p = 0.0200)"


def test_a_claim_needs_the_adjusted_p_and_one_run_claims_nothing() -> None:
    clear = Contrast(0.1, 0.05, 0.15, 0.001, True)
    assert find_winner(clear) == find_winner(clear, 0.04) == "A"
    assert find_winner(clear, 0.05) == find_winner(clear, float("nan")) == ""
    assert find_winner(clear._replace(seeds_counted=False), 0.001) == ""
    good, bad, once = ([report(places(i, good=g)) for i in range(n)] for g, n in ((0.4, 3), (0.05, 2), (0.05, 1)))
    comparisons = [compare_reports(good, bad), compare_reports(good, once), None, compare_reports(good, good)]
    first, alone, unranked, level = make_claims(comparisons)
    assert first.winner == "A" and first.claim_text("X", "Y") == "X is better"
    assert first.adjusted_p == pytest.approx(2 * comparisons[0].p), "Holm counts those that could be claimed"  # type: ignore[union-attr]
    assert np.isnan(alone.adjusted_p) and alone.claim_text("X", "Y") == ONE_RUN and unranked.winner == level.winner == ""


@pytest.mark.parametrize(
    "changes",
    [{"data_hash": "abd"}, {"split": "valid"}, {"seed": 1}, {"users": np.arange(1, 11)}, {"users": np.arange(10)[::-1]}],
)
def test_unlike_reports_are_refused(changes: dict) -> None:
    values = np.zeros(10)
    with pytest.raises(InputError, match="cannot be compared"):
        compare_reports([report(values)], [report(values, **changes)])
    with pytest.raises(InputError, match="cannot be compared"):
        compare_reports([report(values), report(values, **changes)], [report(values)])


def test_a_missing_metric_is_named() -> None:
    with pytest.raises(InputError, match="pop100"):
        compare_reports([report(np.zeros(4))], [report(np.zeros(4))], "pop100")
    with pytest.raises(InputError, match="at least one report"):
        compare_reports([], [report(np.zeros(4))])


def seeded(folder: Path, run: Run, seed: int) -> Run:
    """A copy of a run that says it was trained with another seed."""
    copy = Run(Path(shutil.copytree(run.path, folder / f"{run.name}-seed{seed}")))
    files.write_text(copy.path / runs.CONFIG, json.dumps(run.config.override(f"train.seed={seed}").to_dict()))
    assert copy.config.train.seed == seed
    return copy


def test_runs_that_differ_in_their_seed_are_one_system(tiny_runs: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    tiny, peer = Run(folder / "tiny"), Run(folder / "tiny-peer")
    other = seeded(folder, tiny, 1)
    shutil.copytree(tiny.path, folder / "copy")
    known = list_runs(folder)
    assert [run.name for run in with_its_seeds(tiny, known)] == ["tiny", other.name], "a copy is no other seed"
    two = compare_runs([tiny, other], [peer])
    assert two == compare_reports([tiny.report(), other.report()], [peer.report()]) or not two.seeds_counted
    assert compare_runs([tiny, other], [peer]).difference == pytest.approx(compare_runs([tiny], [peer]).difference)
    for side, message in (([tiny, peer], "more than their seed"), ([tiny, Run(folder / "copy")], "repeat a seed")):
        with pytest.raises(InputError, match=message):
            compare_runs(side, [peer])
    with pytest.raises(InputError, match="metric"):
        compare_runs([tiny], [peer], "full", "recall")
    (other.path / "ranks.safetensors").unlink()
    assert with_its_seeds(tiny, known) == [tiny], "a seed without ranks does not count"


def test_comparing_two_runs_of_six_thousand_people_opens_no_model_and_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = shipped_run("ml-1m-cpu-elastic"), shipped_run("ml-1m-cpu-sasrec")
    monkeypatch.setattr(Run, "model", lambda *_: pytest.fail("a model was opened"))
    began = time.process_time()
    found = compare_runs([a], [b])
    assert time.process_time() - began < 1
    assert found.users == 6040 and not found.seeds_counted and abs(found.difference) < 0.02
    assert not needs_training(shipped_run("ml-1m-popularity"))


# --- what was measured in another way is never merged ---

MADE_UP = {"planted-popularity": 0.02, "planted-sasrec": 0.05, "planted-sasrec-seed1": 0.06, "planted-elastic": 0.2,
           "planted-elastic-seed1": 0.21}  # fmt: skip
ODD = "planted-elastic-seed1"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished runs whose protocols give different numbers, as they do."""
    folder = tmp_path_factory.mktemp("ranked")
    write_ranked_runs(folder, MADE_UP)
    return folder


def tensors(change: Callable[[dict[str, np.ndarray], dict[str, str]], object]) -> Callable[[Path], None]:
    """Changes what the file of ranks holds and says."""

    def apply(run: Path) -> None:
        path = run / ranks.FILE
        found = load_file(path)
        with safe_open(path, "numpy") as file:
            said = dict(file.metadata())
        change(found, said)
        save_file(found, path, said)

    return apply


def _fewer(found: dict[str, np.ndarray], said: dict[str, str]) -> None:
    for name in found:
        found[name] = found[name][:-1]


def whole_data(run: Path) -> None:
    """Everything of the run says that its events were others: ranks and log agree."""
    tensors(lambda found, said: said.update(data_hash="0123456789abcdef"))(run)
    log = run / EVENTS
    log.write_text(re.sub(r'"data_hash": "\w+"', '"data_hash": "0123456789abcdef"', log.read_text()))


def relogged(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """The log follows the ranks, so that nothing within the run disagrees."""

    def apply(run: Path) -> None:
        change(run)
        found = ranks.read_ranks(run / ranks.FILE, "ranks")
        lines = [json.loads(line) for line in (run / EVENTS).read_text().splitlines()]
        for line in lines:
            if line["event"] == "test":
                line |= {"users": len(found.users), "protocols": found.metrics, "errors": found.errors}
        (run / EVENTS).write_text("".join(json.dumps(line) + "\n" for line in lines))

    return apply


# Ranks that are not of the test that the run logged cannot be read; a run that was measured otherwise stands apart.
REFUSED = {
    "ranks of other data": tensors(lambda found, said: said.update(data_hash="0123456789abcdef")),
    "ranks of validation": tensors(lambda found, said: said.update(split="valid")),
}
APART = {
    "other data": whole_data,
    "other draws of candidates": tensors(lambda found, said: said.update(seed="1")),
    "other people": relogged(tensors(_fewer)),
}


def scrambled(whole: Path, place: Path, scramble: Callable[[Path], None]) -> Path:
    root = Path(shutil.copytree(whole, place / "runs"))
    scramble(root / ODD)
    return root


def numbers(root: Path) -> dict[System, tuple[int, float]]:
    """Seeds and NDCG@10 of everybody in the table of one data set."""
    table = result_table(planned_data_sets(root)["planted"], ["full"], ["NDCG@10"])
    return {row.system: (row.seeds, row.mean) for row in table.itertuples()}


@pytest.mark.parametrize("name", [*REFUSED, *APART])
def test_nothing_compares_it(whole: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = scrambled(whole, tmp_path, {**REFUSED, **APART}[name])
    odd, twin, peer = Run(root / ODD), Run(root / "planted-elastic"), Run(root / "planted-sasrec")
    for pair in (([odd], [peer]), ([peer], [odd]), ([twin, odd], [peer])):
        for protocol in ("full", "pop100"):
            with pytest.raises(InputError):
                compare_runs(*pair, protocol)
    assert main(["compare", str(odd.path), str(peer.path)]) == 2 and len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_that_contradicts_itself_is_one_sentence_and_in_no_table(
    whole: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = scrambled(whole, tmp_path, REFUSED[name])
    odd = Run(root / ODD)
    with pytest.raises(InputError, match=ODD):
        odd.report()
    (data_set,), (fault,) = data_sets([Run(root / each) for each in MADE_UP])
    assert fault.name == ODD and [len(data_set.systems[System(name)]) for name in ("elastic", "sasrec")] == [1, 2]
    for write in (lambda: markdown.results_tables(root), lambda: describe_outcome(odd)):
        with pytest.raises(InputError, match=ODD):
            write()
    assert main(["reproduce", "--table", "--only", "planted", "--root", str(root)]) == 2
    assert all(ODD in line for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("name", APART)
def test_what_was_measured_otherwise_stands_apart(whole: Path, tmp_path: Path, name: str) -> None:
    root = scrambled(whole, tmp_path, APART[name])
    alone = Path(shutil.copytree(whole, tmp_path / "alone"))
    shutil.rmtree(alone / ODD)
    odd, expected = Run(root / ODD), numbers(alone)
    assert numbers(root) == expected and numbers(whole) != expected, "it moves no number of the others"
    sets = planned_data_sets(root)
    (apart,) = [key for key in sets if key != "planted"]
    assert [[run.name for run in runs] for runs in sets[apart].values()] == [[ODD]]
    assert with_its_seeds(Run(root / "planted-elastic"), [odd]) == [Run(root / "planted-elastic")]
    text = markdown.results_tables(root)
    assert text.count("| ELASTIC, K = 8², k = 8 | 1 |") == 2 and text.count("### Planted interests (16 interests)") == 2
    assert markdown.results_tables(alone).removesuffix(markdown.END).strip() in text

    found, faults = data_sets([Run(root / each) for each in MADE_UP])
    assert not faults and len({data_set.key for data_set in found}) == len(found) == 2
    assert [[run.name for runs in data_set.systems.values() for run in runs] for data_set in found][1] == [ODD]
    table = leaderboard(found[0], "full").set_index("label")
    assert table.loc["elastic", "seeds"] == 1 and table.loc["elastic", "runs"] == "planted-elastic"
    assert (
        ODD not in describe_outcome(Run(root / "planted-elastic"), [odd]).seeds
        and " 2 seeds" not in describe_outcome(odd, [odd]).seeds
    )
