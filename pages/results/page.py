"""Results: what every system reached, against baseline and ELASTIC, one protocol at a time. From run folders and kept ranks."""

import pandas as pd
import streamlit as st

from elastic_core import labels
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.runs import unreadable_runs
from elastic_core.services.method import notes
from elastic_core.services.results import judging
from elastic_core.services.results.systems import Group, of_run
from pages.frame import shell
from pages.kit import cache, forest, judged, plot, unreadable, view
from pages.kit.control import one_of, one_of_list
from pages.results import silence, words

DATA, PROTOCOL, OURS, SYSTEM, TABLE, ROWS = "res_data", "res_protocol", "res_ours", "res_system", "res_table", "res_rows"
FITTED = "res_fitted"  # for which data the protocol was last set
COMPARE = "compare/page.py"
Number, Text = st.column_config.NumberColumn, st.column_config.TextColumn
COLUMNS = {
    "system": Text("System", pinned=True, width=220),
    "NDCG@10": Number("NDCG@10", format="%.4f", width=75, help=notes.WORDS["NDCG@10"]),
    "± 95%": Number("± 95%", format="%.4f", width=65, help="Over people"),
    "beside the baseline": Text("Beside the best baseline", width=330),
    "seeds": Number("Seeds", width=55, help="Trainings that differ only in the seed; empty where none is needed"),
    "spread": Number("Spread", format="%.4f", width=65, help="Standard deviation over seeds; empty for one"),
    "HR@10": Number("HR@10", format="%.4f", width=65, help=notes.WORDS["HR@10"]),
    "MRR@10": Number("MRR@10", format="%.4f", width=70, help=notes.WORDS["MRR@10"]),
    judging.PAPER: Number("The paper’s NDCG@10", format="%.4f", width=140, help=judging.PAPER_NOTE),
    "people": Number("People", format="localized", width=65),
    "parameters": Number("Parameters", format="localized", width=90),
    "weights MB": Number("Weights, MB", format="%.1f", width=85),
    "seconds": Number("Seconds", format="%.0f", width=70, help="Of a training, by the clock, mean over seeds"),
    "device": Text("Device", width=160),
    "trained with": Text("Trained with", width=520),
    "runs": Text("Runs", width=260),
}


def picked() -> None:
    """A chosen row is the system that the box below the table names."""
    rows, known = st.session_state[TABLE]["selection"]["rows"], st.session_state.get(ROWS, [])
    if rows and rows[0] < len(known) and not shell.locked(SYSTEM):
        st.session_state[SYSTEM] = known[rows[0]]


def systems(table: pd.DataFrame) -> None:
    shown = table[[name for name in COLUMNS if name != judging.PAPER or table[judging.PAPER].notna().any()]]
    st.session_state[ROWS] = table["system"].tolist()
    alt = f"{len(table)} systems under {protocol}: NDCG@10 with interval and seeds, beside the baseline, costs, settings and runs"
    view.table(
        TABLE, shown, words.STANDINGS, alt, column_config={name: COLUMNS[name] for name in shown}, on_select=picked,
        selection_mode="single-row", placeholder="–", height=min(38 + 35 * len(table), 318),
    )  # fmt: skip


def lead_on(table: pd.DataFrame, ours: str) -> None:
    """From a row to its run."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kept = table.loc[table["label"] != "", "system"].tolist()
        name = one_of_list("One system (or click the left edge of its row)", kept, key=SYSTEM, first=ours, width=420)
        row = table[table["system"] == name].iloc[0]
        run, mine = group.systems[row["label"]][0].name, group.systems[label_of(table, ours)][0].name
        held = shell.locked("run")
        st.button(
            "Open its run", icon=":material/open_in_new:", key="res_open", on_click=open_run, args=(run,), disabled=held,
            help="On every page",
        )  # fmt: skip
        beside = st.button(
            "Compare with it", icon=":material/balance:", key="res_compare", on_click=side_by_side, args=(mine, run),
            disabled=held or shell.locked("vs") or name == ours, help=f"Person by person, with {shell.plain(ours)}",
        )  # fmt: skip
    if now is not None and now.run in group.systems[row["label"]]:
        st.caption(f":material/check: The app shows {shell.plain(now.run.name)} of this system.")
    if beside:
        shell.go(COMPARE)


def open_run(name: str) -> None:
    shell.choose(name)
    st.toast(f"The app shows {shell.plain(name)} now, on every page.", icon=":material/check:")


def side_by_side(a: str, b: str) -> None:
    shell.choose(a)
    shell.beside(b)


def label_of(table: pd.DataFrame, name: str) -> str:
    return str(table.loc[table["system"] == name, "label"].iloc[0])


def against(table: pd.DataFrame, ours: str) -> None:
    if table.empty:
        return
    st.subheader("A minus each of the others", anchor=False)
    figure = cache.drawn(forest.forest, table, plot.palette(shell.is_dark()), "NDCG@10", row="short", family="family")
    claimed = "; ".join(table.loc[table["who"] != "", "claim"]) or "nothing may be claimed"
    alt = f"NDCG@10 of {ours} minus each of {len(table)} systems, with intervals. {claimed}."
    view.chart("res_forest", figure, table.drop(columns=["label", "short"]), words.FOREST, alt)


shell.lockable({SYSTEM: "One system"})
now = st.session_state.get(shell.CONTEXT)  # none where no run opens: kept ranks can be read all the same
st.title("How good is every system, and how sure is that?", anchor=False)
groups, faults = judged.groups(shell.RUNS)
if not groups:
    st.info("No run here keeps the ranks of a test yet. Train one (page Train); when it is tested it appears here.")
    unreadable.lines([*faults, *unreadable_runs(shell.RUNS)], "no run", "res_fault")
    st.stop()
keys = {group.key: group for group in groups}
home = of_run(groups, now.run.path) if now is not None else None
first = home[0].key if home else groups[0].key
if st.session_state.get(DATA) not in keys:
    st.session_state.pop(DATA, None)
chosen = one_of("Data", list(keys), key=DATA, default=first, named=lambda key: shell.plain(keys[key].title))
group: Group = keys[chosen]
row = st.container(horizontal=True, vertical_alignment="top")
fits = judged.fitting(group)
if st.session_state.get(FITTED) not in (None, group.key) and not shell.locked(PROTOCOL):
    st.session_state[PROTOCOL] = fits  # other data, judged in their own way
st.session_state[FITTED] = group.key
with row:
    protocol = one_of("Protocol", list(PROTOCOLS), key=PROTOCOL, default=fits, help=notes.AGAINST)
table = judged.standings(group, protocol)
if table.empty:
    st.info(f"Nothing on this data was ranked under `{protocol}`.")
    st.stop()
rivals = judging.rivals(group, table)
with row:
    ours = one_of_list("System A", rivals, key=OURS, width=400)
differences = judged.differences(group, label_of(table, ours), protocol)
st.markdown(f"**{shell.plain(judging.summary(table, differences, ours))}**")
chance = judged.chance(now.dataset, protocol) if now is not None and now.dataset.hash == group.hash else None
null = f" A random order: {chance:.4f}." if chance is not None else ""
st.caption(f"Data {shell.plain(group.hash)}, test split, {group.people:,} people, ranked {notes.WORDS[protocol]}.{null}")
systems(table)
lead_on(table, ours)
against(differences, ours)
if table["system"].str.contains(labels.UNEVEN).any():
    st.caption(labels.UNEVEN_NOTE)
silence.show()
unreadable.lines([*faults, *unreadable_runs(shell.RUNS)], "no run", "res_fault")
if now is not None:
    view.foot("python -m elastic_core report", "--root", "checkpoints", data=chosen, protocol=protocol, ours=ours)
