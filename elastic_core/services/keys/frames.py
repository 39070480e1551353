"""The search of one query as plain numbers, for a picture that moves from step to step to draw, and for a browser to check.

All of it comes from the search by product keys that the model itself runs; the picture adds nothing.
"""

from typing import TypedDict

from elastic_core.core.elastic import candidate_ranks
from elastic_core.services.keys import checks
from elastic_core.services.keys.search import NAMES, Lesson, candidates, gathered, half_scores


class Pair(TypedDict):
    """A kept row with a kept column; `i` and `j` are their places by score, from 1, `place` that of a winner, else 0."""

    i: int
    j: int
    row: int
    column: int
    sum: float
    can: bool
    place: int


class Winner(TypedDict):
    expert: int
    row: int
    column: int
    score: float
    share: float  # of all weights


class Counts(TypedDict):
    """Work of one search, by halves and one by one. Sorting is left out of both."""

    short: int
    multiplications: int
    pairs: int
    long: int
    long_multiplications: int


class Frames(TypedDict):
    """What a step shows; lists are plain so that they travel as they are."""

    side: int
    width: int
    k: int
    query: list[list[float]]  # both halves, d/2 numbers each
    scores: list[list[float]]  # of all rows, of all columns
    order: list[list[int]]  # the kept rows, the kept columns, best first
    pairs: list[Pair]
    winners: list[Winner]
    vectors: list[list[float]]  # of the winners, d numbers each; none where the experts are not written out
    counts: Counts


def frames(lesson: Lesson) -> Frames:
    """All steps of one search."""
    halves, table, found = half_scores(lesson), candidates(lesson), gathered(lesson)
    kept = halves[halves["kept"]].sort_values("rank")
    order = [kept.loc[kept["half"] == name, "sub_key"].tolist() for name in NAMES]
    pairs = [
        Pair(i=int(p.rank_row), j=int(p.rank_column), row=int(p.row), column=int(p.column), sum=float(p.score),
             can=bool(p.can_win), place=place)
        for p, place in zip(table.itertuples(), table["place"].fillna(0).astype(int).tolist(), strict=True)
    ]  # fmt: skip
    winners = [
        Winner(expert=int(w.expert), row=int(w.row), column=int(w.column), score=float(w.score), share=float(w.share))
        for w in found.itertuples()
    ]
    vectors = lesson.values[lesson.winners.indices].tolist() if len(lesson.values) else []
    middle, query = lesson.width // 2, lesson.query.tolist()
    return Frames(
        side=lesson.side, width=lesson.width, k=lesson.k, query=[query[:middle], query[middle:]],
        scores=lesson.halves.tolist(), order=order, pairs=pairs, winners=winners, vectors=vectors, counts=counts(lesson),
    )  # fmt: skip


def counts(lesson: Lesson) -> Counts:
    """What one search costs, by halves and one by one."""
    flat, product = checks.operations(lesson.side, lesson.width, lesson.k)["multiplications"].tolist()
    return Counts(
        short=2 * lesson.side, multiplications=product, pairs=len(candidate_ranks(lesson.k, lesson.side)),
        long=lesson.side**2, long_multiplications=flat,
    )  # fmt: skip
