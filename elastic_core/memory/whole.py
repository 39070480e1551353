"""What looks at every expert of a memory at once (maps, surveys, neighbours), and up to how many it does."""

from elastic_core.core.contract import Recommender, can_retrieve
from elastic_core.errors import InputError

MOST = 65_536  # 256²


def too_many(model: Recommender) -> str:
    """Why not every expert of this model is looked at, a sentence without its stop; nothing if it is."""
    if not can_retrieve(model) or model.n_experts <= MOST:
        return ""
    return f"this memory has {model.n_experts:,} experts, and up to {MOST:,} are looked at one by one"


def check_size(model: Recommender) -> None:
    """Raises InputError with that sentence."""
    if reason := too_many(model):
        raise InputError(reason)
