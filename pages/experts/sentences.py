"""What the Experts page says: explanations of its charts (text.md), and numbers as sentences."""

from collections.abc import Hashable, Mapping
from typing import Any

from elastic_core.services.experts import ablation
from elastic_core.services.experts.evidence import Label
from elastic_core.services.experts.items import OwnRanking
from elastic_core.services.person.inspect import split_year
from elastic_core.text import escape_markdown
from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
ALL, USERS, GENRES, ITEMS, EFFECTS, SIBLINGS, NEAREST, TOGETHER, KNOBS, HOT = TEXT.chart_texts(
    "ALL PEOPLE GENRES ITEMS EFFECTS SIBLINGS NEAREST TOGETHER KNOBS HOT"
)


def first_titles(own_ranking: OwnRanking, between: str) -> str:
    """Name the first two that an expert recommends by itself; nothing where that is not known."""
    return between.join(escape_markdown(split_year(title)[0]) for title in own_ranking.titles[:2])


def meaning_notes(label: Label | None, own_ranking: OwnRanking) -> list[str]:
    """Say what other evidence there is: what its people like, and what it recommends by itself."""
    doubts = []
    if label is not None and label.genres:
        genre = escape_markdown(label.genres[0])
        doubts.append(TEXT("SURE_LABEL", genre=genre, lift=label.lift, low=label.low, high=label.high, n=label.n))
    if own_ranking.titles:
        doubts.append(TEXT("SURE_FIRST", titles=first_titles(own_ranking, " and ")))
    if own_ranking.genre:
        doubts.append(
            TEXT("SURE_ALONE", genre=escape_markdown(own_ranking.genre), times=own_ranking.times, chance=own_ranking.chance)
        )
    return doubts


VERDICTS = {
    "worse": "Yes, worse", "better": "No, they get better",
    "unclear": "No clear effect", "same": "No effect", "few": "Too few people to say",
}  # fmt: skip


def describe_effect(row: Mapping[Hashable, Any], matched_row: Mapping[Hashable, Any] | None = None) -> tuple[str, str]:
    """Say what removing it does: a verdict and a sentence, which says where experts as much used (`matched_row`) are missed as
    much."""
    verdict = ablation.effect_verdict(row)
    ending = "."
    if verdict == "same":
        ending = ", and what people really chose next stays where it was."
    elif verdict == "unclear":
        ending = ". The rank of what people really chose next does not clearly change."
    elif verdict == "worse" and matched_row is not None and matched_row["d_ndcg"] <= row["d_ndcg"]:
        ending = ". Removing another expert that as many people use does the same harm."
    return VERDICTS[verdict], f"Per person, **{row['replaced']:.1f} of 10** suggestions change on average{ending}"


def effect_notes(row: Mapping[Hashable, Any], matched_row: Mapping[Hashable, Any] | None) -> list[str]:
    """Give the numbers of a removal, beside that of experts which as many people use."""
    if ablation.effect_verdict(row) == "few":
        return []
    null = (
        ""
        if matched_row is None
        else f" Removing experts that about as many people use changes it by {format_change(matched_row)}."
    )
    return [f"**Removing it** changes NDCG@10 by {format_change(row)}, p = {row['p']:.2f}.{null}"]


def format_change(row: Mapping[Hashable, Any]) -> str:
    """Write a difference of NDCG@10 with interval and n."""
    return f"{row['d_ndcg']:+.4f} (95%: {row['low']:+.4f} to {row['high']:+.4f}, {row['n']:,} people)"
