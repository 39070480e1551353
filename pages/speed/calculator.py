"""The calculator of the Speed page: what the formulas say of every system, as one table."""

import streamlit as st

from elastic_core.services.speed import costs
from pages.components import page_context, page_elements, page_text
from pages.components.controls import bind_widget

TEXT = page_text.load_page_text(__file__)
COLUMNS = page_elements.parse_columns(TEXT("COSTS"))


def show_calculator() -> None:
    with page_elements.place_in_row("top"):
        n = bind_widget(st.select_slider, "N, events read", [2**i for i in range(5, 17)], 1024, key="spd_n", width=300)
        d = bind_widget(st.selectbox, "d, numbers per item", (32, 64, 128, 256), index=1, key="spd_d", width=160)
        k = bind_widget(st.selectbox, "k, experts retrieved", (2, 4, 8, 16, 32), index=2, key="spd_calc_k", width=150)
        side = bind_widget(st.selectbox, "√K, side", (8, 16, 32, 64, 512, 2048), index=1, key="spd_calc_side", width=160)
    table = costs.cost_table(costs.Sizes(length=n, width=d, k=k, n_subkeys=side))
    by_system = table.set_index("system")["operations"]
    elastic_cost, fused_cost, eager_cost = (by_system[costs.LABELS[name]] for name in ("elastic", "sasrec-fused", "sasrec-eager"))
    sentence = TEXT(
        "costs", n=f"{n:,}", ours=f"{elastic_cost / 1e6:,.1f}", items=f"{costs.ITEMS:,}",
        fused=f"{fused_cost / elastic_cost:.1f}", eager=f"{eager_cost / elastic_cost:.1f}",
    )  # fmt: skip
    st.markdown(page_context.escape_markdown(sentence))
    page_elements.show_table(
        "spd_costs", table, TEXT.chart_text("CALCULATOR"), f"Operations and bytes of every system by formula. {sentence}",
        column_config=COLUMNS, column_order=list(COLUMNS), placeholder="–",
    )  # fmt: skip
