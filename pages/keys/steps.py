"""The steps of the product-key search and, where events search, of their votes, drawn. `page` puts the chosen one on screen."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from elastic_core.services.keys import search, votes
from elastic_core.services.keys.search import Lesson
from elastic_core.services.keys.votes import Election
from pages.frame import shell
from pages.keys import charts
from pages.kit import plot, view
from pages.kit.control import bound, one_of
from pages.kit.sketch import Sketch

STEPS = ("Split", "Score", "Keep", "Pair", "Win", "Gather", "Weigh")
VOTING = ("Split", "Score", "Keep", "Pair", "Win", "Weigh", "Vote", "Gather")  # experts are gathered when all have voted
STEP, STAIRCASE, SQUARE, GRID, REVEALED = "keys_step", "keys_staircase", "keys_square", "keys_grid", "keys_revealed"
EVENT, TALLY = "keys_event", "keys_tally"


@dataclass(frozen=True)
class Scene:
    """What all steps are about; `name` changes when the query, the keys or k do. `election` where it is one event that asks."""

    lesson: Lesson
    palette: plot.Palette
    whose: str
    name: str
    election: Election | None = None

    @property
    def steps(self) -> Sequence[str]:
        return VOTING if self.election else STEPS

    def number(self, step: str) -> int:
        return self.steps.index(step) + 1


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


def chooser(steps: Sequence[str]) -> int:
    """Which step, from 1; the buttons, the row of names and the address agree. One that is not offered any more is the first."""
    if st.session_state.get(STEP, steps[0]) not in steps:
        st.session_state[STEP] = steps[0]
    with st.container(horizontal=True):
        chosen = one_of("Step", steps, key=STEP, width="content", label_visibility="collapsed")
        step = steps.index(chosen)
        first, last = step == 0, step == len(steps) - 1
        back, on = (steps[max(step - 1, 0)], steps[min(step + 1, len(steps) - 1)])
        st.button("Back", icon=":material/arrow_back:", on_click=_go, args=(back,), disabled=first or shell.locked(STEP))
        st.button(
            "Next", icon=":material/arrow_forward:", on_click=_go, args=(on,), type="primary", disabled=last or shell.locked(STEP)
        )
    return step + 1


def _go(step: str) -> None:
    st.session_state[STEP] = step


def page(step: int, scene: Scene) -> None:
    """The chosen step."""
    draw: dict[str, Callable[[Scene], None]] = {
        "Split": _split, "Score": _score, "Keep": _keep, "Pair": _pair, "Win": _win, "Gather": _gather, "Weigh": _weigh,
        "Vote": _vote,
    }  # fmt: skip
    draw[scene.steps[step - 1]](scene)


# --- the steps -------------------------------------------------------------------------------------------------------


def _split(scene: Scene) -> None:
    table = search.split(scene.lesson)
    asks = "What the run learned of this item" if scene.election else "By the run’s query network from the history, or random"
    st.markdown(
        f"**1. Split.** {scene.whose} is one query of {scene.lesson.width} numbers: its first half, q₁, chooses rows, the "
        "second, q₂, columns."
    )
    shown(
        charts.query(table, scene.palette), table,
        f"Bars of the query's {scene.lesson.width} numbers; the first half is orange (rows), the second blue (columns).",
        f"**Question:** What is searched for? **Computed:** {asks}. **Misread:** Single numbers mean nothing; the match with the "
        "keys counts.",
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
    out = table[~table["can_win"]].sort_values(["ranks_product", "rank_row"], kind="stable").head(1)
    why = "".join(
        f"Square ({row.rank_row}, {row.rank_column}) has {row.ranks_product - 1} squares above and to the left that are at least "
        f"as good, so it cannot be in the best {k}. "
        for row in out.itertuples()
    )
    st.markdown(
        f"**4. Pair them.** {len(table)} pair{'s' * (len(table) > 1)} of a row and a column, both sorted by score. {why}**Only "
        f"{able} square{'s remain' if able > 1 else ' remains'}** (row place × column place ≤ {k})."
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
    left = int(table["candidate"].sum())
    same = f"The same {left} candidates, in their real places" if left > 1 else "The one candidate, in its real place"
    st.markdown(f"**5. Win.** {same} in the grid of {lesson.side} × {lesson.side} experts. Scores stand along the edges.")
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
    lesson, election = scene.lesson, scene.election
    if election is None:
        experts, of = lesson.winners.indices, "A winner’s number is the address of its expert"
        table, then = search.gathered(lesson).drop(columns=["share", "weight", "gated_length"]), ""
    else:
        experts, of = election.found.experts[0], "An elected expert’s number is its address"
        table, then = votes.tally(election.found).head(len(experts)), " Each counts by its votes when they read the history."
    st.markdown(
        f"**{scene.number('Gather')}. Gather.** {of}: there stands a learned vector of {lesson.width} numbers. Only "
        f"{len(experts)} of {lesson.side**2:,} are read.{then}"
    )
    shown(
        charts.vectors(search.expert_values(lesson, experts), scene.palette), table,
        f"{len(experts)} rows of coloured cells, one row for each gathered expert.",
        "**Question:** What was retrieved? **Computed:** Rows of the memory table, not yet weighted. **Misread:** Alike rows are "
        "alike experts; a single column means nothing.",
        "keys_fig_vectors",
    )  # fmt: skip


def _weigh(scene: Scene) -> None:
    lesson, table, election = scene.lesson, search.gathered(scene.lesson), scene.election
    then = "" if election else " So weighted, the experts read the history."
    st.markdown(f"**{scene.number('Weigh')}. Weigh.** {search.gate_sentence(lesson)}{then}")
    even, named = (1 / lesson.k, "an even split") if election else (1.0, "no gate")
    shown(
        charts.weights(table, scene.palette, even, named), table,
        f"Bars: the weights of the {lesson.k} winners, best first, from {table['weight'].max():.2f} to "
        f"{table['weight'].min():.2f}.",
        "**Question:** Does a better match count more? **Computed:** "
        f"{'A softmax of' if election else 'The run’s gate on'} the winners’ scores. **Misread:** A weight is not the expert’s "
        "effect on the list; removal on Start measures that.",
        "keys_fig_weights",
    )  # fmt: skip


def _vote(scene: Scene) -> None:
    election = scene.election
    assert election is not None
    words, sums = election.words, votes.tally(election.found)
    cast = votes.ballots(election.found, election.newest).merge(election.events, on="event")
    k, m = len(sums) - 1, len(cast) // len(election.events)
    each = f"its {m} best experts" if m > 1 else "its best expert"
    own = cast[cast["event"] == election.event]
    title = shell.plain(own["title"].iloc[0])
    split = " and ".join(f"{row.share:.0%} to expert **{row.expert}**" for row in own.itertuples())
    st.markdown(
        f"**{scene.number('Vote')}. Vote.** Every {words.one} asks like this. Each gives its vote to {each}. "
        f"A line on each bar marks how many votes the expert gets from everybody. The **{k} experts furthest beyond their line** "
        f"are this person’s, on every page. “{title}” gave {split}."
    )
    listed = ", ".join(f"expert {row.expert} {row.votes:.0%}" for row in sums.head(k).itertuples())
    drawn = votes.marks(cast).merge(election.events, on="event", how="left")
    shown(
        charts.tally(drawn, sums, election.event, words, scene.palette),
        cast.assign(elected=cast["row"] < k).drop(columns="row"),
        f"Strokes: which of the last {words.many} voted for which of the {k} elected experts. Most wanted first: {listed}; "
        f"others {sums['votes'].iloc[k]:.0%}.",
        f"**Question:** Which {words.one} asked for which expert? **Computed:** The run’s own ballots of all "
        f"{len(election.events):,} {words.many} read: a stroke is a vote, its height how much it counts (squares: all "
        f"earlier ones together); bars add up each row, lines are everybody’s. **Misread:** Many votes show what "
        f"{words.many} ask for, not that the expert helps: removal on Start measures that.",
        TALLY, on_select=_asked, selection_mode="points",
    )  # fmt: skip
    st.caption(f"Click a stroke to follow that {words.one}’s search.")


def _asked() -> None:
    """A stroke was clicked: its event is looked at."""
    points = st.session_state[TALLY]["selection"]["points"]
    if points and points[0].get("customdata") and not shell.locked(EVENT):
        st.session_state[EVENT] = points[0]["customdata"][0]
