"""kb serve"""

from __future__ import annotations

from threading import Thread

import click

from kebab.core.errors import UsageError
from kebab.interfaces.cli.options import command, loaded_settings, wants_json
from kebab.interfaces.cli.render import print_json, remark


@command(
    "serve", example="kb serve\nkb serve --port 0\nKEBAB_SERVE_TOKEN=$(openssl rand -hex 24) kb serve --host 0.0.0.0"
)
@click.option(
    "--host", help="Where to listen (setting serve.host, 127.0.0.1); elsewhere than here it needs serve.token."
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Which port (setting serve.port, 8765); 0 takes a free one."
)
@click.option("--allow-write", is_flag=True, help="Callers may also ingest: any folder that this user can read.")
def serve_command(host: str | None, port: int | None, allow_write: bool) -> int:
    """Serve the web page, REST and MCP on one port, until Ctrl-C.

    Only programs on this machine can reach it, unless told otherwise, and nothing can be changed through it, unless
    --allow-write.
    """
    from kebab.interfaces.http.app import Mounted, make_app
    from kebab.interfaces.http.safety import Rules, is_loopback
    from kebab.interfaces.http.server import address, listen, run
    from kebab.interfaces.mcp.http import McpOverHttp
    from kebab.interfaces.service import Service
    from kebab.knowledge_base import KnowledgeBase
    from kebab.wire.records import DoneV1

    loaded = loaded_settings()
    settings = loaded.settings.serve
    host = host or settings.host
    if not is_loopback(host) and not settings.token:
        raise UsageError(
            f"{host} can be reached from elsewhere, so callers must show a token.",
            hint="Set KEBAB_SERVE_TOKEN to 16 or more random letters and digits, or listen on 127.0.0.1.",
        )
    names = frozenset(name.strip().lower() for name in settings.allowed_hosts.split(",") if name.strip())
    rules = Rules(
        host, settings.token, names, settings.max_body_kb * 1024, settings.requests_per_second, settings.timeout_s
    )
    with (
        KnowledgeBase(loaded, paths_on_disk=False) as kb,
        listen(host, settings.port if port is None else port) as listening,
    ):
        service = Service(kb, allow_write=allow_write)
        service.health()  # a database that cannot be read is better noticed now
        url = address(listening)

        def ready() -> None:
            if wants_json():
                print_json(DoneV1(command="serve", message=url, paths=[kb.address]))
            else:
                click.echo(url)
            remark(f"{'Callers may ingest' if allow_write else 'Read-only'}; stop with Ctrl-C.")
            Thread(target=service.warm_up, daemon=True).start()

        mcp = McpOverHttp(service, timeout_s=settings.timeout_s, max_body=rules.max_body)
        app = make_app(service, rules, mounted=[Mounted("/mcp", mcp, mcp.running)])
        run(app, listening, ready, settings.timeout_s)
    return 0
