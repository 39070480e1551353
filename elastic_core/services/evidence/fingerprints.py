"""Which weights a run had when something was measured of it."""

import functools
import hashlib
from pathlib import Path

from elastic_core import files
from elastic_core.errors import InputError
from elastic_core.runs import MOST_WEIGHTS, WEIGHTS, Run


def weights_fingerprint(run: Run) -> str:
    """Of the weights, sixteen hex digits; empty where they cannot be read."""
    return _hash_file(run.path, files.file_stamp(run.path / WEIGHTS))


@functools.lru_cache(maxsize=1024)
def _hash_file(path: Path, stamp: tuple[int, ...]) -> str:
    try:
        return hashlib.sha256(files.read_bytes(path / WEIGHTS, MOST_WEIGHTS, path)).hexdigest()[:16]
    except InputError:
        return ""
