"""Which requests a server accepts, and how many."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import pytest
from tests.conftest import Kb
from tests.serving import Server, serving

from kebab.core.errors import TooMany
from kebab.interfaces.http.safety import Rules, Tokens, is_loopback

TOKEN = "correct-horse-battery"
ADDRESSES = [
    "",
    "api/v1/search?query=git",
    "api/v1/health",
    "openapi.json",
    "api/v2/libs/search?libraryName=x",
    "nothing",
    "static/x",
    "login",
    "mcp",
]


@pytest.fixture(scope="module")
def guarded(served_db: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a token, small limits and an additional host name."""
    limits = {"KEBAB_SERVE_TOKEN": TOKEN, "KEBAB_SERVE_MAX_BODY_KB": "1", "KEBAB_SERVE_ALLOWED_HOSTS": "kebab.lan"}
    with serving(served_db, home=tmp_path_factory.mktemp("guarded"), env=limits) as running:
        yield running


@pytest.mark.parametrize("address", ADDRESSES)
def test_another_host_is_refused_on_every_address(client: httpx2.Client, address: str) -> None:
    strangers = (
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "[::1]evil",
        "10.0.0.1",
        "",
    )
    users = ("user@localhost", "user:secret@localhost", "localhost:80@evil.example", "localhost:@evil.example")
    ports = (
        "localhost:",
        "localhost:http",
        "localhost:-1",
        "localhost:0",
        "localhost:65536",
        "localhost:80:80",
        "[::1]:",
        "[::1]:x",
    )
    for host in (*strangers, *users, *ports):
        response = client.get(address, headers={"host": host})
        assert response.status_code in (403, 400), (host, response.text)
        if host:
            assert response.status_code == 403


@pytest.mark.parametrize("address", ADDRESSES)
def test_another_origin_is_refused_on_every_address(client: httpx2.Client, address: str) -> None:
    for origin in ("http://evil.example", "null", "file://", "http://127.0.0.1:1", "https://localhost"):
        assert client.get(address, headers={"origin": origin}).status_code == 403


def test_requests_from_the_servers_own_origin_and_loopback_names_are_accepted(
    client: httpx2.Client, server: Server
) -> None:
    port = server.url.rstrip("/").rpartition(":")[2]
    assert client.get("api/v1/health", headers={"origin": server.url.rstrip("/")}).status_code == 200
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}", "127.0.0.1"):
        assert client.get("api/v1/health", headers={"host": host}).status_code == 200


def test_every_response_has_the_security_headers(client: httpx2.Client) -> None:
    for address in ADDRESSES:
        headers = client.get(address).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


def test_the_server_is_read_only_by_default(client: httpx2.Client) -> None:
    response = client.post("api/v1/ingest", json={"paths": ["/tmp"]})
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert client.post("api/v1/ingest", content=b"{").status_code == 403


class TestToken:
    def test_without_the_token_every_request_is_refused(self, guarded: Server) -> None:
        for address in ("api/v1/health", "api/v1/search?query=git", "openapi.json", "nothing"):
            response = httpx2.get(guarded.url + address)
            assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
            assert response.headers["www-authenticate"] == "Bearer"

    @pytest.mark.parametrize(
        "shown",
        ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff"],
    )
    def test_a_wrong_token_is_refused(self, guarded: Server, shown: str) -> None:
        assert (
            httpx2.get(guarded.url + "api/v1/health", headers=[(b"authorization", shown.encode("latin-1"))]).status_code
            == 401
        )

    def test_a_token_in_the_address_does_not_count(self, guarded: Server) -> None:
        assert httpx2.get(guarded.url + f"api/v1/health?token={TOKEN}").status_code == 401

    def test_with_the_token_requests_are_answered(self, guarded: Server) -> None:
        answer = httpx2.get(guarded.url + "api/v1/search?query=git", headers={"authorization": f"bearer {TOKEN}"})
        assert answer.json()["returned"] > 0

    def test_a_host_in_the_settings_is_accepted(self, guarded: Server) -> None:
        headers = {"authorization": f"Bearer {TOKEN}", "host": "kebab.lan:8765"}
        assert httpx2.get(guarded.url + "api/v1/health", headers=headers).status_code == 200

    def test_a_request_that_is_too_large_is_refused_with_or_without_content_length(self, guarded: Server) -> None:
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        declared = httpx2.post(guarded.url + "api/v1/search/bulk", headers=headers, content=b" " * 2000)
        streamed = httpx2.post(guarded.url + "api/v1/search/bulk", headers=headers, content=iter([b" " * 900] * 3))
        assert [declared.status_code, streamed.status_code] == [413, 413]
        assert declared.json()["code"] == streamed.json()["code"] == "too_large"


def shown(server: Server, request: bytes) -> tuple[list[bytes], bytes]:
    """The status lines of all responses, and the body of the first, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])), timeout=10) as caller:
        caller.sendall(request)
        answer = b"".join(iter(lambda: caller.recv(65_536), b""))
    lines = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    return lines, answer.partition(b"\r\n\r\n")[2]


SECOND = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
UNCERTAIN = {
    "length and encoding": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "encoding and length": b"transfer-encoding:chunked\r\ncontent-length:5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a list of lengths": b"Content-Length: 5, 6\r\n\r\nhello",
    "a length with a sign": b"Content-Length: +5\r\n\r\nhello",
    "another encoding": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "an encoding with a space": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "two encodings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a folded length and an encoding": b"Content-Length:\r\n 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two hosts": b"Host: evil.example\r\n\r\n",
    "a bare line feed in a name": b"X\nY: 1\r\n\r\n",
}


def test_a_request_whose_end_is_uncertain_is_refused_and_nothing_after_it_is_read(server: Server) -> None:
    """Otherwise a proxy in front may see one request where this server sees two."""
    for case in UNCERTAIN:
        for path in ["/api/v1/search/bulk", "/mcp", "/login", "/"]:
            request = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + UNCERTAIN[case]
            lines, body = shown(server, request + SECOND)
            assert lines == [b"HTTP/1.1 400 Bad Request"]
            error = json.loads(body)
            assert (error["schema_version"], error["code"], bool(error["hint"])) == ("error.v1", "usage", True)


WRONG = {"authorization": "Bearer not-the-right-one"}
RIGHT = {"authorization": f"Bearer {TOKEN}"}


class TestWrongTokens:
    @pytest.fixture
    def client(self, served_db: Path, tmp_path: Path) -> Iterator[httpx2.Client]:
        with (
            serving(served_db, home=tmp_path, env={"KEBAB_SERVE_TOKEN": TOKEN}) as running,
            httpx2.Client(base_url=running.url) as client,
        ):
            yield client

    @pytest.mark.parametrize("path", ["api/v1/health", "mcp", "login"])
    def test_wrong_tokens_are_slowed_on_every_address(self, client: httpx2.Client, path: str) -> None:
        def wrong() -> httpx2.Response:
            if path == "login":
                return client.post(path, data={"token": "not-the-right-one"}, headers={"accept": "text/html"})
            return client.post(path, headers=WRONG)

        assert [wrong().status_code for _ in range(12)] == [401] * 10 + [429] * 2
        for refused in (wrong(), client.get("api/v1/search?query=git", headers=WRONG)):
            assert refused.status_code == 429
            assert 1 <= int(refused.headers["retry-after"]) <= 6
        assert refused.json()["code"] == "too_many_requests"
        assert client.get("api/v1/health").status_code == 401, "no token is not a wrong one"
        assert client.get("api/v1/health", headers=RIGHT).status_code == 200, (
            "from this machine the right one always counts"
        )
        assert client.post("login", data={"token": TOKEN}).status_code == 303
        assert client.get("api/v1/health").status_code == 200, "a session"

    def test_after_ten_wrong_tokens_a_remote_address_is_refused_even_with_the_right_one(
        self, client: httpx2.Client
    ) -> None:
        """A proxy reports the address of the caller, who may be one of many behind it."""
        there, elsewhere = ({"x-forwarded-for": f"127.0.0.1, 192.0.2.{number}"} for number in (7, 8))
        codes = [client.get("api/v1/health", headers=WRONG | there).status_code for _ in range(11)]
        assert codes == [401] * 10 + [429]
        assert client.get("api/v1/health", headers=RIGHT | there).status_code == 429
        assert client.get("api/v1/health", headers=RIGHT | elsewhere).status_code == 200
        client.cookies.set("kebab_session", Rules("127.0.0.1", TOKEN).session)
        assert client.get("api/v1/health", headers=there).status_code == 200, "whoever had logged in before goes on"

    def test_the_limit_of_wrong_tokens_recovers_with_time_and_old_addresses_are_forgotten(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = 0.0
        monkeypatch.setattr("kebab.interfaces.http.safety.time.monotonic", lambda: now)
        tokens = Tokens(Rules("0.0.0.0", TOKEN))
        heard = 0
        for now in range(3600):  # the clock
            with suppress(TooMany):
                assert not tokens.accepts({"client": ("192.0.2.7", 1)}, f"guess {now}")
                heard += 1
        assert heard == 10 + 3600 // 6 - 1
        now += 6
        assert tokens.accepts({"client": ("192.0.2.7", 1)}, TOKEN)
        for number in range(20_000):
            tokens.accepts({"client": (f"2001:db8::{number:x}", 1)}, "wrong")
        assert len(tokens._wrong._buckets) == 10_000


def test_a_connection_that_sends_no_request_in_time_is_closed(served_db: Path, tmp_path: Path) -> None:
    """Regression: a connection without a request, or with half of one, was never closed."""
    beginnings = {
        b"": b"",
        b"GET / HTTP/1.1\r\nHost: loc": b"",
        b"POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{": b"HTTP/1.1 503",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
        b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{": b"HTTP/1.1 503",
    }
    with serving(served_db, home=tmp_path, env={"KEBAB_SERVE_TIMEOUT_S": "0.5"}) as running, ExitStack() as open_ones:
        port = int(running.url.rstrip("/").rpartition(":")[2])
        callers = [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in beginnings
        ]
        for caller, beginning in zip(callers, beginnings, strict=True):
            caller.sendall(beginning)
        assert [caller.recv(12) for caller in callers] == list(beginnings.values())
        with httpx2.Client(base_url=running.url) as client:
            assert client.get("api/v1/health").status_code == 200
            time.sleep(1)
            assert client.get("api/v1/health").status_code == 200  # the same connection, which has asked before


def test_a_caller_that_disconnects_while_sending_is_no_defect(served_db: Path, tmp_path: Path) -> None:
    with serving(served_db, home=tmp_path) as running:
        with socket.create_connection(("127.0.0.1", int(running.url.rstrip("/").rpartition(":")[2]))) as caller:
            caller.sendall(b"POST /api/v1/search/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        assert httpx2.get(running.url + "api/v1/health").status_code == 200
        assert running.stop() == 0
        assert running.process.stderr is not None
        assert "Traceback" not in running.process.stderr.read()


def test_too_many_requests_are_refused_and_later_ones_answered(served_db: Path, tmp_path: Path) -> None:
    with (
        serving(served_db, home=tmp_path, env={"KEBAB_SERVE_REQUESTS_PER_SECOND": "5"}) as running,
        httpx2.Client(base_url=running.url) as client,
    ):
        codes = [client.get("api/v1/health").status_code for _ in range(40)]
        assert codes[0] == 200
        assert codes[-1] == 429
        time.sleep(0.5)
        assert client.get("api/v1/health").status_code == 200


def test_listening_beyond_this_machine_needs_a_token(kb: Kb, served_db: Path) -> None:
    ran = kb("--db", served_db, "serve", "--host", "0.0.0.0", "--port", "0", "--json")
    assert ran.code == 2
    assert ran.json()["code"] == "usage"
    assert "KEBAB_SERVE_TOKEN" in ran.json()["hint"]


def test_a_server_for_other_machines_accepts_ip_addresses_but_no_unknown_host_names(
    served_db: Path, tmp_path: Path
) -> None:
    """The owner of a name can make it lead to this server; an IP address cannot be changed that way."""
    with serving(served_db, "--host", "0.0.0.0", home=tmp_path, env={"KEBAB_SERVE_TOKEN": TOKEN}) as running:
        port = running.url.rstrip("/").rpartition(":")[2]
        for host, status in (("192.0.2.7", 200), ("evil.example", 403)):
            answer = httpx2.get(
                f"http://127.0.0.1:{port}/api/v1/health", headers={"authorization": f"Bearer {TOKEN}", "host": host}
            )
            assert answer.status_code == status


def test_a_short_token_and_a_taken_port_are_errors(kb: Kb, served_db: Path, server: Server) -> None:
    short = kb("--db", served_db, "serve", "--json", env={"KEBAB_SERVE_TOKEN": "short"})
    assert (short.code, short.json()["code"]) == (2, "invalid_config")
    assert "short" not in short.json()["message"]
    taken = kb("--db", served_db, "serve", "--port", server.url.rstrip("/").rpartition(":")[2], "--json")
    assert (taken.code, taken.json()["code"]) == (2, "usage")


def test_a_missing_database_is_an_error_when_the_server_starts(kb: Kb, tmp_path: Path) -> None:
    ran = kb("--db", tmp_path / "none.sqlite", "serve", "--port", "0", "--json")
    assert (ran.code, ran.json()["code"]) == (2, "not_found")


def test_the_token_is_not_shown_in_the_settings(kb: Kb) -> None:
    ran = kb("config", "show", "--json", env={"KEBAB_SERVE_TOKEN": TOKEN})
    assert ran.code == 0
    assert TOKEN not in ran.out + ran.err


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("127.8.8.8", True),
        ("0.0.0.0", False),
        ("192.168.1.2", False),
        ("example.org", False),
    ],
)
def test_loopback_addresses_and_localhost_count_as_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_a_session_does_not_reveal_the_token() -> None:
    assert TOKEN not in Rules("127.0.0.1", TOKEN).session
    assert Rules("127.0.0.1", TOKEN).session != Rules("127.0.0.1", TOKEN + "x").session


def test_help_and_search_commands_import_no_server_module() -> None:
    code = "import sys, kebab.interfaces.cli.search, kebab.interfaces.cli.serving; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [
        module for module in loaded if module.split(".")[0] in ("starlette", "uvicorn", "mcp", "jinja2", "pydantic")
    ]
