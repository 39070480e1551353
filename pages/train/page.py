"""What happens if I change √K, k, length, depth? Train it and see; nothing here stops when the page is left."""

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.runs import Run
from pages.frame import shell
from pages.kit import cache, view
from pages.train import form, live, result
from pages.train import runs as train_runs


def readable(run: Run) -> bool:
    try:
        return bool(run.config)
    except InputError:
        return False


shell.lockable({"train_start": "Start training"})
st.title("What happens if I change the model, and train it?", anchor=False)
st.write("Training goes on when you reload, leave or close the page.")
with st.popover("What am I looking at?", icon=":material/help:"):
    st.markdown(
        "**Computed:** Each person’s last item is kept for the test, the one before it for validation after every epoch; the "
        "best weights are tested once, at the end.\n\n**Misread:** A short training says who learns faster, not who is better "
        "in the end. Another seed lands elsewhere: train a second one before you believe a small gap."
    )
shell.off("training")
live.line()
st.header("New training", anchor=False)
runs = [run for run in cache.runs(shell.RUNS) if readable(run)]
config = form.form(runs)
price = st.container()
live.heading()
live.live()
result.card()
form.take_away(config)
train_runs.table(runs)
train_runs.compare(runs)
train_runs.take_away(runs)
with price:
    form.start(config)
if runs:
    view.remember("runs", cache.runs_table(runs))
view.foot("python -m elastic_core train --help")
