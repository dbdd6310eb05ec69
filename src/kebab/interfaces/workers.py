"""Runs searches in threads, so that a long search does not delay other requests."""

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
"""Whether the current request has much more text than a question. Long requests share one thread, because they take
many times as long and would make short ones wait."""


class Workers:
    """Runs calls in a few threads, about one per processor: each thread has a connection with its own cache."""

    def __init__(self, timeout_s: float | None) -> None:
        """`timeout_s`: seconds that a call may take; None means no limit."""
        self._timeout_s = timeout_s
        self._limiters: dict[bool, anyio.CapacityLimiter] = {}

    async def run(self, call: Callable[..., _Result], *args: Any, **options: Any) -> _Result:
        """Returns the result of a call, or raises TimedOut. `kebab.core.deadline` tells the call its time limit."""
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
        """Returns the result of a call that has no time limit and is not abandoned if the caller disconnects. The call
        may check that itself, with anyio.from_thread.check_cancelled.
        """
        return await run_sync(partial(call, *args), limiter=self._places())

    def patient(self, seconds: float) -> Workers:
        """Other workers with more time, for calls that wait for a remote model and must not block searches."""
        return Workers(None if self._timeout_s is None else self._timeout_s + seconds)

    def _places(self) -> anyio.CapacityLimiter:
        long = is_long.get()
        if long not in self._limiters:
            self._limiters[long] = anyio.CapacityLimiter(1 if long else max(4, (os.cpu_count() or 2) + 2))
        return self._limiters[long]
