"""Product keys: how can 2√K comparisons find the best k of K, exactly?"""

import streamlit as st

from elastic_core.services.keys import search, votes
from elastic_core.services.keys.search import Lesson
from elastic_core.services.keys.votes import Election
from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from pages.frame import shell
from pages.keys import checks, steps
from pages.keys.steps import EVENT, Scene
from pages.kit import plot, view
from pages.kit.control import bound, number, one_of, one_of_list

OWN, RANDOM, SLIDERS = "This person", "Random", "Two sliders"
SIDES, MOST = (4, 32), 16
SEED, K, SIDE, SOURCE, OWN_K = "keys_seed", "keys_k", "keys_side", "keys_query", "keys_own_k"
TOY_K = "keys_toy_k"
FIRST, SECOND = "keys_q1", "keys_q2"
# On a phone the counter is two rows high: there it stands below the step, else that lies below the window when Next is pressed.
PHONE = """<style>@media (max-width: 640px) {
  :has(> .st-key-keys_counter) { order: 1 }
}</style>"""

now = shell.context()


def draw_another() -> None:
    st.session_state[SEED] = st.session_state[SEED] + 1


def election() -> Election:
    """All events of this person, and their experts; the newest event is looked at until another one is chosen."""
    made = votes.election(now.model, now.dataset, now.user, now.split)
    return made.at(one_of_list(f"Which {made.words.one} asks?", made.offered, key=EVENT, called="Event", width=260))


def controls() -> tuple[str, Lesson, Election | None]:
    """Whose query, how many experts, how large a memory."""
    sources = [OWN, RANDOM, SLIDERS] if now.model.retrieves and not inspect.too_many(now.model) else [RANDOM, SLIDERS]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        source = one_of("Query", sources, key=SOURCE, width="content")
        if source == RANDOM:
            side = bound(st.slider, "√K", *SIDES, SIDES[1] // 2, key=SIDE, width=180)
            k = bound(st.slider, "k", 1, MOST, MOST // 2, key=K, width=180)
            seed = number("Seed", 0, 10**6, 0, key=SEED, width=130)
            st.button("Draw another", icon=":material/casino:", on_click=draw_another, disabled=shell.locked(SEED))
            return f"A random query (seed {seed})", search.of_chance(side, now.model.config.width, k, int(seed)), None
        if source == SLIDERS:
            first, second = (
                bound(st.slider, name, -1.0, 1.0, usual, 0.05, key=key, width=150)
                for name, key, usual in (("q₁", FIRST, 0.6), ("q₂", SECOND, -0.3))
            )
            k = bound(st.slider, "k", 1, search.TOY_SIDE, 3, key=TOY_K, width=150)
            return f"Your query ({first:+.2f}, {second:+.2f})", search.of_sliders(first, second, k), None
        voting = election() if search.votes(now.model) else None
        most = search.largest_k(now.model, MOST)
        k = bound(st.slider, "k", 1, most, min(search.wanted(now.model), most), key=OWN_K, width=180)
    whose = "history" if voting is None else f"{voting.words.one} {voting.event}"
    lesson = search.of_person(now.model, now.dataset, now.user, now.split, k, voting.ago if voting else 0)
    return f"Person {now.user + 1}’s {whose}", lesson, voting


st.title("How can a few comparisons find the best experts, exactly?")
if not now.model.retrieves:
    st.info(f"This run has no interest memory: query and keys are random. {search.instead(now.model, now.dataset, now.user)}")
if reason := inspect.too_many(now.model):
    st.info(f"{reason} Here, query and keys below are random.")
intro = st.container()
whose, lesson, voting = controls()
side, many = lesson.side, f"{lesson.k} best" if lesson.k > 1 else "best"
intro.markdown(
    f"Wanted: the **{many} of {side**2:,}** experts, which stand in a grid of {side} × {side}. Expert score = row score + column "
    f"score. So we compute {side} + {side} **short** dot products, not {side**2:,} long ones.",
    help=f"Sub-key: {notes.WORDS['sub-key']}.",
)
if voting is not None:
    one, found = voting.words.one, voting.found.experts.shape[1]
    m = search.wanted(now.model)
    usual = "" if lesson.k == m else f" In the run itself each looks for its {m} best."
    intro.caption(
        f"Here you see the search of one {one}. Every {one} of the history searches so; step *Vote* adds the searches up to this "
        f"person’s {found} experts.{usual}"
    )
scene = Scene(lesson, plot.palette(shell.is_dark()), whose, f"{now.run.name}/{whose}/{side}/{lesson.k}", voting)
if lesson.width == 2:
    steps.toy(scene)
step = steps.chooser(scene.steps)
st.html(PHONE)
with st.container():
    with st.container(key="keys_counter"):
        checks.counter(step, lesson)
    with st.container(border=True):
        steps.page(step, scene)
checks.part(scene, now, whose.startswith("Person"))
view.foot("python -m pytest tests/test_product_keys.py tests/test_retrieval_lesson.py")
