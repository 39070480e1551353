"""Several processes train one model: `torchrun --nproc-per-node 2 -m elastic_core train …`.

Every process draws the same batch of `train.batch` rows, goes through its share of them (rows r, r + n, …), and adds its
gradients to the others'. Losses are sums over targets, divided by one number that is the same for all, so a step is that of one
process up to the order of its sums; clipping, optimiser and averages then see the same gradient everywhere. What is no sum over
rows says how it is shared: the balance of a memory is that of the whole batch (`batch_mean`), the negatives of a sampled softmax
are one draw (`same_draw`), any other side loss is the mean of the shares'. Dropout is drawn by each process for itself.

Rank 0 alone writes, validates and decides; the others are told (`run_on_first`). Numbers and decisions go by gloo, gradients on
GPUs by NCCL, so whoever has ended is noticed by all.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from elastic_core.core.batches import ALONE, SingleProcess
from elastic_core.errors import Elsewhere, InputError, out_of_memory

PATIENCE = timedelta(hours=6)  # of a process that waits while rank 0 validates; one that has ended is noticed at once

T = TypeVar("T")


class PeerEnded(InputError):
    """Another process of the training is not there any more."""


@dataclass(frozen=True)
class ProcessGroup(SingleProcess):
    """This process among several of one training."""

    rank: int
    count: int
    local: int = 0  # its number on this machine

    def choose_device(self, device: torch.device) -> torch.device:
        """A GPU of its own for each process of a machine. Raises InputError if there are too few."""
        if device.type != "cuda" or device.index is not None:
            return device
        if self.local >= torch.cuda.device_count():
            raise InputError(f"each process of a machine needs a GPU, and this one has {torch.cuda.device_count()}")
        return torch.device("cuda", self.local)

    # --- what is decided once ----------------------------------------------------------------------------------------

    def run_on_first(self, do: Callable[..., T], *arguments: Any) -> T:
        """What rank 0 does, and nobody else: all have its result, or end with its refusal, which it says alone."""
        message: list[Any] = [None, None]
        if self.rank == 0:
            try:
                message[0] = do(*arguments)
            except InputError as error:
                with suppress(PeerEnded):
                    self._send_refusal([None, str(error)])
                raise
        self._send_refusal(message)
        if message[1] is not None:
            raise Elsewhere(message[1])
        return message[0]

    def run_on_each(self, do: Callable[[], T]) -> T:
        """What each does for itself; if one is refused all end, and the first of these says why."""
        results: list[T] = []
        refusal: InputError | None = None
        try:
            results.append(do())
        except InputError as error:
            refusal = error
        refusals: list[str | None] = [None] * self.count
        with _notice_ended():
            dist.all_gather_object(refusals, None if refusal is None else str(refusal))
        first_refusing = next((rank for rank, text in enumerate(refusals) if text is not None), None)
        if first_refusing is None:
            return results[0]
        raise refusal if refusal is not None and first_refusing == self.rank else Elsewhere(refusals[first_refusing])

    def run_alike(self, do: Callable[[], T]) -> T:
        """What follows from the same numbers everywhere, refusals included: rank 0 says them."""
        try:
            return do()
        except PeerEnded:
            raise
        except InputError as error:
            if self.rank:
                raise Elsewhere(str(error)) from None
            raise

    # --- numbers -----------------------------------------------------------------------------------------------------

    def add_numbers(self, numbers: list[float]) -> list[float]:
        """Of everybody's numbers, one by one."""
        return self._reduce_tensor(torch.tensor(numbers, dtype=torch.float64)).tolist()

    def add_tensors(self, numbers: Tensor) -> Tensor:
        """The same of numbers on a device, which stay there."""
        return self._reduce_tensor(numbers)

    def find_largest(self, number: int) -> int:
        return int(self._reduce_tensor(torch.tensor(number), dist.ReduceOp.MAX))

    def add_gradients(self, model: nn.Module) -> None:
        """Every parameter's gradient becomes the sum of everybody's; one that nobody has stays None."""
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        use_counts = self.add_numbers([float(parameter.grad is not None) for parameter in parameters])
        used_parameters = [parameter for parameter, count in zip(parameters, use_counts, strict=True) if count]
        for kind in {parameter.dtype for parameter in used_parameters}:
            each = [parameter for parameter in used_parameters if parameter.dtype == kind]
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in each]
            flat = self._reduce_tensor(torch.cat([gradient.flatten() for gradient in gradients]))
            for parameter, summed in zip(each, flat.split([p.numel() for p in each]), strict=True):
                parameter.grad = summed.view_as(parameter)

    def even_out(self, tensors: Iterable[Tensor]) -> None:
        """All have what rank 0 has: statistics that each worked out from the same histories."""
        for tensor in tensors:
            with _notice_ended():
                dist.broadcast(tensor, 0)

    def batch_mean(self, x: Tensor) -> Tensor:
        """The gradient is that of the share's part, times the number of processes: their mean is the gradient of the whole."""
        rows = self.add_numbers([len(x)])[0]
        own = x.sum(0) * (self.count / rows)
        mean = self._reduce_tensor(own.detach().clone()) / self.count
        return own + (mean - own).detach()

    def _reduce_tensor(self, x: Tensor, how: Any = dist.ReduceOp.SUM) -> Tensor:
        with _notice_ended():
            dist.all_reduce(x, how)
        return x

    def _send_refusal(self, message: list[Any]) -> None:
        with _notice_ended():
            dist.broadcast_object_list(message, 0, device=torch.device("cpu"))


@contextmanager
def join_processes() -> Iterator[SingleProcess]:
    """The processes that torchrun started, or this one alone. Raises InputError if they do not find each other."""
    environment = {name: os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    if not all(value.isdecimal() for value in environment.values()) or int(environment["WORLD_SIZE"]) == 1:
        yield ALONE
        return
    ranks = ProcessGroup(int(environment["RANK"]), int(environment["WORLD_SIZE"]), int(environment["LOCAL_RANK"]))
    if ranks.local < torch.cuda.device_count():
        torch.cuda.set_device(ranks.local)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        dist.init_process_group(backend, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:150]
        raise InputError(f"the processes of this training do not find each other ({reason})") from None
    yield ranks
    dist.destroy_process_group()  # not after an error: it could wait for somebody who has ended


@contextmanager
def _notice_ended() -> Iterator[None]:
    """Around what all take part in: whoever has ended is missed here."""
    try:
        yield
    except RuntimeError as error:
        if out_of_memory(error):
            raise
        raise PeerEnded(
            "another process of this training has ended, so this one does; the same command goes on from the last whole epoch"
        ) from error
