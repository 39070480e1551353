"""What `--help` shows first works as it is printed, in a folder with a file of clicks. What would take minutes gets a small
budget, added at the end; what waits for visitors is asked once. (`serve-class` needs a proxy: tests/load/test_serve.py.)"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from forked import Forked, command, free_port

import elastic_core
from elastic_core.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = {
    "train": "--minutes 0.02",
    "study": "--minutes 0.05 --split last --systems elastic-slots --set planted.users=200",
    "bench": "--lengths 8,16 --batch 2 --rounds 1 --seconds 0.1 --out rows.csv",
    "reproduce": "--only planted",
}  # fmt: skip
STORED = ("runs.csv", "epochs.csv", "ranks", "demo")


def first_example(command: str) -> list[str]:
    text = import_module(f"elastic_core.commands.{command.replace('-', '_')}").__doc__ or ""
    example = re.search(r"^  elastic (.+?)(?: {3,}.*)?$", text, re.MULTILINE)
    assert example is not None
    return shlex.split(example[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_runs: Path) -> Path:
    """Stored runs, a run of one's own, and another library's lists."""
    here = tmp_path_factory.mktemp("examples")
    (here / "checkpoints").mkdir()
    for name in STORED:
        (here / "checkpoints" / name).symlink_to(ROOT / "checkpoints" / name)
    shutil.copytree(tiny_runs / "tiny", here / "checkpoints/local-my-clicks-elastic")
    groceries = elastic_core.load("groceries")
    lists = {
        "user": groceries.histories.user_ids.repeat(10),
        "item": list(groceries.catalog.ids[1:11]) * groceries.histories.n_users,
    }
    pd.DataFrame(lists).assign(rank=lambda table: table.groupby("user").cumcount() + 1).to_csv(here / "lists.csv", index=False)
    return here


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("serve", "serve-class")])
def test_the_first_example_works(name: str, folder: Path, children: Any) -> None:
    words = [*first_example(name), *shlex.split(BUDGETS.get(name, ""))]
    root = str(folder / "checkpoints")
    code, out, err = Forked(children, run_in, root, *words, folder=folder).ended()
    assert code == 0, err
    assert out or name == "export", "a command says what came of it"


def run_in(checkpoints: str, *words: str) -> None:
    """A command whose runs lie there; the process was forked where it had settled on another place."""
    for module in [module for name, module in sys.modules.items() if name.startswith("elastic_core")]:
        if hasattr(module, "CHECKPOINTS"):
            module.CHECKPOINTS = Path(checkpoints)
    command(*words)


@pytest.mark.slow
def test_the_service_s_first_example_answers(folder: Path) -> None:
    port = free_port()
    words = [sys.executable, "-m", "elastic_core", *first_example("serve"), "--port", str(port)]
    with subprocess.Popen(words, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 120
            while time.monotonic() < until and process.poll() is None:
                try:
                    assert httpx.get(f"http://127.0.0.1:{port}/ready", timeout=5).json()["status"] == "ok"
                    break
                except httpx.TransportError:
                    time.sleep(0.2)
            else:
                raise AssertionError("nothing answers")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def test_the_installed_program_is_this_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["elastic"].partition(":")
    assert callable(getattr(import_module(module), function))


def test_help_imports_neither_torch_nor_typer() -> None:
    heavy = "{'torch', 'typer', 'pandas'} & set(sys.modules)"
    program = f"import sys; from elastic_core.__main__ import main; main(); print(sorted({heavy}))"
    words = [sys.executable, "-c", program, "--help"]
    shown = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0 and shown.stdout.splitlines()[-1] == "[]", shown.stderr
