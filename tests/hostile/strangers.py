"""Text of a stranger wherever the app shows text that is not its own: a folder of runs, jobs and data that all say `EVIL`."""

import csv
import json
from pathlib import Path

from elastic_core import recipes
from elastic_core.data import load
from elastic_core.jobs.queue import open_table
from elastic_core.runs import Run
from elastic_core.runs.training import train

TRAP = "127.0.0.1:9"  # where nothing answers and nothing of the app lies
EVIL = (
    f'![x](http://{TRAP}/m) <img src="http://{TRAP}/h"> <a href="http://{TRAP}/a">a</a> [l](http://{TRAP}/l) http://{TRAP}/u '
    "www.evil.example me@evil.example :material/home: :streamlit: $x$ **b** `c` =1+1"
)
ID = f"![x](http://{TRAP}/i) <img src='http://{TRAP}/h'> $(touch pwned) [l](http://{TRAP}/l) me@evil.example **b**"
FOLDER = f"local-![x](http:&sol;&sol;{TRAP}&sol;f) $(touch pwned) <a href='http:&sol;&sol;{TRAP}'>f"  # all that a name may hold
PEER = "local-`b` **peer** ; touch pwned"


def world(folder: Path) -> Path:
    """Runs `FOLDER` and `PEER` in `folder`, on data with such titles, genres and ids; a failed and an interrupted job."""
    source = folder / "uploads" / "0123456789ab" / "data.csv"
    source.parent.mkdir(parents=True)
    with source.open("w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(("user", "item", "time", "title", "genres"))
        for user in range(30):
            for place in range(12):
                item = (user * 5 + place * (1 + user % 3)) % 24
                genres = f"{EVIL.replace('|', '')} {item % 3}"
                rows.writerow((f"{ID} {user}", f"{ID} {item}", 1_000_000 + place, f"{EVIL} {item} (1999)", genres))
    facts = {"people": 30, "items": 24, "events": 360, "hash": EVIL, "notes": [EVIL]}
    # label and time are read strictly
    card = {"kind": "file", "label": "x · 0123", "facts": facts, "when": "2024-01-01 00:00:00"}
    for name, model in ((FOLDER, "elastic"), (PEER, "sasrec")):
        size = () if model == "sasrec" else ("model.n_subkeys=3", "model.k=2")
        config = recipes.toy(model).override(f"data.source={source}", "train.epochs=2", "train.snapshots=true", *size)
        train(config, load(config.data), folder / name)
        _say_evil(Run(folder / name))
    card["config"] = Run(folder / FOLDER).config.to_dict()["data"]
    (source.parent / "upload.json").write_text(json.dumps(card))
    for i, state in enumerate(("failed", "running")):
        config = Run(folder / FOLDER).config.override(f"train.device={EVIL}").to_dict()
        with open_table(folder / "jobs", write=True) as table:
            request = json.dumps({"run": f"local-{i}", "config": config})
            columns, values = "kind, request, threads, state, reason, begun, beat", ("train", request, 1, state, EVIL, 0.0, 0.0)
            number = table.execute(f"INSERT INTO jobs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values).lastrowid
        (folder / "jobs" / f"{number:06}").mkdir()
        (folder / "jobs" / f"{number:06}" / "log.txt").write_text(EVIL)
    for odd in (folder / f"local-odd {FOLDER}", folder / "jobs" / f"20240102 {FOLDER}", folder / "uploads" / f"0 {FOLDER}"):
        odd.mkdir()
        for name in ("config.json", "job.json", "upload.json"):
            (odd / name).write_text(json.dumps({EVIL: EVIL, "model": {"name": EVIL}, "run": EVIL, "label": EVIL}))
    return folder


def _say_evil(run: Run) -> None:
    """Whatever text the run's files hold besides its settings."""
    plain = json.loads((run.path / "config.json").read_text())
    plain["train"]["device"] = EVIL
    (run.path / "config.json").write_text(json.dumps(plain))
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    told = [
        {name: EVIL if isinstance(value, str) and name not in ("event", "data_hash") else value for name, value in row.items()}
        for row in map(json.loads, lines)
    ]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in told))
