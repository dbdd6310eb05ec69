"""The options of every command, and the knowledge base that they choose."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kebab.core.checking import Schema, checked, from_text, repeated
from kebab.core.errors import UsageError

if TYPE_CHECKING:
    from kebab.config.loading import LoadedSettings
    from kebab.knowledge_base import KnowledgeBase

_Function = Callable[..., Any]
_META = "kebab.options"
_KINDS: dict[str, type] = {"choice": str, "integer": int, "integer range": int, "float": float}
"""Python types by the names of click's types."""


class CheckedOption(click.Option):
    """An option whose numbers and choices `kebab.core.checking` checks, as for HTTP and MCP."""

    @property
    def flag(self) -> str:
        """The first long flag of the option, without the leading dashes."""
        return next((name for name in self.opts if name.startswith("--")), self.opts[0]).lstrip("-")

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Makes click collect all values of an option, instead of ignoring all but the last."""
        is_repeatable, self.multiple = self.multiple, not (self.is_flag or self.count)
        super().add_to_parser(parser, ctx)
        self.multiple = is_repeatable

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        if isinstance(value, list) and not self.multiple:
            if len(value) > 1:
                raise repeated(self.flag.replace("-", "_"))
            [value] = value
        kind = _KINDS.get(self.type.name)
        if kind is None or not isinstance(value, str):
            return super().type_cast_value(ctx, value)
        bounds: dict[str, Any] = {}
        if isinstance(self.type, click.Choice):
            bounds = {"choices": self.type.choices}
        elif isinstance(self.type, click.IntRange):
            bounds = {"least": self.type.min, "most": self.type.max}
        return checked(self.flag.replace("-", "_"), from_text(value, kind), kind, **bounds)


option = partial(click.option, cls=CheckedOption)


def within(schema: Schema) -> dict[str, Any]:
    """The attributes of an option that takes a whole number, as its JSON Schema says."""
    return {"type": click.IntRange(schema["minimum"], schema["maximum"]), "default": schema["default"]}


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses arguments. An option whose number may be left out takes the next word only if it is a number."""
        may_stand_alone = {
            flag: f"{flag}={one.flag_value}"
            for one in self.params
            if isinstance(one, click.Option) and not one.is_flag and isinstance(one.flag_value, int)
            for flag in one.opts
        }
        followed_by = zip(args, [*args[1:], ""], strict=False)
        return super().parse_args(
            ctx, [may_stand_alone.get(word, word) if not after.isdecimal() else word for word, after in followed_by]
        )


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Stores a global option for the run. click calls this for outer commands first, so the innermost value wins."""
    if value not in (None, False) and param.name is not None:
        ctx.meta.setdefault(_META, {})[param.name] = value


def global_options(function: _Function) -> _Function:
    for flags, attributes in (
        (("--quiet", "-q"), {"is_flag": True, "help": "Nothing but results and errors."}),
        (("--config",), {"metavar": "FILE", "help": "Another config file."}),
        (("--db",), {"metavar": "FILE", "help": "Another database: a file, or qdrant://HOST:PORT/NAME."}),
        (("--json",), {"is_flag": True, "help": "Wire objects (JSON) on stdout."}),
    ):
        function = option(*flags, expose_value=False, callback=_remember, **attributes)(function)
    return function


def command(
    name: str, *, example: str, within: click.Group | None = None, **attributes: Any
) -> Callable[[_Function], click.Command]:
    """Makes a function a command with the global options and an example in its help. `within`: its group."""

    def decorate(function: _Function) -> click.Command:
        decorator: Callable[[_Function], click.Command] = click.command(
            name, **{"cls": _Command, "epilog": _shown(example), **attributes}
        )
        made = decorator(global_options(function))
        if within is not None:
            within.add_command(made)
        return made

    return decorate


def group(name: str, *, example: str, **attributes: Any) -> Callable[[_Function], click.Group]:
    decorate: Any = command(name, example=example, cls=click.Group, no_args_is_help=False, **attributes)
    made: Callable[[_Function], click.Group] = decorate
    return made


def _shown(example: str) -> str:
    lines = "\n".join(f"  {line}" for line in example.splitlines())
    return f"Example:\n\n\b\n{lines}"  # \b keeps click from joining the lines


def _chosen() -> dict[str, Any]:
    options: dict[str, Any] = click.get_current_context().meta.get(_META, {})
    return options


def wants_json() -> bool:
    return bool(_chosen().get("json"))


def is_quiet() -> bool:
    return bool(_chosen().get("quiet"))


def places_given() -> dict[str, str]:
    """The values of --config and --db on this command line, where given."""
    context = click.get_current_context(silent=True)
    options = context.meta.get(_META, {}) if context is not None else {}
    return {name: options[name] for name in ("config", "db") if name in options}


def loaded_settings(db: str | None = None) -> LoadedSettings:
    from kebab.config.loading import load_settings

    return load_settings(_chosen().get("config"), flags={"store.path": db or _chosen().get("db")})


def knowledge_base(db: str | None = None) -> KnowledgeBase:
    """Opens the knowledge base in `db`, or in the one of --db or the settings. It is closed when the command ends."""
    from kebab.knowledge_base import KnowledgeBase

    return click.get_current_context().with_resource(KnowledgeBase(loaded_settings(db)))


def is_confirmed(yes: bool, question: str, reason: str) -> bool:
    """Whether the user agrees, by --yes or when asked. Raises, with the reason to ask, if there is no terminal."""
    if yes:
        return True
    if wants_json() or not sys.stdin.isatty():
        message = f"{reason}, so it asks first, and there is no terminal to ask on."
        raise UsageError(message, hint="Say so with --yes.")
    return click.confirm(question)
