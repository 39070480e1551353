"""What one version of a history looks like, retrieves and is answered, beside what it is compared with."""

import pandas as pd
import streamlit as st

from elastic_core.core.contract import Retrieved
from elastic_core.services.experts.evidence import Label
from elastic_core.services.journey.shown import ADDED, MOVED, REMOVED, ribbon_rows
from elastic_core.services.journey.trace import cards
from elastic_core.services.journey.versions import Tree
from elastic_core.services.person import inspect
from elastic_core.services.person.inspect import Situation, Words
from elastic_core.services.person.recommend import moved
from elastic_core.text import html as escape
from pages.frame import shell
from pages.frame.shell import Context
from pages.journey import answers
from pages.journey.words import EXPERTS, LISTS, SAYS
from pages.kit import cache, open_expert, person, plot, view
from pages.kit.control import picked
from pages.kit.tiles import Tile

EXPERT = "jrn_expert"
GRID = "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr));column-gap:1rem"
SIGNS = {ADDED: "+ ", MOVED: "↔ ", REMOVED: "− "}
NOTES = {ADDED: "added here", MOVED: "moved here", REMOVED: "removed"}


def ribbon(now: Context, tree: Tree, words: Words) -> None:
    """The latest events; added, moved and removed ones are marked in words and sign."""
    table, count = ribbon_rows(now.dataset, tree), len(tree.here.items)
    shown = int((table["state"] != REMOVED).sum())
    read = min(count, now.model.length)
    before = f" ({len(tree.original)} before your edits)" if tree.current and count != len(tree.original) else ""
    parts = [f"The last {shown} of {count}{before}, oldest first." if shown < count or before else "Oldest first."]
    trained = now.model.trained
    parts += [f"Read: the last {read}." if read < count and trained else ""]
    signs = {SIGNS[state] + state for state in table["state"] if state in SIGNS}
    parts += [f"{', '.join(sorted(signs))}." if signs else ""]
    cells = []
    for row in table.to_dict("records"):
        name, year = inspect.split_year(row["title"])
        state = row["state"]
        cells.append(Tile(SIGNS.get(state, "") + name, year, row["genres"], note=NOTES.get(state, ""), faded=state == REMOVED))
    person.ribbon(now, cells, f"The last {shown} {words.many} of this history", " ".join(filter(None, parts)))


def lists(now: Context, here: Situation, before: Situation | None, peer: str) -> None:
    """The ten likeliest with what moved; a second run's ten, named `peer`, stand below them."""
    change = moved((before or here).answer, here.answer)
    if peer and before is not None:
        st.markdown(f"**{shell.plain(cache.called(now.run))}**")
        person.suggestions(now, here, change, changed=True)
        st.markdown(f"**{shell.plain(peer)}**")
        person.suggestions(now, before, moved(before.answer, before.answer), changed=False)
    else:
        person.suggestions(now, here, change, changed=before is not None)
    panel = st.expander("As a table", icon=":material/table:", key="jrn_lists", on_change="rerun")
    if panel.open:
        with panel:
            view.table("jrn_list", change.table, LISTS, "The first ten with score, rank before and change")


def verdict(here: Situation, earlier: Situation, before: str, peer: str, words: Words) -> None:
    """One or two sentences: what moved."""
    change = moved(earlier.answer, here.answer)
    truth = f" What they {words.did} next {change.truth_moved}." if here.answer.truth is not None else ""
    if peer:
        same = len(change.table) - change.counts["new"]
        where = f" What they {words.did} next: rank {change.truth_after} here, {change.truth_before} there."
        truth = where if here.answer.truth is not None else ""
        text = f"**Beside {shell.plain(peer)}:** the two runs share {same} of their ten {words.many}.{truth}"
        st.info(text, icon=":material/compare_arrows:")
        return
    moves = f"{shell.plain(change.summary(words.many))} {inspect.others_retrieved(earlier, here)}"
    st.info(f"**Against {shell.plain(before)}:**{truth} {moves}", icon=":material/swap_vert:")


def by_chance(now: Context, tree: Tree, stay: bool) -> None:
    """Would the same edit elsewhere have done the same?"""
    found = answers.chance(now.run, now.model, now.dataset, tree, stay)
    if found is None:
        return
    (_, own, other, _), *more = found.rows(words := inspect.item_words(now.dataset).did)
    st.markdown(
        SAYS(
            "BY_CHANCE", done=shell.plain(_first_upper(str(found.table["done"].iloc[0]))), own=own, n=found.n,
            what=f"what they {words} next" if found.known else "the item that moved most",
            other=f"median {other}" if other[0].isdigit() else other,
        ),
        help="; ".join(f"{name}: this {mine}, others {theirs}" for name, mine, theirs, _ in more) or None,
    )  # fmt: skip
    view.remember("chance", found.table)


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def experts(now: Context, here: Situation, before: Situation | None) -> list[str]:
    """The retrieved experts as rows: number, taste, votes, what they hold, what is new. Returns how sure the taste is."""
    assert here.found is not None
    traffic = cache.traffic(now.run, now.model, now.dataset)
    table = cards(here.found, traffic)
    earlier = before.heard if before is not None else None
    table["before"] = [_place(earlier, expert) for expert in table["expert"]]
    table["even"] = traffic.experts.shape[1] / len(traffic.load)
    table["part"] = _parts(here.found)
    table["reads"] = table["expert"].map(cache.named(now.run, now.model, now.dataset, here.read.items)).fillna("")
    names = person.expert_names(now, here, moved(here.answer, here.answer))
    table["label"] = [names.get(expert, "") for expert in table["expert"]]
    st.html(_rows(table, earlier is not None, plot.palette(shell.is_dark())))
    gone = [str(expert) for expert in earlier or [] if expert not in here.heard]
    if gone:
        st.caption(f"No longer there: expert {', '.join(gone)}.")
    view.explain(EXPERTS)
    _one(now, here, table)
    evidence = cache.evidence(now.run, now.model, now.dataset)
    labels = {expert: evidence.label(expert) for expert in table["expert"]} if evidence else {}
    return [_doubt(expert, label) for expert, label in labels.items() if label.genres]


def _parts(found: Retrieved) -> list[str]:
    """What an expert has of all votes, and usually; of all weights where nothing votes."""
    experts, gates = found.experts[0].tolist(), found.gates[0].tolist()
    if found.votes is None or found.usual is None:
        return [f"{gate / max(sum(gates), 1e-9):.0%} of the weight" for gate in gates]
    return [f"{found.votes[0, expert]:.0%} of the votes (average person: {found.usual[expert]:.1%})" for expert in experts]


def _doubt(expert: int, found: Label) -> str:
    interval = f"{found.lift:.1f} times as common for its people (95%: {found.low:.1f} to {found.high:.1f})"
    return f"**Expert {expert}.** {shell.plain(found.genres[0])} is {interval}."


def _one(now: Context, here: Situation, table: pd.DataFrame) -> None:
    """The expert that all pages look at, and the way to its own page."""
    retrieved = table["expert"].tolist()
    st.session_state[EXPERT] = now.expert if now.expert in retrieved else here.strongest
    st.selectbox(
        "Expert", retrieved, key=EXPERT, format_func=lambda e: f"Expert {e}", on_change=_looked,
        disabled=shell.locked("expert"),
    )  # fmt: skip
    open_expert.card("Who uses it?")


def _looked() -> None:
    expert = picked(EXPERT)
    if expert is not None:
        shell.look_at(expert)


def _place(earlier: list[int] | None, expert: int) -> int:
    return earlier.index(expert) + 1 if earlier and expert in earlier else 0


def _rows(table: pd.DataFrame, compared: bool, colours: plot.Palette) -> str:
    """Cards as one list."""
    largest = max(float(table["gate"].max()), 1e-9)
    cells = []
    for row in table.to_dict("records"):
        change = (
            ""
            if not compared
            else "new here"
            if not row["before"]
            else ""
            if row["before"] == row["place"]
            else f"was {row['before']}."
        )
        cells.append(
            f'<li style="display:flex;gap:.5rem;align-items:center;padding:.22rem .3rem;border-bottom:1px solid {colours.line}">'
            f'<span style="width:1.2rem;text-align:right;flex:none">{row["place"]}</span>'
            f'<span style="flex:1;min-width:0;line-height:1.3"><b>Expert {row["expert"]}</b> '
            f'<span style="font-size:.8rem">{escape(row["label"])}</span> <b style="font-size:.8rem">{change}</b>'
            f'<span style="display:block;height:.4rem;margin:.15rem 0;background:{colours.line};border-radius:.2rem">'
            f'<span style="display:block;height:100%;width:{100 * row["gate"] / largest:.0f}%;background:{colours.load[-1]};'
            f'border-radius:.2rem"></span></span><span style="font-size:.8rem">{row["part"]}<br>'
            f"{escape(row['reads'])}{'<br>' * bool(row['reads'])}"
            f"used by {row['share']:.1%} of people (equal use: {row['even']:.1%})</span></span></li>"
        )
    style = f"list-style:none;margin:0;padding:0;{GRID}"
    return f'<ol aria-label="Retrieved experts, best first" style="{style}">{"".join(cells)}</ol>'
