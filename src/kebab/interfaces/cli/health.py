"""kb doctor, kb schema"""

from __future__ import annotations

import click

from kebab._version import __version__
from kebab.core.errors import NotFound
from kebab.core.records import Check
from kebab.interfaces.cli.follow_up import follow_up
from kebab.interfaces.cli.options import command, knowledge_base, wants_json
from kebab.interfaces.cli.render import has_colour, print_json, remark


@command("doctor", example="kb doctor")
def doctor_command() -> int:
    """Check program, disk, database, text index and sources; exit with 3 when something is wrong, not for what is
    merely unfinished.
    """
    checks = [check._replace(hint=check.hint and follow_up(check.hint)) for check in knowledge_base().health()]
    if wants_json():
        from kebab.wire.records import doctor_v1

        print_json(doctor_v1(checks))
    else:
        for check in checks:
            mark, colour = _mark(check)
            click.echo(f"{click.style(mark, fg=colour) if has_colour() else mark}  {check.name}: {check.message}")
            if check.hint:
                click.echo(f"      {check.hint}")
    return 0 if all(check.ok for check in checks) else 3


def _mark(check: Check) -> tuple[str, str]:
    """And its colour."""
    if not check.ok:
        return "FAIL", "red"
    return ("note", "yellow") if check.hint else ("ok  ", "green")


@command("schema", example="kb schema\nkb schema search_response")
@click.argument("name", required=False)
def schema_command(name: str | None) -> int:
    """What the index holds and which wire schemas there are; with NAME, that JSON Schema."""
    from kebab.wire import schemas

    if name is not None:
        known = name.removesuffix(".v1")
        if known not in schemas.names():
            raise NotFound(f"There is no wire schema {name}.", hint=f"Schemas: {', '.join(schemas.names())}.")
        print_json(schemas.schema(known))
        return 0
    from kebab.wire.records import SchemaV1, stats_v1

    stats = knowledge_base().stats()
    if wants_json():
        print_json(
            SchemaV1(
                version=__version__,
                schemas=[f"{each}.v1" for each in schemas.names()],
                stats=stats_v1(stats) if stats else None,
            )
        )
        return 0
    if stats is None:
        remark("Nothing has been ingested yet. Begin with: kb ingest FOLDER")
    else:
        names = (
            {"sqlite": "engine"} if "://" in stats.path else {}
        )  # the wire object calls the version so wherever it is stored
        for key, value in stats._asdict().items():
            if value is None:
                continue
            click.echo(f"{names.get(key, key)}: {(', '.join(value) or 'none') if isinstance(value, tuple) else value}")
    click.echo(f"wire schemas: {', '.join(f'{each}.v1' for each in schemas.names())}")
    return 0
