"""MCP over streamable HTTP. Another application mounts this one and checks who may call it."""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kebab.core.errors import NoSuchMethod
from kebab.interfaces.mcp.server import make_server
from kebab.interfaces.service import Service, Workers
from kebab.wire import to_json
from kebab.wire.errors import error_v1

_MOST_SESSIONS = 200
_IDLE_SECONDS = 30 * 60
_ALLOWED = ("POST", "DELETE")


class McpOverHttp:
    """An ASGI application that serves MCP at one address."""

    def __init__(self, service: Service, *, timeout_s: float, max_body: int) -> None:
        self._sessions = StreamableHTTPSessionManager(
            make_server(service, Workers(timeout_s)),
            session_idle_timeout=_IDLE_SECONDS,
            max_sessions=_MOST_SESSIONS,
            max_request_body_size=max_body,
        )
        self.running = self._sessions.run
        """Makes the context manager that must be open while the application serves."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in _ALLOWED:
            # No GET: it opens a stream for messages that the server starts, and this server starts none.
            error = NoSuchMethod(
                f"{scope['path']} does not take {scope['method']}.",
                hint="It speaks MCP (streamable HTTP): send it with POST.",
            )
            headers = {"Allow": ", ".join(_ALLOWED)}
            await Response(to_json(error_v1(error)), 405, headers, "application/json")(scope, receive, send)
            return
        await self._sessions.handle_request(scope, receive, send)
