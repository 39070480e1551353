"""The start page and the frame, through Streamlit's own test driver: what is shown, what breaks, what a bad address does."""

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from elastic_core import recipes
from elastic_core.data import load
from elastic_core.trainer import train
from pages.ui import cache, shell

ROOT = Path(__file__).resolve().parents[2]
PLANTED = ("data.planted.users=80", "data.planted.items=60", "data.planted.interests=4", "data.planted.mean_length=25")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tiny runs, ELASTIC and SASRec, on a small planted world."""
    folder = tmp_path_factory.mktemp("runs")
    for name, model in (("tiny", "elastic"), ("tiny-peer", "sasrec")):
        config = recipes.toy(model).override("train.epochs=1", *PLANTED)
        train(config, load(config.data), folder / name)
    return folder


@pytest.fixture(autouse=True)
def only_these(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "RUNS", runs)


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in address.items():
        app.query_params[key] = value
    return app.run()


def healthy(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    return app


def press(app: AppTest, label: str) -> AppTest:
    return healthy(next(button for button in app.button if button.label == label).click().run())


def said(app: AppTest) -> str:
    return " ".join(str(block.value) for block in [*app.markdown, *app.caption, *app.info, *app.warning])


def page(app: AppTest) -> str:
    return " ".join(block.proto.body for block in app.get("html"))


def test_there_is_a_real_answer_before_any_click() -> None:
    app = healthy(opened())
    assert app.title[0].value.startswith("What does ELASTIC do")
    assert "4 of 64 interest experts" in said(app) and "summoned" in said(app).lower()
    assert page(app).count("<li") >= 22  # twelve of the history, ten suggestions
    assert "★ chose next" in page(app)
    assert not app.warning


def test_removing_events_and_undoing() -> None:
    app = press(opened(), "Remove the last item")
    assert "Without the last item:" in app.info[0].value and "line-through" in page(app)
    app = press(app, "Remove the last item")
    assert "Without the last 2 items:" in app.info[0].value
    app = press(press(app, "Undo"), "Undo")
    assert not app.info and "line-through" not in page(app)


def test_silencing_until_one_expert_is_left() -> None:
    app = opened()
    for _ in range(3):
        app = press(app, "Silence the strongest expert")
    assert app.info[0].value.count(" and ") >= 2
    assert next(button for button in app.button if button.label == "Silence the strongest expert").disabled
    assert not press(app, "Reset").info


def test_another_person_starts_unbroken() -> None:
    app = press(opened(), "Remove the last item")
    app = healthy(app.number_input(key="user").set_value(5).run())
    assert not app.info and "Person **5**" in said(app)
    assert "user=5" in app.code[0].value and "run=tiny" in app.code[0].value
    press(app, "Surprise me")


def test_every_expert_can_be_looked_at() -> None:
    app = opened()
    box = app.selectbox(key="grid_expert")
    for expert in (int(box.options[0].split()[1]), int(box.options[-1].split()[1])):
        healthy(app.selectbox(key="grid_expert").set_value(expert).run())
    assert "Not summoned here" in said(app)


def test_people_are_found_by_title() -> None:
    app = healthy(opened())
    app = healthy(app.text_input(key="find_text").set_value("no such thing at all").run())
    assert "No title has these words" in said(app)
    app = healthy(app.text_input(key="find_text").set_value("#1").run())
    found = [button for button in app.button if str(button.key).startswith("find_")]
    assert found
    healthy(found[0].click().run())
    assert app.number_input(key="user").value == int(found[0].label.split()[1])


def test_a_model_without_memory_is_shown_without_a_grid() -> None:
    app = healthy(opened(run="tiny-peer"))
    assert app.selectbox(key="run").value == "tiny-peer"
    assert "no keys" in said(app) and "★ chose next" in page(app)
    press(app, "Remove the last item")


@pytest.mark.parametrize("user", ["0", "81", "-3", "1e3", "abc", "<script>", "[x](http://x)", "999999999999999999999"])
def test_a_bad_person_in_the_address_is_replaced_and_said(user: str) -> None:
    app = healthy(opened(user=user))
    assert "There is no person" in app.warning[0].value
    assert f"`{user}`" in app.warning[0].value  # as code, so that nothing in it turns into a link
    healthy(app.number_input(key="user").set_value(4).run())
    assert not app.warning


@pytest.mark.parametrize("run", ["gone", "../tiny", "/etc", "![x](http://x)", ""])
def test_a_bad_run_in_the_address_is_replaced_and_said(run: str) -> None:
    app = healthy(opened(run=run))
    assert app.selectbox(key="run").value == "tiny"
    if run:
        assert f"There is no run called `{run}`" in app.warning[0].value


@pytest.mark.parametrize(
    ("file", "text"), [("config.json", "{"), ("config.json", "[]"), ("model.safetensors", "x"), ("items.csv", "id,raw\n1,7\n")]
)
def test_a_broken_run_is_one_sentence_and_another_run(runs: Path, file: str, text: str) -> None:
    broken = runs / "a-broken"
    shutil.copytree(runs / "tiny", broken)
    try:
        (broken / file).write_text(text)
        app = healthy(opened(run="a-broken"))
        assert "a\\-broken" in app.warning[0].value or "a-broken" in app.warning[0].value
        assert app.selectbox(key="run").value != "a-broken"
    finally:
        shutil.rmtree(broken)


def test_data_that_cannot_be_had_is_said_once_and_not_asked_for_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    lost = runs / "lost"
    shutil.copytree(runs / "tiny", lost)
    text = (lost / "config.json").read_text().replace('"source": "planted"', '"source": "/nowhere/at-all.csv"')
    (lost / "config.json").write_text(text)

    def loud(config: object, tell: object) -> object:
        asked.append(str(config))
        return load(config, tell)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "load", loud)
    try:
        app = healthy(opened(run="lost"))
        assert "cannot be shown" in app.warning[0].value and app.selectbox(key="run").value == "tiny"
        healthy(app.run())
        healthy(opened(run="lost"))
        assert sum("nowhere" in config for config in asked) == 1
    finally:
        shutil.rmtree(lost)


def test_no_run_at_all_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "RUNS", tmp_path)
    app = healthy(opened())
    assert "No trained run" in said(app)


def test_a_finished_run_appears_and_can_be_chosen(runs: Path) -> None:
    app = healthy(opened())
    new = runs / "local-new"
    shutil.copytree(runs / "tiny", new)
    try:
        app.session_state[shell.WANTED] = "local-new"
        healthy(app.run())
        assert app.selectbox(key="run").value == "local-new"
    finally:
        shutil.rmtree(new)
    healthy(app.run())
    assert app.selectbox(key="run").value == "tiny" and "no run called" in app.warning[0].value
