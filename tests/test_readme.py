"""What the README claims is what the runs in checkpoints/ measured: its tables are written from the ranks they keep."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elastic_core import readme, report
from elastic_core.core.evaluate import PROTOCOLS, Ranks
from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.evaluation import verdict
from elastic_core.readme import BEGIN, END, readme_summary, results, rewrite
from elastic_core.reproduce import PlannedRun, System, rows
from elastic_core.runs import Run
from elastic_core.runs.ranks import Report
from elastic_core.tables import NO_RANKS
from elastic_core.tuning import TABLE, TuningOutcome, keep_outcome

ROOT = Path(__file__).resolve().parents[1]
README, RESULTS = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "checkpoints/RESULTS.md"))
WRITTEN = ((README, readme_summary), (RESULTS, results))
NAMED = {row.name: row for row in rows()}


@pytest.mark.parametrize(("text", "tables"), WRITTEN, ids=["README", "RESULTS"])
def test_the_result_tables_are_written_from_the_runs(text: str, tables: Callable[[Path], str]) -> None:
    written = text[text.index(BEGIN) : text.index(END) + len(END)]
    assert written == tables(ROOT / "checkpoints"), "python -m elastic_core reproduce --readme writes what should stand there"
    assert text.count(BEGIN) == text.count(END) == 1


def test_its_prose_claims_nothing_that_the_tables_do_not() -> None:
    for text, _ in WRITTEN:
        prose = text[: text.index(BEGIN)] + text[text.index(END) :]
        assert not re.search(r"p [=<] 0\.\d|\(95%", prose), "differences stand in the tables"


def test_both_files_are_rewritten_or_neither(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    kept(root, NAMED["planted-popularity"], 0.02, 0)
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter")
    with pytest.raises(InputError, match=r"RESULTS\.md cannot be read: No such file"):
        rewrite(root)
    (root / "RESULTS.md").write_bytes(b"\xff" + f"{BEGIN}{END}".encode())
    with pytest.raises(InputError, match=r"no UTF-8"):
        rewrite(root)
    (root / "RESULTS.md").write_text(BEGIN)
    with pytest.raises(InputError, match=r"has no place for tables"):
        rewrite(root)
    assert "old" in (tmp_path / "README.md").read_text()
    (root / "RESULTS.md").write_text(f"{BEGIN}{END}")
    assert rewrite(root) == [tmp_path / "README.md", root / "RESULTS.md"]
    assert (tmp_path / "README.md").read_text() == f"before\n{readme_summary(root)}\nafter"
    assert (root / "RESULTS.md").read_text() == results(root) and "Popularity" in results(root)


def test_a_summary_is_bold_where_something_may_be_claimed(tmp_path: Path) -> None:
    made_up = [("popularity", 0.02), ("sasrec", 0.05), ("elastic", 0.2), ("elastic-seed1", 0.21)]
    for number, (name, good) in enumerate(made_up):
        kept(tmp_path, NAMED[f"planted-{name}"], good, number)
    cell = r"\+0\.\d{4}%s \(\+0\.\d{4} to \+0\.\d{4}\), %s \|$"
    assert re.search(cell % ("", "one run"), readme_summary(tmp_path), re.MULTILINE)
    kept(tmp_path, NAMED["planted-sasrec-seed1"], 0.05, 9)
    assert re.search(r"\*\*" + cell % (r"\*\*", "< 0.0001"), readme_summary(tmp_path), re.MULTILINE)


def kept(root: Path, row: PlannedRun, good: float, seed: int) -> None:
    """A finished run of a row whose people are ranked by chance: the larger `good`, the better."""
    run, data = Run(row.folder(root)), load(row.config.data)
    run.start(row.config, data)
    run.append({"event": "start", "data": data.label, "data_hash": data.hash, "parameters": 1})
    rng, people = np.random.default_rng(seed), data.histories.n_users
    ranks = {
        protocol: Ranks((rng.geometric(good, people) - 1).astype(np.int32), np.zeros(people, np.int32)) for protocol in PROTOCOLS
    }
    report = Report(ranks, np.arange(people), "test", data.hash, 0, 1.0, "c0ffee")
    run.save_report(report)
    run.append({"event": "test", "users": people, "protocols": report.metrics, "errors": report.errors})
    run.append({"event": "end", "reason": "made up", "seconds": 1.0})


def test_one_run_claims_nothing_and_several_seeds_may(tmp_path: Path) -> None:
    for number, (name, good) in enumerate([("planted-popularity", 0.02), ("planted-sasrec", 0.05), ("planted-elastic", 0.2)]):
        kept(tmp_path, NAMED[name], good, number)
    found = results(tmp_path).splitlines()
    lines = [line for line in found if line.startswith(("| Popularity | +", "| SASRec | +"))]
    assert len(lines) == 2 and all(line.endswith(f"| {verdict.ONE_RUN} |") for line in lines)
    assert not any("better" in line for line in found)

    again = [NAMED["planted-sasrec-seed1"], NAMED["planted-elastic-seed1"]]
    kept(tmp_path, again[1], 0.21, 4)
    text = results(tmp_path)
    assert re.search(r"^\| Popularity \| \+.*\*\*ELASTIC is better\*\* \|$", text, re.MULTILINE), "a floor has no training noise"
    assert re.search(rf"^\| SASRec \| \+.*{verdict.ONE_RUN} \|$", text, re.MULTILINE)
    kept(tmp_path, again[0], 0.05, 5)
    assert re.search(r"^\| SASRec \| \+.*\*\*ELASTIC is better\*\* \|$", results(tmp_path), re.MULTILINE)
    (tmp_path / "planted-sasrec" / "ranks.safetensors").unlink()
    assert NO_RANKS in results(tmp_path)


def test_two_recipes_on_one_data_set_have_a_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("ml-1m-popularity", "ml-1m-cpu-elastic", "ml-1m-elastic", "ml-1m-cpu-sasrec")
    data = NAMED["planted-sasrec"].config.data  # films need not be on this machine
    made_up = [replace(NAMED[name], config=replace(NAMED[name].config, data=data)) for name in ours]
    for module in (readme, report):
        monkeypatch.setattr(module, "rows", lambda: made_up)
    for number, (row, good) in enumerate(zip(made_up, (0.02, 0.2, 0.1, 0.05), strict=True)):
        kept(tmp_path, row, good, number)
    _, _, *lines = readme_summary(tmp_path).split("\n\n")[1].splitlines()
    usual, short = (line.strip("| ").split(" | ") for line in sorted(lines, key=len))
    assert "20 minutes" in short[0] and short[1] == usual[1], "what only counts stands beside either"
    assert len(usual) < len(short) and "one run" in short[-1], "who had 20 minutes is held against who had"


def test_a_line_claims_what_the_table_of_all_systems_does(tmp_path: Path) -> None:
    """A difference is adjusted for every system that ELASTIC is held against, not for the one that is shown."""
    systems = ("sasrec", "gru4rec", "lrurec", "hstu", "fpmc", "elastic")
    for number, name in enumerate(systems):
        for seed in range(2):
            row = NAMED[f"planted-64-{name}{f'-seed{seed}' if seed else ''}"]
            kept(tmp_path, row, 0.215 if name == "elastic" else 0.2, 2 * number + seed)
    (line,) = (line for line in results(tmp_path).splitlines() if re.match(r"\| SASRec \| [+-]", line))
    shown = readme_summary(tmp_path).splitlines()[-3]
    assert shown.startswith("| Planted") and "SASRec" not in shown
    low, sure = re.search(r"\((.\d\.\d+) to .*?, ([\d.]+) \|$", shown).groups()  # type: ignore[union-attr]
    assert float(low) > 0 and float(sure) > 0.05 and "**" not in shown and "**" not in line


def test_who_is_below_the_baseline_is_said_with_its_curve_and_what_was_tried(tmp_path: Path) -> None:
    made_up = {
        "planted-popularity": 0.15,
        "planted-cooccurrence": 0.1,
        "planted-sasrec": 0.03,
        "planted-sasrec-seed1": 0.03,
        "planted-elastic": 0.4,
    }
    for seed, (name, good) in enumerate(made_up.items()):
        kept(tmp_path, NAMED[name], good, seed)
        for epoch, (valid, loss) in enumerate(((0.1, 6.0), (0.3, 5.0), (0.2, 4.0)) if "sasrec" in name else (), 1):
            Run(tmp_path / name).append(
                {"event": "epoch", "epoch": epoch, "valid": {"NDCG@10": valid}, "loss": loss, "seconds": 1, "targets": 9}
            )
    here = str((Run(tmp_path / "planted-sasrec").last("start") or {})["data_hash"])
    point = TuningOutcome("planted", here, "sasrec", "plain-0.2", 0, 0.25, 1, 2, 3.0, 4, "")
    for other in (point, replace(point, model="elastic"), replace(point, data_hash="a" * 16, point="averaged-0.3")):
        keep_outcome(tmp_path / TABLE, other)
    found = results(tmp_path).splitlines()
    at = next(i for i, line in enumerate(found) if line.startswith("| Below Popularity"))
    (line,) = [line for line in found[at + 2 :] if line.startswith("| ")]
    told = "**Popularity is better** | 2 of 3, 2 of 3 | 0.3000 → 0.2000 | 5.00 → 4.00 | plain-0.2 0.250 |"
    assert re.match(r"\| SASRec \| -0\.\d+ \(-0\.\d+ to -0\.\d+\), < 0\.0001 \| ", line) and line.endswith(told)


def test_a_host_stands_beside_itself_modulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = (0.2, 0.2)
    for seed, (name, good) in enumerate({"sasrec": 0.05, "sasrec-seed1": 0.05, "elastic": 0.2, "elastic-seed1": 0.2}.items()):
        kept(tmp_path, NAMED[f"planted-{name}"], good, seed)
    host, missing = System("sasrec"), (System("sasrec"), System("sma", "ctreg"), "SASRec + SMA + CTReg", one, one)
    monkeypatch.setattr(readme, "MODULATED", ((host, System("elastic"), "SASRec + SMA", one, (0.3, 0.3)), missing))
    text = results(tmp_path)
    assert re.search(
        r"^\| SASRec \+ SMA \| 0\.1\d+ ± .* \| \+0\.\d+ .* \| \*\*SASRec \+ SMA is better\*\* \| \+50\.0% \|$", text, re.MULTILINE
    )
    assert re.search(r"^\| SASRec \+ SMA \+ CTReg \| 0\.1\d+ ± [\d.]+ \| not run \|  \|  \| \+0\.0% \|$", text, re.MULTILINE)


def test_what_is_told_stands_beside_the_told_and_beside_itself_untold(tmp_path: Path) -> None:
    """A repeat bias is a recipe: no row sets a system that is told against one that is not, but its own."""
    for seed, (name, good) in enumerate({"sasrec": 0.05, "sasrec-repeats": 0.3, "elastic": 0.1, "elastic-slots": 0.1}.items()):
        kept(tmp_path, NAMED[f"planted-64-{name}"], good, seed)
    text = results(tmp_path)
    (line,) = re.findall(r"^\| SASRec \| 1, 1 \|.*$", text, re.MULTILINE)
    before, after, gain, *_ = line.split(" | ")[2:]
    assert float(after.split(" ")[0]) - float(before.split(" ")[0]) == pytest.approx(float(gain.split(" ")[0]), abs=2e-4)
    assert float(gain.split(" ")[0]) > 0.1 and line.endswith(f"| {verdict.ONE_RUN} |")
    against = text.partition("| ELASTIC, K = 16², k = 4 minus |")[2].partition("\n\n")[0]
    assert "| SASRec |" in against and "told" not in against


@pytest.mark.parametrize(("text", "home"), [(README, ROOT), (RESULTS, ROOT / "checkpoints")], ids=["README", "RESULTS"])
def test_every_picture_file_and_heading_it_names_is_there(text: str, home: Path) -> None:
    files = [home / name for name in re.findall(r"\]\(([^)#]+)\)", text) if not name.startswith("http")]
    files += [ROOT / name for name in re.findall(r"`((?:elastic_core|pages|tests|checkpoints)/[\w./-]+)`", text)]
    local = [path for path in files if "local-" not in str(path)]
    assert len(local) > 3 and not [path for path in local if not path.exists()]
    headings = {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in re.findall(r"(?m)^#+ (.+)$", text)}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
