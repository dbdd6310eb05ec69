"""The worker threads of a server: work whose caller has gone ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from threading import Event

import pytest

from kebab.core.deadline import is_over
from kebab.core.errors import TimedOut
from kebab.interfaces.service import Workers, is_long


class Endless:
    """A call that works until it is given up."""

    def __init__(self) -> None:
        self.began, self.ended = Event(), Event()

    def __call__(self) -> None:
        self.began.set()
        while not is_over():
            time.sleep(0.01)
        time.sleep(0.5)  # whoever waits gives up first
        self.ended.set()


async def times_out(call: Endless) -> None:
    with pytest.raises(TimedOut):
        await Workers(0.05).run(call)


async def is_cancelled(call: Endless) -> None:
    """Cancels a call as a server does when it stops."""
    task = asyncio.create_task(Workers(None).run(call))
    while not call.began.is_set():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("given_up", [times_out, is_cancelled])
def test_work_of_a_disconnected_caller_is_stopped(given_up: Callable[[Endless], Awaitable[None]]) -> None:
    """Regression: a stopping server waited more than a minute for a model that had not answered yet."""
    call = Endless()

    async def both() -> None:
        await given_up(call)
        assert await asyncio.to_thread(call.ended.wait, 5)
        assert await Workers(None).run(is_over) is False

    asyncio.run(both())


def test_short_requests_do_not_wait_for_long_ones() -> None:
    release = Event()

    async def race() -> str:
        workers = Workers(30)
        is_long.set(True)
        waiting = [asyncio.create_task(workers.run(release.wait, 30)) for _ in range(20)]
        await asyncio.sleep(0.1)
        is_long.set(False)
        try:
            return await asyncio.wait_for(workers.run(lambda: "answered"), 10)
        finally:
            release.set()
            await asyncio.gather(*waiting)

    assert asyncio.run(race()) == "answered"
