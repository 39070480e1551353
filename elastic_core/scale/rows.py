"""How the rows of a bank are learned (scale/row_bank.py): a step reads and writes those it looked up and no others.

    g ← sum of the gradients of the row's look-ups, clipped with all other gradients by one global norm
    w ← w + what the bank's rule makes of g (scale/row_rules.py)

Which rows they were has to be asked of the device, once a step and bank: it is waited for, as without banks it never is.

The running average a of the weights is kept up lazily. A row that nobody changes for n steps moves its average by the closed
form of n steps, a ← w + decayⁿ (a - w): equal to taking them one by one, up to rounding, and nothing at all for a row that was
never changed.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elastic_core.core.batches import Batch
from elastic_core.core.config import TrainConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.histories import Dataset
from elastic_core.core.objective import Loss
from elastic_core.core.step import Learner
from elastic_core.errors import InputError
from elastic_core.scale.row_bank import LookedUp, RowBank, row_banks, small_state
from elastic_core.scale.row_rules import rule_of

AT_ONCE = 1 << 16  # rows that are brought up to date together


class Summed(NamedTuple):
    """What the rows that a step looked up in one bank learned from it: their numbers `[r]`, ascending, each once, and the sums of
    their gradients, as the `.grad` of a stand-in `[r, d]` for who clips it with others."""

    numbers: Tensor
    standing_in: Tensor


class BankState:
    """What is kept of one bank besides its rows: what its rule keeps, and K whole numbers."""

    def __init__(self, bank: RowBank, average: RowBank | None, train: TrainConfig) -> None:
        self.bank, self.average = bank, average
        self.rule = rule_of(bank, train)
        self.counted = torch.zeros(
            len(bank.weight), dtype=torch.int32, device=bank.weight.device
        )  # the step up to which the average is; 0: never changed

    def known(self) -> Tensor:
        """The numbers of all rows that were ever changed, ascending."""
        return self.counted.nonzero().squeeze(1)

    def tables(self) -> dict[str, Tensor]:
        """All that changes with a row, by name: `[K]` or `[K, d]`."""
        tables = {"rows": self.bank.weight, "counted": self.counted, **self.rule.kept}
        return tables | ({} if self.average is None else {"average": self.average.weight})

    def state(self) -> dict[str, Tensor]:
        """All of the rows that were ever changed, and nothing of the others."""
        known = self.known()
        return {"numbers": known} | {key: values[known] for key, values in self.tables().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """The table must be what it was before the first step."""
        known = state["numbers"].to(self.counted.device)
        for key, values in self.tables().items():
            values[known] = state[key].to(values.device)


class RowLearner:
    """The banks of one model in training. `average`: the model whose banks are the running averages."""

    def __init__(self, model: nn.Module, average: nn.Module | None, train: TrainConfig) -> None:
        self.decay, self.steps = train.ema_decay, 0
        averages = {} if average is None else row_banks(average)
        self.kept = {name: BankState(bank, averages.get(name), train) for name, bank in row_banks(model).items()}

    @contextmanager
    def recorded(self) -> Iterator[dict[str, list[LookedUp]]]:
        """Around the forward pass of a step."""
        with ExitStack() as stack:
            yield {name: stack.enter_context(kept.bank.recorded()) for name, kept in self.kept.items()}

    def summed(self, looked_up: dict[str, list[LookedUp]]) -> dict[str, Summed]:
        """After the backward pass: the looked-up rows of every bank, with the sums of their gradients."""
        return {name: found for name, each in looked_up.items() if (found := summed(self.kept[name].bank, each)) is not None}

    @torch.no_grad()
    def step(self, touched: dict[str, Summed]) -> None:
        self.steps += 1
        for name, (numbers, standing_in) in touched.items():
            kept = self.kept[name]
            bank, moved = kept.bank, kept.rule.moves(numbers, standing_in.grad, self.steps)  # type: ignore[arg-type]
            if kept.average is None:
                bank.weight.index_add_(0, numbers, moved)
            else:
                old, average = (table.weight.index_select(0, numbers) for table in (bank, kept.average))
                average, new = self._followed(average, old, kept.counted[numbers], self.steps - 1), moved.add_(old)
                kept.average.weight.index_copy_(0, numbers, new if self.steps == 1 else average.lerp_(new, 1 - self.decay))
                bank.weight.index_copy_(0, numbers, new)
            kept.counted[numbers] = self.steps

    @torch.no_grad()
    def follow(self) -> None:
        """Brings the average of every changed row up to this step, as judging and keeping want it."""
        for kept in self.kept.values():
            if kept.average is None:
                continue
            known = kept.known()
            for some in known[kept.counted[known] < self.steps].split(AT_ONCE):
                now = self._followed(kept.average.weight[some], kept.bank.weight[some], kept.counted[some], self.steps)
                kept.average.weight[some], kept.counted[some] = now, self.steps

    def _followed(self, average: Tensor, rows: Tensor, since: Tensor, until: int) -> Tensor:
        """Averages of rows that were the same from after step `since` until after step `until`."""
        left = (until - since).clamp_min(0).double().mul(torch.tensor(self.decay, dtype=torch.float64).log()).exp()
        return torch.lerp(rows, average, left.to(rows.dtype).unsqueeze(1))


class LearnerOfRows(Learner):
    """The learner of a model some of whose tables are learned by rows; of these it keeps the rows that were ever changed."""

    def __init__(self, model: Recommender, *given: Any) -> None:
        """Raises InputError where they cannot be learned."""
        super().__init__(model, *given)
        items = any(bank.padding for bank in model.banks().values())
        which = "item_bank" if items else "bank"
        if self.ranks.count > 1:
            raise InputError(f"model.{which} = rows is learned by one process: leave out torchrun, or take model.{which}=dense")
        if items and self.objective.config.loss != "sampled":
            raise InputError("model.item_bank = rows needs objective.loss = sampled: the exact softmax learns from every item")
        if items and model.scorer().bank is None:
            raise InputError(f"{model.config.name} scores by other numbers than its item_bank: take model.item_bank=dense")
        self.rows = RowLearner(model, self.average and self.average.module, self.train)

    def loss(self, batch: Batch) -> Loss:
        with self.rows.recorded() as self.looked_up:
            return super().loss(batch)

    def clip(self, *more: Tensor) -> None:
        self.touched = self.rows.summed(self.looked_up)
        super().clip(*more, *(found.standing_in for found in self.touched.values()))

    def update(self) -> None:
        super().update()
        self.rows.step(self.touched)

    def judged(self, dataset: Dataset) -> Recommender:
        self.rows.follow()
        return super().judged(dataset)

    def known(self) -> dict[str, Tensor]:
        return {name: kept.known() for name, kept in self.rows.kept.items()}

    def state(self) -> dict[str, Any]:
        small = {name: small_state(model) for name, model in self._tabled().items()}
        banks = {name: kept.state() for name, kept in self.rows.kept.items()}
        return super().state() | small | {"rows": {"steps": self.rows.steps, "banks": banks}}

    def restore(self, kept: dict[str, Any]) -> None:
        """Banks must be what they were before the first step."""
        tables = {
            part: kept[part] | {f"{name}.weight": bank.weight for name, bank in row_banks(model).items()}
            for part, model in self._tabled().items()
        }
        super().restore(kept | tables)
        self.rows.steps = kept["rows"]["steps"]
        for name, bank in self.rows.kept.items():
            bank.restore(kept["rows"]["banks"][name])

    def _tabled(self) -> dict[str, nn.Module]:
        return {"model": self.model} | ({} if self.average is None else {"average": self.average})


def summed(bank: RowBank, looked_up: list[LookedUp]) -> Summed | None:
    """A step's look-ups of one bank, each row once; None if no gradient reached any."""
    reached = [each for each in looked_up if each.rows.grad is not None]
    if not reached:
        return None
    numbers, place = torch.cat([each.numbers.flatten() for each in reached]).unique(return_inverse=True)
    gradients = torch.cat([each.rows.grad.flatten(0, -2) for each in reached if each.rows.grad is not None])
    sums = torch.zeros(len(numbers), bank.weight.shape[1], dtype=gradients.dtype, device=gradients.device)
    standing_in = sums.index_add_(0, place, gradients).detach()  # of the same memory: a gradient needs a tensor of its shape
    if bank.padding:
        sums[:1].mul_((numbers[:1] != 0).unsqueeze(1))
    standing_in.grad = sums
    return Summed(numbers, standing_in)
