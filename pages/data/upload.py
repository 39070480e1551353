"""The second part of the Data page: a visitor's own file, looked at row by row before anything is kept."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pandas as pd
import streamlit as st

from elastic_core import files, text
from elastic_core.data.preprocessing import RULES
from elastic_core.data.reading.archives import IncompletePart, Upload
from elastic_core.data.reading.reader import RawTable, Table
from elastic_core.data.reading.time_columns import Dates, Undecided
from elastic_core.errors import InputError
from elastic_core.jobs.job_kinds import Trainings
from elastic_core.services import public
from elastic_core.services.data import upload_store as uploads
from elastic_core.services.data.upload_store import ACCEPTED, ENDINGS, LIMITS, MOST_BYTES, FileOutcome, StoredData, UploadStore
from pages.components import page_context, page_elements, page_text
from pages.components.controls import number_input, place_button
from pages.data import cached, overview, study
from pages.layout import user_search

NEEDED, PREVIEW = ("user", "item", "time"), 6  # few enough that the table does not scroll under the mouse
UNUSED = 8  # columns that are named
NONE, ROW_ORDER, LAST_OUTCOME, SKIPPED = "– none –", "– order of rows –", "dat_said", "dat_skipped"
ROLES = {"user": "Person (user)", "item": "Item", "time": "Time", "title": "Title (optional)", "genres": "Genres (optional)"}
UNDERSTOOD = {"user": "person", "from, to": "from … to"}
ORDERED = {"file": "as in the file", "reversed": "from the file’s end", "random": "by chance"}
TEXT = page_text.load_page_text(__file__)
PREVIEWED, FAULTS, STEPS = map(TEXT.chart_text, ("PREVIEWED", "FAULTS", "STEPS"))
WIDTHS = {"step": 106, "events": 62, "people": 58, "items": 54, "why": 520}  # the longest reason is read whole at 1280 pixels


def upload_store() -> UploadStore:
    return UploadStore(page_context.RUNS / "uploads")


def show_uploader() -> None:
    st.write(TEXT("bring"))
    with page_elements.place_in_row():
        st.download_button(
            "Template (CSV)", uploads.TEMPLATE, "template.csv", "text/csv", key="dat_template", on_click="ignore",
            icon=":material/download:", help="Replace its six rows with your own.",
        )  # fmt: skip
        st.caption(f"{ACCEPTED}; at most {files.size_text(MOST_BYTES)}, {LIMITS.rows:,} rows, {LIMITS.columns:,} columns.")
    if not page_context.is_switched_off("upload"):
        file = st.file_uploader("Your file", type=ENDINGS, key="dat_file", max_upload_size=20)
        if file is None:
            st.caption(TEXT("larger"))
        else:
            _read_upload(file.name, file.getvalue())
    show_last_outcome()
    show_stored_data()


def _read_upload(name: str, data: bytes) -> None:
    whole_digest = cached.hash_upload(name, data)
    skip_torn = st.session_state.get(SKIPPED) == whole_digest
    try:
        digest = cached.hash_upload(name, data, skip_torn)
        raw_table, guessed = cached.open_upload(digest, name, data, skip_torn)
        question_place = st.empty()  # in view, however long the table is
        _show_first_rows(raw_table)
        mapping = _choose_columns(raw_table, guessed, digest)
        missing_roles = [ROLES[role] for role in NEEDED if role not in mapping]
        if missing_roles:
            order = f" Without times, choose “{ROW_ORDER}”." if ROLES["time"] in missing_roles else ""
            reason = (
                f"{page_context.escape_markdown(uploads.describe_open_question(raw_table))}. "
                if uploads.describe_open_question(raw_table)
                else ""
            )
            question = f"{reason}Below, choose the column for: {', '.join(missing_roles)}.{order}"
            question_place.info(question, icon=":material/arrow_downward:")
            return
        dates = _choose_date_order(raw_table, mapping, digest)
        if dates is None:
            return
        titles = None
        if not {"title", "genres"} & set(mapping):
            key = f"dat_titles_{digest[:8]}"
            title_file = st.file_uploader("Titles of the items (optional)", type=ENDINGS, key=key, max_upload_size=20)
            titles = Upload(title_file.name, title_file.getvalue()) if title_file is not None else None
        table = cached.check_upload(digest, raw_table, mapping, dates, titles)
        _show_report(table, raw_table.notes)
        title_file = page_elements.place_in_row("top")
        with title_file:
            k_core = number_input(
                "Drop people and items with fewer events than", 0, 50, 5, key="dat_core", width=330,
                help="Papers use 5. A person needs at least 3 events.",
            )  # fmt: skip
        outcome = cached.preprocess_upload(digest, raw_table, mapping, table, int(k_core), dates, titles)
        if (ties := outcome.dataset.ties) is not None and ties.are_frequent:
            rule = title_file.selectbox(
                "Order of events at the same time", RULES, RULES.index(ties.rule), format_func=ORDERED.__getitem__,
                key=f"dat_ties_{digest[:8]}", width=320, help="If chance decides, no model can learn the order of the file.",
            )  # fmt: skip
            if rule != ties.rule:
                outcome = cached.preprocess_upload(digest, raw_table, mapping, table, int(k_core), dates, titles, rule)
            st.caption(f"Equal times: {outcome.dataset.ties}.")
        _offer_to_keep(outcome, digest)
    except IncompletePart as error:
        st.error(f"{page_context.escape_markdown(error.fault)}.", icon=":material/block:")
        place_button("Read the other files without it", "dat_skip", st.session_state.update, {SKIPPED: whole_digest})
    except InputError as error:
        st.error(f"{page_context.escape_markdown(error)}.", icon=":material/block:")


def _show_first_rows(raw_table: RawTable) -> None:
    rows = raw_table.sample.slice(0, PREVIEW).to_pylist()
    frame = pd.DataFrame(rows, columns=raw_table.sample.column_names).fillna("").astype(str).map(text.spreadsheet_cell)
    page_elements.show_heading(f"1. The first {len(frame)} rows")
    page_elements.show_table("dat_preview", frame, PREVIEWED, f"The first {len(frame)} rows of the uploaded file")
    layout = [f"layout: {'; '.join(dict.fromkeys(raw_table.layout_notes))}"] if raw_table.layout_notes else []
    _show_notes([*layout, *raw_table.notes])


def _choose_columns(raw_table: RawTable, guessed: dict[str, str], digest: str) -> dict[str, str]:
    """Which column is what: guessed from the names, changed by the visitor."""
    page_elements.show_heading("2. Which column is what?")
    names, mapping = list(raw_table.sample.column_names), {}
    for column, role in zip(st.columns(len(ROLES)), ROLES, strict=True):
        options = names if role in NEEDED and role in guessed else [NONE, *names]
        if role == "time":
            options = [NONE, ROW_ORDER, *names] if options[0] == NONE else [*names, ROW_ORDER]
        first = options.index(guessed[role] or ROW_ORDER) if role in guessed else 0
        chosen_column = column.selectbox(ROLES[role], options, first, key=f"dat_{role}_{digest[:8]}", format_func=str)
        if chosen_column != NONE:
            mapping[role] = "" if chosen_column == ROW_ORDER else chosen_column
    if mapping.get("title") == mapping.get("item"):  # a title that was taken for the item needs no second place
        mapping.pop("title", None)
    if unused := [name for name in names if name not in mapping.values()]:
        unused_text = ", ".join(page_context.quote_code(name) for name in unused[:UNUSED]) + (
            " …" if len(unused) > UNUSED else ""
        )
        offer = "" if "genres" in mapping else f" {TEXT('unused', genres=ROLES['genres'])}"
        st.caption(f"Not used: {unused_text}.{offer}")
    return mapping


def _choose_date_order(raw_table: RawTable, mapping: dict[str, str], digest: str) -> Dates | None:
    """How dates are to be read, asked only where no row of the file tells; None until it is answered."""
    try:
        cached.check_upload(digest, raw_table, mapping)
    except Undecided as error:
        readings = {order: f"{reading} ({order.replace('-', ' ')})" for order, reading in error.readings.items()}
        question = f"Which day is {page_context.escape_markdown(error.example)}? No row of the file tells."
        order_chosen = st.radio(
            question, list(readings), None, format_func=readings.__getitem__, key=f"dat_dates_{digest[:8]}", horizontal=True
        )
        return order_chosen
    return ""


def _show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        st.caption(f":material/info: {page_context.escape_markdown(note[:1].upper() + note[1:])}.")


def _show_report(table: Table, notes_shown: Sequence[str]) -> None:
    """`notes_shown`: notes that stand above already."""
    page_elements.show_heading("3. What was understood, and what is left?")
    rows = f"{len(table.events):,} of {table.faults.rows:,}"
    meanings = {**dict(table.understood), "rows": rows}
    rows_understood = [
        (UNDERSTOOD.get(role, role), text.spreadsheet_cell(meanings[role])) for role in meanings if role != "layout"
    ]  # which is told above
    frame = pd.DataFrame(rows_understood, columns=["what", "understood"])
    page_elements.show_table("dat_understood", frame, None, "What was taken for what", widths={"what": 106, "understood": 694})
    _show_notes([note for note in table.notes if note not in notes_shown])
    if not table.faults.count:
        st.write(f"All {table.faults.rows:,} rows can be read.")
        return
    st.warning(f"{table.faults.count:,} of {table.faults.rows:,} rows cannot be used and are left out.", icon=":material/rule:")
    page_elements.show_table("dat_faults", table.faults.table(), FAULTS, "Rows that cannot be used, with line number and reason")
    if table.faults.rest:
        kinds = "; ".join(
            f"{page_context.escape_markdown(role)}: {count:,}" for role, count in list(table.faults.kinds.items())[:6]
        )
        st.caption(f"… and {table.faults.rest:,} more. By kind: {kinds}.")


def _offer_to_keep(outcome: FileOutcome, digest: str) -> None:
    counts = ["events", "people", "items"]
    counts_text = outcome.steps[counts].map(lambda count: "–" if pd.isna(count) else f"{count:,}")
    alt = "Events, people and items that each rule leaves"
    page_elements.show_table("dat_steps", outcome.steps.assign(**counts_text), STEPS, alt, widths=WIDTHS)
    ties = outcome.dataset.ties  # said beside their rule
    _show_notes([note for note in outcome.dataset.notes if ties is None or note != ties.note])
    page_elements.show_heading("4. Keep it")
    label = st.text_input("Name", outcome.label.split(".")[0], max_chars=40, key=f"dat_name_{digest[:8]}", width=320)
    place_button(
        "Keep these data", "dat_keep", _store_upload, outcome, label, icon="save", type="primary",
        help="In the project’s folder on this machine; git ignores it.",
    )  # fmt: skip


def _store_upload(outcome: FileOutcome, label: str) -> None:
    with catch_refusal():
        stored, data = upload_store().store_upload(outcome, label), outcome.dataset
        sentence = TEXT(
            "kept",
            label=page_context.escape_markdown(stored.label),
            version=stored.id[:4],
            example=page_context.quote_code(user_search.example_id(data)),
        )
        st.session_state[LAST_OUTCOME] = (True, sentence)


@contextmanager
def catch_refusal() -> Iterator[None]:
    """For callbacks: what cannot be done is told by `show_last_outcome`."""
    try:
        yield
    except InputError as error:
        st.session_state[LAST_OUTCOME] = (False, f"{page_context.escape_markdown(error)}.")


def show_last_outcome() -> None:
    """What the last button did, once."""
    is_success, sentence = st.session_state.pop(LAST_OUTCOME, (True, ""))
    if sentence:
        (st.success if is_success else st.error)(sentence)


# --- what is kept ----------------------------------------------------------------------------------------------------


def show_stored_data() -> None:
    """Everything that is kept: train on it, look at it, delete it."""
    stored_data = upload_store().list_stored()
    about = "Each name ends in a dot and a version, which changes when rows change."
    st.subheader("Kept on this machine", anchor=False, help=about)
    if not stored_data:
        st.caption("Nothing yet.")
    faults = upload_store().list_unreadable()
    if stored_data or faults:
        page_context.is_switched_off("deletion")
    page_elements.show_unreadable_folders(faults, "no data", "dat_odd", _delete_folder)
    for entry in stored_data:
        with page_elements.place_in_row(border=True):
            facts = entry.facts
            st.markdown(
                f"**{page_context.escape_markdown(entry.label)}**  \n{facts['people']:,} people, {facts['items']:,} items, "
                f"{facts['events']:,} events; {page_context.escape_markdown(entry.when)} UTC",
                width="stretch",
            )
            overview.offer_training(entry.label, f"dat_train_{entry.id}", "primary")
            for label, target, box in (("Which model?", study.PART, "dat_study"), ("Look at it", "What is in it", "dat_source")):
                place_button(label, f"{box}_{entry.id}", st.session_state.update, {"dat_part": target, box: entry.label})
            if not public.is_public():
                _offer_deletion(entry)


def _offer_deletion(entry: StoredData) -> None:
    panel = st.expander("Delete", icon=":material/delete:", type="compact", key=f"dat_ask_{entry.id}", on_change="rerun")
    if panel.open:
        runs = upload_store().runs_on(entry.id, page_context.RUNS)
        if runs and entry.kind == "file":
            panel.warning(
                f"Runs trained on it can no longer be shown: {', '.join(map(page_context.escape_markdown, runs))}. "
                "Delete a run on the page Train, under *Use a model*."
            )
        if run_names := [job.run.name for job in Trainings(page_context.RUNS).active_on_data(entry.config)]:
            panel.warning(
                f"Trainings that wait or run need it and would fail: {', '.join(map(page_context.escape_markdown, run_names))}."
            )
        place_button("Delete for good", f"dat_gone_{entry.id}", _delete_data, entry, place=panel, type="primary")


def _delete_folder(name: str) -> None:
    with catch_refusal():
        upload_store().delete_data(name)


def _delete_data(entry: StoredData) -> None:
    with catch_refusal():
        upload_store().delete_data(entry.id)
        st.session_state[LAST_OUTCOME] = (True, f"{page_context.escape_markdown(entry.label)} is deleted.")
