"""The data that one may choose from."""

from elastic_core.run_config import DataConfig
from elastic_core.services.data.cards import at_hand_choices
from elastic_core.services.data.shelf import Shelf
from pages.kit import shell


def choices() -> dict[str, DataConfig]:
    """All on this machine by name, those in view first."""
    now = shell.current()
    return at_hand_choices(Shelf(shell.RUNS / "uploads").choices(), now.run.config.data if now else None)
