"""Start: what does ELASTIC do with this person's history? One person, the whole way, and two ways to break it."""

import streamlit as st

from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from elastic_core.services.person.recommend import Moved, moved
from elastic_core.services.train import run_table
from pages.frame import shell
from pages.kit import cache, expert, person, view
from pages.start import edits


def do(edit: int | None) -> None:
    edits.keep(now, [*broken, edit])


def undo(keep: int) -> None:
    edits.keep(now, broken[:keep])


def opening() -> None:
    st.title("What does ELASTIC do with one person’s history?", anchor=False)
    size, found = now.dataset.catalog.n_items, start.found
    read = f"the latest {start.events_read} of " if start.events_read < start.events else ""
    lead = (
        f"Person **{now.user + 1}** {words.did} **{start.events + 1}** {words.many}; from {read}the first {start.events} the "
        f"model guesses the last. "
    )
    if found is None:
        st.markdown(f"{lead}This run ranks all {size:,} {words.many} without an interest memory.")
        st.info("No experts in this run: choose an ELASTIC run on the left.")
        return
    experts = found.halves.shape[2] ** 2 or found.experts.shape[1]
    chosen = f"**{found.experts.shape[1]} of {experts:,} interest experts**"
    if found.ballots is None:
        how = f"The history becomes one query. The {chosen} that fit it best"
    else:
        m = found.ballots.experts.shape[2]
        best = f"{m} experts that fit" if m > 1 else "expert that fits"
        how = f"Every {words.one} votes for the {best} it best. The {chosen} that get more votes than from most people"
    st.markdown(
        f"{lead}{how} are used to rank all {size:,} {words.many}.",
        help=f"Interest expert: {notes.WORDS['interest expert']}.",
    )


def breaking() -> None:
    """Two causal acts, and the way back."""
    done, strongest = broken, here.strongest
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        last = shell.plain(now.dataset.catalog.title(int(here.read.items[-1])))
        st.button(
            f"Remove the last {words.one}", icon=":material/backspace:", on_click=do, args=(None,), key="start_remove",
            disabled=here.events < 2 or shell.locked("start_remove"),
            help=f"Forget “{last}” and ask again.",
        )  # fmt: skip
        if here.found is not None:
            st.button(
                "Silence the strongest expert", icon=":material/volume_off:", on_click=do, args=(strongest,),
                key="start_silence", disabled=len(here.heard) < 2 or shell.locked("start_silence"),
                help=f"Take expert {strongest} away and ask again: of this list it gives most.",
            )  # fmt: skip
        st.button("Undo", icon=":material/undo:", on_click=undo, args=(-1,), disabled=not done)
        st.button("Reset", icon=":material/restart_alt:", on_click=undo, args=(0,), disabled=not done)


def verdict() -> None:
    """What was done, and what list and experts answered."""
    removed, silenced = here.removed_from(start), here.silenced
    acts = [f"without the last {words.one if removed == 1 else f'{removed} {words.many}'}"] if removed else []
    acts += [f"without expert {' and '.join(map(str, silenced))}"] if silenced else []
    if acts:
        truth = f"What they {words.did} next {change.truth_moved}."
        moved_list = shell.plain(change.summary(words.many))
        others = inspect.others_retrieved(start, here) if removed else ""
        st.info(f"**{' and '.join(acts).capitalize()}:** {truth} {moved_list} {others}", icon=":material/swap_vert:")


def by_chance() -> None:
    """Would any other film, or any other expert, have done the same?"""
    found = cache.chance(now.run, now.model, now.dataset, now.user, now.split, broken, stay) if broken else None
    if found is not None:
        with chance:
            person.by_chance(found, now, f"other {words.many}" if broken[-1] is None else "other experts")
        view.remember("chance", found.table)


def suggested() -> None:
    """What the list is, and how often such a list is right."""
    which = f"all {here.answer.running:,} {words.many}"
    if not stay:
        which = f"the {here.answer.running:,} {words.many} that this person has not {words.done}"
    lines = [f"Chosen from {which}. Gold: the {words.one} they really {words.did} next."]
    if now.user == cache.example(now.run, now.model, now.dataset, now.split):
        lines.append("We chose a person whom the guess suits. Press **Surprise me** for a random one.")
    st.caption(" ".join(filter(None, [*lines, run_table.hit_line(now.run.last("test"), words, stay)])))


def explanation() -> None:
    asks = (
        f"Every {words.one} is compared with two small key tables and votes for the experts that fit. Those with more votes "
        "than usual"
        if here.found is not None and here.found.ballots is not None
        else "The query is compared with two small key tables. The experts with the largest sums"
    )
    view.explain(
        view.About(
            "What lies between a history and its list?",
            f"{asks} are retrieved, weighted by their scores, and compress the history.",
            "An expert is a vector, not a genre: taking it away measures what it does, for this person only. An expert used by "
            "many is not a better one. One good list proves little.",
        )
    )


def onwards() -> None:
    """Cards that lead on; run and person stay."""
    opens = start.strongest if now.expert is None else now.expert  # that page knows of no edits
    which = "one expert" if opens is None else f"expert {opens}"
    cards = (
        ("journey", "Journey", "route", "What if the history were different?"),
        ("experts", "Experts", "hub", f"What does {which} stand for?"),
        ("keys", "Product keys", "grid_on", "How are the best found without looking at every one?"),
        ("train", "Train", "model_training", "What if there were more experts, or your own file?"),
    )
    for place, (page, name, icon, text) in zip(st.columns(len(cards), border=True), cards, strict=True):
        with place:
            st.page_link(f"{page}/page.py", label=f"**{name}**", icon=f":material/{icon}:")
            st.markdown(text)


shell.lockable({
    "start_remove": "Remove the last film", "start_silence": "Silence the strongest expert",
})  # fmt: skip
now = shell.context()
broken = edits.current(now)
words = inspect.words(now.dataset)

heading, (left, right) = st.container(), st.columns([6, 5], gap="medium")
with left:  # a cause and its effect stand side by side: the buttons left, the list right
    acting, chance = st.container(), st.container()
    stay = person.staying(now, "start_ranked")
start, here = (cache.after(now.run, now.model, now.dataset, now.user, now.split, edited, stay) for edited in ([], broken))
change: Moved = moved(start.answer, here.answer)

with heading:
    opening()
with acting:
    person.history(now, start, here)
    breaking()
    verdict()
with right:
    st.subheader("3 · What comes next", anchor=False)
    person.suggestions(now, here, change, changed=bool(broken))
    suggested()
with left:
    st.subheader("2 · Experts in between", anchor=False)
    expert.whose(now, here)
    explanation()
    person.tables(now, start, change)
expert.grid(now, here, broken)
if here.found is not None:
    expert.table_twin(now, here)
by_chance()  # when all else is on the screen: it scores this history up to 64 times more
onwards()
view.remember("history", inspect.history_table(now.dataset, start.read, start.events, now.user))
view.remember("suggestions", change.table)
removed = start.events - here.events
view.foot(
    "python -m elastic_core recommend", now.run.name, f"--user={now.dataset.histories.user_ids[now.user]}",
    *(["--seen"] if stay else []),
    *([f"--without-last={removed}"] if removed else []),
    *([f"--silence={','.join(map(str, here.silenced))}"] if here.silenced else []),
)  # fmt: skip
