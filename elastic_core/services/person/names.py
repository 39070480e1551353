"""Titles as people say them."""

import re

YEAR = re.compile(r"^(?P<name>.*\S)\s*\((?P<year>\d{4})\)\s*$")
ARTICLE = re.compile(r"^(?P<rest>.+), (?P<article>The|A|An|Il|La|Le|Les|El|Das|Der|Die)$")


def split_year(title: str) -> tuple[str, str]:
    """`Piano, The (1993)` → (`The Piano`, `1993`); the year is empty where there is none."""
    found = YEAR.match(title)
    name, year = (found["name"], found["year"]) if found else (title, "")
    moved = ARTICLE.match(name)
    return (f"{moved['article']} {moved['rest']}" if moved else name), year
