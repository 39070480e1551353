"""Use this model: how it leaves the app, as commands to copy."""

import streamlit as st

from elastic_core import text
from elastic_core.models import model_class
from elastic_core.runs import Run
from pages.kit import prose

SAYS = prose.of(__file__)


def commands(run: Run) -> tuple[str, str]:
    """For a shell, and for Python; a name of any letters stays one word."""
    folder = text.shell(run.path)
    lines = [f"python -m elastic_core recommend {folder} --all --out top.parquet", f"python -m elastic_core serve-model {folder}"]
    if model_class(run.config.model.name).objective:
        lines.append(f"python -m elastic_core export {folder} --out model.pt2")
    python = f"import elastic_core\n\nrun = elastic_core.open_run({str(run.path)!r})\nrun.recommend(k=10).table"
    return "\n".join(lines), python


def card(run: Run) -> None:
    shell, python = commands(run)
    with st.expander("Use this model", icon=":material/rocket_launch:"):
        st.markdown(SAYS("use"))
        st.code(shell, language="bash", wrap_lines=True)
        st.markdown(SAYS("python"))
        st.code(python, language="python", wrap_lines=True)
