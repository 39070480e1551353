"""What the Experts page keeps for runs without experts. See kit/cache.py for how runs and data are told apart."""

from elastic_core.data import Dataset
from elastic_core.models import Recommender
from elastic_core.peers.parts.capabilities import Codewords, Quantises
from elastic_core.services.experts import codewords as coded
from elastic_core.services.experts import intensities as timed
from elastic_core.services.experts import weights
from elastic_core.services.experts.codewords import Spread, Words
from elastic_core.services.experts.intensities import Intensities, Surprise
from elastic_core.services.experts.weights import Everybody, Looked
from pages.frame.shell import Context
from pages.kit import cache
from pages.kit.kept import kept

Key = tuple[str, str, str]


def _key(now: Context) -> Key:
    return str(now.run.path), cache.stamp(now.run), now.dataset.hash


def codewords(now: Context) -> Words:
    return _words(_key(now), now.model, now.dataset)


@kept(4, "Judging what each codeword’s items have in common …")
def _words(key: Key, _model: Recommender, _data: Dataset) -> Words:
    return coded.words(_codes(key, _model), _data)


@kept(4)
def _codes(key: Key, _model: Recommender) -> Codewords:
    assert isinstance(_model, Quantises)
    return coded.codewords(_model)


def spread(now: Context) -> Spread:
    return _spread(_key(now), now.user, now.model, now.dataset)


@kept(64)
def _spread(key: Key, user: int, _model: Recommender, _data: Dataset) -> Spread:
    return coded.spread(_codes(key, _model), _data, user, _model.length)


def looked(now: Context, stay: bool) -> Looked:
    return _looked(_key(now), now.user, stay, now.model, now.dataset)


@kept(64)
def _looked(key: Key, user: int, stay: bool, _model: Recommender, _data: Dataset) -> Looked:
    return weights.looked(_model, _data, user, stay)


def everybody(now: Context, stay: bool) -> Everybody:
    return _everybody(_key(now), stay, now.model, now.dataset)


@kept(8, "Taking events away from other people, too …")
def _everybody(key: Key, stay: bool, _model: Recommender, _data: Dataset) -> Everybody:
    return weights.everybody(_model, _data, stay)


def intensities(now: Context) -> Intensities | None:
    return _intensities(_key(now), now.user, now.model, now.dataset)


@kept(64)
def _intensities(key: Key, user: int, _model: Recommender, _data: Dataset) -> Intensities | None:
    return timed.intensities(_model, _data, user)


def surprise(now: Context) -> Surprise | None:
    return _surprise(_key(now), now.model, now.dataset)


@kept(8)
def _surprise(key: Key, _model: Recommender, _data: Dataset) -> Surprise | None:
    return timed.surprise(_model, _data)
