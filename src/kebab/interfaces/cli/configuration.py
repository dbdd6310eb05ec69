"""The commands kb init and kb config show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kebab.config.loading import FILE_NAME, LOCAL_FOLDER, config_folder, database_address, database_path
from kebab.config.settings import SettingField, Settings, all_settings
from kebab.core.addresses import masked_address
from kebab.core.errors import ConfigError, file_errors
from kebab.core.files import make_folder, open_file
from kebab.interfaces.cli.options import command, group, loaded_settings, option, places_given
from kebab.interfaces.cli.render import done, printed_as_json, table
from kebab.wire import view
from kebab.wire.records import ConfigV1, SettingV1

if TYPE_CHECKING:
    pass


def commented_config() -> str:
    """A config file that lists every setting with its default, commented out."""
    lines = [
        "# Kebab settings. Every line is optional; remove the # to change a value.",
        "# Flags win over KEBAB_* variables, those over this file.",
    ]
    section = ""
    for item in all_settings():
        if item.section != section:
            section = item.section
            lines += ["", f"[{section}]"]
        value = json.dumps(item.default, ensure_ascii=False)  # JSON of these values is valid TOML
        lines += [f"# {item.doc} ({item.allowed})", f"# {item.name} = {value}"]
    return "\n".join(lines) + "\n"


@command("init", example="kb init\nkb init --here        # an index of its own for this folder")
@option("--here", is_flag=True, help="Keep the index of this folder in ./.kebab.")
@option("--force", is_flag=True, help="Overwrite an existing config file.")
def init_command(here: bool, force: bool) -> int:
    """Write a commented config file and make the data folder. Never required: everything has a default."""
    made: list[Path] = []
    notes: list[str] = []
    if here:
        folder = Path.cwd() / LOCAL_FOLDER
        _make(folder)
        with open_file(folder / ".gitignore", "w") as file:
            file.write("*\n")  # keeps the index out of git
        made.append(folder / FILE_NAME)
        notes.append(f"This folder has its own index now: {folder / FILE_NAME}.")
    else:
        path = Path(places_given().get("config") or config_folder() / "config.toml").expanduser()
        if path.exists() and not force:
            notes.append(f"{path} exists and was kept; --force overwrites it.")
        else:
            _make(path.parent)
            failing = file_errors(path, "cannot be written", "Name another with --config.", ConfigError)
            with failing, open_file(path, "w") as file:
                file.write(commented_config())
            notes.append(f"{path} was written.")
        made.append(path)
        database, _ = database_path(Settings())
        _make(database.parent)
    return done("init", " ".join([*notes, "Next: kb ingest FOLDER"]), *made)


def _make(folder: Path) -> None:
    with file_errors(folder, "cannot be made", "Check its permissions.", ConfigError):
        make_folder(folder)


@group("config", example="kb config show")
def config_command() -> None:
    """Settings and where their values come from."""


@command("show", within=config_command, example="kb config show")
def config_show() -> None:
    """Every setting, its value, and where that came from."""
    loaded = loaded_settings()
    file = str(loaded.config_file) if loaded.config_file else None
    settings = [
        view(SettingV1, item, value=_shown_value(item, loaded.settings), origin=loaded.origins.get(item.key, "default"))
        for item in all_settings()
    ]
    shown = ConfigV1(config_file=file, database=database_address(loaded.settings), settings=settings)
    if not printed_as_json(shown):
        click.echo(f"config file: {file or 'none'}")
        click.echo(f"database: {shown.database}")
        table(["setting", "value", "from"], [[one.key, repr(one.value), one.origin] for one in settings])


def _shown_value(item: SettingField, settings: Settings) -> Any:
    """The value as `kb config show` prints it: secrets, and passwords in addresses, are hidden."""
    value = getattr(getattr(settings, item.section), item.name)
    if item.secret and value:
        return "(set)"
    return masked_address(value) if isinstance(value, str) else value
