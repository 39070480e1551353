"""Below the steps: what the search costs, whether it is exact, why its scores must gate, and Eq. 7 as printed."""

import streamlit as st

from elastic_core.services.keys import checks
from elastic_core.services.keys.checks import Check, Printed
from elastic_core.services.keys.gate import ToyConfig, trained
from elastic_core.services.keys.search import Lesson
from pages.frame import shell
from pages.keys import check_charts
from pages.keys.steps import Scene, shown
from pages.kit import cache
from pages.kit.control import bound, one_of

CHECKED, MORE = "keys_checked", 1000
PART = "keys_part"
PARTS = ("Cost", "Exactness", "Gate", "Equation 7")


def counter(step: int, lesson: Lesson) -> None:
    """The live operation counter, at the run's own width."""
    flat, product = checks.operations(lesson.side, lesson.width, lesson.k).to_dict("records")
    so_far = checks.spent(step, lesson.side, lesson.width, lesson.k)
    sums = checks.summed(step, lesson.side, lesson.k)
    with st.container(horizontal=True):
        st.metric("Multiplications so far", f"{so_far:,}", help="All of them fall in step 2: 2 · √K half keys of d/2 numbers.")
        st.metric("Candidate sums so far", f"{sums:,}", help="Additions of two half scores, all in step 4.")
        st.metric("Comparing every key", f"{flat['multiplications']:,}", help="K keys of d numbers.")
        times = checks.saving(lesson.side, lesson.width, lesson.k)
        st.metric("Fewer by", f"{times:,.0f} ×", help=f"{flat['multiplications']:,} against {product['multiplications']:,}.")


def part(scene: Scene, now: shell.Context, own: bool) -> None:
    """One of the four parts; only the chosen one is computed."""
    chosen = one_of("Look closer", PARTS, key=PART, label_visibility="collapsed")
    if chosen == "Exactness":
        _exactness(scene)
    elif chosen == "Gate":
        _gate(scene, now)
    elif chosen == "Equation 7":
        _printed(scene, now, own)
    else:
        _cost(scene)


def _cost(scene: Scene) -> None:
    lesson = scene.lesson
    table = checks.operations_by_side(lesson.width, lesson.k)
    largest = table.iloc[-1]
    st.markdown(
        f"Product keys need √K times fewer multiplications than comparing every key. At √K = {largest['side']:,} "
        f"({largest['experts']:,} experts of {lesson.width} numbers) that is {largest['multiplications']:,} instead of "
        f"{table.iloc[-2]['multiplications']:,}."
    )
    shown(
        check_charts.cost(table, scene.palette, lesson.side), table,
        f"Two rising lines over √K, both axes in powers. Comparing every key rises twice as steeply; at √K = {largest['side']} "
        f"it needs "
        f"{largest['saving']:,.0f} times as many multiplications.",
        "**Question:** what does a search cost as the memory grows? **Computed:** counted, not timed: K·d against 2·√K·d/2 "
        "multiplications; the table has the additions. Sorting is left out of both. **Misread:** fewer operations are not "
        "automatically less time; for small memories one large product is faster (see *Exactness*, which times both).",
        "keys_fig_cost",
    )  # fmt: skip


def _exactness(scene: Scene) -> None:
    lesson = scene.lesson
    name, before = st.session_state.get(CHECKED, ("", Check()))
    if name != scene.name:
        before = checks.check(lesson.keys, lesson.k, lesson.query[None])
        before += checks.check(lesson.keys, lesson.k, checks.random_queries(lesson.width, MORE, seed=0))
    st.markdown(
        f"The shortcut is not an approximation. Each query below was searched twice with these sub-keys: by halves, and "
        f"against all "
        f"{lesson.side**2:,} full keys. The first query is the one above, the others are random."
    )
    if st.button(f"Run {MORE:,} more", icon=":material/refresh:"):
        queries = checks.random_queries(lesson.width, MORE, seed=before.queries)
        before += checks.check(lesson.keys, lesson.k, queries)
    st.session_state[CHECKED] = (scene.name, before)
    (st.error if before.wrong else st.success)(before.sentence, icon=":material/rule:")
    st.caption(
        "Both in double precision. Agreement means the same experts; where two experts score exactly the same, either is "
        "right, and it "
        "is counted as a tie. On a memory this small the long way can be quicker on the clock: one large product suits the "
        "machine, and "
        "the saving shows as the memory grows."
    )


def _gate(scene: Scene, now: shell.Context) -> None:
    st.markdown(
        "The paper's Algorithm 1 finds the best experts and then drops their scores. But *which* experts were found is a "
        "choice among whole "
        "numbers, and no gradient passes through a choice. Multiply the experts by their scores, and it does."
    )
    gated = bound(st.toggle, "Gate on", value=True, key="keys_gate")
    column = "with_gate" if gated else "without_gate"
    if now.model.retrieves:
        table = cache.gradients(now.run, now.model, now.dataset, now.user)
        view = table[["group", "parameters", column]].rename(columns={column: "gradient norm"})
        view["learns"] = view["gradient norm"].gt(0).map({True: "✓ yes", False: "✗ never"})
        numbers = view.style.format({"parameters": "{:,}", "gradient norm": "{:.4f}"})
        st.table(numbers, hide_index=True, alt="Gradient norm by group of parameters")
        st.caption(
            f"One real backward pass through a copy of {shell.plain(now.run.name)}, "
            f"gate {table['gate'].iloc[0] if gated else 'none'}: next-item loss of this person and a few others. "
            "The load-balance term is left out."
        )
    else:
        st.info("This run has no interest memory; choose an ELASTIC run to see its gradients.")
    if said := trained(shell.RUNS):
        st.info(said, icon=":material/straighten:")
    config = ToyConfig()
    curve, moved = cache.gate_toy(config)
    ends = moved.set_index("gate")
    st.markdown(
        f"**A world small enough to watch:** {config.kinds} kinds of people, {config.side**2} experts, {config.steps} steps. "
        f"With the gate the "
        f"sub-keys moved by {ends.at['softmax', 'keys_moved']:.0%} of their length and the loss ends at "
        f"{ends.at['softmax', 'loss']:.2f}; "
        f"without it they moved by {ends.at['none', 'keys_moved']:.0%} and it ends at {ends.at['none', 'loss']:.2f}."
    )
    shown(
        check_charts.learning(curve, scene.palette),
        curve,
        "Loss against training step. With the gate it falls far, without it it hardly moves.",
        "**Question:** can the keys learn? **Computed:** now, on this machine: the same tiny router from the same start on the "
        "same "
        "samples, once with a softmax gate and once without (a fixed seed). **Misread:** it shows *that* keys learn, not how "
        "much a gate "
        "helps a real recommender; experts still learn without it, behind a random router.",
        "keys_fig_learning",
    )


def _printed(scene: Scene, now: shell.Context, own: bool) -> None:
    st.markdown(
        "Equation 7 prints q₁ for *both* halves. Taken at its word, q₂ is never read: rows and columns are chosen by the same "
        "half, and "
        "two people who differ only in q₂ get the same experts."
    )
    if own:
        found = cache.printed(now.run, now.model, now.dataset, now.split, now.user, scene.lesson.k)
        who = "people"
    else:
        queries = checks.chance_queries(scene.lesson)
        found, who = checks.as_printed(scene.lesson.keys, scene.lesson.k, queries), "random queries"
    on = bound(st.toggle, "Eq. 7 as printed", value=True, key="keys_printed")
    st.markdown(
        f"- {scene.whose}: **{found.kept} of {found.k}** experts survive the misprint.\n"
        f"- Over {found.queries:,} {who}, on average **{found.shared:.1f} of {found.k}** survive.\n"
        f"- First places go to **{found.used_printed}** different experts as printed, **{found.used}** as meant.\n"
        f"- Exchange q₂ for somebody else’s: as meant {found.deaf:,} of {found.queries:,} keep all their experts, as printed "
        f"all do."
    )
    _traffic(scene, found, on, who)


def _traffic(scene: Scene, found: Printed, on: bool, who: str) -> None:
    way = "printed" if on else "meant"
    chart, table = st.columns(2, gap="medium")
    with chart:
        used = found.used_printed if on else found.used
        shown(
            check_charts.traffic(found.load, scene.palette, way, found.busiest), found.load,
            f"Grid of experts coloured by how many {who} have each as their best, Eq. 7 as {way}; {used} of {len(found.load)} "
            f"are used.",
            f"**Question:** which experts come first, as {way}? **Computed:** the first place of {found.queries:,} {who}; pale "
            f"= none, deep = "
            "many. **Misread:** sub-keys were trained with q₂; a model trained with the misprint would have other keys, but it "
            "could still "
            "never tell two people apart by q₂.",
            "keys_fig_traffic",
        )  # fmt: skip
    with table:
        st.markdown(f"**{scene.whose}**")
        first = found.first.rename(columns=lambda name: name.replace("_", " "))
        st.dataframe(first, hide_index=True, width="stretch", alt="The experts found, as meant and as printed")
