"""What the Experts page keeps for runs without experts. See kit/cache.py for how runs and data are told apart."""

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Codewords, Quantises
from elastic_core.runs import Run
from elastic_core.services.experts import codewords as coded
from elastic_core.services.experts import intensities as timed
from elastic_core.services.experts import weights
from elastic_core.services.experts.codewords import Spread, Words
from elastic_core.services.experts.intensities import Intensities, Surprise
from elastic_core.services.experts.weights import Everybody, Looked
from pages.kit.kept import kept


@kept(4, "Judging what each codeword’s items have in common …")
def codewords(run: Run, model: Recommender, data: Dataset) -> Words:
    return coded.judge_words(_codes(run, model), data)


@kept(4)
def _codes(run: Run, model: Recommender) -> Codewords:
    assert isinstance(model, Quantises)
    return coded.codewords(model)


@kept(64)
def spread(run: Run, model: Recommender, data: Dataset, user: int) -> Spread:
    return coded.spread(_codes(run, model), data, user, model.length)


@kept(64)
def looked(run: Run, model: Recommender, data: Dataset, user: int, stay: bool) -> Looked:
    return weights.looked(model, data, user, stay)


@kept(8, "Taking events away from other people, too …")
def everybody(run: Run, model: Recommender, data: Dataset, stay: bool) -> Everybody:
    return weights.weights_of_everybody(model, data, stay)


@kept(64)
def intensities(run: Run, model: Recommender, data: Dataset, user: int) -> Intensities | None:
    return timed.intensities(model, data, user)


@kept(8)
def surprise(run: Run, model: Recommender, data: Dataset) -> Surprise | None:
    return timed.surprise(model, data)
