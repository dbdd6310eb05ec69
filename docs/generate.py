"""Writes what the documentation takes from the program: references, wire schemas, and the output of the sessions it
shows.

python docs/generate.py            write everything (scripts/docs does this in .venv)
python docs/generate.py --check    write nothing; name what is out of date and exit with 1
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from sessions import DOCUMENTS, WITH_SERVER, refreshed

from kebab.config.settings import SettingField, all_settings
from kebab.interfaces.cli.main import cli
from kebab.wire import schemas

ROOT = Path(__file__).resolve().parents[1]
_NOTE = "<!-- Written by scripts/docs from the code; do not edit. -->"


def generated_files() -> dict[str, str]:
    """Path below the repository → content, for every file that is generated as a whole."""
    files = {"docs/reference/settings.md": settings_reference(), "docs/reference/cli.md": cli_reference()}
    for name in schemas.names():
        content = json.dumps(schemas.schema(name), ensure_ascii=False, indent=2)
        files[f"docs/wire-schema/v1/{name}.schema.json"] = content + "\n"
    return files


# --- settings


def settings_reference() -> str:
    lines = [
        "# Settings",
        "",
        _NOTE,
        "",
        "Every setting may stand in the config file, as `name = value` under its `[section]`, or in its environment variable. Flags",
        "win over variables, variables over the file, the file over the default. An unknown name or a value out of range is an error.",
        "`kb config show` tells where each value came from, `kb init` writes a config file with all of them commented out.",
    ]
    for section, items in groupby(all_settings(), key=lambda item: item.section):
        lines += [
            "",
            f"## [{section}]",
            "",
            "| setting | default | allowed | variable | meaning |",
            "|---|---|---|---|---|",
        ]
        lines += [_setting_row(item) for item in items]
    lines += ["", "`KEBAB_CONFIG` and `KEBAB_DB` stand for the flags `--config` and `--db`."]
    return "\n".join(lines) + "\n"


def _setting_row(item: SettingField) -> str:
    meaning = item.doc
    if item.alias:
        meaning += f" Also written `{item.alias}`."
    if item.changes_index:
        meaning += " A change makes the next `kb ingest` index every document again."
    default = json.dumps(item.default, ensure_ascii=False)
    cells = (f"`{item.name}`", f"`{default}`", item.allowed.replace(" | ", ", "), f"`{item.variable}`", meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


# --- commands


def walk(command: click.Command, names: tuple[str, ...] = ("kb",)) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it, groups before what they hold."""
    yield names, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from walk(child, (*names, name))


def global_option_names() -> set[str]:
    return {option for parameter in cli.params for option in parameter.opts if parameter.name != "version"}


def cli_reference() -> str:
    lines = [
        "# Commands",
        "",
        _NOTE,
        "",
        "`kb` and `kebab` are the same program. `kb COMMAND --help` shows what stands here.",
        "",
        "Exit codes: 0 success, also when nothing is found; 1 a negative answer (`ask`, `search --exit-code`, `verify --strict`,",
        "`eval compare --exit-code`); 2 an error; 3 an unhealthy `doctor`, or a store that is not whole (`verify`); 130",
        "interrupted.",
        "",
        "## Options of every command",
        "",
        "Before or after the command's name; the one nearest to the end wins.",
        "",
        *(_option_line(parameter) for parameter in cli.params if isinstance(parameter, click.Option)),
        "- `-h`, `--help`: What the command does, its options, and an example.",
    ]
    for names, command in walk(cli):
        if command is not cli:
            lines += ["", f"## {' '.join(names)}", "", *_command_lines(names, command)]
    return "\n".join(lines) + "\n"


def _command_lines(names: tuple[str, ...], command: click.Command) -> Iterator[str]:
    usage = [*names, *(_argument(parameter) for parameter in command.params if isinstance(parameter, click.Argument))]
    if isinstance(command, click.Group):
        usage.append("COMMAND")
    yield f"`{' '.join(usage)}`"
    yield ""
    yield inspect.cleandoc(command.help or "")
    everywhere = global_option_names()
    options = [each for each in command.params if isinstance(each, click.Option) and not everywhere & set(each.opts)]
    if options:
        yield ""
        yield from (_option_line(option) for option in options)
    example = (command.epilog or "").partition("\b\n")[2]
    if example:
        yield from ("", "```sh", *(line.strip() for line in example.splitlines()), "```")


def _argument(parameter: click.Argument) -> str:
    name = parameter.metavar or (parameter.name or "").upper()
    if parameter.metavar and name.startswith("["):
        return name
    many = f"{name}…" if parameter.nargs == -1 else name
    return many if parameter.required else f"[{many}]"


def _option_line(option: click.Option) -> str:
    value = "" if option.is_flag else f" {_value(option)}"
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    return f"- {names}: {option.help}"


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return {"integer": "N", "integer range": "N", "float": "NUMBER"}.get(option.type.name, "TEXT")


def out_of_date(*, write: bool) -> list[str]:
    """The files whose content is not what the program says now; with `write`, corrected on the way."""
    with tempfile.TemporaryDirectory() as models:
        contents = {**generated_files(), **{name: refreshed(ROOT / name, Path(models)) for name in DOCUMENTS}}
        with _server() as server:
            contents |= {name: refreshed(ROOT / name, Path(models), server) for name in WITH_SERVER}
    stale = []
    for name, content in contents.items():
        path = ROOT / name
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
    for path in sorted((ROOT / "docs/wire-schema/v1").glob("*.json")):
        name = path.relative_to(ROOT).as_posix()
        if name not in contents:
            stale.append(name)
            if write:
                path.unlink()
    return stale


@contextmanager
def _server() -> Iterator[str]:
    """The Qdrant server of the tests, which scripts/qdrant-server installs."""
    sys.path.insert(0, str(ROOT))
    from tests.qdrant_server import qdrant_node

    with qdrant_node() as node:
        yield f"127.0.0.1:{node.http_port}"


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    if arguments and not check:
        print("usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    stale = out_of_date(write=not check)
    for name in stale:
        print(f"out of date: {name}" if check else f"written: {name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
