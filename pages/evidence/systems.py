"""The second depth: what every system reached, beside counting and pure chance, one protocol at a time. From kept ranks."""

import pandas as pd
import streamlit as st

from elastic_core import labels
from elastic_core.core.evaluate import PROTOCOLS
from elastic_core.reproduce import System
from elastic_core.runs import unreadable_runs
from elastic_core.services.evidence import judging, standings
from elastic_core.services.evidence.systems import Group, of_run
from pages.frame import shell
from pages.kit import cache, forest, glossary, judged, prose, unreadable, view
from pages.kit.control import bound, button, one_of_list

WORDS = prose.of(__file__)
DATA, PROTOCOL, OURS, SYSTEM, TABLE, ROWS = "res_data", "res_protocol", "res_ours", "res_system", "res_table", "res_rows"
ALL, FITTED = "res_all", "res_fitted"  # all rows and columns; for which data the protocol was last set
COLUMNS = view.columns(
    WORDS(
        "COLUMNS",
        ndcg=glossary.METRICS["NDCG@10"],
        hr=glossary.METRICS["HR@10"],
        mrr=glossary.METRICS["MRR@10"],
        paper=judging.PAPER_NOTE,
    )
)
FIRST = 5  # columns that are shown at first


def show() -> None:
    shell.lockable({SYSTEM: "One system"})
    groups, faults = judged.groups(shell.RUNS)
    faults = [*faults, *unreadable_runs(shell.RUNS)]
    if not groups:
        st.info("Nothing is tested here yet. Train a model on the page Train; when it is tested, it appears here.")
        unreadable.lines(faults, "no run", "res_fault")
        return
    now = shell.current()  # none where no run opens: kept ranks can be read all the same
    row = view.row("bottom")
    with row:
        group = choose_data(groups, now)
        protocol = choose_protocol(group)
    table = judged.standings(group, protocol)
    if table.empty:
        st.info(f"Nothing on this data was ranked under `{protocol}`.")
        return
    with row:
        ours = one_of_list("System", judging.rivals(group, table), key=OURS, width=470)
    mine = called(group, table, ours)
    differences = judged.differences(group, mine, protocol)
    known = now is not None and now.dataset.hash == group.hash
    chance = judged.chance(now.dataset, protocol) if known else None
    st.markdown(f"**{shell.plain(judging.system_summary(table, differences, ours))}**")
    home = of_run(groups, now.run.path) if now is not None else None
    few = judging.matters(group, table, mine, *([home[1]] if home else []))
    with view.row():
        said = f"{group.people:,} people, means of all trainings, ranked {glossary.METRICS[protocol]}."
        st.caption(said, width="stretch", help=f"Data {group.hash}")
        every = len(few) == len(table) or bound(st.toggle, f"All {len(table)} systems", key=ALL, help="And all columns")
    shown = judging.with_chance(table if every else few, chance)
    draw_table(shown, protocol, list(COLUMNS)[: None if every else FIRST])
    lead_on(group, table, ours, now)
    draw_forest(differences if every else differences[differences["label"].isin(few["label"])], ours)
    if table["system"].str.contains(labels.UNEVEN).any():
        st.caption(labels.UNEVEN_NOTE)
    unreadable.lines(faults, "no run", "res_fault")
    if now is not None:
        view.foot("python -m elastic_core report", "--root", "checkpoints", data=group.key, protocol=protocol, ours=ours)


def choose_data(groups: list[Group], now: shell.Context | None) -> Group:
    keys = {group.key: group for group in groups}
    home = of_run(groups, now.run.path) if now is not None else None
    titles = {group.key: group.title for group in groups}
    return keys[one_of_list("Data", titles, key=DATA, first=home[0].key if home else None, width=250)]


def choose_protocol(group: Group) -> str:
    fits = judged.fitting(group)
    if st.session_state.get(FITTED) not in (None, group.key) and not shell.locked(PROTOCOL):
        st.session_state[PROTOCOL] = fits  # other data, judged in their own way
    st.session_state[FITTED] = group.key
    return one_of_list("Protocol", PROTOCOLS, key=PROTOCOL, first=fits, help=glossary.PROTOCOLS, width=140)


def draw_table(table: pd.DataFrame, protocol: str, columns: list[str]) -> None:
    shown = table[[name for name in columns if name != judging.PAPER or table[judging.PAPER].notna().any()]]
    st.session_state[ROWS] = table["system"].where(table["label"] != "", "").tolist()
    alt = f"{len(table)} systems under {protocol}: NDCG@10 with interval and seeds, beside counting and chance"
    view.table(
        TABLE, shown, WORDS.about("SYSTEMS"), alt, column_config={name: COLUMNS[name] for name in shown}, on_select=picked,
        selection_mode="single-row", placeholder="–", row_height=30,
        height=min(38 + 30 * len(table), 408),
    )  # fmt: skip


def picked() -> None:
    """A chosen row is the system that the box below the table names."""
    if (system := view.chosen_row(TABLE, st.session_state.get(ROWS, []))) and not shell.locked(SYSTEM):
        st.session_state[SYSTEM] = system


def lead_on(group: Group, table: pd.DataFrame, ours: str, now: shell.Context | None) -> None:
    """From a row to its run."""
    with view.row("bottom"):
        kept = table.loc[table["label"] != "", "system"].tolist()
        name = one_of_list("One system (or click the left edge of its row)", kept, key=SYSTEM, first=ours, width=470)
        runs = group.systems[called(group, table, name)]
        run, mine, held = runs[0], group.systems[called(group, table, ours)][0], shell.locked("run")
        here = now is not None and now.run in runs
        button(
            "Open its run", "res_open", open_run, run.name, cache.called(run), icon="check" if here else "open_in_new",
            disabled=held or here, help="It is open." if here else "On every page",
        )  # fmt: skip
        button(
            "Compare with it", "res_compare", side_by_side, mine.name, run.name, icon="balance",
            disabled=held or shell.locked("vs") or name == ours, help=f"Person by person, with {shell.plain(ours)}",
        )  # fmt: skip


def open_run(name: str, called: str) -> None:
    shell.choose(name)
    st.toast(f"The app shows {shell.plain(called)} now, on every page.", icon=":material/check:")


def side_by_side(a: str, b: str) -> None:
    shell.choose(a)
    shell.beside(b)
    st.session_state["ev_depth"] = "Two runs"


def called(group: Group, table: pd.DataFrame, name: str) -> System:
    """The system that stands in the table by this name."""
    label = table.loc[table["system"] == name, "label"].iloc[0]
    return next(system for system in group.systems if str(system) == label)


def draw_forest(table: pd.DataFrame, ours: str) -> None:
    if table.empty:
        return
    st.markdown(f"**{shell.plain(ours)} minus each of the others**")
    sides = (labels.BUDGET.sub("", ours), "the other")
    figure = cache.drawn(forest.forest, table, shell.palette(), "NDCG@10", sides, row="short", family="family")
    claimed = "; ".join(table.loc[table["who"] != "", "claim"]) or "nothing may be claimed"
    alt = f"NDCG@10 of {ours} minus each of {len(table)} systems, with intervals. {claimed}."
    view.chart("res_forest", figure, standings.named(table.drop(columns=["label", "short"]), *sides), WORDS.about("AGAINST"), alt)
