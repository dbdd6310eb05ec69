"""Threads that do the work, so that a long search does not keep the others waiting."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from kebab.core.deadline import time_limit
from kebab.core.errors import TimedOut

_Result = TypeVar("_Result")
is_long: ContextVar[bool] = ContextVar("is_long", default=False)
"""Whether the current request is much longer than a question. Such requests share one thread, so that a page of text,
which takes many times as long to search for, never makes ordinary questions wait."""


class Workers:
    """Few threads: each has a connection with its own cache, and more threads than processors only wait."""

    def __init__(self, timeout_s: float | None) -> None:
        """None: no limit."""
        self._timeout_s = timeout_s
        self._limiters: dict[bool, anyio.CapacityLimiter] = {}

    async def run(self, call: Callable[..., _Result], *args: Any, **options: Any) -> _Result:
        """What the call returns, or TimedOut. The call sees the same limit through `kebab.core.deadline`."""
        with time_limit(self._timeout_s) as deadline:  # the thread gets a copy of this context
            try:
                with anyio.fail_after(self._timeout_s):
                    return await run_sync(
                        partial(call, *args, **options), limiter=self._places(), abandon_on_cancel=True
                    )
            except TimeoutError as error:
                hint = "Ask for less, or raise serve.timeout_s."
                raise TimedOut(f"No answer was ready after {self._timeout_s:g} s.", hint=hint) from error
            finally:
                deadline.give_up()

    async def run_to_end(self, call: Callable[..., _Result], *args: Any) -> _Result:
        """Without a time limit. The call has to notice by itself that its caller is gone
        (anyio.from_thread.check_cancelled).
        """
        return await run_sync(partial(call, *args), limiter=self._places())

    def patient(self, seconds: float) -> Workers:
        """Separate workers with more time, for calls that wait for a remote model and must not block searches."""
        return Workers(None if self._timeout_s is None else self._timeout_s + seconds)

    def _places(self) -> anyio.CapacityLimiter:
        long = is_long.get()
        if long not in self._limiters:
            self._limiters[long] = anyio.CapacityLimiter(1 if long else max(4, (os.cpu_count() or 2) + 2))
        return self._limiters[long]
