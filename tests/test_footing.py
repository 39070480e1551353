"""What was measured in another way is never merged: kept ranks are scrambled, and every table, comparison and card refuses them,
or keeps them apart."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from test_readme import kept

from elastic_core import readme, report
from elastic_core.commands import main
from elastic_core.comparisons import compare_runs, system
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.reproduce import System, rows
from elastic_core.runs import EVENTS, Run, ranks
from elastic_core.services.evidence import judging, standings
from elastic_core.services.evidence.systems import groups
from elastic_core.services.train.outcome import outcome
from elastic_core.tuning import TuningOutcome, best

MADE_UP = {"planted-popularity": 0.02, "planted-sasrec": 0.05, "planted-sasrec-seed1": 0.06, "planted-elastic": 0.2,
           "planted-elastic-seed1": 0.21}  # fmt: skip
ODD = "planted-elastic-seed1"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished runs whose protocols give different numbers, as they do."""
    folder, named = tmp_path_factory.mktemp("kept"), {row.name: row for row in rows()}
    for seed, (name, good) in enumerate(MADE_UP.items()):
        kept(folder, named[name], good, seed)
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


def swapped(one: str, other: str) -> Callable[[Path], None]:
    def change(found: dict[str, np.ndarray], said: dict[str, str]) -> None:
        for part in ("above", "tied"):  # where nobody ties there is no such tensor
            moved = {to: found.pop(f"{of}.{part}", None) for of, to in ((one, other), (other, one))}
            found.update({f"{to}.{part}": values for to, values in moved.items() if values is not None})

    return tensors(change)


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


# A run that contradicts itself cannot be read; one that was measured otherwise stands apart.
REFUSED = {
    "seen items left in, called full": swapped("full", "full-seen"),
    "drawn candidates, called full": swapped("full", "pop100"),
    "even draws for popular ones": swapped("pop100", "uniform100"),
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


def numbers(root: Path) -> dict[str, tuple[int, float]]:
    """Seeds and NDCG@10 of everybody in the report's table of one data set."""
    table = report.measured_systems(report.data_sets(root)["planted"], "full").set_index("system")
    return {str(name): (int(row["seeds"]), float(row["NDCG@10"])) for name, row in table.iterrows()}


@pytest.mark.parametrize("name", [*REFUSED, *APART])
def test_nothing_compares_it(whole: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = scrambled(whole, tmp_path, {**REFUSED, **APART}[name])
    odd, twin, peer = Run(root / ODD), Run(root / "planted-elastic"), Run(root / "planted-sasrec")
    for pair in (([odd], [peer]), ([peer], [odd]), ([twin, odd], [peer])):
        for protocol in ("full", "pop100"):
            with pytest.raises(InputError):
                compare_runs(*pair, protocol)
    assert main(["compare", str(odd.path), str(peer.path)]) == 2 and len(capsys.readouterr().err.splitlines()) == 1
    data = load(twin.config.data)
    assert {run.name for run in standings.comparable([odd, twin, peer], data)} == {twin.name, peer.name}


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_that_contradicts_itself_is_one_sentence_and_in_no_table(
    whole: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = scrambled(whole, tmp_path, REFUSED[name])
    odd = Run(root / ODD)
    with pytest.raises(InputError, match=ODD):
        odd.report()
    (group,), (fault,) = groups([Run(root / each) for each in MADE_UP])
    assert fault.name == ODD and [len(group.systems[System(name)]) for name in ("elastic", "sasrec")] == [1, 2]
    for write in (lambda: readme.results(root), lambda: report.write_report(root, tmp_path / "out"), lambda: outcome(odd)):
        with pytest.raises(InputError, match=ODD):
            write()
    assert main(["reproduce", "--table", "--only", "planted", "--root", str(root)]) == 2
    assert main(["report", "--root", str(root), "--out", str(tmp_path / "out")]) == 2
    assert all(ODD in line for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("name", APART)
def test_what_was_measured_otherwise_stands_apart(whole: Path, tmp_path: Path, name: str) -> None:
    root = scrambled(whole, tmp_path, APART[name])
    alone = Path(shutil.copytree(whole, tmp_path / "alone"))
    shutil.rmtree(alone / ODD)
    odd, expected = Run(root / ODD), numbers(alone)
    assert numbers(root) == expected and numbers(whole) != expected, "it moves no number of the others"
    sets = report.data_sets(root)
    (apart,) = [key for key in sets if key != "planted"]
    assert [[run.name for run in runs] for runs in sets[apart].values()] == [[ODD]]
    assert system(Run(root / "planted-elastic"), [odd]) == [Run(root / "planted-elastic")]
    text = readme.results(root)
    assert text.count("| ELASTIC, K = 8², k = 8 | 1 |") == 2 and text.count("### Planted interests (16 interests)") == 2
    assert readme.results(alone).removesuffix(readme.END).strip() in text

    found, faults = groups([Run(root / each) for each in MADE_UP])
    assert not faults and len({group.key for group in found}) == len(found) == 2
    assert [[run.name for runs in group.systems.values() for run in runs] for group in found][1] == [ODD]
    table = judging.standings(found[0], "full", compare_runs).set_index("label")
    assert table.loc["elastic", "seeds"] == 1 and table.loc["elastic", "runs"] == "planted-elastic"
    assert ODD not in outcome(Run(root / "planted-elastic"), [odd]).seeds and " 2 seeds" not in outcome(odd, [odd]).seeds


def test_trainings_on_different_data_have_no_best() -> None:
    one = TuningOutcome("planted", "a" * 16, "sasrec", "plain-0.2", 0, 0.1, 1, 2, 3.0, 4, "")
    other = TuningOutcome("planted", "b" * 16, "sasrec", "averaged-0.3", 0, 0.2, 1, 2, 3.0, 4, "")
    assert best([one], "sasrec") == one
    with pytest.raises(InputError, match="different data"):
        best([one, other], "sasrec")
