"""Requests that wait together are answered together, by one thread that alone holds the model and the events.

No request is held back for company: one that comes while the thread is free is answered alone, and those that come meanwhile
are the next batch.
"""

import asyncio
import queue
import threading

from elastic_core.serving.service import ListService, Request

Waiting = tuple[Request, "asyncio.Future[Request]"]


class Busy(Exception):
    """Too many requests wait already."""


class Batcher:
    """Belongs to the event loop in which it is made. `max_batch` requests are answered together, `max_waiting` may wait."""

    def __init__(self, service: ListService, max_batch: int = 64, max_waiting: int = 512) -> None:
        self.service, self.max_batch, self.max_waiting = service, max_batch, max_waiting
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()  # None ends the thread
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="batcher", daemon=True)
        self._thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether a request would be taken now."""
        return self._thread.is_alive() and self._queue.qsize() < self.max_waiting

    async def submit(self, request: Request) -> Request:
        """The same request, answered. Raises Busy, or the error of the request."""
        if self._queue.qsize() >= self.max_waiting:
            raise Busy
        future: asyncio.Future[Request] = self._loop.create_future()
        self._queue.put((request, future))
        answered = await future
        if answered.error is not None:
            raise answered.error
        return answered

    def close(self) -> None:
        """Answers what waits, then ends the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < self.max_batch and not self._queue.empty():  # no other thread takes from the queue
                request = self._queue.get()
                if request is None:
                    self._queue.put(None)
                    break
                batch.append(request)
            self._answer(batch)

    def _answer(self, batch: list[Waiting]) -> None:
        requests = [request for request, _ in batch]
        try:
            self.service.answer(requests)
        except Exception as error:
            for request in requests:
                request.error = request.error or error
        self._loop.call_soon_threadsafe(_resolve_futures, batch)


def _resolve_futures(batch: list[Waiting]) -> None:
    for request, future in batch:
        if not future.done():  # the caller may have gone away
            future.set_result(request)
