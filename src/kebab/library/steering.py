"""Which files of a library are its documentation, by its kebab.json or context7.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from kebab.core.paths import file_name
from kebab.core.ports import FileTree, TreeFile
from kebab.core.text import one_line
from kebab.ingest.report import Failure, IngestReport
from kebab.library.snippets import is_llms_txt

_FILES = ("kebab.json", "context7.json")
"""Names of steering files; the first readable one is used."""
_MOST_BYTES = 1 << 20
_DOCUMENTATION = frozenset({".md", ".mdx", ".markdown", ".rst", ".txt", ".ipynb", ".html", ".htm"})
_CODE = frozenset(
    ".py .js .mjs .ts .tsx .go .rs .java .kt .c .h .cc .cpp .hpp .cs .rb .php .swift .sh .sql .scala .lua".split()
)
_NEVER = frozenset({"node_modules", "__pycache__"})
_NO_DOCUMENTATION = frozenset({"robots.txt", "requirements.txt", "cmakelists.txt"})
_BEGINNING = 4096
_MOST_RULES = 100
_MOST_CHARACTERS = 1000


class Steering(NamedTuple):
    title: str | None = None
    description: str | None = None
    folders: tuple[str, ...] = ()
    """Only files below these folders are indexed; all files if empty."""
    exclude_folders: tuple[str, ...] = ()
    exclude_files: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    previous_versions: tuple[str, ...] = ()
    """Tags that the library's authors want indexed too."""

    def takes(self, path: str) -> bool:
        if self.folders and not any(_is_below(path, folder) for folder in self.folders):
            return False
        if any(_is_below(path, folder) for folder in self.exclude_folders):
            return False
        return not any(
            fnmatchcase(file_name(path), pattern) or fnmatchcase(path, pattern.removeprefix("./").strip("/"))
            for pattern in self.exclude_files
        )


def steering_of(tree: FileTree, files: Sequence[TreeFile], report: IngestReport) -> Steering:
    """The content of a library's kebab.json or context7.json, or of its llms.txt if it has no other file."""
    by_path = {file.path: file for file in files}
    with tree.reading() as reader:
        for name in _FILES:
            if name not in by_path:
                continue
            found = read_steering(reader.read(by_path[name])) if by_path[name].size <= _MOST_BYTES else None
            if found is not None:
                return found
            report.warnings.append(Failure(name, "parse", "it is no JSON object, so what it says is not known"))
        if len(files) == 1 and is_llms_txt(files[0].path):
            return read_llms_txt(reader.read(files[0]))
    return Steering()


def documentation_files(files: Iterable[TreeFile], steering: Steering) -> list[TreeFile]:
    """The documentation files among `files`, or the source code if there is no documentation."""
    documentation, code = [], []
    for file in files:
        path = PurePosixPath(file.path)
        is_hidden = any(part.startswith(".") or part in _NEVER for part in path.parts)
        if is_hidden or file.path in _FILES or not steering.takes(file.path):
            continue
        suffix, name = path.suffix.lower(), path.name.lower()
        is_data = name in _NO_DOCUMENTATION or (name.startswith("requirements") and suffix == ".txt")
        if suffix in _DOCUMENTATION and not is_data:
            documentation.append(file)
        elif suffix in _CODE:
            code.append(file)
    return documentation or code


def read_steering(data: bytes) -> Steering | None:
    """Reads a steering file; None if it is no JSON object. Entries of a wrong type are ignored."""
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
    """Title and description of an llms.txt: its first heading and its first quotation."""
    lines = data[:_BEGINNING].decode("utf-8-sig", "replace").splitlines()
    title = next((line[2:] for line in lines if line.startswith("# ")), None)
    description = next((line.lstrip("> ") for line in lines if line.startswith(">")), None)
    return Steering(title=_text(title), description=_text(description))


def _text(value: Any) -> str | None:
    """The value on one line, because it stands in lists and headings; None if it is empty or no text."""
    line = one_line(value)[:_MOST_CHARACTERS] if isinstance(value, str) else ""
    return line or None


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(text for entry in value[:_MOST_RULES] if (text := _text(entry)) is not None)


def _is_below(path: str, folder: str) -> bool:
    """Whether a file is below a folder. `docs/old` begins at the root; `i18n` or `*archive*` may be at any depth."""
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
