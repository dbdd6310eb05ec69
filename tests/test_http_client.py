"""A time limit applies to a whole response, whichever part of it arrives slowly."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kebab.answering.chat_client import chat_client
from kebab.config.settings import AskSettings
from kebab.core.errors import ModelUnreachable, SourceError
from kebab.core.ports import Message
from kebab.endpoints import Passing, endpoint
from kebab.sources.git_mirror import FetchLimits, GitMirror
from kebab.sources.origin import fetch

LIMIT_S = 1.0
LATEST_S = 2.5
DROPS = {
    "status line": b"HTTP/1.1 200 " + b"x" * 200,
    "header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200,
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 40,
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b"x" * 200,
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 40,
    "chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 200,
    "error": b"HTTP/1.1 503 Busy\r\nContent-Length: 500\r\n\r\n" + b"x" * 200,
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 10,
    "nothing": b"",
}
AT_ONCE = 60
"""The number of bytes that arrive without a pause, so that each part of a response is reached."""


class DroppingServer:
    """A server that sends the beginning of a response at once and the rest byte by byte; then it is silent or
    disconnects.
    """

    def __init__(self) -> None:
        self.answer = b""
        self.hangs_up = False
        self.over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._socket.accept()[0],), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            client.sendall(self.answer[:AT_ONCE])
            for byte in self.answer[AT_ONCE:]:
                if self.over.wait(0.1):
                    return
                client.sendall(bytes([byte]))
            if not self.hangs_up:
                self.over.wait()

    def close(self) -> None:
        self.over.set()
        self._socket.close()


@pytest.fixture
def server() -> Iterator[DroppingServer]:
    made = DroppingServer()
    yield made
    made.close()


def seconds_of(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("part", DROPS)
def test_fetching_ends_at_its_limit(server: DroppingServer, part: str, scheme: str) -> None:
    """With https it is the handshake that arrives byte by byte."""
    server.answer = DROPS[part] if scheme == "http" else b"\x16\x03\x03\x3f\xff" + DROPS[part]

    def run() -> None:
        with pytest.raises(SourceError, match=r"took longer than 1 seconds|answered 503"):
            fetch(f"{scheme}://127.0.0.1:{server.port}/llms.txt", FetchLimits(LIMIT_S, 1))

    assert seconds_of(run) < LATEST_S


@pytest.mark.parametrize("part", DROPS)
def test_asking_an_endpoint_ends_at_its_limit(server: DroppingServer, part: str) -> None:
    server.answer = DROPS[part]
    asked = endpoint("embedding", f"http://127.0.0.1:{server.port}", "/x", "", LIMIT_S, meanwhile="", too_long="")

    def run() -> None:
        with pytest.raises(Passing, match=r"timed out|status 503"):
            asked.asked({"input": "x" * 1000})

    assert seconds_of(run) < LATEST_S


@pytest.mark.parametrize("part", ["header", "body", "nothing"])
def test_a_chat_ends_at_its_limit_and_leaves_no_thread(server: DroppingServer, part: str) -> None:
    server.answer = DROPS[part]
    model = chat_client(AskSettings(model="openai:tiny", endpoint=f"http://127.0.0.1:{server.port}", timeout_s=LIMIT_S))
    assert model is not None

    def run() -> None:
        with pytest.raises(ModelUnreachable, match="took longer than 1 seconds"):
            model.write([Message("user", "How long?")])

    assert seconds_of(run) < LATEST_S
    ends = time.monotonic() + 2
    while any(thread.name == "kebab-http" for thread in threading.enumerate()):
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_all_redirects_share_one_limit(server: DroppingServer) -> None:
    location = f"Location: http://127.0.0.1:{server.port}/x\r\n\r\n".encode()
    server.answer = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nX: ".ljust(AT_ONCE, b"x") + b"xxxxx\r\n"
    server.answer += location  # 0.1 s for each byte of it, and up to five times

    def run() -> None:
        with pytest.raises(SourceError, match="took longer than 6 seconds"):
            fetch(f"http://127.0.0.1:{server.port}/", FetchLimits(6, 1))

    assert seconds_of(run) < 8


def test_all_git_commands_of_one_fetch_share_one_limit(server: DroppingServer, tmp_path: Path) -> None:
    """After a fetch failed, git lists what the other side has, which may take as long."""
    server.answer = b"0fff".ljust(AT_ONCE, b"x") + b"x" * 22
    server.hangs_up = True
    limits = FetchLimits(3, 10)

    def run() -> None:
        with pytest.raises(SourceError):
            GitMirror(tmp_path / "mirror.git", f"git://127.0.0.1:{server.port}/x", limits).fetch_default()

    assert seconds_of(run) < 4


def test_a_request_goes_through_the_proxy_of_the_environment(
    server: DroppingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthe proxy"
    monkeypatch.setenv("http_proxy", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("no_proxy", "")
    assert fetch("http://docs.example.invalid/llms.txt", FetchLimits(10, 1)) == b"the proxy"


def test_a_request_can_be_made_where_an_event_loop_runs(server: DroppingServer) -> None:
    """A notebook runs an event loop, for example."""
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    async def run() -> bytes:
        return fetch(f"http://127.0.0.1:{server.port}/", FetchLimits(10, 1))

    assert asyncio.run(run()) == b"hi"
