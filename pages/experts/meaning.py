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
from pages.kit import view
from pages.kit.control import switch

SOURCES = {"people": "In the histories of its people", "reads": "In what it reads of them"}


def genres(of: Subject, expert: int, _: int) -> None:
    found = of.survey
    if not found.genres:
        st.write("The items of this data have no genres.")
        return
    able = ["people", "reads"] if found.of_reading is not None else ["people"]
    source = switch("Evidence", able, "exp_evidence", named=SOURCES.__getitem__)
    evidence = found.of_people if source == "people" or found.of_reading is None else found.of_reading
    frame = evidence.of(expert)
    if frame.empty:
        st.write(f"Only {found.traffic.load[expert]} people use this expert: too few to say anything about genres.")
        return
    against = "all histories" if source == "people" else "the same histories, read evenly"
    st.markdown(f"Each genre beside {against} ({frame['n'].iloc[0]} people). **× 1** = no difference, × 2 = twice as much.")
    first = frame.iloc[0]
    best = f"{first['genre']}, {first['lift']:.2f} ({first['low']:.2f} to {first['high']:.2f})"
    alt = f"Lift of {len(frame)} genres with intervals. First: {best}."
    figure = charts.evidence(frame, shell.palette())
    view.chart("exp_genres", figure, frame, expert_words.GENRES, alt)


def items(of: Subject, expert: int, _: int) -> list[str]:
    """What it pushes up and holds back. Returns how sure that is."""
    words, found = of.words, answers.pushes(of, expert)
    direct, measured = st.columns(2, gap="medium")
    with direct:
        st.markdown("##### Alone")
        if found.direct is None:
            st.write(expert_words.SAYS("ALONE_NOT"))
        else:
            st.caption(expert_words.SAYS("ALONE"))
            _two(*expert_items.pushed(found, of.dataset, "direct"), words.many)
    with measured:
        st.markdown(f"##### Measured, {found.people} people")
        if found.measured is None:
            st.write(expert_words.SAYS("NOTHING_TO_REMOVE"))
        else:
            st.caption(expert_words.SAYS("MEASURED", many=words.many))
            _two(*expert_items.pushed(found, of.dataset, "measured"), words.many)
    pushed = expert_words.SAYS("SURE_PUSHED", near=expert_items.NEAR, fewest=expert_items.FEWEST)
    return [pushed, *_agree(of, expert, found)] if found.measured is not None else []


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


def _agree(of: Subject, expert: int, found: Pushes) -> list[str]:
    if found.direct is None or found.measured is None or np.isnan(found.agreement):
        return []
    count, many = of.dataset.catalog.n_items, of.words.many
    beyond = "Better than for" if found.agreement > found.control_high else "No better than for"
    st.markdown(f"**Do the two agree?** {beyond} other experts (correlation {found.agreement:+.2f}).")
    frame = expert_items.both(found, of.dataset)
    figure = charts.agreement(frame, shell.palette())
    alt = f"{count} items: direct against measured push of expert {expert}; rank correlation {found.agreement:.2f}."
    view.chart("exp_agreement", figure, frame, expert_words.ITEMS, alt)
    own, mean, high = found.agreement, found.control, found.control_high
    return [expert_words.SAYS("SURE_AGREE", own=own, count=count, many=many, mean=mean, high=high)]
