"""The search of one query as plain numbers, for a picture that moves from step to step to draw, and for a browser to check.

All of it comes from the search by product keys that the model itself runs; the picture adds nothing.
"""

from typing import Any

from elastic_core.core.elastic import candidate_ranks
from elastic_core.services.keys.search import NAMES, Lesson

PAIR = {"rank_row": "i", "rank_column": "j", "row": "row", "column": "column", "score": "sum", "can_win": "can", "place": "place"}


def search_frames(lesson: Lesson) -> dict[str, Any]:
    """What the steps of one search show, as lists and dictionaries that travel as they are.

    side, width, k; `query` and `scores` by halves; `order`, the kept rows and columns, best first; `pairs` of them: their places
    by score, from 1 (i, j), row, column, sum, whether they can win, and a winner's place, else 0; `winners`: expert, row, column,
    score, share of all weights; their `vectors`, none where the experts are not written out; `counts`."""
    pairs = lesson.candidates.rename(columns=PAIR)[[*PAIR.values()]]
    return {
        "side": lesson.n_subkeys, "width": lesson.width, "k": lesson.k,
        "query": lesson.query.unflatten(0, (2, -1)).tolist(), "scores": lesson.halves.tolist(),
        "order": [pairs[name].unique().tolist() for name in NAMES],
        "pairs": pairs.assign(place=pairs["place"].fillna(0).astype(int)).to_dict("records"),
        "winners": lesson.winner_rows[["expert", "row", "column", "score", "share"]].to_dict("records"),
        "vectors": lesson.values[lesson.winners.indices].tolist() if len(lesson.values) else [], "counts": count_scores(lesson),
    }  # fmt: skip


def count_scores(lesson: Lesson) -> dict[str, int]:
    """What one search costs, by halves and one by one; sorting is left out of both."""
    pairs = len(candidate_ranks(lesson.k, lesson.n_subkeys))
    return {
        "short": 2 * lesson.n_subkeys, "multiplications": lesson.n_subkeys * lesson.width, "pairs": pairs,
        "long": lesson.n_subkeys**2, "long_multiplications": lesson.n_subkeys**2 * lesson.width,
    }  # fmt: skip
