"""Loads settings from defaults, config file, environment and flags, where each overrides the ones before it.

Keys, types and bounds are checked, and the origin of each value is kept. The default place of the database is the
nearest `.kebab` folder in the current folder or above it, or else the user's data folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kebab.config.settings import ChunkingSettings, SettingField, Settings, all_settings
from kebab.core.addresses import masked_address
from kebab.core.checking import checked, close_to, from_text
from kebab.core.errors import ConfigError, UsageError, file_errors

NOT_SETTINGS = frozenset({"KEBAB_CONFIG", "KEBAB_DB"})
"""Environment variables for the flags --config and --db, which are not settings."""
FILE_NAME = "kebab.sqlite"
LOCAL_FOLDER = ".kebab"


class LoadedSettings(NamedTuple):
    settings: Settings
    origins: dict[str, str]
    """Key → path of the config file, "environment KEBAB_…" or "flag". A key that is absent has its default."""
    config_file: Path | None


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environment, "XDG_CONFIG_HOME", ".config")


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environment, "XDG_DATA_HOME", ".local/share")


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environment, "XDG_CACHE_HOME", ".cache")


def _xdg(environment: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Returns Kebab's folder in an XDG base folder. The XDG specification says to ignore relative paths."""
    given = environment.get(variable, "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / fallback) / "kebab"


def load_settings(
    config_file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Loads and checks all settings. `flags` have dotted keys, such as {"store.path": "notes.sqlite"}.

    Raises ConfigError if the caller or KEBAB_CONFIG names a config file that does not exist.
    """
    named = config_file or environment.get("KEBAB_CONFIG")
    path = Path(named).expanduser() if named else config_folder(environment) / "config.toml"
    if named and not path.is_file():
        raise ConfigError(f"There is no config file at {path}.", hint="Make one with: kb init", path=str(path))
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    file_found = path.is_file()
    if file_found:
        _read_file(path, values, origins)
    if any(name.startswith("KEBAB_") for name in environment):
        _read_environment(environment, values, origins)
    if _is_address(values.get("store.path", "")) and not values.get("store.url"):
        values["store.url"], origins["store.url"] = values.pop("store.path"), origins.pop("store.path")
    flags = dict(flags or {})
    if flags.get("store.path") is None and environment.get("KEBAB_DB"):
        flags["store.path"] = environment["KEBAB_DB"]
    if _is_address(str(flags.get("store.path"))):
        flags["store.url"] = flags.pop("store.path")
    known = _by_key()
    for key, value in flags.items():
        if value is not None:
            if key not in known:
                raise _unknown(key, known, "flags", "setting", None)
            item = known[key]
            values[item.key] = _checked(item, value, f"flag for {key}")
            origins[item.key] = "flag"
    if values.get("store.path") and values.get("store.url"):
        _settle_place(values, origins)
    if "chunking.target_tokens" in values or "chunking.max_tokens" in values:
        _settle_chunk_sizes(values, origins)
    return LoadedSettings(_build(values), origins, path if file_found else None)


def _is_address(place: str) -> bool:
    """Whether this is an address, perhaps a misspelt one, and not a file."""
    return "://" in place or place.startswith("qdrant:")


def _settle_place(values: dict[str, Any], origins: dict[str, str]) -> None:
    """If store.path and store.url are both set, removes the one that the other's origin overrides."""

    def nearness(key: str) -> int:
        return 2 if origins[key] == "flag" else 1 if origins[key].startswith("environment ") else 0

    path, url = "store.path", "store.url"
    if nearness(path) == nearness(url):
        raise ConfigError(
            f"{path} and {url} are both set ({origins[path]}), and a database is in one place.",
            hint="Keep one of them.",
        )
    other = min(path, url, key=nearness)
    del values[other], origins[other]


def _settle_chunk_sizes(values: dict[str, Any], origins: Mapping[str, str]) -> None:
    """Raises ConfigError if target_tokens is above max_tokens. A default target is lowered to the maximum instead."""
    target, most = "chunking.target_tokens", "chunking.max_tokens"
    longest = values.get(most, ChunkingSettings().max_tokens)
    if target not in values:
        values[target] = min(ChunkingSettings().target_tokens, longest)
    elif values[target] > longest:
        raise ConfigError(
            f"{target} = {values[target]} ({origins[target]}) is more than {most} = {longest} "
            f"({origins.get(most, 'default')}).",
            hint="Set target_tokens to max_tokens or less.",
        )


def _build(values: Mapping[str, Any]) -> Settings:
    settings = Settings()
    by_section: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, name = key.split(".")
        by_section.setdefault(section, {})[name] = value
    return settings._replace(**{name: getattr(settings, name)._replace(**part) for name, part in by_section.items()})


def _read_file(path: Path, values: dict[str, Any], origins: dict[str, str]) -> None:
    import tomllib

    try:
        with file_errors(path, "cannot be read", "Check its permissions.", ConfigError):
            document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}", hint="Correct the line, or see: kb init --force", path=str(path)
        ) from error
    known = _by_key()
    sections = {item.section for item in known.values()}
    for section, content in document.items():
        if section not in sections:
            raise _unknown(section, sections, str(path), "section", str(path))
        if not isinstance(content, dict):
            raise ConfigError(
                f"{path}: {section} is a section, not a value.",
                hint=f"Write [{section}] and its settings below.",
                path=str(path),
            )
        for name, value in content.items():
            key = f"{section}.{name}"
            if key not in known:
                raise _unknown(key, known, str(path), "setting", str(path))
            item = known[key]
            if item.key in values:
                raise ConfigError(
                    f"{path}: {item.key} is set twice, as {name} too.", hint="Keep one of them.", path=str(path)
                )
            values[item.key] = _checked(item, value, str(path), path=str(path))
            origins[item.key] = str(path)


def _read_environment(environment: Mapping[str, str], values: dict[str, Any], origins: dict[str, str]) -> None:
    known = {f"KEBAB_{key.replace('.', '_')}".upper(): item for key, item in _by_key().items()}
    read: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith("KEBAB_") or variable in NOT_SETTINGS:
            continue
        if variable not in known:
            raise _unknown(variable, known, "the environment", "variable", None)
        item = known[variable]
        if item.key in read:
            raise ConfigError(f"{read[item.key]} and {variable} are the same setting.", hint="Keep one of them.")
        read[item.key] = variable
        values[item.key] = _checked(item, from_text(value, item.type), f"environment variable {variable}")
        origins[item.key] = f"environment {variable}"


def _by_key() -> dict[str, SettingField]:
    """Returns every setting by its key, and also by its alias if it has one."""
    known = {item.key: item for item in all_settings()}
    return known | {f"{item.section}.{item.alias}": item for item in known.values() if item.alias}


def _checked(item: SettingField, value: Any, where: str, path: str | None = None) -> Any:
    """Returns the value in the setting's type, or raises ConfigError with the place, the key and the allowed values."""
    is_allowed = item.type is not int or not isinstance(value, float)  # TOML distinguishes 10.0 from 10, unlike JSON
    try:
        bounds: dict[str, Any] = {"least": item.least, "most": item.most, "choices": item.choices}
        value = checked(item.key, value, item.type, **bounds, may_be_empty=True)
    except UsageError:
        is_allowed = False
    if not is_allowed or (item.form and not re.fullmatch(item.form, value)):
        shown = masked_address(value) if isinstance(value, str) else value
        raise ConfigError(
            f"{where}: {item.key}{'' if item.secret else f' = {shown!r}'} is not allowed.",
            hint=f"Allowed: {item.allowed}. Default: {item.default!r}.",
            path=path,
        )
    return value


def _unknown(name: str, known: Iterable[str], where: str, noun: str, path: str | None) -> ConfigError:
    section, _, last = name.rpartition(".")
    # Only the last part is compared, because all keys of a section begin alike and would seem similar.
    close = close_to(last, [key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == section])
    meant = f"{section}.{close}".lstrip(".") if close else close_to(name, known, cutoff=0.8)
    hint = f"Did you mean {meant}?" if meant else "All settings are listed by: kb config show"
    return ConfigError(f"{where}: there is no {noun} {name}.", hint=hint, path=path)


def database_path(settings: Settings, start: Path | None = None) -> tuple[Path, bool]:
    """Returns the path of the database, and whether the user named it (then it must exist for reading)."""
    if settings.store.path:
        return Path(settings.store.path).expanduser(), True
    folder = (start or Path.cwd()).absolute()
    for candidate in (folder, *folder.parents):
        local = candidate / LOCAL_FOLDER / FILE_NAME
        if local.is_file() or local.parent.is_dir():
            return local, False
    return data_folder() / FILE_NAME, False


def database_address(settings: Settings) -> str:
    """Returns an absolute path or address for --db, valid in every folder of this machine."""
    if not settings.store.url:
        return str(database_path(settings)[0].absolute())
    from kebab.config.cluster_address import cluster_address

    return str(cluster_address(settings.store.url))
