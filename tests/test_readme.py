"""What the README claims is what the runs in checkpoints/ measured: every mean of its tables, to the last digit."""

import re
from pathlib import Path

import pytest

from elastic_core.runs import Run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROTOCOLS = ("full", "full-seen", "pop100", "uniform100")
SEEDS = ("", "-seed1", "-seed2")
ROWS = {
    "MovieLens-100K": {
        "popularity": ["ml-100k-popularity"],
        "co-occurrence": ["ml-100k-cooccurrence"],
        "SASRec": [f"ml-100k-sasrec{seed}" for seed in SEEDS],
        "ELASTIC, K = 16²": [f"ml-100k-elastic{seed}" for seed in SEEDS],
    },
    "MovieLens-1M": {
        "popularity": ["ml-1m-popularity"],
        "co-occurrence": ["ml-1m-cooccurrence"],
        "SASRec": ["ml-1m-cpu-sasrec"],
        "ELASTIC, K = 16²": ["ml-1m-cpu-elastic"],
    },
    "Planted world": {
        "popularity": ["planted-popularity"],
        "co-occurrence": ["planted-cooccurrence"],
        "SASRec": ["planted-sasrec"],
        "ELASTIC, K = 8²": ["planted-elastic"],
    },
}
VARIANTS = {
    "no dispatcher": "dispatch-none",
    "no local convolution": "no-local",
    "average pooling": "query-mean",
    "no memory": "memory-none",
    "PKM-ACT": "pkm-act",
    "layer norm": "norm-layer",
    "no gate": "gate-none",
}


def mean(runs: list[str], protocol: str, metric: str = "NDCG@10") -> str:
    tests = [Run(ROOT / "checkpoints" / name).last("test") for name in runs]
    assert all(tests), runs
    return f"{sum(test['protocols'][protocol][metric] for test in tests if test) / len(tests):.4f}"


def row(section: str, label: str) -> list[str]:
    """The first table row after the bold name of a section that begins so, as its numbers in front of ±."""
    text = README[README.index(f"**{section}") :]
    (line,) = re.findall(rf"^\| {re.escape(label)}.*$", text, re.MULTILINE)[:1]
    return re.findall(r"(?:\*\*)?(\d\.\d{4})(?:\*\*)? ±", line)


@pytest.mark.parametrize(("section", "label"), [(section, label) for section, rows in ROWS.items() for label in rows])
def test_result_tables(section: str, label: str) -> None:
    runs = ROWS[section][label]
    assert row(section, label)[:4] == [mean(runs, protocol) for protocol in PROTOCOLS]


@pytest.mark.parametrize("label", VARIANTS)
def test_ablation_table(label: str) -> None:
    assert row("What carries it", label) == [mean([f"ml-100k-elastic-{VARIANTS[label]}"], "full")]


def test_every_picture_and_file_it_names_is_there() -> None:
    named = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"`((?:elastic_core|pages|tests|checkpoints)/[\w./-]+)`", README)
    local = [name for name in named if not name.startswith("http") and "local-" not in name]
    assert len(local) > 15 and not [name for name in local if not (ROOT / name).exists()]
