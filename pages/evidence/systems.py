"""The second depth: what every system reached, beside counting and pure chance, one protocol at a time; one system minus another;
and what the size of the memory is worth. From the ranks that runs keep."""

import pandas as pd
import streamlit as st

from elastic_core.core.candidates import PROTOCOLS
from elastic_core.data.repeats import ONLY_UNSEEN, WITH_SEEN
from elastic_core.results.compare import Comparison, claim_sentence, needs_training, p_text
from elastic_core.results.reproduce import System
from elastic_core.results.systems import (
    MARK_NOTES,
    DataSet,
    is_variant,
    main_elastic,
    main_protocol,
    mark_notes,
    short_label,
    shorten_titles,
    usual_partner,
)
from elastic_core.results.table import (
    PAPER_COLUMN,
    main_rows,
    memory_size_table,
    protocol_table,
    reference_names,
    system_summary,
    with_chance,
)
from elastic_core.runs import unreadable_runs
from elastic_core.text import true_minus
from pages.components import cache, glossary, page_context, page_elements, page_text, results
from pages.components.controls import bind_widget, choose_from_list, place_button
from pages.evidence import charts

TEXT = page_text.load_page_text(__file__)
DATA, PROTOCOL, OURS, SYSTEM, TABLE, ROWS = "res_data", "res_protocol", "res_ours", "res_system", "res_table", "res_rows"
ALL, FITTED, FIRST_OTHER, USUAL = "res_all", "res_fitted", "res_first", "res_usual"  # FITTED: for which data the protocol was set
BESIDE = "beside the baseline"
PAPER_NOTE = "The paper’s values come from its own test and its own MovieLens-1M. They were not measured here."
COLUMNS = page_elements.parse_columns(
    TEXT(
        "COLUMNS",
        ndcg=glossary.METRICS["NDCG@10"],
        hr=glossary.METRICS["HR@10"],
        mrr=glossary.METRICS["MRR@10"],
        paper=PAPER_NOTE,
    )
)
EVERY_ITEM = (ONLY_UNSEEN, WITH_SEEN)  # protocols that rank all items; the others draw a hundred
FIRST_COLUMNS = 5  # that are shown at first


def show_systems() -> None:
    page_context.register_controls({SYSTEM: "Compared with"})
    measured, faults = results.measured_data(page_context.RUNS)
    faults = [*faults, *unreadable_runs(page_context.RUNS)]
    if not measured:
        st.info("Nothing is tested here yet. Train a model on the page Train; when it is tested, it appears here.")
        page_elements.show_unreadable_folders(faults, "no run", "res_fault")
        return
    context = page_context.current_context()  # none where no run opens: kept ranks can be read all the same
    row = page_elements.place_in_row("bottom")
    with row:
        data_set = choose_data(measured, context)
        protocol = choose_protocol(data_set)
    table = results.cached_leaderboard(data_set, protocol)
    if table.empty:
        st.info(f"Nothing on this data was ranked under `{protocol}`.")
        return
    own_system = data_set.system_of(context.run.path) if context is not None else None
    with row:
        names = reference_names(data_set, table)
        of_label = dict(zip(table["label"], table["system"], strict=True))
        likely = [of_label.get(str(each)) for each in (own_system, main_elastic(data_set.systems))]
        first = next((name for name in likely if name in names), names[0])
        ours_name = choose_from_list("System", names, key=OURS, first=first, width=470)
    ours = system_called(data_set, table, ours_name)
    differences = results.cached_differences(data_set, ours, protocol)
    st.markdown(f"**{page_context.escape_markdown(system_summary(table, differences, ours_name))}**")
    main = main_rows(data_set, table, ours, *([own_system] if own_system else []))
    with page_elements.place_in_row():
        ranked_text = f"Under *{protocol}*, the next item is ranked {glossary.METRICS[protocol]}."
        st.caption(
            f"{data_set.users:,} people. {ranked_text}",
            width="stretch",
            help=f"Data {data_set.hash}",
        )
        shows_all = len(main) == len(table) or bind_widget(st.toggle, "All systems and columns", key=ALL)
    if protocol != WITH_SEEN and main_protocol(data_set.systems) == WITH_SEEN:
        st.caption(TEXT("REPEATS WIN", protocol=protocol))
    chance = (
        results.random_ndcg(context.dataset, protocol) if context is not None and context.dataset.hash == data_set.hash else None
    )
    rows, columns = (table, list(COLUMNS)) if shows_all else (main, list(COLUMNS)[:FIRST_COLUMNS])
    drawn_labels = [str(label) for label in (differences if shows_all else main)["label"]]
    reach = common_reach(data_set, ours, protocol, drawn_labels)
    draw_differences(
        select_labels(differences, drawn_labels), ours_name, reach, "each of the others" if shows_all else "the main others"
    )
    draw_table(data_set, with_chance(rows, chance), protocol, columns)
    other = choose_other(data_set, table, ours_name, ours, context)
    draw_pair(data_set, table, (ours, other), protocol)
    draw_memory_size(data_set, ours, protocol)
    if notes := mark_notes(table["system"]):
        st.caption(" ".join(notes))
    page_elements.show_unreadable_folders(faults, "no run", "res_fault")
    if context is not None:
        runs = [",".join(run.name for run in data_set.systems[each]) for each in (ours, other)]
        command = ["compare", *runs] if other != ours else ["reproduce", "--table"]
        settings = {"data": data_set.key, "ours": ours_name}
        page_elements.show_footer(f"elastic {command[0]}", *command[1:], "--protocol", protocol, protocol=protocol, **settings)


# --- what is chosen ---------------------------------------------------------------------------------------------------


def choose_data(measured: list[DataSet], context: page_context.Context | None) -> DataSet:
    # worlds of personal_gain.py hold pairs of variants alone, which are set against nothing else
    by_key = {each.key: each for each in measured if not all(map(is_variant, each.systems))}
    titles = {key: data_set.title for key, data_set in by_key.items()}
    home = next((each.key for each in measured if context is not None and each.system_of(context.run.path)), None)
    return by_key[choose_from_list("Data", titles, key=DATA, first=home, width=250)]


def choose_protocol(data_set: DataSet) -> str:
    usual = main_protocol(data_set.systems)
    if st.session_state.get(FITTED) not in (None, data_set.key) and not page_context.is_locked(PROTOCOL):
        st.session_state[PROTOCOL] = usual  # other data, judged in their own way
    st.session_state[FITTED], st.session_state[USUAL] = data_set.key, usual  # the tour asks whether another one was chosen
    return choose_from_list("Protocol", PROTOCOLS, key=PROTOCOL, first=usual, help=glossary.PROTOCOLS, width=140)


def choose_other(
    data_set: DataSet, table: pd.DataFrame, ours_name: str, ours: System, context: page_context.Context | None
) -> System:
    """The system that `ours` is set against below, or whose run is opened."""
    with page_elements.place_in_row("bottom"):
        measured = table[table["label"] != ""]
        by_label = {str(system): system for system in data_set.systems}
        partner = usual_partner(ours, {by_label[label]: data_set.systems[by_label[label]] for label in measured["label"]})
        first = measured.loc[measured["label"] == str(partner), "system"].iloc[0] if partner else ours_name
        st.session_state[FIRST_OTHER] = first  # the tour asks whether another one was chosen
        label = "Compared with (or click the left edge of its row)"
        name = choose_from_list(label, measured["system"].tolist(), key=SYSTEM, first=first, width=470)
        other = system_called(data_set, table, name)
        run = data_set.systems[other][0]
        is_open = context is not None and context.run in data_set.systems[other]
        place_button(
            "Open its run", "res_open", open_run, run.name, cache.label_run(run), icon="check" if is_open else "open_in_new",
            disabled=page_context.is_locked("run") or is_open, help="It is open." if is_open else "On every page",
        )  # fmt: skip
    return other


def system_called(data_set: DataSet, table: pd.DataFrame, name: str) -> System:
    """The system that stands in the table by this name."""
    label = table.loc[table["system"] == name, "label"].iloc[0]
    return next(system for system in data_set.systems if str(system) == label)


def choose_row() -> None:
    """A chosen row is the system that the box below the table names."""
    if (system := page_elements.selected_row(TABLE, st.session_state.get(ROWS, []))) and not page_context.is_locked(SYSTEM):
        st.session_state[SYSTEM] = system


def open_run(name: str, called: str) -> None:
    page_context.select_run(name)
    st.toast(f"The app shows {page_context.escape_markdown(called)} now, on every page.", icon=":material/check:")


# --- what is drawn ----------------------------------------------------------------------------------------------------


def draw_table(data_set: DataSet, table: pd.DataFrame, protocol: str, columns: list[str]) -> None:
    visible_rows = with_short_names(data_set, table)
    visible_rows = visible_rows[[name for name in columns if name != PAPER_COLUMN or table[PAPER_COLUMN].notna().any()]]
    st.session_state[ROWS] = table["system"].where(table["label"] != "", "").tolist()
    alt = f"{len(table)} systems under {protocol}: NDCG@10 with interval and seeds, beside counting and chance"
    page_elements.show_table(
        TABLE,
        visible_rows,
        TEXT.chart_text("SYSTEMS"),
        alt,
        column_config={name: COLUMNS[name] for name in visible_rows},
        on_select=choose_row,
        selection_mode="single-row",
        placeholder="–",
        row_height=30,
        height=min(38 + 30 * len(table), 408),
    )


def with_short_names(data_set: DataSet, table: pd.DataFrame) -> pd.DataFrame:
    """The table in words that its columns have room for: without the recipe that all share, and the baseline that all stand
    beside."""
    systems = {str(system): system for system in data_set.systems}
    listed = [systems[label] for label in table["label"] if label in systems]
    shared = len({system.recipe for system in listed if needs_training(data_set.systems[system][0])}) == 1
    bare = {str(system): system._replace(mark="", budget="") if shared else system for system in listed}
    names = [
        " ".join([short_label(bare[label]), *(mark for mark in MARK_NOTES if mark in title)]) if label in bare else title
        for label, title in zip(table["label"], table["system"], strict=True)
    ]
    leads = table[BESIDE].str.replace(r"^(above|below|level with) .* by ", r"\1 by ", regex=True)
    return table.assign(**{"system": [name.replace(" minutes of processor time)", " min)") for name in names], BESIDE: leads})


def select_labels(table: pd.DataFrame, labels: list[str]) -> pd.DataFrame:
    return table[table["label"].isin(labels)]


def common_reach(data_set: DataSet, ours: System, protocol: str, labels: list[str]) -> float:
    """How far from zero the intervals of these systems go under this protocol and those like it, which draw as many candidates:
    one axis for them all, or a protocol with small differences would look like one with large ones."""
    alike = [each for each in PROTOCOLS if (each in EVERY_ITEM) == (protocol in EVERY_ITEM)]
    tables = [select_labels(results.cached_differences(data_set, ours, each), labels) for each in alike]
    return max((float(table[["low", "high"]].abs().max().max()) for table in tables if len(table)), default=0.0)


def draw_differences(table: pd.DataFrame, ours: str, reach: float, others: str) -> None:
    """`ours` minus each of `table`, whose systems are `others`, on an axis that goes as far as `reach` on both sides."""
    if table.empty:
        return
    ours, *names = shorten_titles([ours, *table["short"]])
    sides = (ours, "the other")
    st.markdown(f"**{page_context.escape_markdown(sides[0])} minus {others}**")
    table = table.assign(short=names)
    figure = cache.cached_figure(charts.draw_forest, table, page_context.theme_palette(), sides, family="family", reach=reach)
    claimed = "; ".join(table.loc[table["winner"] != "", "claim"]) or "nothing may be claimed"
    alt = f"NDCG@10 of {ours} minus each of {len(table)} systems, with intervals. {claimed}."
    page_elements.show_chart(
        "res_forest", figure, with_names(table.drop(columns=["label", "short"]), *sides), TEXT.chart_text("AGAINST"), alt
    )


def draw_pair(data_set: DataSet, table: pd.DataFrame, pair: tuple[System, System], protocol: str) -> None:
    """One system minus another, asked alone: what may be claimed, and whether it holds under other protocols."""
    comparisons = results.compare_by_protocol(*(data_set.systems[system] for system in pair))
    comparison = next((each for each in comparisons if each.protocol == protocol), None)
    if comparison is None or pair[0] == pair[1]:
        return
    titles = table.set_index("label")["system"]
    a, b = shorten_titles([str(titles[str(system)]) for system in pair])
    st.markdown(f"**{page_context.escape_markdown(claim_sentence(comparison, a, b))}**")
    draw_numbers(comparison, a, b)
    protocol_rows = protocol_table(comparisons)
    figure = cache.cached_figure(charts.draw_forest, protocol_rows, page_context.theme_palette(), (a, b), row="protocol")
    alt = f"NDCG@10 of {a} minus {b} under {len(protocol_rows)} protocols, with intervals. {claim_sentence(comparison, a, b)}"
    page_elements.show_chart("res_pair", figure, with_names(protocol_rows, a, b), TEXT.chart_text("PAIR"), alt)


def draw_numbers(comparison: Comparison, a: str, b: str) -> None:
    with page_elements.place_in_row("top"):
        for name, mean in ((a, comparison.mean_a), (b, comparison.mean_b)):
            st.metric(page_context.escape_markdown(name), f"{mean:.4f}", width="content")
        interval = true_minus(f"95% {comparison.low:+.4f} to {comparison.high:+.4f}")
        st.metric("Difference", true_minus(f"{comparison.difference:+.4f}"), interval, delta_color="off", delta_arrow="off")
        if not comparison.seeds_counted:  # a p over people alone would look like a proof
            return
        about = "p, two-sided, of this pair alone: how often luck gives such a difference. The first chart adjusts for all."
        st.metric("p: how often luck alone does this", p_text(comparison.p), help=about)


def draw_memory_size(data_set: DataSet, ours: System, protocol: str) -> None:
    """The paper's Figure 5, where memories of several sizes were trained."""
    table = memory_size_table(data_set.systems, ours, protocol)
    if len(table) < 2:
        return
    panel = st.expander("How large should the memory be?", key="res_size", on_change="rerun")
    if not panel.open:
        return
    with panel:
        model = data_set.systems[ours][0].config.model
        figure = cache.cached_figure(charts.draw_memory_size, table, model.n_subkeys, model.k, page_context.theme_palette())
        alt = f"Test NDCG@10 and the share of experts in use of {len(table)} sizes of the memory, against √K and k."
        page_elements.show_chart("res_size_chart", figure, table, TEXT.chart_text("SIZE"), alt)


def with_names(table: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """A table of differences for reading, with the names of the two."""
    return table.assign(winner=table["winner"].replace({"A": a, "B": b})).rename(columns={"A": a, "B": b, "winner": "better"})
