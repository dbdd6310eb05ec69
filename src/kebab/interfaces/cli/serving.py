"""The commands kb serve and kb mcp."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import click

from kebab.config.loading import database_address
from kebab.core.errors import UsageError
from kebab.interfaces.cli.options import command, group, loaded_settings, option, places_given, wants_json
from kebab.interfaces.cli.render import done, remark


@command(
    "serve", example="kb serve\nkb serve --port 0\nKEBAB_SERVE_TOKEN=$(openssl rand -hex 24) kb serve --host 0.0.0.0"
)
@option("--host", help="Where to listen (setting serve.host, 127.0.0.1); elsewhere than here it needs serve.token.")
@option("--port", type=click.IntRange(0, 65_535), help="Which port (setting serve.port, 8765); 0 takes a free one.")
@option("--allow-write", is_flag=True, help="Callers may also ingest: any folder that this user can read.")
def serve_command(host: str | None, port: int | None, allow_write: bool) -> int:
    """Serve the web page, REST and MCP on one port, until Ctrl-C.

    Only programs on this machine can reach it, unless told otherwise, and nothing can be changed through it, unless
    --allow-write.
    """
    from kebab.interfaces.http.safety import Rules, is_loopback
    from kebab.interfaces.http.server import Mounted, address, listen, make_app, run
    from kebab.interfaces.mcp.server import McpOverHttp
    from kebab.interfaces.service import Service
    from kebab.knowledge_base import KnowledgeBase

    loaded = loaded_settings()
    settings = loaded.settings.serve
    host = host or settings.host
    if not is_loopback(host) and not settings.token:
        hint = "Set KEBAB_SERVE_TOKEN to 16 or more random letters and digits, or listen on 127.0.0.1."
        raise UsageError(f"{host} can be reached from elsewhere, so callers must show a token.", hint=hint)
    names = frozenset(name.strip().lower() for name in settings.allowed_hosts.split(",") if name.strip())
    rules = Rules(
        host, settings.token, names, settings.max_body_kb * 1024, settings.requests_per_second, settings.timeout_s
    )
    with (
        KnowledgeBase(loaded, paths_on_disk=False) as kb,
        listen(host, settings.port if port is None else port) as listening,
    ):
        service = Service(kb, allow_write=allow_write)
        service.health()  # raises now, not at the first request, if the database cannot be read
        url = address(listening)

        def ready() -> None:
            done("serve", url, kb.address)
            remark(f"{'Callers may ingest' if allow_write else 'Read-only'}; stop with Ctrl-C.")
            Thread(target=service.warm_up, daemon=True).start()

        mcp = McpOverHttp(service, timeout_s=settings.timeout_s, max_body=rules.max_body)
        app = make_app(service, rules, mounted=[Mounted("/mcp", mcp, mcp.running)])
        run(app, listening, ready, settings.timeout_s)
    return 0


# --- mcp


class Client(NamedTuple):
    name: str
    place: str
    """The client's configuration file. A relative path is in the project folder."""
    key: str
    """The key in that file that holds the MCP servers."""
    typed: bool = False
    """Whether the client needs "type": "stdio" in the entry of a server."""


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
    """The command that starts this installation with this database, from any working folder and PATH."""
    program = Path(sys.argv[0])
    is_ours = program.name in ("kb", "kebab") and program.is_file()
    known = [str(program.absolute())] if is_ours else [sys.executable, "-m", "kebab"]
    places = ["--db", database, *(["--config", str(Path(config).expanduser().absolute())] if config else [])]
    return [*known, *places, "mcp", *(["--allow-write"] if allow_write else [])]


def snippet(client: Client, command: list[str]) -> str:
    program, *arguments = command
    if client.place.endswith(".toml"):
        # JSON texts and lists of texts are valid TOML.
        values = {"command": program, "args": arguments}
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
        return "\n".join([f"[{client.key}.kebab]", *lines])
    server: dict[str, Any] = {**({"type": "stdio"} if client.typed else {}), "command": program, "args": arguments}
    return json.dumps({client.key: {"kebab": server}}, ensure_ascii=False, indent=2)


@group("mcp", example="kb mcp install --client claude-code\nkb mcp\nkb mcp --allow-write", invoke_without_command=True)
@option("--allow-write", is_flag=True, help="The agent may also ingest: any folder that this user can read.")
@click.pass_context
def mcp_command(context: click.Context, allow_write: bool) -> int:
    """Serve a coding agent over stdin and stdout (MCP), until stdin ends.

    Agents start this by themselves, once they are told to; kb mcp install shows how. Over HTTP, kb serve has it at
    /mcp.
    """
    if context.invoked_subcommand is not None:
        context.obj = allow_write
        return 0
    from kebab.interfaces.mcp.server import run
    from kebab.interfaces.service import Service
    from kebab.knowledge_base import KnowledgeBase

    with KnowledgeBase(loaded_settings(), paths_on_disk=False) as kb:
        run(Service(kb, allow_write=allow_write))
    return 0


@command(
    "install", within=mcp_command, example="kb mcp install\nkb mcp install --client codex\nkb mcp --allow-write install"
)
@option(
    "--client", type=click.Choice(list(CLIENTS)), default="claude-code", show_default=True, help="For which program."
)
@click.pass_context
def mcp_install(context: click.Context, client: str) -> int:
    """Print what to put into the configuration of a client, so that it starts kb mcp. Nothing is written."""
    database = database_address(loaded_settings().settings)
    chosen = CLIENTS[client]
    shown = snippet(chosen, starting(database, places_given().get("config"), allow_write=bool(context.obj)))
    if wants_json():
        return done("mcp install", shown, chosen.place)
    remark(f"{chosen.name}: put this into {chosen.place}")
    click.echo(shown)
    return 0
