"""What happens if I change √K, k, length, depth? Train it and see; nothing here stops when the page is left."""

import streamlit as st

from elastic_core.services.train import presets
from pages.components import cache, page_context, page_elements, page_text
from pages.train import form, jobs, result
from pages.train import runs as train_runs

TEXT = page_text.load_page_text(__file__)


page_context.register_controls({"train_start": "Start training"})
page_elements.show_title("What happens if I change the model, and train it?")
st.write(TEXT("idea"))
page_context.is_switched_off("training")
jobs.show_status_line()
runs = cache.list_openable_runs(page_context.RUNS)
config = form.choose_config(runs)
price = st.container()
jobs.show_heading()
jobs.show_jobs()
result.show_result()
form.show_export(config)
train_runs.show_run_table(runs)
with st.expander("How sure?", icon=":material/help:"):
    st.markdown(TEXT("sure"))
train_runs.show_run_comparison(runs)
train_runs.show_model_usage(runs)
with price:
    form.show_start_button(config)
if runs:
    page_elements.remember_table("runs", cache.runs_table(runs))
if (context := page_context.current_context()) is not None:
    page_elements.show_footer(presets.retrain_command(context.run))
