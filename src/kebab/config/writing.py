"""Writes values into a config file without changing anything else in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kebab.config.loading import load_settings
from kebab.core.errors import ConfigError, file_errors
from kebab.core.files import make_folder, open_file

_SECTION = re.compile(r"\s*\[\s*(?P<name>[\w.-]+)\s*\]\s*(#.*)?")


def set_values(path: Path, values: Mapping[str, Any]) -> None:
    """Sets values by their dotted keys, such as search.rrf_k, and creates the file if it is missing.

    Replaces the file in one step, and only if the new settings are valid.
    """
    with file_errors(path, "cannot be written", "Name another with --config.", ConfigError):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for key, value in values.items():
            section, name = key.split(".")
            text = _with_value(text, section, name, _toml(value))
        make_folder(path.parent)
        draft = path.with_name(f"{path.name}.new")
        draft.unlink(missing_ok=True)
        with open_file(draft, "w") as file:
            file.write(text)
        try:
            load_settings(draft, environment={})
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def _with_value(text: str, section: str, name: str, value: str) -> str:
    """Returns the file's text with this value. A new setting comes first in its section, or in a new last section."""
    lines = text.splitlines()
    here, begin = "", None
    own = re.compile(rf"(\s*{re.escape(name)}\s*=\s*)([^#]*?)(\s*#.*)?")
    for number, line in enumerate(lines):
        if heading := _SECTION.fullmatch(line):
            here = heading["name"]
            begin = number if here == section and begin is None else begin
        elif here == section and (found := own.fullmatch(line)):
            lines[number] = f"{found[1]}{value}{found[3] or ''}"
            return "\n".join(lines) + "\n"
    if begin is not None:
        lines.insert(begin + 1, f"{name} = {value}")
    else:
        lines += ["", f"[{section}]", f"{name} = {value}"] if lines else [f"[{section}]", f"{name} = {value}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else repr(value)
