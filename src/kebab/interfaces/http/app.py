"""The ASGI application: REST, the web page, mounted applications, and errors as responses."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from kebab.core.errors import Internal, KebabError, NoSuchMethod, NotFound, TooMany, UsageError
from kebab.interfaces.http.api import Api, json_response
from kebab.interfaces.http.ingest_jobs import IngestJobs
from kebab.interfaces.http.libraries_api import LibrariesApi
from kebab.interfaces.http.openapi import document
from kebab.interfaces.http.pages import Pages
from kebab.interfaces.http.safety import Safety, Tokens
from kebab.interfaces.workers import Workers
from kebab.wire.errors import error_v1, http_status

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from kebab.interfaces.http.endpoints import Endpoint, Handler
    from kebab.interfaces.http.safety import Rules
    from kebab.interfaces.service import Service


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
        exception_handlers={KebabError: _failed, HTTPException: _http_failed, ClientDisconnect: _gone},
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
    status = http_status(type(error))
    if pages.is_asked_by(request):
        response = pages.refused(request, error)
    elif request.url.path.startswith("/api/v2/"):
        hint = f" {error.hint}" if error.hint else ""
        response = json_response({"error": error.code, "message": f"{error.message}{hint}"}, status)
    else:
        response = json_response(error_v1(error), status)
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, KebabError)
    return refuse(request, error)


async def _http_failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return refuse(
            request, NotFound(f"There is nothing at {request.url.path}.", hint="See /openapi.json for what there is.")
        )
    if error.status_code == 405:
        response = refuse(
            request,
            NoSuchMethod(
                f"{request.url.path} does not take {request.method}.", hint="See /openapi.json for what it takes."
            ),
        )
        response.headers.update(error.headers or {})
        return response
    return refuse(request, UsageError(f"{error.detail}.", hint="See /openapi.json for what is taken."))


async def _gone(_request: Request, _error: Exception) -> Response:
    """The caller disconnected while sending, so no response arrives and no defect is reported."""
    return Response(status_code=400)


async def _defect(request: Request, error: Exception) -> Response:
    traceback.print_exception(error, file=sys.stderr)
    return refuse(request, Internal.of(error))
