"""Reasons that are tested: what each event changes by its removal, beside attention; how the experts read; the way so far."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey.example import EXPERTS, ITEMS, VOTES, example
from elastic_core.services.journey.shown import span_titles, strongest
from elastic_core.services.journey.trace import DRAWN, LEAST, MOST, Dispatch
from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Situation, Words
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers, charts, state
from pages.journey.words import ALONG, DISPATCHER, INFLUENCE, READING, SAYS
from pages.kit import cache, view
from pages.kit.control import bound, one_of, switch

NEXT, TOP = "what came next", "the top suggestion"
FEW, ALL = "12 strongest", "all, latest first"


def influence(now: Context, here: Situation, words: Words) -> list[str]:
    """Removal of each event, next to attention. Says how sure that is."""
    truth, top = here.answer.truth, int(here.answer.table["item"].iloc[0])
    with view.row("top"):
        options = [NEXT, TOP] if truth is not None else [TOP]
        asked = switch("Behind", options, "jrn_for")
        show = switch("Show", [FEW, ALL], "jrn_show")
    target = truth if truth is not None and asked != TOP else top
    try:
        found = answers.influence(now, tuple(here.read.items.tolist()), target, here.stay)
    except InputError as error:
        st.write(state.sentence(error))
        return []
    if found.nothing:
        st.markdown(SAYS("NOTHING", one=words.one))
        return []
    name = inspect.split_year(now.dataset.catalog.title(target))[0]
    st.markdown(SAYS("MATTERS", name=shell.plain(name), rank=found.rank, running=found.running, one=words.one))
    st.markdown(found.sentence)
    rows = strongest(found.table, 12 if show != ALL else None)
    labels = [_label(row.position, row.title) for row in rows.itertuples()]
    alt = f"Effect of removing each event on the chance of {name}; the largest: {labels[0]}, times {rows['times'].iloc[0]:.2f}."
    figure = cache.drawn(charts.influence, rows, labels, shell.palette())
    view.chart("jrn_influence", figure, found.table, INFLUENCE, alt)
    if found.agreement is not None:
        low, high, n = found.agreement.low, found.agreement.high, found.agreement.n
        return [f"**Attention.** The correlation is {low:+.2f} to {high:+.2f} (95%, n = {n} events, taken as independent)."]
    return []


def _label(position: int, title: str) -> str:
    name = inspect.split_year(title)[0].replace("<", "‹").replace(">", "›")  # plotly reads tags in labels
    return f"{position}. {name if len(name) <= 20 else name[:19] + '…'}"


def reading(now: Context, here: Situation) -> None:
    """The dispatcher, and every weight of it on demand."""
    _dispatcher(now, here)
    panel = st.expander("Every weight", icon=":material/table:", on_change="rerun", key="jrn_weights")
    if panel.open:
        with panel:
            _weights(now, here)


def _weights(now: Context, here: Situation) -> None:
    """The aggregation map, and how the last event reads the experts."""
    layer = 1
    try:
        found = answers.reading(now, here.read.items, 0)
        if found.layers > 1:
            layers = list(range(1, found.layers + 1))
            layer = one_of("Layer", layers, key="jrn_layer", help=notes.WORDS["layer"])
            found = answers.reading(now, here.read.items, layer - 1)
    except InputError as error:
        st.write(state.sentence(error))
        return
    titles = [title.replace("<", "‹").replace(">", "›") for title in span_titles(now.dataset, here.read.items, found.cells)]
    figure = cache.drawn(charts.aggregation, found.cells, found.slots, titles, shell.palette())
    top = found.slots.sort_values("reads").iloc[-1]
    alt = f"Experts by events in layer {layer}. The last event reads expert {top['expert']:.0f} most, {top['reads']:.0%}."
    films, _ = cache.reads(now, here.read.items)
    view.chart("jrn_reading", figure, found.cells if films is None else films, READING, alt)


def along(now: Context, moment: int, stay: bool) -> None:
    """The way so far: rank and experts at many moments; a click goes there."""
    figure, mine, other, drawn, count = answers.way(now, now.other, now.user, moment, shell.palette(), stay)
    some = f" Shown: today’s experts and the most used ({drawn} of {count})." if drawn < count else ""
    dotted = f" Dotted: {shell.plain(now.other.run.name)}." if now.other else ""
    st.caption(f"{SAYS('OVER_TIME')}{some}{dotted}")
    last = mine.ranks.iloc[-1]
    alt = f"Rank of the next item at {len(mine.ranks)} moments; at the last, the test, rank {last['rank']} of {last['running']}."
    table = mine.ranks
    if other is not None:
        table = mine.ranks.merge(other.ranks[["event", "rank"]], on="event", suffixes=("", "_second_run"))
    there = mine.ranks[mine.ranks["event"] <= max(moment, mine.ranks["event"].min())].iloc[-1]
    many, title = now.words.many, shell.plain(str(there["title"]))
    found, running = {"event": there["event"], "rank": there["rank"], "luck": (there["running"] + 1) / 2}, there["running"]
    st.markdown(SAYS("CAME_NEXT", many=many, title=title, running=running, **found))
    view.chart("jrn_along", figure, table, ALONG, alt, on_select=None if shell.locked(state.MOMENT) else _picked)


def _picked() -> None:
    if mark := view.clicked("jrn_along"):
        state.reach(int(mark[0]))


# --- the dispatcher as a picture to point at: events, experts and the lines between them -----------------------------

EVENTS = "jrn_dispatched"
CSS = """
.dispatcher { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 1fr); gap: .5rem 1.5rem; color: var(--st-text-color);
  container-type: inline-size }
svg { width: 100%; display: block; overflow: visible; font-family: var(--st-font) }
text { font-size: 12px; fill: currentColor }
.head { font-weight: 600 }
.thing { cursor: default; outline: none }
.thing:focus-visible text, .on text { font-weight: 700; text-decoration: underline }
.expert rect { fill: var(--st-background-color); stroke: var(--st-border-color) }
.expert.on rect { stroke: var(--st-text-color); stroke-width: 2 }
path { fill: none; stroke: var(--st-text-color) }
.take { stroke: #d55e00 }
.back { stroke: #0b86c9 }
.some .lines path:not(.on) { stroke-opacity: .04 }
.some .lines .on { stroke-opacity: 1 }
.told { grid-column: 1 / -1; padding: .35rem .5rem; min-height: 1.4rem; font: .82rem var(--st-font); border-radius: .4rem;
  background: var(--st-secondary-background-color) }
@media (max-width: 640px) {
  .dispatcher { grid-template-columns: minmax(0, 1fr) }
  text { font-size: 17px }
  .pairs { max-width: 140px }
  .pairs text { font-size: 13px }
}
"""
_mount = st.components.v2.component(
    "elastic_dispatcher", css=CSS, js=Path(__file__).with_name("dispatcher.js").read_text(encoding="utf-8")
)


def _dispatcher(now: Context, here: Situation) -> None:
    """The slider for N, what it saves, and the picture."""
    words = now.words
    most = min(here.events_read, MOST)
    events = most
    if most > LEAST:
        events = int(
            bound(
                st.slider, f"N: the last {words.many}", LEAST, most, min(DRAWN, most), key=f"{EVENTS}_{most}",
                called="Events drawn",
            )
        )  # fmt: skip
    try:
        found = answers.dispatched(now, here.read.items, events)
    except InputError as error:
        st.write(state.sentence(error))
        return
    n, k = len(found.titles), len(found.experts)
    voted = here.found is not None and here.found.ballots is not None
    lines = SAYS("LINES", then=" up to then" * now.model.causal, one=words.one, n=n, k=k, links=found.links, pairs=found.pairs)
    st.markdown(f"{SAYS('CHOSEN_BY_VOTES', k=k, one=words.one)} {lines}" if voted else lines)
    _mount(data=_data(found, words), key="jrn_dispatcher")
    st.markdown(SAYS("LIST_EACH" if found.apart else "LIST_ONE", one=words.one, many=words.many))
    st.caption(SAYS("SAVES", many=words.many, few=2_000 * k))
    _example(found.apart)
    view.explain(DISPATCHER)
    view.remember("dispatcher", answers.dispatch_table(found))


def _example(slots: bool) -> None:
    """The same with three items and two experts, every number written out."""
    panel = st.expander("A tiny example", icon=":material/calculate:", key="jrn_example", on_change="rerun")
    if not panel.open:
        return
    found = example(slots)
    there, back = ("EXAMPLE_SLOTS", "EXAMPLE_SLOTS_BACK") if slots else ("EXAMPLE", "EXAMPLE_BACK")
    rows = [["", *(f"{name} {_vector(v)}" for name, v in ITEMS.items()), "holds"], ["---"] * (len(ITEMS) + 2)]
    for at, (name, vector) in enumerate(EXPERTS.items()):
        numbers = zip(found.fits[at], found.shares[at], found.parts[at], strict=True)
        cells = [f"{fit:.1f} → {share:.0%}" + f" → {part:.0%}" * slots for fit, share, part in numbers]
        rows.append([f"**{name}** {_vector(vector)}", *cells, f"**{_vector(found.holds[at])}**"])
    alone = "; ".join(f"{expert}: {_scores(row)}" for expert, row in zip(EXPERTS, found.alone, strict=True))
    fits = " and ".join(f"{fit:.2f} ({expert})" for expert, fit in zip(EXPERTS, found.fits_back, strict=True))
    a, b = (f"{share:.0%}" for share in found.back)
    with panel:
        st.markdown(SAYS(there))
        st.markdown("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts = found.back * found.alone[:, found.scores.argmax()]
        who, part = [*EXPERTS][int(parts.argmax())], f"{parts.max() / parts.sum():.0%}"
        says = [
            f"{expert} {_vector(holds)} + {vote:.0%} × {_vector(own)} = **{_vector(said)}**"
            for (expert, own), vote, holds, said in zip(EXPERTS.items(), VOTES, found.holds, found.says, strict=True)
        ]
        told = {"says": ", ".join(says), "scores": _scores(found.scores), "alone": alone, "fits": fits, "who": who, "part": part}
        st.markdown(SAYS(back, last=[*ITEMS][-1], a=a, b=b, **told))


def _scores(of: Iterable[float]) -> str:
    return ", ".join(f"{name} {score:.2f}" for name, score in zip(ITEMS, of, strict=True))


def _vector(of: Iterable[float]) -> str:
    return f"({', '.join(f'{value:.2g}' for value in of)})"


def _data(found: Dispatch, words: inspect.Words) -> dict[str, Any]:
    palette, names = shell.palette(), [f"expert {expert}" for expert in found.experts]
    titles, n = [inspect.split_year(title)[0] for title in found.titles], len(found.titles)
    holds = "holds" if found.apart else "reads"
    return {
        "events": titles, "experts": names, "held": found.held.round(4).tolist(),
        "older": found.older.round(4).tolist(), "back": found.back.round(4).tolist(),
        "colours": {"muted": palette.muted},
        "says": {
            "heads": [f"{n} {words.many}", "aggregate → dispatch", f"the same {n}"],
            "pairs": f"{n}² = {found.pairs:,} lines",
            "alt": f"{n} {words.many}, {len(names)} experts and the lines between them. Arrow keys walk.",
            "rest": f"Point at an expert: what does it {holds[:-1]}? Point at {words.a} on the right: what does it get back?",
            "event": ["{} is", f"{{}} of what {{}} {holds}"],
            "back": ["Of what {} gets back (100%):", "{} from {}"],
            "expert": [f"Of all that {{}} {holds} (100%):", "{} {}"],
            "older": f"{{}} older {words.many}", "empty": "{} still empty", "nobody": "{} from no expert",
            "nothing": "nothing, more than 1%",
        },
    }  # fmt: skip
