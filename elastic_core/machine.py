"""Where a number was measured: device, machine, commit. Every stored result carries them."""

import contextlib
import ctypes
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from elastic_core.errors import InputError, out_of_memory

CPU = torch.device("cpu")


def find_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one. Raises InputError for a device that this machine has not."""
    try:
        device = torch.device(name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
        torch.empty(1, device=device).sum().item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        if out_of_memory(error):
            raise InputError(f"the device {name!r} has no memory left; end what uses it, or try cpu") from None
        raise InputError(f"the device {name!r} is not available on this machine; try cpu") from None
    return device


def memory_bytes(device: torch.device) -> int:
    """Memory of the device; of the processor, the machine's, or what its container may have of it."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [8 * 2**30]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # another system, or no limit
            sizes.append(int(Path(file).read_text(encoding="ascii")))
    return min(sizes)


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu ({platform.machine()}, {os.cpu_count()} cores)"


KERNELS = "64"  # compiled ones that a server keeps


@cache
def prepare_to_serve(threads: int = 1) -> None:
    """Set torch up for a server, before its first model is asked: few threads for an operation, few compiled kernels kept.

    One person's tensors are small, many people ask at once, and threads that spin while they wait for work take the processor
    from the others (measured on two cores: three to five times the time of a page). And oneDNN compiles a kernel for every shape,
    of which it and torch keep 1,024 each: histories of a thousand lengths held 600 MB. With 64 they hold 57 MB, and take no
    longer. Who has set the two variables is not overruled.
    """
    torch.set_num_threads(threads)
    for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(variable, KERNELS)


def thread_counts() -> list[int]:
    """1, 2 and all that this process may use, each once."""
    every = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return sorted({1, min(2, every), every})


def number_of_threads(text: str) -> int:
    """Raises InputError for what is no number of threads."""
    if not (text.isdecimal() and 1 <= int(text[:9]) <= 1_024):
        raise InputError("--threads must be a number from 1 on, or auto")
    return int(text)


def choose_threads(job: Callable[[], Any], rounds: int = 7) -> int:
    """Sets and returns the number of threads with which `job` was quickest, tried in turns; fewer unless more save a tenth.

    It holds for what the machine does now: where another process may come to work later, one thread is never far from the best.
    """
    times_of: dict[int, list[float]] = {count: [] for count in thread_counts()}
    for _ in range(rounds):
        for count, times in times_of.items():
            torch.set_num_threads(count)
            began = time.perf_counter()
            job()
            times.append(time.perf_counter() - began)
    median = {count: statistics.median(times[1:]) for count, times in times_of.items()}
    chosen = next(count for count, time_ in median.items() if time_ <= 1.1 * min(median.values()))
    torch.set_num_threads(chosen)
    return chosen


@contextlib.contextmanager
def keep_threads() -> Iterator[None]:
    """However many threads are set inside, afterwards there are as many as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


class SpareCores:
    """How many cores of this process no other process works on: so many threads may share a tensor operation.

    Threads wait for the slowest of them: where another process has taken its core, an operation takes 2 to 20 times as long as
    one thread needs. Linux tells who works; elsewhere the answer is one, and where the user
    has said how many threads there are (OMP_NUM_THREADS), these.
    """

    EVERY = 0.25  # seconds between two looks

    def __init__(self) -> None:
        self.seen, self.count = _processor_seconds(), 1

    def count_spare(self) -> int:
        """From 1 on; what it was since the last look, so at first 1."""
        count_text = os.environ.get("OMP_NUM_THREADS", "")
        if count_text.isdecimal() and int(count_text[:4]) >= 1:
            return int(count_text[:4])
        seen = _processor_seconds()
        if seen is not None and self.seen is not None and seen[0] - self.seen[0] >= self.EVERY:
            elapsed, every, own = (after - before for after, before in zip(seen, self.seen, strict=True))
            others = max(every - own, 0.0) / elapsed
            self.seen, self.count = seen, max(1, int(thread_counts()[-1] - others + 0.25))  # a quarter of a core is hardly missed
        return self.count


def _processor_seconds() -> tuple[float, float, float] | None:
    """The time, and the processor seconds that all processes and this one have spent on its cores; None where nothing tells."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        ticks, own_cores = os.sysconf("SC_CLK_TCK"), os.sched_getaffinity(0)
    except (OSError, ValueError, AttributeError):
        return None
    spent = 0
    for name, user, nice, system, _idle, _waits, *rest in map(str.split, (line for line in lines if re.match(r"cpu\d", line))):
        if int(name.removeprefix("cpu")) in own_cores:
            spent += int(user) + int(nice) + int(system) + sum(map(int, rest[:3]))  # interrupts, and what other machines took
    return time.monotonic(), spent / ticks, time.process_time()


SPARE = SpareCores()  # looks from the start of the process on


@cache
def keep_memory() -> bool:
    """From the first call on, this process keeps the memory that it has freed and takes its next tensors from it.

    For work of one kind over and over (training, measuring). glibc gives every larger piece back to the system and takes a new
    one, page by page, for the next tensor; whether it does depends on what else lies on the heap, so without this a pass over
    4 MB costs the one process a tenth of what it costs the other. What was used at the peak stays with the process; a server
    that is to shrink again should not call this. False where there is no such setting (not glibc).
    """
    try:
        change = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    mmap_threshold, trim_threshold = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
    return bool(change(mmap_threshold, 2**30)) and bool(change(trim_threshold, 2**31 - 1))


def release_memory() -> None:
    """Give back to the system what this process has freed; nothing happens where there is no such call (not glibc).

    Tensors of ever other sizes leave gaps on the heap: two minutes into a training on groceries it held 1.1 GB, 0.5 of them in
    use, and after an hour 5.9 GB.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def peak_memory() -> int:
    """The most bytes of memory that this process has held. Linux and macOS tell.

    Linux says so in `/proc`, if it is not hidden; what `getrusage` says there counts the process that started this one, too.
    """
    import resource  # not on Windows

    status = Path("/proc/self/status")
    match = re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"), re.MULTILINE) if status.exists() else None
    if match:
        return 1024 * int(match[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def describe_machine(device: torch.device) -> dict[str, Any]:
    """What every measured row carries: device, threads, load (of the machine, 0 where it does not tell), torch, commit, date."""
    return {
        "device": device_name(device), "threads": torch.get_num_threads(),
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0,
        "torch": torch.__version__, "commit": code_commit(), "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
    }  # fmt: skip


def code_commit() -> str:
    """The code's commit, with a + when this package differs from it; empty outside a checkout. What lies beside the code
    (a run that is being written, say) does not change what a number was measured with."""
    try:
        return _run_git("rev-parse", "--short=10", "HEAD") + ("+" if _run_git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _run_git(*words: str) -> str:
    result = subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=5, check=True)
    return result.stdout.strip()
