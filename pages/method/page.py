"""What exactly is implemented, and what did the paper leave open?"""

from collections.abc import Callable

import streamlit as st

from elastic_core import disk
from elastic_core.core.evaluate import PROTOCOLS
from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.services.method import effects, notes
from elastic_core.services.method.effects import Effect
from elastic_core.services.method.notes import Question
from pages.frame import shell
from pages.kit import cache, prose, view
from pages.kit.control import one_of, switch
from pages.kit.kept import copied

PARTS = ("Left open", "Ablations", "Equations and tests", "Words and metrics", "Limits and sources")
DATA = {"ml-100k": "MovieLens-100K", "ml-1m": "MovieLens-1M"}
SAYS = prose.of(__file__)
ABLATIONS, EQUATIONS, TERMS = SAYS.abouts("ABLATIONS EQUATIONS TERMS")


def effect(question: Question, run: Run) -> Effect:
    """What the question costs, from runs or a live check."""
    now, data = shell.context(), "ml-100k"
    asks, somebody = now.model.retrieves, cache.example(now)  # the same whoever is in view
    try:
        if question.key == "a":
            found = cache.gradients(now, somebody) if asks else None
            return effects.of_gate(shell.RUNS, data, found)
        if question.key == "b":
            k = now.run.config.model.k if asks else 0  # type: ignore[attr-defined]
            return effects.of_printed(cache.printed(now, somebody, k) if asks else None)
        if question.key == "i":
            return effects.of_balance(cache.traffic(now) if asks else None)
    except InputError as error:
        return Effect(f"It cannot be checked here: {error}.", "")
    return {
        "c": effects.of_loss,
        "d": peeking,
        "e": lambda: effects.of_protocols(shell.RUNS, data),
        "f": lambda: effects.of_speed(shell.RUNS),
        "g": effects.of_averages,
        "h": lambda: effects.of_settings(run),
    }[question.key]()


@copied(256)
def kept_effect(question: str, run: Run, runs: list[Run], benchmarks: str, _make: Callable[[], Effect]) -> Effect:
    """Made again when a run or a benchmark has changed."""
    return _make()


@copied(1)
def peeking() -> Effect:
    """Does a later event move an earlier state? The same for everybody."""
    return effects.of_peeking()


def left_open() -> None:
    st.write(SAYS("IDEA"))
    run = shell.context().run
    for question in notes.OPEN:
        panel = st.expander(f"**{question.key}.** {question.title}", on_change="rerun", key=f"mth_{question.key}")
        if panel.open:
            with panel:
                answered(question, run)


def answered(question: Question, run: Run) -> None:
    """What the paper says, what is done here, and what that costs."""
    st.markdown(f"{question.paper}\n\n**Here:** {question.here}")
    benchmarks = str([disk.stamp(path) for path in sorted((shell.RUNS / "benchmarks").glob("*.csv"))])
    found = kept_effect(question.key, run, cache.everyone(shell.RUNS), benchmarks, lambda: effect(question, run))
    source = f" :small[{shell.plain(found.source)}]" if found.source and not found.command else ""
    st.info(f"**Measured.** {found.text}{source}", icon=":material/straighten:")
    if found.command:
        st.caption("Measures it:")
        st.code(found.command, language="bash", wrap_lines=True)


def ablations() -> None:
    with view.row("bottom"):
        data = one_of("Data", DATA, key="mth_data")
        protocol = one_of("Protocol", PROTOCOLS, key="mth_protocol", help=notes.AGAINST)
    table = effects.table_3(shell.RUNS, data, protocol)
    measured = int((table["seeds"] > 0).sum())
    meaning = dict(notes.METRICS)[protocol]
    st.write(f"{measured} of {len(table)} variants have a finished run. Test, `{protocol}`: {meaning}.")
    alt = "Variants of Table 3: ours with intervals, and the paper’s beside them"
    widths = {"variant": 185, "NDCG@10 here ± 95%": 140, "people": 60, "seeds": 50, "ELASTIC − variant": 220}
    shown = effects.spoken(table)
    view.table("mth_ablations", shown, ABLATIONS, alt, row_height=72, height="content", widths=widths)
    if measured < len(table):
        st.caption(SAYS("MISSING"))
        st.code(f'python -m elastic_core reproduce --only "{data}-elastic*"', language="bash", wrap_lines=True)


def equations() -> None:
    frame = notes.equations()
    widths = dict(zip(frame.columns, (105, 180, 235, 300), strict=True))
    alt = "Equations with their modules and tests"
    view.table("mth_equations", frame, EQUATIONS, alt, height=700, row_height=72, widths=widths)
    with st.expander("The test behind every chart", icon=":material/rule:", key="mth_charts"):
        rows = [{"chart": about.question, "test": about.test} for about in prose.every_about() if about.test]
        st.dataframe(rows, hide_index=True, alt="Questions of charts with their tests", key="mth_chart_tests")


def words() -> None:
    left, right = st.columns(2)
    with left:
        view.heading("Words")
        st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in notes.GLOSSARY))
    with right:
        view.heading("Metrics and protocols")
        st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in notes.METRICS))
        st.caption(SAYS("PROTOCOLS"))


def limits() -> None:
    left, right = st.columns(2)
    with left:
        view.heading("Limits")
        st.markdown("\n".join(f"- {text}" for text in notes.LIMITS))
    with right:
        view.heading("Accessibility and privacy")
        st.markdown("\n".join(f"- {text}" for text in notes.ACCESSIBILITY))
        view.heading("Papers")
        st.markdown("\n".join(f"- **{name}**: {text}" for name, text in notes.PAPERS))
    view.heading("Data and their terms")
    view.table("mth_terms", notes.terms(), TERMS, "Where data come from, how they may be used, and what to cite")


st.title("What is implemented, and what did the paper leave open?")
shell.context()
part = switch("Part of the page", PARTS, "mth_part")
dict(zip(PARTS, (left_open, ablations, equations, words, limits), strict=True))[part]()
view.foot("python -m elastic_core reproduce --table --only ml-100k", part=part)
