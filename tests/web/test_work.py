"""Computations for clients that stay, that leave, and that come when all places are taken."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from heedful.web.guard import Refused
from heedful.web.work import Check, Left, Work

Leaving = Callable[[], Awaitable[dict[str, Any]]]


class Client:
    """Someone who waits for so many seconds."""

    def __init__(self, patience: float) -> None:
        self.patience = patience

    @property
    def receive(self) -> Leaving:
        async def left() -> dict[str, Any]:
            await asyncio.sleep(self.patience)
            return {"type": "http.disconnect"}

        return left


def patiently(check: Check) -> int:
    """Work in parts, without an end but that nobody waits."""
    parts = 0
    while True:
        check()
        parts += 1
        time.sleep(0.005)


def test_what_is_computed_is_answered() -> None:
    async def ask() -> int:
        return await Work(1, 1).do(Client(60), lambda _: 7)

    assert asyncio.run(ask()) == 7


def test_what_goes_wrong_is_raised_and_a_place_is_free_again() -> None:
    async def ask() -> int:
        work = Work(1, 0)
        with pytest.raises(ZeroDivisionError):
            await work.do(Client(60), lambda _: 1 // 0)
        return await work.do(Client(60), lambda _: work.under_way)

    assert asyncio.run(ask()) == 1


def test_work_ends_at_its_next_check_when_the_client_leaves() -> None:
    ended = threading.Event()

    def work_on(check: Check) -> int:
        try:
            return patiently(check)
        finally:
            ended.set()

    async def ask() -> int:
        work = Work(1, 1)
        with pytest.raises(Left):
            await work.do(Client(0.05), work_on)
        await asyncio.to_thread(ended.wait, 10)
        return await work.do(Client(60), lambda _: 3)  # the thread is free again

    assert asyncio.run(ask()) == 3
    assert ended.is_set()


def test_work_that_waits_is_never_begun_when_its_client_leaves() -> None:
    begun: list[str] = []

    async def ask() -> None:
        work, hold = Work(1, 5), threading.Event()
        first = asyncio.create_task(work.do(Client(60), lambda _: hold.wait(10)))
        await asyncio.sleep(0.02)
        with pytest.raises(Left):
            await work.do(Client(0.02), lambda _: begun.append("left"))
        hold.set()
        await first
        await work.do(Client(60), lambda _: begun.append("stayed"))
        assert work.under_way == 0

    asyncio.run(ask())
    assert begun == ["stayed"]


def test_when_all_places_are_taken_more_is_refused_with_when_to_come_again() -> None:
    async def ask() -> None:
        work, hold = Work(1, 1), threading.Event()
        taken = [asyncio.create_task(work.do(Client(60), lambda _: hold.wait(10))) for _ in range(2)]
        await asyncio.sleep(0.02)
        with pytest.raises(Refused, match="Too many computations are waiting") as refused:
            await work.do(Client(60), lambda _: None)
        assert (refused.value.status, refused.value.headers) == (503, {"retry-after": "1"})
        hold.set()
        await asyncio.gather(*taken)

    asyncio.run(ask())
