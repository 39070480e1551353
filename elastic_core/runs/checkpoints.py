"""Where runs lie: checkpoints/ of the folder one is in, else of the checkout, else a place of the user's own."""

import os
from pathlib import Path


def find_checkpoints(workplace: Path, checkout: Path) -> Path:
    """`workplace` as a relative path stays one. $XDG_DATA_HOME (~/.local/share) holds runs of a package that was installed."""
    for folder in (workplace / "checkpoints", checkout / "checkpoints"):
        if folder.is_dir():
            return folder
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "elastic/checkpoints"


CHECKPOINTS = find_checkpoints(Path(), Path(__file__).resolve().parents[2])
