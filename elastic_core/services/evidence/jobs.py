"""A memory is asked in the background (background/queue.py); the row goes where meaning.py keeps them."""

from typing import Any, NamedTuple

from elastic_core.errors import InputError
from elastic_core.runs import Run
from elastic_core.services.background.everybody import fingerprint, opened
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import Queue, Task, name_of_run
from elastic_core.services.evidence import meaning


class Asked(NamedTuple):
    run: str
    weights: str


class Questions(Queue[Task[Asked]]):
    """The memories below a checkpoints folder that were asked what they stand for."""

    kind, noun, act = "evidence", "measurement", "measurement"

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Asked:
        if not isinstance(plain.get("weights"), str):
            raise InputError("its job.json names no weights")
        return Asked(name_of_run(plain), plain["weights"])

    def work(self, task: Task[Asked], hand: Hand) -> str:
        run = self.run(task.asked.run)
        model, dataset = opened(run, task.asked.weights, hand)
        row = meaning.measure(run, model, dataset, lambda share: hand.tell(round(100 * share), 100, "Asking the memory"))
        meaning.keep(self.root, row)
        return ""

    def submit(self, run: Run) -> Task[Asked]:
        return self.ask(lambda: self.about(run))

    def about(self, run: Run) -> dict[str, Any]:
        """What a job.json says that asks the memory of a run."""
        return {"run": run.name, "weights": fingerprint(run)}
