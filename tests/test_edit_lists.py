"""One list of edits: it comes back from an address, does what lists do, can be undone, and hostile text changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.services.edits import (
    LARGEST_FACTOR,
    LONGEST_TEXT,
    MOST_EDITS,
    Add,
    Edit,
    Edits,
    Remove,
    Scale,
    Silence,
    apply_edits,
    check_edits,
    format_edits,
    history_edits,
    parse_edits,
    set_scale,
    toggle_event,
    toggle_expert,
)
from elastic_core.services.person.edited_history import ADDED_EVENT, KEPT_EVENT, REMOVED_EVENT, edit_items, edit_user, event_rows
from elastic_core.services.person.recommend import user_history

N_EVENTS, N_ITEMS, N_EXPERTS = 9, 12, 6
OWN = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5])
FACTORS = st.integers(0, 16).map(lambda quarter: quarter / 4)


@st.composite
def edit_lists(draw: st.DrawFn) -> Edits:
    """Edits that fit somebody with the events `OWN`."""
    edits: list[Edit] = []
    n_events = N_EVENTS
    for kind in draw(st.lists(st.sampled_from("rasx"), max_size=10)):
        if kind == "r":
            first, last = sorted(draw(st.tuples(*[st.integers(1, n_events)] * 2)))
            edits.append(Remove(first, last))
        elif kind == "a":
            edits.append(Add(tuple(draw(st.lists(st.integers(1, N_ITEMS), min_size=1, max_size=3)))))
            n_events += len(edits[-1].items)
        elif kind == "s":
            edits.append(Silence(draw(st.integers(0, N_EXPERTS - 1))))
        else:
            edits.append(Scale(draw(st.integers(0, N_EXPERTS - 1)), draw(FACTORS)))
    return tuple(edits)


@given(edit_lists())
def test_an_address_gives_the_same_edits_back(edits: Edits) -> None:
    check_edits(edits, N_EVENTS, N_ITEMS, N_EXPERTS)
    text = format_edits(edits)
    assert parse_edits(text) == edits == parse_edits(text.replace("+", " ")), "a browser may read + as a blank"


def test_an_address_is_readable() -> None:
    edits = (Remove(12, 12), Remove(3, 5), Add((50, 181)), Silence(7), Scale(9, 0.25))
    assert format_edits(edits) == "-12,-3..5,+50.181,x7,x9*0.25"
    assert history_edits(edits) == edits[:3]


@given(edit_lists())
@settings(max_examples=200)
def test_edits_do_what_lists_do(edits: Edits) -> None:
    """The slow twin: pairs of number and item, one event after the other."""
    events, n_events, scales = list(enumerate(OWN.tolist(), 1)), N_EVENTS, dict[int, float]()
    for edit in edits:
        if isinstance(edit, Remove):
            left = [event for event in events if not edit.first <= event[0] <= edit.last]
            events = left or events  # something is left to read all the time
        elif isinstance(edit, Add):
            events += [(n_events + at, item) for at, item in enumerate(edit.items, 1)]
            n_events += len(edit.items)
        else:
            scales[edit.expert] = edit.factor if isinstance(edit, Scale) else 0.0
    person = apply_edits(OWN, edits)
    assert list(zip(person.numbers.tolist(), person.items.tolist(), strict=True)) == events
    assert person.scales == {expert: factor for expert, factor in scales.items() if factor != 1}
    assert person.removed_numbers == sorted(set(range(1, n_events + 1)) - {number for number, _ in events})
    assert person.n_added == sum(number > N_EVENTS for number, _ in events)
    early = person.limit_events(4)
    assert early.numbers.tolist() == [number for number, _ in events if number <= 4 or number > N_EVENTS]


@given(edit_lists(), st.integers(1, N_EVENTS))
def test_a_second_click_takes_the_first_one_back(edits: Edits, number: int) -> None:
    """An event that is away comes back, in whatever words it was removed, and nothing else changes."""
    edits = tuple(edit for edit in edits if not isinstance(edit, Remove) or edit.last - edit.first < 3)
    before, once = apply_edits(OWN, edits), toggle_event(edits, number)
    if len(apply_edits(OWN, once).numbers) == len(before.numbers):
        return  # the last one stays
    after = apply_edits(OWN, once)
    assert set(after.numbers) ^ set(before.numbers) == {number}
    again = apply_edits(OWN, toggle_event(once, number))
    assert again.numbers.tolist() == before.numbers.tolist() and again.scales == before.scales


@given(edit_lists(), st.integers(0, N_EXPERTS - 1), FACTORS)
def test_an_expert_is_silenced_turned_and_put_back(edits: Edits, expert: int, factor: float) -> None:
    def scales(of: Edits) -> dict[int, float]:
        return apply_edits(OWN, of).scales

    toggled = toggle_expert(edits, expert)
    others = {each: scale for each, scale in scales(edits).items() if each != expert}
    silenced = scales(edits).get(expert) == 0
    assert scales(toggled) == ({**others} if silenced else {**others, expert: 0.0})
    turned = set_scale(edits, expert, factor)
    assert scales(turned).get(expert, 1.0) == factor and history_edits(turned) == history_edits(edits)
    assert len(set_scale(turned, expert, 3.0)) <= len(edits) + 1, "a slider that is moved again is one edit"


near_edits = st.lists(st.sampled_from([*"-+x*.,0189 ", "..", "-3", "x7", "+5"])).map("".join)


@given(st.one_of(st.text(max_size=60), near_edits))
@settings(max_examples=300)
def test_hostile_text_is_refused_in_one_sentence_or_makes_sound_edits(text: str) -> None:
    try:
        edits = parse_edits(text)
        check_edits(edits, N_EVENTS, N_ITEMS, N_EXPERTS)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert parse_edits(format_edits(edits)) == edits
        assert len(apply_edits(OWN, edits).items), "something is left to read"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-0", "no events 0 to 0"), ("-5..3", "no events 5 to 3"), ("-10", "this history has 1 to 9"), ("+13", "no item number"),
        ("x6", r"no expert 6 in this run \(0 to 5\)"), ("x1*4.25", f"0 to {LARGEST_FACTOR:g} times"), ("r.r", "'r.r' is no edit"),
        ("+7,-11", "this history has 1 to 10"), (",".join(["x1"] * (MOST_EDITS + 1)), "at most 100 edits"),
        ("1" * (LONGEST_TEXT + 1), "at most 2,000 characters"), ("-" + "9" * 7, "is no edit"), ("x٣", "is no edit"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_edits(parse_edits(text), N_EVENTS, N_ITEMS, N_EXPERTS)


def test_added_items_go_on_counting_and_a_list_of_one_s_own_has_no_known_next_item(small_world: Dataset) -> None:
    whole = user_history(small_world, 4)
    n = len(whole.items)
    longer = edit_user(small_world, 4, [Add((7, 8)), Remove(n + 1, n + 1)]).history
    assert longer.items.tolist() == [*whole.items, 8] and longer.truth == whole.truth and longer.times is None
    own = edit_user(small_world, 4, [Add((7, 8)), Remove(1, n)])
    assert own.history.items.tolist() == [7, 8] and own.history.truth is None and own.numbers.tolist() == [n + 1, n + 2]
    early = edit_user(small_world, 4, [Remove(2, 2), Remove(n, n)], n_events=5).history
    assert early.items.tolist() == [whole.items[0], *whole.items[2:5]] and early.truth == whole.items[5]
    for wrong in (0, n + 1):
        with pytest.raises(InputError, match="can be read up to event"):
            user_history(small_world, 4, wrong)


def test_the_rows_of_a_history_show_every_state(small_world: Dataset) -> None:
    whole = user_history(small_world, 2).items
    n = len(whole)
    rows = event_rows(small_world, edit_items(small_world, 2, ()), last=4)
    assert rows["item"].tolist() == whole[-4:].tolist() and set(rows["state"]) == {KEPT_EVENT} and rows["number"].iloc[-1] == n
    rows = event_rows(small_world, edit_items(small_world, 2, [Remove(n - 6, n - 5), Add((5,))]), last=4)
    assert rows["number"].tolist() == list(range(n - 6, n + 2)), "as far back as the edits"
    assert rows["state"].tolist() == [REMOVED_EVENT] * 2 + [KEPT_EVENT] * 5 + [ADDED_EVENT] and rows["item"].iloc[-1] == 5
    assert rows["index"].tolist() == [-1, -1, *range(n - 7, n - 1)]
    assert len(event_rows(small_world, edit_items(small_world, 2, [Remove(1, 1)]), last=4, most=n - 1)) == 4
    own = event_rows(small_world, edit_items(small_world, 2, [Add((5, 6)), Remove(1, n)]), last=4)
    assert own["item"].tolist() == [5, 6] and own["index"].tolist() == [0, 1]
