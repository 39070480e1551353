"""The moving picture of the search, as a hand uses it: what the browser computes is what Python computes."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from elastic_core.services.keys import frames, search

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PLANTED = "run=planted-elastic"
STEPS = ("Split", "Score", "Keep", "Pair", "Win", "Gather", "Weigh")
WORDS = """() => {
    const said = [document.querySelector('[data-testid=stMain]').innerText]
    for (const one of document.querySelectorAll('[data-testid=stMain] *'))
        for (const part of one.shadowRoot?.children ?? [])
            if (part.tagName !== 'STYLE' && part.tagName !== 'SCRIPT') said.push(part.innerText)
    return said.join(' ')
}"""


def found(visit: Any) -> dict[str, Any]:
    """What the browser computed."""
    given: dict[str, Any] = json.loads(visit.page.locator(".st-key-keys_picture .picture").get_attribute("data-found"))
    return given


def python(first: int, second: int, k: int) -> dict[str, Any]:
    return dict(frames.search_frames(search.lesson_of_angles(first, second, k)))


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """The same winners in the same order, of the same scores; the same pairs and the same work."""
    for name in ("expert", "score", "share"):
        expected = pytest.approx([each[name] for each in theirs["winners"]], abs=1e-6)
        assert [each[name] for each in ours["winners"]] == expected
    for name in ("i", "j", "row", "column", "can", "place"):
        assert [each[name] for each in ours["pairs"]] == [each[name] for each in theirs["pairs"]]
    assert ours["counts"] == theirs["counts"]


@pytest.mark.opens(f"/product-keys?{PLANTED}&user=7")
def test_the_4_by_4_moves_and_is_searched_as_python_searches_it(visit: Any, elsewhere: Any) -> None:
    assert len(re.findall(r"[A-Za-z]{2,}", visit.page.evaluate(WORDS))) <= 150, "words on opening the page"
    picture = visit.page.locator(".st-key-keys_picture")
    seen = [picture.locator(".say").inner_text()]
    for _ in range(6):
        visit.press("Next")
        seen.append(picture.locator(".say").inner_text())
    assert [re.findall(r"\d\. (\w+)\.", said)[0] for said in seen] == list(STEPS)
    same(found(visit), python(250, 120, 3))
    first, second, k = (picture.get_by_role("slider").nth(at) for at in range(3))
    for slider, value in ((first, 35), (second, 300), (k, 4), (first, 180), (k, 1), (second, 75), (k, 2)):
        slider.fill(str(value))
        angles = [int(each.input_value()) for each in (first, second, k)]
        same(found(visit), python(*angles))
    got = found(visit)
    assert got["tried"] == got["agreed"] == 8
    expect(picture.locator(".agree")).to_contain_text("✓")
    visit.settled()
    assert all(part in visit.page.url for part in ("keys_q1=180", "keys_q2=75", "keys_toy_k=2", "keys_step=Weigh"))
    elsewhere.open(visit.page.url)
    same(found(elsewhere), python(180, 75, 2))
    visit.page.bring_to_front()
    picture.get_by_role("button", name="7 Weigh").focus()
    visit.page.keyboard.press("ArrowLeft")
    expect(picture.locator(".say")).to_contain_text("6. Gather")
    visit.click(picture.get_by_role("button", name="1 Split"))
    expect(picture.locator(".calc")).to_have_text("")  # without scores a bet would be a guess
    visit.click(picture.get_by_role("button", name="2 Score"))
    picture.locator("svg[tabindex]").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):  # the first arrow only shows where one is
        visit.page.keyboard.press(key)
    expect(picture.locator(".calc")).to_contain_text("You bet on row 1, column 0")
    visit.click(picture.get_by_role("button", name="5 Win"))
    place = next((at for at, each in enumerate(python(180, 75, 2)["winners"], start=1) if each["expert"] == 4), 0)
    expect(picture.locator(".calc")).to_contain_text(f"took place {place} of 2" if place else "not among the best 2")


@pytest.mark.opens(f"/product-keys?{PLANTED}&user=7")
def test_it_plays_its_sums_add_up_as_shown_and_all_of_them_agree_with_the_search(visit: Any) -> None:
    picture = visit.page.locator(".st-key-keys_picture")
    visit.press("Play")
    expect(picture.locator(".say")).to_contain_text("2. Score", timeout=20_000)
    visit.press("Pause")
    assert "keys_step=" in visit.page.url
    visit.click(picture.get_by_role("button", name="5 Win"))
    expect(picture.locator(".list text")).to_have_count(3)
    turn = picture.get_by_role("slider").first
    for angle in range(0, 360, 30):
        turn.fill(str(angle))
        for said in picture.locator(".list text").all_text_contents():  # each part rounded by itself made 0.68 + 0.88 = 1.57
            first, second, both = (float(x.replace("−", "-")) for x in re.findall(r"−?\d+\.\d{3}", said))
            assert first + second == pytest.approx(both, abs=1e-9), said
    visit.settled()
    for query, sums in (("This person", "64"), ("A million", "1,048,576")):
        visit.click(visit.main.get_by_text(query, exact=True))
        visit.settled()
        visit.click(picture.get_by_role("button", name="5 Win"))
        expect(picture.locator(".agree")).to_contain_text(f"all {sums} one by one")
        expect(picture.locator(".agree")).to_contain_text("✓")
    expect(picture.locator(".note")).to_contain_text("ms one by one")
    visit.settled()
    assert "keys_step=Win" in visit.page.url
