"""One open connection to a server, and HTTP on it: a request in one piece, and the answer's status and body.

The standard library's client takes 0.1 ms of Python for a request and its answer, most of it for headers that nobody
reads; a search sends four of them.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import BadStatusLine, HTTPException, IncompleteRead, LineTooLong, RemoteDisconnected
from typing import BinaryIO, NamedTuple
from weakref import finalize

from kebab.config.cluster_address import Node

_LONGEST_LINE = 1 << 16
_MOST_HEADERS = 100
_WITHOUT_BODY = (204, 304)
_STATUS = re.compile(rb"HTTP/1\.(?P<version>\d) (?P<code>\d{3})[ \r\n]")


class Answer(NamedTuple):
    status: int
    body: bytes


class Connection:
    """Closed at the latest when nobody has it any more: a thread may end without a word."""

    def __init__(self, node: Node, *, tls: bool, timeout_s: float, headers: Mapping[str, str]) -> None:
        self._socket = _connected(node, tls=tls, timeout_s=timeout_s)
        self._from_server: BinaryIO = self._socket.makefile("rb")
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in {"Host": str(node), **headers}.items())
        self._timeout_s = timeout_s
        self.used = time.monotonic()
        self.is_open = True
        """Not, when the server wants no further request on it."""
        finalize(self, _close, self._from_server, self._socket)

    def ask(self, method: str, target: str, data: bytes | None, timeout_s: float) -> Answer:
        """OSError or HTTPException where it fails; the connection is of no use then."""
        self.send(method, target, data, timeout_s)
        return self.receive()

    def send(self, method: str, target: str, data: bytes | None, timeout_s: float) -> None:
        if timeout_s != self._timeout_s:
            self._socket.settimeout(timeout_s)
            self._timeout_s = timeout_s
        length = "" if data is None else f"Content-Length: {len(data)}\r\n"
        head = f"{method} {target} HTTP/1.1\r\n{self._headers}{length}\r\n".encode("latin-1")
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # it may have answered before it heard all, to say that this is too much
            self._socket.sendall(head + (data or b""))

    def answers_within(self, seconds: float) -> bool:
        """Whether the answer to what was sent begins to arrive in that time."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return bool(waiting.poll(1000 * seconds))

    def receive(self) -> Answer:
        answer = self._answer()
        self.used = time.monotonic()
        return answer

    def close(self) -> None:
        self.is_open = False
        _close(self._from_server, self._socket)

    def _answer(self) -> Answer:
        status = self._status()
        while status < 200:  # a proxy may say that one should go on, or what is to come
            self._read_headers()
            status = self._status()
        headers = self._read_headers()
        self.is_open = self.is_open and b"close" not in headers.get(b"connection", b"").lower()
        if status in _WITHOUT_BODY:
            return Answer(status, b"")
        if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
            return Answer(status, self._chunks())
        if b"content-length" in headers:
            return Answer(status, self._bytes(_number(headers[b"content-length"])))
        self.is_open = False
        return Answer(status, self._from_server.read())

    def _status(self) -> int:
        line = self._from_server.readline(_LONGEST_LINE)
        if not line:
            raise RemoteDisconnected("the server closed the connection without an answer")
        status = _STATUS.match(line)
        if status is None:
            raise BadStatusLine(repr(line[:80]))
        self.is_open = status["version"] != b"0"
        return int(status["code"])

    def _read_headers(self) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = {}
        for _ in range(_MOST_HEADERS):
            line = self._line()
            if not line:
                return headers
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        raise HTTPException(f"more than {_MOST_HEADERS} headers")

    def _chunks(self) -> bytes:
        pieces = []
        while size := _number(self._line().partition(b";")[0], base=16):
            pieces.append(self._bytes(size))
            self._line()
        self._read_headers()
        return b"".join(pieces)

    def _line(self) -> bytes:
        line = self._from_server.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise LineTooLong("header") if len(line) == _LONGEST_LINE else IncompleteRead(line)
        return line.rstrip(b"\r\n")

    def _bytes(self, count: int) -> bytes:
        data = self._from_server.read(count)
        if len(data) < count:
            raise IncompleteRead(data, count - len(data))
        return data


def _connected(node: Node, *, tls: bool, timeout_s: float) -> socket.socket:
    plain = socket.create_connection((node.host, node.port), timeout_s)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not tls:
            return plain
        import ssl

        return ssl.create_default_context().wrap_socket(plain, server_hostname=node.host)
    except BaseException:
        plain.close()
        raise


def _close(from_server: BinaryIO, connected: socket.socket) -> None:
    with suppress(OSError):
        from_server.close()
    with suppress(OSError):
        connected.close()


def _number(text: bytes, base: int = 10) -> int:
    try:
        number = int(text, base)
    except ValueError as error:
        raise HTTPException(f"no length: {text[:80]!r}") from error
    if number < 0:
        raise HTTPException(f"no length: {number}")
    return number
