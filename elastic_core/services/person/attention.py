"""Where a model looks: which part of its reading the last event of a history gives to each event."""

from contextlib import suppress

import numpy as np
import torch

from elastic_core.core.batches import Batch, history_batch
from elastic_core.errors import InputError
from elastic_core.models import Recommender, Trace, as_tracing_model
from elastic_core.peers.parts.capabilities import AttentionModel
from elastic_core.services.person.recommend import History, stack_histories


@torch.inference_mode()
def trace_history(model: Recommender, items: np.ndarray) -> Trace:
    """What happens inside a model while it reads one history. Raises InputError for models that do not say."""
    return as_tracing_model(model).trace_reading(history_batch(items, model.length))


@torch.inference_mode()
def last_weights(model: AttentionModel, batch: Batch) -> np.ndarray | None:
    """Which part each event has of the weights of the last row, signs left out, mean over heads and layers: `[B, N]`."""
    weights = model.last_weights(batch)
    if weights is None:
        return None
    sizes = weights.abs().mean((0, 2)).double()
    return np.asarray((sizes / sizes.sum(-1, keepdim=True).clamp_min(1e-30)).numpy())


@torch.inference_mode()
def attention_weights(model: Recommender, history: History) -> np.ndarray | None:
    """Which part of its reading the last event gives each event, mean over heads and layers; NaN for events not read.

    None for models that show no attention. Through experts, head h of the dispatch reads what head h aggregated, so the path's
    weight is the sum over experts of slot weight times reading weight. Weights without a softmax count by their size.
    """
    n_read = min(len(history.items), model.length)
    weights = None
    if isinstance(model, AttentionModel):
        weights = last_weights(model, stack_histories([history], model.length))
    elif model.retrieves:
        with suppress(InputError):
            trace = trace_history(model, history.items)
            by_layer = [
                torch.einsum("bhk,bhkn->bhn", slots, reading)[0].mean(0)
                for slots, reading in zip(trace.slots, trace.reading, strict=True)
            ]
            weights = torch.stack(by_layer).mean(0).unsqueeze(0).numpy()
    if weights is None:
        return None
    attention = np.full(len(history.items), np.nan)
    attention[-n_read:] = weights[0, -n_read:]
    return attention
