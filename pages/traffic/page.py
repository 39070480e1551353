"""Traffic: is the memory used evenly; who is hot, who is dead, and is it chance?"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from elastic_core.services.traffic import load
from elastic_core.services.traffic.load import UsageReport
from pages.components import cache, expert_meaning, glossary, page_context, page_elements
from pages.components.controls import bind_widget, choose_one
from pages.traffic import cached, charts, sentences

TITLE = "Is the memory used evenly?"
SPLITS = {"test": "All but the last event", "valid": "All but the last two"}
MEASURES = {"people": "People", "gate": "Strength of use"}
ORDERS = {"number": "By number", "load": "Hottest first"}
mount_learning = st.components.v2.component(
    "elastic_learning", css=Path(__file__).with_name("learning.css").read_text(encoding="utf-8"),
    js=Path(__file__).with_name("learning.js").read_text(encoding="utf-8"),
)  # fmt: skip


def usage_by_run() -> dict[str, UsageReport]:
    """The chosen run and, where it has a memory, the second one."""
    reports = {cache.label_run(context.run): cached.usage_report(context.open_run, split, group, measure)}
    if context.other is not None:
        called = cache.label_run(context.other.run)
        if context.other.model.retrieves:
            reports[called] = cached.usage_report(context.other, split, group, measure)
        else:
            st.caption(f"The second run, {page_context.escape_markdown(called)}, has no memory.")
    return reports


def place_side_by_side(draw: Callable[[int, str, UsageReport], None]) -> None:
    """One drawing a run, side by side."""
    columns = st.columns(len(reports), gap="medium")
    for place, (name, flow) in enumerate(reports.items()):
        with columns[place]:
            if len(reports) > 1:
                st.markdown(f"**{page_context.escape_markdown(name)}**")
            draw(place, name, flow)


def show_loads(place: int, name: str, flow: UsageReport) -> None:
    ordered, states = order == "load", flow.experts["state"].value_counts()
    figure = cache.cached_figure(
        charts.draw_load_bars, flow.experts, flow.each, flow.ordered, flow.now.equal_load, palette,
        ordered=ordered, selected=chosen, unit=unit, top=max(float(each.experts["load"].max()) for each in reports.values()),
        own=own if place == 0 else ("", ()),
    )  # fmt: skip
    states_text = ", ".join(f"{count} {glossary.EXPERT_LOAD[state]}" for state, count in states.items())
    alt = (
        f"People who use each of {flow.now.size:,} experts of {name}, {'the hottest first' if ordered else 'by number'}. "
        f"The hottest is expert {flow.experts['load'].idxmax()}. {states_text}."
    )
    table = flow.experts.sort_values("load", ascending=False, kind="stable") if ordered else flow.experts
    page_elements.show_chart(f"trf_load{place}", figure, table, sentences.LOAD, alt, experts=True)


def show_traffic_share(place: int, name: str, flow: UsageReport) -> None:
    table = load.load_by_batch(flow.now)
    hottest = len(set(table["expert"]))
    figure = cache.cached_figure(charts.draw_traffic_share, table, float(flow.top[hottest - 1]), palette, chosen)
    alt = f"The share of the traffic that the {hottest} busiest experts of {name} take in each group of people."
    page_elements.show_chart(f"trf_share{place}", figure, table, sentences.SHARE, alt, experts=True)


def show_grid(place: int, name: str, flow: UsageReport) -> None:
    st.markdown(sentences.describe_rows_and_columns(flow))
    figure = cache.cached_figure(charts.draw_load_grid, flow.experts, flow.sides, flow.line, palette, chosen, unit)
    side = flow.now.n_subkeys
    alt = (
        f"Grid of {side} by {side} experts of {name}: stronger colours mean more use, a cross dead. The sums stand at the sides."
    )
    page_elements.show_chart(f"trf_grid{place}", figure, flow.sides, sentences.GRID, alt, experts=True)


def show_rows_and_columns() -> None:
    with st.columns([3, 2] if len(reports) == 1 else 1)[0]:
        place_side_by_side(show_grid)


def show_chosen_expert() -> None:
    if chosen is None:
        st.caption(sentences.TEXT("CHOOSE"))
        return
    name = cache.expert_name(context.open_run, chosen)
    taste = f", {page_context.escape_markdown(name)}" if name else ""
    row = main.experts.iloc[chosen]
    page_elements.show_expert_card(
        f"**Expert {chosen}** (row {row['row']}, column {row['column']}){taste}: {row['load']:.0f} {unit}, "
        f"{row['times']:.2f} times equal use, {row['state']}."
    )


def show_interest_metrics() -> list[str]:
    metrics = expert_meaning.meaning_row(context.run, "trf_ask")
    if metrics is None:
        return []
    table = sentences.gauge_table(metrics)
    st.markdown(sentences.describe_interest(metrics))
    alt = "; ".join(f"{row['gauge']}: {row['value']:.2f}, {row['without']} {row['null']:.2f}" for row in table.to_dict("records"))
    page_elements.show_chart(
        "trf_gauges", cache.cached_figure(charts.draw_routing_metrics, table, palette), table, sentences.METRICS_TEXT, alt
    )
    return sentences.interest_notes(metrics)


def show_learning() -> None:
    frame, loads = cached.epochs_to_play(context.open_run, len(context.run.snapshot_files()))
    if frame.empty:
        st.write(sentences.TEXT("NOT_RECORDED"))
        return
    st.markdown(sentences.TEXT("PLAY" if len(loads) else "PLAY_TOTALS"))
    random_half = cached.usage_report(context.open_run, "valid", load.EVERYBODY, "people").health.at["half", "mean"]
    data = {
        "epochs": [
            {
                "epoch": row["epoch"],
                "used": row["used"],
                "even": row["entropy"],
                "told": sentences.describe_epoch(row, main.now.size, random_half),
            }
            for row in frame.to_dict("records")
        ],
        "loads": loads.to_numpy().tolist(),
        "colours": {"load": palette.load, "used": palette.category_colour(0), "even": palette.category_colour(4)},
        "says": sentences.TEXT.named_paragraphs("LEARNING_WORDS"),
    }
    mount_learning(data=data, key="trf_learning")
    page_elements.show_explanation(sentences.LEARNING)
    page_elements.remember_table("trf_epochs", frame)
    if len(loads):
        page_elements.remember_table("trf_loads", loads.rename_axis("epoch").rename(columns=str).reset_index())


PARTS: dict[str, Callable[[], list[str] | None]] = {
    "Rows and columns": show_rows_and_columns,
    "Interest or activity?": show_interest_metrics,
    "Traffic share": partial(place_side_by_side, show_traffic_share),
    "While it learned": show_learning,
}

context = page_context.require_context()
page_elements.require_experts(context, TITLE)
page_elements.show_title(TITLE)
st.write(sentences.TEXT("IDEA"))
with page_elements.place_in_row("top"):
    measure = choose_one("Count", MEASURES, key="trf_measure", width="content")
    order = choose_one("Experts", ORDERS, key="trf_order", width="content")
    group = bind_widget(st.selectbox, "Which people", load.length_groups(context.dataset), key="trf_group", width=250)
    split = bind_widget(st.selectbox, "Events read", list(SPLITS), format_func=SPLITS.__getitem__, key="trf_split", width=200)
palette, chosen = page_context.theme_palette(), context.expert
unit = "people" if measure == "people" else "people, by strength of use"
reports = usage_by_run()
own_experts = cache.route_everybody(context.open_run, split).experts[context.user]
own = f"experts of person {context.user + 1}", tuple(own_experts.tolist())
main = next(iter(reports.values()))
st.markdown(sentences.describe_use(main), help=glossary.EXPERT_LOAD_HELP)
place_side_by_side(show_loads)
show_chosen_expert()
doubts = PARTS[choose_one("More", list(PARTS), key="trf_part")]()
page_elements.show_confidence_notes([*sentences.usage_notes(main), *(doubts or ())])
page_elements.show_footer(
    "elastic routing", context.run.name, *(["--split", split] if split != "test" else []),
    trf_split=split, trf_group=group, trf_measure=measure, trf_order=order,
)  # fmt: skip
