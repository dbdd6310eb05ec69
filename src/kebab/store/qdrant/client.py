"""Sends requests to a Qdrant cluster: JSON over httpx, another server if one fails, failures as Kebab's own errors.

Any request may be sent twice: ids are deterministic, and writes set absolute values. So if a server does not answer,
the client sends the request to the next one.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlencode

import httpx2

from kebab.config.cluster_address import ClusterAddress, Node
from kebab.core import deadline
from kebab.core.errors import ConfigError, DiskFull, NotFound, StoreError, StoreUnreachable

_KEEP_ALIVE_S = 3.0  # the server closes idle connections after five seconds
_WAITS_S = (0.05, 0.2, 0.5, 1.0)  # between two rounds over all servers: one may be starting or electing a leader
_GREETING_S = 2.0  # how long one of several servers may take to answer /healthz
_PATIENCE_S = 12.0  # the same, to answer in the first round: servers wait ten seconds for a hung peer
LACK_S = 30.0  # after a failed read by majority, reads ask a single replica for this long
_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})
_NOT_QDRANT = "this is not the answer of a Qdrant server"
Options = Mapping[str, str]  # of a request, in its address
Guard = Callable[[], None]  # called before a change; raises if it must not be made
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class StatusError(Exception):
    """A server answered without a result. The caller decides whether that is a failure."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {status}: {message}")
        self.status = status
        self.message = message

    @property
    def lacks_replicas(self) -> bool:
        """Whether the request failed because too few replicas are alive for a majority."""
        return "read operations failed" in self.message or "enough active replicas" in self.message


class Missing(StatusError):
    """The collection, or a point of it, does not exist."""


class _Connections(httpx2.HTTPTransport):
    """The connections of one thread. They are closed at the latest when the thread has ended."""

    def __del__(self) -> None:
        self.close()


class Client:
    """Sends requests to the servers. Any number of threads may share a client; each has its own connections."""

    def __init__(self, address: ClusterAddress, *, api_key: str = "", timeout_s: float = 60.0) -> None:
        if not (api_key.isascii() and api_key.isprintable()):
            message = "The API key of the cluster has characters that no header can carry."
            raise ConfigError(message, hint="Correct KEBAB_STORE_API_KEY.")
        self.address = address
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._headers |= {"api-key": api_key} if api_key else {}
        self._tls = ssl.create_default_context() if address.tls else False
        self._timeout_s = timeout_s
        self._has_several = len(address.nodes) > 1
        self._preferred = 0  # the index of the server that is asked first
        self._local = threading.local()
        self.lacks_replicas_until = 0.0  # the majority of replicas could not answer; by the monotonic clock

    def ask(
        self, method: str, path: str, body: Any = None, options: Options | None = None, *, check: Guard = lambda: None
    ) -> Any:
        """Returns the `result` of the first server that answers. `check` is called before each attempt."""
        options = options or {}
        target = f"{path}?{urlencode(options)}" if options else path
        data = None if body is None else _encode(body).encode("utf-8", "replace")
        failure: Exception | None = None
        refusal: StatusError | None = None
        nodes, first = self.address.nodes, self._preferred
        timeout_s = min(self._timeout_s, _PATIENCE_S) if self._has_several else self._timeout_s
        for wait in (*_WAITS_S, None):
            for number in (*range(first, len(nodes)), *range(first)):
                deadline.check()
                check()
                try:
                    answer = self._ask_node(nodes[number], method, target, data, timeout_s)
                except httpx2.TransportError as error:
                    failure = error
                except StatusError as error:
                    # Another attempt is useless too if the disk is full, or if there is no majority.
                    is_final = "No space left" in error.message or ("consistency" in options and error.lacks_replicas)
                    if is_final or error.status not in _TEMPORARY:
                        raise self._in_our_words(error, nodes[number]) from error
                    refusal = error
                else:
                    if number != first and self._preferred == first:  # no other thread has changed it meanwhile
                        self._preferred = number
                    return answer
            timed_out = isinstance(failure, httpx2.TimeoutException) and refusal is None
            if wait is None or (timed_out and timeout_s == self._timeout_s):
                break
            timeout_s = self._timeout_s  # no server answered quickly, so the next rounds wait longer
            time.sleep(deadline.at_most(wait))
        deadline.check()
        reason = refusal or failure  # a server's error message explains more than a failed connection
        assert reason is not None
        raise self._unreachable(reason) from reason

    def get_from_each(self, path: str) -> dict[Node, Any]:
        """Asks every server, and returns the answer of each one, or its error."""
        answers: dict[Node, Any] = {}
        for node in self.address.nodes:
            try:
                answers[node] = self._ask_node(node, "GET", path, None, min(self._timeout_s, _PATIENCE_S))
            except httpx2.TransportError as error:
                answers[node] = self._unreachable(error, node)
            except StatusError as error:
                answers[node] = self._in_our_words(error, node)
        return answers

    def prefer_most_recent(self) -> None:
        """Prefers the server that has applied the most changes, because others may return outdated points."""
        if self._has_several:
            clusters = self.get_from_each("/cluster").values()
            rafts = [{} if isinstance(answer, Exception) else answer.get("raft_info") or {} for answer in clusters]
            applied = [int(raft.get("commit", -1)) - int(raft.get("pending_operations") or 0) for raft in rafts]
            self._preferred = applied.index(max(applied))

    def close(self) -> None:
        """Closes the connections of the calling thread."""
        if transport := self._local.__dict__.pop("transport", None):
            transport.close()
        self._local.__dict__.pop("heard", None)

    def _ask_node(self, node: Node, method: str, target: str, data: bytes | None, timeout_s: float) -> Any:
        origin = f"http{'s' if self.address.tls else ''}://{node}"
        heard: dict[Node, float] = self._local.__dict__.setdefault("heard", {})
        if self._has_several and time.monotonic() - heard.get(node, -_KEEP_ALIVE_S) >= _KEEP_ALIVE_S:
            # A hung server still accepts connections, so /healthz is asked first, with a short timeout.
            self._send("GET", f"{origin}/healthz", None, min(self._timeout_s, _GREETING_S))
        status, answer = self._send(method, f"{origin}{target}", data, timeout_s)
        heard[node] = time.monotonic()
        if status != 200:
            raise (Missing if status == 404 else StatusError)(status, _message(answer))
        try:
            return json.loads(answer)["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise StatusError(415, _NOT_QDRANT) from error

    def _send(self, method: str, url: str, data: bytes | None, timeout_s: float) -> tuple[int, bytes]:
        """Sends a request; returns status and body. A transport suffices, and is faster than an httpx client."""
        transport: httpx2.HTTPTransport | None = self._local.__dict__.get("transport")
        if transport is None:
            limits = httpx2.Limits(keepalive_expiry=_KEEP_ALIVE_S)
            transport = self._local.transport = _Connections(verify=self._tls, trust_env=False, limits=limits)
        extensions = {"timeout": httpx2.Timeout(deadline.at_most(timeout_s)).as_dict()}
        request = httpx2.Request(method, url, headers=self._headers, content=data, extensions=extensions)
        with closing(transport.handle_request(request)) as response:
            return response.status_code, response.read()

    def _unreachable(self, failure: Exception, *nodes_asked: Node) -> StoreUnreachable:
        nodes = ", ".join(map(str, nodes_asked or self.address.nodes))
        if isinstance(failure, StatusError):
            message, hint = f"cannot do this now: {failure.message}", "Look at the servers with: kb doctor"
        else:
            cause: BaseException = failure
            while cause.__cause__ is not None:
                cause = cause.__cause__
            reason = " ".join(str(getattr(cause, "strerror", None) or cause or type(cause).__name__).split())
            hint = "Start it, correct the address, or name a file with --db to work without it."
            if "WRONG_VERSION_NUMBER" in reason:
                reason, hint = "it does not speak TLS", "Leave out ?tls=true, or turn on TLS on the server."
            elif "CERTIFICATE_VERIFY_FAILED" in reason:
                trusted = "Use a certificate that this machine trusts for that name"
                hint = f"{trusted}, or set SSL_CERT_FILE to that of its authority."
            message = f"cannot be reached: {reason.rstrip('.')}."
        return StoreUnreachable(f"Qdrant at {nodes} {message}", hint=hint, path=str(self.address))

    def _in_our_words(self, error: StatusError, node: Node) -> Exception:
        path = str(self.address)
        if "No space left" in error.message:
            hint = "Free some space and run the command again."
            return DiskFull("There is no space left on the Qdrant server.", hint=hint, path=path)
        if error.status not in (401, 403):
            return error
        refused = "the API key is wrong" if "api-key" in self._headers else "it wants an API key"
        hint = "Set KEBAB_STORE_API_KEY to one that is valid."
        if error.status == 403:
            refused, hint = "the API key may only read", "Set KEBAB_STORE_API_KEY to one that may write."
        return StoreUnreachable(f"Qdrant at {node} refused the request: {refused}.", hint=hint, path=path)


def _message(data: bytes) -> str:
    try:
        status = json.loads(data)["status"]
        return str(status["error"] if isinstance(status, dict) else status)
    except (ValueError, KeyError, TypeError):
        return _NOT_QDRANT if data.lstrip()[:1] == b"<" else " ".join(data[:200].decode("utf-8", "replace").split())


@contextmanager
def our_errors(address: ClusterAddress, *, missing: Callable[[], Exception | None] = lambda: None) -> Iterator[None]:
    """Turns a StatusError into a StoreError. `missing` gives the error for missing collections, or None
    if the whole knowledge base is gone.
    """
    try:
        yield
    except StatusError as error:
        if isinstance(error, Missing) and f"{address.name}." in error.message:
            message = f"There is no knowledge base {address} any more: it was deleted meanwhile."
            hint = f"Make one with: kb --db {address} ingest FOLDER"
            raise missing() or NotFound(message, hint=hint, path=str(address)) from error
        message = f"Qdrant at {', '.join(map(str, address.nodes))} answered with {error}."
        hint = "Check the address and the server's version with: kb doctor"
        raise StoreError(message, hint=hint, path=str(address)) from error
