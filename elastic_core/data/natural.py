"""The natural order of ids: "2" before "10", "b2" before "b10"."""

import re
from collections.abc import Iterable

import numpy as np

DIGITS = re.compile(r"[0-9]+")


def natural_order(ids: Iterable[str]) -> np.ndarray:
    """Positions that put ids into natural order: runs of digits compare as numbers."""
    texts = list(ids)
    joined = "".join(texts)
    if joined.isascii() and joined.isdecimal() and all(texts) and max(map(len, texts)) < 19:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
        order = np.argsort(numbers)
        if len(order) < 2 or np.diff(numbers[order]).min():
            return order
    width = max(map(len, DIGITS.findall(" ".join(texts))), default=0)
    # Below every character, so that a run of digits follows the end of a text and precedes all that is written.
    padded = [DIGITS.sub(lambda run: "\0" + run[0].zfill(width), text) for text in texts]
    by_text = sorted(range(len(texts)), key=texts.__getitem__)
    return np.array(sorted(by_text, key=padded.__getitem__), dtype=np.int64)
