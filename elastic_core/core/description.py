"""What there is to know of a data set before training on it, for a terminal and for a notebook."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from elastic_core.core.histories import Dataset


def describe_dataset(dataset: "Dataset") -> list[tuple[str, str]]:
    """A name and a text each, in the order in which they are shown."""
    lengths, counts, catalog = dataset.histories.lengths, dataset.all_counts()[1:], dataset.catalog
    first, last = (np.datetime64(int(f(dataset.histories.times)), "s").astype("datetime64[D]") for f in (np.min, np.max))
    density = lengths.sum() / (len(lengths) * catalog.n_items)
    return [
        ("data", f"{dataset.label} (hash {dataset.hash})"),
        *((f"read: {what}", meaning) for what, meaning in dataset.understood),
        ("people", f"{len(lengths):,}"),
        ("items", f"{catalog.n_items:,} ({'with' if catalog.titles is not None else 'without'} titles)"),
        ("events", f"{lengths.sum():,} ({density:.2%} of all pairs)"),
        ("history lengths", _describe_spread(lengths)),
        ("events per item", _describe_spread(counts)),
        ("time", f"{first} to {last}" if dataset.has_times else "none: the order in the file counts"),
        *([("equal times", str(dataset.ties))] if dataset.ties else []),
        ("licence", dataset.licence),
        *(("note", note) for note in dataset.notes),
    ]


def _describe_spread(values: np.ndarray) -> str:
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9]).astype(int)
    tenths = f"10%, half, 90% are at most {low:,}, {middle:,}, {high:,}"
    return f"{values.min():,} to {values.max():,}, mean {values.mean():.1f}; {tenths}"
