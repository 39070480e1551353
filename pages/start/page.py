"""Start: what does ELASTIC do with this person's history? One person, the whole way, and two ways to break it."""

import streamlit as st

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
        f"Person **{now.user + 1}** {words.did} **{start.events + 1}** {words.many}. The last one is kept back; from {read}the "
        f"{start.events} before it the model has to guess it. "
    )
    if found is None:
        st.markdown(f"{lead}This run ranks all {size:,} {words.many} without an interest memory.")
        st.info("There are no experts to show in this run. Choose an ELASTIC run on the left to see them at work.")
        return
    experts = found.halves.shape[2] ** 2 or found.experts.shape[1]
    how = (
        "ELASTIC turns this history into one query, the query retrieves"
        if found.votes is None
        else f"Each {words.one} of the history votes for the experts it fits; most votes retrieve"
    )
    st.markdown(
        f"{lead}{how} **{found.experts.shape[1]} of {experts:,} interest experts**, and through those few it ranks all {size:,} "
        f"{words.many}."
    )


def breaking() -> None:
    """Two causal acts, and the way back."""
    done, heard = broken, here.heard
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        last = shell.plain(now.dataset.catalog.title(int(here.read.items[-1])))
        st.button(
            f"Remove the last {words.one}", icon=":material/backspace:", on_click=do, args=(None,), key="start_remove",
            disabled=here.events < 2 or shell.locked("start_remove"),
            help=f"Forget “{last}” and ask again. Press it as often as you like.",
        )  # fmt: skip
        if here.found is not None:
            st.button(
                "Silence the strongest expert", icon=":material/volume_off:", on_click=do, args=(heard[0],),
                key="start_silence", disabled=len(heard) < 2 or shell.locked("start_silence"),
                help=f"Take expert {heard[0]} away from this person and ask again.",
            )  # fmt: skip
        st.button("Undo", icon=":material/undo:", on_click=undo, args=(-1,), disabled=not done)
        st.button("Reset", icon=":material/restart_alt:", on_click=undo, args=(0,), disabled=not done)


def verdict() -> None:
    """What was done, and what list and experts answered."""
    removed, silenced = here.removed_from(start), here.silenced
    acts = [f"without the last {words.one if removed == 1 else f'{removed} {words.many}'}"] if removed else []
    acts += [f"without expert {' and '.join(map(str, silenced))}"] if silenced else []
    if acts:
        truth = f"What they really {words.did} next {change.truth_moved}."
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
    unmet = "" if stay else f" they had not {words.done}"
    st.caption(
        f"The ten likeliest of {here.answer.running:,} {words.many}{unmet}. Gold: what they really {words.did} next, which the "
        "model was not shown."
    )
    if now.user == cache.example(now.run, now.model, now.dataset, now.split):
        st.caption("The page opens with this person because the list suits them unusually well. “Surprise me” is fairer.")
    if (line := run_table.hit_line(now.run.last("test"), words, stay)) is not None:
        st.caption(line)


def explanation() -> None:
    asks = (
        "Every event asks two sets of sub-keys and votes for the experts it finds; those with most votes"
        if here.found is not None and here.found.votes is not None
        else "The query network compresses them into one query; two sets of sub-keys score its halves; the experts with the "
        "largest sums"
    )
    with st.popover("What am I looking at?", icon=":material/help:"):
        st.markdown(
            f"""
**The question.** What does the model do between one person’s history and its list?

**How it is computed.** The last {start.events_read} events are read; the very last event of this person was held back.
{asks}
are retrieved, weighted by their scores, and compress the history. The list ranks everything the person had not met.
An expert is *hot for everyone* if more people retrieve it than a router that chooses at random sends to an expert in 97.5% of
cases, *theirs* if no more do than if all experts were equally busy, and *shared* between the two.

**How it is misread.** An expert is a vector, not a genre: what it does is measured here by taking it away, for this person
only. Colour in the grid is how often an expert is retrieved, not how good it is. And one good list proves little: see the
share of people it works for.
"""
        )


def onwards() -> None:
    """Cards that lead on; run and person stay."""
    many = words.many
    strongest = f"expert {here.heard[0]}" if here.heard else "one expert"
    cards = (
        ("journey", "Journey", "route", f"What if the history were different? Take {many} out, or add some."),
        ("experts", "Experts", "hub", f"What does {strongest} stand for, and does it matter? Its people and its {many}."),
        ("keys", "Product keys", "grid_on", "How does a query find the best squares without looking at all?"),
        ("train", "Train", "model_training", "What if there were more experts, or fewer? Train it, on your own file too."),
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
    st.subheader("2 · What comes next", anchor=False)
    person.suggestions(now, here, change, changed=bool(broken))
    suggested()
with left:
    st.subheader("3 · The experts in between", anchor=False)
    expert.whose(now, here)
    explanation()
    person.tables(now, start, change)
expert.grid(now, here, broken)
expert.table_twin(now, here)
by_chance()  # when all else is on the screen: it scores this history up to 64 times more
onwards()
view.remember("history", inspect.history_table(now.dataset, start.read, start.events, now.user))
view.remember("suggestions", change.table)
view.foot("python -m elastic_core recommend", now.run.name, f"--user={now.dataset.histories.user_ids[now.user]}")
