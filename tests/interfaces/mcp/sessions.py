"""Real clients of the MCP server: those of the SDK, over stdio with a new process, over HTTP, or in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent
from tests.forked_kb import kb_command
from tests.serving import Server
from tests.serving import serving as kb_serve


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment for a process that sees no files or settings of the user."""
    places = {
        name: str(home / name.split("_")[1].lower()) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEBAB_", "XDG_"))}
    return {**kept, "HOME": str(home), **places, "KEBAB_EMBEDDING_MODEL": "none", "PYTHONWARNINGS": "error", **more}


def command(database: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kebab", "--db", str(database), *arguments]


class Session:
    """A connected client, for tests that wait for each answer."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self.client = client
        self.portal = portal

    def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        """The result of a tool call, also an error, after validation against the tool's output schema."""
        result: CallToolResult = self.portal.call(self.client.call_tool, tool, arguments)
        if tool in self.schemas():
            _validator(self, tool).validate(result.structured_content)
        return result

    def ask(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The wire object of a call that must succeed."""
        result = self.call(tool, **arguments)
        assert not result.is_error, texts(result)
        found: dict[str, Any] = result.structured_content
        return found

    def fails(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error of a call that must fail; its text must contain the same message."""
        result = self.call(tool, **arguments)
        assert result.is_error, texts(result)
        error: dict[str, Any] = result.structured_content
        assert error["schema_version"] == "error.v1"
        assert error["message"]
        (text,) = texts(result)
        assert text.startswith(f"Error ({error['code']}): {error['message']}")
        return error

    def schemas(self) -> Mapping[str, Any]:
        """The output schemas of the listed tools, by tool."""
        if not hasattr(self, "_schemas"):
            self._schemas = {tool.name: tool.output_schema for tool in self.portal.call(self.client.list_tools).tools}
        return self._schemas


@cache
def _validator(session: Session, tool: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(session.schemas()[tool])


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


@contextmanager
def connected(server: Any, mode: str = "legacy") -> Iterator[Session]:
    """A client of anything that the SDK connects to: a command, an address, or a server in this process."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server, mode=mode, read_timeout_seconds=60)) as client,
    ):
        yield Session(client, portal)


@contextmanager
def over_stdio(database: Path, home: Path, *arguments: str, mode: str = "legacy", **more: str) -> Iterator[Session]:
    kb, *rest = kb_command()
    options = [*rest, "--db", str(database), "mcp", *arguments]
    with connected(StdioServerParameters(command=kb, args=options, env=environment(home, **more)), mode) as session:
        yield session


@contextmanager
def serving(database: Path, home: Path, *arguments: str, **more: str) -> Iterator[Server]:
    """The address and the process of a kb serve on a free port."""
    with kb_serve(database, *arguments, home=home, env={"PYTHONWARNINGS": "error", **more}) as server:
        yield server
        server.stop(20)
