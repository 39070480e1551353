"""Start: what does ELASTIC do with this person’s history? The whole way in one picture, and what changes without a part of it."""

import numpy as np
import streamlit as st

from elastic_core.services.journey.shown import raw_ids
from elastic_core.services.person import attribution, inspect
from elastic_core.services.person.inspect import Situation
from elastic_core.services.person.path import SHOWN, Path, path
from elastic_core.services.person.recommend import Moved, moved, places_left
from elastic_core.services.train import run_table
from pages.frame import shell
from pages.kit import cache, person, prose, view
from pages.kit.cache import Opened
from pages.kit.control import button
from pages.kit.kept import asking, copied, kept
from pages.start import edits, strip

SAYS = prose.of(__file__)
owners = asking(copied(12), attribution.share_agreement)  # do shares say what a removal does?
PEOPLE = 200  # who are asked whether the owner of their first suggestion is the expert whose removal lowers it most
# On a low window the answer stands where the introduction stood, so that the picture stays in view.
LOW = """<style>@media (min-width: 768px) and (max-height: 820px) {
  .st-key-start_lead_read { display: none }
  .st-key-start_said [data-testid="stAlertContainer"] { padding: .3rem .7rem }
}</style>"""


@kept(64)
def way(of: Opened, items: np.ndarray, silenced: object, stay: bool, places: list[int | None], _here: Situation) -> Path:
    """What asks, keeps and gives what in this situation."""
    return path(of.model, _here, places)


def pointed(what: str, number: int) -> None:
    """Something in the strip was clicked: it goes, or comes back."""
    if what in (strip.PICKED, strip.OPENED):
        shell.look_at(number)
        return
    edit = -number if what == strip.REMOVED else number
    after = edits.toggled(broken, edit, start.events)
    if edit in after and (here.events < 2 if edit < 0 else here.heard == [edit]):
        st.toast(SAYS("stays"))
    elif not shell.locked(f"start_{'remove' if edit < 0 else 'silence'}"):
        edits.keep(now, after)


def opening() -> None:
    found, said = start.found, {"one": words.one, "many": words.many, "size": f"{now.dataset.catalog.n_items:,}"}
    lead = SAYS("lead", person=now.user + 1, did=words.did, events=start.events + 1, many=words.many)
    if found is None:
        st.markdown(f"{lead} {SAYS('plain', **said)}")
        st.info(SAYS("no experts"))
        return
    k = len(start.experts)
    chosen = f"**{k} of {found.halves.shape[2] ** 2 or k:,} experts**"
    how = SAYS("query" if found.ballots is None else "votes", chosen=chosen, **said)
    st.markdown(f"{lead} {how}", help=SAYS("expert", **said))


def breaking() -> None:
    """Two causal acts, and the way back."""
    strongest = here.strongest
    with view.row("bottom", gap="small"):
        button(
            f"Remove the last {words.one}", "start_remove", edits.keep, now, [*broken, None], icon="backspace",
            disabled=here.events < 2 or shell.locked("start_remove"),
            help=f"Forget “{_title(here.read.items[-1])}” and ask again.",
        )  # fmt: skip
        if here.found is not None:
            button(
                f"Silence expert {strongest}", "start_silence", edits.keep, now, [*broken, strongest], icon="volume_off",
                disabled=len(here.heard) < 2 or shell.locked("start_silence"),
                help=f"Takes away expert {strongest}, the one behind the first suggestion, and asks again.",
            )  # fmt: skip
        button("Undo", "start_undo", edits.keep, now, broken[:-1], icon="undo", disabled=not broken)
        button("Reset", "start_reset", edits.keep, now, [], icon="restart_alt", disabled=not broken)


def verdict() -> None:
    """What was done, and what list and experts answered."""
    gone = [place for place in range(start.events) if place not in left]
    away = [_named(gone)] if gone else []
    away += [f"expert {' and '.join(map(str, here.silenced))}"] if here.silenced else []
    if away:
        truth = f"★ {_title(here.answer.truth or 0)}, which they really {words.did} next, {change.truth_moved}."
        others = inspect.others_retrieved(start, here) if gone else ""
        said = f"**Without {' and without '.join(away)}:** {truth} {shell.plain(change.summary(words.many))} {others}"
        with st.container(key="start_said"):
            st.info(said, icon=":material/swap_vert:")


def _named(gone: list[int]) -> str:
    """`the last 2 films`, `Alien`, `3 films`."""
    count = f"{len(gone)} {words.many}"
    if left == list(range(len(left))):
        return f"the last {words.one if len(gone) == 1 else count}"
    return count if len(gone) > 1 else _title(start.read.items[gone[0]])


def _title(item: int) -> str:
    return shell.plain(inspect.split_year(now.dataset.catalog.title(int(item)))[0])


def drawn() -> None:
    """The strip, and what its list is chosen from."""
    where = {place: at for at, place in enumerate(left)}
    places = [where.get(place) for place in range(max(start.events - SHOWN, 0), start.events)]
    links = way(now, here.read.items, here.silenced, stay, places, here)
    traffic = cache.traffic(now) if here.found is not None else None
    names = person.expert_names(now, here) if here.found is not None else {}
    opened = strip.draw(now, start, here, links, change, names=names, traffic=traffic, changed=bool(broken), on_act=pointed)
    among = {"left": f"{here.answer.running:,}", "one": words.one, "many": words.many, "did": words.did, "done": words.done}
    st.caption(SAYS("all" if stay else "new ones", **among))
    if opened:
        shell.go("experts/page.py")


def doubt() -> None:
    """How often such a list is right, how this person was chosen, and whether another act would have done the same."""
    panel = st.expander("How sure?", icon=":material/help:", on_change="rerun", key="start_sure")
    with panel:
        if not panel.open:
            return
        if line := run_table.hit_line(now.run.last("test"), words, stay):
            st.markdown(line)
        if now.user == cache.example(now):
            st.markdown(SAYS("example"))
        st.markdown(SAYS("careful"))
        found = cache.chance(now, now.user, broken, stay) if broken else None
        if found is None:
            st.markdown(SAYS("nothing yet"))
        else:
            last = broken[-1]
            person.by_chance(found, now, f"other {words.many}" if last is None or last < 0 else "other experts")
            view.remember("chance", found.table)


def agreement() -> None:
    """Does what the lines say agree with what a removal does? Last, when all else is on the screen: it asks many people."""
    found = owners(now, PEOPLE, now.stay)
    if found is not None:
        truly = "Yes" if found.owners >= 0.9 else "Mostly" if found.owners >= 0.5 else "Rarely"
        held, by_chance = (round(share * found.people) for share in (found.owners, found.chance))
        agree.markdown(SAYS("truth", truly=truly, people=found.people, owners=held, chance=by_chance))


def onwards() -> None:
    """Links that lead on; run and person stay."""
    opens = start.strongest if now.expert is None else now.expert  # that page knows of no edits
    which = "one expert" if opens is None else f"expert {opens}"
    with view.row("top"):
        st.page_link("keys/page.py", label="How is the search so fast?", icon=":material/grid_on:")
        st.page_link("journey/page.py", label="What if the history were different?", icon=":material/route:")
        st.page_link("experts/page.py", label=f"What does {which} stand for?", icon=":material/hub:")


shell.lockable({
    "start_remove": "Remove the last film", "start_silence": "Silence an expert",
})  # fmt: skip
now = shell.context()
broken = edits.current(now)
words = now.words

heading, acting = st.container(), st.container()
body, controls = st.container(), view.row("bottom")
with controls:
    stay = person.staying(now, "start_ranked")
start, here = (cache.after(now, now.user, edited, stay) for edited in ([], broken))
change: Moved = moved(start.answer, here.answer)
left = places_left(start.events, broken)

st.html(LOW)
with heading:
    view.title("What does ELASTIC do with one person’s history?")
    with st.container(key="start_lead_read" if broken else "start_lead"):
        opening()
with acting:
    breaking()
    verdict()
with body:
    drawn()
    agree = st.empty()
doubt()
onwards()
view.remember("history", inspect.history_table(now.dataset, start.read, start.events))
view.remember("suggestions", change.table)
removed, tail = start.events - here.events, left == list(range(here.events))
view.foot(
    "python -m elastic_core recommend", now.run.name,
    f"--user={now.dataset.histories.user_ids[now.user]}" if tail else f"--history={raw_ids(now.dataset, here.read.items)}",
    *(["--seen"] if stay else []),
    *([f"--without-last={removed}"] if removed and tail else []),
    *([f"--silence={','.join(map(str, here.silenced))}"] if here.silenced else []),
)  # fmt: skip
agreement()
