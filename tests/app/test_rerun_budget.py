"""What a rerun of every screen may cost: processor time, for somebody nobody has looked at before and for the same again.

A small world and Streamlit's test driver guard against a screen that begins to work out at every rerun what it could keep. One
of three tries has to keep to the budget, so that a busy machine does not matter.
"""

import time
from collections.abc import Callable

from driving import charts, healthy
from streamlit.testing.v1 import AppTest

from pages.layout.screens import SCREENS

BUDGET = 750  # milliseconds of processor that a rerun of any screen may take


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

    for screen in (screen.folder for screen in SCREENS):
        healthy(app.switch_page(f"{screen}/page.py").run())
        if screen == "journey":
            healthy(app.segmented_control(key="jrn_part").set_value("What matters?").run())  # its chart is a press away
        another()
        found[screen] = spent(another, BUDGET), spent(app.run, BUDGET)
        drawn[screen] = len(charts(healthy(app)))
    over = [
        f"{screen}: {cost[0]:.0f} and {cost[1]:.0f} ms of processor (another person, the same again) are more than {BUDGET}: "
        "keep what is worked out anew in its cached.py"
        for screen, cost in found.items()
        if max(cost) > BUDGET
    ]
    print({screen: tuple(round(c) for c in cost) for screen, cost in found.items()})
    assert sum(drawn.values()) >= 8 and drawn["journey"] == 1, drawn
    assert not over, "\n".join(over)
