"""What README and RESULTS claim is what the runs in checkpoints/ measured: their tables are written from the ranks they keep."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from ranked_runs import PLAN, write_ranked_run, write_ranked_runs

from elastic_core.errors import InputError
from elastic_core.results import grid, markdown, systems
from elastic_core.results.compare import NO_RANKS, ONE_RUN
from elastic_core.results.markdown import BEGIN, END, readme_tables, results_tables, rewrite_documents
from elastic_core.results.reproduce import System
from elastic_core.results.table import compare_system
from elastic_core.runs import Run

ROOT = Path(__file__).resolve().parents[2]
README, RESULTS = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "checkpoints/RESULTS.md"))
DOCUMENTS = (
    "README.md",
    "checkpoints/RESULTS.md",
    "elastic_core/README.md",
    "elastic_core/serving/README.md",
    "pages/tour/README.md",
)
WRITTEN = ((README, readme_tables), (RESULTS, results_tables))


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
    write_ranked_run(root, PLAN["planted-popularity"], 0.02, 0)
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter")
    with pytest.raises(InputError, match=r"RESULTS\.md cannot be read: No such file"):
        rewrite_documents(root)
    (root / "RESULTS.md").write_bytes(b"\xff" + f"{BEGIN}{END}".encode())
    with pytest.raises(InputError, match=r"no UTF-8"):
        rewrite_documents(root)
    (root / "RESULTS.md").write_text(BEGIN)
    with pytest.raises(InputError, match=r"has no place for tables"):
        rewrite_documents(root)
    assert "old" in (tmp_path / "README.md").read_text()
    (root / "RESULTS.md").write_text(f"{BEGIN}{END}")
    assert rewrite_documents(root) == [tmp_path / "README.md", root / "RESULTS.md"]
    assert (tmp_path / "README.md").read_text() == f"before\n{readme_tables(root)}\nafter"
    assert (root / "RESULTS.md").read_text() == results_tables(root) and "Popularity" in results_tables(root)


def test_a_summary_is_bold_where_something_may_be_claimed(tmp_path: Path) -> None:
    made_up = [("popularity", 0.02), ("sasrec", 0.05), ("elastic", 0.2), ("elastic-seed1", 0.21)]
    for number, (name, good) in enumerate(made_up):
        write_ranked_run(tmp_path, PLAN[f"planted-{name}"], good, number)
    cell = r"plain SASRec: %s\+0\.\d{4}%s \(\+0\.\d{4} to \+0\.\d{4}\), %s \|$"
    assert re.search(cell % ("", "", "one run"), readme_tables(tmp_path), re.MULTILINE)
    write_ranked_run(tmp_path, PLAN["planted-sasrec-seed1"], 0.05, 9)
    assert re.search(cell % (r"\*\*", r"\*\*", "< 0.0001"), readme_tables(tmp_path), re.MULTILINE)


def test_one_run_claims_nothing_and_several_seeds_may(tmp_path: Path) -> None:
    for number, (name, good) in enumerate([("planted-popularity", 0.02), ("planted-sasrec", 0.05), ("planted-elastic", 0.2)]):
        write_ranked_run(tmp_path, PLAN[name], good, number)
    found = results_tables(tmp_path).splitlines()
    lines = [line for line in found if line.startswith(("| Popularity | +", "| SASRec | +"))]
    assert len(lines) == 2 and all(line.endswith(f"| {ONE_RUN} |") for line in lines)
    assert not any("better" in line for line in found)

    again = [PLAN["planted-sasrec-seed1"], PLAN["planted-elastic-seed1"]]
    write_ranked_run(tmp_path, again[1], 0.21, 4)
    text = results_tables(tmp_path)
    assert re.search(r"^\| Popularity \| \+.*\*\*ELASTIC is better\*\* \|$", text, re.MULTILINE), "a floor has no training noise"
    assert re.search(rf"^\| SASRec \| \+.*{ONE_RUN} \|$", text, re.MULTILINE)
    write_ranked_run(tmp_path, again[0], 0.05, 5)
    assert re.search(r"^\| SASRec \| \+.*\*\*ELASTIC is better\*\* \|$", results_tables(tmp_path), re.MULTILINE)
    (tmp_path / "planted-sasrec" / "ranks.safetensors").unlink()
    assert NO_RANKS in results_tables(tmp_path)


def test_two_recipes_on_one_data_set_have_a_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("ml-1m-popularity", "ml-1m-cpu-elastic", "ml-1m-elastic", "ml-1m-cpu-sasrec")
    data = PLAN["planted-sasrec"].config.data  # films need not be on this machine
    made_up = [replace(PLAN[name], config=replace(PLAN[name].config, data=data)) for name in ours]
    for module in (markdown, systems):
        monkeypatch.setattr(module, "planned_runs", lambda: made_up)
    for number, (row, good) in enumerate(zip(made_up, (0.02, 0.2, 0.1, 0.05), strict=True)):
        write_ranked_run(tmp_path, row, good, number)
    _, _, *lines = readme_tables(tmp_path).split("\n\n")[1].splitlines()
    usual, short = (line.strip("| ").split(" | ") for line in sorted(lines, key=len))
    assert "20 minutes" in short[0] and short[1] == usual[1], "what only counts stands beside either"
    assert len(usual) < len(short) and "one run" in short[-1], "who had 20 minutes is held against who had"


def test_a_line_claims_what_the_table_of_all_systems_does(tmp_path: Path) -> None:
    """A difference is adjusted for every system that ELASTIC is held against, not for the one that is shown."""
    systems = ("sasrec", "gru4rec", "lrurec", "hstu", "fpmc", "elastic")
    for number, name in enumerate(systems):
        for seed in range(2):
            row = PLAN[f"planted-64-{name}{f'-seed{seed}' if seed else ''}"]
            write_ranked_run(tmp_path, row, 0.215 if name == "elastic" else 0.2, 2 * number + seed)
    (line,) = (line for line in results_tables(tmp_path).splitlines() if re.match(r"\| SASRec \| [+-]", line))
    shown = readme_tables(tmp_path).splitlines()[-3]
    assert shown.startswith("| Planted") and "plain SASRec" in shown
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
        write_ranked_run(tmp_path, PLAN[name], good, seed)
        for epoch, (valid, loss) in enumerate(((0.1, 6.0), (0.3, 5.0), (0.2, 4.0)) if "sasrec" in name else (), 1):
            Run(tmp_path / name).append(
                {"event": "epoch", "epoch": epoch, "valid": {"NDCG@10": valid}, "loss": loss, "seconds": 1, "targets": 9}
            )
    here = str((Run(tmp_path / "planted-sasrec").last("start") or {})["data_hash"])
    point = dict(zip(grid.COLUMNS, ("planted", here, "sasrec", "plain-0.2", 0, 0.25, 1, 2, 3.0, 4, ""), strict=True))
    for other in (point, point | {"model": "elastic"}, point | {"data_hash": "a" * 16, "point": "averaged-0.3"}):
        grid.add_outcome(tmp_path / grid.FILE, other)
    found = results_tables(tmp_path).splitlines()
    at = next(i for i, line in enumerate(found) if line.startswith("| Below Popularity"))
    (line,) = [line for line in found[at + 2 :] if line.startswith("| ")]
    told = "**Popularity is better** | 2 of 3, 2 of 3 | 0.3000 → 0.2000 | 5.00 → 4.00 | plain-0.2 0.250 |"
    assert re.match(r"\| SASRec \| -0\.\d+ \(-0\.\d+ to -0\.\d+\), < 0\.0001 \| ", line) and line.endswith(told)


def test_a_host_stands_beside_itself_modulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = (0.2, 0.2)
    for seed, (name, good) in enumerate({"sasrec": 0.05, "sasrec-seed1": 0.05, "elastic": 0.2, "elastic-seed1": 0.2}.items()):
        write_ranked_run(tmp_path, PLAN[f"planted-{name}"], good, seed)
    host, missing = System("sasrec"), (System("sasrec"), System("sma", "ctreg"), "SASRec + SMA + CTReg", one, one)
    monkeypatch.setattr(markdown, "MODULATED", ((host, System("elastic"), "SASRec + SMA", one, (0.3, 0.3)), missing))
    text = results_tables(tmp_path)
    assert re.search(
        r"^\| SASRec \+ SMA \| 0\.1\d+ ± .* \| \+0\.\d+ .* \| \*\*SASRec \+ SMA is better\*\* \| \+50\.0% \|$", text, re.MULTILINE
    )
    assert re.search(r"^\| SASRec \+ SMA \+ CTReg \| 0\.1\d+ ± [\d.]+ \| not run \|  \|  \| \+0\.0% \|$", text, re.MULTILINE)


def test_what_is_told_stands_beside_the_told_and_beside_itself_untold(tmp_path: Path) -> None:
    """A repeat bias is a recipe: no row sets a system that is told against one that is not, but its own."""
    for seed, (name, good) in enumerate({"sasrec": 0.05, "sasrec-repeats": 0.3, "elastic": 0.1, "elastic-slots": 0.1}.items()):
        write_ranked_run(tmp_path, PLAN[f"planted-64-{name}"], good, seed)
    text = results_tables(tmp_path)
    (line,) = re.findall(r"^\| SASRec \| 1, 1 \|.*$", text, re.MULTILINE)
    before, after, gain, *_ = line.split(" | ")[2:]
    assert float(after.split(" ")[0]) - float(before.split(" ")[0]) == pytest.approx(float(gain.split(" ")[0]), abs=2e-4)
    assert float(gain.split(" ")[0]) > 0.1 and line.endswith(f"| {ONE_RUN} |")
    against = text.partition("| ELASTIC, K = 16², k = 4 minus |")[2].partition("\n\n")[0]
    assert "| SASRec |" in against and "told" not in against


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_picture_file_and_heading_it_names_is_there(document: str) -> None:
    text, home = (ROOT / document).read_text(encoding="utf-8"), (ROOT / document).parent
    files = [home / name for name in re.findall(r"\]\(([^)#]+)\)", text) if not name.startswith("http")]
    files += [ROOT / name for name in re.findall(r"`((?:elastic_core|pages|tests|checkpoints)/[\w./-]+)`", text)]
    local = [path for path in files if "local-" not in str(path)]
    assert len(local) > 3 and not [path for path in local if not path.exists()]
    headings = {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in re.findall(r"(?m)^#+ (.+)$", text)}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings


def test_protocols_and_recipes_stand_apart() -> None:
    """Of one budget, systems stand beside each other, and a variant beside the model it changes; never across budgets."""
    minutes, none = "20 minutes of processor", System("elastic", "memory-none")
    short, short_none = System("elastic", budget=minutes), none._replace(budget=minutes)
    short_sasrec = System("sasrec", budget=minutes)
    assert str(short_none._replace(mark="repeats")) == f"elastic (memory-none) (repeats) ({minutes})"
    assert str(System("elastic", own="mine")) == "elastic (own: mine)"
    assert systems.is_variant(short_none) and not systems.is_variant(short)
    for system, mark in product((System("hstu"), System("sasrec", "local", budget=minutes), none), systems.MARK_LABELS):
        marked = system._replace(mark=mark)
        assert systems.MARK_LABELS[mark] in systems.system_label(marked)
        assert systems.system_label(system) != systems.system_label(marked)
        assert systems.is_variant(marked) == systems.is_variant(system) and marked.recipe != system.recipe
    elastic, sasrec, popularity = map(System, ("elastic", "sasrec", "popularity"))
    known = [short, short_none, short_sasrec, elastic, none, sasrec, popularity]
    assert systems.our_systems(known) == [short, elastic]
    assert systems.rivals_of(short, known) == [short_sasrec, popularity] and systems.variants_of(short, known) == [short_none]
    assert systems.rivals_of(elastic, known) == [sasrec, popularity] and systems.variants_of(elastic, known) == [none]
    with_repeats = elastic._replace(mark="repeats")
    marked = [*known, with_repeats, with_repeats._replace(mark="own-output")]
    assert systems.variants_of(elastic, marked) == [none, with_repeats]
    assert not systems.variants_of(with_repeats, marked), "every pair once"


def test_better_than_sasrec_is_asked_of_the_fairer_of_two(tmp_path: Path) -> None:
    """Where SASRec was run with ELASTIC's convolution, a lead over the plain SASRec makes no bold number."""
    good = {"planted-elastic": 0.2, "planted-sasrec": 0.05}
    write_ranked_runs(tmp_path, {f"{name}{seed}": value for name, value in good.items() for seed in ("", "-seed1")})
    assert re.search(r"\| plain SASRec: \*\*\+0\.\d{4}\*\* \([^|]* \|$", readme_tables(tmp_path), re.MULTILINE)
    for seed in ("", "-seed1"):
        write_ranked_run(tmp_path, PLAN[f"planted-sasrec-local{seed}"], 0.2, 7 + len(seed))
    (line,) = [line for line in readme_tables(tmp_path).splitlines() if line.startswith("| Planted")]
    assert "**" not in line and "plain" not in line
    assert systems.fair_sasrec(System("elastic"), [System("sasrec")]) == System("sasrec")
    assert systems.fair_sasrec(System("elastic", mark="repeats"), [System("sasrec", "local")]) == System("sasrec", mark="repeats")


def test_claims_are_adjusted_for_their_number(tmp_path: Path) -> None:
    """Holm by hand: the smallest p of two rivals counts twice."""
    good = {"popularity": 0.02, "sasrec": 0.05, "sasrec-seed1": 0.06, "elastic": 0.2, "elastic-seed1": 0.21}
    write_ranked_runs(tmp_path, {f"planted-{name}": value for name, value in good.items()})
    found = systems.planned_data_sets(tmp_path)["planted"]
    claims = list(compare_system(found, System("elastic"), systems.rivals_of(System("elastic"), found), "full").values())
    smaller, larger = sorted(claim.comparison.p for claim in claims if claim.comparison)
    assert sorted(claim.adjusted_p for claim in claims) == pytest.approx([min(2 * smaller, 1), max(2 * smaller, larger)])
