"""What a study may claim. All its questions are asked of the same people, so they are adjusted together (Holm).

A claim needs an interval over people and training seeds that leaves out 0, and an adjusted p below 0.05 (results/compare.py);
anything else is *not known*, with the difference that would have been found. What is compared was chosen on validation, never
on the test. Two trainings that happen to lie close show none of their noise, so it is pooled over all systems of a study, which
were trained alike; the larger of that and a system's own counts. Drawn under the null, with three systems of two trainings each
whose noise is none to large, own experts "pay" in at most 3 of 100 worlds (tests/test_study.py); without the pool anything at all
was claimed in up to 16.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray

from elastic_core.results.compare import ONE_RUN, find_winner, p_text
from elastic_core.results.statistics import Contrast, TrainingNoise, adjust_by_holm, detectable_from_interval, paired_difference

Answer = Literal["yes", "no", "not known"]


class Question(NamedTuple):
    """Is A better than B? A metric by training and user, [S, n] and [S', n]; `trained`: does a seed move A, does one move B?
    `noise`: what the trainings of all systems show of that. `cut`: the clock ended A while it still got better."""

    a: ndarray
    b: ndarray
    trained: tuple[bool, bool] = (True, True)
    noise: TrainingNoise | None = None
    cut: bool = False

    @classmethod
    def of_same(cls, more: ndarray, less: ndarray, noise: TrainingNoise | None = None) -> "Question":
        """Of the same trainings, asked in two ways [S, n]: a seed moves both alike, and `noise` is that of such differences."""
        return cls(more - less, np.zeros((1, more.shape[1])), (True, False), noise)

    @property
    def contrast(self) -> Contrast:
        return paired_difference(self.a, self.b, self.trained, self.noise)


class Finding(NamedTuple):
    """What came of a question. `adjusted`: its p among all that were asked together; NaN where nothing may be claimed."""

    question: Question
    contrast: Contrast
    adjusted: float

    @property
    def behind(self) -> bool:
        """Whether B may be called better."""
        return find_winner(self.contrast, self.adjusted) == "B"

    @property
    def answer(self) -> Answer:
        """What is behind and was not done learning is no answer."""
        if self.behind:
            return "not known" if self.question.cut else "no"
        return "yes" if find_winner(self.contrast, self.adjusted) == "A" else "not known"

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
        if self.behind:
            return "behind as it is, but it still got better when the time was up"
        return f"a difference of {self.detectable:.4f} would have been found four times out of five"


def answer_together(questions: Mapping[str, Question]) -> dict[str, Finding]:
    """All of them together. One that is asked of fewer than two users, or of one training, is not known."""
    contrasts = {key: question.contrast for key, question in questions.items()}
    counted = [key for key, contrast in contrasts.items() if contrast.seeds_counted]
    adjusted = dict[str, float]()
    if counted:
        adjusted = dict(zip(counted, adjust_by_holm(np.array([contrasts[key].p for key in counted])).tolist(), strict=True))
    return {key: Finding(questions[key], contrasts[key], adjusted.get(key, math.nan)) for key in questions}


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
