"""What one rerun of every screen costs the server: processor time, for another person and for the same view once more.

  python tests/load/reruns.py --out checkpoints/benchmarks/reruns.csv
  python tests/load/reruns.py --app ../elsewhere --out ""                another checkout, printed only

A real server and one visitor. Every screen is opened once (`first visit`), warmed by a few people, then asked for others it has
not seen (`another person`), then for the same again. Processor time hardly depends on what else the machine does; seconds do.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

from crowd import ROOT, about, processor, server, write
from visitor import Visitor

WARM, TIMES = 3, 12
KEY = ("commit", "device", "screen", "act")


async def measure(address: str, process: int, run: str, times: int = TIMES) -> list[dict[str, str | int | float]]:
    """A row for every screen and act."""
    visitor, found = Visitor(address, query={"run": run}), []
    await visitor.open()
    screens, person = sorted(visitor.pages), 20.0

    async def timed(screen: str, act: str, many: int) -> None:
        nonlocal person
        used, waited = processor(process), []
        for _ in range(many):
            began = time.perf_counter()
            if act == "first visit":
                await visitor.go(screen)
            elif act == "another person":
                person += 1
                await visitor.set("user", person)
            else:
                await visitor._run()
            waited.append(time.perf_counter() - began)
        spent = 1000 * (processor(process) - used) / many
        found.append(
            {"screen": screen or "start", "act": act, "n": many, "processor_ms": round(spent, 1),
             "wall_ms": round(1000 * statistics.median(waited), 1)}
        )  # fmt: skip

    for screen in screens:
        await timed(screen, "first visit", 1)
        for _ in range(WARM):
            person += 1
            await visitor.set("user", person)
        await timed(screen, "another person", times)
        await timed(screen, "the same again", times)
    await visitor.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--app", type=Path, default=ROOT, help="a checkout (default: this one)")
    parser.add_argument("--run", default="ml-100k-elastic")
    parser.add_argument("--out", default=str(ROOT / "checkpoints" / "benchmarks" / "reruns.csv"))
    given = parser.parse_args()
    before = about(given.app)
    with server(given.app, Path(os.devnull)) as (address, process):
        found = [{**before, **row} for row in asyncio.run(measure(address, process, given.run))]
    if given.out:
        write(Path(given.out), found, KEY)
    for row in found:
        print(f"{row['screen']:<16}{row['act']:<18}{row['processor_ms']:>8.1f} ms of processor{row['wall_ms']:>9.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
