"""The calculator of the Speed page: what the formulas say of every system, as one table."""

import streamlit as st

from elastic_core.services.speed import costs
from pages.components import prose, shell, view
from pages.components.control import bound

TEXT = prose.page_text(__file__)
COLUMNS = view.columns(TEXT("COSTS"))


def show() -> None:
    with view.row("top"):
        n = bound(st.select_slider, "N, events read", [2**i for i in range(5, 17)], 1024, key="spd_n", width=300)
        d = bound(st.selectbox, "d, numbers per item", (32, 64, 128, 256), index=1, key="spd_d", width=160)
        k = bound(st.selectbox, "k, experts retrieved", (2, 4, 8, 16, 32), index=2, key="spd_calc_k", width=150)
        side = bound(st.selectbox, "√K, side", (8, 16, 32, 64, 512, 2048), index=1, key="spd_calc_side", width=160)
    table = costs.cost_table(costs.Sizes(length=n, width=d, k=k, n_subkeys=side))
    by_system = table.set_index("system")["operations"]
    ours, fused, eager = (by_system[costs.LABELS[name]] for name in ("elastic", "sasrec-fused", "sasrec-eager"))
    sentence = TEXT(
        "costs", n=f"{n:,}", ours=f"{ours / 1e6:,.1f}", items=f"{costs.ITEMS:,}", fused=f"{fused / ours:.1f}",
        eager=f"{eager / ours:.1f}",
    )  # fmt: skip
    st.markdown(shell.plain(sentence))
    view.table(
        "spd_costs", table, TEXT.about("CALCULATOR"), f"Operations and bytes of every system by formula. {sentence}",
        column_config=COLUMNS, column_order=list(COLUMNS), placeholder="–",
    )  # fmt: skip
