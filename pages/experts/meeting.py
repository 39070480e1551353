"""The people of an expert: how far they are above its cut-off, examples from every band, and the chosen person's own experts."""

from typing import Any

import streamlit as st

from elastic_core.services.experts import overview, people
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Words
from pages.experts import answers, charts
from pages.experts import words as expert_words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import cache, view
from pages.kit.control import button, switch

ALONG = {"margin": "Distance to the limit", "score": "Raw score"}
GROUPS = {
    "top": "Top", "middle": "Middle", "just in": "Just in", "just out": "Just missed", "random": "Drawn at random",
}  # fmt: skip


def show(of: Subject, expert: int, user: int) -> list[str]:
    """Histogram, examples and the person’s own. Returns the moments of the score."""
    palette = shell.palette()
    along = switch("Along", ALONG, "exp_along")
    bars, here = people.histogram(of.survey, expert, along), people.expert_standing(of.survey, expert, user)
    figure = cache.drawn(charts.histogram, bars, palette, along, here[along], f"person {user + 1}")
    counts = bars.groupby("band", sort=False)["people"].sum()
    alt = f"Histogram of {along} of expert {expert} over people: " + ", ".join(
        f"{n} {charts.BAND_WORDS[str(band)]}" for band, n in counts.items()
    )
    view.chart("exp_histogram", figure, bars, expert_words.HISTOGRAM, alt)
    found = people.moments(of.survey, expert, along)
    st.caption(f"Used by {found['density']:.1%} of {of.survey.people:,} people.")
    _examples(of, expert)
    _own(of, user)
    return [expert_words.SAYS("SURE_SPREAD", mean=found["mean"], spread=found["spread"], skew=found["skew"])]


def _examples(of: Subject, expert: int) -> None:
    words, found = of.words, answers.examples(of, expert)
    view.heading(f"Its people, and the {words.many} it reads")
    st.caption(expert_words.SAYS("READS") if found.traced else expert_words.SAYS("READS_NOT", many=words.many))
    for group, name in GROUPS.items():
        rows = found.people[found.people["group"] == group]
        if len(rows):
            st.markdown(f"**{name}**")
            for row in rows.to_dict("records"):
                _person(of, row, words, group)
    view.explain(expert_words.PEOPLE)


def _person(of: Subject, row: dict[str, Any], words: Words, group: str) -> None:
    left, right = st.columns([1, 4], vertical_alignment="center")
    number = row["user"] + 1
    button(
        f"Person {number}", f"exp_meet_{group}_{number}", shell.meet, int(row["user"]), place=left, width="stretch",
        disabled=shell.locked("user"), help="The expert stays.",
    )  # fmt: skip
    titles = [shell.plain(inspect.split_year(of.dataset.catalog.title(item))[0]) for item in row["items"]]
    if row["shares"]:
        parts = zip(titles, row["shares"], row["times"], strict=True)
        read = ", ".join(f"{title} **{share:.0%}** (× {times:.1f})" for title, share, times in parts)
        more = f"{row['events']} {words.many}, read alike {row['even']:.1%} each; rank {row['rank']}, {row['margin']:+.3f}"
    else:
        read = f"last {words.many}: " + ", ".join(titles)
        more = f"{row['events']} {words.many}; {row['margin']:+.3f}"
    right.markdown(f"{read}  \n:small[:gray[{more}]]")


def _own(of: Subject, user: int) -> None:
    """How busy the chosen person's experts are."""
    view.heading(f"The experts of person {user + 1}")
    frame = overview.hot_experts(of.survey.traffic, user)
    alt = f"The experts of person {user + 1} with weight, load and status"
    view.table("exp_own", frame, expert_words.HOT, alt, column_config=view.columns(expert_words.SAYS("OWN")))
