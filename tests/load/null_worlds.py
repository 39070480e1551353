"""How often does a study claim something of a world in which there is nothing to find?

Everybody chooses evenly among all items, whatever came before: no history helps, no expert pays, nothing beats counting. Each
world is asked by an ordinary study; "yes" and "no" are false claims, while "level" would be true. At most five worlds of a
hundred may have one. One line a world; the same command goes on where it was.

    python tests/load/null_worlds.py --worlds 100 --minutes 3 --out null-worlds
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from elastic_core.run_config import DataConfig
from elastic_core.study.request import StudyRequest
from elastic_core.study.train import Study

USERS, ITEMS, EVENTS = 200, 60, (10, 40)
SYSTEMS = ("elastic-slots", "elastic-slots (memory-none)", "sasrec (local)")


def write_world(file: Path, seed: int) -> None:
    """A file of clicks in which nothing depends on anything."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(*EVENTS, size=USERS)
    users = np.repeat([f"u{user}" for user in range(USERS)], lengths)
    times = 1_600_000_000 + rng.permutation(len(users)) * 60
    table = pd.DataFrame({"user": users, "item": rng.integers(0, ITEMS, len(users)).astype(str), "time": times})
    table.assign(item="i" + table["item"]).to_csv(file, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=3.0, help="of a study: two trainings of each system and all else")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    false = 0
    for seed in range(given.worlds):
        file = given.out / f"world-{seed}.csv"
        if not file.exists():
            write_world(file, seed)
        request = StudyRequest(DataConfig(source=str(file.resolve())), given.minutes, ("last",), SYSTEMS)
        found = Study(request, given.out / f"study-{seed}").run()
        claims = {key: answer for key, answer in found["claims"].items() if answer in ("yes", "no")}
        false += bool(claims)
        print(
            f"world {seed}: {json.dumps(claims)}, {found['seconds']:.0f} s; {false} of {seed + 1} worlds claim something",
            flush=True,
        )


if __name__ == "__main__":
    main()
