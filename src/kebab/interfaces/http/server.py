"""Runs the application on a port until a signal stops it. Open requests may finish first."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kebab.core.errors import UsageError
from kebab.interfaces.http.safety import SAFE_HEADERS
from kebab.wire import to_json
from kebab.wire.errors import error_v1

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

_LAST_SECONDS = 10
"""Seconds that open connections may take to end after the signal to stop."""


def listen(host: str, port: int) -> socket.socket:
    """Returns a bound socket. It is bound before the server starts, so that a taken port is reported immediately."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only then; otherwise each answer is 40 ms late.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host.strip("[]"), port))
    except (OSError, OverflowError) as error:
        taken.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(
            f"It is not possible to listen on {host}:{port}: {reason}.",
            hint="Choose another --port (0 takes a free one), or --host.",
        ) from error
    return taken


def address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run(app: Starlette, listening: socket.socket, ready: Callable[[], None], timeout_s: float) -> None:
    """Serves until SIGINT or SIGTERM. Calls `ready` after the start. `timeout_s`: seconds to wait for each request."""
    config = uvicorn.Config(
        _ending_quietly(app),
        http=type("Connection", (_Connection,), {"timeout_s": timeout_s}),
        access_log=False,  # queries are private
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_LAST_SECONDS,
        lifespan="on",
    )
    asyncio.run(_Server(config, ready, app.state.begin_to_stop).serve(sockets=[listening]))


def _ending_quietly(app: Starlette) -> ASGIApp:
    """The application without error reports for the requests that are cancelled when the server stops."""

    async def quietly(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return quietly


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], begin_to_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._begin_to_stop = begin_to_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._begin_to_stop()  # first, because callers that follow an ingest stay connected until it ends
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals as uvicorn does, but does not raise them again at the end: stopping is a success."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Connection(H11Protocol):
    """A connection that closes if no request comes in time, so that idle connections do not block others."""

    timeout_s: float
    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_request()
        else:
            self._wait_no_longer()

    def send_400_response(self, msg: str) -> None:
        """Answers a request that is not valid HTTP. The application never sees it."""
        error = UsageError(msg, hint="Send it with an HTTP client, or through a proxy that forwards valid requests.")
        body = to_json(error_v1(error)).encode()
        framing = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
        headers = list((SAFE_HEADERS | framing).items())
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        if self._closing is None:
            self._closing = self.loop.call_later(self.timeout_s, self.transport.close)

    def _wait_no_longer(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
