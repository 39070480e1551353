"""Chromium for the browser tests: the one that is there, or Debian's, installed where that can be done (root, apt-get)."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find() -> str | None:
    """The path of a Chromium, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


def install() -> str | None:
    """Debian's Chromium, if this user may install packages. Returns its path, or None where it could not be had."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 400, "check": False}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with (Path(tempfile.gettempdir()) / "elastic-install-browser.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # apt-get serves one at a time; whoever waited finds it installed
        if found := find():
            return found
        try:
            subprocess.run(["apt-get", "update"], env=environment, **quiet)
            packages = ["chromium", "fonts-dejavu-core"]
            subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", *packages], env=environment, **quiet)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return find()


if __name__ == "__main__":
    print(find() or install() or "no Chromium here, and none could be installed")
