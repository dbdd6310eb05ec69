"""The worker threads of a server: work whose caller has gone ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from threading import Event

import pytest

from kebab.core.deadline import check, is_over
from kebab.core.errors import TimedOut
from kebab.interfaces.service import Workers


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

    def long() -> str:
        while not release.is_set():
            check()
        return "done"

    async def race() -> tuple[str, list[str]]:
        workers = Workers(30)
        waiting = [asyncio.create_task(workers.run(long)) for _ in range(12)]
        await asyncio.sleep(0)
        try:
            first = await asyncio.wait_for(workers.run(lambda: "answered"), 20)
        finally:
            release.set()
        return first, await asyncio.gather(*waiting)

    assert asyncio.run(race()) == ("answered", ["done"] * 12)


def test_a_call_that_waits_for_a_model_is_made_once() -> None:
    calls = []

    def long() -> None:
        calls.append(1)
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            check()

    asyncio.run(Workers(30).patient(10).run(long))
    assert len(calls) == 1
