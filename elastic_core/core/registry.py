"""The list of models. A new one is one file in `peers/`, or in a folder that ELASTIC_PLUGINS names, with `@register`."""

from elastic_core.core.config import ModelConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Catalog
from elastic_core.core.plugs import Shelf, plugged

MODELS: Shelf[type[Recommender]] = Shelf("models")
register, model_class = MODELS.register, MODELS.named


def build(config: ModelConfig, catalog: Catalog) -> Recommender:
    """A fresh model for a catalogue; with what plugs in (models.py), checked to be one that there is room for."""
    kind = plugged("checked models") or model_class(config.name)
    made: Recommender = kind(config, catalog)
    return made
