"""A memory is asked in the background (background/queue.py); the row goes where meaning.py keeps them."""

from elastic_core.services.background.everybody import OverEverybody, RunAsked
from elastic_core.services.background.process import Hand
from elastic_core.services.background.queue import Task
from elastic_core.services.evidence import meaning


class Questions(OverEverybody):
    """The memories below a checkpoints folder that were asked what they stand for."""

    kind, noun = "evidence", "measurement"

    def work(self, task: Task[RunAsked], hand: Hand) -> str:
        tell = lambda share: hand.tell(round(100 * share), 100, "Asking the memory")  # noqa: E731
        meaning.keep_meaning(self.root, meaning.measure_meaning(*self.opened(task, hand), tell))
        return ""
