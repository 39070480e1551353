"""What did we learn? Verdicts from the runs at hand: a question, an answer, its numbers, and what would change our mind."""

import pandas as pd
import streamlit as st

from elastic_core import labels
from elastic_core.services.learned import meaning, verdicts
from elastic_core.services.learned.verdicts import Finding, Verdict
from elastic_core.services.method import notes
from pages.frame import shell
from pages.kit import asked, judged, view
from pages.learned import answers, words

COLOURS = {"yes": "green", "in part": "green", "it depends": "orange", "no": "red", "not known": "gray"}
ICONS = {
    "yes": ":material/check:", "in part": ":material/rule:", "it depends": ":material/alt_route:", "no": ":material/close:",
    "not known": ":material/help:",
}  # fmt: skip
WIDTHS = {"question": st.column_config.Column(width=250), "data": st.column_config.Column(width=150)}
SAID = {"in part": "Yes, in part"}
SCREENS = {"results": "results/page.py", "speed": "speed/page.py", "experts": "experts/page.py"}


def card(each: Verdict) -> None:
    with st.container(border=True, key=f"lrn_card_{each.key}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{each.question}**", width="stretch")
            st.badge(SAID.get(each.answer, each.answer.capitalize()), icon=ICONS[each.answer], color=COLOURS[each.answer])
        st.markdown(shell.plain(each.line))
        with st.container(horizontal=True, vertical_alignment="center"):
            first = each.findings[0] if each.findings else None
            panel = st.expander("All numbers", key=f"lrn_more_{each.key}", width="stretch")
            if st.button("Show the evidence", icon=":material/arrow_forward:", key=f"lrn_go_{each.key}", type="tertiary",
                         on_click=lead, args=(each.screen, first)):  # fmt: skip
                shell.go(SCREENS[each.screen])
        with panel:
            lines = [f"{ICONS[finding.answer]} {shell.plain(finding.sentence)}" for finding in each.findings]
            lines += [f"{ICONS['not known']} {shell.plain(each.absent)}"] if each.absent else []
            st.markdown("\n".join(f"- {line}" for line in lines))
            if each.note:
                st.caption(shell.plain(each.note))
            st.markdown(f"**What would change our mind:** {each.change}")
            if each.command:
                st.caption("Measures what is missing:")
                st.code(each.command, language="bash", wrap_lines=True)


def lead(screen: str, first: Finding | None) -> None:
    """Sets the other page to what the verdict is about."""
    if screen == "results" and first is not None:
        st.session_state["res_fitted"] = first.data  # its protocol is chosen here
        for key, value in (("res_data", first.data), ("res_protocol", verdicts.PROTOCOL), ("res_ours", first.system)):
            if not shell.locked(key):
                st.session_state[key] = value


def measure() -> None:
    """What the experts of the chosen run stand for: asked in the background, kept for everybody."""
    if now is not None and now.model.retrieves:
        asked.row(now.run, "lrn_measure")


now = st.session_state.get(shell.CONTEXT)  # none where no run opens: kept ranks can be read all the same
st.title("What did we learn?", anchor=False)
st.caption(
    "Written from the runs at hand as you read. Differences are of NDCG@10 on the test, against all unmet items.",
    help=f"NDCG@10: {notes.WORDS['NDCG@10']}.",
)
groups, _ = judged.groups(shell.RUNS)
rows = asked.rows(shell.RUNS)
head = st.empty()
head.caption("Comparing system by system …")
found = list[Verdict]()
for pair in verdicts.PAIRS:  # each is shown when it is known
    found.append(verdicts.compared(pair, groups, judged.differences))
    card(found[-1])
for each in (*meaning.verdicts(groups, rows), answers.faster(shell.RUNS)):
    found.append(each)
    card(each)
    if each.key == "interest":
        measure()
head.markdown(f"**{verdicts.counted(found)}**")
st.subheader("All findings", anchor=False)
table = pd.DataFrame(verdicts.table(found), columns=list(verdicts.COLUMNS))
view.table("lrn_findings", table, words.FINDINGS, f"{len(table)} findings with their numbers and runs", height=220,
           column_config=WIDTHS)  # fmt: skip
if any(labels.UNEVEN in each.line for each in found):
    st.caption(labels.UNEVEN_NOTE)
if now is not None:
    view.foot("python -m elastic_core report")
