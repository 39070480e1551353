"""What a rerun of every screen may cost: processor time, for somebody nobody has looked at before and for the same again.

The measured numbers are in `checkpoints/benchmarks/reruns.csv` (real runs, a real server); here a small world and Streamlit's
test driver guard against a screen that begins to work out at every rerun what it could keep. A budget is about two and a half
times what was measured, and one of three tries has to keep to it, so that a busy machine does not matter.
"""

import time
from collections.abc import Callable

import pytest
from driving import charts, healthy
from streamlit.testing.v1 import AppTest

from pages.frame.screens import SCREENS

# Milliseconds of processor: another person, the same again. USUAL is for a screen that has no line of its own.
USUAL = (280, 200)
MEASURED = {
    "start": (280, 200), "keys": (200, 200), "journey": (740, 260), "experts": (200, 150), "traffic": (220, 200),
    "map": (280, 190), "train": (250, 230), "data": (160, 150), "evidence": (150, 150),
    "speed": (150, 150), "method": (150, 150),
}  # fmt: skip
BUDGET = {screen.folder: MEASURED.get(screen.folder, USUAL) for screen in SCREENS}


def spent(act: Callable[[], object], most: float) -> float:
    """Milliseconds of processor, of all threads: of the first try that takes no more than `most`, or of the best of three."""
    tries: list[float] = []
    while not tries or (tries[-1] > most and len(tries) < 3):
        began = time.process_time()
        act()
        tries.append(1000 * (time.process_time() - began))
    return min(tries)


def test_every_screen_keeps_to_its_budget_and_draws_what_plotly_knows(opened: Callable[..., AppTest]) -> None:
    app, person, found = opened(run="tiny", user="1"), 1, dict[str, tuple[float, float]]()
    drawn: dict[str, int] = {}

    def another() -> None:
        nonlocal person
        person += 1
        app.number_input(key="user").set_value(person).run()

    for screen, most in BUDGET.items():
        healthy(app.switch_page(f"{screen}/page.py").run())
        if screen == "journey":
            healthy(app.segmented_control(key="jrn_part").set_value("What matters?").run())  # its chart is a press away
        another()
        found[screen] = spent(another, most[0]), spent(app.run, most[1])
        drawn[screen] = len(charts(healthy(app)))
    over = [
        f"{screen}: {cost[0]:.0f} and {cost[1]:.0f} ms of processor (another person, the same again) are more than "
        f"{BUDGET[screen]}: keep what is worked out anew in its answers.py, or give it a line in MEASURED here, two and a half "
        "times what it takes"
        for screen, cost in found.items()
        if any(c > most for c, most in zip(cost, BUDGET[screen], strict=True))
    ]
    print({screen: tuple(round(c) for c in cost) for screen, cost in found.items()})
    assert sum(drawn.values()) >= 8 and drawn["journey"] == 1, drawn
    assert not over, "\n".join(over)


def test_every_screen_is_in_the_list_and_no_budget_is_of_another(pytestconfig: pytest.Config) -> None:
    there = {path.parent.name for path in pytestconfig.rootpath.glob("pages/*/page.py")}
    assert there == set(BUDGET), "a folder in pages/ with a page.py is a line in pages/frame/screens.py"
    assert set(MEASURED) <= there
