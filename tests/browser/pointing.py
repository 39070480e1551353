"""Where the marks of a plotly figure lie on the screen, and what a hand does there: `from pointing import marks, click`.

Data become pixels through the figure's own axes, as plotly itself does it; nothing here knows what a page draws.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from playwright.sync_api import Page, expect

MARKS = """key => {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`), box = plot.getBoundingClientRect();
  const axis = (trace, letter) => plot._fullLayout[letter + 'axis' + (trace[letter + 'axis'] || letter).slice(1)];
  return plot._fullData.flatMap(trace => Array.from(trace.customdata || [], (about, i) => {
    const x = axis(trace, 'x'), y = axis(trace, 'y'), tall = trace.type === 'bar' ? 0.5 : 1;
    return [Number(about[0]), box.left + x._offset + x.d2p(trace.x[i]), box.top + y._offset + y.d2p(tall * trace.y[i])];
  }));
}"""


@dataclass(frozen=True)
class Mark:
    """A mark whose first word of `customdata` is `number`; of a bar the middle."""

    number: int
    x: float
    y: float

    def apart(self, other: "Mark") -> float:
        return float(max(abs(self.x - other.x), abs(self.y - other.y)))


def marks(page: Page, key: str) -> list[Mark]:
    """All marks of a chart with a number, in pixels of the window, after the chart has been brought to its middle."""
    plot = page.locator(f".st-key-{key} .js-plotly-plot")
    expect(plot).to_have_count(1)  # while a chart is replaced there are two
    expect(plot.locator(".nsewdrag").first).to_be_attached()
    plot.evaluate("plot => plot.scrollIntoView({block: 'center', behavior: 'instant'})")
    return [Mark(int(number), x, y) for number, x, y in page.evaluate(MARKS, key)]


def lonely(found: Iterable[Mark], other_than: Iterable[int] = ()) -> Mark:
    """The mark that is farthest from its nearest neighbour, so that a click on it can mean no other."""
    found, spared = list(found), set(other_than)
    room = {mark: min((mark.apart(other) for other in found if other is not mark), default=0.0) for mark in found}
    return max((mark for mark in found if mark.number not in spared), key=room.__getitem__)


def click(page: Page, mark: Mark) -> None:
    page.mouse.move(mark.x - 1, mark.y)  # plotly chooses what is under the mouse when it moves, not when it is pressed
    page.mouse.move(mark.x, mark.y)
    page.mouse.click(mark.x, mark.y)
