"""What happens if I change √K, k, length, depth? Train it and see; nothing here stops when the page is left."""

import streamlit as st

from elastic_core.services.train import presets
from pages.components import cache, prose, shell, view
from pages.train import form, jobs, result
from pages.train import runs as train_runs

TEXT = prose.page_text(__file__)


shell.lockable({"train_start": "Start training"})
view.title("What happens if I change the model, and train it?")
st.write(TEXT("idea"))
shell.off("training")
jobs.show_status_line()
runs = cache.runs(shell.RUNS)
config = form.form(runs)
price = st.container()
jobs.show_heading()
jobs.show_jobs()
result.card()
form.take_away(config)
train_runs.table(runs)
with st.expander("How sure?", icon=":material/help:"):
    st.markdown(TEXT("sure"))
train_runs.compare(runs)
train_runs.take_away(runs)
with price:
    form.start(config)
if runs:
    view.remember("runs", cache.runs_table(runs))
if (now := shell.current()) is not None:
    view.foot(presets.retrain_command(now.run))
