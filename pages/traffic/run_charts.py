"""Interest or activity, traffic by epoch, and Figure 5: accuracy and use of the memory against its size. Pure."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from elastic_core.text import figure as safe
from pages.kit.plot import Palette


def sensitivity(table: pd.DataFrame, side: int, k: int, colours: Palette) -> go.Figure:
    """NDCG@10 (dots with 95% intervals) and share of experts used (diamonds, right axis) against √K and against k."""
    titles = (f"k = {k}", f"√K = {side}")
    specs = [[{"secondary_y": True}] * 2]
    figure = make_subplots(1, 2, specs=specs, subplot_titles=titles, horizontal_spacing=0.08)
    known = table.dropna(subset=["NDCG@10"])
    top = float((known["NDCG@10"] + 1.96 * known["error"].astype(float).fillna(0)).max()) if len(known) else 1.0
    for place, (name, fixed, at) in enumerate((("√K", "k", k), ("k", "√K", side)), start=1):
        part = table[table[fixed] == at].dropna(subset=["NDCG@10"])
        figure.add_scatter(
            x=part[name], y=part["NDCG@10"], mode="markers", name="NDCG@10", showlegend=place == 1, text=part["run"].map(safe),
            error_y={"type": "data", "array": 1.96 * part["error"].astype(float), "thickness": 1.2},
            marker={"color": colours.categories[0], "size": 10}, row=1, col=place,
            hovertemplate="<b>%{text}</b><br>NDCG@10 %{y:.4f}<extra></extra>",
        )  # fmt: skip
        figure.add_scatter(
            x=part[name], y=part["used"], mode="markers", name="experts used", showlegend=place == 1, text=part["run"].map(safe),
            marker={"color": colours.categories[4], "size": 10, "symbol": "diamond-open", "line": {"width": 2}}, row=1, col=place,
            secondary_y=True, hovertemplate="<b>%{text}</b><br>%{y:.1%} of experts used<extra></extra>",
        )  # fmt: skip
        ticks = sorted({8, 16, 32, 64, *part[name]} if name == "√K" else {4, 8, 16, *part[name]})
        figure.update_xaxes(title=name, type="log", tickvals=ticks, ticktext=[f"{t:.0f}" for t in ticks], row=1, col=place)
    figure.update_yaxes(range=[0, 1.05 * top], secondary_y=False)  # one scale for both panels
    figure.update_yaxes(title="test NDCG@10", row=1, col=1, secondary_y=False)
    figure.update_yaxes(showticklabels=False, row=1, col=2, secondary_y=False)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.05], dtick=0.25, showgrid=False, secondary_y=True)
    figure.update_yaxes(showticklabels=False, row=1, col=1, secondary_y=True)
    figure.update_layout(
        height=340, margin={"l": 8, "r": 8, "t": 60, "b": 8}, dragmode=False,
        legend={"orientation": "h", "y": 1.14, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    return figure


def by_epoch(frame: pd.DataFrame, colours: Palette) -> go.Figure:
    """Share of experts used, entropy of the load and Gini after each epoch."""
    figure = go.Figure()
    names = {"used": "experts used", "entropy": "evenness (entropy)", "gini": "Gini"}
    for i, (column, name) in enumerate(names.items()):
        line = {"color": colours.categories[(0, 2, 4)[i]], "width": 2, "dash": ("solid", "dot", "dash")[i]}
        figure.add_scatter(
            x=frame["epoch"], y=frame[column], mode="lines+markers", name=name, line=line, marker={"size": 5},
            hovertemplate="%{y:.3f}",
        )  # fmt: skip
    figure.update_layout(
        height=300, margin={"l": 8, "r": 8, "t": 28, "b": 8}, hovermode="x unified", dragmode=False,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    figure.update_xaxes(title="epoch", rangemode="tozero")
    figure.update_yaxes(range=[0, 1.03])
    return figure


def load_by_epoch(heat: pd.DataFrame, colours: Palette) -> go.Figure:
    """One line of cells an expert, the busiest at the end on top; one column an epoch."""
    stops = [[i / (len(colours.load) - 1), shade] for i, shade in enumerate(colours.load)]
    labels = [f"expert {expert}" for expert in heat.index]
    figure = go.Figure(
        go.Heatmap(
            z=heat.to_numpy(), x=[str(epoch) for epoch in heat.columns], customdata=[[label] * heat.shape[1] for label in labels],
            colorscale=stops, zmin=0, colorbar={"title": {"text": "people"}, "thickness": 12},
            hovertemplate="<b>%{customdata}</b><br>epoch %{x}: %{z} people<extra></extra>",
        )
    )  # fmt: skip
    figure.update_layout(height=380, margin={"l": 8, "r": 8, "t": 8, "b": 8}, dragmode=False)
    figure.update_xaxes(title="epoch", type="category", showgrid=False)
    figure.update_yaxes(title="experts, the busiest at the end on top", autorange="reversed", showgrid=False)
    return figure


def gauges(table: pd.DataFrame, colours: Palette) -> go.Figure:
    """Each gauge as a dot, and beside it a cross where it would stand without what is claimed."""
    figure = go.Figure()
    for row in table.to_dict("records"):
        figure.add_scatter(
            x=[row["null"], row["value"]], y=[row["gauge"]] * 2, mode="lines", line={"color": colours.line, "width": 3},
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    for column, name, symbol, colour in (
        ("value", "this run", "circle", colours.picked), ("null", "to compare with", "x-thin", colours.text),
    ):  # fmt: skip
        marker = {"symbol": symbol, "size": 12, "color": colour, "line": {"width": 2, "color": colour}}
        figure.add_scatter(
            x=table[column], y=table["gauge"], mode="markers", name=name, marker=marker, customdata=table["without"],
            hovertemplate="%{x:.2f}" + ("<br>%{customdata}" if column == "null" else "") + "<extra></extra>",
        )  # fmt: skip
    figure.update_layout(
        height=260, margin={"l": 8, "r": 8, "t": 28, "b": 8}, dragmode=False, hovermode="closest",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    figure.update_xaxes(range=[-0.05, 1.05], fixedrange=True, zeroline=True)
    figure.update_yaxes(autorange="reversed", fixedrange=True)
    return figure
