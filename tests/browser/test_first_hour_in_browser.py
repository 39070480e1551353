"""What lost a newcomer in their first hour, by what a browser shows: texts, places and addresses."""

import re
import shutil
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
REPEATS = "run=planted-elastic&user=7"  # people here choose again what they have seen
TELEPHONE, LAPTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
# Pairs of short texts of the picture that lie on each other.
OVERLAPS = """() => {
    const texts = [], walk = from => { for (const one of from.querySelectorAll('*')) {
        if (one.shadowRoot) walk(one.shadowRoot)
        if (/^(Your bet|Small angle|The smaller)/.test(one.textContent.trim()) && !one.children.length) texts.push(one)
    } }
    walk(document.querySelector('.st-key-keys_picture'))
    const boxes = texts.map(one => one.getBoundingClientRect()).filter(box => box.height)
    const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from])
    const meet = (a, b) => shared(a, b, 'top', 'bottom') > 1 && shared(a, b, 'left', 'right') > 0
    return boxes.length < 2 ? ['not there'] : boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => meet(a, b)).map(b => [a, b]))
}"""

# How many thick lines lead to what comes next.
THICK = """flow => {
    const left = flow.querySelector('.list .node').getBoundingClientRect().left - flow.getBoundingClientRect().left
    const ends_there = line => Math.abs(Number(line.getAttribute('d').split(' ').at(-2)) - left) < 3
    const thick = [...flow.querySelectorAll('.lines .lit path')].filter(line => Number(line.getAttribute('stroke-width')) > 1.4)
    return thick.filter(ends_there).length
}"""


def world(visit: Any, name: str) -> Any:
    return visit.main.get_by_role("radio", name=name)


@pytest.mark.opens("/?user=7")
def test_the_tour_keeps_the_world_and_the_person_from_its_first_stop_to_its_end(visit: Any) -> None:
    visit.click(world(visit, "Paper’s model"))
    visit.settled()
    person = visit.box("Person").input_value()
    visit.press("Tour:")
    panel = visit.page.locator(".st-key-tour_panel")
    for place in ("Tour, 2 of", "Tour, 3 of", "Tour, 4 of", "Tour, 5 of", "Tour: the end"):
        visit.press("Skip the bet")
        visit.press("Next stop" if place != "Tour: the end" else "See your bets")
        expect(panel).to_contain_text(place)
        if "evidence" not in visit.page.url:  # which shows all worlds at once
            expect(world(visit, "Paper’s model")).to_be_checked()
        expect(visit.box("Person")).to_have_value(person)
        assert "run=planted-64-elastic" in visit.page.url and "slots" not in visit.page.url
    visit.press("Second lesson")
    expect(panel).to_contain_text("Second lesson, 1 of")
    expect(world(visit, "Paper’s model")).to_be_checked()
    expect(visit.box("Person")).to_have_value(person)


def test_the_tour_says_of_a_person_what_its_page_says(visit: Any) -> None:
    """Which correlation of attention and effect: it was one among new items in the tour, and one among all items on the page."""
    panel, correlation = visit.page.locator(".st-key-tour_panel"), re.compile(r"correlation ([+−-]0\.\d\d)")
    for stop in (8, 7):
        visit.open(f"/?{REPEATS}&tour={stop}")
        if "Read most" in panel.inner_text():
            break
    visit.press("Skip the bet")
    expect(panel).to_contain_text(correlation)
    expect(visit.main).to_contain_text(correlation)
    body = visit.page.locator(".stMainBlockContainer").first.inner_text()
    assert correlation.findall(panel.inner_text())[:1] == correlation.findall(body)[:1]


def open_menu_on_telephone(visit: Any) -> None:
    visit.page.set_viewport_size(TELEPHONE)
    visit.page.wait_for_timeout(800)  # the menu may fold away by itself, as there is no room for it
    if visit.sidebar.get_attribute("data-collapsed") == "true":
        visit.click(visit.page.get_by_test_id("stExpandSidebarButton"))


@pytest.mark.opens("/")
def test_on_a_telephone_the_menu_makes_room_for_the_tour(visit: Any) -> None:
    open_menu_on_telephone(visit)
    visit.click(visit.sidebar.get_by_role("button", name=re.compile("Tour")))
    visit.settled()
    visit.page.get_by_role("button", name="Skip the bet").click(timeout=10_000)
    expect(visit.page.get_by_role("button", name="Next stop")).to_be_visible()
    visit.settled()
    card = visit.page.locator(".st-key-tour_panel").bounding_box()
    for name in ("Back", "Next stop", "Show me", "Leave the tour"):
        button = visit.page.locator(".st-key-tour_panel").get_by_role("button", name=name).bounding_box()
        assert button["y"] >= card["y"] and button["y"] + button["height"] <= card["y"] + card["height"], name
    visit.page.evaluate("localStorage.clear()")  # the browser remembers that the menu was closed


@pytest.mark.opens("/")
def test_on_a_telephone_the_menu_closes_when_a_page_is_chosen(visit: Any) -> None:
    open_menu_on_telephone(visit)
    visit.click(visit.page.get_by_role("link", name="Traffic").first)
    expect(visit.sidebar).to_have_attribute("data-collapsed", "true")
    visit.page.evaluate("localStorage.clear()")


@pytest.mark.opens("/product-keys?keys_step=Keep")
def test_on_a_telephone_no_text_of_the_search_lies_on_another(visit: Any) -> None:
    for width in (360, 390, 430):
        visit.page.set_viewport_size({"width": width, "height": 844})
        visit.settled()
        visit.page.wait_for_timeout(900)  # things move to their places
        assert visit.page.evaluate(OVERLAPS) == [], width


@pytest.mark.opens("/journey")
def test_a_list_of_one_s_own_is_read_from_the_keyboard_and_its_button_is_in_view(visit: Any) -> None:
    visit.page.set_viewport_size(LAPTOP)
    visit.press("Your own list")
    typed = visit.page.get_by_role("textbox", name="Your list")
    typed.fill("Gardening 5\nChess 3")
    box = visit.page.get_by_role("button", name=re.compile("^Read ")).bounding_box()
    assert box is not None and box["y"] + box["height"] <= LAPTOP["height"], box
    typed.press("Control+Enter")
    expect(visit.main).to_contain_text("Your own list is read in the place of this history")
    assert "edits=" in visit.page.url


@pytest.mark.opens("/")
def test_the_title_stays_in_place_when_the_world_is_switched(visit: Any) -> None:
    for width in (1100, 1280, 1440, 1600):  # at each, another sentence beside the switch needs two lines
        visit.page.set_viewport_size({"width": width, "height": 800})
        places = []
        for name in ("Paper’s model", "Made-up world"):
            visit.click(world(visit, name))
            visit.settled()
            places.append(visit.page.get_by_role("heading", level=1).bounding_box()["y"])
        assert places[0] == places[1], (width, places)


@pytest.mark.opens("/?run=planted-64-elastic-slots&user=2")
def test_while_things_are_pointed_at_nothing_moves_and_a_thick_line_is_a_measured_loss(visit: Any) -> None:
    visit.page.set_viewport_size(LAPTOP)
    first, head = visit.page.locator(".strip .events .node").first, visit.page.locator(".strip .events h3")
    far, n_thick, unmeasured = {first.bounding_box()["y"] - head.bounding_box()["y"]}, 0, []
    for kind in ("list", "experts"):
        for node in visit.page.locator(f".strip .{kind} .node").all():
            node.hover()
            visit.page.wait_for_timeout(100)
            far.add(first.bounding_box()["y"] - head.bounding_box()["y"])
            if kind == "list":
                changes = visit.page.locator(".strip .experts .node.on .n").all_text_contents()
                n_thick += (thick := visit.page.locator(".strip .flow").evaluate(THICK))
                unmeasured += [changes] if thick > sum(change.startswith("−") for change in changes) else []
    assert n_thick > 2 and not unmeasured, unmeasured
    assert max(far) - min(far) < 1, far


def test_a_run_of_one_s_own_stays_in_the_switch_and_comes_back_with_its_link(visit: Any) -> None:
    runs = visit.server.folder / "checkpoints"
    shutil.copytree(next(runs.glob("**/planted-elastic/config.json")).parent, runs / "local-mine")
    visit.server.restart()
    visit.begin("/?run=local-mine&user=7")
    for name in ("Your run", "Made-up world", "Your run"):
        visit.click(world(visit, name))
        visit.settled()
        expect(world(visit, "Your run")).to_be_visible()
    assert "run=local-mine" in visit.page.url
    visit.click(world(visit, "Made-up world"))
    visit.settled()
    address = visit.page.url
    visit.server.restart()
    visit.open(address)
    visit.errors.clear()  # what the page said when its server went away
    expect(world(visit, "Your run")).to_be_visible()


def test_a_column_that_could_name_experts_is_not_left_out_in_silence(visit: Any) -> None:
    visit.open("/data?dat_part=Bring+your+own")
    pairs = [(user, item) for user in range(24) for item in range(10)]
    rows = "".join(f"u{user},book {item},{1000 * user + item},{'crime' if item % 2 else 'poems'}\n" for user, item in pairs)
    file = {"name": "shelf.csv", "mimeType": "text/csv", "buffer": f"user,item,time,sort\n{rows}".encode()}
    visit.page.locator("input[type=file]").first.set_input_files(file)
    visit.says("All 240 rows can be read")
    expect(visit.main).to_contain_text(re.compile(r"\bsort\b.*Genres", re.S))


@pytest.mark.opens("/speed")
def test_speed_shows_its_chart_before_the_form_that_measures(visit: Any) -> None:
    chart, form = visit.page.locator(".st-key-spd_time"), visit.page.get_by_text("Measure on this machine")
    assert chart.bounding_box()["y"] < form.bounding_box()["y"]
    expect(visit.main).to_contain_text("plain SASRec")
    for numbers in ("", "?spd_source=measured+now"):
        visit.open(f"/speed{numbers}")
        expect(visit.main).to_contain_text("On a graphics card SASRec is faster")


@pytest.mark.opens("/")
def test_a_person_can_be_looked_up_without_unfolding_anything(visit: Any) -> None:
    expect(visit.sidebar.get_by_role("textbox", name="Find a person")).to_be_visible()


@pytest.mark.opens("/?run=planted-64-elastic-slots&user=2")
def test_start_leads_to_the_dispatcher_which_counts_its_lines_and_says_what_comes_back(visit: Any) -> None:
    visit.page.set_viewport_size(LAPTOP)
    visit.click(visit.page.locator(".strip .events .node").last)
    details = visit.page.locator(".st-key-start_details")
    expect(details).to_contain_text(re.compile(r"gets back \d+% from expert \d+.*largest parts of this mix are \d", re.S))
    visit.press("What does each")
    picture = visit.page.locator(".dispatcher")
    expect(picture).to_be_in_viewport(ratio=0.8)  # scrolled there
    through = picture.get_by_text(re.compile("^through the experts: "))
    pairs = picture.get_by_text(re.compile("^all pairs: "))
    n_through, n_pairs = (int(re.sub(r"\D", "", of.text_content())) for of in (through, pairs))
    assert n_through < n_pairs and picture.locator(".take, .back").count() == n_through
    assert picture.locator(".pairs path").count() == n_pairs
    visit.click(picture.get_by_role("button", name="1 Aggregate"))
    expect(through).to_have_text(f"through the experts: {n_through // 2} lines")
    expect(picture.locator(".back:visible")).to_have_count(0)
    visit.click(picture.get_by_role("button", name="Play"))  # with less motion one picture a step
    expect(picture.locator(".told")).to_contain_text(f"{n_through} in all")
    expect(picture.locator(".told")).to_contain_text(f"{n_pairs} lines")
    visit.click(picture.locator('[data-side="back"]').nth(3))
    visit.page.mouse.move(5, 5)
    expect(picture.locator(".told")).to_contain_text("The largest parts of this mix are")
    assert picture.locator(".back.on").count() * picture.locator("[data-side='back']").count() * 2 == n_through
    visit.click(visit.page.get_by_text("A tiny example"))
    visit.settled()
    example = visit.page.locator(".example")
    for number in (1, 2):
        visit.click(example.get_by_role("button", name="Next"))
        expect(example.locator(".told")).to_contain_text(re.compile(rf"^{number} / \d+: "))
        assert example.locator("td span").count() == number
    expect(example.get_by_role("button", name="Play")).to_be_enabled()


@pytest.mark.opens("/?run=planted-64-elastic-slots&user=2")
def test_an_expert_has_one_name_on_every_screen(visit: Any) -> None:
    """What Start calls the first named expert of this person stands on Experts, Traffic and Memory map, too."""
    labels = visit.page.locator(".strip .experts .node").evaluate_all("all => all.map(one => one.ariaLabel)")
    found = [re.match(r"\d+\. expert (\d+), ([^.]+)\.", label) for label in labels]
    expert, name = next(match.groups() for match in found if match)
    for page in ("experts", "traffic", "memory-map", "journey"):
        visit.open(f"/{page}?run=planted-64-elastic-slots&user=2&expert={expert}")
        told = rf"Expert {expert}\b.{{0,40}}\b{name}|expert {expert} stand for.*{name}"
        expect(visit.main).to_contain_text(re.compile(told, re.S))
