"""The options every command has, before or after its name, and the knowledge base they lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kebab.config.loading import LoadedSettings
    from kebab.knowledge_base import KnowledgeBase

_Command = TypeVar("_Command", bound=Callable[..., Any])
_META = "kebab.options"


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Contexts are made from the outside in, so the innermost explicit value is stored last and wins."""
    if value not in (None, False) and param.name is not None:
        ctx.meta.setdefault(_META, {})[param.name] = value


def global_options(command: _Command) -> _Command:
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
        click.option("--db", metavar="FILE", expose_value=False, callback=_remember, help="Another database."),
        click.option("--json", is_flag=True, expose_value=False, callback=_remember, help="Wire objects (JSON) on stdout."),
    ):
        command = decorate(command)
    return command


def command(name: str, *, example: str, **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with the global options and an example at the end of its help."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        lines = "\n".join(f"  {line}" for line in example.splitlines())
        return click.command(name, epilog=f"Example:\n\n\b\n{lines}", **attributes)(global_options(function))

    return decorate


def group(name: str, *, example: str, **attributes: Any) -> Callable[[Callable[..., Any]], click.Group]:
    def decorate(function: Callable[..., Any]) -> click.Group:
        lines = "\n".join(f"  {line}" for line in example.splitlines())
        return click.group(name, epilog=f"Example:\n\n\b\n{lines}", **attributes)(global_options(function))

    return decorate


def _chosen() -> dict[str, Any]:
    options: dict[str, Any] = click.get_current_context().meta.get(_META, {})
    return options


def wants_json() -> bool:
    return bool(_chosen().get("json"))


def is_quiet() -> bool:
    return bool(_chosen().get("quiet"))


def config_file() -> str | None:
    return _chosen().get("config")


def loaded_settings() -> LoadedSettings:
    import os

    from kebab.config.loading import load_settings

    db = _chosen().get("db") or os.environ.get("KEBAB_DB")
    return load_settings(config_file(), flags={"store.path": db})


def knowledge_base() -> KnowledgeBase:
    """Closed when the command ends."""
    from kebab.knowledge_base import KnowledgeBase

    return click.get_current_context().with_resource(KnowledgeBase(loaded_settings()))
