"""What a repository says about its own documentation in kebab.json, or in the context7.json that many have."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from kebab.core.paths import file_name
from kebab.core.text import one_line

FILES = ("kebab.json", "context7.json")
"""The first that is there counts."""
_BEGINNING = 4096
_MOST_RULES = 100
_MOST_CHARACTERS = 1000


class Steering(NamedTuple):
    title: str | None = None
    description: str | None = None
    folders: tuple[str, ...] = ()
    """Only files below these; empty means all."""
    exclude_folders: tuple[str, ...] = ()
    exclude_files: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    previous_versions: tuple[str, ...] = ()
    """Tags that its authors want indexed too."""

    def takes(self, path: str) -> bool:
        if self.folders and not any(_is_below(path, folder) for folder in self.folders):
            return False
        if any(_is_below(path, folder) for folder in self.exclude_folders):
            return False
        return not any(
            fnmatchcase(file_name(path), pattern) or fnmatchcase(path, pattern.removeprefix("./").strip("/"))
            for pattern in self.exclude_files
        )


def read_steering(data: bytes) -> Steering | None:
    """None when it is no JSON object. Entries of another kind than they should be are left out."""
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    versions = found.get("previousVersions")
    tags = [entry.get("tag") for entry in versions if isinstance(entry, dict)] if isinstance(versions, list) else []
    return Steering(
        title=_text(found.get("projectTitle")),
        description=_text(found.get("description")),
        folders=_texts(found.get("folders")),
        exclude_folders=_texts(found.get("excludeFolders")),
        exclude_files=_texts(found.get("excludeFiles")),
        rules=_texts(found.get("rules")),
        previous_versions=_texts(tags),
    )


def read_llms_txt(data: bytes) -> Steering:
    """Such a file begins with the name of its project as a heading, and what it is as a quotation."""
    lines = data[:_BEGINNING].decode("utf-8-sig", "replace").splitlines()
    title = next((line[2:] for line in lines if line.startswith("# ")), None)
    description = next((line.lstrip("> ") for line in lines if line.startswith(">")), None)
    return Steering(title=_text(title), description=_text(description))


def _text(value: Any) -> str | None:
    """On one line: it stands in lists and headings."""
    line = one_line(value)[:_MOST_CHARACTERS] if isinstance(value, str) else ""
    return line or None


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(text for entry in value[:_MOST_RULES] if (text := _text(entry)) is not None)


def _is_below(path: str, folder: str) -> bool:
    """`docs/old` from the root on; a single name, or a pattern, anywhere: `*archive*`, `i18n`."""
    anywhere = folder.startswith("**/")
    wanted = folder.removeprefix("**/").removeprefix("./").strip("/")
    parents = path.split("/")[:-1]
    if wanted in ("", "."):
        return True
    if folder.startswith(("./", "/")) or "/" in wanted:
        starts = range(len(parents)) if anywhere else range(1)
        above = ["/".join(parents[start:end]) for start in starts for end in range(start + 1, len(parents) + 1)]
        return any(fnmatchcase(place, wanted) for place in above)
    return any(fnmatchcase(name, wanted) for name in parents)
