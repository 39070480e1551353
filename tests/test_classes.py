"""Classes: bets are counted once a visitor, only the key releases, processes share them, all is bounded and nobody is in it."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic_core.services.tour import classes
from elastic_core.services.tour.classes import CLASSES, VISITORS, Classes


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(0, 2), st.booleans()), max_size=60))
def test_a_class_counts_every_visitors_last_bet_before_the_answer_was_out(acts: list[tuple[int, int, int, bool]]) -> None:
    key, shared = classes.new_key(), Classes()
    code, last, out = classes.new_class_code(key), dict[tuple[int, int], int](), set[int]()
    for visitor, stop, option, releases in acts:
        shared.count_visitor(code, str(visitor))
        shared.place_bet(code, str(visitor), stop, option)
        if stop not in out:
            last[visitor, stop] = option
        if releases:
            shared.release_answer(key, stop)
            out.add(stop)
    for stop in (1, 2, 3):
        bets = [option for (_, at), option in last.items() if at == stop]
        assert shared.count_bets(code, stop, 3) == [bets.count(option) for option in range(3)]
        assert shared.is_released(code, stop) == (stop in out)


def test_only_the_key_of_a_class_releases_and_it_does_so_on_a_restarted_server() -> None:
    key, other, shared = classes.new_key(), classes.new_key(), Classes()
    code = classes.new_class_code(key)
    assert classes.is_code(code) and code != classes.new_class_code(other) and key not in code
    shared.release_answer(other, 1)
    shared.release_answer(code, 1)  # the code is no key
    assert not shared.is_released(code, 1)
    shared.release_answer(key, 1)
    shared.set_teacher_stop(key, 4)
    assert shared.is_released(code, 1) and not shared.is_released(code, 2) and shared.teacher_stop(code) == 4
    shared.release_answer(key, 1, out=False)
    assert not shared.is_released(code, 1)
    fresh = Classes()
    fresh.release_answer(key, 2)
    assert fresh.is_released(code, 2)


def test_strangers_with_made_up_codes_and_crowds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, codes = Classes(), [classes.new_class_code(str(n)) for n in range(3 * CLASSES)]
    for code in codes:
        shared.count_visitor(code, "me")
    assert len(shared) == CLASSES
    for visitor in range(2 * VISITORS):
        here = shared.count_visitor(codes[-1], str(visitor))
        shared.place_bet(codes[-1], str(visitor), 1, 0)
    assert here == VISITORS == shared.count_bets(codes[-1], 1, 2)[0] + 1  # "me" has not bet
    now = classes.time.time() + classes.SILENT + 1
    monkeypatch.setattr(classes.time, "time", lambda: now)
    assert shared.count_visitor(codes[-1], "tomorrow") == 1


def test_thirty_at_once_in_three_processes(tmp_path: Path) -> None:
    """Each `Classes` of one file is what a process has: a connection of its own."""
    key, served = classes.new_key(), [Classes(tmp_path / "jobs" / "classes.sqlite") for _ in range(3)]
    code, shared = classes.new_class_code(key), served[0]

    def visit(visitor: int) -> None:
        for turn, option in enumerate((0, 1, 0, visitor % 2)):
            served[(visitor + turn) % 3].count_visitor(code, str(visitor))
            served[(visitor + turn) % 3].place_bet(code, str(visitor), 1, option)

    threads = [threading.Thread(target=visit, args=(visitor,)) for visitor in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.count_bets(code, 1, 2) == [15, 15]
    served[1].release_answer(key, 1)
    served[2].set_teacher_stop(key, 4)
    assert all(
        one.is_released(code, 1) and one.teacher_stop(code) == 4 and one.count_visitor(code, "new") == 31 for one in served
    )
    assert all(one._file is not None for one in served), "nobody gave up waiting"


def test_the_file_names_nobody_forgets_and_may_be_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, key, visitor = tmp_path / "classes.sqlite", classes.new_key(), "0123456789abcdef"
    code = classes.new_class_code(key)
    file.write_bytes(b"no database, whatever its name says" * 100)
    for shared in (Classes(file), Classes(file)):
        shared.count_visitor(code, visitor)
        shared.place_bet(code, visitor, 1, 0)
        shared.release_answer(key, 2)
    written = file.read_bytes()
    assert code.encode() in written and visitor.encode() not in written and key.encode() not in written
    now = classes.time.time() + classes.SILENT + 1
    monkeypatch.setattr(classes.time, "time", lambda: now)
    assert len(Classes(file)) == 0 and code.encode() not in file.read_bytes(), "what is forgotten is written over"
    (tmp_path / "elsewhere").write_text("theirs")
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "elsewhere")
    assert Classes(tmp_path / "link.sqlite").count_visitor(code, "me") == 1 and (tmp_path / "elsewhere").read_text() == "theirs"
    assert Classes(tmp_path / "elsewhere" / "no-folder.sqlite").count_visitor(code, "me") == 1, "without a file a lesson goes on"
