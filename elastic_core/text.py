"""Text from outside, made harmless for the place where it goes: Markdown, HTML, a figure, a shell, a spreadsheet.

Titles, ids, names of runs, folders and files, settings, reasons and whatever an address asks for are text of strangers. It is
shown as it is and does nothing: it formats nothing, loads nothing, runs nothing and links nowhere.
This module alone escapes; pages and commands say where a text goes.
"""

import html as _html
import re
import shlex
import unicodedata
from collections.abc import Iterable

import numpy as np

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that starts so is run by spreadsheets
# Turns the reading direction of everything after it: harmless in a letter, a disguise in a name.
DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|<>~$&:-])")
_JOINER = "\u2060"  # takes no room and says nothing
# What becomes a link, an icon or a logo after Markdown was read, whatever was escaped: addresses, e-mail, `:material/…:`.
_SPRINGS = re.compile(r"(?i)(?<=:)(?=//|material/|streamlit:)|(?<=www)(?=\.)|(?<=[\w.+-])(?=@[\w-]+\.)")


def one_line(text: object) -> str:
    """One line: line ends and other white space become single spaces, control characters vanish."""
    return re.sub(r"[\x00-\x08\x0e-\x1f\x7f]", "", re.sub(r"\s+", " ", str(text)))


def strip_controls(text: str) -> str:
    """Without control characters (line ends become spaces) and reading-direction marks."""
    if text.isascii() and text.isprintable():
        return text
    spaced = re.sub(r"[\t\r\n]+", " ", text)
    return "".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cs") and c not in DIRECTIONS)


def parse_number(text: object) -> int | None:
    """What an address says where a whole number from 0 belongs; None for anything else, and for more than 18 digits."""
    digits = str(text)
    return int(digits) if digits.isdecimal() and len(digits) <= 18 else None


def true_minus(text: str) -> str:
    """Numbers with a true minus; hyphens of names and dates stay."""
    return re.sub(r"(?<![\w.-])-(?=\d)", "−", text)


def escape_markdown(text: object) -> str:
    """For a place that reads Markdown, labels of widgets and metrics included."""
    return _MARKS.sub(r"\\\1", _SPRINGS.sub(_JOINER, one_line(text)))


def inline_code(text: object) -> str:
    """The same cut short, as inline code: for what an address asked for and nobody has."""
    short = one_line(text).replace("`", " ")[:40].strip()
    return f"`{short}`" if short else "without a name"


def escape_html(text: object) -> str:
    """For HTML, between tags and in attributes."""
    return _html.escape(str(text))


def escape_plotly(text: object) -> str:
    """For plotly's titles, ticks, legends and hovers, which read some HTML."""
    return _html.escape(one_line(text), quote=False)


def shell_command(*words: object) -> str:
    """A command that can be pasted into a shell: each word stays one word and nothing in it is run."""
    return shlex.join(one_line(word) for word in words)


def shell_words(command: str) -> list[str]:
    """The words of a command as a shell would take them, quotes gone."""
    return shlex.split(command)


def spreadsheet_cell(value: object) -> object:
    """For a table that a spreadsheet may open: a text it would take for a formula gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA) else value


_DIGITS = re.compile(r"[0-9]+")


def natural_order(ids: Iterable[str]) -> np.ndarray:
    """Positions that put ids into natural order: runs of digits compare as numbers."""
    texts = list(ids)
    joined = "".join(texts)
    if joined.isascii() and joined.isdecimal() and all(texts) and max(map(len, texts)) < 19:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
        order = np.argsort(numbers)
        if len(order) < 2 or np.diff(numbers[order]).min():
            return order
    width = max(map(len, _DIGITS.findall(" ".join(texts))), default=0)
    # Below every character, so that a run of digits follows the end of a text and precedes all that is written.
    padded = [_DIGITS.sub(lambda run: "\0" + run[0].zfill(width), text) for text in texts]
    return np.array([at for *_, at in sorted(zip(padded, texts, range(len(texts)), strict=True))], dtype=np.int64)
