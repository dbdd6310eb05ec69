"""The options every command has, before or after its name, and the knowledge base they lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kebab.config.loading import LoadedSettings
    from kebab.knowledge_base import KnowledgeBase

_Function = Callable[..., Any]
_META = "kebab.options"


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Contexts are made from the outside in, so the innermost explicit value is stored last and wins."""
    if value not in (None, False) and param.name is not None:
        ctx.meta.setdefault(_META, {})[param.name] = value


def global_options(function: _Function) -> _Function:
    for decorate in (
        click.option(
            "--quiet",
            "-q",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="Nothing but results and errors.",
        ),
        click.option("--config", metavar="FILE", expose_value=False, callback=_remember, help="Another config file."),
        click.option(
            "--db",
            metavar="FILE",
            expose_value=False,
            callback=_remember,
            help="Another database: a file, or qdrant://HOST:PORT/NAME.",
        ),
        click.option(
            "--json", is_flag=True, expose_value=False, callback=_remember, help="Wire objects (JSON) on stdout."
        ),
    ):
        function = decorate(function)
    return function


def command(name: str, *, example: str, **attributes: Any) -> Callable[[_Function], click.Command]:
    """A command with the global options and an example at the end of its help."""

    def decorate(function: _Function) -> click.Command:
        decorator: Callable[[_Function], click.Command] = click.command(name, epilog=_shown(example), **attributes)
        return decorator(global_options(function))

    return decorate


def _shown(example: str) -> str:
    lines = "\n".join(f"  {line}" for line in example.splitlines())
    return f"Example:\n\n\b\n{lines}"  # \b keeps click from joining the lines


def group(name: str, *, example: str, **attributes: Any) -> Callable[[_Function], click.Group]:
    def decorate(function: _Function) -> click.Group:
        decorator: Callable[[_Function], click.Group] = click.group(
            name, epilog=_shown(example), no_args_is_help=False, **attributes
        )
        return decorator(global_options(function))

    return decorate


def _chosen() -> dict[str, Any]:
    options: dict[str, Any] = click.get_current_context().meta.get(_META, {})
    return options


def wants_json() -> bool:
    return bool(_chosen().get("json"))


def is_quiet() -> bool:
    return bool(_chosen().get("quiet"))


def places_given() -> dict[str, str]:
    """--config and --db as far as this command line has them."""
    context = click.get_current_context(silent=True)
    options = context.meta.get(_META, {}) if context is not None else {}
    return {name: options[name] for name in ("config", "db") if name in options}


def config_file() -> str | None:
    return _chosen().get("config")


def loaded_settings(db: str | None = None) -> LoadedSettings:
    from kebab.config.loading import load_settings

    return load_settings(config_file(), flags={"store.path": db or _chosen().get("db")})


def knowledge_base(db: str | None = None) -> KnowledgeBase:
    """In `db`, or as --db and the settings say. Closed when the command ends."""
    from kebab.knowledge_base import KnowledgeBase

    return click.get_current_context().with_resource(KnowledgeBase(loaded_settings(db)))
