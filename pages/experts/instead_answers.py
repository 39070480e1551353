"""What the Experts page keeps for runs without experts. See kit/cache.py for how runs and data are told apart."""

from elastic_core.peers.parts.capabilities import Codewords, Quantises
from elastic_core.services.experts import codewords as coded
from elastic_core.services.experts import intensities as timed
from elastic_core.services.experts import weights
from elastic_core.services.experts.codewords import Spread, Words
from elastic_core.services.experts.intensities import Intensities, Surprise
from elastic_core.services.experts.weights import Everybody, Looked
from pages.kit.cache import Opened
from pages.kit.kept import kept


@kept(4, "Judging what each codeword’s items have in common …")
def codewords(of: Opened) -> Words:
    return coded.judge_words(_codes(of), of.dataset)


@kept(4)
def _codes(of: Opened) -> Codewords:
    assert isinstance(of.model, Quantises)
    return coded.codewords(of.model)


@kept(64)
def spread(of: Opened, user: int) -> Spread:
    return coded.spread(_codes(of), of.dataset, user, of.model.length)


@kept(64)
def looked(of: Opened, user: int, stay: bool) -> Looked:
    return weights.looked(of.model, of.dataset, user, stay)


@kept(8, "Taking events away from other people, too …")
def everybody(of: Opened, stay: bool) -> Everybody:
    return weights.weights_of_everybody(of.model, of.dataset, stay)


@kept(64)
def intensities(of: Opened, user: int) -> Intensities | None:
    return timed.intensities(of.model, of.dataset, user)


@kept(8)
def surprise(of: Opened) -> Surprise | None:
    return timed.surprise(of.model, of.dataset)
