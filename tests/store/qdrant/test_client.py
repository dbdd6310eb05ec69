"""Requests to Qdrant servers: errors say what failed, and one reachable server of several is enough."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.qdrant_server import QdrantNode, free_ports, qdrant_node

import kebab
from kebab.config.cluster_address import Node, cluster_address
from kebab.config.settings import StoreSettings
from kebab.core import deadline
from kebab.core.errors import ConfigError, StoreError, StoreUnreachable, TimedOut, TooOld
from kebab.store.qdrant.client import Client, our_errors
from kebab.store.qdrant.schema import Schema


@contextmanager
def client_of(address: str, api_key: str = "") -> Iterator[Client]:
    client = Client(cluster_address(address), api_key=api_key, timeout_s=5.0)
    yield client
    client.close()


@contextmanager
def pretending(body: bytes, status: int = 200) -> Iterator[int]:
    """The port of a server that gives this response to every request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def self_signed() -> Iterator[tuple[Path, Path]]:
    """The paths of a certificate for 127.0.0.1 and its key, which the server can read."""
    own = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(
            name, name, own.public_key(), x509.random_serial_number(), now - timedelta(days=1), now + timedelta(days=1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(own, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    with TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
        (folder / "key.pem").write_bytes(
            own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        yield folder / "cert.pem", folder / "key.pem"


@pytest.mark.parametrize("key", ["키", "one\r\nx-other: two"])
def test_an_api_key_that_is_invalid_in_a_header_is_a_config_error(key: str) -> None:
    with pytest.raises(ConfigError, match="API key"):
        Client(cluster_address("qdrant://127.0.0.1/notes"), api_key=key)


def raft(commit: int, pending: int = 0) -> bytes:
    return json.dumps(
        {"result": {"status": "enabled", "raft_info": {"commit": commit, "pending_operations": pending}}}
    ).encode()


@pytest.mark.parametrize(
    ("said", "most_recent"),
    [
        ([raft(5), raft(9), raft(7)], 1),
        ([raft(9, pending=3), raft(9), raft(9)], 1),
        ([raft(9, pending=3), raft(7), raft(6)], 1),
        ([raft(9), raft(9), raft(9)], 0),
        ([b"busy", raft(2), raft(3)], 2),
    ],
)
def test_the_server_that_has_applied_most_changes_is_preferred(said: list[bytes], most_recent: int) -> None:
    """A server that was unreachable for a while knows what it missed before it has applied it."""
    with ExitStack() as servers:
        ports = [servers.enter_context(pretending(body)) for body in said]
        client = servers.enter_context(client_of(f"qdrant://{','.join(f'127.0.0.1:{port}' for port in ports)}/notes"))
        client.prefer_most_recent()
        assert client._preferred == most_recent


def test_an_earlier_request_does_not_undo_the_choice_of_a_server() -> None:
    """Regression: a running search made all later requests use the server that it had asked first."""
    asked, may_answer = threading.Event(), threading.Event()

    class Slow(Client):
        def _ask_node(self, node: Node, method: str, target: str, data: bytes | None, timeout_s: float) -> Any:
            answer = super()._ask_node(node, method, target, data, timeout_s)
            if target == "/slow":
                asked.set()
                may_answer.wait(10)
            return answer

    with pretending(raft(5)) as behind, pretending(raft(9)) as ahead:
        client = Slow(cluster_address(f"qdrant://127.0.0.1:{behind},127.0.0.1:{ahead}/notes"), timeout_s=5.0)
        slow = threading.Thread(target=client.ask, args=("GET", "/slow"))
        slow.start()
        assert asked.wait(10)
        client.prefer_most_recent()
        may_answer.set()
        slow.join()
        assert client._preferred == 1
        client.close()


@pytest.mark.parametrize("what", ["verify", "ingest", "reset", "migrate", "doctor"])
def test_commands_that_write_or_check_ask_the_most_recent_server(
    one_node: QdrantNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Regression: a server that had just returned was asked, so checks, copies and deletions lacked what it had missed."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Apples\n\nApples are red.\n")
    asked: list[str] = []
    ask, turn = Client.ask, Client.prefer_most_recent

    def asking(self: Client, method: str, path: str, *rest: Any, **more: Any) -> Any:
        asked.append(path)
        return ask(self, method, path, *rest, **more)

    def turning(self: Client) -> None:
        asked.append("the most recent")
        turn(self)

    with (
        kebab.open(one_node.address(f"most_recent-{what}"), embedding_model="none") as kb,
        kebab.open(tmp_path / "copy.sqlite") as copy,
    ):
        kb.ingest(tmp_path / "notes")
        with monkeypatch.context() as patched:
            patched.setattr(Client, "ask", asking)
            patched.setattr(Client, "prefer_most_recent", turning)
            {
                "verify": kb.verify,
                "ingest": lambda: kb.ingest(tmp_path / "notes"),
                "reset": kb.reset,
                "migrate": kb.migration_to(copy).run,
                "doctor": kb.health,
            }[what]()
        kb.reset()
    of_points = [number for number, path in enumerate(asked) if path.startswith("/collections")]
    assert asked.index("the most recent") < of_points[0]


def test_a_missing_server_is_reported_as_unreachable() -> None:
    [port] = free_ports(1)
    with (
        client_of(f"qdrant://127.0.0.1:{port}/notes") as client,
        pytest.raises(StoreUnreachable, match=f"127.0.0.1:{port} cannot be reached") as raised,
    ):
        client.ask("GET", "/collections")
    assert raised.value.hint


def test_the_next_server_is_asked_when_one_does_not_answer(one_node: QdrantNode) -> None:
    [port] = free_ports(1)
    with client_of(f"qdrant://127.0.0.1:{port},127.0.0.1:{one_node.http_port}/notes") as client:
        assert "collections" in client.ask("GET", "/collections")


def test_a_wrong_key_and_a_missing_key_have_different_messages() -> None:
    with qdrant_node(SERVICE__API_KEY="right") as node:
        address = node.address("notes")
        with client_of(address) as client, pytest.raises(StoreUnreachable, match="wants an API key") as missing:
            client.ask("GET", "/collections")
        with (
            client_of(address, "wrong-key") as client,
            pytest.raises(StoreUnreachable, match="the API key is wrong") as wrong,
        ):
            client.ask("GET", "/collections")
        with client_of(address, "right") as client:
            assert client.ask("GET", "/collections")["collections"] == []
    assert "KEBAB_STORE_API_KEY" in (missing.value.hint or "")
    assert "wrong-key" not in f"{wrong.value.message} {wrong.value.hint}"


def test_a_read_only_key_has_its_own_message(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Apples\n\nApples are red.\n")
    with qdrant_node(SERVICE__API_KEY="right", SERVICE__READ_ONLY_API_KEY="reads") as node:
        address = node.address("notes")
        with kebab.open(address, store_api_key="right", embedding_model="none") as kb:
            kb.ingest(tmp_path)
        with kebab.open(address, store_api_key="reads", embedding_model="none") as kb:
            assert len(kb.search("apples")) == 1
            with pytest.raises(StoreUnreachable, match="may only read") as raised:
                kb.ingest(tmp_path)
    assert "may write" in (raised.value.hint or "")


def test_tls_works_if_the_certificate_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        self_signed() as (certificate, key),
        qdrant_node(SERVICE__ENABLE_TLS="true", TLS__CERT=str(certificate), TLS__KEY=str(key)) as node,
    ):
        address = f"{node.address('notes')}?tls=true"
        with client_of(address) as client, pytest.raises(StoreUnreachable, match="certificate verify failed"):
            client.ask("GET", "/collections")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with client_of(address) as client:
            assert client.ask("GET", "/collections")["collections"] == []
        with client_of(node.address("notes")) as client, pytest.raises(StoreUnreachable):
            client.ask("GET", "/collections")


def test_an_old_server_is_refused_before_anything_is_created() -> None:
    with (
        pretending(b'{"result": {"app": {"version": "1.15.5"}}}') as port,
        client_of(f"qdrant://127.0.0.1:{port}/notes") as client,
        pytest.raises(TooOld, match=r"1\.15\.5, and 1\.16 or later"),
    ):
        Schema(client, StoreSettings()).create_catalog()


def test_a_server_that_is_not_qdrant_is_reported() -> None:
    with (
        pretending(b"<html>hello</html>") as port,
        client_of(f"qdrant://127.0.0.1:{port}/notes") as client,
        pytest.raises(StoreError, match="not the answer of a Qdrant server"),
        our_errors(client.address),
    ):
        client.ask("GET", "/collections")


def test_doctor_does_not_print_the_html_of_another_server() -> None:
    """Regression: doctor printed its HTML."""
    with (
        pretending(b"<!DOCTYPE HTML>\n<html>\nnothing here</html>", status=404) as port,
        kebab.open(f"qdrant://127.0.0.1:{port}/notes", embedding_model="none") as kb,
    ):
        said = [check.message for check in kb.health() if not check.ok]
    assert said
    assert all("not the answer of a Qdrant server" in message and "<" not in message for message in said)


def test_a_connection_that_the_server_closed_is_opened_again() -> None:
    with qdrant_node() as node, client_of(node.address("notes")) as client:
        assert client.ask("GET", "/collections")["collections"] == []
        node.kill()
        node.restart()
        assert client.ask("GET", "/collections")["collections"] == []


def test_three_servers_form_one_cluster(three_nodes: Sequence[QdrantNode]) -> None:
    assert {len(node.get("/cluster")["peers"]) for node in three_nodes} == {3}


def test_a_request_takes_no_longer_than_the_time_limit() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        client_of(f"qdrant://127.0.0.1:{silent.getsockname()[1]}/notes") as client,
    ):
        started = time.monotonic()
        with deadline.time_limit(0.3), pytest.raises(TimedOut):
            client.ask("GET", "/collections")
        assert time.monotonic() - started < 2


def test_a_hanging_server_is_skipped(one_node: QdrantNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nodes = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{one_node.http_port}"
        with client_of(f"qdrant://{nodes}/notes") as client:
            assert "collections" in client.ask("GET", "/collections")
            started = time.monotonic()
            assert "collections" in client.ask("GET", "/collections")
            assert time.monotonic() - started < 1, "the next request goes to the other server at once"


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", b"HTTP/1.1 200 OK\r\nContent-Le"],
)
def test_a_truncated_or_non_http_answer_is_unreachable(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # until it is closed
                while True:
                    accepted, _ = listening.accept()
                    with accepted:
                        accepted.recv(1 << 16)
                        accepted.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with (
            client_of(f"qdrant://127.0.0.1:{listening.getsockname()[1]}/notes") as client,
            pytest.raises(StoreUnreachable, match="cannot be reached"),
        ):
            client.ask("GET", "/collections")
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
