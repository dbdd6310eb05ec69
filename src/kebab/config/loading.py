"""defaults < config file < environment < flags, each value with its origin; strict about keys, types and bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kebab.config.settings import ChunkingSettings, SettingField, Settings, all_settings
from kebab.core.errors import ConfigError

NOT_SETTINGS = frozenset({"KEBAB_CONFIG", "KEBAB_DB"})
"""Variables that stand for the flags --config and --db."""


class LoadedSettings(NamedTuple):
    settings: Settings
    origins: dict[str, str]
    """Key → "config.toml", "environment KEBAB_…" or "flag"; a key that is absent has its default."""
    config_file: Path | None


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environment, "XDG_CONFIG_HOME", ".config")


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environment, "XDG_DATA_HOME", ".local/share")


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    return _xdg(environment, "XDG_CACHE_HOME", ".cache")


def _xdg(environment: Mapping[str, str], variable: str, fallback: str) -> Path:
    """The specification says that a relative path in these variables is to be ignored."""
    given = environment.get(variable, "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / fallback) / "kebab"


def load_settings(
    config_file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """`flags` are dotted keys, such as {"store.path": "notes.sqlite"}. A named config file must exist."""
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
    flags = dict(flags or {})
    if flags.get("store.path") is None and environment.get("KEBAB_DB"):
        flags["store.path"] = environment["KEBAB_DB"]
    place = str(flags.get("store.path"))
    if "://" in place or place.startswith("qdrant:"):  # an address that is written wrongly is no file
        flags["store.url"] = flags.pop("store.path")
    for key, value in flags.items():
        if value is not None:
            values[key] = _checked(_field(key), value, f"flag for {key}")
            origins[key] = "flag"
    if values.get("store.path") and values.get("store.url"):
        _settle_place(values, origins)
    if "chunking.target_tokens" in values or "chunking.max_tokens" in values:
        _settle_chunk_sizes(values, origins)
    return LoadedSettings(_build(values), origins, path if file_found else None)


def _settle_place(values: dict[str, Any], origins: dict[str, str]) -> None:
    """A file and a cluster are both named: as always, the nearer word counts."""

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
    """Each is in its bounds; together they must make sense too. A target that nobody chose gives way to a lower
    maximum.
    """
    target, most = "chunking.target_tokens", "chunking.max_tokens"
    longest = values.get(most, ChunkingSettings().max_tokens)
    if target not in values:
        values[target] = min(ChunkingSettings().target_tokens, longest)
    elif values[target] > longest:
        raise ConfigError(
            f"{target} = {values[target]} ({origins[target]}) is more than {most} = {longest} ({origins.get(most, 'default')}).",
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
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", hint="Check its permissions.", path=str(path)
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}", hint="Correct the line, or see: kb init --force", path=str(path)
        ) from error
    known = {item.key: item for item in all_settings()}
    known |= {f"{item.section}.{item.alias}": item for item in known.values() if item.alias}
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
    known = {item.variable: item for item in all_settings()}
    for variable, value in environment.items():
        if not variable.startswith("KEBAB_") or variable in NOT_SETTINGS:
            continue
        if variable not in known:
            raise _unknown(variable, known, "the environment", "variable", None)
        item = known[variable]
        values[item.key] = _checked(item, _from_text(item, value), f"environment variable {variable}")
        origins[item.key] = f"environment {variable}"


def _from_text(item: SettingField, value: str) -> Any:
    if item.type is bool:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(value.lower(), value)
    try:
        return item.type(value)
    except ValueError:
        return value


def _checked(item: SettingField, value: Any, where: str, path: str | None = None) -> Any:
    """The value as the setting's type, or an error that names the place, the key and what is allowed."""
    if item.type is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    right_type = isinstance(value, item.type) and (item.type is bool or not isinstance(value, bool))
    in_range = (
        right_type
        and (not item.choices or value in item.choices)
        and (not item.form or re.fullmatch(item.form, value) is not None)
        and (item.least is None or value >= item.least)
        and (item.most is None or value <= item.most)
    )
    if not in_range:
        raise ConfigError(
            f"{where}: {item.key}{'' if item.secret else f' = {_shown(value)!r}'} is not allowed.",
            hint=f"Allowed: {item.allowed}. Default: {item.default!r}.",
            path=path,
        )
    return value


def _shown(value: Any) -> Any:
    from kebab.core.addresses import masked_address

    return masked_address(value) if isinstance(value, str) else value


def _field(key: str) -> SettingField:
    for item in all_settings():
        if item.key == key:
            return item
    raise _unknown(key, {item.key for item in all_settings()}, "flags", "setting", None)


def _unknown(name: str, known: Any, where: str, noun: str, path: str | None) -> ConfigError:
    from difflib import get_close_matches

    section, _, last = name.rpartition(".")
    # By the last part alone: within a section all names begin alike, and anything would be close.
    close = get_close_matches(last, [key.rpartition(".")[2] for key in known if key.rpartition(".")[0] == section], n=1)
    close = [f"{section}.{close[0]}".lstrip(".")] if close else get_close_matches(name, list(known), n=1, cutoff=0.8)
    hint = f"Did you mean {close[0]}?" if close else "All settings are listed by: kb config show"
    return ConfigError(f"{where}: there is no {noun} {name}.", hint=hint, path=path)
