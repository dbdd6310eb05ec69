"""The packages of a project and their versions, as the lock files in its folder have them.

    uv.lock, poetry.lock, Cargo.lock     TOML with [[package]] name and version
    requirements*.txt                    name==version
    package-lock.json                    packages of npm
    go.mod                               require lines, and replace lines that name a version
A folder without a lock file belongs to the project around it, up to the root of the git repository. Strangers may have
written the files: whatever is not understood is left out, and only a missing folder is an error.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kebab.core.errors import SourceError
from kebab.core.files import read_regular
from kebab.core.text import read_toml

_MOST_BYTES = 64 << 20
_REQUIREMENT = re.compile(
    r"\s*+(?P<name>[A-Za-z0-9][\w.-]*+)\s*+(?:\[[^\]]*+\])?\s*+\(?"
    r"(?:===?\s*+(?P<version>[^\s;#,*()\\]++)|(?=[<>=!~;#@\\]|$))"
)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""PowerShell redirects output in this encoding."""
_NODE_MODULES = "node_modules/"
_GO_VERSION = re.compile(r"v\d")


class LockedPackage(NamedTuple):
    name: str
    version: str | None
    """None if the file does not pin a version."""
    file: str = ""
    """The lock file, relative to the folder of the project."""
    depth: int = 0
    """0 for a direct dependency, as far as the file tells; more for dependencies of dependencies."""


_Reader = Callable[[str], Iterator[LockedPackage]]


def locked_packages(project: Path) -> list[LockedPackage]:
    """The packages of a project's lock files, in the order of `_READERS`. A package may occur more than once."""
    if not project.is_dir():
        hint = "Name the folder that holds the project's lock file."
        raise SourceError(f"{project} is not a folder.", hint=hint, path=str(project))
    found: list[LockedPackage] = []
    project = project.resolve()
    for path, read in _lock_files(project):
        file = os.path.relpath(path, project)
        found += [package._replace(file=file) for package in _understood(read, path)]
    return found


def _lock_files(project: Path) -> list[tuple[Path, _Reader]]:
    """The lock files of the folder, else of the nearest one around it in the same repository."""
    above = [project, *project.parents]
    root = next((number for number, folder in enumerate(above) if (folder / ".git").exists()), 0)
    for folder in above[: root + 1]:
        found = []
        for pattern, read in _READERS:  # the shortest name first: requirements-dev.txt adds to requirements.txt
            paths = sorted(folder.glob(pattern), key=lambda path: (len(path.name), path.name))
            found += [(path, read) for path in paths]
        if found:
            return found
    return []


def _understood(read: _Reader, path: Path) -> list[LockedPackage]:
    try:
        data = read_regular(path, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            return []
        found = list(read(data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig", "replace")))
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return []
    return [each for each in found if _is_name(each.name) and (each.version is None or _is_name(each.version))]


def _is_name(value: Any) -> bool:
    """Whether a value is printable text: names and versions are shown to people."""
    return isinstance(value, str) and value != "" and value.isprintable()


def _toml_packages(text: str) -> Iterator[LockedPackage]:
    for package in read_toml(text).get("package", []):
        if package.get("version") is not None:
            yield LockedPackage(package.get("name"), package["version"])


def _cargo_packages(text: str) -> Iterator[LockedPackage]:
    """Yields the packages of a Cargo.lock. Those without a source are the project's own, and name its direct
    dependencies: "widget", or "widget 1.2.0" if there are two versions.
    """
    packages = read_toml(text).get("package", [])
    own = [package for package in packages if package.get("source") is None]
    asked = {tuple(str(wanted).split()[:2]) for package in own for wanted in package.get("dependencies", [])}
    for package in packages:
        name, version = package.get("name"), package.get("version")
        if version is not None:
            yield LockedPackage(name, version, depth=0 if (name,) in asked or (name, version) in asked else 1)


def _requirements(text: str) -> Iterator[LockedPackage]:
    for line in text.splitlines():
        if match := _REQUIREMENT.match(line):
            version = match["version"]
            yield LockedPackage(match["name"], version.rstrip(".") or None if version else None)  # 0.27.* is 0.27


def _npm_packages(text: str) -> Iterator[LockedPackage]:
    lock = json.loads(text)
    packages = lock.get("packages") or {}
    # Direct dependencies are at the top; deeper copies belong to dependencies, or to other packages in the folder.
    places = [place for place in packages if _NODE_MODULES in place]
    depths = {place: place.count(_NODE_MODULES) - place.startswith(_NODE_MODULES) for place in places}
    for place, depth in sorted(depths.items(), key=lambda item: item[1]):
        package = packages[place]
        if package.get("version") is not None:
            name = package.get("name") or place.rpartition(_NODE_MODULES)[2]  # an alias has a name
            yield LockedPackage(name, package["version"], depth=depth)
    for name, package in (lock.get("dependencies") or {}).items():  # the form before npm 7
        if package.get("version") is not None:
            yield LockedPackage(name, package["version"])


def _go_modules(text: str) -> Iterator[LockedPackage]:
    required: dict[str, LockedPackage] = {}
    replacing: list[tuple[str, str | None, LockedPackage]] = []
    for keyword, words, comment in _go_lines(text):
        if keyword == "require" and len(words) == 2 and _GO_VERSION.match(words[1]):
            depth = 1 if comment.startswith("indirect") else 0
            required[words[0]] = LockedPackage(words[0], words[1], depth=depth)
        elif keyword == "replace" and "=>" in words:
            arrow = words.index("=>")
            old, new = words[:arrow], words[arrow + 1 :]
            if old and len(new) == 2 and _GO_VERSION.match(new[1]):  # else a folder, whose version is unknown
                only = old[1] if len(old) > 1 else None
                replacing.append((old[0], only, LockedPackage(new[0], new[1])))
    used: list[LockedPackage] = []
    for module, only, other in replacing:
        entry = required.get(module)
        if only is None or (entry is not None and entry.version == only):
            depth = entry.depth if entry else 1
            required[module] = LockedPackage(module, other.version, depth=depth)
            used += [other._replace(depth=depth)] if other.name != module else []
    yield from required.values()
    yield from used


def _go_lines(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Yields the keyword of each line or of the block around it, the words of the line, and its comment."""
    block = None
    for line in text.splitlines():
        code, _, comment = line.partition("//")
        parts = code.replace("(", " ( ").replace(")", " ) ").split()
        words = [part.strip('"`').removesuffix("+incompatible") for part in parts]
        if block is not None and words[:1] == [")"]:
            block = None
        elif block is not None:
            yield block, words, comment.strip()
        elif words[1:2] == ["("]:
            block = words[0]
        elif words:
            yield words[0], words[1:], comment.strip()


_READERS: tuple[tuple[str, _Reader], ...] = (
    ("uv.lock", _toml_packages),
    ("poetry.lock", _toml_packages),
    ("requirements*.txt", _requirements),
    ("package-lock.json", _npm_packages),
    ("Cargo.lock", _cargo_packages),
    ("go.mod", _go_modules),
)
