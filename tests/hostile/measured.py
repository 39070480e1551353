"""What was measured, as tables: the csv files below checkpoints/ that screens and commands read, replaced by junk.

Each table has one reader. It gives rows that may have been measured, or none, or one sentence; and whatever it gives can be
said and drawn.
"""

import csv
import io
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from folders import NO_BYTES, NO_FILE
from test_evidence import row as answered

from elastic_core.bench import lisa
from elastic_core.bench.store import read_rows
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.services.evidence import meaning, verdicts
from elastic_core.services.evidence.systems import groups
from elastic_core.services.method import effects
from elastic_core.services.speed import curves
from elastic_core.tuning import best, outcomes
from pages.kit import plot
from pages.speed import charts
from pages.traffic import charts as traffic_charts
from pages.traffic import words

ROOT = Path(__file__).resolve().parents[2]
TABLES = {
    "latency": "benchmarks/latency.csv", "stages": "benchmarks/stages.csv", "events": "benchmarks/events.csv",
    "lisa": "benchmarks/lisa.csv", "profile": "benchmarks/profile.csv",
    "meaning": "benchmarks/meaning.csv", "measured here": "jobs/evidence/meaning.csv", "tuning": "tuning.csv",
}  # fmt: skip
CELLS = (
    "", "-1", "0", "1", "0.5", "nan", "inf", "-1e300", "1e300", "1e-320", "9" * 30, "9" * 5_000, "x" * 131_073, "½", "1,2",
    "True", "<a href='http://127.0.0.1:9/c'>c</a>", "![x](http://127.0.0.1:9/c)", "=1+1", "\x1b[2J\u202e", '"',
)  # fmt: skip
FILES = {
    "no rows": lambda text: text.splitlines()[0] + "\n",
    "no header": lambda text: text.partition("\n")[2],
    "half a row": lambda text: text[: len(text) - 40],
    "a column too many": lambda text: "".join(f"{line},1\n" for line in text.splitlines()),
    "a cell too many": lambda text: text + text.splitlines()[-1] + ",1\n",
    "one column twice": lambda text: "".join(f"{line.partition(',')[0]},{line}\n" for line in text.splitlines()),
    "a quotation that never ends": lambda text: text + '"',
    "semicolons": lambda text: text.replace(",", ";"),
    "ten megabytes of rows": lambda text: text + (text.splitlines()[-1] + "\n") * (10 * 2**20 // len(text.splitlines()[-1])),
    "a million columns": lambda text: "a," * 10**6 + "b\n1\n",
    "each row another system": lambda text: "".join(
        line.replace("elastic", f"elastic{i}") + "\n" for i, line in enumerate((text.splitlines() * 60)[:600])
    ),
    "all rows alike": lambda text: "\n".join([text.splitlines()[0], *[text.splitlines()[1]] * 50]) + "\n",
}  # fmt: skip


def shipped(name: str) -> str:
    """The first lines of a table as it came along, whole rows; of what is measured here, the same."""
    path = ROOT / "checkpoints" / TABLES["meaning" if name == "measured here" else name]
    head, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join([head, *([row for row in rows if name != "profile" or "rows=all" in row][:48])])


def with_cell(text: str, column: str, cell: str) -> str:
    """One cell changed, in the second row, where it may stand beside a good one, and in the last."""
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in (rows[0], rows[-1]):
        row[column] = cell
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def columns(name: str) -> list[str]:
    return shipped(name).splitlines()[0].split(",")


def checkout(tiny_runs: Path, place: Path) -> Path:
    """Two good runs beside all tables as they came along, and what was measured of the weights that are there."""
    root = Path(shutil.copytree(tiny_runs, place / "checkpoints"))
    for name, file in TABLES.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        text = shipped(name)
        if "meaning" in file:
            run = Run(root / "tiny")
            text = meaning.text([answered(run, genres=math.nan, genres_shuffled=math.nan)])
        (root / file).write_text(text)
        whole(root, name).parent.mkdir(exist_ok=True)
        whole(root, name).write_text(text)
    return root


def whole(root: Path, name: str) -> Path:
    """Where a table of a `checkout` stays as it was."""
    return root.parent / "whole" / f"{name}.csv"


def files(name: str) -> Iterator[tuple[str, Callable[[Path, str], object]]]:
    """Whole files, each with what it is."""
    for what, (make, _) in NO_FILE.items():
        yield what, lambda place, text, make=make: (place.unlink(), make(place))
    for what, (data, _) in NO_BYTES.items():
        yield (
            what,
            lambda place, text, data=data: place.write_bytes(
                data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
            ),
        )
    for what, alter in FILES.items():
        yield what, lambda place, text, alter=alter: place.write_text(alter(text))


# --- who reads them --------------------------------------------------------------------------------------------------


def said(root: Path, name: str) -> list[str]:
    """Everything that is said of a table. Whoever cannot read it says so in a sentence, or has nothing to say."""
    found = list[str]()
    try:
        found += SAYS[name](root)
    except InputError as error:
        found.append(str(error))
    for sentence in found:
        assert "Traceback" not in sentence and len(sentence) < 20_000, sentence[:300]
    return found


def latencies(root: Path) -> Iterator[str]:
    read_rows(root / TABLES["latency"])
    table = curves.shipped(root)
    assert np.isfinite(table[["ms", "low", "high", "processor", "memory", "load"]].to_numpy(float)).all()
    mine, column = curves.usual(table)
    yield from verdicts.faster(root).lines.values()
    yield effects.of_speed(root).text
    yield curves.machine(mine)
    yield curves.memory_words(mine)
    yield from map(curves.shape_name, curves.shapes(table))
    if len(mine):
        fits = {system: fit for system in set(mine["system"]) if (fit := curves.fit_line(mine, system, column)) is not None}
        charts.curves(
            mine,
            fits,
            plot.palette(False),
            column,
            "ms",
            curves.crossings(curves.versus(mine, "elastic", "sasrec-fused", column)),
        )


def stages_and_events(root: Path) -> Iterator[str]:
    stages, events = (curves.table_of(root / TABLES[name]) for name in ("stages", "events"))
    if len(events):
        trusted, clock = curves.trusted(events)
        yield curves.event_words(trusted.pivot_table(index="length", columns="system", values="ms")) + clock
        charts.events(trusted, plot.palette(False))
        yield curves.machine(events)
    if len(stages):
        for system in stages["system"].unique():
            mine, _ = curves.trusted(stages[stages["system"] == system])
            if words := curves.stage_words(mine):
                yield words
                figure = charts.stages(mine[mine["stage"] != "whole pass"], plot.palette(False))
                assert "<a" not in str(figure.data[0].y)
        yield curves.machine(stages)


def steps_of_training(root: Path) -> Iterator[str]:
    table = curves.training_steps(root)
    for system in set(table["system"]) if len(table) else ():
        mine = table[table["system"] == system]
        figure = charts.steps(mine[mine["stage"] != "whole pass"], plot.palette(False))
        assert "<a" not in str(figure.data[0].y) and np.isfinite(mine[["there", "back", "kept"]].to_numpy()).all()
        yield curves.machine(mine)


def lisas(root: Path) -> Iterator[str]:
    read_rows(root / TABLES["lisa"])
    table = curves.of_lisa(root)
    assert np.isfinite(table["here"]).all() and set(table["question"]) <= {
        lisa.SMALLER,
        lisa.LATER,
        lisa.FASTER,
        lisa.AHEAD,
        lisa.LIGHTER,
    }
    yield lisa.as_markdown(read_rows(root / TABLES["lisa"]))


def memories(root: Path) -> Iterator[str]:
    runs = [Run(root / name) for name in ("tiny", "tiny-peer")]
    for verdict in meaning.verdicts(groups(runs)[0], meaning.of_runs(root, runs)):
        yield from verdict.lines.values()
        yield from (finding.sentence for finding in verdict.findings)
    for each in meaning.of_runs(root, runs).values():
        yield words.interest_or_activity(each)
        traffic_charts.gauges(words.gauge_table(each), plot.palette(False))
        yield from meaning.recovered(each)["model"]


def trainings(root: Path) -> Iterator[str]:
    found = outcomes(root / TABLES["tuning"])
    for model in {each.model for each in found}:
        chosen = best(found, model)
        assert chosen is None or 0 <= chosen.valid <= 1
        yield "none of the grid" if chosen is None else f"{chosen.point}: {chosen.valid:.4f}"


SAYS: dict[str, Callable[[Path], Iterator[str]]] = {
    "latency": latencies, "stages": stages_and_events, "events": stages_and_events, "meaning": memories,
    "measured here": memories, "tuning": trainings, "lisa": lisas, "profile": steps_of_training,
}  # fmt: skip
