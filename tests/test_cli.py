"""The command line as a user meets it: the whole way through once, and one clear sentence for everything that is wrong."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from forked import Forked, command

import elastic_core
from elastic_core.bench.rows import read_rows
from elastic_core.commands import COMMANDS, main
from elastic_core.core.config import TrainConfig
from elastic_core.core.train import training_clock
from elastic_core.errors import InputError
from elastic_core.recipes import recipe
from elastic_core.runs import Run

ROOT = Path(__file__).resolve().parents[1]
SMALL = [
    "--recipe=toy", "--set=data.planted.users=40", "--set=data.planted.items=50", "--set=data.planted.mean_length=20",
    "--set=data.planted.max_length=40", "--set=model.length=8", "--set=model.width=8", "--set=train.epochs=2",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run `tiny` below checkpoints/, trained by the command itself."""
    folder = tmp_path_factory.mktemp("cli")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["train", *SMALL, "--out", "checkpoints/tiny"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained)
    return trained


# --- what works ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_worth_reading(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"\n    elastic {command}" in shown and len(shown.splitlines()) > 15


def test_train_says_how_it_went_and_is_done_only_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Run(here / "checkpoints/tiny").finished
    before = (here / "checkpoints/tiny/metrics.jsonl").read_bytes()
    assert main(["train", *SMALL, "--out", "checkpoints/tiny"]) == 0
    assert (here / "checkpoints/tiny/metrics.jsonl").read_bytes() == before
    assert main(["train", *SMALL, "--model=popularity"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "checkpoints/local-toy-popularity"


def test_threads_are_measured_once_change_nothing_and_stay(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is a step of this training, on a model of its own; a run that goes on has the threads it had."""
    asked = list[int]()

    def choose(job: Callable[[], object], rounds: int) -> int:
        asked.append(rounds)
        for _ in range(rounds):
            job()
        return 1

    monkeypatch.setattr("elastic_core.runs.training.choose_threads", choose)
    monkeypatch.delenv("OMP_NUM_THREADS")
    for words in (["--out=measured"], ["--out=told", "--threads=1"]):
        assert main(["train", *SMALL, *words]) == 0
    learned = [[row["loss"] for row in Run(here / name).events("epoch")] for name in ("measured", "told")]
    assert learned[0] == learned[1] and len(asked) == 1
    assert main(["train", *SMALL, "--out=measured", "--set=train.epochs=9"]) == 0 and len(asked) == 1
    assert main(["train", *SMALL, "--out=none", "--threads=0"]) == 2 and not (here / "none").exists()


def test_minutes_are_those_of_the_processor_unless_asked_otherwise(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, clock in ((["--out=busy"], "processor"), (["--out=by-the-clock", "--clock=wall"], "wall")):
        assert main(["train", *SMALL, "--minutes=5", *words]) == 0
        assert Run(Path(capsys.readouterr().out.strip())).config.train.clock == clock
    worked = iter([0.0, 30.0])
    monkeypatch.setattr("elastic_core.core.train.time.process_time", lambda: next(worked))
    monkeypatch.setattr("elastic_core.core.train.torch.get_num_threads", lambda: 2)
    now = training_clock(TrainConfig(clock="processor"))
    began = now()
    assert now() - began == 15, "two threads worked 15 seconds each"


def test_a_file_is_trained_on_as_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Settings follow from its size, the folder has its name, and changes of single settings hold."""
    rows = [f"cust-{u},sku-{(u * 7 + i * i) % 12},{i}" for u in range(60) for i in range(8)]
    Path("my clicks.csv").write_text("\n".join(["visitor,page,at", *rows]))
    words = ["--columns=user=visitor,item=page,time=at", "--set=train.epochs=1", "--model=sasrec", "--minutes=1"]
    assert main(["train", "my clicks.csv", *words]) == 0
    assert capsys.readouterr().out == "checkpoints/local-my-clicks-sasrec\n"
    config = Run(Path("checkpoints/local-my-clicks-sasrec")).config
    assert (config.model.length, config.train.batch, config.train.epochs, config.train.minutes) == (16, 16, 1, 1.0)
    assert Path(config.data.source) == here / "my clicks.csv"
    assert main(["recommend", "local-my-clicks-sasrec", "--user", "cust-7", "--json", "--top", "3"]) == 0
    assert [json.loads(line)["rank"] for line in capsys.readouterr().out.splitlines()] == [1, 2, 3]
    assert main(["data", "my clicks.csv", words[0], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["people"] == "60"
    refused(["train", "my clicks.csv", "--recipe=toy"], "SOURCE or --recipe", capsys)


def test_a_person_with_too_few_events_for_a_test_has_the_list_of_all(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everybody's lists held such people, and asking for one of them was refused."""
    rows = [f"cust-{u},sku-{(u * 7 + i * i) % 12},{i}" for u in range(60) for i in range(4 if u == 7 else 2 if u == 8 else 9)]
    Path("few.csv").write_text("\n".join(["user,item,time", *rows]))
    assert main(["train", "few.csv", "--set=train.epochs=1", "--model=sasrec", "--out=few"]) == 0
    capsys.readouterr()
    assert main(["recommend", "few", "--user", "cust-7", "--json", "--top", "3"]) == 0
    captured = capsys.readouterr()
    alone = [json.loads(line) for line in captured.out.splitlines()]
    assert main(["recommend", "few", "--all", "--out", "all.csv", "--top", "3"]) == 0
    everybody = pd.read_csv("all.csv")
    assert [row["id"] for row in alone] == everybody.loc[everybody["user"] == "cust-7", "item"].tolist()
    assert "too few events for a test" in captured.err
    refused(["recommend", "few", "--user", "cust-8"], "there are 59, for example cust-0 and cust-59; 1 more has", capsys)


def test_evaluate_prints_means_with_intervals(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "tiny", "--protocols", "full,pop100", "--metrics", "HR@10"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 3 and "±" in table[1]
    assert main(["evaluate", "checkpoints/tiny", "--json", "--split", "valid"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["split"] for row in rows} == {"valid"} and all(row["low"] <= row["mean"] <= row["high"] for row in rows)


def test_a_test_is_printed_from_its_ranks_and_scored_again_only_where_they_were_not_kept(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(Path(shutil.copytree(here / "checkpoints/tiny", here / "checkpoints/old")))
    assert main(["evaluate", "old"]) == 0
    told = capsys.readouterr()
    assert "From the ranks that the run keeps" in told.err
    assert main(["evaluate", "old", "--store"]) == 2 and "already" in capsys.readouterr().err
    (run.path / "ranks.safetensors").unlink()
    assert main(["compare", "old", "tiny"]) == 2 and "evaluate checkpoints/old --store" in capsys.readouterr().err
    before = run.last_event("test")
    assert main(["evaluate", "old", "--store", "--reason", "lost"]) == 0
    assert capsys.readouterr().out == told.out
    row = run.last_event("test")
    assert before is not None and row is not None and row["rescored"] == "lost" and row["commit"] == run.report().commit
    assert row["protocols"] == before["protocols"] and row.get("used") == before.get("used")
    assert main(["evaluate", "old", "--store", "--split=valid"]) == 2
    assert main(["compare", "old,tiny", "tiny"]) == 2 and "repeat a seed" in capsys.readouterr().err
    shutil.rmtree(run.path)


def test_recommend_to_a_person_and_after_typed_histories(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = Run(here / "checkpoints/tiny").raw_ids()
    assert main(["recommend", "tiny", "--user", "1", "--top", "4"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main(["recommend", "tiny", "--history", f"{raw[3]},{raw[5]}", "--csv", "--top", "3"]) == 0
    by_id = capsys.readouterr().out
    assert len(by_id.splitlines()) == 4
    titles = ["", *pd.read_csv(here / "checkpoints/tiny/items.csv")["title"]]
    assert main(["recommend", "tiny", "--titles", f"{titles[3]}; {titles[5].lower()}", "--csv", "--top", "3"]) == 0
    assert capsys.readouterr().out == by_id


def test_a_run_folder_travels_without_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From another folder and with the file gone: histories, titles, genres and ids of the file's own, on the command line and in
    Python; only a person needs the data."""
    monkeypatch.chdir(tmp_path)
    rows = [
        f'cust-{u:03},"sku,{n}",{i},"Title ""{n}""",Fun|Odd{n % 2 * "|Blue"}'
        for u in range(30) for i in range(8) for n in [(u * 7 + i * i) % 12]
    ]  # fmt: skip
    Path("shop.csv").write_text("\n".join(["user,item,time,title,genres", *rows]))
    assert main(["train", *SMALL, "--set=data.source=shop.csv", "--set=data.k_core=1", "--out", "run"]) == 0
    typed = ["--history", '"sku,3","sku,4"', "--csv", "--top", "3"]
    assert main(["recommend", "run", *typed]) == 0
    before = capsys.readouterr().out.split("run\n")[-1]
    run = elastic_core.open_run("run")
    user = run.recommend("cust-007")
    assert set(user["user"]) == {"cust-007"} and len(run.experts("cust-007")) == run.config.model.k  # type: ignore[attr-defined]
    for wrong in ("cust-999", ["cust-007", "cust-999"], [0], 99):
        with pytest.raises(InputError):
            run.recommend(wrong)
    (tmp_path / "elsewhere").mkdir()
    shutil.move("run", "elsewhere/moved")
    Path("shop.csv").unlink()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["recommend", "moved", *typed]) == 0
    assert capsys.readouterr().out == before
    moved = elastic_core.open_run("moved")
    table = moved.recommend(histories=[["sku,3", "sku,4"]], k=3)
    assert table["item"].tolist() == pd.read_csv(io.StringIO(before))["id"].tolist() and table["title"][0].startswith('Title "')
    assert {("Fun", "Odd"), ("Fun", "Odd", "Blue")} >= set((moved.catalog().genres or ())[1:]) > set()
    assert main(["recommend", "moved", "--user", "cust-007"]) == 2 and "shop.csv" in capsys.readouterr().err


def test_compare_and_reproduce(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "tiny", "tiny"]) == 0 and "budgets differ" not in capsys.readouterr().err
    shutil.copytree(here / "checkpoints" / "tiny", here / "checkpoints" / "longer")
    settings = json.loads((here / "checkpoints" / "longer" / "config.json").read_text())
    settings["train"]["minutes"] = 7.5
    (here / "checkpoints" / "longer" / "config.json").write_text(json.dumps(settings))
    assert main(["compare", "tiny", "longer"]) == 0 and "minutes 0.0 and 7.5" in capsys.readouterr().err
    one = Run(here / "checkpoints" / "tiny")
    assert elastic_core.compare_runs(one, one).difference == 0
    shutil.rmtree(here / "checkpoints" / "longer")
    assert main(["compare", "tiny", "tiny"]) == 0
    assert "no difference can be claimed" in capsys.readouterr().out
    assert main(["reproduce", "--list", "--only", "ml-1m-*"]) == 0
    assert "missing" in capsys.readouterr().out


def test_the_template_can_be_loaded(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "--write-template", "mine.csv"]) == 0
    assert main(["data", "mine.csv", "--k-core", "5"]) == 2  # three events a person are too few, and it says so
    assert main(["data", "mine.csv", "--k-core", "0"]) == 0
    assert "people           2" in capsys.readouterr().out
    assert main(["data", "mine.csv", "--k-core", "0", "--columns", "time="]) == 0
    assert "none: the order in the file counts" in capsys.readouterr().out
    short = ["--set", "train.epochs=1", "--set", "data.k_core=0", "--set", "model.length=8"]
    assert main(["train", "--recipe=toy", *short, "--set=data.source=mine.csv", "--columns=time=", "--out=checkpoints/mine"]) == 0
    assert Run(here / "checkpoints/mine").config.data.columns == {"time": ""}
    assert main(["data", "--write-template", "mine.csv"]) == 2


def test_bench_measures_once_and_goes_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["bench", "--width=8", "--k=2", "--n-subkeys=4", "--batch=2", "--rounds=3", "--directions=forward"]
    assert main([*small, "--lengths=8"]) == 0
    rows = read_rows(Path("checkpoints/local-benchmarks.csv"))
    assert len(rows) == 10
    assert main([*small, "--lengths=8,16"]) == 0
    again = read_rows(Path("checkpoints/local-benchmarks.csv"))
    assert again[:10].equals(rows) and len(again) == 20
    assert "sasrec-fused" in capsys.readouterr().out
    assert main(["bench", "events", *small[1:], "--lengths=8,60", "--systems=elastic"]) == 0
    rows = read_rows(Path("checkpoints/local-benchmarks.csv"), "events")
    assert set(rows["system"]) == {"elastic", "elastic-stream", "elastic-refresh"} and len(rows) == 6
    capsys.readouterr()
    assert main(["bench", "--show"]) == 0 and "events\n" in capsys.readouterr().out


# --- what does not ---------------------------------------------------------------------------------------------------

FILES = {
    "binary.csv": (b"user,item\x00" * 99, "NUL"),
    "day-or-month.csv": ("user,item,time\n" + "".join(f"u{i},i{i},0{i}/03/2024\n" for i in range(1, 9)), "--dates"),
    "one-user.csv": ("user,item,time\n" + "".join(f"u,i{i},{i}\n" for i in range(9)), "only one user"),
}


def refused(words: list[str], naming: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, nothing on stdout, and one sentence on stderr (below what was being done) that names the thing."""
    capsys.readouterr()
    assert main(words) == 2
    shown = capsys.readouterr()
    errors = [line for line in shown.err.splitlines() if line.startswith("error: ")]
    assert shown.out == "" and len(errors) == 1 and shown.err.splitlines()[-1] == errors[0]
    assert naming in errors[0] and "Traceback" not in shown.err


@pytest.mark.parametrize("name", FILES)
def test_bad_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    content, naming = FILES[name]
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for words in (["data", name, "--k-core=0"], ["train", "--recipe=toy", f"--set=data.source={name}", "--set=data.k_core=0"]):
        refused(words, naming, capsys)
        refused(words, name, capsys)
    assert [path.name for path in tmp_path.iterdir()] == [name], "no half of a run may be left behind"


@pytest.mark.parametrize(
    ("words", "naming"),
    [
        (["train", "--recipe=toi"], "toi"),
        (["train", "--recipe=toy", "--model=gpt"], "gpt"),
        (["train", "--recipe=toy", "--set=model.widht=8"], "model.widht"),
        (["train", "--recipe=toy", "--set=model.width=wide"], "model.width"),
        (["train", "--recipe=toy", "--set=objective.name=all"], "all"),
        (["train", "--recipe=toy", "--set=train.learning_rate=nan"], "learning_rate"),
        (["train", "--recipe=toy", "--minutes=-1"], "minutes"),
        (["train", "--config=none.json"], "none.json"),
        (["train", "--config=broken.json"], "broken.json"),
        (["train", "--config=unknown.json"], "colour"),
        (["train", "--recipe=toy", "--config=unknown.json"], "--config"),
        (["train"], "--recipe"),
        (["data", "nowhere.csv"], "nowhere.csv"),
        (["data", "planted", "--columns=user"], "user"),
        (["data", "planted", "--columns=item="], "item"),
        (["data", "planted", "--columns=time="], "columns"),
        (["train", "--recipe=toy", "--columns=reader"], "reader"),
        (["evaluate", "nobody"], "nobody"),
        (["compare", "nobody", "nobody"], "nobody"),
        (["recommend", "nobody", "--user=1"], "nobody"),
        (["bench", "--lengths=short"], "short"),
        (["bench", "--systems=rnn"], "rnn"),
        (["bench", "training", "--systems=rnn"], "rnn"),
        (["bench", "events", "--batch=-1"], "--batch"),
        (["reproduce", "--only=nothing-like-it"], "nothing-like-it"),
        (["reproduce", "--list", "--protocol=half"], "half"),
        (["frobnicate"], "frobnicate"),
        ([], "missing command"),
    ],
    ids=" ".join,
)
def test_bad_arguments(
    words: list[str], naming: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    unknown = {**recipe("toy").to_dict(), "colour": "red"}
    Path("unknown.json").write_text(json.dumps(unknown))
    Path("broken.json").write_text('{"data": ')
    refused(words, naming, capsys)
    assert {path.name for path in tmp_path.iterdir()} == {"unknown.json", "broken.json"}


@pytest.mark.parametrize(
    ("words", "naming"),
    [
        (["evaluate", "tiny", "--split=train"], "train"),
        (["evaluate", "tiny", "--protocols=full,half"], "half"),
        (["evaluate", "tiny", "--metrics=NDCG@7"], "NDCG@7"),
        (["evaluate", "tiny", "--device=abacus"], "abacus"),
        (["compare", "tiny", "tiny", "--protocol=half"], "half"),
        (["recommend", "tiny", "--user=nobody"], "nobody"),
        (["recommend", "tiny", "--history=nothing"], "nothing"),
        (["recommend", "tiny", "--titles=Nothing at all"], "Nothing at all"),
        (["recommend", "tiny", "--titles=#"], "items fit"),
        (["recommend", "tiny", "--history="], "history is empty"),
        (["recommend", "tiny", "--user=1", "--top=0"], "--top"),
        (["train", *SMALL, "--set=train.seed=9", "--out=checkpoints/tiny"], "other settings"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_bad_questions_to_a_good_run(words: list[str], naming: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def kept() -> list[tuple[Path, int]]:  # older filelocks touch the lock itself
        files = [path for path in (here / "checkpoints/tiny").iterdir() if path.name != ".lock"]
        return sorted((path, path.stat().st_mtime_ns) for path in files)

    before = kept()
    refused(words, naming, capsys)
    assert kept() == before


def test_a_loss_that_explodes_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(["train", *SMALL, "--set=train.learning_rate=1e30", "--out", str(tmp_path / "run")], "learning_rate", capsys)
    assert not (tmp_path / "run").exists()


# --- as a process ----------------------------------------------------------------------------------------------------


def test_elsewhere_and_where_the_output_is_ascii_the_checkout_s_numbers_are_found(tmp_path: Path, children: Any) -> None:
    """There in a process of its own."""
    words = ["bench", "--show", "--out", str(ROOT / "checkpoints" / "benchmarks.csv")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    there = subprocess.run(
        [sys.executable, "-m", "elastic_core", *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    assert there.returncode == 0 and r"\u2026" in there.stdout and "NVIDIA" in there.stdout, there.stderr
    code, out, err = Forked(children, command, *words, folder=ROOT).ended()
    assert (code, out.encode("ascii", "backslashreplace").decode(), err) == (0, there.stdout, there.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_training_and_keeps_the_best(number: signal.Signals, tmp_path: Path, children: Any) -> None:
    words = ["train", *SMALL, "--set=train.epochs=10000", "--set=train.patience=10000", "--out=run"]
    process = Forked(children, command, *words, folder=tmp_path)
    deadline = time.monotonic() + 240
    while not Run(tmp_path / "run").events("epoch") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    code, out, err = process.ended()
    assert code == 0, err
    assert out.strip() == "run" and Run(tmp_path / "run").finished and "asked to stop" in err
