"""What was pressed in the picture, opened below it: an expert, an event, or a suggestion, and the way to its own page.

The address carries it (`details=expert-7`), so that a link opens it again. It belongs to the person in view.
"""

import re
from typing import NamedTuple

import numpy as np
import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.edits import EditedUser, Remove, Silence
from elastic_core.services.journey import trace as journey_trace
from elastic_core.services.journey.trace import Dispatch
from elastic_core.services.person import influence, inspect
from elastic_core.services.person.influence import Influence
from elastic_core.services.person.model_trace import ModelTrace
from elastic_core.services.person.prediction import Prediction
from elastic_core.services.person.recommend import History
from elastic_core.services.person.slot_contents import largest_items
from pages.components import cache, edits, page_context, page_elements, page_text
from pages.components.cache import OpenRun, cached_resource
from pages.components.controls import place_button, write_in_address
from pages.components.page_context import Context

PARAMETER = "details"  # in the address
OWNER = "start_details_of"  # whose details the visit opened last
KINDS = EVENT, EXPERT, ITEM = "event", "expert", "item"
FORM = re.compile(rf"({'|'.join(KINDS)})[- ](\d{{1,9}})", re.ASCII)
MOST = 5  # rows of a comparison
CLEAR = 0.1  # a change that counts
# of the Journey screen
JOURNEY_PART, MATTERS, DISPATCHER, JOURNEY_TARGET, TOP = (
    "jrn_part", "What matters?", "The dispatcher", "jrn_for", "the top suggestion",
)  # fmt: skip
ARRIVALS = "jrn_arrivals"  # how often a visit was led to the dispatcher
TEXT = page_text.load_page_text(__file__)


class Details(NamedTuple):
    """What is open: event `number` as edits count them, an expert, or an item (dense id)."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.number}"


@cached_resource(64)
def item_influence(
    open_run: OpenRun, items: np.ndarray, target: int, scales: object, keep_seen: bool, _prediction: Prediction
) -> Influence:
    """What every event of a history changes for one item."""
    return influence.measure_influence(open_run.model, open_run.dataset, History(items, target), _prediction.scales, keep_seen)


@cached_resource(64)
def trace_dispatch(open_run: OpenRun, items: np.ndarray, events: int) -> Dispatch:
    """What the last `events` of a history give to the experts and get back."""
    return journey_trace.trace_dispatch(open_run.model, open_run.dataset, items, events)


def current_details(context: Context, edited_user: EditedUser, items: list[int]) -> Details | None:
    """What the address opens; None where it opens nothing that is there. `items`: the suggestions."""
    owner, match = (context.dataset.hash, context.user), FORM.fullmatch(st.query_params.get(PARAMETER, ""))
    is_same_user = st.session_state.get(OWNER, owner) == owner
    st.session_state[OWNER] = owner
    if match is None or not is_same_user:
        write_in_address(PARAMETER, None)
        return None
    details = Details(match[1], int(match[2]))
    numbers_in_view = {
        EVENT: edited_user.numbers.tolist(), EXPERT: range(inspect.memory_size(context.model)), ITEM: items,
    }[details.kind]  # fmt: skip
    return details if details.number in numbers_in_view else None


def toggle_details(pressed: str) -> None:
    """For callbacks: open what was pressed, as the picture says it (`expert 7`); what is open already is closed."""
    match = FORM.fullmatch(pressed)
    if match is None:
        return
    text = f"{match[1]}-{match[2]}"
    if st.query_params.get(PARAMETER) == text:
        close_details()
        return
    write_in_address(PARAMETER, text)
    if match[1] == EXPERT:
        page_context.select_expert(int(match[2]))


def close_details() -> None:
    """For callbacks."""
    write_in_address(PARAMETER, None)


def show_details(context: Context, details: Details, edited_user: EditedUser, prediction: Prediction, trace: ModelTrace) -> None:
    """The panel below the picture."""
    with st.container(border=True, key="start_details"):
        show_kind = {EVENT: _show_event, EXPERT: _show_expert, ITEM: _show_item}[details.kind]
        show_kind(context, details.number, edited_user, prediction, trace)


def _show_head(title: str, page: str, edit: Remove | Silence | None, can_edit: bool) -> None:
    """The title of the panel, what can be done, and the way to the whole page."""
    with page_elements.place_in_row("center", gap="small"):
        st.subheader(title, anchor=False, width="stretch")
        if edit is not None:
            place_button(
                "Remove it", "start_details_away", edits.append_edits, edit, icon="block",
                disabled=not can_edit or page_context.is_locked(edits.PARAMETER),
            )  # fmt: skip
        is_pressed = place_button("Open in full", "start_details_full", _prepare_page, page, icon="open_in_full")
        place_button("Close", "start_details_close", close_details, icon="close")
    if is_pressed:
        page_context.open_page(f"{page}/page.py")


def _prepare_page(page: str) -> None:
    if page == "journey":
        st.session_state[JOURNEY_PART], st.session_state[JOURNEY_TARGET] = MATTERS, TOP


def show_dispatcher_first() -> None:
    """For callbacks: the Journey screen opens with the dispatcher in view."""
    st.session_state[JOURNEY_PART] = DISPATCHER
    st.session_state[ARRIVALS] = st.session_state.get(ARRIVALS, 0) + 1


def _show_expert(context: Context, expert: int, edited_user: EditedUser, prediction: Prediction, trace: ModelTrace) -> None:
    name, retrieved = cache.expert_name(context.open_run, expert), expert in prediction.active_experts
    title = f"Expert {expert}" + (f" · {page_context.escape_markdown(name)}" if name else "")
    _show_head(title, "experts", Silence(expert) if retrieved else None, len(prediction.active_experts) > 1)
    meaning, crowd, effect = st.columns(3)
    with meaning:
        st.markdown("**What does it stand for?**")
        known_name = cache.expert_names(context.open_run).get(expert) if context.dataset.catalog.genres else None
        if known_name is not None and known_name.holds:
            template = "BY_SLOT" if trace.suggestion_share is not None else "BY_PEOPLE"
            st.markdown(TEXT(template, name=page_context.escape_markdown(name), lift=known_name.lift))
        else:
            st.markdown(TEXT("UNNAMED"))
        if retrieved and trace.event_share is not None:
            event_share = trace.event_share[trace.experts.index(expert)]
            held_items = largest_items(prediction.history.items, event_share, 3)
            parts = [(share, _item_name(context, item)) for item, share in held_items]
            parts += [(event_share.sum() - sum(share for share, _ in parts), f"other {context.item_words.plural}")]
            items_text = "; ".join(f"{share:.0%} {name}" for share, name in parts if share >= 0.005)
            st.markdown(TEXT("HOLDS", listed=items_text) if held_items else "")
    with crowd:
        traffic = cache.route_everybody(context.open_run)
        st.markdown("**Who uses it?**")
        values = {"load": f"{traffic.load[expert]:,.0f}", "people": f"{len(traffic.experts):,}"}
        st.markdown(TEXT("USED", even=f"{traffic.experts.size / len(traffic.load):,.0f}", **values))
        retrieval = prediction.retrieved
        if retrieval is not None and retrieval.votes is not None and retrieval.ballots.mean_vote_share is not None:
            mean_share = float(retrieval.ballots.mean_vote_share[expert])
            st.markdown(TEXT("VOTES", votes=float(retrieval.votes[0, expert]), usual=mean_share))
    with effect:
        st.markdown("**What changes without it?**")
        if not retrieved:
            st.markdown(TEXT("REMOVED" if expert in edited_user.silenced_experts else "NOT_RETRIEVED"))
        else:
            _show_changes(context, prediction, trace.without_expert[:, trace.experts.index(expert)], TEXT("UNCHANGED_EXPERT"))


def _show_event(context: Context, number: int, edited_user: EditedUser, prediction: Prediction, trace: ModelTrace) -> None:
    index = edited_user.numbers.tolist().index(number)
    item = int(prediction.history.items[index])
    _show_head(_item_name(context, item), "journey", Remove(number, number), prediction.n_events > 1)
    holders, effect = st.columns(2)
    with holders:
        st.markdown("**Which slots hold it?**")
        shares = [] if trace.event_share is None else trace.event_share[:, index].tolist()
        expert_shares = sorted(zip(shares, trace.experts, strict=False), reverse=True)
        rows = [
            (_expert_title(context, expert), share, f"{share:.0%}") for share, expert in expert_shares[:MOST] if share >= 0.01
        ]
        if rows:
            st.html(page_elements.bars_html(rows, TEXT("KEEPS_LABEL"), page_context.theme_palette().lit))
        else:
            st.markdown(TEXT("KEPT_BY_NONE"))
        n_later = prediction.n_events - index - 1
        if trace.event_share is not None and not prediction.scales and n_later < min(journey_trace.MOST, prediction.n_read):
            st.markdown("**What does the dispatcher give back to it?**")
            dispatch = trace_dispatch(context.open_run, prediction.history.items, n_later + 1)
            st.markdown(f":small[{page_context.escape_markdown(dispatch.describe_return(0))}]")
    with effect:
        st.markdown("**What changes without it?**")
        if index in trace.indices:
            _show_changes(context, prediction, trace.without_event[:, list(trace.indices).index(index)], TEXT("UNCHANGED_EVENT"))
        else:
            st.markdown(TEXT("NOT_SHOWN"))


def _show_item(context: Context, item: int, edited_user: EditedUser, prediction: Prediction, trace: ModelTrace) -> None:
    row = prediction.recommendation.table["item"].tolist().index(item)
    _show_head(f"{row + 1}. {_item_name(context, item)}", "journey", None, False)
    events, experts = st.columns(2)
    item_words, palette = context.item_words, page_context.theme_palette()
    with events:
        st.markdown(f"**Which {item_words.plural} make it more likely?**")
        try:
            influences = item_influence(
                context.open_run,
                prediction.history.items,
                item,
                sorted(prediction.scales.items()),
                prediction.keep_seen,
                prediction,
            )
        except InputError as error:
            st.markdown(page_context.escape_markdown(f"{str(error)[:1].upper()}{str(error)[1:]}."))
        else:
            strongest = influences.strongest(MOST)
            rows = [
                (inspect.split_year(each.title)[0], 1 / each.times - 1, format_change(1 / each.times))
                for each in strongest.itertuples()
            ]
            st.html(page_elements.bars_html(rows, TEXT("SPEAKS_LABEL", one=item_words.singular), palette.lit))
            st.caption(TEXT("SPEAKS", one=item_words.singular, many=item_words.plural, among=len(influences.table)))
    with experts:
        if not trace.experts:
            return
        st.markdown("**Which experts matter for it?**")
        changes = trace.without_expert[row]
        order = [at for at in np.argsort(np.nan_to_num(changes, nan=1.0), kind="stable") if not np.isnan(changes[at])][:MOST]
        rows = [(_expert_title(context, trace.experts[at]), float(changes[at] - 1), format_change(changes[at])) for at in order]
        st.html(page_elements.bars_html(rows, TEXT("MATTER_LABEL"), palette.lit))


def _show_changes(context: Context, prediction: Prediction, times: np.ndarray, unchanged: str) -> None:
    """The suggestions that a removal changes most; a sentence where none changes."""
    titles, factors = prediction.recommendation.table["title"].tolist(), np.nan_to_num(times, nan=1.0)
    if np.isnan(times).all():
        st.markdown(TEXT("UNKNOWN"))
        return
    order = np.argsort(-np.abs(np.log(np.maximum(factors, 1e-9))), kind="stable")[:MOST]
    rows = [(inspect.split_year(titles[at])[0], float(factors[at] - 1), format_change(factors[at])) for at in order]
    st.html(page_elements.bars_html(rows, TEXT("CHANGES_LABEL"), page_context.theme_palette().lit))
    if not (np.abs(factors - 1) >= CLEAR).any():
        st.caption(unchanged)


def _item_name(context: Context, item: int) -> str:
    return page_context.escape_markdown(inspect.split_year(context.dataset.catalog.title(item))[0])


def _expert_title(context: Context, expert: int) -> str:
    name = cache.expert_name(context.open_run, expert)
    return f"{expert} · {name}" if name else f"Expert {expert}"


def format_change(times: float) -> str:
    """What a removal does to a chance: `−31%`, `+12%`, `×14`, as the picture writes it."""
    if 0.995 < times < 1.005:
        return "±0%"
    if times < 1:
        return f"−{1 - times:.0%}"
    return f"+{times - 1:.0%}" if times < 10 else f"×{times:.0f}"
