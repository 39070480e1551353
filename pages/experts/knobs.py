"""Turn it: the chosen person's experts turned up, down or off, and one expert removed or replaced for everybody who uses it."""

import pandas as pd
import streamlit as st

from elastic_core.services import edits as edit_lists
from elastic_core.services.edits import Edits
from elastic_core.services.experts import ablation
from elastic_core.services.experts.steering import SAMPLE, TurnedList, everybodys_factors, median_and_range, users_touched
from elastic_core.services.person.prediction import Prediction
from elastic_core.services.person.recommend import Scales
from pages.components import cache, edits, page_context, page_elements, user_cards
from pages.components.controls import number_input, place_button
from pages.components.page_context import escape_markdown
from pages.experts import cached, charts, sentences
from pages.experts.cached import Subject

SLIDER, SWAP = "exp_scale_", "exp_swap"


def show_knobs(subject: Subject, expert: int, user: int) -> list[str]:
    """Show sliders on the left, what they do on the right, and below one expert for everybody. Return what other turns do."""
    context = page_context.require_context()
    edit_list = edits.current_edits(context)
    prediction = cache.user_prediction(context.open_run, user, edit_list, context.keep_seen)
    slider_column, list_column = st.columns([5, 6], gap="medium")
    with slider_column:
        _place_sliders(subject, prediction, edit_list)
    turned_list = cached.turned_list(subject, user, edit_list, context.keep_seen)
    with list_column:
        doubts = _show_list(subject, prediction, turned_list)
    if prediction.scales:
        _show_cost(subject, prediction.scales)
        if len(turned_list.table):
            with st.expander("Every number", icon=":material/table:"):
                _show_numbers(turned_list)
    else:
        page_elements.show_explanation(sentences.KNOBS)
    _show_everybody(subject, expert)
    return doubts


# --- a person's experts ----------------------------------------------------------------------------------------------------


def _place_sliders(subject: Subject, prediction: Prediction, edit_list: Edits) -> None:
    st.markdown("**How strong is each expert?** :small[1 is as it is, 0 removes it]")
    columns, edits_locked = st.columns(2, gap="small"), page_context.is_locked(edits.PARAMETER)
    for rank, expert in enumerate(prediction.experts):
        key = f"{SLIDER}{expert}"
        st.session_state[key] = float(prediction.scales.get(expert, 1.0))  # what the list of edits says, whoever changed it
        columns[rank % 2].slider(
            _name_expert(subject, expert),
            0.0,
            edit_lists.LARGEST_FACTOR,
            step=0.25,
            key=key,
            on_change=_scale_expert,
            args=(expert,),
            disabled=edits_locked,
        )
    if unused := [str(expert) for expert in prediction.scales if expert not in prediction.experts]:
        st.caption(f"Your edits also turn expert {', '.join(unused)}, which this history does not use.")
    with page_elements.place_in_row():
        edits.undo_buttons(edit_list, "exp")
        if any(isinstance(edit, edit_lists.Remove | edit_lists.Add) for edit in edit_list):
            st.page_link("journey/page.py", label="The edited history", icon=":material/route:")


def _scale_expert(expert: int) -> None:
    factor = st.session_state.get(f"{SLIDER}{expert}")
    if isinstance(factor, int | float):
        edits.set_edits(edit_lists.set_scale(edits.current_edits(page_context.require_context()), expert, float(factor)))


def _name_expert(subject: Subject, expert: int) -> str:
    name = cache.expert_name(subject, expert)
    return f"{expert} · {escape_markdown(name)}" if name else f"{expert}"


def _show_list(subject: Subject, prediction: Prediction, turned_list: TurnedList) -> list[str]:
    plural, verb, doubts = subject.item_words.plural, subject.item_words.verb, []
    if turned_list.table.empty:
        st.markdown(f"**Their ten {plural}, with every expert as it is**")
    else:
        new, total = turned_list.change.counts["new"], len(turned_list.change.table)
        truth_text = user_cards.describe_truth(prediction, turned_list.change, f"What they {verb} next")
        st.markdown(
            f"**{new} of {total} {plural} {'is' if new == 1 else 'are'} new**, compared with the same history and every expert "
            f"as it is. {truth_text}"
        )
        rows = turned_list.table[turned_list.table["genre"] != ""].head(2).to_dict("records")
        lines = [
            f"**{escape_markdown(row['genre'])}** (expert {row['expert']}): {row['before']:.0%} → {row['after']:.0%} of the ten."
            for row in rows
        ]
        st.caption("  \n".join(lines))
        if len(turned_list.null_new):
            middle, low, high = median_and_range(turned_list.null_new)
            doubts = [sentences.TEXT("SURE_TURN", middle=middle, low=low, high=high, tries=len(turned_list.null_new))]
        doubts += [
            f"**Expert {row['expert']}.** With other experts turned instead, {row['null']:.0%} of the ten are "
            f"{escape_markdown(row['genre'])} (95%: {row['low']:.0%} to {row['high']:.0%})."
            for row in rows
            if row["null"] == row["null"]
        ]
    user_cards.show_ranked_items(page_context.require_context(), turned_list.change, changed=not turned_list.table.empty)
    return doubts


def _show_numbers(turned_list: TurnedList) -> None:
    rows = turned_list.table.to_dict("records")
    columns = page_elements.parse_columns(sentences.TEXT("TURNED", tries=len(turned_list.null_new)))
    alt = "The part of each turned expert’s genre among the ten, before and after, beside random turns"
    turned_rows = turned_list.table.assign(what=[f"{row['expert']} × {row['factor']:g}" for row in rows])[list(columns)]
    page_elements.show_table("exp_turned", turned_rows, sentences.KNOBS, alt, column_config=columns)


def _show_cost(subject: Subject, scales: Scales) -> None:
    """Say what the turn costs everybody: kept once measured."""
    n_touched = len(users_touched(everybodys_factors(subject.traffic, scales)))
    cost = cached.known_cost(subject, scales)
    if cost is None:
        users_text = f"{SAMPLE} of the {n_touched:,}" if n_touched > SAMPLE else f"the {n_touched:,}"
        with page_elements.place_in_row():
            is_pressed = st.button(
                "What does it cost everybody?", icon=":material/science:", key="exp_turn_cost", disabled=not n_touched,
                help="It takes two passes over these people. Any other control stops them.",
            )  # fmt: skip
            place = st.empty()
            place.caption(sentences.TEXT("COST_NOTE", some=users_text))
        if not is_pressed:
            return
        bar = place.progress(0.0)
        cost = cached.measure_cost(subject, scales, lambda share: bar.progress(min(share, 1.0), text=f"{share:.0%}"))
        place.empty()
    turn_effect, null_effect = cost.to_dict("records")
    scope_text = (
        f"{turn_effect['n']:,} of the {turn_effect['touched']:,}"
        if turn_effect["touched"] > turn_effect["n"]
        else f"the {turn_effect['n']:,}"
    )
    null = "There is no other expert to compare with."
    if null_effect["n"]:
        null = f"The same turn on other experts changes it by {sentences.format_change(null_effect)}."
    st.markdown(
        f"For {scope_text} people whom this turn touches, NDCG@10 changes by **{sentences.format_change(turn_effect)}**. {null}"
    )
    page_elements.remember_table("exp_turn_cost_rows", cost)


# --- one expert, for everybody ---------------------------------------------------------------------------------------------


def _show_everybody(subject: Subject, expert: int) -> None:
    """Remove the chosen expert from everybody who uses it, or put another in its place."""
    traffic = subject.traffic
    page_elements.show_heading(f"Expert {expert}, removed or replaced for everybody")
    if not traffic.load[expert] or traffic.experts.shape[1] < 2:
        st.write(sentences.TEXT("NOTHING_TO_REMOVE"))
        return
    drawn = ablation.draw_used_expert(traffic, expert, apart=True)
    chart, controls = st.columns([5, 3], gap="medium")
    with controls:
        other = number_input(
            "Put this expert in its place", 0, subject.survey.size - 1, None, key=SWAP, placeholder="Type a number"
        )
        place_button(
            "Another at random",
            "exp_swap_lucky",
            _draw_other,
            subject,
            expert,
            icon="casino",
            disabled=page_context.is_locked(SWAP),
        )
        replacement = drawn if other is None else int(other)
        if other is None:
            st.caption(f"Now it is expert {drawn}, drawn at random.")
        if replacement == expert:
            st.info(f"Expert {expert} in its own place changes nothing.")
    table = cached.effects(subject, expert, replacement)
    figure = charts.draw_effects(table.assign(name=table["change"].map(_effect_name)), page_context.theme_palette())
    row = table.iloc[0]
    interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
    alt = f"Change of NDCG@10 with 95% intervals: without expert {expert} {row['d_ndcg']:+.4f} ({interval})."
    with chart:
        page_elements.show_chart("exp_effects", figure, table, sentences.EFFECTS, alt)
    st.markdown(_effect_sentence(table))
    with st.expander("Every effect", icon=":material/table:"):
        st.dataframe(
            table,
            hide_index=True,
            column_config=page_elements.parse_columns(sentences.TEXT("RANKS")),
            alt=alt,
            key="exp_effect_rows",
        )


def _draw_other(subject: Subject, expert: int) -> None:
    turn = st.session_state.get("exp_swap_turn", 0) + 1
    st.session_state["exp_swap_turn"] = turn
    st.session_state[SWAP] = ablation.draw_used_expert(subject.traffic, expert, seed=turn, apart=True)


def _effect_name(change: str) -> str:
    """Say what was done, for an axis."""
    for begin, name in (
        ("without another", "another of the person’s experts removed"),
        ("without an expert used", "an equally used expert removed"),
        ("without", "expert removed"), ("an expert used", "replaced by an equally used one"),
    ):  # fmt: skip
        if change.startswith(begin):
            return name
    return f"replaced by {change.split()[1]}"


def _effect_sentence(table: pd.DataFrame) -> str:
    first, control = table.head(2).to_dict("records")
    verdict, _ = sentences.describe_effect(first)
    return (
        f"**{verdict}.** Without it, {first['replaced']:.1f} of 10 suggestions are new; without another of their experts it is "
        f"{control['replaced']:.1f}. What came next moves {'down' if first['d_rank_mean'] > 0 else 'up'} by "
        f"{abs(first['d_rank_mean']):.1f} places on average."
    )
