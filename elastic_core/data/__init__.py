"""Data: readers, catalogue, histories, sources and the planted world. Most callers need only `load`."""

from elastic_core.core.histories import Catalog, Dataset, Histories
from elastic_core.data.sources import load
from elastic_core.data.synthetic import Truth, planted

__all__ = ["Catalog", "Dataset", "Histories", "Truth", "load", "planted"]
