"""What is in the data, and can I bring mine?"""

import streamlit as st

from pages.ui import data_look, data_upload, data_world, shell, view
from pages.ui.control import one_of

PARTS = {"What is in it": data_look.part, "Bring your own": data_upload.part, "Plant a world": data_world.part}
COMMANDS = {
    "What is in it": "python -m elastic_core data --list",
    "Bring your own": "python -m elastic_core data my-ratings.csv --columns user=reader,item=book,time=read_at",
    "Plant a world": "python -m elastic_core routing planted-elastic",
}

st.title("What is in the data, and can I bring mine?")
shell.lockable(
    {"dat_part": "Part of the page", "dat_source": "Data shown", "dat_core": "k-core of an upload"}
    | {f"dat_{name}": label for name, label, *_ in (*data_world.WHOLE, *data_world.SHARES)}
)
part = one_of("Part of the page", list(PARTS), key="dat_part", default="What is in it", label_visibility="collapsed")
PARTS[part]()
if st.session_state.get(shell.CONTEXT) is not None:
    view.foot(COMMANDS[part], part=part)
