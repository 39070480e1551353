"""Requests that wait together are answered together, by one thread that alone holds the model and the events.

Nobody is kept waiting for company: whoever comes while the thread is free is answered alone, and those who come meanwhile next.
"""

import asyncio
import queue
import threading
from collections.abc import Callable

from elastic_core.serving.answers import Answers, Request

Waiting = tuple[Request, "asyncio.Future[Request]"]


class Busy(Exception):
    """Too many requests wait already."""


class Desk:
    """For the event loop in which it is opened. `together`: so many requests in one batch; `most`: so many may wait."""

    def __init__(self, answers: Answers, together: int = 64, most: int = 512, told: Callable[[int], None] = lambda size: None):
        self.answers, self.together, self.most, self._told = answers, together, most, told
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="answers", daemon=True)
        self._thread.start()

    async def ask(self, request: Request) -> Request:
        """The same request, answered. Raises Busy, or what went wrong."""
        if self._waiting.qsize() >= self.most:
            raise Busy
        future: asyncio.Future[Request] = self._loop.create_future()
        self._waiting.put((request, future))
        answered = await future
        if answered.error is not None:
            raise answered.error
        return answered

    def close(self) -> None:
        """Answers who waits, then ends."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while len(batch) < self.together and not self._waiting.empty():  # nobody else takes from it
                another = self._waiting.get()
                if another is None:
                    self._waiting.put(None)
                    break
                batch.append(another)
            self._answer(batch)

    def _answer(self, batch: list[Waiting]) -> None:
        requests = [request for request, _ in batch]
        try:
            self.answers.answer(requests)
        except Exception as error:
            for request in requests:
                request.error = request.error or error
        self._told(len(batch))
        self._loop.call_soon_threadsafe(_hand_over, batch)


def _hand_over(batch: list[Waiting]) -> None:
    for request, future in batch:
        if not future.done():  # who asked may have gone
            future.set_result(request)
