"""Which versions of which packages a project uses, as the lock files in its folder say.

    uv.lock, poetry.lock, Cargo.lock     TOML with [[package]] name and version
    requirements*.txt                    name==version
    package-lock.json                    packages of npm
    go.mod                               require lines
Files of other people's making: whatever cannot be understood is left out, and nothing here raises but for a folder that is not there.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kebab.core.errors import SourceError

_MOST_BYTES = 64 << 20
_PINNED = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*===?\s*([^\s;#,*]+)")
_GO_REQUIRE = re.compile(r"^\s*(?:require\s+)?([\w.~-]+\.[\w.~-]+/[\w./~-]+|[\w.~-]+\.[\w.~-]+)\s+(v[^\s/]+)")
_NODE_MODULES = "node_modules/"


class LockedPackage(NamedTuple):
    name: str
    version: str
    file: str
    """The lock file that says so."""


def locked_packages(project: Path) -> list[LockedPackage]:
    """In the order of the table above; a package may be in it more than once."""
    if not project.is_dir():
        raise SourceError(f"{project} is not a folder.", hint="Name the folder that holds the project's lock file.", path=str(project))
    found: list[LockedPackage] = []
    for pattern, read in _READERS:
        for path in sorted(project.glob(pattern)):
            text = _text(path)
            if text is not None:
                found += [LockedPackage(name, version, path.name) for name, version in _understood(read, text)]
    return found


def _text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return None


def _understood(read: Callable[[str], Iterator[tuple[Any, Any]]], text: str) -> list[tuple[str, str]]:
    try:
        return [(name, version) for name, version in read(text) if isinstance(name, str) and isinstance(version, str) and name and version]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []


def _toml_packages(text: str) -> Iterator[tuple[Any, Any]]:
    for package in tomllib.loads(text).get("package", []):
        yield package.get("name"), package.get("version")


def _requirements(text: str) -> Iterator[tuple[Any, Any]]:
    for line in text.splitlines():
        if match := _PINNED.match(line):
            yield match[1], match[2].rstrip(".")  # 0.27.* is 0.27


def _npm_packages(text: str) -> Iterator[tuple[Any, Any]]:
    lock = json.loads(text)
    packages = lock.get("packages") or {}
    # What the project asks for itself lies directly below; deeper copies belong to its dependencies.
    for place, package in sorted(packages.items(), key=lambda item: item[0].count(_NODE_MODULES)):
        if _NODE_MODULES in place:
            yield place.rpartition(_NODE_MODULES)[2], package.get("version")
    for name, package in (lock.get("dependencies") or {}).items():  # the form before npm 7
        yield name, package.get("version")


def _go_modules(text: str) -> Iterator[tuple[Any, Any]]:
    for line in text.splitlines():
        if match := _GO_REQUIRE.match(line):
            yield match[1], match[2].removesuffix("+incompatible")


_READERS: tuple[tuple[str, Callable[[str], Iterator[tuple[Any, Any]]]], ...] = (
    ("uv.lock", _toml_packages),
    ("poetry.lock", _toml_packages),
    ("requirements*.txt", _requirements),
    ("package-lock.json", _npm_packages),
    ("Cargo.lock", _toml_packages),
    ("go.mod", _go_modules),
)
