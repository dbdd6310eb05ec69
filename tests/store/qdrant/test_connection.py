"""HTTP on one connection, as servers and the proxies before them speak it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import BadStatusLine, HTTPException, IncompleteRead, LineTooLong, RemoteDisconnected

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.config.cluster_address import Node
from kebab.store.qdrant.connection import Connection

OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def server(said: bytes, *, then_closed: bool = True) -> Iterator[tuple[Node, list[bytes]]]:
    """One that says this, whatever it is asked first; and what it was asked."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            accepted, _ = listening.accept()
            with accepted:
                heard.append(accepted.recv(1 << 16))
                accepted.sendall(said)
                if not then_closed:
                    accepted.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Node("127.0.0.1", listening.getsockname()[1]), heard
        finally:
            thread.join()


def opened(node: Node) -> Connection:
    return Connection(node, tls=False, timeout_s=5.0, headers={"api-key": "secret"})


@pytest.mark.parametrize(
    ("said", "status", "body", "goes_on"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", 200, b"hello", True),
        (OK + b"content-length:0\r\n\r\n", 200, b"", True),
        (
            OK + b"Transfer-Encoding: chunked\r\n\r\n3;x=1\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n",
            200,
            b"hello",
            True,
        ),
        (OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", False),
        (OK + b"\r\nuntil the end", 200, b"until the end", False),
        (b"HTTP/1.0 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", 503, b"busy", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok", 200, b"ok", True),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok", 200, b"ok", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
        (b"HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno", 404, b"no", True),
    ],
)
def test_an_answer_is_its_status_and_body(said: bytes, status: int, body: bytes, goes_on: bool) -> None:
    with server(said) as (node, heard), closing(opened(node)) as connection:
        assert connection.ask("POST", "/x?y=1", b"{}", 5.0) == (status, body)
        assert connection.is_open is goes_on
        head, _, sent = heard[0].partition(b"\r\n\r\n")
        assert head.split(b"\r\n") == [
            b"POST /x?y=1 HTTP/1.1",
            f"Host: {node}".encode(),
            b"api-key: secret",
            b"Content-Length: 2",
        ]
        assert sent == b"{}"


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        (b"", RemoteDisconnected),
        (b"SSH-2.0-OpenSSH\r\n", BadStatusLine),
        (OK + b"Content-Length: 50\r\n\r\nhello", IncompleteRead),
        (OK + b"Content-Length: many\r\n\r\n", HTTPException),
        (OK + b"Content-Length: -1\r\n\r\n", HTTPException),
        (OK + b"Content-Le", IncompleteRead),
        (OK + b"X: 1\r\n" * 101 + b"\r\n", HTTPException),
        (OK + b"X: " + b"x" * (1 << 16), LineTooLong),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhe", IncompleteRead),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n\r\n", HTTPException),
    ],
)
def test_what_is_cut_off_or_no_http_is_a_failure_and_never_half_an_answer(
    said: bytes, failure: type[Exception]
) -> None:
    with server(said) as (node, _), closing(opened(node)) as connection, pytest.raises(failure):
        connection.ask("GET", "/", None, 5.0)


def test_who_says_nothing_is_waited_for_as_long_as_was_said() -> None:
    with (
        server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", then_closed=False) as (node, _),
        closing(opened(node)) as connection,
    ):
        with pytest.raises(TimeoutError):
            connection.ask("GET", "/", None, 0.05)
        connection.close()


@given(st.binary(max_size=2000), st.lists(st.integers(1, 500), max_size=8))
def test_a_body_comes_whole_however_it_is_cut(body: bytes, cuts: list[int]) -> None:
    pieces: list[bytes] = []
    rest = body
    for cut in cuts:
        pieces, rest = [*pieces, rest[:cut]], rest[cut:]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, rest) if piece)
    said = OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    with server(said) as (node, _), closing(opened(node)) as connection:
        assert connection.ask("GET", "/", None, 5.0).body == body
