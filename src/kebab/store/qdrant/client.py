"""Talking to a Qdrant cluster: requests and answers in JSON, any of its servers, errors in our words.

Qdrant's REST interface is asked directly. Its Python client takes 0.9 s to import, and three times as long for a query
with thirty hits, most of it spent on checking what the server has said.

Whatever is sent may be sent again, because ids are deterministic and values absolute: a server that does not answer, or
is just being started, is no reason to fail while another one lives.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode

from kebab.config.cluster_address import ClusterAddress, Node
from kebab.core import deadline
from kebab.core.errors import ConfigError, DiskFull, NotFound, StoreError, StoreUnreachable
from kebab.store.qdrant.connection import Answer, Connection

LEAST_VERSION = (1, 16)
"""The first that takes an update only where a condition holds, which the writer's lease needs."""
_IDLE_S = 3.0
"""How long a connection is used again; the server closes it after five."""
_WAITS_S = (0.05, 0.2, 0.5, 1.0)
"""Between looks at all servers, when none could answer: one of them may be electing a leader or starting."""
_GREETING_S = 2.0
"""How long a server may take to say that it is there, where there are others."""
_PATIENCE_S = 12.0
"""How long one may take for an answer, until all others have been asked too. Servers wait ten seconds for one of them
that hangs.
"""
_LACK_S = 30.0
"""How long most replicas are not asked again after they could not answer."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_KEY_REFUSED = (401, 403)
_NO_QDRANT = "this is not the answer of a Qdrant server"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Answered(Exception):
    """What a server said that is not what was asked for. Whoever asks knows whether that is a failure."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"status {status}: {said}")
        self.status = status
        self.said = said


class Client:
    """For any number of threads; each has connections of its own."""

    def __init__(self, address: ClusterAddress, *, api_key: str = "", timeout_s: float = 60.0) -> None:
        if not (api_key.isascii() and api_key.isprintable()):
            raise ConfigError(
                "The API key of the cluster has characters that no header can carry.",
                hint="Correct KEBAB_STORE_API_KEY.",
            )
        self.address = address
        self._headers = {"Content-Type": "application/json", **({"api-key": api_key} if api_key else {})}
        self._timeout_s = timeout_s
        self._preferred = 0
        """The server that answered last."""
        self._local = threading.local()
        self._lacking_until = 0.0

    @property
    def _has_several(self) -> bool:
        return len(self.address.nodes) > 1

    @property
    def lacks_replicas(self) -> bool:
        """Whether most replicas were asked a while ago and could not answer."""
        return time.monotonic() < self._lacking_until

    def remember_lack(self) -> None:
        self._lacking_until = time.monotonic() + _LACK_S

    def get(self, path: str, **options: str) -> Any:
        return self.ask("GET", path, None, options)

    def post(self, path: str, body: Any, **options: str) -> Any:
        return self.ask("POST", path, body, options)

    def ask(
        self,
        method: str,
        path: str,
        body: Any,
        options: Mapping[str, str] | None = None,
        *,
        check: Callable[[], None] = lambda: None,
    ) -> Any:
        """What one of the servers answers, as `result` has it. `check` raises where it must not be sent, or not be sent
        again.
        """
        deadline.check()
        options = options or {}
        target = f"{path}?{urlencode(options)}" if options else path
        data = None if body is None else _encoded(body)
        failure: Exception | None = None
        said: Answered | None = None
        count = len(self.address.nodes)
        timeout_s = min(self._timeout_s, _PATIENCE_S) if count > 1 else self._timeout_s
        first = self._preferred
        for wait in (*_WAITS_S, None):
            for turn in range(count):
                number = (first + turn) % count
                check()
                try:
                    answer = self._ask_node(self.address.nodes[number], method, target, data, timeout_s)
                except (OSError, HTTPException) as error:
                    failure = error
                except Answered as error:
                    if error.status not in _PASSING or _is_final(error, options):
                        raise self._in_our_words(error, self.address.nodes[number]) from error
                    failure = said = error
                else:
                    if turn and self._preferred == first:  # or somebody has chosen another one meanwhile
                        self._preferred = number
                    return answer
            if wait is None or (isinstance(failure, TimeoutError) and timeout_s == self._timeout_s):
                break
            timeout_s = self._timeout_s  # nobody was quick: what takes long is given its time
            time.sleep(wait)
        reason = said or failure  # what a server says explains more than another one's silence
        assert reason is not None
        raise self._unreachable(reason) from reason

    def begin(self, path: str, body: Any) -> Callable[[], Any]:
        """Sends it, and returns what reads the answer: something else can be asked meanwhile. None is the answer where
        anything went wrong; who asks in the ordinary way then gets one, or learns why not.
        """
        first = self._preferred
        node = self.address.nodes[first]
        try:
            connection = self._taken(node)
            connection.send("POST", path, _encoded(body), min(self._timeout_s, _PATIENCE_S))
        except (OSError, HTTPException):
            if self._preferred == first:  # nobody has to wait for this one again
                self._preferred = (first + 1) % len(self.address.nodes)
            return lambda: None

        def read() -> Any:
            is_there = (
                self.address.nodes[self._preferred] == node
            )  # or it did not answer meanwhile, and another one did
            try:
                if not is_there:
                    raise TimeoutError
                if self._has_several and not connection.answers_within(_GREETING_S):
                    self._new_connection(node).close()  # as for every other request: one that greets is given its time
                answer = connection.receive()
            except (OSError, HTTPException):
                connection.close()
                return None
            self._give_back(node, connection)
            try:
                return _result(answer)
            except Answered:
                return None

        return read

    def ask_each(self, path: str) -> dict[Node, Any]:
        """What every server says by itself; where one does not, the error."""
        answers: dict[Node, Any] = {}
        for node in self.address.nodes:
            try:
                answers[node] = self._ask_node(node, "GET", path, None, min(self._timeout_s, _PATIENCE_S))
            except (OSError, HTTPException) as error:
                answers[node] = self._unreachable(error, node)
            except Answered as error:
                answers[node] = self._in_our_words(error, node)
        return answers

    def turn_to_the_foremost(self) -> None:
        """From now on a server is asked that knows all that the cluster has agreed upon, as long as it answers. One
        that was away and is just back does not know yet that it missed something, and takes its own old points for what
        is there.
        """
        if not self._has_several:
            return
        agreed = [(_agreed(answer), -number) for number, answer in enumerate(self.ask_each("/cluster").values())]
        self._preferred = -max(agreed)[1]

    def close(self) -> None:
        """This thread's connections."""
        for waiting in self._waiting.values():
            for connection in waiting:
                connection.close()
        self._waiting.clear()

    # --- one server

    def _ask_node(self, node: Node, method: str, target: str, data: bytes | None, timeout_s: float) -> Any:
        with self._connected(node) as connection:
            connection.send(method, target, data, timeout_s)
            if self._has_several and not connection.answers_within(_GREETING_S):
                self._new_connection(node).close()  # which fails if it does not even greet: then another one is asked
            return _result(connection.receive())

    @contextmanager
    def _connected(self, node: Node) -> Iterator[Connection]:
        """Kept for the next request when this one went well."""
        connection = self._taken(node)
        try:
            yield connection
        except Answered:
            self._give_back(node, connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._give_back(node, connection)

    @property
    def _waiting(self) -> dict[Node, list[Connection]]:
        """This thread's connections that nobody uses at the moment."""
        waiting: dict[Node, list[Connection]] = self._local.__dict__.setdefault("waiting", {})
        return waiting

    def _taken(self, node: Node) -> Connection:
        waiting = self._waiting.get(node)
        while waiting:
            connection = waiting.pop()
            if time.monotonic() - connection.used < _IDLE_S:
                return connection
            connection.close()
        return self._new_connection(node)

    def _give_back(self, node: Node, connection: Connection) -> None:
        if connection.is_open:
            self._waiting.setdefault(node, []).append(connection)
        else:
            connection.close()

    def _new_connection(self, node: Node) -> Connection:
        timeout_s = min(self._timeout_s, _GREETING_S) if self._has_several else self._timeout_s
        connect = partial(Connection, node, tls=self.address.tls, timeout_s=timeout_s, headers=self._headers)
        connection = connect()
        if self._has_several:  # one that hangs takes connections all the same
            try:
                connection.ask("GET", "/healthz", None, timeout_s)
            except BaseException:
                connection.close()
                raise
        if connection.is_open:
            return connection
        connection.close()  # some proxies take one request only
        return connect()

    # --- errors

    def _unreachable(self, failure: Exception, *nodes_asked: Node) -> StoreUnreachable:
        nodes = ", ".join(map(str, nodes_asked or self.address.nodes))
        if isinstance(failure, Answered):
            return StoreUnreachable(
                f"Qdrant at {nodes} cannot do this now: {failure.said}",
                hint="Look at the servers with: kb doctor",
                path=str(self.address),
            )
        reason = " ".join(str(getattr(failure, "strerror", None) or failure or type(failure).__name__).split())
        hint = "Start it, correct the address, or name a file with --db to work without it."
        if "WRONG_VERSION_NUMBER" in reason:
            reason, hint = "it does not speak TLS", "Leave out ?tls=true, or turn on TLS on the server."
        elif "CERTIFICATE_VERIFY_FAILED" in reason:
            hint = "Use a certificate that this machine trusts for that name, or set SSL_CERT_FILE to that of its authority."
        return StoreUnreachable(f"Qdrant at {nodes} cannot be reached: {reason}.", hint=hint, path=str(self.address))

    def _in_our_words(self, error: Answered, node: Node) -> Exception:
        if error.status in _KEY_REFUSED:
            has_key, may_read = "api-key" in self._headers, error.status == 403
            refused = (
                "the API key may only read"
                if may_read
                else "the API key is wrong"
                if has_key
                else "it wants an API key"
            )
            return StoreUnreachable(
                f"Qdrant at {node} refused the request: {refused}.",
                hint=f"Set KEBAB_STORE_API_KEY to one that {'may write' if may_read else 'is valid'}.",
                path=str(self.address),
            )
        if "No space left" in error.said:
            return DiskFull(
                "There is no space left on the Qdrant server.",
                hint="Free some space and run the command again.",
                path=str(self.address),
            )
        return error


def _encoded(body: Any) -> bytes:
    return _encode(body).encode("utf-8", "replace")


def _result(answer: Answer) -> Any:
    if answer.status != 200:
        raise Answered(answer.status, _said(answer.body))
    try:
        return json.loads(answer.body)["result"]
    except (ValueError, KeyError, TypeError) as error:
        raise Answered(415, _NO_QDRANT) from error


def _agreed(cluster: Any) -> int:
    """How much of what the cluster has agreed upon a server knows and has done; less than anybody where it does not
    answer.
    """
    raft = None if isinstance(cluster, Exception) else cluster.get("raft_info")
    return int(raft["commit"]) - int(raft.get("pending_operations") or 0) if raft else -1


def _said(data: bytes) -> str:
    try:
        status = json.loads(data)["status"]
        return str(status["error"] if isinstance(status, dict) else status)
    except (ValueError, KeyError, TypeError):
        return _NO_QDRANT if data.lstrip()[:1] == b"<" else " ".join(data[:200].decode("utf-8", "replace").split())


def _is_final(error: Answered, options: Mapping[str, str]) -> bool:
    """Some of what is wrong for good comes with a status that says otherwise: a full disk; and what most replicas were
    to say, while so many of them are gone that there is no most.
    """
    return "No space left" in error.said or ("consistency" in options and lacks_replicas(error))


def lacks_replicas(error: Answered) -> bool:
    """Whether more replicas were asked than there are at the moment: one has just gone, or is known to be gone."""
    return "read operations failed" in error.said or "enough active replicas" in error.said


@contextmanager
def our_errors(address: ClusterAddress, *, missing: Callable[[], Exception | None] = lambda: None) -> Iterator[None]:
    """What no caller expected of a server is an error of the store: a defect, or something that is no Qdrant server.
    `missing`: what to say where a collection is not there; otherwise all of them were deleted.
    """
    try:
        yield
    except Answered as error:
        if error.status == 404 and f"{address.name}." in error.said:
            raise missing() or NotFound(
                f"There is no knowledge base {address} any more: it was deleted meanwhile.",
                hint=f"Make one with: kb --db {address} ingest FOLDER",
                path=str(address),
            ) from error
        raise StoreError(
            f"Qdrant at {', '.join(map(str, address.nodes))} answered with {error}.",
            hint="Check the address and the server's version with: kb doctor",
            path=str(address),
        ) from error
