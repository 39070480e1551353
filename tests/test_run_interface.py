"""What a run answers in a notebook: its evaluation, its experts and its vectors as tables, against slow twins."""

import doctest
import io
import os
import shutil
import signal
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import elastic_core
from elastic_core.commands import main
from elastic_core.core.evaluate import expected_metrics, rank_users
from elastic_core.core.registry import Registry
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.recipes import settings_for, toy
from elastic_core.runs import Run, open_run
from elastic_core.runs.checkpoints import find_checkpoints
from elastic_core.runs.evaluation import popularity_places
from elastic_core.runs.progress import Progress
from elastic_core.runs.training import train

Tiny = tuple[Recommender, Dataset, Run]


def test_every_example_in_the_documentation_runs(tiny_runs: Path) -> None:
    run = open_run(tiny_runs / "tiny")
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    names = {"run": run, "data": run.dataset, "elastic_core": elastic_core}
    for thing in (elastic_core.load, elastic_core.train, Run.recommend, Run.evaluate, Run.experts, Run.embeddings):
        for example in finder.find(thing, thing.__name__, globs=dict(names)):
            assert example.examples, thing
            runner.run(example)
    assert runner.failures == 0 and runner.tries > 9


def test_evaluate_tells_the_ranks_of_the_test_with_intervals(tiny: Tiny) -> None:
    model, data, run = tiny
    table = run.evaluate(metrics=["HR@10"])
    hits = expected_metrics(rank_users(model, data, "test", ("pop100",))["pop100"])["HR@10"]
    row = table.set_index(["protocol", "metric"]).loc[("pop100", "HR@10")]
    assert row["value"] == pytest.approx(hits.mean()) and row["low"] < row["value"] < row["high"] and row["people"] == 80
    assert table["protocol"].iloc[0] == run.protocol == "full-seen"
    valid = run.evaluate("valid", protocols=["full", "full-seen"])
    assert valid["protocol"].iloc[0] == "full-seen" and valid["value"].iloc[0] != table["value"].iloc[0]
    with pytest.raises(InputError, match="half"):
        run.evaluate(protocols=["half"])


def test_coverage_and_popularity_are_counted_over_the_lists_of_everybody(tiny: Tiny) -> None:
    _, data, run = tiny
    table = run.evaluate().set_index("metric")
    lists = run.recommend(before_test=True)
    assert table.loc["coverage@10", "value"] == pytest.approx(lists["item"].nunique() / data.catalog.n_items, abs=0.02)
    counts = dict(zip(data.catalog.ids[1:].astype(str), data.item_counts()[1:], strict=True))
    others = {item: [other for name, other in counts.items() if name != item] for item in counts}
    place = {item: np.mean([(other < counts[item]) + (other == counts[item]) / 2 for other in others[item]]) for item in counts}
    by_user = lists["item"].map(place).groupby(lists["user"]).mean()
    assert table.loc["popularity@10", "value"] == pytest.approx(by_user.mean(), abs=0.01)
    chosen = np.mean([place[str(data.catalog.ids[item])] for item in data.target_items("test")])
    assert table.loc["popularity of what came next", "value"] == pytest.approx(chosen)
    assert popularity_places(np.array([0, 5, 1, 1, 9])).tolist() == [0, 2 / 3, 1 / 6, 1 / 6, 1]


def test_vectors_score_as_the_lists_do(tiny: Tiny) -> None:
    _, data, run = tiny
    items, users, experts = (run.embeddings(kind) for kind in ("items", "users", "experts"))
    assert items.index.tolist() == data.catalog.ids[1:].tolist() and users.index.tolist() == data.histories.user_ids.tolist()
    scores = users @ items.T
    listed = run.recommend(k=3)
    by_hand = [scores.loc[user, item] for user, item in zip(listed["user"], listed["item"], strict=True)]
    assert listed["score"].to_numpy() == pytest.approx(by_hand, abs=1e-4)
    table = run.experts("7")
    assert len(experts) == 64 and set(table["expert"]) < set(experts.index)
    with pytest.raises(InputError, match="no user '999'"):
        run.experts(999)
    with pytest.raises(InputError, match="embeddings of items, experts, users"):
        run.embeddings("genres")  # type: ignore[arg-type]


def test_a_peer_has_no_experts_and_a_count_no_vectors(tiny_peer: Tiny, tmp_path: Path) -> None:
    _, data, peer = tiny_peer
    for ask in (lambda: peer.experts("1"), lambda: peer.embeddings("experts")):
        with pytest.raises(InputError, match="no interest memory"):
            ask()
    config = replace(toy("popularity"), data=peer.config.data)
    counting = train(config, data, tmp_path / "counting")
    assert counting.recommend("1", k=2)["rank"].tolist() == [1, 2] and counting.evaluate()["value"].notna().all()
    with pytest.raises(InputError, match="no embeddings"):
        counting.embeddings()


def test_a_run_without_its_data_tells_its_test_and_lists_after_histories(tiny: Tiny, tmp_path: Path) -> None:
    rows = [(f"u{u}", f"i{(u * 7 + n * n) % 12}", n) for u in range(40) for n in range(9)]
    frame = pd.DataFrame(rows, columns=["user", "item", "time"])
    frame.to_csv(tmp_path / "shop.csv", index=False)
    data = elastic_core.load(tmp_path / "shop.csv")
    run = train(replace(toy().override("train.epochs=1"), data=data.config), data, tmp_path / "run")
    whole = run.evaluate()
    (tmp_path / "shop.csv").unlink()
    alone = open_run(tmp_path / "run")
    assert alone.evaluate().equals(whole.iloc[: len(alone.evaluate())]) and "coverage@10" not in set(alone.evaluate()["metric"])
    assert len(alone.recommend(histories=[["i1", "i5"]], k=3)) == 3
    with pytest.raises(InputError, match=r"shop\.csv"):
        alone.recommend("u1")


def test_where_people_return_to_what_they_know_lists_and_numbers_do_so_by_default(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(u, rng.choice([u % 40, u * 3 % 40, u * 7 % 40, rng.integers(40)]), n) for u in range(120) for n in range(12)]
    pd.DataFrame(rows, columns=["user", "item", "time"]).to_csv(tmp_path / "shop.csv", index=False)
    data = elastic_core.load(tmp_path / "shop.csv")
    run = train(replace(toy().override("train.epochs=1"), data=data.config), data, tmp_path / "run")
    assert run.last_event("start")["repeats"] > 0.5 and run.protocol == "full-seen"
    assert run.evaluate()["protocol"].iloc[0] == "full-seen"
    with_seen, without = run.ranker.recommend(), run.ranker.recommend(seen=False)
    seen = [set(data.histories.user_items(user)) for user in range(data.histories.n_users)]
    assert sum(len(set(row) & items) for row, items in zip(with_seen.items, seen, strict=True)) > 0
    assert not any(set(row) & items for row, items in zip(without.items, seen, strict=True))


def test_a_run_shows_what_it_is(tiny: Tiny) -> None:
    shown = tiny[2]._repr_html_()
    assert "ELASTIC" in shown and "NDCG@10" in shown and "2 epochs" in shown and "80 people" in shown


# --- training in a line -------------------------------------------------------------------------------------------------


def shop(people: int = 60, events: int = 9) -> pd.DataFrame:
    pairs = [(u, n) for u in range(people) for n in range(events)]
    rows = [(f"c{u}", f"sku-{(u * 7 + n * 5) % 24}", 1_700_000_000 + 90_000 * n + u) for u, n in pairs]
    return pd.DataFrame(rows, columns=["customer", "sku", "bought"])


COLUMNS = {"user": "customer", "item": "sku", "time": "bought"}


def test_a_frame_is_learned_in_a_line_and_its_folder_holds_all_it_needs(tmp_path: Path) -> None:
    data = elastic_core.load(shop(), **COLUMNS)
    run = elastic_core.train("elastic", data, minutes=0.01)
    assert run.finished and run.path.is_relative_to(tempfile.gettempdir()) and run.last_event("start")["data_hash"] == data.hash
    listed = run.recommend("c7", k=3)
    moved = open_run(Path(shutil.move(run.path, tmp_path / "moved")))
    assert moved.dataset.hash == data.hash and moved.dataset.notes == data.notes
    assert moved.recommend(users="c7", k=3).equals(listed)
    assert '"source": "data/DataFrame.parquet"' in (moved.path / "config.json").read_text()
    on = elastic_core.train("elastic", elastic_core.load(shop(), **COLUMNS), minutes=0.02, out=moved.path)
    assert len(on.events("epoch")) >= len(moved.events("epoch")) and open_run(on.path).dataset.hash == data.hash
    with pytest.raises(InputError, match="other settings"):
        elastic_core.train("elastic", data, seed=1, out=moved.path)


def test_settings_follow_from_the_size_of_the_data(tmp_path: Path) -> None:
    short, long = (elastic_core.load(shop(40, events), **COLUMNS) for events in (9, 40))
    for data, length in ((short, 16), (long, 40)):
        config = settings_for("elastic", data, minutes=2.0, seed=3, device="cpu")
        assert (config.model.length, config.train.seed, config.train.minutes) == (length, 3, 2.0)
        assert config.data == data.config and config.train.batch == 16
    again = elastic_core.load(shop().assign(sku=lambda frame: "sku-" + frame["customer"].str[-1]), **COLUMNS)
    assert settings_for("sasrec", again, 1, 0, "cpu").model.repeat_bias
    assert not settings_for("elastic", short, 1, 0, "cpu").model.repeat_bias
    assert settings_for("popularity", short, 1, 0, "cpu").model.name == "popularity"
    for wrong, sentence in (("gpt", "unknown model"), ("elastic", "elastic_core.load")):
        with pytest.raises(InputError, match=sentence):
            settings_for(wrong, replace(short, config=None if wrong == "elastic" else short.config), 1, 0, "cpu")
    with pytest.raises(InputError, match=r"load\(…\)"):
        elastic_core.train("elastic", shop())  # type: ignore[arg-type]


def test_a_configuration_is_trained_as_it_is_but_for_what_is_said(tmp_path: Path, small_world: Dataset) -> None:
    config = toy().override("train.epochs=1", "model.width=16")
    run = elastic_core.train(config, small_world, tmp_path / "run", seed=5)
    assert run.config.train.seed == 5 and run.config.model.width == 16 and run.config.train.minutes == 0


def test_a_bar_is_drawn_for_who_watches_and_lines_stay_for_a_log(tiny: Tiny) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    rows = [row for row in tiny[2].events() if row["event"] in ("start", "epoch", "test", "end")]
    step = {"event": "step", "epoch": 2, "done": 1, "of": 2, "loss": 4.25}
    shown = {}
    for name, out, lines in (("bar", Terminal(), False), ("both", Terminal(), True), ("log", io.StringIO(), True)):
        progress = Progress(tiny[2].config.train, lines, out)
        for row in [*rows[:2], step, *rows[2:]]:
            progress(row)
        shown[name] = out.getvalue()
    assert "loss 4.2500" in shown["bar"] and "75%" in shown["bar"] and "best epoch" not in shown["bar"]
    assert "75%" in shown["both"] and "best epoch" in shown["both"] and "best epoch" in shown["log"] and "75%" not in shown["log"]
    assert "protocol full" in shown["log"]


def test_an_interrupt_ends_a_training_with_its_best_weights(tmp_path: Path, small_world: Dataset) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background a shell has it ignored
    config = toy().override("train.epochs=10000", "train.patience=10000")
    threading.Timer(4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    run = elastic_core.train(config, small_world, tmp_path / "run")
    assert run.finished and run.last_event("end")["reason"] == "asked to stop"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_runs_lie_in_the_folder_one_is_in_else_in_the_checkout_else_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    here, checkout = tmp_path / "here", tmp_path / "checkout"
    assert find_checkpoints(here, checkout) == tmp_path / "home" / "elastic" / "checkpoints"
    for folder in (checkout, here):
        (folder / "checkpoints").mkdir(parents=True)
        assert find_checkpoints(here, checkout) == folder / "checkpoints"


# --- data that people return to, and data that grow ---------------------------------------------------------------------


def test_commands_name_the_protocol_that_fits_the_data_first_and_lists_follow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody buys two things again and again; a list without them hits next to none of the next purchases."""
    monkeypatch.chdir(tmp_path)
    rows = [f"c{u},sku-{(u + n % 2 * 7) % 30},{n}" for u in range(90) for n in range(10)]
    Path("shop.csv").write_text("\n".join(["user,item,time", *rows]))
    small = ["--recipe=toy", "--set=data.source=shop.csv", "--set=train.epochs=3", "--set=model.repeat_bias=true"]
    assert main(["train", *small, "--out=other"]) == 0
    assert "valid_protocol=full-seen" in capsys.readouterr().err
    assert main(["train", *small, "--set=train.valid_protocol=full-seen", "--out=run"]) == 0
    said = capsys.readouterr().err
    assert "protocol full-seen)" in said and "valid_protocol" not in said
    assert main(["evaluate", "run", "--metrics=HR@10"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].startswith("full-seen") and "full-seen fits these data" in shown.err
    hits = {}
    for name, words in (("usual", []), ("unseen", ["--unseen"]), ("seen", ["--seen"])):
        assert main(["recommend", "run", "--all", "--before-test", "--out", f"{name}.csv", *words]) == 0
        assert ("people often choose such" in capsys.readouterr().err) == (name == "usual")
        lists = pd.read_csv(f"{name}.csv").groupby("user")["item"].agg(set)
        hits[name] = np.mean([f"sku-{(u + 9 % 2 * 7) % 30}" in lists[f"c{u}"] for u in range(90)])
    assert hits["usual"] == hits["seen"] > 0.9 and hits["unseen"] == 0
    assert main(["recommend", "run", "--user", "c3", "--csv"]) == 0
    assert "sku-3" in set(pd.read_csv(io.StringIO(capsys.readouterr().out))["id"])
    assert main(["recommend", "run", "--user", "c3", "--seen", "--unseen"]) == 2


def test_everybody_who_can_have_a_list_gets_one_and_the_others_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"c{u},sku-{(u * 7 + n * 5) % 24},{n}" for u in range(60) for n in range(8)]
    Path("shop.csv").write_text("\n".join(["user,item,time", *rows]))
    assert main(["train", "--recipe=toy", "--set=data.source=shop.csv", "--set=train.epochs=1", "--out=run"]) == 0
    known = open_run("run").recommend([f"c{u}" for u in range(10, 60)])
    rows += [f"c{u},sku-new,9" for u in range(10)]  # enough for the k-core
    rows += [f"short,sku-{n},{n}" for n in (3, 8, 13)]  # below it
    rows += [f"stranger,sku-odd-{n},{n}" for n in range(4)]  # nothing that the run knows
    rows += ["once,sku-3,1", "twice,sku-3,1", "twice,sku-8,2"]  # too little for any history
    Path("shop.csv").write_text("\n".join(["user,item,time", *rows]))
    capsys.readouterr()
    assert main(["recommend", "run", "--all", "--out", "top.csv"]) == 0
    said, lists = capsys.readouterr().err, pd.read_csv("top.csv")
    assert "62 people's lists" in said and "1 lists hold what is popular" in said and "10 lists leave out events" in said
    assert "2 people have too few events" in said
    assert set(lists["user"]) == {f"c{u}" for u in range(60)} | {"short", "stranger"}
    again = lists[lists["user"].isin(known["user"])]
    assert sorted(zip(again["user"], again["item"], strict=True)) == sorted(zip(known["user"], known["item"], strict=True))


def test_a_run_of_a_model_of_ones_own_says_where_it_looks_for_it(tmp_path: Path, tiny: Tiny) -> None:
    shutil.copytree(tiny[2].path, tmp_path / "run")
    config = (tmp_path / "run" / "config.json").read_text().replace('"elastic"', '"my-own"')
    (tmp_path / "run" / "config.json").write_text(config)
    with pytest.raises(InputError, match="ELASTIC_PLUGINS must name the folder"):
        _ = open_run(tmp_path / "run").config


def test_weights_can_be_read_by_whoever_may_read_the_run(tiny: Tiny) -> None:
    """A service may run under another name than the training."""
    files = [path for path in tiny[2].path.iterdir() if path.is_file()]
    assert len({path.stat().st_mode & 0o777 for path in files}) == 1, {path.name: oct(path.stat().st_mode) for path in files}


def test_a_file_that_registers_another_name_is_one_sentence() -> None:
    with pytest.raises(InputError, match="json registers no model named 'json': its file must have its name"):
        Registry("model", {"json": "json"}).find_class("json")
