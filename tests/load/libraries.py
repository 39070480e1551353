"""Training targets a processor second: SASRec here, in RecBole and in RecTools, and ELASTIC here, on the same histories.

    python tests/load/libraries.py recbole=/envs/recbole/bin/python rectools=/envs/rectools/bin/python

Each library lives in an environment of its own (`pip install recbole==1.2.1`, `pip install "rectools[torch]"`), where this file
runs as a script without `elastic_core`. All take turns on one thread, each in a process of its own: MovieLens-1M, 64 numbers an
item, two layers, two heads, 200 events, dropout 0.2, softmax over all items. Each library forms its batches as it likes: RecBole
makes a row of every prefix of a history and learns from its last event (256 rows a step: 2,048, its default, take more than ten
gigabytes), the others learn from every event of a row. The time of the first step, and of what comes before it, is left out. Rows
go to `benchmarks.csv` under the bench `libraries`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

OURS = ("sasrec", "elastic")
LENGTH, WIDTH, LAYERS, HEADS, DROPOUT = 200, 64, 2, 2, 0.2
SECONDS, ROUNDS = 20.0, 3  # of a turn, after its first step


def time_steps(steps: Iterator[int], seconds: float = SECONDS) -> dict[str, float]:
    """Targets, steps and seconds of the processor of so many seconds of training, without the first step."""
    next(steps)
    targets = count = 0
    began = time.process_time()
    for learned in steps:
        targets, count = targets + learned, count + 1
        if time.process_time() - began > seconds:
            break
    return {"targets": targets, "steps": count, "processor": time.process_time() - began}


def train_here(system: str) -> Iterator[int]:
    """Steps of a system of ours on MovieLens-1M, as the recipe `ml-1m` says."""
    import torch

    from elastic_core import recipes
    from elastic_core.bench.training import Trainee
    from elastic_core.data import load

    config = recipes.ml_1m(system).override(f"model.heads={HEADS}", f"model.dropout={DROPOUT}")
    trainee = Trainee(config, load(config.data), torch.device("cpu"))
    while True:
        trainee.take_step()
        yield trainee.learned[-1][0]


def train_recbole(folder: Path) -> Iterator[int]:
    """Steps of RecBole's SASRec, as its trainer takes them (`Trainer._train_epoch`)."""
    import torch
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.utils import get_model, init_seed

    settings = {
        "data_path": str(folder), "load_col": {"inter": ["user_id", "item_id", "timestamp"]}, "MAX_ITEM_LIST_LENGTH": LENGTH,
        "hidden_size": WIDTH, "inner_size": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dropout_prob": DROPOUT,
        "attn_dropout_prob": DROPOUT, "train_neg_sample_args": None, "loss_type": "CE", "train_batch_size": 256,
        "use_gpu": False, "show_progress": False, "eval_args": {"split": {"LS": "valid_and_test"}, "order": "TO"},
    }  # fmt: skip
    sys.argv = sys.argv[:1]  # RecBole reads the command line
    config = Config(model="SASRec", dataset="events", config_dict=settings)
    init_seed(0, True)
    train_data, *_ = data_preparation(config, create_dataset(config))
    model = get_model("SASRec")(config, train_data.dataset)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    while True:
        for interaction in train_data:
            optimizer.zero_grad()
            loss = model.calculate_loss(interaction)
            loss.backward()
            optimizer.step()
            yield len(interaction)


def train_rectools(folder: Path) -> Iterator[int]:
    """Steps of RecTools' SASRec: its own data loader, loss and optimiser (`SASRecModel.fit`)."""
    import pandas as pd
    from rectools import Columns
    from rectools.dataset import Dataset
    from rectools.models import SASRecModel

    events = pd.read_csv(folder / "events" / "events.inter", sep="\t")
    events.columns = [Columns.User, Columns.Item, Columns.Datetime]
    events[Columns.Weight] = 1
    events[Columns.Datetime] = pd.to_datetime(events[Columns.Datetime], unit="s")
    model = SASRecModel(
        n_blocks=LAYERS, n_heads=HEADS, n_factors=WIDTH, session_max_len=LENGTH, dropout_rate=DROPOUT, loss="softmax", lr=1e-3,
        batch_size=128, epochs=1, dataloader_num_workers=0,
    )  # fmt: skip
    model._build_model_from_dataset(Dataset.construct(events))
    lightning, loader = model.lightning_model, model.data_preparator.get_dataloader_train()
    optimizer = lightning.configure_optimizers()
    optimizer = optimizer[0][0] if isinstance(optimizer, tuple) else optimizer
    lightning.train()
    while True:
        for batch in loader:
            optimizer.zero_grad()
            loss = lightning.training_step(batch, 0)
            loss.backward()
            optimizer.step()
            yield int((batch["y"] != 0).sum())


TRAINERS: dict[str, Callable[[Path], Iterator[int]]] = {
    "sasrec": lambda folder: train_here("sasrec"), "elastic": lambda folder: train_here("elastic"),
    "recbole": train_recbole, "rectools": train_rectools,
}  # fmt: skip


def write_events(folder: Path) -> None:
    """MovieLens-1M as RecBole reads it: `events/events.inter`."""
    import numpy as np
    import pandas as pd

    from elastic_core.data import load

    histories = load("ml-1m").histories
    users = np.repeat(np.arange(histories.n_users), histories.lengths)
    columns = {"user_id:token": users, "item_id:token": histories.items, "timestamp:float": histories.times}
    (folder / "events").mkdir()
    pd.DataFrame(columns).to_csv(folder / "events" / "events.inter", sep="\t", index=False)


def take_turn(python: str, name: str, folder: Path) -> dict[str, float]:
    """One turn of a library in a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)
    command = [python, str(Path(__file__).resolve()), f"--turn={name}", f"--folder={folder}"]
    answer = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def measure_libraries(pythons: dict[str, str], folder: Path) -> Any:
    """A row a library: targets a processor second, median and quartiles over turns."""
    import numpy as np
    import torch

    from elastic_core.bench.harness import name_quartiles, row_of
    from elastic_core.bench.rows import as_table

    write_events(folder)
    names = [*OURS, *pythons]
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for turn in range(ROUNDS):
        for place in range(turn, turn + len(names)):
            name = names[place % len(names)]
            turns[name].append(take_turn(pythons.get(name, sys.executable), name, folder))
            print(name, turns[name][-1], file=sys.stderr)
    rows = []
    for name, each in turns.items():
        rates = np.array([turn["targets"] / turn["processor"] for turn in each])
        ours = np.array([turn["targets"] / turn["processor"] for turn in turns["sasrec"]])
        seconds = np.array([[turn["processor"] / turn["steps"]] * 2 for turn in each])
        setting = {"world": "ml-1m", "length": LENGTH, "width": WIDTH, "layers": LAYERS, "heads": HEADS, "dropout": DROPOUT}
        system = name if name in OURS else f"sasrec-{name}"
        row = row_of("libraries", system, setting, seconds, torch.device("cpu"))
        rows.append(row | name_quartiles("rate", rates, 1) | name_quartiles("ratio", rates / ours))
    return as_table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", help="NAME=PYTHON of recbole and rectools")
    parser.add_argument("--turn", help="measure one library in this process and print what was measured")
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    if arguments.turn:
        import torch

        torch.set_num_threads(1)
        print(json.dumps(time_steps(TRAINERS[arguments.turn](arguments.folder))))
        return
    from elastic_core.bench.rows import write_rows
    from elastic_core.runs.checkpoints import CHECKPOINTS

    with tempfile.TemporaryDirectory() as folder:
        rows = measure_libraries(dict(each.split("=") for each in arguments.pythons), Path(folder))
        write_rows(CHECKPOINTS / "benchmarks.csv", rows)


if __name__ == "__main__":
    main()
