"""Which versions of which packages a project uses, as the lock files in its folder say.

    uv.lock, poetry.lock, Cargo.lock     TOML with [[package]] name and version
    requirements*.txt                    name==version
    package-lock.json                    packages of npm
    go.mod                               require lines, and replace lines that name a version
A folder without any belongs to the project around it, up to the folder that is the git repository. Files of other
people's making: whatever cannot be understood is left out, and nothing here raises but for a folder that is not there.
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
from kebab.core.toml_text import read_toml

_MOST_BYTES = 64 << 20
_REQUIREMENT = re.compile(
    r"\s*+(?P<name>[A-Za-z0-9][\w.-]*+)\s*+(?:\[[^\]]*+\])?\s*+\(?(?:===?\s*+(?P<version>[^\s;#,*()\\]++)|(?=[<>=!~;#@\\]|$))"
)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""PowerShell writes so what a program prints."""
_NODE_MODULES = "node_modules/"
_GO_VERSION = re.compile(r"v\d")


class LockedPackage(NamedTuple):
    name: str
    version: str | None
    """None: it is named, and any version will do."""
    file: str
    """The lock file that says so, seen from the project's folder."""
    depth: int = 0
    """0: the project asks for it itself, as far as the file tells; else something that it uses does."""


class _Entry(NamedTuple):
    name: Any
    version: Any
    depth: int = 0


_Reader = Callable[[str], Iterator[_Entry]]


def locked_packages(project: Path) -> list[LockedPackage]:
    """In the order of the table above; a package may be in it more than once."""
    if not project.is_dir():
        raise SourceError(
            f"{project} is not a folder.", hint="Name the folder that holds the project's lock file.", path=str(project)
        )
    found: list[LockedPackage] = []
    project = project.resolve()
    for path, read in _lock_files(project):
        text = _text(path)
        if text is not None:
            file = os.path.relpath(path, project)
            found += [LockedPackage(entry.name, entry.version, file, entry.depth) for entry in _understood(read, text)]
    return found


def _lock_files(project: Path) -> list[tuple[Path, _Reader]]:
    """Those of the folder, else of the nearest one around it in the same repository."""
    for folder in _folders(project):
        files = [
            (path, read) for pattern, read in _READERS for path in sorted(folder.glob(pattern), key=_shortest_first)
        ]
        if files:
            return files
    return []


def _shortest_first(path: Path) -> tuple[int, str]:
    """What the project runs with is in requirements.txt; requirements-dev.txt and the like add to it."""
    return len(path.name), path.name


def _folders(project: Path) -> list[Path]:
    """From the project up to its repository. Where there is none nothing tells what belongs together: the project
    alone.
    """
    above = [project, *project.parents]
    root = next((number for number, folder in enumerate(above) if (folder / ".git").exists()), 0)
    return above[: root + 1]


def _text(path: Path) -> str | None:
    try:
        data = read_regular(path, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            return None
        return data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig", "replace")
    except OSError:
        return None


def _understood(read: _Reader, text: str) -> list[_Entry]:
    try:
        return [
            entry for entry in read(text) if _is_name(entry.name) and (entry.version is None or _is_name(entry.version))
        ]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []


def _is_name(value: Any) -> bool:
    """It is shown to people: nothing that a terminal would obey or that cannot be written."""
    return isinstance(value, str) and value != "" and value.isprintable()


def _toml_packages(text: str) -> Iterator[_Entry]:
    for package in read_toml(text).get("package", []):
        if package.get("version") is not None:
            yield _Entry(package.get("name"), package["version"])


def _cargo_packages(text: str) -> Iterator[_Entry]:
    """The project's own packages come from no registry. Where there are two versions, what they depend on says which:
    "widget 1.2.0".
    """
    packages = read_toml(text).get("package", [])
    own = [package for package in packages if package.get("source") is None]
    asked = {tuple(str(wanted).split()[:2]) for package in own for wanted in package.get("dependencies", [])}
    for package in packages:
        name, version = package.get("name"), package.get("version")
        if version is not None:
            yield _Entry(name, version, 0 if (name,) in asked or (name, version) in asked else 1)


def _requirements(text: str) -> Iterator[_Entry]:
    for line in text.splitlines():
        if match := _REQUIREMENT.match(line):
            version = match["version"]
            yield _Entry(match["name"], version.rstrip(".") or None if version else None)  # 0.27.* is 0.27


def _npm_packages(text: str) -> Iterator[_Entry]:
    lock = json.loads(text)
    packages = lock.get("packages") or {}
    # What the project asks for itself lies directly below; deeper copies belong to its dependencies, or to other
    # packages in the folder.
    depths = {
        place: place.count(_NODE_MODULES) - place.startswith(_NODE_MODULES)
        for place in packages
        if _NODE_MODULES in place
    }
    for place, depth in sorted(depths.items(), key=lambda item: item[1]):
        package = packages[place]
        if package.get("version") is not None:
            yield _Entry(
                package.get("name") or place.rpartition(_NODE_MODULES)[2], package["version"], depth
            )  # a name: of an alias
    for name, package in (lock.get("dependencies") or {}).items():  # the form before npm 7
        if package.get("version") is not None:
            yield _Entry(name, package["version"])


def _go_modules(text: str) -> Iterator[_Entry]:
    required: dict[str, _Entry] = {}
    replacing: list[tuple[str, str | None, _Entry]] = []
    for keyword, words, comment in _go_lines(text):
        if keyword == "require" and len(words) == 2 and _GO_VERSION.match(words[1]):
            required[words[0]] = _Entry(words[0], _go_version(words[1]), 1 if comment.startswith("indirect") else 0)
        elif keyword == "replace" and "=>" in words:
            arrow = words.index("=>")
            old, new = words[:arrow], words[arrow + 1 :]
            if old and len(new) == 2 and _GO_VERSION.match(new[1]):  # else a folder, whose version nobody knows
                replacing.append(
                    (old[0], _go_version(old[1]) if len(old) > 1 else None, _Entry(new[0], _go_version(new[1])))
                )
    used: list[_Entry] = []
    for module, only, other in replacing:
        entry = required.get(module)
        if only is None or (entry is not None and entry.version == only):
            depth = entry.depth if entry else 1
            required[module] = _Entry(module, other.version, depth)
            used += [other._replace(depth=depth)] if other.name != module else []
    yield from required.values()
    yield from used


def _go_lines(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Each line with the keyword it belongs to, its own or that of the block it stands in, and what is noted behind it."""
    block = None
    for line in text.splitlines():
        code, _, comment = line.partition("//")
        words = [word.strip('"`') for word in code.replace("(", " ( ").replace(")", " ) ").split()]
        if block is not None and words[:1] == [")"]:
            block = None
        elif block is not None:
            yield block, words, comment.strip()
        elif words[1:2] == ["("]:
            block = words[0]
        elif words:
            yield words[0], words[1:], comment.strip()


def _go_version(text: str) -> str:
    return text.removesuffix("+incompatible")


_READERS: tuple[tuple[str, _Reader], ...] = (
    ("uv.lock", _toml_packages),
    ("poetry.lock", _toml_packages),
    ("requirements*.txt", _requirements),
    ("package-lock.json", _npm_packages),
    ("Cargo.lock", _cargo_packages),
    ("go.mod", _go_modules),
)
