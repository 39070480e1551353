"""The guided tour as data: where to go, what to look at, what to do, and a question to bet on before it is measured."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from elastic_core.data.repeats import ONLY_UNSEEN, WITH_SEEN
from elastic_core.errors import InputError
from elastic_core.results.reproduce import System
from elastic_core.results.systems import DataSet, labels_apart, main_protocol, usual_partner
from elastic_core.results.table import ranked_under
from elastic_core.runs import Run
from elastic_core.services.journey.trace import opening_events
from elastic_core.services.keys import search
from elastic_core.services.person.inspect import ItemWords
from elastic_core.services.tour import measured_answers as tour_answers
from elastic_core.services.tour.measured_answers import Answer, TourContext
from elastic_core.services.traffic.load import EVERYBODY
from pages.components import cache, edits, page_context, page_text, results

PAIR = ("the model chosen on the left", "the system that Evidence sets against it")  # on paper, where nobody knows which
CHOSEN_PAIR = {"res_system": "res_first", "res_protocol": "res_usual"}  # what Evidence shows, and what it begins with
Done = Callable[[Mapping[Any, Any]], bool]


class Step(NamedTuple):
    """One stop. `bound`: what the page's controls are set to on arrival, or what says it, unless the address says otherwise.
    `done` reads what the visitor has set since. `target`: keys of the control that the task names; the first that is on the page
    is shown."""

    title: str
    text: str
    look: str
    task: str
    question: str
    page: str
    done: Done
    options: tuple[str, ...]
    answer: Callable[[TourContext], Answer]
    target: tuple[str, ...]
    bound: Mapping[str, Any]
    memory: bool  # the answer needs a run that retrieves

    def with_item_words(
        self, words: ItemWords, pair: tuple[str, str] = PAIR, retrieval: str = "", protocol: str = ONLY_UNSEEN
    ) -> "Step":
        """The same with the names that the data gives its items, those of the two systems that are compared, a sentence on how
        the run finds its experts, and another protocol than Evidence begins with."""
        names = {"one": words.singular, "many": words.plural, "a": words.with_article, "ours": pair[0], "other": pair[1]}
        names |= {"retrieval": retrieval, "protocol": protocol}
        texts = {part: getattr(self, part).format(**names) for part in ("text", "look", "task", "question")}
        return self._replace(**texts)


def control_moved(**usual: object) -> Done:
    """One of these controls stands elsewhere than it usually does."""
    return lambda state: any(state.get(key) not in (None, value) for key, value in usual.items())


def _own_search_done(state: Mapping[Any, Any]) -> bool:
    """The last step of the person's own search is shown."""
    last = "Vote" if search.has_votes(page_context.require_context().model) else "Weigh"
    return state.get("keys_query") == "This person" and state.get("keys_step") == last


def _event_changed(state: Mapping[Any, Any]) -> bool:
    """Another event than the newest searches."""
    context, chosen = page_context.require_context(), state.get("keys_event")
    newest = context.dataset.split_ends("test")[context.user] - context.dataset.histories.offsets[context.user]
    return chosen is not None and not str(chosen).startswith(f"{newest}.")


def _has_edits(state: Mapping[Any, Any]) -> bool:
    """Something of the person in view is edited."""
    edit_state = state.get(edits.STATE)
    return bool(edit_state and edit_state.edits)


def _dispatch_moved(state: Mapping[Any, Any]) -> bool:
    """The picture of the dispatcher was played or pressed, or N stands elsewhere than it begins with; its control is named by the
    longest there may be."""
    if (state.get("jrn_dispatcher") or {}).get("explored"):
        return True
    drawn = {str(key).removeprefix("jrn_dispatched_"): n for key, n in state.items() if str(key).startswith("jrn_dispatched_")}
    k = cache.route_everybody(page_context.require_context().open_run).experts.shape[1]
    return any(n != opening_events(int(most), k) for most, n in drawn.items())


def _pair_changed(state: Mapping[Any, Any]) -> bool:
    """Another system than the one that Evidence begins with, or another protocol."""
    return any(state.get(key) not in (None, state.get(first)) for key, first in CHOSEN_PAIR.items())


def _pair_to_compare(run: Run) -> tuple[DataSet, System, System] | None:
    """The system of a run, and the one that Evidence sets against it first."""
    for data_set in results.measured_data(page_context.RUNS)[0]:
        if (ours := data_set.system_of(run.path)) is None:
            continue
        other = usual_partner(ours, ranked_under(data_set.systems, main_protocol(data_set.systems)))
        return None if other is None else (data_set, ours, other)
    return None


def _usual_protocol() -> str | None:
    """The protocol that fits the data of the run on the left."""
    pair = _pair_to_compare(page_context.require_context().run)
    return main_protocol(pair[0].systems) if pair else None


def _compare_with_partner(context: TourContext) -> Answer:
    """The system of the run on the left against the one that Evidence begins with."""
    if pair := _pair_to_compare(context.run):
        data_set, ours, other = pair
        runs = data_set.systems[ours], data_set.systems[other]
        if comparison := results.compare_systems(*runs, main_protocol(data_set.systems)):
            return tour_answers.answer_better(context, comparison, runs[1][0])
    return Answer(None, "There is no other system on this data here, so nothing was compared.")


def fill_words(step: Step) -> Step:
    """The step with the words of the view that is open."""
    context = page_context.require_context()
    pair = _pair_to_compare(context.run) if "{ours}" in step.question else None
    labels = PAIR
    if pair is not None:
        names = map(page_context.escape_markdown, labels_apart(context.run, pair[0].systems[pair[2]][0]))
        labels = tuple(f"**{name}**" for name in names)
    retrieval = _describe_retrieval(context) if context.model.retrieves else ""
    protocol = WITH_SEEN if pair is None or main_protocol(pair[0].systems) == ONLY_UNSEEN else ONLY_UNSEEN
    return step.with_item_words(context.item_words, labels, retrieval, protocol)


def _describe_retrieval(context: page_context.Context) -> str:
    section = "by votes" if search.has_votes(context.model) else "by one query"
    k = cache.route_everybody(context.open_run).experts.shape[1]
    return TEXT(section, one=context.item_words.singular, k=k)


def measure_answer(step: Step) -> Answer | None:
    """Return the answer; None where the run has no experts and the question is about them."""
    context = page_context.require_context()
    if step.memory and not context.model.retrieves:
        return None
    traffic = cache.route_everybody(context.open_run) if context.model.retrieves else None
    try:
        return step.answer(TourContext(context.run, context.model, context.dataset, context.user, traffic, page_context.RUNS))
    except InputError as error:
        return Answer(None, f"It could not be measured here: {error}")


TEXT = page_text.load_page_text(__file__)


FIRST_LESSON = 5  # stops of the tour; those that follow are the second lesson


def stop_label(stop: int) -> str:
    """Return where a visitor is, as `Tour, 2 of 5`."""
    if stop <= FIRST_LESSON:
        return f"Tour, {stop} of {FIRST_LESSON}"
    return f"Second lesson, {stop_number(stop)} of {len(STEPS) - FIRST_LESSON}"


def stop_number(stop: int) -> int:
    """Return the number of a stop within its lesson, from 1."""
    return stop if stop <= FIRST_LESSON else stop - FIRST_LESSON


def _make_step(
    name: str, page: str, done: Done, answer: Callable[[TourContext], Answer], *target: str,
    bound: Mapping[str, Any] | None = None, memory: bool = True,
) -> Step:  # fmt: skip
    """`name`: of the section that has its words."""
    texts = TEXT.named_paragraphs(name)
    options = tuple(texts.pop("options"))
    return Step(**texts, page=page, done=done, options=options, answer=answer, target=target, bound=bound or {}, memory=memory)


STEPS = (
    _make_step(
        "The whole way",
        "start/page.py",
        _has_edits,
        tour_answers.last_event,
        "start_remove",
        "start_strip",
        "start_picture",
        bound={edits.STATE: None},
        memory=False,
    ),
    _make_step(
        "Few comparisons",
        "keys/page.py",
        _own_search_done,
        tour_answers.answer_comparisons,
        "keys_picture",
        bound={"keys_step": "Split", "keys_query": "4 × 4"},
    ),
    _make_step(
        "Used by many",
        "experts/page.py",
        control_moved(expert=None),
        tour_answers.answer_holders,
        "exp_go_next",
        bound={"expert": None, "exp_part": "People and items"},
    ),
    _make_step(
        "There and back",
        "journey/page.py",
        _dispatch_moved,
        tour_answers.answer_dispatch,
        "jrn_dispatcher",
        bound={"jrn_part": "The dispatcher", edits.STATE: None},
    ),
    _make_step(
        "Better or lucky",
        "evidence/page.py",
        _pair_changed,
        _compare_with_partner,
        "res_protocol",
        "res_system",
        bound={"ev_depth": "Systems", "res_protocol": _usual_protocol},
        memory=False,
    ),
    _make_step(
        "Many searches",
        "keys/page.py",
        _event_changed,
        tour_answers.votes_won,
        "keys_event",
        "keys_tally",
        "keys_picture",
        bound={"keys_step": "Vote", "keys_query": "This person"},
    ),
    _make_step(
        "How keys learn",
        "keys/page.py",
        lambda state: state.get("keys_gate") is False,
        tour_answers.answer_starved_keys,
        "keys_gate",
        bound={"keys_part": "Gate"},
    ),
    _make_step(
        "Read most",
        "journey/page.py",
        _has_edits,
        tour_answers.looked_at_or_decisive,
        "jrn_last",
        bound={  # the answer names two of them, by their numbers
            "jrn_part": "What matters?",
            edits.STATE: None,
            "jrn_for": "what came next",
            "jrn_show": "all, latest first",
        },
        memory=False,
    ),
    _make_step(
        "The memory in use",
        "traffic/page.py",
        control_moved(trf_measure="people", trf_group=EVERYBODY),
        tour_answers.unused_by_chance,
        "trf_measure",
        bound={"trf_measure": "people"},
    ),
    _make_step(
        "A map",
        "map/page.py",
        control_moved(expert=None),
        tour_answers.map_keeps,
        "map_chart",
        bound={"map_layout": "pca", "expert": None},
    ),
    _make_step(
        "When it is faster",
        "speed/page.py",
        control_moved(spd_at=1024, spd_part="Reading a history"),
        tour_answers.faster_when,
        "spd_at",
        "spd_part",
        bound={"spd_part": "Reading a history"},
        memory=False,
    ),
    _make_step(
        "Train one",
        "train/page.py",
        control_moved(train_time="2 min", train_model="ELASTIC", train_how="A preset"),
        tour_answers.answer_seeds,
        "train_time",
        memory=False,
    ),
    _make_step(
        "Change its mind",
        "experts/page.py",
        control_moved(exp_swap=None),
        tour_answers.answer_swap,
        "exp_swap",
        bound={"exp_part": "Turn it", "expert": None},
    ),
)
