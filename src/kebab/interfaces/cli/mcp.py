"""kb mcp"""

from __future__ import annotations

import click

from kebab.interfaces.cli.options import global_options, group, loaded_settings, wants_json
from kebab.interfaces.cli.render import print_json, remark
from kebab.interfaces.mcp.client_configs import CLIENTS


@group("mcp", example="kb mcp install --client claude-code\nkb mcp\nkb mcp --allow-write", invoke_without_command=True)
@click.option("--allow-write", is_flag=True, help="The agent may also ingest: any folder that this user can read.")
@click.pass_context
def mcp_command(context: click.Context, allow_write: bool) -> int:
    """Serve a coding agent over stdin and stdout (MCP), until stdin ends.

    Agents start this by themselves, once they are told to; kb mcp install shows how. Over HTTP, kb serve has it at
    /mcp.
    """
    if context.invoked_subcommand is not None:
        context.obj = allow_write
        return 0
    from kebab.interfaces.mcp.stdio import run
    from kebab.interfaces.service import Service
    from kebab.knowledge_base import KnowledgeBase

    with KnowledgeBase(loaded_settings(), paths_on_disk=False) as kb:
        run(Service(kb, allow_write=allow_write))
    return 0


@mcp_command.command(
    "install",
    epilog="Example:\n\n\b\n  kb mcp install\n  kb mcp install --client codex\n  kb mcp --allow-write install",
)
@global_options
@click.option(
    "--client", type=click.Choice(list(CLIENTS)), default="claude-code", show_default=True, help="For which program."
)
@click.pass_context
def mcp_install(context: click.Context, client: str) -> int:
    """Print what to put into the configuration of a client, so that it starts kb mcp. Nothing is written."""
    from kebab.config.places import database_address
    from kebab.interfaces.cli.options import config_file
    from kebab.interfaces.mcp.client_configs import snippet, starting
    from kebab.wire.records import DoneV1

    database = database_address(loaded_settings().settings)
    chosen = CLIENTS[client]
    shown = snippet(chosen, starting(database, config_file(), allow_write=bool(context.obj)))
    if wants_json():
        print_json(DoneV1(command="mcp install", message=shown, paths=[chosen.place]))
        return 0
    remark(f"{chosen.name}: {chosen.how}")
    click.echo(shown)
    return 0
