"""A model whose forward pass is compiled by torch, on a GPU."""

import torch

from elastic_core.core.contract import Recommender
from elastic_core.core.plugs import ask_all
from elastic_core.errors import InputError

COMPILERS = {"cuda": "inductor"}  # on a processor it took minutes, and then failed


def compile_in_place(model: Recommender, mode: str, device: torch.device) -> None:
    """Its forward pass from now on runs compiled, one program for every shape of batch. Raises InputError where it cannot."""
    if device.type not in COMPILERS:
        raise InputError(f"train.compile = {mode} is for a GPU: leave it out on {device.type}")
    if model.banks():
        raise InputError("train.compile does not reach tables that are learned by rows: leave it out, or keep them dense")
    ask_all()
    model.compile(backend=COMPILERS[device.type], mode=mode, dynamic=False)
