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
st.write(
    "Make the memory larger, retrieve more experts, read more of the history: choose how long you want to wait, start, and "
    "watch. The training goes on when you reload, leave or close this page."
)
with st.popover("What am I looking at?", icon=":material/help:"):
    st.markdown(
        "**Question.** Does one change to the model help, and does its memory stay alive?\n\n"
        "**How it is computed.** Each person’s last film (or item) is kept for the test, the one before it for validation. After "
        "every epoch the model ranks the validation film against all the person has not met; NDCG@10 is 1 if it comes first, "
        "less further down, 0 below place ten. The best weights by that number are tested once, at the end. *Experts used* is "
        "the share that anybody's history retrieves; *evenness* is the entropy of that load, 100% if all carry the same.\n\n"
        "**How it is misread.** A short training says which model learns faster, not which is better in the end. Two runs differ "
        "by their seed alone, too: train a second seed before you believe a small gap. Validation numbers are picked by "
        "their maximum, so they look better than the test."
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
