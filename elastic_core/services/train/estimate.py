"""How long a training would take here, for whoever may ask for it in the app."""

from elastic_core.data import Dataset
from elastic_core.run_config import RunConfig
from elastic_core.services import public
from elastic_core.training_time import Estimate, estimate_training


def estimate_time(config: RunConfig, dataset: Dataset) -> Estimate:
    """As `estimate_training`. Raises InputError in public mode, too."""
    public.refuse_in_public("measurement")
    return estimate_training(config, dataset)
