"""What a study may claim.

*yes* and *no* need an interval over people and training seeds that leaves out 0, and an adjusted p below 0.05
(results/compare.py). *level* needs that a difference of `margin` or more, either way, can be ruled out: two one-sided tests
(Schuirmann 1987), adjusted alike. Anything else is *not known*, with the difference that would have been found. All questions
are asked of the same people, so every p is multiplied by their number (Bonferroni); of one question, "no difference" and "a
large difference" cannot both be true, so both its tests count once. What is compared was chosen on validation, never on the
test, and so was the margin. Two trainings that happen to lie close show none of their noise, so it is pooled over all systems
of a study, which were trained alike; the larger of that and a system's own counts. Drawn under the null, with three systems of
two trainings each whose noise is none to large, own experts "pay" in at most 3 of 100 worlds (tests/test_study.py); without the
pool anything at all was claimed in up to 16.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray

from elastic_core.results.compare import ONE_RUN, find_winner, p_text
from elastic_core.results.statistics import (
    LEVEL,
    Contrast,
    TrainingNoise,
    detectable_from_interval,
    equivalence_test,
    paired_difference,
)

Answer = Literal["yes", "no", "level", "not known"]
MARGIN = 0.05  # of the best baseline's validation score: a difference that is worth knowing


class Question(NamedTuple):
    """Is A better than B? A metric by training and user, [S, n] and [S', n]; `trained`: does a seed move A, does one move B?
    `noise`: what the trainings of all systems show of that. `cut`: the clock ended A while it still got better. `margin`: NDCG@10
    by which they may differ and still be called level; 0: they are never called so."""

    a: ndarray
    b: ndarray
    trained: tuple[bool, bool] = (True, True)
    noise: TrainingNoise | None = None
    cut: bool = False
    margin: float = 0.0

    @classmethod
    def of_same(cls, more: ndarray, less: ndarray, noise: TrainingNoise | None = None, margin: float = 0.0) -> "Question":
        """Of the same trainings, asked in two ways [S, n]: a seed moves both alike, and `noise` is that of such differences."""
        return cls(more - less, np.zeros((1, more.shape[1])), (True, False), noise, margin=margin)

    @property
    def contrast(self) -> Contrast:
        return paired_difference(self.a, self.b, self.trained, self.noise)

    @property
    def p_of_large_difference(self) -> float:
        """p of a difference of `margin` or more, either way."""
        return equivalence_test(self.a, self.b, self.margin, self.trained, self.noise) if self.margin else 1.0


class Finding(NamedTuple):
    """What came of a question. Among all that were asked together, `adjusted`: the p of no difference, NaN where nothing may be
    claimed; `adjusted_large`: the p of a large one."""

    question: Question
    contrast: Contrast
    adjusted: float
    adjusted_large: float = math.nan

    @property
    def behind(self) -> bool:
        """Whether B may be called better."""
        return find_winner(self.contrast, self.adjusted) == "B"

    @property
    def level(self) -> bool:
        """Whether they may be called level."""
        return not find_winner(self.contrast, self.adjusted) and self.adjusted_large < LEVEL

    @property
    def answer(self) -> Answer:
        """What is behind, or level, and was not done learning is no answer."""
        if find_winner(self.contrast, self.adjusted) == "A":
            return "yes"
        if self.question.cut or not (self.behind or self.level):
            return "not known"
        return "no" if self.behind else "level"

    @property
    def users(self) -> int:
        return self.question.a.shape[1]

    @property
    def detectable(self) -> float:
        """The difference that would have been found four times out of five."""
        return detectable_from_interval(self.contrast.low, self.contrast.high)

    @property
    def numbers(self) -> str:
        """`+0.0123 (95% +0.0010 to +0.0236; 943 people; adjusted p 0.0312)`"""
        c = self.contrast
        p = f"adjusted p {p_text(self.adjusted)}" if c.seeds_counted else ONE_RUN
        return f"{c.difference:+.4f} (95% {c.low:+.4f} to {c.high:+.4f}; {self.users:,} people; {p})"

    @property
    def why_unknown(self) -> str:
        if self.behind or self.level:
            return f"{'behind' if self.behind else 'level'} as it is, but it still got better when the time was up"
        return f"a difference of {self.detectable:.4f} would have been found four times out of five"


def answer_together(questions: Mapping[str, Question]) -> dict[str, Finding]:
    """All of them together. One that is asked of fewer than two users, or of one training, is not known."""
    contrasts = {key: question.contrast for key, question in questions.items()}
    together = sum(contrast.seeds_counted for contrast in contrasts.values())
    findings = dict[str, Finding]()
    for key, contrast in contrasts.items():
        p_values = (contrast.p, questions[key].p_of_large_difference) if contrast.seeds_counted else (math.nan, math.nan)
        findings[key] = Finding(questions[key], contrast, *(min(1.0, together * p) for p in p_values))
    return findings


def answer_in_turn(questions: Sequence[Question], first: Finding, together: int) -> list[Finding]:
    """Questions that are asked one after the other, each only where the one before it was answered yes, `first` before all: they
    cost the others nothing. Each p is multiplied by how many were asked `together` with the first (Westfall and Krishen 2001)."""
    findings, before = [], first
    for question in questions:
        contrast = question.contrast
        p = min(1.0, max(contrast.p * together, before.adjusted)) if before.answer == "yes" else 1.0
        before = Finding(question, contrast, p if contrast.seeds_counted else math.nan)
        findings.append(before)
    return findings
