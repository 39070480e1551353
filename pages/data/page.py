"""What is in the data, and can I bring mine?"""

import streamlit as st

from pages.components import page_context, page_elements
from pages.components.controls import choose_without_label
from pages.data import overview, planted_world, study, upload

PARTS = {
    "What is in it": overview.show_overview,
    "Bring your own": upload.show_uploader,
    "Plant a world": planted_world.show_planted_world,
    study.PART: study.show_study,
}
COMMANDS = {
    "What is in it": "elastic data",
    "Bring your own": "elastic data my-ratings.csv --columns user=reader,item=book,time=read_at",
    "Plant a world": "elastic routing planted-elastic",
    study.PART: "elastic study my-clicks.csv --minutes 30",
}

st.title("What is in the data, and can I bring mine?")
part = choose_without_label("Part of the page", list(PARTS), "dat_part")
source_name = PARTS[part]()
if page_context.current_context() is not None:
    page_elements.show_footer(COMMANDS[part], *([source_name or "--list"] if part == "What is in it" else []), part=part)
