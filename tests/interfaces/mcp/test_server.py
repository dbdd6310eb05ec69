"""The MCP server in this process: with any arguments, during slow searches, and after internal errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import MCPError
from mcp.shared.exceptions import MCPDeprecationWarning
from tests.answering.conftest import ChatServer, Reply
from tests.interfaces.mcp.sessions import Session, connected

import kebab
from kebab.interfaces.mcp.server import make_server
from kebab.interfaces.mcp.tools import tools_for
from kebab.interfaces.service import Service, Workers
from kebab.wire.search import SearchResponseV1


class TrickyService(Service):
    """A real service that fails or is slow for some queries."""

    def __init__(self, kb: kebab.KnowledgeBase, *, allow_write: bool = False) -> None:
        super().__init__(kb, allow_write=allow_write)
        self.began, self.go_on = Event(), Event()

    def search(
        self, options: Mapping[str, Any], *, fitting: Callable[[SearchResponseV1], int] | None = None
    ) -> SearchResponseV1:
        if options["query"] == "defect":
            raise ZeroDivisionError("division by zero")
        if options["query"] == "slow":
            self.began.set()
            self.go_on.wait(30)
        return super().search(options, fitting=fitting)


@pytest.fixture(scope="module")
def service(corpus_db: Path) -> Iterator[TrickyService]:
    with kebab.open(corpus_db) as knowledge_base:
        yield TrickyService(knowledge_base)


@pytest.fixture(scope="module")
def session(service: TrickyService) -> Iterator[Session]:
    with connected(make_server(service, Workers(None))) as session:
        yield session


NAMES = sorted({name for tool in tools_for(Service(None)) for name in (*tool.schemas, *tool.aliases)})  # type: ignore[arg-type]  # none is called
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(
        [
            "git",
            "/acme/widget",
            "git/setup.md",
            "code",
            "lexical",
            "5",
            "",
            " ",
            "\0",
            "\ud800",
            "'\"(",
            "kebab://x",
            2**70,
            -1,
        ]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=6,
)
TOOLS = ["search", "fetch", "ask", "list_documents", "status", "resolve-library-id", "query-docs", "get-library-docs"]


@given(
    tool=st.sampled_from(TOOLS),
    arguments=st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), VALUES, max_size=5),
)
def test_any_tool_arguments_get_an_answer_or_a_tool_error_and_the_session_continues(
    session: Session, tool: str, arguments: dict[str, Any]
) -> None:
    """Every result fits the tool's output schema and can be sent, and no error is an internal one."""
    result = session.call(tool, **arguments)
    result.model_dump_json()
    if result.is_error:
        assert result.structured_content["code"] != "internal", result.structured_content
        assert result.structured_content["hint"]


@settings(max_examples=40)
@given(
    uri=st.text(max_size=30) | st.text(max_size=20).map(lambda text: f"kebab://notes/{text}"),
    cursor=st.text(max_size=5),
)
def test_any_resource_uri_and_cursor_get_an_answer_or_an_error_with_a_code_of_kebab(
    session: Session, uri: str, cursor: str
) -> None:
    for call, argument in ((session.client.read_resource, uri), (_listed(session), cursor)):
        try:
            session.portal.call(call, argument)
        except MCPError as error:
            assert error.error.data["code"] in ("not_found", "usage", "ambiguous"), error.error


def _listed(session: Session) -> Callable[[str], Any]:
    async def listed(cursor: str) -> Any:
        return await session.client.list_resources(cursor=cursor)

    return listed


def test_a_number_too_large_for_a_message_is_a_tool_error(session: Session) -> None:
    assert session.fails("search", query="git", k=10**5000)["code"] == "usage"


def test_an_internal_error_is_reported_and_the_session_continues(
    session: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    error = session.fails("search", query="defect")
    assert (error["code"], error["message"]) == (
        "internal",
        "Something unexpected happened: ZeroDivisionError: division by zero",
    )
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert session.ask("search", query="install git")["hits"]


def test_a_slow_search_blocks_no_other_request_and_can_be_cancelled(session: Session, service: TrickyService) -> None:
    async def cancelled() -> tuple[bool, int]:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(session.client.call_tool, "search", {"query": "slow"})
                await anyio.to_thread.run_sync(service.began.wait, 10)
                with pytest.warns(MCPDeprecationWarning):  # of the latest protocol; clients of the others send it
                    await session.client.send_ping()
                other = await session.client.call_tool("search", {"query": "install git", "k": 2})
                scope.cancel()
        return scope.cancelled_caught, len(other.structured_content["hits"])

    try:
        assert session.portal.call(cancelled) == (True, 2)
    finally:
        service.go_on.set()
    assert session.ask("search", query="install git")["hits"]


def test_a_model_stops_writing_when_the_question_is_cancelled(corpus_db: Path, chat_server: ChatServer) -> None:
    async def cancelled(session: Session) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(session.client.call_tool, "ask", {"question": "How do I undo the last commit?"})
                while not chat_server.requests:
                    await anyio.sleep(0.01)
                scope.cancel()

    chat_server.script = [Reply(["word "] * 600, wait_s=0.05)]
    with (
        kebab.open(corpus_db, ask_model="openai:m", ask_endpoint=f"{chat_server.address}/v1") as knowledge_base,
        connected(make_server(Service(knowledge_base), Workers(None))) as session,
    ):
        session.portal.call(cancelled, session)
        assert chat_server.abandoned.wait(10)


def test_a_search_that_takes_too_long_is_an_error(corpus_db: Path) -> None:
    with kebab.open(corpus_db) as knowledge_base:
        slow = TrickyService(knowledge_base)
        with connected(make_server(slow, Workers(0.2))) as session:
            assert session.fails("search", query="slow")["code"] == "timed_out"
            slow.go_on.set()


def test_a_missing_document_is_an_error_and_an_empty_corpus_is_a_notice(tmp_path: Path) -> None:
    with (
        kebab.open(tmp_path / "none.sqlite") as missing,
        connected(make_server(Service(missing), Workers(None))) as session,
    ):
        assert session.fails("search", query="git")["code"] == "not_found"
        assert session.fails("status")["code"] == "not_found"
    with kebab.open() as default, connected(make_server(Service(default), Workers(None))) as session:
        assert [notice["code"] for notice in session.ask("search", query="git")["notices"]] == ["empty_corpus"]
        assert session.fails("fetch", path="git.md")["code"] == "not_found"


def test_the_tool_ingest_is_listed_only_if_writing_is_allowed(corpus_db: Path) -> None:
    with kebab.open(corpus_db) as knowledge_base:
        names = {
            allowed: [tool.name for tool in tools_for(Service(knowledge_base, allow_write=allowed))]
            for allowed in (False, True)
        }
    assert set(names[True]) - set(names[False]) == {"ingest"}


def test_a_tool_result_names_a_limited_number_of_copies(tmp_path: Path) -> None:
    """Regression: a hit named hundreds of copies, more than an agent accepts."""
    for number in range(60):
        (tmp_path / f"{number}.md").write_text("# Licence\n\nAnybody may use the lamp.\n")
    with kebab.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(tmp_path, embed=False)
        assert len(next(iter(knowledge_base.search("lamp"))).duplicates) == 59
        with connected(make_server(Service(knowledge_base), Workers(None))) as session:
            assert [len(hit["duplicates"]) for hit in session.ask("search", query="lamp")["hits"]] == [20]
            assert {
                len(hit["duplicates"]) for hit in session.ask("ask", question="Who may use the lamp?")["candidates"]
            } == {20}


def test_a_tool_result_fits_max_tokens_or_by_default_the_limit_of_agents(session: Session) -> None:
    few = session.ask("search", query="the", match="any", k=50, max_tokens=300)
    assert few["truncated"]
    assert 0 < few["returned"] < 10
    many = session.ask("search", query="the", match="any", k=50, full_text=True, neighbours=2)
    assert many["truncated"]
    assert len(json.dumps(many, ensure_ascii=False)) < 25_000 * 3
    named = session.ask("search", query="the", match="any", k=50, full_text=True, neighbours=2, max_tokens=10**6)
    assert [hit["chunk_id"] for hit in named["hits"]][: many["returned"]] == [hit["chunk_id"] for hit in many["hits"]]
    assert named["returned"] > many["returned"]
