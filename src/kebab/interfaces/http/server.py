"""The ASGI application (REST, the web page, mounted applications, errors as responses), and running it on a port until
a signal stops it. Open requests may finish first.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import NamedTuple

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from kebab.core.errors import Internal, KebabError, NoSuchMethod, NotFound, TooMany, UsageError
from kebab.interfaces.http.api import Api, Endpoint, Handler, json_response
from kebab.interfaces.http.ingest_jobs import IngestJobs
from kebab.interfaces.http.libraries_api import LibrariesApi
from kebab.interfaces.http.openapi import document
from kebab.interfaces.http.pages import Pages
from kebab.interfaces.http.safety import SAFE_HEADERS, Rules, Safety, Tokens
from kebab.interfaces.service import Service, Workers
from kebab.wire import to_json
from kebab.wire.errors import error_v1


class Mounted(NamedTuple):
    """Another ASGI application at one path of this server, and the context manager to run it in."""

    path: str
    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[None]]


def make_app(service: Service, rules: Rules, *, mounted: Sequence[Mounted] = ()) -> Starlette:
    workers = Workers(rules.timeout_s)
    jobs = IngestJobs(service)
    tokens = Tokens(rules)
    pages = Pages(service, jobs, workers, rules, tokens)
    api = Api(service, jobs, workers, workers.patient(service.kb.settings.ask.timeout_s))
    endpoints = [*api.endpoints(), *LibrariesApi(service, workers).endpoints(), *api.ask_endpoints()]
    described = json.dumps(document(endpoints), ensure_ascii=False)

    async def openapi(_request: Request) -> Response:
        return Response(described, media_type="application/json")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for one in mounted:
                await stack.enter_async_context(one.running())
            yield
            await workers.run_to_end(jobs.stop)

    app = Starlette(
        routes=[
            *_routes(endpoints),
            Route("/openapi.json", openapi),
            *pages.routes(),
            *[Route(one.path, one.app) for one in mounted],
        ],
        middleware=[
            Middleware(Safety, rules=rules, tokens=tokens, refuse=refuse),
            Middleware(_Compression, answers_too=not rules.only_here),
            # Innermost, so that Safety adds its headers to the report of a defect too.
            Middleware(ExceptionMiddleware, handlers={Exception: _defect}),
        ],
        exception_handlers={KebabError: _failed, HTTPException: _failed, ClientDisconnect: _gone},
        lifespan=lifespan,
    )
    app.state.pages = pages
    app.state.begin_to_stop = jobs.begin_to_stop
    return app


class _Compression:
    """Compresses pages, and with `answers_too` REST and MCP responses, which are faster uncompressed on one machine."""

    def __init__(self, app: ASGIApp, *, answers_too: bool) -> None:
        self._plain = app
        self._packed = GZipMiddleware(app, minimum_size=1400, compresslevel=4)
        self._answers_too = answers_too

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_answer = scope["type"] != "http" or scope["path"].startswith(("/api/", "/mcp"))
        await (self._plain if is_answer and not self._answers_too else self._packed)(scope, receive, send)


def _routes(endpoints: Sequence[Endpoint]) -> Iterator[Route]:
    """Yields one route for each address, for all its methods. A {doc_id} may be a path, with slashes."""
    for path in dict.fromkeys(endpoint.path for endpoint in endpoints):
        handlers = {endpoint.method: endpoint.handler for endpoint in endpoints if endpoint.path == path}
        address = f"/api/{path.replace('{doc_id}', '{doc_id:path}')}"
        yield Route(address, partial(_by_method, handlers), methods=list(handlers))


async def _by_method(handlers: Mapping[str, Handler], request: Request) -> Response:
    return await handlers["GET" if request.method == "HEAD" else request.method](request)


# --- errors


def refuse(request: Request, error: KebabError) -> Response:
    """Returns the response that reports an error: a page for browsers, otherwise JSON."""
    pages: Pages = request.app.state.pages
    if pages.is_asked_by(request):
        response = pages.refused(request, error)
    elif request.url.path.startswith("/api/v2/"):
        hint = f" {error.hint}" if error.hint else ""
        response = json_response({"error": error.code, "message": f"{error.message}{hint}"}, error.status)
    else:
        response = json_response(error_v1(error), error.status)
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, KebabError):
        return refuse(request, error)
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        hint = "See /openapi.json for what there is."
        return refuse(request, NotFound(f"There is nothing at {request.url.path}.", hint=hint))
    if error.status_code == 405:
        hint = "See /openapi.json for what it takes."
        response = refuse(request, NoSuchMethod(f"{request.url.path} does not take {request.method}.", hint=hint))
        response.headers.update(error.headers or {})
        return response
    return refuse(request, UsageError(f"{error.detail}.", hint="See /openapi.json for what is taken."))


async def _gone(_request: Request, _error: Exception) -> Response:
    """The caller disconnected while sending, so no response arrives and no defect is reported."""
    return Response(status_code=400)


async def _defect(request: Request, error: Exception) -> Response:
    traceback.print_exception(error, file=sys.stderr)
    return refuse(request, Internal.of(error))


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
        hint = "Choose another --port (0 takes a free one), or --host."
        raise UsageError(f"It is not possible to listen on {host}:{port}: {reason}.", hint=hint) from error
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
