"""What strangers wrote is shown and does nothing: in Markdown, labels, HTML, figures, shells and spreadsheets, on every page."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from strangers import EVIL, FOLDER, PEER, TRAP, world
from streamlit.testing.v1 import AppTest
from test_addresses import PAGES, ROOT, controls
from visits import visit

from elastic_core import text
from pages.components import page_context

# Where Streamlit shows text as text, by message: tried in tests/browser/test_strangers_text_in_browser.py.
TEXT = {
    "Selectbox": {"options", "raw_value", "default"}, "MultiSelect": {"options", "raw_values", "default"},
    "TextInput": {"default", "value", "placeholder"}, "TextArea": {"default", "value", "placeholder"},
    "NumberInput": {"placeholder"}, "Code": {"code_text"}, "PlotlyChart": {"alt"}, "DownloadButton": {"url"},
    "PageLink": {"query_string"}, "BidiComponent": {"json"},
}  # fmt: skip
MARKDOWN = re.compile(
    r"(?<!\\)(?:!\[x|\[l\]|\$x|\*\*b\*\*|`c|&sol;|<img)|:material/home|:streamlit|www\.evil|me@evil|http\\?://" + re.escape(TRAP)
)
HTML = re.compile(r"<(?:a|img)\b")


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(tmp_path_factory.mktemp("evil"))


def strings(message: Message) -> Iterator[tuple[str, str]]:
    """Every text inside a message with the name of its field."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Message):
                yield from strings(each)
            elif isinstance(each, str):
                yield field.name, each


def messages(app: AppTest) -> Iterator[Message]:
    waiting: list[Any] = [app._tree]
    while waiting:
        block = waiting.pop()
        if isinstance(getattr(block, "proto", None), Message):
            yield block.proto
        waiting.extend(getattr(block, "children", {}).values())


def live(app: AppTest) -> list[str]:
    """Everything on the page that would format, load or link."""
    found = []
    for message in messages(app):
        kind = message.DESCRIPTOR.name
        for name, value in strings(message):
            rule = HTML if kind == "Html" or name == "spec" else MARKDOWN
            value = re.sub(r"(?<!\\)`[^`]*`", "", value) if rule is MARKDOWN else value  # inline code
            if name != "id" and name not in TEXT.get(kind, ()) and (hit := rule.search(value)):
                found.append(f"{kind}.{name}: … {value[max(hit.start() - 60, 0) : hit.end() + 40]}")
    return found


def opened(evil: Path, monkeypatch: pytest.MonkeyPatch, page: str, **address: str) -> AppTest:
    monkeypatch.setattr(page_context, "RUNS", evil)
    return visit(page, address)


@pytest.mark.parametrize("page", PAGES)
def test_text_of_strangers_is_text_on_every_part_of_every_page(evil: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    app = opened(evil, monkeypatch, page, run=FOLDER, vs=PEER, user="3", dat_source=EVIL, train_how="Change one thing")
    assert app.selectbox(key="run").value == FOLDER and not app.exception, app.exception
    shown = any("me" in value and "evil" in value for message in messages(app) for _, value in strings(message))
    assert shown, "the page shows something of the strangers', or this test sees nothing"
    assert not live(app)
    app.session_state["foot_menu"] = True
    commands = [shown for shown in app.run().code if shown.language == "bash"]
    assert commands and not live(app)
    for shown in commands:  # every one is one command, whatever the run's name and the raw ids hold
        words = shlex.split(shown.value)
        assert "pwned" not in words and "touch" not in words, shown.value
        assert words[0] in ("elastic", "nice", "python", "pip"), shown.value
    for control in app.segmented_control:
        for option in reversed(control.options):  # the first, which it began with, is quick
            if control.key in {each.key for each in app.segmented_control}:  # another choice may have taken it away
                app.segmented_control(key=control.key).set_value(option).run()
                assert not app.exception and not live(app), (control.key, option)


@pytest.mark.parametrize("stop", [1, 8, 5])
def test_text_of_strangers_is_text_in_the_tour_and_its_answers(evil: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    """About the person, about titles, about two runs."""
    app = opened(evil, monkeypatch, "start/page.py", run=FOLDER, user="3", tour=str(stop))
    assert not app.exception and not live(app)
    app.button(key="tour_next").click().run()
    assert not app.exception and not live(app)
    assert any(block.value.startswith("Answer:") for block in app.info), "who skips a bet learns the answer"


@pytest.mark.parametrize("page", PAGES)
def test_an_address_asks_for_text_and_gets_text(evil: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    """Single settings of the Train page among them, which take any text."""
    device = {"train_set_train.device": EVIL, "train_set_model.n_subkeys": EVIL}
    app = opened(evil, monkeypatch, page, **{**dict.fromkeys(controls(), EVIL), **device})
    assert not app.exception and not live(app)


def test_a_device_from_an_address_is_text(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(evil, monkeypatch, "train/page.py", **{"train_set_train.device": EVIL})
    assert not app.exception and not live(app)
    assert "evil" in " ".join(value for message in messages(app) for name, value in strings(message))


# --- the one place -----------------------------------------------------------------------------------------------------

ANY = st.text(max_size=60)


@given(ANY)
def test_markdown_text_neither_formats_nor_loads(given_text: str) -> None:
    """No mark is left without its backslash, and read back it says what it said, white space apart."""
    made = text.escape_markdown(given_text)
    assert "\n" not in made and not MARKDOWN.search(made)
    bare = re.sub(r"\\[\\`*_{}\[\]()#+!|<>~$&:-]", "", made)
    assert not re.search(r"[\\`*_{}\[\]()#+!|<>~$&:-]", bare)
    back = re.sub(r"\\([\\`*_{}\[\]()#+!|<>~$&:-])", r"\1", made)
    assert back.replace("\u2060", "") == text.one_line(given_text).replace("\u2060", "")


@given(st.lists(ANY, min_size=1, max_size=4))
def test_words_for_a_shell_come_back_as_those_words(words: list[str]) -> None:
    assert shlex.split(text.shell_command(*words)) == [text.one_line(word) for word in words]


@given(ANY)
def test_figures_and_html_get_no_tags(given_text: str) -> None:
    assert not re.search("[<>]", text.escape_plotly(given_text)) and not re.search("[<>\"']", text.escape_html(given_text))


def test_only_one_module_escapes() -> None:
    for path in (path for part in ("pages", "elastic_core") for path in (ROOT / part).rglob("*.py") if path.name != "text.py"):
        assert not re.search(r"^(?:from|import) (?:html|shlex)\b", path.read_text(encoding="utf-8"), re.MULTILINE), path
