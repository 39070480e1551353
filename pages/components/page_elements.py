"""How every chart and table of the app is shown: drawn, explained, readable as a table, and ready to take away."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import pandas as pd
import streamlit as st
from plotly.basedatatypes import BaseFigure

from elastic_core import text
from elastic_core.files import UnreadableFolder
from elastic_core.runs import Run
from elastic_core.services import exports, public
from elastic_core.services.person import inspect
from pages.components import cache, model_usage, page_context, plot, presenter_mode
from pages.components.controls import place_button
from pages.components.page_context import Context
from pages.components.page_text import ChartText

Mode = Literal["points", "box", "lasso"]
TABLES, CALLBACKS = "view_tables", "view_called"
FEW = 3  # unreadable folders that stand open


def forget_tables() -> None:
    """Forget what the last run of a page showed. Called by the layout before each page."""
    st.session_state[TABLES] = {}


def require_experts(context: Context, page_title: str) -> None:
    """Stops a page about experts where the run has none, with a way to one that has, or too many to be shown."""
    if not context.model.retrieves:
        show_title(page_title)
        run_name = page_context.escape_markdown(cache.label_run(context.run))
        st.write(f"This page is about experts, and {run_name} has none: it reads a history without a memory.")
        if (run := _run_with_experts(context)) is not None:
            place_button(
                f"Open {cache.label_run(run)}",
                "needs_experts",
                page_context.select_run,
                run.name,
                type="primary",
                disabled=page_context.is_locked("run"),
            )
        st.stop()
    if reason := inspect.too_many(context.model):
        show_title(page_title)
        st.info(reason)
        show_footer("elastic evaluate", context.run.name)
        st.stop()


def _run_with_experts(context: Context) -> Run | None:
    """A run with experts on the same data, or else any."""
    able = [run for run in cache.list_openable_runs(page_context.RUNS) if getattr(run.config.model, "memory", "none") != "none"]
    return next((run for run in able if run.config.data == context.run.config.data), able[0] if able else None)


def show_title(text: str) -> None:
    """The question that a page answers."""
    st.title(text, anchor=False)


def show_heading(text: str) -> None:
    st.subheader(text, anchor=False)


def place_in_row(align: str = "center", **look: Any) -> Any:
    """What is drawn in it stands side by side."""
    return st.container(horizontal=True, vertical_alignment=align, **look)


def show_chart(
    key: str,
    figure: BaseFigure,
    table: pd.DataFrame,
    about: ChartText | None,
    alt: str,
    *,
    on_select: Callable[[], None] | None = None,
    experts: bool = False,
    selection_mode: Mode | tuple[Mode, ...] = "points",
) -> None:
    """A figure with its explanation (None where the chart beside it says it already), its table and its files. With
    `on_select`, read `st.session_state[key]` there. Where its marks are `experts`, their numbers first in `customdata`, a click
    chooses one."""
    if experts:
        on_select = functools.partial(_choose_expert, key)
    chosen = {"on_select": _defer_callback(key, on_select), "selection_mode": selection_mode} if on_select else {}
    figure_shown = _enlarge_letters(figure) if presenter_mode.is_presenting() else figure
    st.plotly_chart(figure_shown, key=key, config=plot.CONFIG, alt=alt, **chosen)
    remember_table(key, table)
    _show_table_panel(key, about, table, alt, figure)


def _enlarge_letters(figure: BaseFigure) -> dict[str, Any]:
    enlarged = figure.to_dict()
    layout = enlarged.setdefault("layout", {})
    layout["font"] = {**layout.get("font", {}), "size": presenter_mode.FIGURES}
    return enlarged


def _defer_callback(key: str, call: Callable[[], None]) -> Callable[[], None]:
    """Calls what the chart of this key was last given.

    Streamlit identifies a chart that can be clicked by all it shows, and keeps the callback of every one a visit has seen. A
    function of a page's script holds everything that the script computed, so it must not be the one that Streamlit keeps.
    """
    st.session_state.setdefault(CALLBACKS, {})[key] = call
    return functools.partial(_call_deferred, key)


def _call_deferred(key: str) -> None:
    st.session_state[CALLBACKS][key]()


def show_table(
    key: str, frame: pd.DataFrame, about: ChartText | None, alt: str, widths: Mapping[str, int] | None = None, **more: Any
) -> None:
    """The same for what is a table in the first place; `about` is None where the chart beside it says it already. `widths` of
    columns in pixels. Further arguments go to `st.dataframe`."""
    if widths is not None:
        more["column_config"] = {name: st.column_config.Column(width=width) for name, width in widths.items()}
    st.dataframe(frame, key=key, hide_index=True, alt=alt, **more)
    remember_table(key, frame)
    _show_table_panel(key, about, frame, alt, None)


@functools.cache
def parse_columns(section: str) -> dict[str, Any]:
    """The columns of a table as `text.md` has them: a paragraph each, `name` and heading | format | width | help. Shared: never
    change it."""
    column_config: dict[str, Any] = {}
    for line in section.split("\n\n"):
        title, form, width, help = (part.strip() for part in line.split("|"))
        name, _, heading = title[1:].partition("`")
        look = {
            "width": int(width) if width else None,
            "help": help.removesuffix(".") or None,
            "pinned": "pinned" in form or None,
        }
        if "text" in form:
            column_config[name] = st.column_config.TextColumn(heading.strip() or name, **look)
        else:
            form = form.removeprefix("pinned")
            column_config[name] = st.column_config.NumberColumn(heading.strip() or name, format=form or None, **look)
    return column_config


def number_columns(form: str, *names: str) -> dict[str, Any]:
    """How columns of numbers are written."""
    return {name: st.column_config.NumberColumn(format=form) for name in names}


def clicked_mark(key: str) -> Any:
    """For callbacks: what the mark carries as `customdata` that was clicked; None where nothing was."""
    return next((point["customdata"] for point in st.session_state[key]["selection"]["points"] if point.get("customdata")), None)


def selected_row(key: str, known: Sequence[Any]) -> Any:
    """For callbacks: which of `known` stands in the row of a table that was chosen; None where none does."""
    rows = st.session_state[key]["selection"]["rows"]
    return known[rows[0]] if rows and rows[0] < len(known) else None


def _choose_expert(key: str) -> None:
    if mark := clicked_mark(key):
        page_context.select_expert(int(mark[0]))


def show_unreadable_folders(
    faults: Sequence[UnreadableFolder], what: str, key: str, remove: Callable[[str], None] | None = None
) -> None:
    """Folders in a list that are not what the list is of: a line each with its reason, and a way to be rid of them. `what`: what
    such a folder would be, as in `no run`. `remove` is a callback that takes the folder's own name."""
    place = nullcontext() if len(faults) <= FEW else st.expander(f"{len(faults)} folders here are {what} that can be read")
    with place:
        for number, fault in enumerate(faults):
            name, reason = page_context.escape_markdown(fault.name), page_context.escape_markdown(fault.reason)
            with place_in_row():
                st.caption(f"The folder {name} is {what} that can be read: {reason}.")
                if remove is not None:
                    place_button(
                        "Remove it", f"{key}_{number}_{fault.name}", remove, fault.path.name, type="tertiary",
                        disabled=public.is_public(),
                    )  # fmt: skip


def bars_html(rows: list[tuple[str, float, str]], label: str, colour: str) -> str:
    """Names with a bar each: (name, length of the bar, what is written). The longest bar is full; those of gains are hollow."""
    longest = max((abs(length) for _, length, _ in rows), default=0) or 1
    cell = "border:0;padding:.1rem .4rem .1rem 0"
    lines = []
    for name, length, change_text in rows:
        fill = "transparent" if change_text.startswith(("+", "×")) else colour
        bar = f"width:{max(2.0, 100 * abs(length) / longest):.0f}%;height:.6rem;box-sizing:border-box;border-radius:.15rem"
        lines.append(
            f'<tr><th scope="row" style="{cell};width:50%;font-weight:400;text-align:left;overflow-wrap:anywhere">'
            f"{text.escape_html(name)}</th>"
            f'<td style="{cell};width:34%"><div style="{bar};border:1.5px solid {colour};background:{fill}"></div></td>'
            f'<td style="{cell};text-align:right;font-weight:600">{text.escape_html(change_text)}</td></tr>'
        )
    table = "width:100%;table-layout:fixed;border-collapse:collapse;border:0;font-size:.8rem;line-height:1.3"
    return f'<table aria-label="{text.escape_html(label)}" style="{table}"><tbody>{"".join(lines)}</tbody></table>'


def show_expert_card(text: str) -> None:
    """A line about the chosen expert, and the link to its page."""
    with place_in_row(border=True):
        st.markdown(text, width="stretch")
        st.page_link("experts/page.py", label="Open this expert", icon=":material/hub:", width="content")


def show_footer(command: str, *words: object, **settings: Any) -> None:
    """The end of a page, one menu: its address, the command that computes the same, all its tables in one file, and how its
    model is used.

    `command` is ours; names and ids follow as `words`, each quoted for a shell. Where none prints what the page shows, it is the
    test that holds the numbers: `python -m pytest tests/test_….py`.
    """
    command = " ".join([command, text.shell_command(*words)]) if words else command
    context = page_context.require_context()
    st.divider()
    _show_footer_menu(command, {"run": context.run.name, "user": context.user + 1, **settings})


@st.fragment
def _show_footer_menu(command: str, view_settings: dict[str, Any]) -> None:
    """A fragment, so that opening the menu does not run the page again."""
    menu = st.expander("Share or reproduce", icon=":material/ios_share:", key="foot_menu", on_change="rerun")
    if not menu.open:
        return
    context = page_context.require_context()
    tables, link = dict(st.session_state[TABLES]), page_context.view_address()
    with menu:
        st.markdown("**Link.** It opens this view again, even after a restart.")
        st.code(link, language=None, wrap_lines=True)
        st.markdown("**Command.** Where the project is installed, it computes the same.")
        st.code(command, language="bash", wrap_lines=True)
        about = {**view_settings, "address": link, "command": command}
        st.download_button(
            "Download all tables", lambda: exports.to_json(tables, about), "view.json",
            "application/json", key="foot_json", on_click="ignore", icon=":material/data_object:",
        )  # fmt: skip
        with st.expander("Use this model", icon=":material/rocket_launch:", key="foot_use"):
            model_usage.show_model_usage(context.run, context.dataset, context.user)


def show_confidence_notes(notes: Iterable[str]) -> None:
    """Draw the one place of a page for doubt: intervals, and what luck alone would give. Nothing where nothing is doubtful."""
    if known_notes := [doubt for doubt in notes if doubt]:
        with st.popover("How sure?", icon=":material/balance:", key="sure"):
            st.markdown("\n\n".join(known_notes))


def show_explanation(about: ChartText) -> None:
    """The popover that every chart has; on its own where something other than a chart needs it."""
    with st.popover("Explain", icon=":material/help:", type="tertiary"):
        st.markdown(f"**{about.question}** {about.computed}")
        if about.formula:
            st.latex(about.formula)
        st.markdown(f"**Careful:** {about.misread}")


def remember_table(key: str, table: pd.DataFrame) -> None:
    """Adds a table to what the menu at the foot holds, for what is drawn in another way than as a chart."""
    st.session_state.setdefault(TABLES, {})[key] = table


@st.fragment
def _show_table_panel(key: str, about: ChartText | None, table: pd.DataFrame, alt: str, figure: BaseFigure | None) -> None:
    """One quiet row. A fragment, so that opening a panel does not run the page again. The table is no popover: whoever leaves the
    page by a link closes that, too, and Streamlit then draws the new page for the old one's fragment, which leaves it blank."""
    with place_in_row("top", gap="small"):
        if about is not None:
            show_explanation(about)
        name = "Table" if figure is not None else "Files"
        panel = st.expander(name, icon=":material/table:", type="compact", key=f"{key}_files", on_change="rerun")
    if not panel.open:
        return
    with panel:
        if figure is not None:
            st.dataframe(table, hide_index=True, alt=f"The numbers behind: {alt}", height=min(320, 40 + 35 * len(table)))
        with place_in_row("top"):
            _place_download(key, "CSV", lambda: exports.to_csv(table), f"{key}.csv", "text/csv")
            _place_download(key, "JSON", lambda: exports.to_json({key: table}, {}), f"{key}.json", "application/json")
            if figure is not None:
                _place_download(key, "HTML", lambda: figure.to_html(include_plotlyjs=True), f"{key}.html", "text/html")
        if figure is not None:
            st.caption("HTML works without a network. PNG: the camera in the chart’s corner.")


def _place_download(key: str, label: str, data: Callable[[], str], name: str, mime: str) -> None:
    st.download_button(label, data, name, mime, key=f"{key}_{label}", on_click="ignore", icon=":material/download:")
