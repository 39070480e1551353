"""How many words the screens that explain the model may show, and how long a tooltip may be; measured on a small world.

`checkpoints/benchmarks/words.csv` has the numbers of a real run. A limit is a tenth above what was measured.
"""

from pathlib import Path

import pytest
import words

from pages.frame import shell
from pages.frame.screens import SCREENS

# Shown and in panels: as the screen opens, and with every part of it (what stands in several counts once). USUAL is for a screen
# that has no line of its own. Data names what could be fetched: six words more where nothing is here yet.
USUAL = (150, 250)
MEASURED = {"frame": (21, 84), "start": (98, 14), "keys": (60, 14), "journey": (150, 334), "experts": (189, 194),
        "traffic": (122, 162), "map": (145, 250), "tour": (720, 0), "evidence": (265, 268), "train": (157, 252),
        "data": (121, 208), "speed": (92, 93), "method": (121, 14), "keys, all parts": (310, 58),
        "experts, all parts": (606, 1063), "traffic, all parts": (162, 545), "evidence, all parts": (410, 747),
        "data, all parts": (363, 314), "speed, all parts": (172, 171), "method, all parts": (925, 165)}  # fmt: skip
MOST = {screen.folder: USUAL for screen in SCREENS} | MEASURED
TOOLTIP = 18  # words: a name from the glossary and fifteen


@pytest.fixture(scope="module")
def found(tiny_runs: Path) -> dict[str, list[words.Found]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell, "RUNS", tiny_runs)
        return dict(words.screens(list(MOST), "tiny", 5))


def test_no_screen_says_more_than_it_may(found: dict[str, list[words.Found]]) -> None:
    told = {screen: words.total(found[screen]) for screen in MOST}
    print({name: tuple(count.values()) for name, count in told.items()})
    over = [
        f"{name}: {told[name]['shown']} words shown and {told[name]['panels']} in panels are more than {most}: say less, "
        "or give it a line in MEASURED here, a tenth above these, and say why"
        for name, most in MOST.items()
        if told[name]["shown"] > most[0] or told[name]["panels"] > most[1]
    ]
    assert not over, "\n".join(over)


def test_tooltips_are_short(found: dict[str, list[words.Found]]) -> None:
    long = {text for texts in found.values() for where, _, text in texts if where == "help" and words.words(text) > TOOLTIP}
    assert not long


def test_words_are_counted_where_they_stand() -> None:
    assert words.words("**Two** :small[words] `no code` 42 × 1.5 :material/help:") == 2
    assert words.words("[a link](https://example.org/not-counted)") == 2
    assert words.total([("shown", "markdown", "one two"), ("panels", "caption", "three"), ("help", "slider", "")]) == {
        "shown": 2, "panels": 1, "help": 0
    }  # fmt: skip
