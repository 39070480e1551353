"""Reasons that are tested: what each event changes by its removal, beside attention; how the experts read; the way so far."""

from pathlib import Path

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey.trace import LEAST, MOST, busiest_experts, opening_events, span_titles
from elastic_core.services.person.inspect import split_year
from elastic_core.services.person.prediction import Prediction
from elastic_core.services.person.recommend import History
from pages.components import cache, glossary, page_context, page_elements, user_cards
from pages.components.controls import bind_widget, choose_one, choose_without_label
from pages.components.page_context import Context
from pages.journey import cached, charts, controls
from pages.journey.sentences import ALONG, DISPATCHER, INFLUENCE, READING, TEXT

NEXT, TOP = "what came next", "the top suggestion"
FEW, ALL = "12 strongest", "all, latest first"


def show_influence(context: Context, prediction: Prediction) -> list[str]:
    """Removal of each event, next to attention. Says how sure that is."""
    truth, top = prediction.recommendation.truth, int(prediction.recommendation.table["item"].iloc[0])
    targets = {TOP: top} if truth is None else {NEXT: truth, TOP: top}
    with page_elements.place_in_row("top"):
        target = targets[choose_without_label("Behind", [*targets], "jrn_for")]
        show = choose_without_label("Show", [FEW, ALL], "jrn_show")
    try:
        influence = cached.event_influence(
            context.open_run, History(prediction.history.items, target), prediction.scales, prediction.keep_seen
        )
    except InputError as error:
        st.write(controls.format_error(error))
        return []
    if influence.is_zero:
        st.markdown(TEXT("NOTHING", one=context.item_words.singular))
        return []
    name = split_year(context.dataset.catalog.title(target))[0]
    st.markdown(
        TEXT(
            "MATTERS",
            name=page_context.escape_markdown(name),
            rank=influence.rank,
            running=influence.running,
            one=context.item_words.singular,
        )
    )
    st.markdown(influence.sentence)
    rows = influence.table[::-1] if show == ALL else influence.strongest(12)
    labels = [_label_event(row.position, row.title) for row in rows.itertuples()]
    alt = f"Effect of removing each event on the chance of {name}; the largest: {labels[0]}, times {rows['times'].iloc[0]:.2f}."
    figure = cache.cached_figure(charts.draw_influence, rows, labels, page_context.theme_palette())
    page_elements.show_chart("jrn_influence", figure, influence.table, INFLUENCE, alt)
    if influence.agreement is None:
        return []
    _, n, low, high = influence.agreement
    return [f"**Attention.** It correlates with the effects by {low:+.2f} to {high:+.2f} (95%, n = {n} independent events)."]


def _label_event(position: int, title: str) -> str:
    name = _replace_tags(split_year(title)[0])
    return f"{position}. {name if len(name) <= 20 else name[:19] + '…'}"


def _replace_tags(title: str) -> str:
    return title.replace("<", "‹").replace(">", "›")  # plotly reads tags in labels


def show_dispatcher(context: Context, prediction: Prediction) -> None:
    """The dispatcher, and every weight of it on demand."""
    if prediction.scales:
        st.caption(TEXT("ALL_EXPERTS"))
    _show_dispatch_picture(context, prediction)
    panel = st.expander("Every weight", icon=":material/table:", on_change="rerun", key="jrn_weights")
    if panel.open:
        with panel:
            _show_weights(context, prediction)


def _show_weights(context: Context, prediction: Prediction) -> None:
    """The aggregation map, and how the last event reads the experts."""
    layer = 1
    try:
        aggregation = cached.bin_aggregation(context.open_run, prediction.history.items, layer)
    except InputError as error:
        st.write(controls.format_error(error))
        return
    if aggregation.layers > 1:
        layer = choose_one("Layer", range(1, aggregation.layers + 1), key="jrn_layer", help=glossary.WORDS["layer"])
        aggregation = cached.bin_aggregation(context.open_run, prediction.history.items, layer)
    titles = [_replace_tags(title) for title in span_titles(context.dataset, prediction.history.items, aggregation.cells)]
    figure = cache.cached_figure(
        charts.draw_aggregation, aggregation.cells, aggregation.slots, titles, page_context.theme_palette()
    )
    top = aggregation.slots.sort_values("reads").iloc[-1]
    alt = f"Experts by events in layer {layer}. The last event reads expert {top['expert']:.0f} most, {top['reads']:.0%}."
    every_weight, _ = cached.expert_reads(context.open_run, prediction.history.items)
    page_elements.show_chart("jrn_reading", figure, aggregation.cells if every_weight is None else every_weight, READING, alt)


def show_moments(context: Context, moment: int, keep_seen: bool) -> None:
    """The way so far: rank and experts at many moments; a click goes there."""
    table, retrieved = cached.trace_moments(context.open_run, context.user, keep_seen)
    experts, count = busiest_experts(retrieved, moment)
    n_drawn = experts["expert"].nunique()
    drawn_text = ""
    if n_drawn < count:
        drawn_text = f" Of all {count} experts that it ever retrieved, you see {n_drawn}: those of this moment and the busiest."
    other_ranks, other_name, other_text = None, "", ""
    if context.other is not None:
        other_ranks, other_name = cached.trace_moments(context.other, context.user, keep_seen).ranks, context.other.run.name
        other_text = f" The dotted line is {page_context.escape_markdown(other_name)}."
    st.caption(f"{TEXT('OVER_TIME')}{drawn_text}{other_text}")
    figure = cache.cached_figure(
        charts.draw_moments, table, experts, moment, page_context.theme_palette(), other_ranks, (context.run.name, other_name)
    )
    last_row = table.iloc[-1]
    alt = (
        f"Rank of the next item at {len(table)} moments; at the last, the test, rank {last_row['rank']} of {last_row['running']}."
    )
    moment_row = table[table["event"] <= moment].iloc[-1]  # the first moment is event 1
    if other_ranks is not None:
        table = table.merge(other_ranks[["event", "rank"]], on="event", suffixes=("", "_second_run"))
    values = {
        "event": moment_row["event"],
        "rank": moment_row["rank"],
        "running": moment_row["running"],
        "luck": (moment_row["running"] + 1) / 2,
    }
    st.markdown(
        TEXT("CAME_NEXT", many=context.item_words.plural, title=page_context.escape_markdown(moment_row["title"]), **values)
    )
    page_elements.show_chart(
        "jrn_along",
        figure,
        table,
        ALONG,
        alt,
        on_select=None if page_context.is_locked(controls.MOMENT) else _go_to_clicked_moment,
    )


def _go_to_clicked_moment() -> None:
    if mark := page_elements.clicked_mark("jrn_along"):
        controls.set_moment(int(mark[0]))


# --- the dispatcher as a picture to point at: events, experts and the lines between them -----------------------------

EVENTS, PICTURE = "jrn_dispatched", "jrn_dispatcher"
ARRIVALS = "jrn_arrivals"  # how often a visit was led here from Start
_mount = st.components.v2.component(
    "elastic_dispatcher", css=Path(__file__).with_name("dispatcher.css").read_text(encoding="utf-8"),
    js=Path(__file__).with_name("dispatcher.js").read_text(encoding="utf-8"),
)  # fmt: skip

_mount_example = st.components.v2.component(
    "elastic_tiny_example", css=Path(__file__).with_name("example.css").read_text(encoding="utf-8"),
    js=Path(__file__).with_name("example.js").read_text(encoding="utf-8"),
)  # fmt: skip


def _show_dispatch_picture(context: Context, prediction: Prediction) -> None:
    """What the dispatcher saves, its picture, and below it the slider for N."""
    words = context.item_words
    most, k = min(prediction.n_read, MOST), len(prediction.experts)
    text_place, picture_place = st.container(), st.container()
    events = opening_events(prediction.n_read, k)
    if most > LEAST:
        label, key = f"N: the last {words.plural}", f"{EVENTS}_{most}"
        events = bind_widget(st.slider, label, LEAST, most, events, key=key, control_name="Events drawn")
    try:
        dispatch = cached.trace_dispatch(context.open_run, prediction.history.items, events)
    except InputError as error:
        st.write(controls.format_error(error))
        return
    values = {
        "one": words.singular, "many": words.plural, "a": words.with_article, "n": events, "k": k, "half": dispatch.held.size,
        "links": dispatch.links, "pairs": dispatch.pairs, "few": 2_000 * k, "least": 2 * k,
    }  # fmt: skip
    not_fewer_text = TEXT("NOT_FEWER", **values) if dispatch.links >= dispatch.pairs else ""
    text_place.markdown(f"{TEXT('LINES', **values)} {not_fewer_text}")
    names = user_cards.name_user_experts(context, prediction)
    data = {
        "events": [split_year(title)[0] for title in dispatch.titles],
        "experts": [f"{expert} · {names[expert]}" if expert in names else f"expert {expert}" for expert in dispatch.experts],
        "held": dispatch.held.round(4).tolist(),
        "back": dispatch.back.round(4).tolist(),
        "fills": [dispatch.describe_filling(event) for event in range(events)],
        "returns": [dispatch.describe_return(event) for event in range(events)],
        "slots": [dispatch.describe_slot(place) for place in range(k)],
        "arrivals": st.session_state.get(ARRIVALS, 0),
        "says": TEXT.named_paragraphs(
            "PICTURE", then="held at that point of the history" if context.model.causal else "hold", **values
        ),
    }
    with picture_place:
        _mount(data=data, key=PICTURE, on_explored_change=lambda: None)
    depth = context.model.config.layers
    early = "the first" if depth == 2 else "all but the last"
    layers_text = f"{TEXT('LAYERS', depth=depth, early=early, **values)} " if depth > 1 else ""
    size = f"{context.dataset.catalog.n_items:,}"
    st.markdown(TEXT("LIST_EACH" if dispatch.apart else "LIST_ONE", layers=layers_text, size=size, **values))
    _show_tiny_example(dispatch.apart)
    page_elements.show_explanation(DISPATCHER)
    page_elements.remember_table("dispatcher", dispatch.table)


def _show_tiny_example(slots: bool) -> None:
    """The same with three items and two experts, one number at a time."""
    panel = st.expander("A tiny example", icon=":material/calculate:", key="jrn_example", on_change="rerun")
    if panel.open:
        with panel:
            _mount_example(data={"slots": slots, "says": TEXT.named_paragraphs("EXAMPLE_WORDS")}, key="jrn_example_steps")
            with st.expander("All numbers at once", icon=":material/table:"):
                st.markdown(TEXT("EXAMPLE_SLOTS" if slots else "EXAMPLE"))
