"""The whole way of one history as one picture to point at: what each event asks, the grid of experts, the most wanted, the list.

Drawn by strip.js in one piece, so that pointing needs no rerun; only taking something away does.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.memory.routing import RoutedUsers
from elastic_core.services.person import inspect
from elastic_core.services.person.edited_history import ADDED_EVENT, REMOVED_EVENT
from elastic_core.services.person.model_trace import ModelTrace, share_list, trace_model
from elastic_core.services.person.prediction import Prediction
from elastic_core.services.person.recommend import ListChange
from elastic_core.services.person.slot_contents import summarize_slot
from pages.components import edits, item_cards, page_context, page_text, plot, user_cards
from pages.components.cache import OpenRun, cached_resource
from pages.components.page_context import Context

LARGEST = 64  # squares a side; of more only the chosen and wanted ones are drawn: a finger would not meet them
KEY = "start_strip"
REMOVED, SILENCED, LOOKED = "removed", "silenced", "looked"  # what was done in the picture
ROOM = 15  # letters of a name in a row
LEGEND = (
    "load",
    "chosen",
    "edges",
    "strongest",
    "other",
    "bold",
    "faint",
    "gold",
)  # marks of the picture, each with its sentence
SCRIPT_FILE = Path(__file__)
TEXT = page_text.load_page_text(__file__)
_mount = st.components.v2.component(
    "elastic_strip", css=SCRIPT_FILE.with_suffix(".css").read_text("utf-8"), js=SCRIPT_FILE.with_suffix(".js").read_text("utf-8")
)


@cached_resource(64)
def _model_trace(
    open_run: OpenRun, items: np.ndarray, scales: object, keep_seen: bool, indices: list[int | None], _prediction: Prediction
) -> ModelTrace:
    return trace_model(open_run.model, _prediction, indices)


def model_trace(context: Context, rows: pd.DataFrame, prediction: Prediction) -> ModelTrace:
    """Which experts events vote for, what experts hold and contribute, and what changes without each. `rows`: the events that are
    shown (`event_rows`)."""
    indices = [None if index < 0 else int(index) for index in rows["index"]]
    scales = sorted(prediction.scales.items())
    return _model_trace(context.open_run, prediction.history.items, scales, prediction.keep_seen, indices, prediction)


def show_strip(
    context: Context, rows: pd.DataFrame, prediction: Prediction, trace: ModelTrace, change: ListChange, *,
    offered: int | None, names: Mapping[int, str], traffic: RoutedUsers | None, changed: bool, open_details: str,
    on_act: Callable[[str, int | str], None],
) -> None:  # fmt: skip
    """`rows`: the events that are shown (`event_rows`); `trace`: the links to draw; `offered`: the expert that a button offers to
    silence, always drawn; `names`: what experts stand for; `open_details`: what is open below; `on_act`: called with what was
    done, and to which event, by its number, or expert, or with what was pressed (`expert 7`)."""
    palette, shades, edits_locked = (
        page_context.theme_palette(),
        user_cards.genre_colours(context),
        page_context.is_locked(edits.PARAMETER),
    )
    parts = share_list(trace, prediction.recommendation.chances[prediction.recommendation.table["item"]])
    expert_rows = [
        _expert_data(context, prediction, trace, place, names.get(expert, ""), traffic, parts)
        for place, expert in enumerate(trace.experts)
    ]
    for row in expert_rows:
        if row["id"] == offered and trace.suggestion_share is not None:
            row["votes"] += f" {TEXT('STRONGEST', many=context.item_words.plural)}"
    list_rows = _list_data(context, shades, change, trace, changed)
    n_earlier = next((index for index in trace.indices if index is not None), 0)
    data = {
        "who": f"{context.run.name}~{context.user}",
        "events": _cut_labels([_event_data(shades, row, trace, place) for place, row in enumerate(rows.to_dict("records"))]),
        "grid": _grid_data(context, prediction, traffic, trace, palette),
        "experts": expert_rows,
        "list": list_rows if changed else _cut_labels(list_rows),  # a mark of what changed leaves room for the beginning alone
        "left": [
            {
                "name": ("★ " if row["is_truth"] else "") + _bare_title(row["title"]),
                "mark": f"now {row['now'] or context.item_words.participle}",
            }
            for row in change.lost_rows.to_dict("records")
        ],
        "offered": offered,
        "locked": {"remove": edits_locked, "silence": edits_locked},
        "opened": open_details,
        "colours": palette._asdict(),
        "says": _text_data(context, trace, n_earlier, any(expert["fits"] is False for expert in expert_rows), offered),
    }
    _mount(
        data=data, key=KEY, **{f"on_{what}_change": partial(_pass_act, what, on_act) for what in (REMOVED, SILENCED, LOOKED)}
    )  # fmt: skip


def _pass_act(act: str, on_act: Callable[[str, int | str], None]) -> None:
    value = (st.session_state.get(KEY) or {}).get(act)
    if act == LOOKED and isinstance(value, str):
        on_act(act, value)
    elif act != LOOKED and isinstance(value, int | float):
        on_act(act, int(value))


def _bare_title(title: str) -> str:
    return inspect.split_year(title)[0]


def _cut_labels(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with what stands in the row: names that begin alike could not be told apart there."""
    labels = inspect.cut_alike([item["name"] for item in items], ROOM)
    return [item | {"label": label} for item, label in zip(items, labels, strict=True)]


def _item_data(shades: item_cards.GenreColours, name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """An item as a cover and its name; pointed at, the browser says its whole title and its genres."""
    colour = shades.colour_of(row["genres"])
    cover = {"initials": item_cards.title_initials(name), "colour": colour, "ink": item_cards.contrast_colour(colour)}
    return {"name": name, "label": name, "about": " · ".join([row["title"], *row["genres"]]), "cover": cover}


def _event_data(shades: item_cards.GenreColours, row: Mapping[str, Any], trace: ModelTrace, place: int) -> dict[str, Any]:
    name = ("+ " if row["state"] == ADDED_EVENT else "") + _bare_title(row["title"])
    votes = None if trace.votes is None or row["state"] == REMOVED_EVENT else trace.votes[place]
    return _item_data(shades, name, row) | {"place": row["number"], "gone": row["state"] == REMOVED_EVENT, "votes": votes}


def _list_data(
    context: Context, shades: item_cards.GenreColours, change: ListChange, trace: ModelTrace, changed: bool
) -> list[dict[str, Any]]:
    """The suggestions, and what really came next where it stands below them and nothing leads to it."""
    titles = inspect.told_apart(change.table["title"], context.dataset.catalog.ids[change.table["item"]])
    titles += [_bare_title(title) for title in change.below["title"]]
    items, shares = [], trace.suggestion_share
    for place, row in enumerate([*change.table.to_dict("records"), *change.below.to_dict("records")]):
        is_suggestion = place < len(change.table)
        items.append(_item_data(shades, titles[place], row) | {
            "item": str(row["item"]), "rank": row["rank"], "gold": row["is_truth"],
            "mark": user_cards.MARKS[row["change"]].format(row["was"] or "seen") if changed else "",
            "suggestion_share": shares[place].tolist() if is_suggestion and shares is not None else None,
            "without": _round_values(trace.without_expert[place]) if is_suggestion else [None] * len(trace.experts),
            "missing": _round_values(trace.without_event[place]) if is_suggestion else [None] * len(trace.indices),
        })  # fmt: skip
    return items


def _expert_data(
    context: Context,
    prediction: Prediction,
    trace: ModelTrace,
    place: int,
    name: str,
    traffic: RoutedUsers | None,
    parts: np.ndarray | None,
) -> dict[str, Any]:
    """A card: what the expert is called, what its slot holds, and its part of the list."""
    expert, lines, notes, name_fits = trace.experts[place], [], [], None
    event_share = None if trace.event_share is None else trace.event_share[place]
    contents = None if event_share is None else summarize_slot(context.dataset, prediction.history.items, event_share, name)
    if contents is not None:
        name_fits = (
            contents.fits if trace.suggestion_share is not None else None
        )  # where experts mix, people are named, not slots
        item_title = _bare_title(context.dataset.catalog.title(contents.item))
        times_text = f", {context.item_words.participle} {contents.times} times" if contents.times > 1 else ""
        lines.append(f"{contents.share:.0%} of its slot: {item_title}" + times_text)
        if name_fits is False:
            notes.append(TEXT("NAME_ELSEWHERE", name=name, share=f"{contents.named_share:.0%}", many=context.item_words.plural))
    if factor := prediction.scales.get(expert):
        lines.append(f"counts × {factor:g}")
    if trace.vote_share is not None and trace.mean_vote_share is not None:
        share, mean_share = trace.vote_share[place], trace.mean_vote_share[place]
        notes.append(f"It gets {share:.1%} of the votes here, and {mean_share:.1%} from the average person.")
    if traffic is not None:
        notes.append(f"{traffic.load[expert]:,.0f} of {len(traffic.experts):,} people use it.")
    event_shares = None if event_share is None else [0 if index is None else float(event_share[index]) for index in trace.indices]
    return {
        "id": expert, "rank": place + 1, "name": name, "fits": name_fits, "part": None if parts is None else float(parts[place]),
        "quiet": prediction.scales.get(expert) == 0, "sub": " · ".join(lines), "votes": " ".join(notes),
        "event_share": event_shares,
    }  # fmt: skip


def _round_values(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _grid_data(
    context: Context, prediction: Prediction, traffic: RoutedUsers | None, trace: ModelTrace, palette: plot.Palette
) -> dict[str, Any] | None:
    """Colour by load, sub-key scores along the edges; None where there are no keys to look experts up by."""
    if prediction.retrieved is None or traffic is None or not prediction.retrieved.halves.shape[2]:
        return None
    side = prediction.retrieved.halves.shape[2]
    drawn_experts = np.arange(side**2)
    if side > LARGEST:
        voted_experts = {expert for votes in trace.votes or [] for expert, _ in votes}
        drawn_experts = np.unique([*trace.experts, *voted_experts, *([] if context.expert is None else [context.expert])])
    rows, columns = prediction.retrieved.halves[0].numpy()
    return {
        "side": side, "drawn": drawn_experts.tolist(),
        "load": plot.shade_values(traffic.load, palette.load, low=0, at=drawn_experts),
        "ground": palette.load[0], "people": traffic.load[drawn_experts].astype(int).tolist(),
        "rows": plot.shade_values(rows, palette.warm), "columns": plot.shade_values(columns, palette.cool),
        "picked": context.expert,
    }  # fmt: skip


def _text_data(context: Context, trace: ModelTrace, n_earlier: int, any_misfit: bool, strongest: int | None) -> dict[str, Any]:
    """The picture's words: did events vote, does every expert give suggestions of its own, does a name not fit, is one expert the
    strongest?"""
    item_words = context.item_words
    k, each_suggests = len(trace.experts), trace.suggestion_share is not None
    values = {
        "one": item_words.singular, "many": item_words.plural, "did": item_words.verb, "k": k, "shown": len(trace.indices),
        "step": 4 if k else 2,
        "before": f"after {n_earlier:,} earlier, newest last" if n_earlier else "oldest first",
        "gold": user_cards.NEXT_BASKET if context.dataset.in_baskets else f"really {item_words.verb} next",
        "gold_legend": "It was in the next basket." if context.dataset.in_baskets else f"They really {item_words.verb} it next.",
    }  # fmt: skip
    rest_text = TEXT("REST", what=f"{item_words.with_article} or an expert" if k else item_words.with_article)
    texts = {
        **TEXT.named_paragraphs("STRIP", **values),
        **TEXT.named_paragraphs("QUERIED" if trace.votes is None else "VOTED", **values),
        **TEXT.named_paragraphs("EACH_GIVES" if each_suggests else "MIXED", **values),
    }
    missing_marks = ({"other"} if not any_misfit else set()) | ({"strongest"} if strongest is None else set())
    return texts | {
        "legend": [[mark, texts[f"legend_{mark}"]] for mark in LEGEND if mark not in missing_marks],
        "rest": rest_text if each_suggests or not k else f"{rest_text} {TEXT('NO_VOTES', one=item_words.singular)}",
    }
