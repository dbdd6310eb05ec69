"""Serves MCP over stdin and stdout, until stdin ends or a signal arrives."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from threading import Thread
from typing import cast

import anyio
from mcp.server.stdio import stdio_server

from kebab.core.text import json_values
from kebab.interfaces.mcp.server import make_server
from kebab.interfaces.service import Service, Workers

_PIECE = 1 << 16


def run(service: Service) -> None:
    asyncio.run(_serve(service))


async def _serve(service: Service) -> None:
    server = make_server(service, Workers(None))
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_told, group.cancel_scope)
        lines = cast("anyio.AsyncFile[str]", _Lines())  # the server only iterates over its lines
        async with stdio_server(stdin=lines) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _stop_when_told(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


class _Lines:
    """Yields the lines of stdin. A daemon thread reads them, because a blocking read would keep a stopped server alive.

    For all other code of this process and its children, stdin is then empty.
    """

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        descriptor = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        Thread(target=self._read, args=(descriptor,), name="stdin", daemon=True).start()

    def _read(self, descriptor: int) -> None:
        rest = b""
        while piece := _piece(descriptor):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._put(_whole(line))
        self._put(None)

    def _put(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            if line.strip():
                yield line


def _piece(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE)
    except OSError:  # the terminal was closed
        return b""


def _whole(line: bytes) -> str:
    """The line with lone surrogates replaced, also those in JSON escapes: they would make the message unreadable."""
    text = line.decode("utf-8", "replace")
    if "\\ud" not in text.lower():
        return text
    try:
        return json.dumps(json_values(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
