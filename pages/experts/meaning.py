"""What an expert stands for: genres around it, items it pushes, by its vector and by measurement."""

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.services.experts import items as expert_items
from elastic_core.services.experts.items import Pushes
from elastic_core.services.person import inspect
from pages.experts import answers, charts
from pages.experts import words as expert_words
from pages.experts.answers import Subject
from pages.frame import shell
from pages.kit import plot, view
from pages.kit.control import one_of

SOURCES = {"people": "In its people’s histories", "reads": "In what it reads of them"}


def genres(of: Subject, expert: int) -> None:
    found = of.survey
    if not found.genres:
        st.write("The items of this data have no genres.")
        return
    able = ["people", "reads"] if found.of_reading is not None else ["people"]
    source = one_of(
        "Evidence", able, key="exp_evidence", default="people", named=SOURCES.__getitem__, label_visibility="collapsed"
    )  # fmt: skip
    evidence = found.of_people if source == "people" or found.of_reading is None else found.of_reading
    frame = evidence.of(expert)
    if frame.empty:
        st.write(f"Only {found.traffic.load[expert]} people retrieve this expert: too few to say anything about genres.")
        return
    against = "everybody’s histories" if source == "people" else "the same histories read evenly"
    st.markdown(f"Share of each genre compared with {against}, {frame['n'].iloc[0]} people. **× 1** = no difference.")
    first = frame.iloc[0]
    best = f"{first['genre']}, {first['lift']:.2f} ({first['low']:.2f} to {first['high']:.2f})"
    alt = f"Lift of {len(frame)} genres with intervals. First: {best}."
    figure = charts.evidence(frame, plot.palette(shell.is_dark()))
    view.chart("exp_genres", figure, frame, expert_words.GENRES, alt)


def items(of: Subject, expert: int) -> None:
    words, found = inspect.words(of.data), answers.pushes(of, expert)
    direct, measured = st.columns(2, gap="medium")
    with direct:
        st.markdown("##### By its vector alone")
        if found.direct is None:
            st.write("No dispatcher: experts are extra keys of a self-attention, and no straight road leads to the items.")
        else:
            st.caption("What its vector adds if nothing else reacted; relative order only.")
            _two(*expert_items.pushed(found, of.data, "direct"), words.many)
    with measured:
        st.markdown(f"##### By removal, {found.people} people")
        if found.measured is None:
            st.write("Nobody retrieves it (or it is their only one): nothing to take away.")
        else:
            st.caption(
                f"Chance with it over without it; among the {expert_items.NEAR} likeliest of {expert_items.FEWEST} people or "
                "more; brackets: 95%."
            )
            _two(*expert_items.pushed(found, of.data, "measured"), words.many)
    _agree(of, expert, found)


def _two(up: pd.DataFrame, down: pd.DataFrame, many: str) -> None:
    for name, icon, frame in (("Pushed up", ":material/arrow_upward:", up), ("Held back", ":material/arrow_downward:", down)):
        lines = [f"- {_title(row['title'])} {_amount(row)}" for row in frame.to_dict("records")]
        st.markdown(f"{icon} **{name}**\n\n" + ("\n".join(lines) or f"no {many}"))


def _title(title: str) -> str:
    return shell.plain(inspect.split_year(title)[0])


def _amount(row: dict[str, float]) -> str:
    if "times" not in row:
        return f":small[{row['score']:+.3f}]"
    unsure = "" if row["low"] > 1 or row["high"] < 1 else ", unsure"
    return f":small[**× {row['times']:.3f}** ({row['low']:.3f} to {row['high']:.3f}), n = {row['n']}{unsure}]"


def _agree(of: Subject, expert: int, found: Pushes) -> None:
    if found.direct is None or found.measured is None or np.isnan(found.agreement):
        return
    count = of.data.catalog.n_items
    beyond = "more than" if found.agreement > found.control_high else "no more than"
    st.markdown(
        f"**Do the two agree?** Rank correlation {found.agreement:+.2f} over {count:,} {inspect.words(of.data).many}; other "
        f"experts’ vectors: {found.control:+.2f} on average, {found.control_high:+.2f} at their best 2.5%, so this one explains "
        f"the effect {beyond} theirs."
    )
    frame = expert_items.both(found, of.data)
    figure = charts.agreement(frame, plot.palette(shell.is_dark()))
    alt = f"{count} items: direct against measured push of expert {expert}; rank correlation {found.agreement:.2f}."
    view.chart("exp_agreement", figure, frame, expert_words.ITEMS, alt)
