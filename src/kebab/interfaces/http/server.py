"""Runs the application on a port until it is told to stop; then what is under way is finished, and the exit is a clean one."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from kebab.core.errors import UsageError

if TYPE_CHECKING:
    from starlette.applications import Starlette

_LAST_SECONDS = 10
"""How long open connections may take to end once the server was told to stop."""


def listen(host: str, port: int) -> socket.socket:
    """The socket, bound before anything else is done: a port that is taken is noticed at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said to be TCP, or asyncio would not send small packets at once, and every answer would wait 40 ms for the one before.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host.strip("[]"), port))
    except (OSError, OverflowError) as error:
        taken.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(
            f"Nobody can listen on {host}:{port}: {reason}.", hint="Choose another --port (0 takes a free one), or --host."
        ) from error
    return taken


def address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run(app: Starlette, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Until SIGINT or SIGTERM; `ready` is called once requests are answered."""
    config = uvicorn.Config(
        app,
        access_log=False,  # what people look for is theirs
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_LAST_SECONDS,
        lifespan="on",
    )
    asyncio.run(_Server(config, ready).serve(sockets=[listening]))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but stopping when told to is a success: the signal is not raised again at the end."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
