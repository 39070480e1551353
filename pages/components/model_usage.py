"""Use this model: where it lies, and how it leaves the app, as lines to copy."""

from contextlib import suppress

import streamlit as st

from elastic_core import text
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import model_class
from elastic_core.runs import CONFIG, ITEMS, WEIGHTS, Run

IDS = 2  # of items that the example names


def python_example(run: Run, data: Dataset | None = None, user: int = 0) -> str:
    """For one of the people by their id, where the data are open, and after a list of items; ids as these data have them."""
    lines = ["import elastic_core", "", f"run = elastic_core.open_run({run.place!r})"]
    if data is None:
        last = list[str]()
        with suppress(InputError):
            last = run.raw_ids()[1 : 1 + IDS]
    else:
        last = [str(data.catalog.ids[item]) for item in data.histories.user_items(user)[-IDS:]]
        lines.append(f"print(run.recommend(users={str(data.histories.user_ids[user])!r}, k=10))  # a person, by id")
    lines.append(f"print(run.recommend(histories=[{last!r}], k=10))  # after any items, the newest last")
    return "\n".join(lines)


def shell_commands(run: Run) -> dict[str, str]:
    """For a shell, by what they do; a name of any letters stays one word."""
    folder, new = text.shell_command(run.place), text.shell_command(f"checkpoints/local-more-{run.name.removeprefix('local-')}")
    commands_by_use = {
        "A web service: its first page says how to ask.": f"serve {folder}",
        "Everybody’s next items, as a table:": f"recommend {folder} --all --out top.csv",
    }
    if model_class(run.config.model.name).objective:
        commands_by_use |= {
            "One file that runs without this project:": f"export {folder} --out model.pt2",
            "Go on training it with newer events and items:": f"train --from {folder} --set data.source=new.csv --out {new}",
        }
    return {what: f"elastic {command}" for what, command in commands_by_use.items()}


def show_model_usage(run: Run, data: Dataset | None = None, user: int = 0) -> None:
    """`data`: those of the run, if they are open."""
    parts = f"weights in `{WEIGHTS}`, settings in `{CONFIG}`, ids in `{ITEMS}`"
    st.markdown(f"**The model is a folder**, {text.escape_markdown(run.place)}: {parts}. Once, in the project’s folder:")
    st.code('python -m pip install -e ".[serve]"', language="bash", wrap_lines=True)
    st.markdown("**In your own code:**")
    st.code(python_example(run, data, user), language="python", wrap_lines=True)
    st.markdown("**In a terminal:**")
    for what, command in shell_commands(run).items():
        st.caption(what)
        st.code(command, language="bash", wrap_lines=True)
