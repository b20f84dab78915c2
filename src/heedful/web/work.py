"""Computations for requests: a few at a time in threads, few that wait, and none for a client that has left."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, runtime_checkable

from heedful.web.guard import Refused, wait

T = TypeVar("T")
Check = Callable[[], None]
"""Is called between the parts of a computation; raises where nobody waits for the rest."""


class Left(Exception):
    """Nobody waits for this any more."""


@runtime_checkable
class Asking(Protocol):
    """A request, as far as it is of interest here."""

    @property
    def receive(self) -> Callable[[], Awaitable[MutableMapping[str, Any]]]: ...


class Work:
    """A few threads, and places to wait for them."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="heedful-web")
        self._free = asyncio.Semaphore(threads)
        self._most = threads + waiting
        self.under_way = 0
        """Computations that run or wait."""

    async def do(self, request: Asking, function: Callable[[Check], T]) -> T:
        """The function in a thread. Where the client leaves, it does not begin, or ends at its next check."""
        if self.under_way >= self._most:
            raise Refused(503, "Too many computations are waiting. Ask again in a moment.", wait(1.0))
        stop = threading.Event()
        self.under_way += 1
        task, left = asyncio.create_task(self._run(function, stop)), asyncio.create_task(_left(request))
        try:
            await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Left
            return task.result()
        finally:
            stop.set()
            task.cancel()
            left.cancel()
            self.under_way -= 1

    async def _run(self, function: Callable[[Check], T], stop: threading.Event) -> T:
        """A place is free again when its thread is: also of work that nobody waits for."""

        def check() -> None:
            if stop.is_set():
                raise Left

        await self._free.acquire()
        loop = asyncio.get_running_loop()
        job = self._pool.submit(function, check)
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(self._free.release))
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


async def _left(request: Asking) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
