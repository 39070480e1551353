"""The dispatcher as a picture to point at: events, experts and the lines between them, beside every event with every event."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import streamlit as st

from elastic_core.errors import InputError
from elastic_core.services.journey.example import EXPERTS, ITEMS, VOTES, example
from elastic_core.services.journey.trace import DRAWN, LEAST, MOST, Dispatch
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Situation
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers, state
from pages.journey.words import DISPATCHER, SAYS
from pages.kit import view
from pages.kit.control import bound

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
    "elastic_dispatcher", css=CSS, js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def draw(now: Context, here: Situation) -> None:
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
