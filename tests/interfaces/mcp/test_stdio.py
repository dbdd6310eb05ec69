"""`kb mcp` as an agent runs it: as a process with the protocol on stdin and stdout, which ends without leaving anything
behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError, StdioServerParameters
from tests.interfaces.mcp.sessions import Session, command, connected, environment, over_stdio, texts

import kebab
from kebab.core.text import estimate_tokens

READING = ["search", "fetch", "ask", "list_documents", "status", "resolve-library-id", "query-docs", "get-library-docs"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


# --- what it says of itself


def test_the_server_sends_its_name_version_and_instructions(agent: Session) -> None:
    assert agent.client.server_info is not None
    assert (agent.client.server_info.name, agent.client.server_info.version) == ("kebab", kebab.__version__)
    assert "search" in (agent.client.instructions or "")
    assert len(agent.client.instructions or "") < 600


def test_tools_are_listed_with_hints_and_schemas_but_without_those_that_write(agent: Session) -> None:
    tools = agent.portal.call(agent.client.list_tools).tools
    assert [tool.name for tool in tools] == READING
    for tool in tools:
        hints = tool.annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.idempotent_hint, hints.open_world_hint) == (True, True, False)
        assert tool.title
        assert tool.description
        assert tool.input_schema["type"] == "object"
    search = tools[0].input_schema
    assert search["required"] == ["query"]
    assert {"k", "mode", "tags_any", "library", "cursor", "max_tokens", "explain"} <= set(search["properties"])


# --- each tool


def test_search_answers_with_hits_and_a_text_that_cites_them(agent: Session) -> None:
    result = agent.call("search", query="install git", k=2)
    hits = result.structured_content["hits"]
    (text,) = texts(result)
    assert [hit["rank"] for hit in hits] == [1, 2]
    for hit in hits:
        assert f"{hit['rank']}. {hit['citation']['text']} · " in text
        assert hit["heading_path"][-1] in text
        assert all(f"> {line}".rstrip() in text for line in hit["snippet"].strip("\n").splitlines())
    assert f"cursor {result.structured_content['next_cursor']}" in text
    following = agent.ask("search", query="install git", k=2, cursor=result.structured_content["next_cursor"])
    assert [hit["rank"] for hit in following["hits"]] == [3, 4]


@pytest.mark.parametrize(
    "arguments",
    [
        {"q": "install git", "limit": 3},
        {"question": "install git", "top_k": "3"},
        {"query": "install git", "top": 3.0, "mode": None},
    ],
)
def test_the_tool_search_accepts_aliases_and_numbers_as_text(agent: Session, arguments: dict[str, Any]) -> None:
    assert [hit["chunk_id"] for hit in agent.ask("search", **arguments)["hits"]] == [
        hit["chunk_id"] for hit in agent.ask("search", query="install git", k=3)["hits"]
    ]


def test_fetch_reads_a_citation_a_document_and_a_passage(agent: Session) -> None:
    hit = agent.ask("search", query="install git", k=1)["hits"][0]
    by_uri = agent.call("fetch", uri=hit["citation"]["uri"])
    head, text = texts(by_uri)
    assert head.startswith(f"{hit['citation']['text']} · ")
    assert text == by_uri.structured_content["text"]
    assert agent.ask("fetch", chunk_id=hit["chunk_id"])["text"].strip() in text
    assert agent.ask("fetch", id=hit["citation"]["text"])["text"] == text
    whole = agent.ask("fetch", doc_id=hit["doc_id"])
    assert whole["text"] == agent.ask("fetch", path=hit["doc_path"])["text"]
    assert text in whole["text"]


def test_a_document_is_read_page_by_page_to_its_end(agent: Session) -> None:
    whole = agent.ask("fetch", path="git/setup.md")["text"]
    read = ""
    offset: int | None = 0
    while offset is not None:
        result = agent.call("fetch", path="git/setup.md", max_tokens=200, offset=offset)
        read += result.structured_content["text"]
        offset = result.structured_content["next_offset"]
        assert (f"offset {offset}" in texts(result)[-1]) == (offset is not None)
    assert read == whole


def test_the_tool_ask_answers_with_markers_and_citations_of_lines(agent: Session) -> None:
    result = agent.call("ask", question="How do I undo the last commit?")
    answer = result.structured_content
    assert answer["grounded"] is True
    (text,) = texts(result)
    for cited in answer["citations"]:
        assert f"[{cited['marker']}] {(cited['quoted_at'] or cited['citation'])['text']}" in text
    assert agent.ask("ask", query="How do I undo the last commit?", source="notes")["answer"] == answer["answer"]


def test_a_refusal_of_the_tool_ask_has_a_reason_and_the_nearest_passages(agent: Session) -> None:
    result = agent.call("ask", question="Who won the football world cup in 1954?")
    refused = result.structured_content
    assert (result.is_error, refused["answer"], refused["grounded"]) == (False, None, False)
    assert texts(result)[0].startswith(f"No answer ({refused['refusal_reason']}): {refused['refusal_message']}")


def test_documents_are_listed_with_filters_and_pages(agent: Session) -> None:
    first = agent.call("list_documents", limit=5)
    listed = first.structured_content
    assert (len(listed["items"]), listed["next_offset"]) == (5, 5)
    assert f"cursor {listed['next_offset']}" in texts(first)[0]
    rest = agent.ask("list_documents", limit=1000, cursor=listed["next_offset"])
    assert len(rest["items"]) + 5 == rest["total"]
    assert rest["next_offset"] is None
    tagged = agent.ask("list_documents", tag="git")
    assert 0 < tagged["total"] < listed["total"]
    assert all("git" in item["tags"] for item in tagged["items"])
    # A text with commas is a list, as on every surface: left out as one strange tag, nothing would be left out.
    without = agent.ask("list_documents", exclude_tag="git,no-such-tag")
    assert without["total"] == listed["total"] - tagged["total"]
    assert agent.ask("search", query="install git", tag="git,no-such-tag")["hits"]


def test_the_tool_status_returns_what_is_indexed(agent: Session) -> None:
    status = agent.ask("status")
    assert (status["sources"], status["libraries"], status["read_only"], status["ingest_running"]) == (
        ["notes"],
        2,
        True,
        False,
    )


def test_library_tools_return_exactly_the_texts_that_agents_know(agent: Session) -> None:
    """The text part has the formats that agents know; the structured part has the objects."""
    found = agent.call("resolve-library-id", libraryName="widget", userQuery="round gauges")
    assert texts(found) == [
        "1. Widget\n   Library ID: /acme/widget\n   Description: Gauges for dashboards\n"
        "   Snippets: 2 | Trust Score: 2.0/10\n   Available Versions: default branch"
    ]
    assert found.structured_content["libraries"][0]["library_id"] == "/acme/widget"
    golden = "## Library Rules\n- Always close a gauge\n\n*These rules are the library's own words.*\n\n---\n\n### Create a dial\n*Widget > Guide*\n```go\nfunc main() {\n\tdial()\n}\n```"
    for arguments in (
        {"libraryId": "/acme/widget", "query": "create a dial"},
        {"libraryName": "/acme/widget", "question": "create a dial"},
    ):
        docs = agent.call("query-docs", type="code", **arguments)
        assert texts(docs) == [golden]
        assert docs.structured_content["snippets"][0]["language"] == "go"
    older = agent.call(
        "get-library-docs", context7CompatibleLibraryID="/acme/widget", topic="create a dial", tokens=5000, type="code"
    )
    assert texts(older) == [golden]
    assert (
        "### Colours\n*Widget > Guide*\nAny CSS colour is accepted."
        in texts(agent.call("query-docs", libraryID="/acme/widget", query="colours"))[0]
    )


def test_resolve_library_id_returns_at_most_limit_libraries(agent: Session) -> None:
    assert len(agent.call("resolve-library-id", libraryName="acme").structured_content["libraries"]) > 1
    assert len(agent.call("resolve-library-id", libraryName="acme", limit=1).structured_content["libraries"]) == 1
    for limit in (0, 101, "many"):
        assert "limit" in agent.fails("resolve-library-id", libraryName="widget", limit=limit)["message"]


def test_an_empty_list_of_libraries_is_reported_and_an_unknown_id_is_an_error(agent: Session) -> None:
    """A name without a match is an answer; an id that does not exist is an error."""
    assert len(agent.ask("resolve-library-id", libraryName="acme", limit=1)["libraries"]) == 1
    assert texts(agent.call("resolve-library-id", libraryName="zzzz")) == ["No libraries found matching your search."]
    assert texts(agent.call("query-docs", libraryId="/acme/widget", query="zzzz")) == [
        "## Library Rules\n- Always close a gauge\n\n*These rules are the library's own words.*",
        "No snippet was found.",
    ]
    error = agent.fails("query-docs", libraryId="/acme/wodget", query="dial")
    assert (error["code"], error["hint"]) == ("not_found", "Did you mean /acme/widget?")
    assert agent.fails("get-library-docs", context7CompatibleLibraryID="widget")["code"] == "usage"
    assert agent.fails("search", query="dial", library="/no/such")["code"] == "not_found"


def test_text_that_reads_like_orders_is_quoted_with_a_flag(agent: Session) -> None:
    docs = agent.call("query-docs", libraryId="/acme/sly", query="instructions")
    assert docs.structured_content["snippets"][0]["suspicious"]
    assert "reads like orders" in texts(docs)[-1]
    assert not any(
        "reads like orders" in text for text in texts(agent.call("query-docs", libraryId="/acme/widget", query="dial"))
    )


# --- resources


def test_documents_are_resources_read_whole_or_by_lines(agent: Session) -> None:
    listed = agent.portal.call(agent.client.list_resources).resources
    assert len(listed) == agent.ask("list_documents")["total"]
    setup = next(resource for resource in listed if resource.name == "git/setup.md")
    assert (setup.uri, setup.mime_type) == ("kebab://notes/git/setup.md", "text/markdown")
    (whole,) = agent.portal.call(agent.client.read_resource, setup.uri).contents
    assert whole.text == agent.ask("fetch", path="git/setup.md")["text"]  # type: ignore[union-attr]
    (lines,) = agent.portal.call(agent.client.read_resource, f"{setup.uri}#L10-L12").contents
    assert lines.text == "".join(whole.text.splitlines(keepends=True)[9:12])  # type: ignore[union-attr]
    templates = agent.portal.call(agent.client.list_resource_templates).resource_templates
    assert "kebab://{source}/{+path}#L{first}-L{last}" in [template.uri_template for template in templates]


@pytest.mark.parametrize(
    "uri",
    [
        "kebab://notes/none.md",
        "kebab://notes/../../etc/passwd",
        "file:///etc/passwd",
        "kebab://",
        "kebab://notes/git/setup.md#L900-L901",
    ],
)
def test_a_resource_that_is_not_indexed_is_an_error_with_a_code_of_kebab(agent: Session, uri: str) -> None:
    with pytest.raises(MCPError) as raised:
        agent.portal.call(agent.client.read_resource, uri)
    assert raised.value.error.data["code"] == "not_found"


# --- errors, and how much comes back


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "said"),
    [
        ("serach", {}, "usage", "search, fetch"),
        ("search", {}, "usage", "query"),
        ("search", {"query": "x", "colour": 1}, "usage", "Options: query, mode"),
        ("search", {"query": "x", "type": "pfd"}, "usage", "pdf, markdown"),
        ("search", {"query": "x", "k": "many"}, "usage", "whole number"),
        ("search", {"query": "'unbalanced AND ('"}, "invalid_query", ""),
        ("search", {"query": "x", "cursor": "nonsense"}, "stale_cursor", ""),
        ("search", {"query": "x", "mode": "vector"}, "vectors_off", ""),
        ("search", {"query": "x", "source": "nowhere"}, "not_found", "notes"),
        ("fetch", {}, "usage", "exactly one"),
        ("fetch", {"uri": "a.md", "doc_id": "b"}, "usage", "exactly one"),
        ("fetch", {"path": "/etc/passwd"}, "not_found", ""),
        ("fetch", {"path": "git/setup.md", "offset": 10**8}, "not_found", "next_offset"),
        ("list_documents", {"limit": 0}, "usage", "1 to 1000"),
        ("ingest", {"paths": ["."]}, "usage", "search, fetch"),
    ],
)
def test_a_failure_is_a_tool_error_with_a_hint(
    agent: Session, tool: str, arguments: dict[str, Any], code: str, said: str
) -> None:
    error = agent.fails(tool, **arguments)
    assert error["code"] == code
    assert said in f"{error['message']} {error['hint']}"


# --- its life


def started(database: Path, home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(database, "mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    )


def test_the_server_ends_with_stdin_or_a_signal_and_prints_only_the_protocol(corpus_db: Path, tmp_path: Path) -> None:
    closed, told = started(corpus_db, tmp_path), started(corpus_db, tmp_path)
    escaped = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"git \\ud800"}}}\n'
    for server in (closed, told):
        assert server.stdin is not None
        server.stdin.write(
            json.dumps(INITIALIZE).encode()
            + b'\n{"jsonrpc":"2.0","method":"notifications/initialized"}\nno JSON\n\n'
            + escaped
        )
        server.stdin.flush()
    for server in (closed, told):
        assert server.stdout is not None
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "kebab"
        assert json.loads(server.stdout.readline())["result"]["structuredContent"]["query"] == "git ?"
    told.send_signal(signal.SIGTERM)
    out, err = closed.communicate(timeout=20)  # closes stdin
    assert (closed.returncode, out, err) == (0, b"", b"")
    assert told.wait(20) == 0
    assert told.stdout is not None
    assert told.stdout.read() == b""
    told.communicate()


def many_notes(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nThe zebra crossing number {number} of the town.\n")
    return folder


def test_the_tool_ingest_reports_progress_and_a_cancelled_ingest_can_be_continued(own_db: Path, tmp_path: Path) -> None:
    """One client ingests, is cancelled and killed, while another one searches."""
    notes = many_notes(tmp_path / "zebra", 3000)
    pid_file = tmp_path / "pid"
    server = ["-c", f'echo $$ > {pid_file}; exec "$@"', "sh", *command(own_db, "mcp", "--allow-write")]
    with over_stdio(own_db, tmp_path) as reader:
        with connected(StdioServerParameters(command="sh", args=server, env=environment(tmp_path))) as writer:
            assert "ingest" in writer.schemas()
            seen: list[tuple[float, float | None, str | None]] = []
            writer.portal.call(cancelled_ingest, writer, notes, seen)
            progress = [done for done, _, _ in seen]
            assert progress == sorted(progress)
            while writer.ask("status")["ingest_running"]:
                time.sleep(0.05)
            assert len(reader.ask("search", query="install git")["hits"]) > 0
            written = reader.ask("list_documents", source="zebra")["total"]
            assert 0 < written < 3000

            with pytest.raises(MCPError):
                writer.portal.call(killed_ingest, writer, notes, int(pid_file.read_text()))
            assert len(reader.ask("search", query="install git")["hits"]) > 0
        with over_stdio(own_db, tmp_path, "--allow-write") as again:
            result = again.call("ingest", path=str(notes), embed=False)
            assert result.structured_content["added"] + result.structured_content["unchanged"] == 3000
            assert "3000 files" in texts(result)[0]
            assert again.fails("ingest", paths=["/no/such/folder"])["code"] == "source_error"
            refused = again.fails("ingest", paths=[str(notes)], name="")
            assert refused["code"] == "usage"
            # More than an agent takes: what is there is cut to whole hits, and the cursor leads through the rest
            # without a gap.
            ranks, cursor, pages = [], None, 0
            while cursor is not None or not pages:
                answer = again.call(
                    "search", query="zebra crossing", k=60, cursor=cursor, match="all", duplicates="show"
                )
                assert estimate_tokens(json.dumps(answer.structured_content)) < 25_000
                assert estimate_tokens(texts(answer)[0]) < 25_000
                ranks += [hit["rank"] for hit in answer.structured_content["hits"]]
                cursor, pages = answer.structured_content["next_cursor"], pages + 1
                if pages == 4:
                    break
            assert answer.structured_content["truncated"]
            assert ranks == list(range(1, len(ranks) + 1))
            listed = again.call("list_documents", limit=1000)
            assert estimate_tokens(json.dumps(listed.structured_content)) < 25_000
            assert listed.structured_content["next_offset"] == len(listed.structured_content["items"])


async def cancelled_ingest(writer: Session, notes: Path, seen: list[tuple[float, float | None, str | None]]) -> None:
    with anyio.CancelScope() as scope:

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))
            if message and message.startswith("file"):
                scope.cancel()

        await writer.client.call_tool("ingest", {"paths": [str(notes)], "embed": False}, progress_callback=heard)
    assert scope.cancelled_caught


async def killed_ingest(writer: Session, notes: Path, pid: int) -> None:
    async def heard(progress: float, total: float | None, message: str | None) -> None:
        if message and message.startswith("file"):
            os.kill(pid, signal.SIGKILL)

    await writer.client.call_tool("ingest", {"paths": [str(notes)], "embed": False}, progress_callback=heard)
