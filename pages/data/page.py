"""What is in the data, and can I bring mine?"""

import streamlit as st

from pages.components import shell, view
from pages.components.control import switch
from pages.data import look, study, upload, world

PARTS = {"What is in it": look.part, "Bring your own": upload.part, "Plant a world": world.part, study.PART: study.part}
COMMANDS = {
    "What is in it": "python -m elastic_core data",
    "Bring your own": "python -m elastic_core data my-ratings.csv --columns user=reader,item=book,time=read_at",
    "Plant a world": "python -m elastic_core routing planted-elastic",
    study.PART: "python -m elastic_core study my-clicks.csv --minutes 30",
}

st.title("What is in the data, and can I bring mine?")
part = switch("Part of the page", list(PARTS), "dat_part")
shown = PARTS[part]()
if shell.current() is not None:
    view.foot(COMMANDS[part], *([shown or "--list"] if part == "What is in it" else []), part=part)
