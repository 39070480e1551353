"""The first depth: each claim of the paper as a sentence, yes, no or not known, its numbers; doubt behind *How sure?*."""

from itertools import chain

import streamlit as st

from elastic_core.results.claims import Finding, Verdict, count_sentence, verdict_table
from elastic_core.results.systems import UNEVEN, UNEVEN_NOTE, join_names
from elastic_core.services.evidence import meaning
from pages.components import expert_meaning, glossary, page_context, page_elements, page_text, results
from pages.components.controls import place_button
from pages.evidence import cached

TEXT = page_text.load_page_text(__file__)
# Of an answer: what the badge says, its icon and its colour.
BADGES = {
    "yes": ("Yes", "check", "green"), "in part": ("Yes, in part", "rule", "green"), "no": ("No", "close", "red"),
    "made-up": ("Yes in made-up worlds", "rule", "blue"),
    "it depends": ("It depends", "alt_route", "orange"), "not known": ("Not known", "help", "gray"),
}  # fmt: skip
GOES = {"systems": "See all systems", "speed": "See the curves", "experts": "See the experts"}
SCREENS = {"systems": "evidence/page.py", "speed": "speed/page.py", "experts": "experts/page.py"}


def show_claims() -> None:
    now = page_context.current_context()  # none where no run opens: kept ranks can be read all the same
    measured, _ = results.measured_data(page_context.RUNS)
    rows = expert_meaning.meaning_rows(page_context.RUNS)
    head = st.empty()
    head.markdown("Comparing system by system …")
    found = list[Verdict]()
    for each in chain(
        results.answer_questions(measured), meaning.find_verdicts(measured, rows), [cached.speed_verdict(page_context.RUNS)]
    ):
        found.append(each)
        show_claim(each)
    head.markdown(f"**{count_sentence(found)}** {TEXT('CLAIMS')}", help=f"NDCG@10: {glossary.METRICS['NDCG@10']}.")
    if now is not None and now.model.retrieves:
        expert_meaning.meaning_row(now.run, "lrn_measure")
    if any(UNEVEN in finding.system for each in found for finding in each.findings):
        st.caption(UNEVEN_NOTE)
    panel = st.expander("All findings as a table", key="lrn_all", on_change="rerun")
    if panel.open:
        with panel:
            table = verdict_table(found)
            alt = f"{len(table)} findings with their numbers and runs"
            page_elements.show_table("lrn_findings", table, TEXT.chart_text("FINDINGS"), alt, height=220)
    if now is not None:
        page_elements.show_footer("elastic reproduce", "--table")


def show_claim(each: Verdict) -> None:
    said, icon, colour = BADGES[each.answer]
    if each.answer in ("in part", "made-up") and each.lacking:
        said, colour = f"{said}, not known on {join_names(each.lacking)}", "blue"
    with st.container(border=True, key=f"lrn_card_{each.key}", gap="xsmall"):
        with page_elements.place_in_row():
            st.markdown(f"**{each.claim}**", width="stretch")
            st.badge(said, icon=f":material/{icon}:", color=colour)
            panel = st.popover("How sure?", key=f"lrn_more_{each.key}", type="tertiary")
        names = {answer: f"**{answer.capitalize()}:** " if answer else "" for answer in each.lines}
        told = [names[answer] + page_context.escape_markdown(text) for answer, text in each.lines.items()] + (
            [each.unit] if each.findings else []
        )
        st.markdown(f":small[{' '.join(told)}]")
    with panel:
        show_findings(each)


def show_findings(each: Verdict) -> None:
    """Every finding with its interval, or why it is none; what would change our mind; the way to the numbers."""
    icon = {answer: name for answer, (_, name, _) in BADGES.items()}
    lines = [f"- :material/{icon[finding.answer]}: {page_context.escape_markdown(finding.sentence)}" for finding in each.findings]
    lines += [f"- :material/help: {page_context.escape_markdown(each.absent)}"] if each.absent else []
    st.markdown("\n".join(lines))
    if each.note:
        st.caption(page_context.escape_markdown(each.note))
    st.markdown(f"**What would change our mind:** {each.change}")
    if each.command:
        st.caption("Measures what is missing:")
        st.code(each.command, language="bash", wrap_lines=True)
    first = each.findings[0] if each.findings else None
    if place_button(
        GOES[each.screen], f"lrn_go_{each.key}", open_screen, each.screen, first, icon="arrow_forward", type="tertiary"
    ):
        page_context.open_page(SCREENS[each.screen])


def open_screen(screen: str, first: Finding | None) -> None:
    """Sets the other page to what the verdict is about."""
    if screen != "systems":
        return
    settings = {"ev_depth": "Systems"}
    if first is not None:
        st.session_state["res_fitted"] = first.data  # its protocol is chosen here
        settings |= {"res_data": first.data, "res_protocol": first.protocol, "res_ours": first.system}
    for key, value in settings.items():
        if not page_context.is_locked(key):
            st.session_state[key] = value
