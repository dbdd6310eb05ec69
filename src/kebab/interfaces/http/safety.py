"""Checks each request before the application gets it: host, origin, token, rate, size and time.

A page on the web can make a browser send requests to a server on the same machine. So the Host header must be a known
name of this server, and the Origin header, which browsers add, must be this server.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import re
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import NamedTuple

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kebab.core.deadline import Deadline, time_limit
from kebab.core.errors import KebabError, Refused, TimedOut, TooLarge, TooMany, Unauthorized, UsageError
from kebab.interfaces.service import is_long

SESSION_COOKIE = "kebab_session"
LOGIN_PATH = "/login"
_STATIC = "/static/"
"""Files below this path need no token, like the login page: they contain nothing of the user's."""
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\s:@/?#\\\[\]]+)(?::(?P<port>[0-9]{1,5}))?", re.IGNORECASE)
"""A Host header as in RFC 9110, 7.2: a name or address, maybe with a port, but without user information."""
SAFE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # not no-referrer, because browsers then send forms with Origin: null
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_WATCH_AFTER_S = 0.05
"""After this time a task watches whether the caller disconnects, to end the request then. Most requests end earlier
and save that task."""
_LONG_REQUEST = 4096
"""A request is long if its query string and body have more bytes than this."""
_MOST_CLIENTS = 10_000
"""The most client addresses that are remembered. Beyond that, the one with the oldest request is forgotten."""
_WRONG_TOKENS = 10
_WRONG_TOKENS_PER_SECOND = 1 / 6


class Rules(NamedTuple):
    """The safety rules, from the settings and the command line."""

    host: str
    """The name or address that the server listens on."""
    token: str = ""
    allowed_hosts: frozenset[str] = frozenset()
    max_body: int = 1 << 20
    requests_per_second: int = 1000
    timeout_s: float = 30.0
    """Seconds until a request must have arrived, and again until its answer must be ready."""

    @property
    def only_here(self) -> bool:
        return is_loopback(self.host)

    @property
    def session(self) -> str:
        """The value of the session cookie. It is made from the token, but the token cannot be computed from it."""
        return hmac.new(self.token.encode(), b"kebab web session", "sha256").hexdigest()


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


class _Buckets:
    """Limits requests per client: each client may make `most` at once, and `per_second` more each second."""

    def __init__(self, most: float, per_second: float) -> None:
        self._most = most
        self._per_second = per_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def left(self, client: str) -> float:
        now = time.monotonic()
        left, before = self._buckets.get(client, (self._most, now))
        return min(self._most, left + (now - before) * self._per_second)

    def take(self, client: str) -> None:
        left = self.left(client)
        self._buckets.pop(client, None)  # then the client is stored last: the first one is the oldest
        self._buckets[client] = (max(0.0, left - 1), time.monotonic())
        if len(self._buckets) > _MOST_CLIENTS:
            del self._buckets[next(iter(self._buckets))]

    def seconds_to_wait(self, client: str) -> int:
        return max(0, math.ceil((1 - self.left(client)) / self._per_second))


class Tokens:
    """Checks tokens. After ten wrong tokens, an address may try once in six seconds.

    From this machine the right token is always accepted, so that nobody can lock out the owner: 16 characters cannot be
    guessed even at serve.requests_per_second. Wrong session cookies are not counted, because they cannot be guessed.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._wrong = _Buckets(_WRONG_TOKENS, _WRONG_TOKENS_PER_SECOND)

    def accepts(self, scope: Scope, shown: str) -> bool:
        client = _client(scope)
        wait = self._wrong.seconds_to_wait(client)
        is_right = is_same(shown, self._rules.token) and (not wait or is_loopback(client))
        if is_right or not shown:
            return is_right
        if wait:
            hint = f"Wait {wait} s before the next try."
            raise TooMany("Too many wrong tokens came from this address.", hint=hint, retry_after=wait)
        self._wrong.take(client)
        return False


class Safety:
    """Middleware that checks requests and adds the safe headers. `refuse` makes the response to a refused request."""

    def __init__(
        self, app: ASGIApp, rules: Rules, tokens: Tokens, refuse: Callable[[Request, KebabError], Response]
    ) -> None:
        self._app = app
        self._rules = rules
        self._tokens = tokens
        self._refuse = refuse
        self._requests = _Buckets(2.0 * rules.requests_per_second, rules.requests_per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the server has no websockets

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
            body = _Body(receive, self._rules, headers)
        except KebabError as error:
            response = self._refuse(Request(scope), error)
            if "transfer-encoding" in headers:
                response.headers["Connection"] = (
                    "close"  # the end of the body may be unclear, so nothing after it is read
                )
            await response(scope, receive, send_safely)
            return
        is_long.set(len(scope["query_string"]) + body.most > _LONG_REQUEST)
        with time_limit(None) as deadline:
            watch = asyncio.get_running_loop().call_later(_WATCH_AFTER_S, body.watch, deadline)
            try:
                await self._app(scope, body, send_safely)
            finally:
                watch.cancel()
                body.end_watch()

    def _check(self, scope: Scope, headers: Headers) -> None:
        client = _client(scope)
        wait = self._requests.seconds_to_wait(client)
        self._requests.take(client)
        if wait:
            hint = "Wait a moment, or raise serve.requests_per_second."
            raise TooMany("Too many requests came from this address.", hint=hint, retry_after=wait)
        if "transfer-encoding" in headers and "content-length" in headers:
            message = "The request has both a Content-Length and a Transfer-Encoding, so where it ends is uncertain."
            raise UsageError(message, hint="Send one of them.")
        host = headers.get("host", "")
        if not self._is_ours(host):
            hint = "Call it by its address, or name it in serve.allowed_hosts."
            raise Refused(f"This server is not {host!r}.", hint=hint)
        origins = headers.getlist("origin")
        if any(origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()) for origin in origins):
            hint = "Ask it from its own page, or without a browser."
            raise Refused("Pages of another site may not ask this server.", hint=hint)
        if self._rules.token and not self._is_known(scope, headers):
            raise Unauthorized("This server wants a token.", hint="Send it as: Authorization: Bearer TOKEN")

    def _is_ours(self, host: str) -> bool:
        parts = _HOST.fullmatch(host)
        if parts is None or not 0 < int(parts["port"] or 80) < 65_536:
            return False
        name = parts["name"].lower()
        if name in _LOOPBACK_NAMES or name in self._rules.allowed_hosts or name == self._rules.host.lower():
            return True
        # An IP address is safe: unlike a name, it cannot be made to resolve to this server.
        return not self._rules.only_here and _address(name) is not None

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        path = scope["path"]
        if path == LOGIN_PATH or path.startswith(_STATIC):
            return True
        # cookie_parser, because a malformed cookie of another server on this machine must not hide the session cookie.
        if is_same(cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE, ""), self._rules.session):
            return True
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._tokens.accepts(scope, shown.strip())


def is_same(shown: str, secret: str) -> bool:
    """Whether both are the same, compared in constant time."""
    return hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), secret.encode())


class _Body:
    """Receives the body of a request within limits of size and time, then waits for the caller to disconnect."""

    def __init__(self, receive: Receive, rules: Rules, headers: Headers) -> None:
        declared = headers.get("content-length", "")
        self.most = int(declared) if declared.isdecimal() else 0
        """The largest size that the body can have, in bytes."""
        if "transfer-encoding" in headers:
            self.most = rules.max_body
        self._receive = receive
        self._complete, self._gone = asyncio.Event(), asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._empty: Message | None = None
        if self.most == 0:
            self._empty = {"type": "http.request", "body": b"", "more_body": False}
            self._complete.set()
        self._limit = rules.max_body
        self._timeout_s = rules.timeout_s
        self._end = anyio.current_time() + rules.timeout_s
        self._seen = 0
        self._check_size(self.most)

    def watch(self, deadline: Deadline) -> None:
        self._watch = asyncio.create_task(self._give_up_without_caller(deadline))

    def end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()

    async def _give_up_without_caller(self, deadline: Deadline) -> None:
        await self._complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()
        deadline.give_up()

    async def __call__(self) -> Message:
        if self._empty is not None:
            message, self._empty = self._empty, None
            return message
        if self._complete.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        try:
            with anyio.fail_after(self._end - anyio.current_time()):
                message = await self._receive()
        except TimeoutError as error:
            hint = "Send it sooner, or raise serve.timeout_s."
            raise TimedOut(f"The request was not there after {self._timeout_s:g} s.", hint=hint) from error
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            self._check_size(self._seen)
            if not message.get("more_body", False):
                self._complete.set()
        return message

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            hint = "Send less at once, or raise serve.max_body_kb."
            raise TooLarge(f"The request is larger than {self._limit // 1024} kB.", hint=hint)


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _address(host: str):  # type: ignore[no-untyped-def]  # the two kinds of address have no public class in common
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None
