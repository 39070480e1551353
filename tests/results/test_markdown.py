"""What README and RESULTS claim is what the runs in checkpoints/ measured: their tables are written from the ranks they keep."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from ranked_runs import PLAN, write_ranked_run, write_ranked_runs

from elastic_core.errors import InputError
from elastic_core.results import systems
from elastic_core.results.compare import NO_RANKS
from elastic_core.results.markdown import BEGIN, END, readme_tables, results_tables, rewrite_documents
from elastic_core.results.reproduce import System
from elastic_core.results.systems import DIVERGED, mark_notes, system_title
from elastic_core.results.table import compare_system

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
    assert written == tables(ROOT / "checkpoints"), "elastic reproduce --readme writes what should stand there"
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
    cell = r"%s\+0\.\d{4}%s \(\+0\.\d{4} to \+0\.\d{4}\), %s \|  \|$"  # SASRec with convolution was not trained
    assert re.search(cell % ("", "", "one run"), readme_tables(tmp_path), re.MULTILINE)
    write_ranked_run(tmp_path, PLAN["planted-sasrec-seed1"], 0.05, 9)
    assert re.search(cell % (r"\*\*", r"\*\*", "< 0.0001"), readme_tables(tmp_path), re.MULTILINE)


def difference_from(text: str, system: str) -> str:
    """What ELASTIC has more than a system, as its row of RESULTS has it."""
    (line,) = re.findall(rf"^\| {system} \| .*$", text, re.MULTILINE)
    return line.split(" | ")[-2]


def test_one_run_claims_nothing_and_several_seeds_may(tmp_path: Path) -> None:
    for number, (name, good) in enumerate([("planted-popularity", 0.02), ("planted-sasrec", 0.05), ("planted-elastic", 0.2)]):
        write_ranked_run(tmp_path, PLAN[name], good, number)
    (popularity, sasrec) = (difference_from(results_tables(tmp_path), name) for name in ("Popularity", "SASRec"))
    assert all(cell.startswith("+0.") and cell.endswith("), one run") for cell in (popularity, sasrec)), "people alone"

    again = [PLAN["planted-sasrec-seed1"], PLAN["planted-elastic-seed1"]]
    write_ranked_run(tmp_path, again[1], 0.21, 4)
    text = results_tables(tmp_path)
    assert re.match(r"\*\*\+0\.\d{4}\*\* \(", difference_from(text, "Popularity")), "a floor has no training noise"
    assert difference_from(text, "SASRec").endswith("), one run") and "**" not in difference_from(text, "SASRec")
    write_ranked_run(tmp_path, again[0], 0.05, 5)
    assert re.match(r"\*\*\+0\.\d{4}\*\* \(", difference_from(results_tables(tmp_path), "SASRec"))
    (tmp_path / "planted-sasrec" / "ranks.safetensors").unlink()
    assert NO_RANKS in results_tables(tmp_path)


def test_of_two_recipes_the_one_that_sasrec_shares_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("ml-1m-popularity", "ml-1m-cpu-elastic", "ml-1m-elastic", "ml-1m-cpu-sasrec")
    data = PLAN["planted-sasrec"].config.data  # films need not be on this machine
    made_up = [replace(PLAN[name], config=replace(PLAN[name].config, data=data)) for name in ours]
    monkeypatch.setattr(systems, "planned_runs", lambda: made_up)
    for number, (row, good) in enumerate(zip(made_up, (0.02, 0.2, 0.1, 0.05), strict=True)):
        write_ranked_run(tmp_path, row, good, number)
    _, _, line = readme_tables(tmp_path).split("\n\n")[1].splitlines()
    cells = line.strip("| ").split(" | ")
    assert "20 minutes" in cells[0] and "one run" in line, "who had 20 minutes is held against who had"


def test_a_line_claims_what_the_table_of_all_systems_does(tmp_path: Path) -> None:
    """A difference is adjusted for every system that ELASTIC is held against, not for the one that is shown."""
    systems = ("sasrec", "gru4rec", "lrurec", "hstu", "fpmc", "elastic")
    for number, name in enumerate(systems):
        for seed in range(2):
            row = PLAN[f"planted-64-{name}{f'-seed{seed}' if seed else ''}"]
            write_ranked_run(tmp_path, row, 0.215 if name == "elastic" else 0.2, 2 * number + seed)
    in_results = difference_from(results_tables(tmp_path), "SASRec")
    shown = readme_tables(tmp_path).splitlines()[-3]
    assert shown.startswith("| Planted")
    low, sure = re.search(r"\((.\d\.\d+) to .*?, ([\d.]+) \|  \|$", shown).groups()  # type: ignore[union-attr]
    assert float(low) > 0 and float(sure) > 0.05 and "**" not in shown
    assert shown.endswith(f"| {in_results} |  |")


def test_a_repeat_bias_stands_beside_others_with_one_and_beside_itself_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a recipe: no row sets a system that has it against one that has not, but its own."""
    data = PLAN["planted-sasrec"].config.data  # films need not be on this machine
    names = ("sasrec", "sasrec-repeats", "elastic", "elastic-repeats")
    made_up = [replace(row, config=replace(row.config, data=data)) for row in (PLAN[f"ml-100k-{name}"] for name in names)]
    monkeypatch.setattr(systems, "planned_runs", lambda: made_up)
    for seed, (planned, good) in enumerate(zip(made_up, (0.05, 0.3, 0.1, 0.4), strict=True)):
        write_ranked_run(tmp_path, planned, good, seed)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in results_tables(tmp_path).splitlines()]
    score = {each[0]: float(each[2].split(" ")[0]) for each in cells if each and each[1] == "1"}
    more = {each[0]: float(each[7].split(" ")[0]) for each in cells if each and each[1] == "1" and each[7]}
    plain, biased = (title for title in score if title.startswith("ELASTIC, K"))
    expected = {
        "SASRec": score[plain] - score["SASRec"],
        "SASRec, with a bonus for seen items": score[biased] - score["SASRec, with a bonus for seen items"],
        f"ELASTIC: {systems.WITH_REPEATS}": score[plain] - score[biased],
    }
    assert more == pytest.approx(expected, abs=2e-4)


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
    assert re.search(r"\| \*\*\+0\.\d{4}\*\* \([^|]* \|  \|$", readme_tables(tmp_path), re.MULTILINE)
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


@pytest.mark.parametrize(
    ("losses", "rose"),
    [
        ((6.5, 6.4, 6.6, 6.7), True),
        ((6.5, 6.4, 6.6, 6.4), False),
        ((6.5, 6.4, 6.45, 6.5), False),
        ((6.4, 6.6), False),
        ((), False),
    ],
)
def test_a_row_whose_training_loss_rose_at_the_end_is_marked(tmp_path: Path, losses: tuple[float, ...], rose: bool) -> None:
    """The last two epochs, more than 2 % above the lowest: one bad epoch, which the clock may have cut short, is none."""
    row = PLAN["planted-sasrec"]
    run = write_ranked_run(tmp_path, row, 0.02, 0)
    for number, loss in enumerate(losses, 1):
        run.append_event({"event": "epoch", "epoch": number, "loss": loss, "targets": 1})
    title = system_title(row.system, [run])
    assert (DIVERGED in title) is rose and len(mark_notes([title])) == rose
