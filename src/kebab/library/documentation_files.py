"""Which files of a library are its documentation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from kebab.core.ports import TreeFile
from kebab.library.steering import FILES, Steering

_DOCUMENTATION = frozenset({".md", ".mdx", ".markdown", ".rst", ".txt", ".ipynb", ".html", ".htm"})
_NEVER = frozenset({"node_modules", "__pycache__"})
_NO_DOCUMENTATION = frozenset({"robots.txt", "requirements.txt", "cmakelists.txt"})


def documentation_files(files: Iterable[TreeFile], steering: Steering, *, is_code: frozenset[str]) -> list[TreeFile]:
    """Source code (by extension) only when there is nothing else."""
    taken = [
        file for file in files if steering.takes(file.path) and not _is_hidden(file.path) and file.path not in FILES
    ]
    found = [file for file in taken if _suffix(file.path) in _DOCUMENTATION and not _is_data(file.path)]
    return found or [file for file in taken if _suffix(file.path) in is_code]


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") or part in _NEVER for part in path.split("/"))


def _is_data(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name in _NO_DOCUMENTATION or (name.startswith("requirements") and name.endswith(".txt"))
