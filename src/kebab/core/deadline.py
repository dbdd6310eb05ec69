"""A time limit that all code working for one request can read, and that the request's owner can end early.

The limit is a context variable, so that functions need not pass it as an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic, thread_time

from kebab.core.errors import TimedOut


class Deadline:
    """A time limit. Nested in another deadline, it ends no later than that one."""

    def __init__(self, seconds: float | None, cpu_seconds: float | None = None) -> None:
        """`cpu_seconds`: of the thread that makes the deadline, and that alone asks whether it is over."""
        self._outer = _current.get()
        self._end = inf if seconds is None else monotonic() + seconds
        self._cpu_end = None if cpu_seconds is None else thread_time() + cpu_seconds
        self._given_up = False

    def give_up(self) -> None:
        """Ends the time limit now, because the result is no longer wanted. Any thread may call this."""
        self._given_up = True

    def left(self) -> float:
        """The seconds until this deadline, at least 0."""
        return max(0.0, min(self._end - monotonic(), inf if self._outer is None else self._outer.left()))

    def is_over(self) -> bool:
        if self._cpu_end is not None and thread_time() >= self._cpu_end:
            self._given_up = True
        return self._given_up or monotonic() >= self._end or (self._outer is not None and self._outer.is_over())

    @property
    def is_given_up(self) -> bool:
        """Whether the work was told to stop, and not only because its time is over."""
        return self._given_up


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def time_limit(seconds: float | None, *, cpu_seconds: float | None = None) -> Iterator[Deadline]:
    """Limits the `with` block to these seconds. With None there is no limit, but `give_up` still ends the work."""
    deadline = Deadline(seconds, cpu_seconds)
    token = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(token)


def is_over() -> bool:
    """Whether the current work should stop."""
    deadline = _current.get()
    return deadline is not None and deadline.is_over()


def at_most(seconds: float) -> float:
    """These seconds, or the rest of the current time limit if that is less."""
    deadline = _current.get()
    return seconds if deadline is None else min(seconds, deadline.left())


def check() -> None:
    """Raises TimedOut once the current work should stop. Called between steps that take a few milliseconds."""
    if is_over():
        raise timed_out()


def timed_out() -> TimedOut:
    return TimedOut("The search took too long and was stopped.", hint="Ask for less, or raise search.timeout_s.")
