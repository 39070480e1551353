"""What does ELASTIC do with this person's history?"""

import streamlit as st

from pages.ui import shell

now = shell.context()
st.write(now.run.name, now.user)
