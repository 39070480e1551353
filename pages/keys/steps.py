"""The seven steps of the product-key search, drawn. `page` puts the chosen one on screen."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from elastic_core.services.keys import search
from elastic_core.services.keys.search import Lesson
from pages.frame import shell
from pages.keys import charts
from pages.kit import plot, view
from pages.kit.control import bound, one_of
from pages.kit.sketch import Sketch

STEPS = ("Split", "Score", "Keep", "Pair", "Win", "Gather", "Weigh")
STEP, STAIRCASE, SQUARE, GRID, REVEALED = "keys_step", "keys_staircase", "keys_square", "keys_grid", "keys_revealed"


@dataclass(frozen=True)
class Scene:
    """What all steps are about; `name` changes when the query, the keys or k do."""

    lesson: Lesson
    palette: plot.Palette
    whose: str
    name: str


def shown(figure: Sketch, table: pd.DataFrame, alt: str, about: str, key: str, **chart: Any) -> None:
    """A figure with its table twin and its explanation, a text in three parts: question, computed, misread."""
    question, computed, misread = (part.strip() for part in re.split(r"\*\*(?:Question|Computed|Misread):\*\*", about)[1:])
    table = table.rename(columns=lambda name: name.replace("_", " "))
    view.chart(key, figure, table, view.About(question, computed, misread), alt, **chart)


def toy(scene: Scene) -> None:
    """The smallest query there is, small enough to see why the winners change."""
    lesson, table = scene.lesson, search.points(scene.lesson)
    first, second = lesson.query.tolist()
    st.markdown(
        "A sub-key is a point on a line, its score q times its place. Move q₁ or q₂ **across 0**: that order turns round; make "
        "one **small**: its line hardly matters."
    )
    shown(
        charts.lines(table, first, second, scene.palette), table,
        f"Two lines with {lesson.side} points each, numbered by rank; q₁ stands at {first:.2f}, q₂ at {second:.2f}.",
        "**Question:** How does a query order the sub-keys? **Computed:** Eq. 7 with d = 2, random sub-keys (fixed seed); "
        "numbers are ranks. **Misread:** Nearness to q does not count, only the product: farthest out on q’s side is first. With "
        "many numbers the angle decides.",
        "keys_fig_lines",
    )  # fmt: skip


def chooser() -> int:
    """Which step, from 1; the buttons, the row of names and the address agree."""
    with st.container(horizontal=True):
        chosen = one_of("Step", STEPS, key=STEP, width="content", label_visibility="collapsed")
        step = STEPS.index(chosen)
        first, last = step == 0, step == len(STEPS) - 1
        st.button("Back", icon=":material/arrow_back:", on_click=_go, args=(step - 1,), disabled=first or shell.locked(STEP))
        st.button(
            "Next", icon=":material/arrow_forward:", on_click=_go, args=(step + 1,), type="primary",
            disabled=last or shell.locked(STEP),
        )  # fmt: skip
    return step + 1


def _go(step: int) -> None:
    st.session_state[STEP] = STEPS[step]


def page(step: int, scene: Scene) -> None:
    """The chosen step."""
    draw: tuple[Callable[[Scene], None], ...] = (_split, _score, _keep, _pair, _win, _gather, _weigh)
    draw[step - 1](scene)


# --- the steps -------------------------------------------------------------------------------------------------------


def _split(scene: Scene) -> None:
    table = search.split(scene.lesson)
    st.markdown(
        f"**1. Split.** {scene.whose} is one query of {scene.lesson.width} numbers: its first half, q₁, chooses rows, the "
        "second, q₂, columns."
    )
    shown(
        charts.query(table, scene.palette), table,
        f"Bars of the query's {scene.lesson.width} numbers; the first half is orange (rows), the second blue (columns).",
        "**Question:** What is searched for? **Computed:** By the run’s query network from the history, or random. "
        "**Misread:** Single numbers mean nothing; the match with the keys counts.",
        "keys_fig_split",
    )  # fmt: skip


def _score(scene: Scene) -> None:
    table, lesson = search.half_scores(scene.lesson), scene.lesson
    st.markdown(
        f"**2. Score each half.** q₁ meets {lesson.side} row sub-keys, q₂ {lesson.side} column sub-keys: {len(table)} short "
        f"comparisons stand for all {lesson.side**2:,} experts."
    )
    _strips(scene, table, keep=False)


def _keep(scene: Scene) -> None:
    table, lesson = search.half_scores(scene.lesson), scene.lesson
    kept = int(table["kept"].sum()) // 2
    st.markdown(
        f"**3. Keep the best {kept} of each half.** The rest (outlines) cannot win: {kept} better rows with the same column beat "
        "any weak row."
        if kept < lesson.side
        else f"**3. Keep the best of each half.** With k = {lesson.k} and {lesson.side} sub-keys nothing can be forgotten yet."
    )
    _strips(scene, table, keep=True)


def _strips(scene: Scene, table: pd.DataFrame, keep: bool) -> None:
    best = table[table["rank"] == 1].set_index("half")["sub_key"]
    shown(
        charts.strips(table, scene.palette, keep), table,
        f"Two strips of bars: the scores of the row and of the column sub-keys. Best row {best['row']}, best column "
        f"{best['column']}.",
        "**Question:** Which rows and columns match the query? **Computed:** Inner product of half query and sub-key (both at "
        "unit length, times a learned temperature, where the run says so). **Misread:** A high row alone wins nothing; sums win.",
        "keys_fig_strips",
    )  # fmt: skip


def _pair(scene: Scene) -> None:
    table, k = search.candidates(scene.lesson), scene.lesson.k
    able = int(table["can_win"].sum())
    st.markdown(
        f"**4. Pair them.** {len(table)} pairs of ranks, i of the row and j of the column. The i·j squares up and left score at "
        f"least as much, so only **i·j ≤ {k}** can be among the best {k}: a staircase of {able} sums."
    )
    staircase = bound(st.toggle, "Only the staircase", value=True, key=STAIRCASE)
    shown(
        charts.candidates(table, scene.palette, staircase),
        table.drop(columns="place"),
        f"A square of {len(table)} rank pairs; {able} of them form a staircase in the upper left and can win.",
        "**Question:** Which sums can win? **Computed:** Both halves sorted, then i·j ≤ k. **Misread:** Squares are in order "
        "of *rank*, not of the memory’s rows and columns (next step).",
        "keys_fig_pairs",
    )


def _win(scene: Scene) -> None:
    lesson, table = scene.lesson, search.grid(scene.lesson)
    revealed = st.session_state.get(REVEALED) == scene.name
    st.markdown(f"**5. Win.** Back in the memory: {lesson.side} × {lesson.side} experts, scores along the edges.")
    order = search.guesses(lesson)
    if st.session_state.get(SQUARE) not in table["expert"].array:
        st.session_state[SQUARE] = None
    chart, ask = st.columns([3, 2], gap="medium")
    with ask:
        st.markdown("**Which square wins?**")
        name = partial(search.square, lesson)
        picked = st.selectbox(
            "Your square", order, key=SQUARE, index=None, format_func=name, placeholder="click, or choose", persist_state="page"
        )
        st.button("Reveal", type="primary", on_click=_reveal, args=(scene.name,), disabled=picked is None or revealed)
        if revealed and picked is not None:
            say = st.success if search.is_first(lesson, picked) else st.info
            say(search.verdict(lesson, picked))
        elif picked is not None:
            st.caption(f"You chose {search.square(lesson, picked)}.")
    with chart:
        winners = ", ".join(f"row {row.row} column {row.column}" for row in search.gathered(lesson).itertuples())
        shown(
            charts.grid(table, scene.palette, revealed, picked),
            table if revealed else table.drop(columns=["place", "score"]),
            f"Grid of {len(table)} experts, candidates tinted. " + (f"Winners, best first: {winners}." if revealed else ""),
            "**Question:** Where in the memory are the k best? **Computed:** The top k of the sums; number = row · √K + "
            "column. **Misread:** Neighbours share a sub-key, nothing else; distance means nothing.",
            GRID, on_select=_clicked, selection_mode="points",
        )  # fmt: skip


def _clicked() -> None:
    points = st.session_state[GRID]["selection"]["points"]
    if points and points[0].get("customdata") is not None:
        number = points[0]["customdata"]
        st.session_state[SQUARE] = int(number[0] if isinstance(number, list | tuple) else number)


def _reveal(name: str) -> None:
    st.session_state[REVEALED] = name


def _gather(scene: Scene) -> None:
    table = search.expert_values(scene.lesson)
    winners = search.gathered(scene.lesson).drop(columns=["share", "weight", "gated_length"])
    st.markdown(
        f"**6. Gather.** A winner’s number is the address of its expert, a learned vector of {scene.lesson.width} numbers. Only "
        f"{scene.lesson.k} of {scene.lesson.side**2:,} are read."
    )
    shown(
        charts.vectors(table, scene.palette), winners,
        f"{scene.lesson.k} rows of coloured cells, one row for each gathered expert.",
        "**Question:** What was retrieved? **Computed:** Rows of the memory table, not yet weighted. **Misread:** Alike rows are "
        "alike experts; a single column means nothing.",
        "keys_fig_vectors",
    )  # fmt: skip


def _weigh(scene: Scene) -> None:
    lesson, table = scene.lesson, search.gathered(scene.lesson)
    st.markdown(f"**7. Weigh.** {search.gate_sentence(lesson)} So weighted, the experts read the history.")
    shown(
        charts.weights(table, scene.palette), table,
        f"Bars: the weights of the {lesson.k} winners, best first, from {table['weight'].max():.2f} to "
        f"{table['weight'].min():.2f}.",
        "**Question:** Does a better match count more? **Computed:** The run’s gate on the winners’ scores. **Misread:** A "
        "weight is not the expert’s effect on the list; removal on Start measures that.",
        "keys_fig_weights",
    )  # fmt: skip
