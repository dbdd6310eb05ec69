"""MCP over HTTP at /mcp of `kb serve`: the same tools, several clients at once, and the access checks of every address."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.interfaces.mcp.sessions import Session, connected, serving, texts

POST = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }
)


@pytest.fixture(scope="module")
def address(corpus_db: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(corpus_db, tmp_path_factory.mktemp("server")) as (url, _):
        yield url


def status_of(address: str, method: str, headers: dict[str, str], body: str = INITIALIZE) -> int:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    try:
        connection.request(method, "/mcp", body if method == "POST" else None, headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_tool_answers_over_http_in_both_versions_of_the_protocol(address: str, mode: str) -> None:
    with connected(f"{address}mcp", mode) as session:
        hit = session.ask("search", query="install git", k=1)["hits"][0]
        assert session.ask("fetch", uri=hit["citation"]["uri"])["citation"] == hit["citation"] | {
            "section": None,
            "content_hash": None,
        }
        assert session.ask("list_documents", limit=1)["items"]
        assert session.ask("status")["libraries"] == 2
        assert "/acme/widget" in texts(session.call("resolve-library-id", libraryName="widget"))[0]
        assert "dial()" in texts(session.call("query-docs", libraryId="/acme/widget", query="create a dial"))[0]
        assert session.fails("query-docs", libraryId="/no/such", query="dial")["code"] == "not_found"
        assert session.fails("ingest")["code"] == "usage"
        assert len(session.portal.call(session.client.list_resources).resources) == 23


def test_several_clients_at_once_get_their_own_answers(address: str) -> None:
    questions = ["install git", "sourdough", "rust workspace", "red lentils"] * 3

    def ask(session: Session, question: str) -> str:
        query: str = session.ask("search", query=question, k=3)["query"]
        return query

    with connected(f"{address}mcp") as one, connected(f"{address}mcp", "auto") as other, ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(ask, (one, other)[number % 2], question) for number, question in enumerate(questions)]
        assert [future.result() for future in asked] == questions


def test_the_mcp_address_has_no_variants_and_the_same_access_checks_as_others(address: str) -> None:
    assert status_of(address, "POST", POST) == 200
    assert status_of(address, "GET", {"Accept": "text/event-stream"}) == 405
    assert status_of(address, "POST", {**POST, "Host": "elsewhere.example"}) == 403
    assert status_of(address, "POST", {**POST, "Origin": "http://elsewhere.example"}) == 403
    assert status_of(address, "POST", POST, json.dumps({"padding": "x" * 2_000_000})) == 413
    assert status_of(address, "POST", {**POST, "Mcp-Session-Id": "none"}) == 404


def test_the_server_stops_at_once_with_a_client_connected(corpus_db: Path, tmp_path: Path) -> None:
    with serving(corpus_db, tmp_path, KEBAB_SERVE_TOKEN="a-token-of-enough-letters") as (address, server):
        assert status_of(address, "POST", POST) == 401
        known = {**POST, "Authorization": "Bearer a-token-of-enough-letters"}
        assert status_of(address, "POST", known) == 200
        server.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert server.wait(20) == 0
        assert time.monotonic() - began < 9
