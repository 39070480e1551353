"""What the Experts page keeps for runs without experts. See kit/cache.py for how runs and data are told apart."""

from elastic_core.peers.parts.capabilities import Codewords, Quantises
from elastic_core.services.experts import codewords as coded
from elastic_core.services.experts import intensities as timed
from elastic_core.services.experts import weights
from elastic_core.services.experts.codewords import Spread, Words
from pages.kit.cache import Opened
from pages.kit.kept import asking, kept


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


looked = asking(kept(64), weights.looked)
everybody = asking(kept(8, "Taking events away from other people, too …"), weights.weights_of_everybody)
intensities = asking(kept(64), timed.intensities)
surprise = asking(kept(8), timed.surprise)
