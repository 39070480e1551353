"""LISA's claims of cost: what is timed is what it says, and every figure follows from rows of one measurement."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from measuring import but
from test_lisa import restore

from elastic_core import models
from elastic_core.bench import lisa
from elastic_core.bench.events import EVENT, STEP
from elastic_core.bench.latency import OP, Setting
from elastic_core.bench.store import Row, read_rows, write_rows
from elastic_core.commands import bench, main
from elastic_core.peers.lisa import HistogramAttention

ROOT = Path(__file__).resolve().parents[1]
CPU = torch.device("cpu")
RESULTS = (ROOT / "checkpoints" / "RESULTS.md").read_text(encoding="utf-8")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Everything there is to measure, in seconds; the folder that the rows go to."""
    tables = {question: (metric, both.replace("=128", "=16"), text) for question, (metric, both, text) in lisa.CLAIMS.items()}
    for large, little in (("80000", "300"), ("65536", "40"), ("16384", "16"), ("2048", "8"), ("=512", "=8"), ("=256", "=4")):
        tables = {question: (*told, text.replace(large, little)) for question, (*told, text) in tables.items()}
    for large, little in (("length=128", "length=8"), ("width=128", "width=16"), ("width=1024", "width=32")):
        tables = {question: (*told, text.replace(large, little)) for question, (*told, text) in tables.items()}
    lines = tables[lisa.SMALLER][-1].splitlines()
    tables[lisa.SMALLER] = (*tables[lisa.SMALLER][:2], "\n".join(line for line in lines if "Alibaba" in line))
    sizes = {"TABLE_2": {"data": (300, 16)}, "READ": (4, 8, 16, 40), "LENGTHS": (8, 16), "WIDTH": 16, "WIDE": 32}
    for name, value in {**sizes, "CLAIMS": tables}.items():
        monkeypatch.setattr(lisa, name, value)
    monkeypatch.setattr(bench, "CHECKPOINTS", tmp_path)
    return tmp_path / "benchmarks" / "lisa.csv"


def test_the_command_measures_every_claim_once_and_goes_on(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--lisa", "--rounds", "2"]) == 0
    told, rows = capsys.readouterr(), read_rows(small)
    assert not any(math.isnan(claim.here) for claim in lisa.claims(rows)) and told.out.count("\n| --- |") == 5
    left = [row for row in rows if row.length != 16]
    write_rows(small, left)
    assert 0 < len(left) < len(rows) and any(math.isnan(claim.here) for claim in lisa.claims(left))
    assert main(["bench", "--lisa", "--rounds", "2"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == ["one more event", *(f"attention alone, d = {d}, N = 16" for d in (16, 32))], (
        "what is there is not measured again"
    )
    assert {(r.system, r.rows, r.width, r.length) for r in read_rows(small)} == {
        (r.system, r.rows, r.width, r.length) for r in rows
    }


def test_what_is_timed_is_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both Transformers are one; what LISA is given is codes, and its last row is that of a shorter history: causal."""
    jobs = lisa.attentions(Setting(length=24, width=16, tokens=48))
    found = {name: job() for name, job in jobs.items()}
    assert {tuple(x.shape) for x in found.values()} == {(2, 24, 16)}
    torch.testing.assert_close(found[lisa.WRITTEN], found[lisa.FUSED])
    assert not torch.allclose(found[lisa.LINFORMER], found[lisa.FUSED], atol=1e-2)
    given: list[tuple[torch.Tensor, ...]] = []
    whole = HistogramAttention.forward

    def listening(self: HistogramAttention, *inputs: Any) -> torch.Tensor:
        given.append(inputs)
        return whole(self, *inputs)

    monkeypatch.setattr(HistogramAttention, "forward", listening)
    for name, words in lisa.LISAS.items():
        torch.testing.assert_close(jobs[name](), found[name])
        chosen, counted, _ = given.pop()
        assert counted.shape == (2, 24, lisa.BOOKS, words) and words * lisa.BOOKS == int(name.split("-")[1])
        assert torch.equal(counted.argmax(-1), chosen) and (counted.sum(-1) == 1).all()


def test_a_step_comes_after_as_many_events_as_it_says() -> None:
    for n in (5, 300):
        kept = {name: lisa._after(name, n, CPU) for name in ("lisa", "sasrec")}
        assert not kept["lisa"].grows and kept["lisa"].numbers() == 1 + lisa.BOOKS * 32
        assert kept["sasrec"].first == 0 and kept["sasrec"].model.length - kept["sasrec"].room == n, "all n columns are read"
        assert (kept["sasrec"].kept["0.keys"] != 0).any(-1).all() and torch.isfinite(kept["sasrec"].step(torch.tensor([1]))).all()
        counts = kept["lisa"].kept["0.counts"].sum(-1)
        torch.testing.assert_close(counts, torch.full_like(counts, sum(math.exp(-0.1 * i) for i in range(n))))


def test_bytes_are_those_of_files_that_hold_the_table(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[Any] = []

    def listening(model: models.Recommender) -> Any:
        files.append((compress(model), model.scorer().table))
        return files[-1][0]

    compress = lisa.compress
    monkeypatch.setattr(lisa, "compress", listening)
    for form in ("base", "mini"):
        (row,) = lisa.codes(CPU, 300, 16, form)
        (plain, packed), table = files.pop()
        assert (row.peak, row.saved, row.length) == (plain, len(packed), 300)
        assert torch.equal(restore(packed), table) and row.peak >= 4 * 301 * 16


def test_a_figure_is_a_ratio_of_one_measurement() -> None:
    (blank,) = lisa.alone(CPU, Setting(length=128, width=128, k=0, side=0, layers=1, tokens=128), 1)[:1]

    def row(system: str, rows: str = OP, processor: float = 1.0, **values: Any) -> Row:
        return but(blank, system=system, rows=rows, processor=processor, **values)

    rows = [row("LISA-128", peak=10), row(lisa.WRITTEN, processor=3.0, peak=40), row(lisa.FUSED, processor=2.0, commit="other")]
    rows += [row(name, length=16_384, peak=peak) for name, peak in (("LISA-128", 10), (lisa.WRITTEN, 40))]
    rows += [row("LISA-256", STEP, processor=t, length=n, direction=EVENT) for n, t in ((256, 1.0), (65_536, 1.5))]
    rows += [row("Transformer", STEP, processor=6.0, length=65_536, direction=EVENT)]
    found = {(c.question, c.system, c.where): c for c in lisa.claims(rows)}
    there = {key: claim.here for key, claim in found.items() if not math.isnan(claim.here)}
    assert there == {
        (lisa.AHEAD, lisa.WRITTEN, "N = 128, d = 128"): 3.0,
        (lisa.AHEAD, lisa.WRITTEN, "N = 16,384, d = 128"): 1.0,
        (lisa.LIGHTER, "LISA-128", "N = 16,384, d = 128"): 4.0,
        (lisa.LATER, "LISA-256", "65,536"): 1.5,
        (lisa.FASTER, "LISA-256", "65,536"): 4.0,
    }
    assert found[lisa.LIGHTER, "LISA-128", "N = 16,384, d = 128"].paper == 78.26
    assert found[lisa.FASTER, "LISA-256", "65,536"].paper == pytest.approx(13.6, abs=0.05)


def test_the_results_say_what_the_rows_say() -> None:
    begin, end = "<!-- lisa -->", "<!-- /lisa -->"
    written = RESULTS[RESULTS.index(begin) + len(begin) : RESULTS.index(end)].strip()
    assert written == lisa.as_markdown(read_rows(ROOT / "checkpoints" / "benchmarks" / "lisa.csv")), (
        "bench --lisa --list prints it"
    )
