"""Which kernel reads the prefixes of the causal dispatch (core/dispatch.py, `read_chunks`): the same numbers, in fewer passes.

    plain     as torch differentiates it: the core's own
    written   with gradients written out (chunk_products.py), which a CPU takes where none is named
    fused     a chunk's inside in one kernel of a GPU (fused_slots.py), in float32
"""

import torch
from torch import Tensor

from elastic_core.core import dispatch
from elastic_core.scale.chunk_products import ReadChunks


def read_chunks(
    x: Tensor, weights: Tensor, queries: Tensor, bias: Tensor, start: dispatch.Sums | None, way: str = ""
) -> tuple[Tensor, Tensor]:
    """As the core's, in this `way`; "" chooses."""
    way = way or ("written" if x.device.type == "cpu" and not torch.compiler.is_compiling() else "plain")
    if way == "plain":
        return dispatch.read_chunks(x, weights, queries, bias, start)
    if way == "written":
        found: tuple[Tensor, Tensor] = ReadChunks.apply(x, weights, queries, bias, *(start or (None, None)))
        return found
    from elastic_core.scale.fused_slots import InsideChunks  # Triton is an extra

    found = InsideChunks.apply(x, weights, queries, bias, *dispatch.inherited(x, weights, start))
    return found
