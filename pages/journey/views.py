"""What an edited history looks like, retrieves and is recommended, beside what it is compared with."""

import streamlit as st

from elastic_core.core.contract import Retrieved
from elastic_core.services.edits import EditedUser, Edits, Scale, Silence, format_edits
from elastic_core.services.person import inspect
from elastic_core.services.person.edited_history import ADDED_EVENT, REMOVED_EVENT, event_rows
from elastic_core.services.person.inspect import ItemWords
from elastic_core.services.person.names import raw_ids
from elastic_core.services.person.prediction import Prediction
from elastic_core.services.person.recommend import compare_lists, user_history
from elastic_core.text import escape_html as escape
from pages.components import cache, page_context, page_elements, user_cards
from pages.components.item_cards import ItemCard
from pages.components.page_context import Context
from pages.journey import cached
from pages.journey.sentences import EXPERTS, LISTS, TEXT

GRID = "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr));column-gap:1rem"
MARKS = {ADDED_EVENT: ("+ ", "added here"), REMOVED_EVENT: ("− ", "removed")}


def show_history(context: Context, edited_user: EditedUser, changed: bool) -> None:
    """The latest events; added and removed ones are marked in words and sign."""
    table, count, length = event_rows(context.dataset, edited_user), len(edited_user.items), context.model.length
    cards, signs = [], set()
    for row in table.to_dict("records"):
        (name, year), state = inspect.split_year(row["title"]), row["state"]
        sign, note = MARKS.get(state, ("", ""))
        signs |= {sign + state} if sign else set()
        cards.append(ItemCard(sign + name, year, row["genres"], note=note, faded=state == REMOVED_EVENT))
    n_shown = sum(not cell.faded for cell in cards)
    own_count_text = f" ({edited_user.n_own} before your edits)" if changed and count != edited_user.n_own else ""
    parts = [f"The last {n_shown} of {count}{own_count_text}." if n_shown < count or own_count_text else "Oldest first."]
    parts += [f"The model reads the last {length}."] if length < count and context.model.trained else []
    parts += [f"{', '.join(sorted(signs))}."] if signs else []
    user_cards.show_history_row(
        context, cards, f"The last {n_shown} {context.item_words.plural} of this history", " ".join(parts)
    )


def command_words(context: Context, edit_list: Edits, edited_user: EditedUser, whole_history: bool) -> list[str]:
    """Whose list a command prints: that of the person with a `whole_history`, or else that after the items read."""
    if whole_history:
        edits_shown = edit_list
        words = [f"--user={context.dataset.histories.user_ids[context.user]}"]
    else:
        edits_shown = tuple(edit for edit in edit_list if isinstance(edit, Silence | Scale))
        words = [f"--history={raw_ids(context.dataset.catalog, edited_user.items)}"]
    return [*words, *([f"--edits={format_edits(edits_shown)}"] if edits_shown else [])]


def show_lists(context: Context, prediction: Prediction, before: Prediction | None, peer: str) -> None:
    """The ten likeliest with what moved; a second run's ten, named `peer`, stand below them."""
    change = compare_lists((before or prediction).recommendation, prediction.recommendation)
    if peer:
        st.markdown(f"**{page_context.escape_markdown(cache.label_run(context.run))}**")
    user_cards.show_suggestions(context, prediction, change, changed=before is not None)
    if peer and before is not None:
        st.markdown(f"**{page_context.escape_markdown(peer)}**")
        user_cards.show_suggestions(context, before, compare_lists(before.recommendation, before.recommendation), changed=False)
    panel = st.expander("As a table", icon=":material/table:", key="jrn_lists", on_change="rerun")
    if panel.open:
        with panel:
            page_elements.show_table("jrn_list", change.table, LISTS, "The first ten with score, rank before and change")


def show_verdict(prediction: Prediction, before: Prediction, peer: str, item_words: ItemWords) -> None:
    """One or two sentences: what moved."""
    change, truth_known = (
        compare_lists(before.recommendation, prediction.recommendation),
        prediction.recommendation.truth is not None,
    )
    if peer:
        ranks = f"rank {change.truth_after} here and {change.truth_before} there"
        truth = f" What they {item_words.verb} next is at {ranks}." if truth_known else ""
        n_shared = len(change.table) - change.counts["new"]
        peer_name = page_context.escape_markdown(peer)
        text = f"**Beside {peer_name}:** the two runs share {n_shared} of their ten {item_words.plural}.{truth}"
        st.info(text, icon=":material/compare_arrows:")
        return
    truth = f" {user_cards.describe_truth(prediction, change, f'What they {item_words.verb} next')}"
    moves = f"{page_context.escape_markdown(change.summary(item_words.plural))} {prediction.others_retrieved(before)}"
    st.info(f"**Against the original:**{truth} {moves}", icon=":material/swap_vert:")


def show_null_edits(context: Context, edit_list: Edits, keep_seen: bool, n_events: int | None) -> None:
    """Would the same edit elsewhere have done the same?"""
    null = cache.null_edits(context.open_run, context.user, edit_list, keep_seen, n_events) if edit_list else None
    if null is None:
        return
    (_, own_change, _, _), *other_rows = null.rows(context.item_words.verb)
    spread = null.spread("places" if null.truth_known else "furthest")
    typical_text = "" if spread is None else f"{_places(spread[0])} (median; {spread[1]})"
    truth = user_history(context.dataset, context.user, n_events).truth if null.truth_known else None
    text = TEXT(
        "BY_CHANCE",
        done=page_context.escape_markdown(str(null.table["done"].iloc[0])),
        what="suggestions" if truth is None else page_context.escape_markdown(context.dataset.catalog.title(truth)),
        own=f"{'at most ' * (truth is None)}{_places(float(own_change))}",
        n=null.n,
        others="experts" if isinstance(edit_list[-1], Silence | Scale) else context.item_words.plural,
        null="nothing moved" if spread is None else f"{'at most ' * (truth is None)}{typical_text}",
    )
    st.markdown(
        text,
        help="; ".join(f"{name}: this {own_value}, others {null_value}" for name, own_value, null_value, _ in other_rows) or None,
    )
    page_elements.remember_table("chance", null.table)


def _places(number: float) -> str:
    return f"{number:g} place{'s' * (number != 1)}"


def show_experts(context: Context, prediction: Prediction, before: Prediction | None) -> None:
    """The retrieved experts as rows: number, name, votes, what they hold, what is new."""
    assert prediction.retrieved is not None
    experts_before = prediction.experts if before is None else before.active_experts
    names = user_cards.name_user_experts(context, prediction)
    _, reads = cached.expert_reads(context.open_run, prediction.history.items)
    gates, colours, rows = prediction.retrieved.gates[0].tolist(), page_context.theme_palette(), []
    largest = max(*gates, 1e-9)
    for place, (expert, gate, part) in enumerate(
        zip(prediction.experts, gates, _describe_shares(prediction.retrieved), strict=True), 1
    ):
        old_rank = experts_before.index(expert) + 1 if expert in experts_before else None
        change = "new here" if old_rank is None else f"was {old_rank}." if old_rank != place else ""
        if (factor := prediction.scales.get(expert)) is not None:
            change = f"counts × {factor:g}" if factor else "removed"
        rows.append(
            f'<li style="display:flex;gap:.5rem;align-items:center;padding:.22rem .3rem;border-bottom:1px solid {colours.line}">'
            f'<span style="width:1.2rem;text-align:right;flex:none">{place}</span>'
            f'<span style="flex:1;min-width:0;line-height:1.3"><b>Expert {expert}</b> '
            f'<span style="font-size:.8rem">{escape(names.get(expert, ""))}</span> <b style="font-size:.8rem">{change}</b>'
            f'<span style="display:block;height:.4rem;margin:.15rem 0;background:{colours.line};border-radius:.2rem">'
            f'<span style="display:block;height:100%;width:{100 * gate / largest:.0f}%;background:{colours.load[-1]};'
            f'border-radius:.2rem"></span></span><span style="font-size:.8rem">{part}<br>{escape(reads.get(expert, ""))}</span>'
            "</span></li>"
        )
    style = f"list-style:none;margin:0;padding:0;{GRID}"
    st.html(f'<ol aria-label="Retrieved experts, best first" style="{style}">{"".join(rows)}</ol>')
    if lost_experts := [str(expert) for expert in experts_before if expert not in prediction.experts]:
        st.caption(f"{'Expert' if len(lost_experts) == 1 else 'Experts'} no longer retrieved: {', '.join(lost_experts)}.")
    page_elements.show_explanation(EXPERTS)


def _describe_shares(retrieved: Retrieved) -> list[str]:
    """What an expert has of all votes, and usually; of all weights where nothing votes."""
    experts, gates = retrieved.experts[0].tolist(), retrieved.gates[0].tolist()
    if retrieved.votes is None or (usual := retrieved.ballots.mean_vote_share) is None:
        return [f"{gate / max(sum(gates), 1e-9):.0%} of the weight" for gate in gates]
    return [f"{retrieved.votes[0, expert]:.1%} of the votes (average person: {usual[expert]:.1%})" for expert in experts]
