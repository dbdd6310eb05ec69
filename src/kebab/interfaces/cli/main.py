"""The table of commands, whose modules are loaded on use, and the conversion of errors to messages and exit codes.

Exit codes: 0 success, 1 a negative answer, 2 an error, 3 unhealthy, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from kebab._version import __version__
from kebab.core.checking import close_to, unknown
from kebab.core.errors import Internal, KebabError, UsageError
from kebab.interfaces.cli.options import CheckedOption, global_options

# Name → module and summary, so that `kb --help` does not import the commands.
_COMMANDS: dict[str, tuple[str, str]] = {
    "search": ("search", "Find the passages that answer a query."),
    "ask": ("ask", "Answer a question with quotations and citations, or say that there is no answer."),
    "similar": ("search", "Find passages like another one."),
    "ingest": ("ingest", "Index folders, files or stdin; again to bring the index up to date."),
    "watch": ("ingest", "Keep the index up to date while files change."),
    "lib": ("lib", "Search the documentation of the libraries you build with."),
    "eval": ("eval", "Measure search on judged queries, compare, report, tune."),
    "serve": ("serving", "Serve the web page, REST and MCP on one port."),
    "mcp": ("serving", "Serve coding agents over stdin and stdout (MCP)."),
    "source": ("ingest", "Manage the places that were ingested."),
    "list": ("look", "List documents, sources, tags or libraries."),
    "inspect": ("look", "Show what is stored about a document or chunk."),
    "fetch": ("look", "Print a document, a chunk or exact lines as they were indexed."),
    "verify": ("look", "Check that every stored passage still stands in its file."),
    "index": ("upkeep", "Rebuild or optimize the text index and the vectors."),
    "migrate": ("upkeep", "Carry everything from a file to a Qdrant cluster, or back."),
    "backup": ("upkeep", "Copy the database while others use it."),
    "reset": ("upkeep", "Delete the database."),
    "doctor": ("upkeep", "Check that everything is in order."),
    "schema": ("upkeep", "Wire schemas, and what the index holds."),
    "init": ("configuration", "Write a commented config file; never required."),
    "config": ("configuration", "Show every setting and where its value came from."),
}

# Commands of other programs → the kb command to suggest.
_SYNONYMS = {
    **dict.fromkeys(("find", "query", "grep"), "kb search"),
    **dict.fromkeys(("add", "import", "update", "sync", "embed", "reindex"), "kb ingest"),
    **dict.fromkeys(("rm", "remove", "delete", "forget"), "kb source remove"),
    **dict.fromkeys(("ls", "docs", "documents"), "kb list docs"),
    "sources": "kb list sources",
    "tags": "kb list tags",
    "libraries": "kb list libraries",
    **dict.fromkeys(("info", "stats", "status"), "kb schema"),
    **dict.fromkeys(("check", "health"), "kb doctor"),
    **dict.fromkeys(("show", "cat", "get", "read"), "kb fetch"),
    **dict.fromkeys(("settings", "configure"), "kb config show"),
    **dict.fromkeys(("evaluate", "benchmark", "measure"), "kb eval run"),
    "version": "kb --version",
    "help": "kb --help",
}


class LazyCommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"kebab.interfaces.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            close = close_to(args[0], _COMMANDS)
            meant = _SYNONYMS.get(args[0].lower()) or (f"kb {close}" if close else None)
            hint = f"Did you mean: {meant}?" if meant else f"Commands: {', '.join(_COMMANDS)}."
            raise UsageError(f"There is no command {args[0]}.", hint=hint)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. Adds --db and --config to the hints of errors here, where their values are still known."""
        try:
            return super().invoke(ctx)
        except KebabError as error:
            from kebab.interfaces.cli.render import follow_up_error

            follow_up_error(error)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Example:\n\n\b\n  kb ingest ~/notes\n  kb search 'how do I renew the certificate'",
)
@global_options
@click.version_option(__version__, prog_name="kebab")
def cli() -> None:
    """Find the passage that answers you, and where exactly it stands."""


def main(arguments: list[str] | None = None) -> NoReturn:
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    _speak_utf8()
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    if not arguments:
        arguments = ["--help"]
    try:
        code = cli.main(arguments, prog_name="kb", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KebabError as error:
        return _fail(error, as_json)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _fail(_usage_error(error), as_json)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        return 130
    except (BrokenPipeError, SystemExit):
        # The program that reads stdout has closed it, as in `kb search … | head -1`; click then raises SystemExit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if not _is_about_output(error):
            return _internal(error, as_json)
        return _cannot_write(error)
    except Exception as error:  # noqa: BLE001 - a defect must not look like an empty answer
        return _internal(error, as_json)


def _internal(error: Exception, as_json: bool) -> int:
    failure = Internal.of(error)
    if isinstance(failure, Internal):
        sys.excepthook(type(error), error, error.__traceback__)
    try:
        return _fail(failure, as_json)
    except OSError as failure:
        return _cannot_write(failure)


def _is_about_output(error: OSError) -> bool:
    """Whether an error means that stdout is full or closed. Errors of files have a filename."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF) and error.filename is None


def _cannot_write(error: OSError) -> int:
    """Reports that stdout cannot be written. Drops the buffered output, so that Python does not write it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    hint = "Free some space where it goes, or send it elsewhere."
    click.echo(f"Error: The output cannot be written: {error.strerror}.\n  {hint}", err=True)
    return 2


def _usage_error(error: click.ClickException) -> KebabError:
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        return _unknown_option(error.option_name.lstrip("-"), context.command)
    message = error.format_message()
    hint = f"See: {context.command_path} --help" if context is not None else "See: kb --help"
    if context is not None and isinstance(context.command, click.Group) and message.startswith("Missing command"):
        commands = [f"{context.command_path} {name}" for name in context.command.list_commands(context)]
        hint = f"One of: {', '.join(commands)}"
    if message.startswith("Got unexpected extra argument") and getattr(context, "command_path", "") == "kb index":
        hint = "To index files: kb ingest PATH"  # people may expect `kb index PATH`
    return UsageError(message if message.endswith((".", "?", "!")) else f"{message}.", hint=hint)


def _unknown_option(written: str, command: click.Command) -> UsageError:
    from kebab.search.options import OPTIONS, unknown_option

    flags = [one.flag for one in command.params if isinstance(one, CheckedOption)]
    if "mode" not in flags:
        return unknown(written, flags)
    name = written.replace("-", "_")
    if name in OPTIONS:  # a search option that only other commands have
        return unknown(written, flags, noun="search option")
    return unknown_option(name, *flags)


def _fail(error: KebabError, as_json: bool) -> int:
    from kebab.interfaces.cli.render import shown  # here, because it compiles patterns
    from kebab.wire import to_json
    from kebab.wire.errors import EXIT_CODE, error_v1

    if as_json:
        click.echo(to_json(error_v1(error)))
    click.echo(f"Error: {shown(error.message)}", err=True)
    if error.hint:
        click.echo(f"  {shown(error.hint)}", err=True)
    return EXIT_CODE


def _speak_utf8() -> None:
    """Makes stdin, stdout and stderr use UTF-8 in any locale. Output that cannot be encoded is replaced."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
