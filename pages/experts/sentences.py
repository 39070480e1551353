"""What the Experts page says: explanations of its charts (text.md), and numbers as sentences."""

from collections.abc import Hashable, Mapping
from typing import Any

from elastic_core.services.experts import ablation
from elastic_core.services.experts.evidence import Label
from elastic_core.services.experts.items import OwnRanking
from elastic_core.services.person.inspect import split_year
from elastic_core.text import markdown
from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
ALL, PEOPLE, GENRES, ITEMS, EFFECTS, SIBLINGS, NEAREST, TOGETHER, KNOBS, HOT = TEXT.chart_texts(
    "ALL PEOPLE GENRES ITEMS EFFECTS SIBLINGS NEAREST TOGETHER KNOBS HOT"
)
LUCK, MORE = ":gray-badge[may be luck]", ":green-badge[more than luck]"


def name_expert(label: Label | None, alone: OwnRanking) -> str:
    """Say what an expert stands for: what its people have more of, or else what it recommends first by itself."""
    if label is not None and label.genres:
        return f"Its people like {markdown(label.text)}"
    return _first_items(alone, " · ") or "no name"


def _first_items(alone: OwnRanking, between: str) -> str:
    """Name the first two that it recommends by itself; nothing where that is not known."""
    return between.join(markdown(split_year(title)[0]) for title in alone.titles[:2])


def describe_meaning(label: Label | None, alone: OwnRanking, truth: str = "") -> str:
    """Say what its people like, and whether other signs (what it prefers by itself, the `truth` of a made-up world) say the
    same."""
    if label is not None and label.genres:
        said = f"{markdown(label.genres[0])} is {label.lift:.1f} times as common for them."
        others = {alone.genre, truth} - {""}
        if not others:
            return said
        return f"{said} {TEXT('SIGNS_AGREE' if others <= set(label.genres) else 'SIGNS_DIFFER')}"
    why = "" if label is None else f"Too few people ({label.n}) to say what they like. "
    return f"{why}{'Named by what it recommends first.' if alone.titles else ''}".strip()


def meaning_notes(label: Label | None, alone: OwnRanking) -> list[str]:
    """Say how sure that is."""
    doubts = []
    if label is not None and label.genres:
        genre = markdown(label.genres[0])
        doubts.append(TEXT("SURE_LABEL", genre=genre, lift=label.lift, low=label.low, high=label.high, n=label.n))
    if alone.titles:
        doubts.append(TEXT("SURE_FIRST", titles=_first_items(alone, " and ")))
    if alone.genre:
        doubts.append(TEXT("SURE_ALONE", genre=markdown(alone.genre), times=alone.times, chance=alone.chance))
    return doubts


VERDICTS = {
    "worse": "lists get worse without it", "better": "lists get better without it", "unclear": "no clear effect",
    "same": "no effect on NDCG@10", "few": "too few people to say",
}  # fmt: skip


def describe_effect(row: Mapping[Hashable, Any], alike: Mapping[Hashable, Any] | None = None) -> tuple[str, str]:
    """Say what removing it does: a verdict and a sentence, which says where experts as much used (`alike`) are missed as much."""
    word = ablation.effect_verdict(row)
    end = ": nothing that we can measure" if word in ("unclear", "same") else ""
    if word == "worse" and alike is not None and alike["d_ndcg"] <= row["d_ndcg"]:
        end = ". Another as much used does the same harm"
    return VERDICTS[word], f"Removing it changes **{row['replaced']:.1f} of 10** suggestions{end}."


def effect_notes(row: Mapping[Hashable, Any], alike: Mapping[Hashable, Any] | None) -> list[str]:
    """Give the numbers of a removal, beside that of experts which as many people use."""
    if ablation.effect_verdict(row) == "few":
        return []
    null = "" if alike is None else f" Experts that about as many people use: {format_change(alike)}."
    return [f"**Removing it.** NDCG@10 changes by {format_change(row)}, p = {row['p']:.2f}.{null}"]


def format_change(row: Mapping[Hashable, Any]) -> str:
    """Write a difference of NDCG@10 with interval and n."""
    return f"{row['d_ndcg']:+.4f} (95%: {row['low']:+.4f} to {row['high']:+.4f}, {row['n']:,} people)"
