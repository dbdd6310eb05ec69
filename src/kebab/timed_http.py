"""HTTP with one deadline for everything: connecting, sending, and an answer that may come byte by byte.

A socket's own time limit holds for each of its reads, so a server that sends a byte now and then would be waited for
without end. Here every operation on the socket gets what is left until the deadline. Only looking up a name is left to
the limits of the resolver.
"""

from __future__ import annotations

import socket
import time
import urllib.request
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from math import inf
from typing import Any

_SHORTEST = 0.001
"""Zero would mean not to wait at all."""


class TimeBudget:
    def __init__(self, seconds: float, quiet_seconds: float = inf) -> None:
        """`quiet_seconds`: how long nothing at all may come."""
        self._ends = time.monotonic() + seconds
        self._quiet_seconds = quiet_seconds

    def left(self) -> float:
        """Seconds; TimeoutError when there are none."""
        if self.is_over:
            raise TimeoutError("timed out")
        return min(max(self._ends - time.monotonic(), _SHORTEST), self._quiet_seconds)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._ends


class TimedOpener:
    def __init__(self, *handlers: urllib.request.BaseHandler | type[urllib.request.BaseHandler]) -> None:
        self._opener = urllib.request.build_opener(_TimedHandler, _TimedTlsHandler, *handlers)

    def open(self, request: urllib.request.Request, deadline: TimeBudget) -> Any:
        """The response, whose reads end at the deadline, too. urllib hands it on to every connection, those of
        redirects included.
        """
        return self._opener.open(request, timeout=deadline)  # type: ignore[arg-type]  # only _TimedConnection looks at it


def shut_down(response: Any) -> None:
    """Wakes a thread that waits for more of a response."""
    reader = getattr(getattr(response, "fp", None), "raw", None)
    if isinstance(reader, _TimedReader):
        reader.shut_down()


class _TimedReader(RawIOBase):
    def __init__(self, raw: Any, connection: socket.socket, deadline: TimeBudget) -> None:
        self._raw = raw
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(self._deadline.left())
        count: int | None = self._raw.readinto(buffer)
        return count

    def shut_down(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, deadline: TimeBudget, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp: Any = BufferedReader(_TimedReader(self.fp.detach(), sock, deadline))


class _TimedConnection(HTTPConnection):
    def __init__(self, host: str, port: int | None, timeout: Any, *arguments: Any, **options: Any) -> None:
        self._deadline: TimeBudget = timeout
        super().__init__(host, port, self._deadline.left(), *arguments, **options)
        self.response_class = partial(_TimedResponse, deadline=self._deadline)  # type: ignore[assignment]  # called like the class
        self._create_connection = self._connected  # http.client calls it for every connection, also to a proxy

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self._deadline.left())  # for a TLS handshake, which comes next

    def send(self, data: Any) -> None:
        if self.sock is not None:
            self.sock.settimeout(self._deadline.left())
        super().send(data)

    def _connected(self, address: tuple[str, int], *_: Any) -> socket.socket:
        """To the first address of the host that takes it; all of them share the time."""
        failed = OSError(f"{address[0]} has no address")
        for family, kind, protocol, _name, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(self._deadline.left())
                connection.connect(place)
            except OSError as error:
                connection.close()
                failed = error
            else:
                return connection
        raise failed


class _TimedTlsConnection(HTTPSConnection, _TimedConnection):
    """Connects as _TimedConnection does, then shakes hands."""


class _TimedHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_TimedConnection, port=None), req)


class _TimedTlsHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_TimedTlsConnection, req, context=self._context)  # type: ignore[attr-defined]  # private, and passed on as here
