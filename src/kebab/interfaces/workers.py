"""Threads that do the work, so that a long search does not keep the others waiting."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from threading import Event
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from kebab.core.errors import TimedOut

_Result = TypeVar("_Result")
_given_up: ContextVar[Event] = ContextVar("_given_up")
"""Of the call that a worker is at: set once nobody waits for it."""


class Workers:
    """Few of them: each keeps a connection with a cache of its own, and more than there are processors only wait for each other."""

    def __init__(self, timeout_s: float | None) -> None:
        """None: however long it takes."""
        self._timeout_s = timeout_s
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, call: Callable[..., _Result], *args: Any, **options: Any) -> _Result:
        """What the call returns; an answer that takes too long is no answer. What may take long asks now and then `is_unwanted`."""
        given_up = Event()
        _given_up.set(given_up)  # workers have a copy of the context they are called from
        try:
            with anyio.fail_after(self._timeout_s):
                return await run_sync(partial(call, *args, **options), limiter=self._places(), abandon_on_cancel=True)
        except TimeoutError as error:
            raise TimedOut(f"No answer was ready after {self._timeout_s:g} s.", hint="Ask for less, or raise serve.timeout_s.") from error
        finally:
            given_up.set()

    async def run_to_end(self, call: Callable[..., _Result], *args: Any) -> _Result:
        """However long it takes; when nobody waits for it any more, it has to notice by itself (anyio.from_thread.check_cancelled)."""
        return await run_sync(partial(call, *args), limiter=self._places())

    def patient(self, seconds: float) -> Workers:
        """Others, who may take so much longer: for what waits for a model elsewhere, and must not keep searches waiting meanwhile."""
        return Workers(None if self._timeout_s is None else self._timeout_s + seconds)

    def _places(self) -> anyio.CapacityLimiter:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(max(4, (os.cpu_count() or 2) + 2))
        return self._limiter


def is_unwanted() -> bool:
    """Whether what this worker does is of no use any more: whoever asked has gone, was told that it takes too long, or the server ends."""
    return _given_up.get().is_set()
