"""Product keys: how can 2√K comparisons find the best k of K, exactly?"""

from functools import partial

import streamlit as st

from elastic_core.services.keys import checks, search, votes
from elastic_core.services.keys.search import Lesson
from elastic_core.services.keys.votes import VoteTally
from elastic_core.services.person import inspect
from pages.components import cache, edits, glossary, page_context, page_elements
from pages.components.cache import cached_resource
from pages.components.controls import (
    bind_widget,
    choose_from_list,
    choose_without_label,
    number_input,
    place_button,
    write_in_address,
)
from pages.keys import confidence, search_picture, steps
from pages.keys.sentences import MILLION, OWN, TEXT, TITLE, TOY
from pages.keys.steps import ANGLES, EVENT, Scene

SIDE, N_WANTED = 1024, 8  # of "a million"
MOST = 16
SEED, SOURCE, OWN_K = "keys_seed", "keys_query", "keys_own_k"

context = page_context.require_context()


@cached_resource(4)
def search_million(seed: int, width: int) -> tuple[Lesson, checks.Check]:
    """A random query among a million random keys, and what the long way finds and takes on this machine."""
    lesson = search.random_lesson(SIDE, width, N_WANTED, seed)
    return lesson, checks.check_search(lesson.keys, lesson.k, lesson.query[None])


def choose_searching_event() -> VoteTally:
    """All events of this person, and their experts; the newest event is looked at until another one is chosen."""
    tally = votes.tally_votes(context.model, context.dataset, context.user)
    return tally.select_event(
        choose_from_list(f"For which {tally.words.singular}?", tally.event_options, key=EVENT, control_name="Event", width=260)
    )


def choose_scene(source: str) -> Scene:
    """Whose query, how many experts, how large a memory."""
    if source == TOY:
        first, second, k = steps.toy_query()
        return Scene(cache.lesson_of_angles(first, second, k), f"Your query ({first}°, {second}°)", TOY, angles=(first, second))
    if source == MILLION:
        with page_elements.place_in_row("bottom"):
            seed = int(number_input("Seed", 0, 10**6, 0, key=SEED, width=130))
            more = {SEED: seed + 1}
            place_button(
                "Draw another",
                "keys_another",
                st.session_state.update,
                more,
                icon="casino",
                disabled=page_context.is_locked(SEED),
            )
        lesson, check = search_million(seed, context.model.config.width)
        note = TEXT("MILLION_NOTE", halves=1e3 * check.product_seconds, whole=1e3 * check.flat_seconds)
        return Scene(lesson, f"A random query (seed {seed})", f"million/{seed}", note=note)
    with page_elements.place_in_row("bottom"):
        voting = choose_searching_event() if search.has_votes(context.model) else None
        most = min(MOST, search.first_memory(context.model).keys.n_subkeys ** 2)
        k = bind_widget(st.slider, "How many, k", 1, most, min(search.experts_wanted(context.model), most), key=OWN_K, width=180)
    whose = "history" if voting is None else f"{voting.words.singular} {voting.event}"
    lesson = search.lesson_of_user(context.model, context.dataset, context.user, k, voting.ago if voting else 0)
    name = f"Person {context.user + 1}’s {whose}"
    return Scene(lesson, name, f"{context.run.name}/{name}/{k}", voting)


def restart_search() -> None:
    """Another search was chosen: a person's is told from its beginning."""
    if st.session_state[SOURCE] == OWN and not page_context.is_locked(steps.STEP):
        st.session_state.pop(steps.STEP, None)
        write_in_address(steps.STEP, None)


page_elements.show_title(TITLE)
if context.model.retrieves:
    without = inspect.too_many(context.model)
else:
    without = f"This run has no memory of experts. {search.why_no_search(context.model, context.dataset, context.user)}"
if without:
    st.info(without)
intro = st.container()
source = choose_without_label(
    "Whose search?", [TOY, MILLION] if without else [TOY, OWN, MILLION], SOURCE, width="content", on_change=restart_search
)
scene = choose_scene(source)
lesson, voting = scene.lesson, scene.election
numbers = {
    "all": f"{lesson.n_subkeys**2:,}",
    "side": lesson.n_subkeys,
    "short": f"{2 * lesson.n_subkeys:,}",
    "whose": scene.query_owner,
}
intro.markdown(TEXT(source, **numbers), help=f"Expert: {glossary.WORDS['interest expert']}.")
step = steps.choose_step(scene)
if source == OWN and edits.current_edits(context):
    intro.caption(TEXT("UNEDITED"))
if voting is not None:
    intro.caption(TEXT("VOTING", one=voting.words.singular, k=search.experts_wanted(context.model)))
locked_parts = {"step": page_context.is_locked(steps.STEP), "query": page_context.is_locked(ANGLES[0])}
search_picture.show_search(scene, step, steps.step_texts(scene), locked_parts, partial(steps.follow_browser, scene.steps))
if voting is not None and step == "Vote":
    steps.show_votes(voting)
page_elements.remember_table("keys_halves", lesson.half_scores)
page_elements.remember_table("keys_pairs", lesson.candidates)
page_elements.remember_table("keys_winners", lesson.winner_rows)
confidence.show_confidence(scene, context, is_own=source == OWN)
page_elements.show_footer("python -m pytest tests/test_product_keys.py tests/test_retrieval_lesson.py")
