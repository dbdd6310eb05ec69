"""A chat server on loopback that speaks both protocols and fails in chosen ways."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest


class Request(NamedTuple):
    path: str
    headers: Message
    body: dict[str, Any]


class Reply(NamedTuple):
    """A scripted response: what the model writes, in pieces, and which failure follows."""

    pieces: Sequence[Any] = ()
    """Texts, or other JSON values that a server may send."""
    status: int = 200
    body: bytes | None = None
    """A body to send instead of a stream."""
    wait_s: float = 0.0
    """Seconds to wait before every piece."""
    breaks_off: bool = False
    """Whether the connection ends after the last piece without the end of the stream."""
    cut_off: bool = False
    error: str | None = None
    """An error object to send after the pieces."""


@dataclass
class ChatServer:
    address: str = ""
    requests: list[Request] = field(default_factory=list)
    script: list[Reply] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    abandoned: threading.Event = field(default_factory=threading.Event)
    """Set when the client disconnects before the end."""

    def said(self, number: int = -1) -> str:
        """All texts that a request sent to the model."""
        return "\n".join(message["content"] for message in self.requests[number].body["messages"])


def _lines(reply: Reply, path: str) -> Iterator[bytes]:
    openai = path.endswith("/chat/completions")
    for piece in reply.pieces:
        said: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        yield _line(said if openai else {"message": {"role": "assistant", "content": piece}, "done": False}, openai)
    if reply.error is not None:
        yield _line({"error": {"message": reply.error}} if openai else {"error": reply.error}, openai)
    elif not reply.breaks_off and openai:
        yield _line(
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "length" if reply.cut_off else "stop"}]}, openai
        )
        yield b"data: [DONE]\n\n"
    elif not reply.breaks_off:
        done = {
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "length" if reply.cut_off else "stop",
        }
        yield _line(done, openai)


def _line(said: dict[str, Any], openai: bool) -> bytes:
    text = json.dumps(said, ensure_ascii=False).encode()
    return b"data: " + text + b"\n\n" if openai else text + b"\n"


@pytest.fixture(scope="session")
def _chat_server() -> Iterator[ChatServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.requests.append(Request(self.path, self.headers, body))
            reply = served.script.pop(0) if served.script else Reply(["Yes ", "[1]."])
            try:
                self.send_response(reply.status)
                self.send_header("Connection", "close")
                self.end_headers()
                if reply.body is not None:
                    self.wfile.write(reply.body)
                    return
                for line in _lines(reply, self.path):
                    if served.stopping.wait(reply.wait_s):
                        return
                    self.wfile.write(line)
                    self.wfile.flush()
            except OSError:
                served.abandoned.set()

        def log_message(self, format: str, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = ChatServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.stopping.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def chat_server(_chat_server: ChatServer) -> ChatServer:
    _chat_server.requests.clear()
    _chat_server.script.clear()
    _chat_server.abandoned.clear()
    return _chat_server
