"""Items as small drawn covers: genre colour, initials, year. Pure: rows to HTML; every text from the data is escaped."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from elastic_core.text import escape_html as escape
from pages.components.plot import Palette

STOP_WORDS = {"the", "a", "an", "of", "and", "in", "la", "le", "les", "il", "el"}


class ItemCard(NamedTuple):
    """One item as people see it. `mark` is a short word beside it, `note` a longer one that is read out."""

    name: str
    year: str
    genres: tuple[str, ...]
    lead: str = ""
    mark: str = ""
    note: str = ""
    gold: bool = False
    faded: bool = False
    why: str = ""  # who suggests it


class GenreColours:
    """An item has the colour of the genre listed first for it: the most frequent ones have one each, the rest share the last."""

    def __init__(self, genres: Sequence[str], palette: Palette, kind: str) -> None:
        self.palette, self.kind = palette, kind
        self.by_genre = dict(zip(genres, palette.categories[:-1], strict=False))

    def colour_of(self, genres: tuple[str, ...]) -> str:
        return self.by_genre.get(genres[0] if genres else "", self.palette.categories[-1])


def title_initials(name: str) -> str:
    """Two letters that stand for a title, and the number that it ends with."""
    words = [word for word in re.findall(r"\w+", name) if word.lower() not in STOP_WORDS] or re.findall(r"\w+", name)
    if len(words) == 1:
        return words[0][:2].upper()
    short = words[:2] + [word for word in words[2:][-1:] if word.isdecimal()]
    return "".join(word if word.isdecimal() and len(word) < 4 else word[0].upper() for word in short) or "?"


def contrast_colour(colour: str) -> str:
    """Black or white, whichever reads better on a colour."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    return "#000000" if light > 0.18 else "#ffffff"


def history_row_html(tiles: Iterable[ItemCard], colours: GenreColours, label: str) -> str:
    """A history, oldest first, as a row that wraps on narrow screens."""
    cards = "".join(_history_card_html(tile, colours) for tile in tiles)
    return (
        f'<ol aria-label="{escape(label)}" style="display:grid;grid-template-columns:repeat(auto-fit,minmax(4.2rem,1fr));'
        f'gap:.35rem;list-style:none;margin:0;padding:0">'
        f"{cards}</ol>"
    )


def legend_html(colours: GenreColours, note: str) -> str:
    """A note, and what the colours of all covers on the screen mean, where items have genres."""
    named = [*colours.by_genre.items(), *([("other", colours.palette.categories[-1])] if colours.by_genre else [])]
    chips = "".join(
        f'<li style="display:flex;align-items:center;gap:.25rem"><span aria-hidden="true" style="width:.7rem;height:.7rem;'
        f'border-radius:.15rem;background:{colour}"></span>{escape(genre)}</li>'
        for genre, colour in named
    )
    row = "display:flex;flex-wrap:wrap;gap:.1rem .7rem;font-size:.75rem"
    lead = f" Colour: {colours.kind}" if named else ""
    genres = f'<ul style="{row};list-style:none;margin:0;padding:0">{chips}</ul>' if named else ""
    return f'<div style="{row};margin-top:.3rem"><span style="opacity:.8">{escape(note)}{lead}</span>{genres}</div>'


def ranking_html(tiles: Iterable[ItemCard], colours: GenreColours, label: str) -> str:
    """Suggestions, best first."""
    rows = "".join(_ranked_card_html(tile, colours) for tile in tiles)
    return f'<ol aria-label="{escape(label)}" style="list-style:none;margin:0;padding:0">{rows}</ol>'


def null_comparison_html(rows: Iterable[tuple[str, str, str, str]], title: str, others: str, palette: Palette) -> str:
    """A small table: what is compared, this act, `others`, and how many of them reach it."""
    cell = f"padding:.1rem .3rem;border:0;border-top:1px solid {palette.line}"
    head = "".join(f'<th style="{cell};text-align:right">{escape(name)}</th>' for name in ("this", others, "as much or more"))
    body = "".join(
        f'<tr><th scope="row" style="{cell};text-align:left;font-weight:400">{escape(name)}</th>'
        f'<td style="{cell};text-align:right;font-weight:700">{escape(own)}</td>'
        f'<td style="{cell};text-align:right">{escape(other)}</td><td style="{cell};text-align:right">{escape(far)}</td></tr>'
        for name, own, other, far in rows
    )
    return (
        f'<table aria-label="Compared with chance" style="width:100%;border-collapse:collapse;font-size:.75rem;line-height:1.25">'
        f'<tr><th style="{cell};text-align:left;width:55%;overflow-wrap:anywhere">{escape(title)}</th>{head}</tr>{body}</table>'
    )


def _cover_html(tile: ItemCard, colours: GenreColours, size: str) -> str:
    colour = colours.colour_of(tile.genres)
    year = f'<span style="font-size:.62rem;font-weight:500">{escape(tile.year)}</span>' if tile.year else ""
    return (
        f'<span aria-hidden="true" style="{size};background:{colour};color:{contrast_colour(colour)};border-radius:.35rem;'
        f'display:flex;flex-direction:column;align-items:center;justify-content:center;line-height:1.15;font-weight:700;flex:none">'
        f'<span style="font-size:.85rem">{escape(title_initials(tile.name))}</span>{year}</span>'
    )


def _history_card_html(tile: ItemCard, colours: GenreColours) -> str:
    faded = "opacity:.4;text-decoration:line-through;" if tile.faded else ""
    about = " · ".join(filter(None, (tile.name, tile.year, ", ".join(tile.genres), tile.note)))
    name = (
        '<span lang="en" style="font-size:.7rem;line-height:1.2;hyphens:auto;display:-webkit-box;-webkit-line-clamp:2;'
        f'-webkit-box-orient:vertical;overflow:hidden;overflow-wrap:anywhere">{escape(tile.name)}</span>'
    )
    return (
        f'<li title="{escape(about)}" style="min-width:0;display:flex;flex-direction:column;'
        f'gap:.2rem;{faded}">{_cover_html(tile, colours, "width:100%;height:2.2rem")}{name}</li>'
    )


LINE = "display:block;white-space:nowrap;overflow:hidden;text-overflow:ellipsis"  # one line each, so that ten rows fit a screen


def _ranked_card_html(tile: ItemCard, colours: GenreColours) -> str:
    gold = colours.palette.gold
    frame = f"border:2px solid {gold};background:{gold}26;" if tile.gold else "border:2px solid transparent;"
    star = f'<b style="font-size:.75rem">★ {escape(tile.note)}</b> ' if tile.gold else ""
    detail = escape(" · ".join(filter(None, (tile.why, ", ".join(tile.genres)))))
    strike_style = "text-decoration:line-through;" if tile.faded else ""
    return (
        f'<li title="{escape(tile.name)}: {detail}" style="display:flex;gap:.5rem;align-items:center;padding:0 .3rem;'
        f'border-radius:.5rem;{frame}">'
        f'<span style="width:1.9rem;text-align:right;font-variant-numeric:tabular-nums;flex:none">{escape(tile.lead)}</span>'
        f"{_cover_html(tile, colours, 'width:2.5rem;height:2.1rem')}"
        f'<span style="flex:1;min-width:0;line-height:1.2"><span style="font-size:.9rem;{LINE};{strike_style}">{star}'
        f"{escape(tile.name)}</span>"
        f'<span style="font-size:.72rem;opacity:.75;{LINE}">{detail}</span></span>'
        f'<span style="flex:none;font-size:.8rem;font-weight:600">{escape(tile.mark)}</span></li>'
    )
