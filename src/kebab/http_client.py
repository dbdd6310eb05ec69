"""HTTP requests with a time limit for the whole request, which the caller can also cancel at any moment.

The time limits of httpx apply to each single read, so a server that sends a byte now and then would never time out. A
request therefore runs on an event loop in its own thread, where it can be cancelled, except during a name lookup.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx2
    from anyio.from_thread import BlockingPortal

T = TypeVar("T")

_LOOK_UP_S = 0.05
"""How often a waiting request checks whether the caller wants to stop."""
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


class Stopped(Exception):
    """Raised when the caller has stopped the request."""


class Response:
    """Status, headers and body. The body is received while it is read; OSError if the connection breaks."""

    def __init__(self, response: httpx2.Response, waiting: _Waiting) -> None:
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.headers: Mapping[str, str] = response.headers
        self._parts = response.aiter_raw()
        self._waiting = waiting

    def parts(self, seconds: float = inf) -> Iterator[bytes]:
        """The parts of the body. TimeoutError after this many seconds, or at the time limit of the request."""
        ends = time.monotonic() + seconds
        while part := self._waiting.result(lambda: anext(self._parts, b""), ends):
            yield part

    def lines(self, longest: int) -> Iterator[str]:
        """The body's lines with their line ends; lines of more than `longest` bytes may be split."""
        line = b""
        for part in self.parts():
            *whole, line = (line + part).split(b"\n")
            yield from (each.decode("utf-8", "replace") + "\n" for each in whole)
            if len(line) > longest:
                yield line.decode("utf-8", "replace")
                line = b""
        if line:
            yield line.decode("utf-8", "replace")


@contextmanager
def opened(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    content: bytes | None = None,
    seconds: float,
    quiet_seconds: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Iterator[Response]:
    """Sends a request and returns the response, whatever its status. Redirects are not followed.

    Raises OSError if there is no answer, TimeoutError after `seconds` in all or `quiet_seconds` without data, and
    Stopped once `stop` returns true.
    """
    import httpx2
    from anyio.from_thread import start_blocking_portal

    ends = time.monotonic() + seconds
    headers = {"User-Agent": "kebab", "Accept-Encoding": "identity", **headers}
    connections: list[Any] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            connections.append(info["return_value"])

    with start_blocking_portal(name="kebab-http") as portal:
        waiting = _Waiting(portal, ends, stop)
        with _as_os_errors():
            client = httpx2.AsyncClient(
                proxy=_proxy(url),
                trust_env=False,
                timeout=quiet_seconds,
                # Redirects are not followed, so a request without TLS needs no certificates.
                verify=ssl.create_default_context() if url.startswith("https:") else False,
            )
        try:
            with _as_os_errors():
                request = client.build_request(
                    method, url, headers=headers, content=content, extensions={"trace": trace}
                )
            response = waiting.result(lambda: client.send(request, auth=None, stream=True))
            yield Response(response, waiting)
        finally:
            portal.call(client.aclose)
            for connection in connections:  # httpx leaves a connection open that is cancelled during its TLS handshake
                portal.call(connection.aclose)


class _Waiting:
    """Waits for work on the event loop, and cancels the work on a timeout or when the caller stops it."""

    def __init__(self, portal: BlockingPortal, ends: float, stop: Callable[[], bool] | None) -> None:
        self._portal = portal
        self._ends = ends
        self._stop = stop

    def result(self, work: Callable[[], Awaitable[T]], ends: float = inf) -> T:
        ends = min(ends, self._ends)
        future = self._portal.start_task_soon(work)
        try:
            while True:
                if self._stop is not None and self._stop():
                    raise Stopped
                left = max(0.0, ends - time.monotonic())
                try:
                    with _as_os_errors():
                        return future.result(left if self._stop is None else min(left, _LOOK_UP_S))
                except TimeoutError:
                    if future.done() or time.monotonic() >= ends:
                        raise TimeoutError("timed out") from None
        finally:
            future.cancel()  # has no effect on a finished future


@contextmanager
def _as_os_errors() -> Iterator[None]:
    import httpx2

    try:
        yield
    except httpx2.TimeoutException as error:
        raise TimeoutError("timed out") from error
    except (
        httpx2.HTTPError,
        httpx2.InvalidURL,
        ValueError,
        ImportError,
    ) as error:  # an invalid proxy raises one of the last two
        raise OSError(_reason(error)) from error


def _reason(error: BaseException) -> str:
    """The message of an error; if connecting failed, the operating system's message from the nested exceptions."""
    said, inner = str(error) or type(error).__name__, error.__context__
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):  # it has one exception for each address of the host
            inner = inner.exceptions[0]
        if isinstance(inner, OSError) and inner.errno is not None and "Connect call failed" in str(inner):
            return f"[Errno {inner.errno}] {os.strerror(inner.errno)}"
        inner = inner.__cause__ or inner.__context__
    return said


def _proxy(url: str) -> str | None:
    """The proxy that the environment sets for this URL; None for addresses of this machine."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if parts.hostname in _THIS_MACHINE or proxy_bypass(parts.netloc):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"
