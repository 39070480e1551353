"""Claims: a grid of claims and data sets, and what each answer stands on, where somebody asks."""

from itertools import chain

import streamlit as st

from elastic_core.results.claims import Finding, Verdict, verdict_table
from elastic_core.results.systems import mark_notes
from elastic_core.services.evidence import meaning
from pages.components import expert_meaning, glossary, page_context, page_elements, page_text, results
from pages.components.controls import choose_from_list, place_button
from pages.evidence import cached
from pages.evidence.claim_grid import claim_grid_html
from pages.evidence.personal_gain import show_personal_gain

TEXT = page_text.load_page_text(__file__)
CLAIM, NONE = "lrn_claim", ""
ABOUT_EXPERTS = ("meaning", "interest")  # claims that a run answers once its memory was asked
GOES = {"systems": "See all systems", "speed": "See the curves", "experts": "See the experts"}
SCREENS = {"systems": "evidence/page.py", "speed": "speed/page.py", "experts": "experts/page.py"}


def show_claims() -> None:
    context = page_context.current_context()  # none where no run opens: kept ranks can be read all the same
    st.markdown(TEXT("CLAIMS"), help=f"NDCG@10: {glossary.METRICS['NDCG@10']}.")
    measured, _ = results.measured_data(page_context.RUNS)
    rows = expert_meaning.meaning_rows(page_context.RUNS)
    with st.spinner("Comparing system by system …"):
        verdicts: list[Verdict] = [
            *chain(results.answer_questions(measured), meaning.find_verdicts(measured, rows)),
            cached.speed_verdict(page_context.RUNS),
        ]
    st.html(claim_grid_html(verdicts, measured, page_context.theme_palette()))
    names = {NONE: "Choose a claim", **{verdict.key: verdict.claim for verdict in verdicts}}
    chosen = choose_from_list("More about a claim", names, key=CLAIM)
    if chosen != NONE:
        with st.container(border=True):
            show_findings(next(verdict for verdict in verdicts if verdict.key == chosen))
            if chosen in ABOUT_EXPERTS and context is not None and context.model.retrieves:
                expert_meaning.meaning_row(context.run, "lrn_measure")
    show_personal_gain(measured)
    panel = st.expander("All findings as a table", key="lrn_all", on_change="rerun")
    if panel.open:
        with panel:
            table = verdict_table(verdicts)
            alt = f"{len(table)} findings with their numbers and runs"
            page_elements.show_table("lrn_findings", table, TEXT.chart_text("FINDINGS"), alt, height=220)
    if context is not None:
        page_elements.show_footer("elastic reproduce", "--table")


def show_findings(verdict: Verdict) -> None:
    """Every finding with its interval, or why there is none; what would change our mind; the way to the numbers."""
    lines = [f"- {finding.mark} {page_context.escape_markdown(finding.sentence)}" for finding in verdict.findings]
    lines += [f"- {page_context.escape_markdown(verdict.absent)}"] if verdict.absent else []
    st.markdown("\n".join(lines))
    notes = [verdict.unit, verdict.note, *mark_notes(each.system for each in verdict.findings)]
    for note in filter(None, notes):
        st.caption(page_context.escape_markdown(note))
    st.markdown(f"**What would change our mind:** {verdict.change}")
    if verdict.command:
        st.caption("This command measures what is missing:")
        st.code(verdict.command, language="bash", wrap_lines=True)
    first = verdict.findings[0] if verdict.findings else None
    if place_button(
        GOES[verdict.screen], f"lrn_go_{verdict.key}", open_screen, verdict.screen, first, icon="arrow_forward", type="tertiary"
    ):
        page_context.open_page(SCREENS[verdict.screen])


def open_screen(screen: str, first: Finding | None) -> None:
    """Sets the other page to what a claim is about."""
    if screen != "systems":
        return
    settings = {"ev_depth": "Systems"}
    if first is not None:
        st.session_state["res_fitted"] = first.data  # its protocol is chosen here
        settings |= {"res_data": first.data, "res_protocol": first.protocol, "res_ours": first.system}
    for key, value in settings.items():
        if not page_context.is_locked(key):
            st.session_state[key] = value
