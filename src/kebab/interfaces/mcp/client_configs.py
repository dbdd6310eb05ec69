"""How programs that speak MCP are told to start `kb mcp`: each in the file and the form it reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Client(NamedTuple):
    name: str
    place: str
    """The file to put it into; relative ones are in the project."""
    key: str
    """Below which servers stand in it."""
    typed: bool = False
    """Whether a server says that it is started, not called."""

    @property
    def how(self) -> str:
        return f"put this into {self.place}"


CLIENTS = {
    "claude-code": Client("Claude Code", ".mcp.json", "mcpServers", typed=True),
    "claude-desktop": Client(
        "Claude Desktop", "claude_desktop_config.json (Settings > Developer > Edit Config)", "mcpServers"
    ),
    "cursor": Client("Cursor", "~/.cursor/mcp.json", "mcpServers"),
    "vscode": Client("Visual Studio Code", ".vscode/mcp.json", "servers", typed=True),
    "codex": Client("Codex", "~/.codex/config.toml", "mcp_servers"),
    "gemini": Client("Gemini CLI", "~/.gemini/settings.json", "mcpServers"),
    "windsurf": Client("Windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers"),
    "zed": Client("Zed", "~/.config/zed/settings.json", "context_servers"),
}


def starting(database: str, config: str | None, *, allow_write: bool) -> list[str]:
    """The command line of this very installation and database, whatever folder and search path a client has."""
    program = Path(sys.argv[0])
    known = (
        [str(program.absolute())]
        if program.name in ("kb", "kebab") and program.is_file()
        else [sys.executable, "-m", "kebab"]
    )
    places = ["--db", database, *(["--config", str(Path(config).expanduser().absolute())] if config else [])]
    return [*known, *places, "mcp", *(["--allow-write"] if allow_write else [])]


def snippet(client: Client, command: list[str]) -> str:
    program, *arguments = command
    if client.place.endswith(".toml"):
        # A JSON text is a basic string of TOML too, and a list of them an array.
        return f"[{client.key}.kebab]\ncommand = {_json(program)}\nargs = {_json(arguments)}"
    server: dict[str, Any] = {**({"type": "stdio"} if client.typed else {}), "command": program, "args": arguments}
    return _json({client.key: {"kebab": server}}, indent=2)


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
