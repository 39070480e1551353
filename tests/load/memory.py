"""What the server keeps: one visitor who opens every run, then looks at another person at every step, and often at another run
and page.

  python tests/load/memory.py --reruns 1000 --out checkpoints/benchmarks.csv

Written is one row: memory at the start, after the first 200 reruns, at the end, and by how much it grew in between (medians of 20
reruns each), with the processor's seconds. Then the visitor leaves and another comes, again and again: by how much each adds.
Who has left is kept for 10 seconds here (Streamlit's own default, which the app does not change, is two minutes).
"""

import argparse
import asyncio
import os
import random
import sys
from pathlib import Path

import numpy as np
from crowd import ROOT, about, processor, resident, server, write
from visitor import Refused, Visitor

PAGES = ("", "journey", "experts", "traffic", "memory-map", "evidence", "product-keys", "data")
WARM, STEP = 200, 20  # reruns until everything has been seen, and over which a median is taken


async def wander(address: str, process: int, reruns: int, seed: int = 0, every: bool = False) -> list[float]:
    """Memory in MB after each of so many reruns; the first ones open `every` run."""
    chance, visitor, memory = random.Random(seed), Visitor(address), list[float]()
    await visitor.open()
    try:
        while len(memory) < reruns:
            try:
                await _step(visitor, chance, len(memory), every)
            except Refused as error:
                raise AssertionError(f"after {len(memory)} reruns: {error}") from error
            memory.append(resident(process))
    finally:
        await visitor.close()
    return memory


async def _step(visitor: Visitor, chance: random.Random, number: int, every: bool) -> None:
    runs = list(visitor.drawn("run").options)
    if every and number < len(runs):
        await visitor.set("run", runs[number])
    elif number % 10 == 9:
        await visitor.go(chance.choice(PAGES))
    elif number % 10 == 4:
        await visitor.set("run", chance.choice(runs))
    else:
        await visitor.set("user", float(chance.randint(1, int(visitor.drawn("user").max))))


async def come_and_go(address: str, process: int, visitors: int) -> list[float]:
    """Memory in MB after each of so many visits of a few pages has ended."""
    memory = list[float]()
    for number in range(visitors):
        await wander(address, process, 20, seed=number)
        memory.append(resident(process))
    return memory


def grown(memory: list[float]) -> tuple[float, float, float]:
    """After the first reruns, at the end, and the difference, in MB."""
    warm = min(WARM, len(memory) // 2)
    before, after = float(np.median(memory[warm : warm + STEP])), float(np.median(memory[-STEP:]))
    return before, after, after - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reruns", type=int, default=1000)
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--app", type=Path, default=ROOT, help="a checkout (default: this one)")
    parser.add_argument("--out", type=Path, default=ROOT / "checkpoints" / "local-benchmarks.csv")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the server's own words go")
    given = parser.parse_args()
    facts = about(given.app, users=1, seconds=given.reruns)
    with server(given.app, given.log, keep=10) as (address, process):
        start = resident(process)
        memory = asyncio.run(wander(address, process, given.reruns, every=True))
        busy = processor(process)
        visits = asyncio.run(come_and_go(address, process, given.visitors))
    before, after, more = grown(memory)
    row: dict[str, str | int | float] = {
        **{name: facts[name] for name in ("date", "commit", "device", "load_average")},
        "reruns": given.reruns, "start_mb": round(start),
        "warm_mb": round(before), "end_mb": round(after), "grown_mb": round(more, 1), "largest_mb": round(max(memory)),
        "processor": round(busy / given.reruns, 3), "visitors": given.visitors,
        "mb_per_visitor": round(float(np.polyfit(range(len(visits)), visits, 1)[0]), 2),
    }  # fmt: skip
    write(given.out, {"bench": "memory", **row})
    print(" ".join(f"{name}={value}" for name, value in row.items()))
    print("memory every 50 reruns:", " ".join(f"{used:.0f}" for used in memory[::50]))
    print("memory after each visit:", " ".join(f"{used:.0f}" for used in visits))
    return 0


if __name__ == "__main__":
    sys.exit(main())
