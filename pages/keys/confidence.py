"""How sure? Is the search exact, what are its numbers, why must its scores stay, and what would Equation 7 do as printed."""

from functools import partial

import numpy as np
import streamlit as st

from elastic_core.services.keys import checks, gate, search
from pages.components import glossary, page_context, page_elements
from pages.components.cache import cached_figure
from pages.components.controls import bind_widget, option_in_address
from pages.keys import cached, charts
from pages.keys.sentences import CONFIDENCE, TEXT
from pages.keys.steps import Scene

CHECKED, MORE = "keys_checked", 1000
PART = "keys_part"


def show_confidence(scene: Scene, context: page_context.Context, is_own: bool) -> None:
    """The doubts, one at a time and only when asked for; only the chosen one is computed."""
    parts = {
        "Exactness": partial(_show_exactness, scene),
        "Numbers": partial(_show_numbers, scene),
        "Gate": partial(_show_gate, context),
        "Equation 7": partial(_show_search_as_printed, scene, context, is_own),
    }
    if PART not in st.session_state and (option := option_in_address(PART, list(parts))):
        st.session_state[PART] = option
    with st.container(key="keys_sure"):
        part = bind_widget(st.segmented_control, CONFIDENCE, list(parts), key=PART)
    if part:
        parts[part]()


def _show_exactness(scene: Scene) -> None:
    lesson, subject = scene.lesson, f"{scene.name}/{scene.query_owner}"
    has_values = len(lesson.values) > 0
    known_subject, check = st.session_state.get(CHECKED, ("", None))
    if known_subject != subject:
        check = checks.check_search(lesson.keys, lesson.k, checks.chance_queries(lesson, MORE if has_values else 0))
    st.markdown(TEXT("EXACT" if has_values else "EXACT_ONE", all=f"{lesson.n_subkeys**2:,}"))
    if has_values and st.button(f"Run {MORE:,} more", icon=":material/refresh:"):
        queries = checks.random_queries(lesson.width, MORE, seed=check.queries)
        check = check.add_check(checks.check_search(lesson.keys, lesson.k, queries))
    st.session_state[CHECKED] = (subject, check)
    (st.error if check.n_wrong else st.success)(check.sentence, icon=":material/rule:")
    if has_values:
        st.caption(f"{cached.turning_point(lesson.width, lesson.k)} {TEXT('CLOCK')}")


def _show_numbers(scene: Scene) -> None:
    """The picture as a table, to read out, sort and search."""
    table = scene.lesson.candidates.rename(columns=lambda name: name.replace("_", " "))
    st.markdown(TEXT("NUMBERS", k=scene.lesson.k))
    st.dataframe(table, hide_index=True, alt="Pairs of kept rows and columns", height=min(320, 40 + 35 * len(table)))
    st.caption(f"**Careful:** {TEXT('CAREFUL')}")


def _show_gate(context: page_context.Context) -> None:
    st.markdown(TEXT("GATE"))
    st.info(TEXT("GATE TRAINED"), icon=":material/straighten:")
    with_gate = bind_widget(st.toggle, "Gate", value=True, key="keys_gate", help=glossary.WORDS["gate"])
    column = "with_gate" if with_gate else "without_gate"
    if context.model.retrieves:
        table = cached.gradient_table(context.open_run, context.user)
        norms = table[["group", "parameters", column]].rename(columns={column: "gradient norm"})
        norms["learns"] = np.where(norms["gradient norm"] > 0, "✓ yes", "✗ never")
        numbers = norms.style.format({"parameters": "{:,}", "gradient norm": "{:.4f}"})
        st.table(numbers, hide_index=True, alt="Gradient norm by group of parameters")
        st.caption(
            f"We took one training step on a copy of the run, with this person and a few others (gate: "
            f"{table['gate'].iloc[0] if with_gate else 'none'}). We use only the loss of the next item. (In "
            "training, a second term keeps all experts in use.)"
        )
        _show_ungated_list(context)
    else:
        st.info("This run has no memory. Choose an ELASTIC run to see gradients.")
    loss_curve, final_values = cached.toy_routers()
    st.markdown(
        f"**A tiny world** has {gate.KINDS} kinds of people and {gate.SIDE**2} experts. After {gate.STEPS} steps with the gate, "
        f"the keys have moved by {final_values.at['softmax', 'keys_moved']:.0%} of their length, and the loss is "
        f"{final_values.at['softmax', 'loss']:.2f}. Without the gate, they have moved by "
        f"{final_values.at['none', 'keys_moved']:.0%}, and the loss is {final_values.at['none', 'loss']:.2f}."
    )
    alt = "Loss against training step. With the gate it falls far; without the gate it hardly moves."
    page_elements.show_chart(
        "keys_fig_learning",
        cached_figure(charts.draw_toy_loss, loss_curve, page_context.theme_palette()),
        loss_curve,
        TEXT.chart_text("LEARNING"),
        alt,
    )


def _show_ungated_list(context: page_context.Context) -> None:
    """What the gate does to this person's list, in the model as it is trained."""
    if search.first_memory(context.model).kind == "none":
        return
    comparison = cached.ungated_list(context.open_run, context.user, context.keep_seen)
    new, low, high = comparison.change.counts["new"], min(comparison.chance), max(comparison.chance)
    by_chance = low if low == high else f"{low} to {high}"
    st.markdown(
        f"**Person {context.user + 1}’s list without the gate.** If every expert has the weight 1, {new or 'none'} of the ten "
        f"suggestions {'changes' if new == 1 else 'change'}. What they {context.item_words.verb} next "
        f"{comparison.change.truth_moved}. "
        f"If every expert has a random weight, {by_chance} of the ten change ({len(comparison.chance)} tries)."
    )


def _show_search_as_printed(scene: Scene, context: page_context.Context, is_own: bool) -> None:
    if not len(scene.lesson.values):
        st.info("A million experts are too many here. Choose a smaller memory above.")
        return
    st.markdown(TEXT("PRINTED"))
    if is_own:
        printed_search = cached.search_as_printed(
            context.open_run, context.user, scene.lesson.k, scene.election.ago if scene.election else 0
        )
    else:
        printed_search = checks.search_as_printed(scene.lesson.keys, scene.lesson.k, checks.chance_queries(scene.lesson))
    population, n_queries = "people" if is_own else "random queries", f"{printed_search.queries:,}"
    whose = scene.query_owner[:1].lower() + scene.query_owner[1:]
    st.markdown(
        f"- With q₁ twice, {whose} finds only **{printed_search.overlap} of {printed_search.k}** of its experts "
        f"(**{printed_search.shared:.1f}** on average over {n_queries} {population}).\n"
        f"- Then only **{printed_search.used_printed}** experts are ever somebody’s best; with q₁ and q₂ it is "
        f"**{printed_search.used}**.\n- If we exchange q₂ for somebody else’s, {printed_search.deaf:,} of {n_queries} searches "
        "still find the same experts. With q₁ twice, all do."
    )
