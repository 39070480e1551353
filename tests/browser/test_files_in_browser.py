"""Files in and out: a visitor's own data up to the Train page, a broken file, and what can be taken along."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
PLANTED = "run=planted-elastic"
GOOD = "user,item,time\n" + "".join(f"u{u},book {i},{1_700_000_000 + 1000 * u + i}\n" for u in range(24) for i in range(10))


def sent(visit: Any, name: str, content: bytes) -> None:
    visit.page.locator("input[type=file]").first.set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})


@pytest.mark.opens(f"/data?{PLANTED}&user=12&dat_part=Bring+your+own")
def test_a_file_of_ones_own_ends_on_the_train_page_and_a_broken_one_in_a_sentence(visit: Any) -> None:
    sent(visit, "reading.csv", GOOD.encode())
    visit.says("All 240 rows can be read.", "Titles of the items", "4. Keep it")
    visit.settled()
    visit.press("Keep these data")
    visit.says("Kept as reading", "24 people, 10 items, 240 events")
    sent(visit, "broken.csv", b"user,item,time\n\x00\x01\x02\x00,\xff\xfe,\x00\n" * 40)
    alert = visit.main.get_by_test_id("stAlert")
    expect(alert.filter(has_text="broken.csv is not a text file")).to_have_count(1)  # until then it says what was kept
    visit.settled()
    expect(alert).to_have_count(1)
    assert alert.inner_text().strip().endswith(".") and "Traceback" not in alert.inner_text()
    expect(visit.page.get_by_role("button", name="Keep these data")).to_have_count(0)
    visit.says("Kept on this machine", "24 people, 10 items, 240 events")  # nothing is lost
    expect(visit.box("Person")).to_have_value("12")
    visit.settled()
    visit.click(visit.main.get_by_role("button", name="Train on it"))
    expect(visit.main.get_by_role("heading", level=1)).to_contain_text("train it")
    chosen = visit.page.get_by_role("combobox", name="Data", exact=True)
    expect(chosen).to_have_value(re.compile("^reading"))
    visit.says("from start to tested")  # the data can be read and timed


def taken(visit: Any, button: Locator) -> str:
    visit.settled()
    with visit.page.expect_download() as waiting:
        visit.click(button)
    return Path(waiting.value.path()).read_text(encoding="utf-8")


@pytest.mark.opens(f"/traffic?{PLANTED}&user=12&trf_order=Hottest+first")
def test_a_chart_as_csv_and_json_and_the_whole_view(visit: Any) -> None:
    visit.click(visit.page.locator(".st-key-trf_load0_files summary"))
    rows = list(csv.DictReader(taken(visit, visit.page.locator(".st-key-trf_load0_CSV button")).splitlines()))
    again = json.loads(taken(visit, visit.page.locator(".st-key-trf_load0_JSON button")))["tables"]["trf_load0"]
    assert sorted(int(row["expert"]) for row in rows) == list(range(64))
    assert [(int(row["expert"]), float(row["load"])) for row in rows] == [(row["expert"], row["load"]) for row in again]
    visit.click(visit.page.locator(".st-key-foot_menu summary"))
    whole = json.loads(taken(visit, visit.page.locator(".st-key-foot_json button")))
    assert whole["settings"] | {"run": "planted-elastic", "user": 12, "trf_order": "load"} == whole["settings"]
    assert whole["settings"]["address"].startswith(visit.server.url)
    assert {"trf_load0", "trf_grid0"} <= set(whole["tables"])
    assert whole["tables"]["trf_load0"] == again


@pytest.mark.opens(f"/traffic?{PLANTED}&user=12")
def test_another_page_is_drawn_while_the_table_of_a_chart_is_open(visit: Any) -> None:
    """It was a popover: pressing the link closed it, too, and the new page stayed blank."""
    visit.click(visit.page.locator(".st-key-trf_load0_files summary"))
    expect(visit.page.locator(".st-key-trf_load0_CSV button")).to_be_visible()
    visit.click(visit.page.get_by_role("link", name="Evidence").first)
    expect(visit.main.get_by_role("heading", level=1)).to_have_text(re.compile("Is it true"))
    visit.settled()
    expect(visit.main.get_by_role("heading", level=1)).to_have_text(re.compile("Is it true"))
