"""Batches one ahead of the model: while a GPU works, another thread draws the next and lays it where the GPU can fetch it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import torch

from elastic_core.core.batches import Batch


def prefetch_batches(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """The batches, on the device, in their order. What is drawn follows from the batches alone, whoever draws it, and what is
    raised there is raised here."""
    return (batch.to(device) for batch in draw_in_advance(batch.map_tensors(torch.Tensor.pin_memory) for batch in batches))


def draw_in_advance(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches, each drawn by another thread while the one before it is in use."""
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as other:
        next_batch = other.submit(next, batches, None)
        while (batch := next_batch.result()) is not None:
            next_batch = other.submit(next, batches, None)
            yield batch
