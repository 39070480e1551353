"""What exactly is implemented, and what did the paper leave open? A text with stored numbers; nothing is computed here."""

import pandas as pd
import streamlit as st

from elastic_core.data.source_catalog import SOURCES
from pages.components import glossary, page_context, page_elements, page_text
from pages.components.controls import choose_without_label

PARTS = ("Left open", "Ablations", "Equations and tests", "Words and metrics", "Limits and sources")
TEXT = page_text.load_page_text(__file__)
QUESTIONS = "abcdefghi"


def show_left_open() -> None:
    st.write(TEXT("IDEA"))
    for key in QUESTIONS:
        title, *answer = TEXT(f"question {key}").split("\n\n")
        with st.expander(f"**{key}.** {title}", key=f"mth_{key}"):
            st.markdown("\n\n".join(answer))


def show_ablations() -> None:
    st.write(TEXT("ABLATIONS TEXT"))
    alt = "Variants of Table 3: ours with intervals, and the paper’s beside them"
    widths = {"variant": 260, "NDCG@10 ± 95%": 130, "trainings": 80, "ELASTIC minus variant": 210, "paper, ML-1M": 110}
    table = read_table(TEXT("ABLATIONS TABLE"))
    page_elements.show_table(
        "mth_ablations", table, TEXT.chart_text("ABLATIONS"), alt, height="content", row_height=66, widths=widths
    )


def show_equations() -> None:
    table = read_table(TEXT("EQUATIONS TABLE"))
    widths = dict(zip(table.columns, (105, 180, 235, 300), strict=True))
    alt = "Equations with their modules and tests"
    page_elements.show_table("mth_equations", table, TEXT.chart_text("EQUATIONS"), alt, height=700, row_height=72, widths=widths)
    with st.expander("The test behind every chart", icon=":material/rule:", key="mth_charts"):
        rows = [{"chart": about.question, "test": about.test} for about in page_text.all_chart_texts() if about.test]
        st.dataframe(rows, hide_index=True, alt="Questions of charts with their tests", key="mth_chart_tests")


def show_glossary() -> None:
    left_column, right_column = st.columns(2)
    with left_column:
        page_elements.show_heading("Words")
        st.markdown("\n".join(f"- **{term}**: {meaning}" for term, meaning in glossary.WORDS.items()))
    with right_column:
        page_elements.show_heading("Metrics and protocols")
        st.markdown("\n".join(f"- **{term}**: {meaning}" for term, meaning in glossary.METRICS.items()))
        st.caption(TEXT("PROTOCOLS"))


def show_limits() -> None:
    left_column, right_column = st.columns(2)
    with left_column:
        page_elements.show_heading("Limits")
        st.markdown(TEXT("LIMITS"))
    with right_column:
        page_elements.show_heading("Accessibility and privacy")
        st.markdown(TEXT("ACCESSIBILITY"))
        page_elements.show_heading("Papers")
        st.markdown(TEXT("PAPERS"))
    page_elements.show_heading("Data and their terms")
    rows = [(source.label, source.url, source.licence) for source in SOURCES.values()]
    terms = pd.DataFrame(rows, columns=["data", "official address", "terms and citation"])
    page_elements.show_table(
        "mth_terms", terms, TEXT.chart_text("TERMS"), "Where data come from, how they may be used, and what to cite"
    )


def read_table(section: str) -> pd.DataFrame:
    """Return a Markdown table as a DataFrame of texts."""
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines())
    return pd.DataFrame(lines, columns=head)


st.title("What is implemented, and what did the paper leave open?")
page_context.require_context()
part = choose_without_label("Part of the page", PARTS, "mth_part")
{
    "Left open": show_left_open,
    "Ablations": show_ablations,
    "Equations and tests": show_equations,
    "Words and metrics": show_glossary,
    "Limits and sources": show_limits,
}[part]()
page_elements.show_footer("elastic reproduce --table --only ml-100k", part=part)
