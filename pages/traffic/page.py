"""Traffic: is the memory used evenly; who is hot, who is dead, and is it chance?"""

from collections.abc import Callable

import streamlit as st

from elastic_core.services.person import inspect
from elastic_core.services.traffic import load, over_time
from pages.frame import shell
from pages.kit import asked, busy, cache, open_expert, plot, view
from pages.kit.control import bound, one_of
from pages.traffic import answers, charts, instead, run_charts, words

SPLITS = {"test": "All but the last event", "valid": "All but the last two"}
MEASURES = {"people": "People", "gate": "Gate-weighted"}
ORDERS = {"number": "By number", "load": "Hottest first"}
PARTS = ("Interest or activity?", "Inequality", "Size of the memory", "While it learned")


def controls() -> None:
    with st.container(horizontal=True, vertical_alignment="top"):
        one_of("Count", list(MEASURES), key="trf_measure", default="people", named=MEASURES.__getitem__, width="content")
        one_of("Experts", list(ORDERS), key="trf_order", default="number", named=ORDERS.__getitem__, width="content")
        bound(st.selectbox, "People", load.slices(now.dataset), key="trf_group", width=250)
        bound(st.selectbox, "Read of each history", list(SPLITS), format_func=SPLITS.__getitem__, key="trf_split", width=200)


def flows() -> dict[str, tuple[load.Traffic, load.Chance]]:
    """The chosen run and, where it has a memory, the second one."""
    state = st.session_state
    settings = state["trf_split"], state["trf_group"], state["trf_measure"]
    found = {cache.called(now.run): answers.flow(now.run, now.model, now.dataset, *settings)}
    if now.other is not None:
        model = cache.opened(now.other, now.dataset)
        if inspect.memory_size(model):
            found[cache.called(now.other)] = answers.flow(now.other, model, now.dataset, *settings)
        else:
            st.caption(f"The second run, {shell.plain(cache.called(now.other))}, has no interest memory.")
    return found


def beside(draw: Callable[[str, int], None]) -> None:
    """One drawing a run, side by side."""
    for place, (column, name) in enumerate(zip(st.columns(len(found), gap="medium"), found, strict=True)):
        with column:
            if len(found) > 1:
                st.markdown(f"**{shell.plain(name)}**")
            draw(name, place)


def loads(name: str, place: int) -> None:
    flow, band = found[name]
    table = load.experts_table(flow, band)
    ordered = st.session_state["trf_order"] == "load"
    top = float(max(f.load.max() for f, _ in found.values()))
    figure = cache.drawn(
        charts.load_bars, table, band.each, band.ordered, flow.even, palette,
        ordered=ordered, selected=chosen, unit=unit, top=top,
    )  # fmt: skip
    counts = table["state"].value_counts()
    alt = (
        f"Load of {flow.size:,} experts of {name} as bars, {'the hottest first' if ordered else 'by number'}. The hottest is "
        f"expert {table['load'].idxmax()}. " + ", ".join(f"{n} {busy.WORDS[s]}" for s, n in counts.items()) + "."
    )
    key = f"trf_load{place}"
    view.chart(key, figure, table, words.LOAD, alt, on_select=lambda: open_expert.clicked(key))


def shares(name: str, place: int) -> None:
    flow, band = found[name]
    table = load.batches(flow)
    hottest = len(set(table["expert"]))
    figure = cache.drawn(charts.stripes, table, float(band.top[hottest - 1]), palette, chosen)
    alt = f"Share of the traffic of the {hottest} busiest experts of {name} in batches of people, stacked stripes."
    key = f"trf_share{place}"
    view.chart(key, figure, table, words.SHARE, alt, on_select=lambda: open_expert.clicked(key))


def grids(name: str, place: int) -> None:
    flow, band = found[name]
    table, sides = load.experts_table(flow, band), load.marginals(flow, band)
    st.markdown(words.explained(flow, band, table, sides))
    figure = cache.drawn(charts.grid, table, sides, band.line, palette, chosen, unit)
    alt = f"Grid of {flow.side} by {flow.side} experts of {name} coloured by load, dead ones crossed, with row and column loads."
    key = f"trf_grid{place}"
    view.chart(key, figure, sides, words.GRID, alt, on_select=lambda: open_expert.clicked(key))


def chosen_expert() -> None:
    flow, band = found[cache.called(now.run)]
    if chosen is None:
        st.caption("A click on a bar, stripe or square chooses an expert.")
        return
    row = load.experts_table(flow, band).iloc[chosen]
    open_expert.card(
        f"**Expert {chosen}** (row {row['row']}, column {row['column']}): {row['load']:.0f} {unit}, {row['times']:.2f} × even, "
        f"{row['state']}."
    )


def interest() -> None:
    gauges = asked.row(now.run, "trf_ask")
    if gauges is None:
        return
    table = words.gauge_table(gauges)
    st.markdown(words.interest_or_activity(gauges))
    alt = "; ".join(f"{row['gauge']}: {row['value']:.2f}, {row['without']} {row['null']:.2f}" for row in table.to_dict("records"))
    view.chart("trf_gauges", cache.drawn(run_charts.gauges, table, palette), table, words.GAUGES, alt)
    st.caption(f"{gauges.people:,} people with 8 events or more, read without their last.")


def inequality() -> None:
    left, right = st.columns([5, 6], gap="medium")
    with left:
        curves = {name: load.lorenz(flow.load) for name, (flow, _) in found.items()}
        first = found[cache.called(now.run)]
        figure = cache.drawn(charts.lorenz, curves, first[1].top, palette)
        table = next(iter(curves.values()))
        gini = "; ".join(f"Gini of {name} {load.gini(flow.load):.3f}" for name, (flow, _) in found.items())
        view.chart("trf_lorenz", figure, table, words.LORENZ, f"Lorenz curve of the load. {gini}.")
    with right:
        table = words.health_table(found)
        view.table("trf_health", table, words.HEALTH, "Health of the memory in numbers, beside a random router")
        st.caption(f"Random router: 95% of {first[1].draws} simulations.")


def size() -> None:
    figure5 = over_time.sensitivity(now.run, now.dataset, cache.runs(shell.RUNS))
    if figure5.table.empty:
        st.write("No finished run with a memory is here for this data.")
    else:
        figure = cache.drawn(run_charts.sensitivity, figure5.table, figure5.side, figure5.k, palette)
        alt = f"Test NDCG@10 and share of experts used of {len(figure5.table)} finished runs against √K and k."
        view.chart("trf_size", figure, figure5.table, words.SIZE, alt)
    st.info(
        f"{figure5.sentence} Train one: **Train → Change one thing**, or `--set model.side=32`.",
        icon=":material/data_alert:",
    )
    st.caption(over_time.PAPER)


def learning() -> None:
    frame = over_time.by_epoch(now.run)
    if frame.empty:
        st.write("This run recorded no use of its memory by epoch.")
        return
    last = frame.iloc[-1]
    alt = (
        f"Use of the memory after each of {len(frame)} epochs; at the end {last['used']:.0%} used, entropy {last['entropy']:.2f}."
    )
    view.chart("trf_epochs", cache.drawn(run_charts.by_epoch, frame, palette), frame, words.EPOCHS, alt)
    epochs, kept = over_time.load_by_epoch(now.run)
    if not epochs:
        st.caption("This run kept no snapshots of its experts, so their load by epoch cannot be shown; newer runs can keep them.")
        return
    heat = over_time.heat(epochs, kept)
    alt = f"Load of {len(heat)} experts after {len(epochs)} epochs, in the order of the final load."
    table = heat.rename_axis("expert").rename(columns=str).reset_index()
    view.chart("trf_heat", cache.drawn(run_charts.load_by_epoch, heat, palette), table, words.HEAT, alt)


now = shell.context()
memory = inspect.memory_size(now.model)
if not memory:
    instead.show(now)
    st.stop()
st.title("Is the memory used evenly, and is that chance?", anchor=False)
if reason := inspect.too_many(now.model):
    st.info(reason)
    view.foot("python -m elastic_core evaluate", now.run.name)
    st.stop()
controls()
palette, chosen = plot.palette(shell.is_dark()), now.expert
unit = "people" if st.session_state["trf_measure"] == "people" else "people, gate-weighted"
found = flows()
main, band = found[cache.called(now.run)]
st.markdown(words.verdict(main, band, load.experts_table(main, band)), help=busy.MEANING)
st.subheader("Load of every expert", anchor=False)
beside(loads)
chosen_expert()
columns = st.columns(2, gap="medium") if len(found) == 1 else [st.container(), st.container()]
with columns[0]:
    st.subheader("Rows and columns", anchor=False)
    beside(grids)
with columns[1]:
    st.subheader("The busiest, by batch", anchor=False)
    if len(found) == 1:
        st.caption(f"Batches of about {main.people // 12 or 1} people. Dashed: a random router’s seven busiest.")
    beside(shares)
part = one_of("Closer look", PARTS, key="trf_part")
{PARTS[0]: interest, PARTS[1]: inequality, PARTS[2]: size, PARTS[3]: learning}[part]()
view.foot(
    "python -m elastic_core routing",
    now.run.name,
    *(["--split", st.session_state["trf_split"]] if st.session_state["trf_split"] != "test" else []),
    **{name: st.session_state[name] for name in ("trf_split", "trf_group", "trf_measure", "trf_order")},
)
