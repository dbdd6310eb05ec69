"""Opens the file of a hit: text in the editor at the cited line, other files in the system's program for them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from kebab.core.errors import UsageError
from kebab.interfaces.cli.render import remark

if TYPE_CHECKING:
    from kebab.core.search import SearchResponse
    from kebab.knowledge_base import KnowledgeBase


def open_in_program(kb: KnowledgeBase, response: SearchResponse, number: int) -> int:
    """Opens a hit in a program, and returns that program's exit code."""
    if not 1 <= number <= len(response.hits):
        hint = "Choose another number for --open."
        raise UsageError(f"There is no hit {number}: {len(response.hits)} were found.", hint=hint)
    hit = response.hits[number - 1]
    file, line = kb.place_of(hit)
    if line is None:
        return _open_by_system(file, hit.citation.text)
    editor = _editor()
    remark(f"opening {file} at line {line}")
    try:
        return subprocess.run([*editor, *_at_line(editor[0], str(file), line)], check=False).returncode
    except OSError as error:
        hint = "Set EDITOR to another one."
        raise UsageError(f"The editor {editor[0]} cannot be started: {error.strerror}.", hint=hint) from error


def _editor() -> list[str]:
    try:
        arguments = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    except ValueError as error:
        hint = "For example: export EDITOR=vim"
        raise UsageError(f"EDITOR cannot be read as a command: {error}.", hint=hint) from error
    if not arguments:
        raise UsageError("No editor is set.", hint="Set EDITOR, for example: export EDITOR=vim")
    return arguments


def _at_line(editor: str, file: str, line: int) -> list[str]:
    """The arguments that make an editor open a file at a line. Most take +LINE before the file; VS Code does not."""
    name = os.path.basename(editor)  # noqa: PTH119 - the editor is a text from a command line
    if name in ("code", "codium", "cursor", "code-insiders"):
        return ["--goto", f"{file}:{line}"]
    if name in ("subl", "zed", "hx", "helix"):
        return [f"{file}:{line}"]
    return [f"+{line}", file]


def _open_by_system(file: Path, citation: str) -> int:
    """Opens a file such as a PDF with the system's program for it, which cannot be told the page or line."""
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    if which(opener) is None:
        message = f"{file} is no text for an editor, and {opener} is not installed to open it with its own program."
        raise UsageError(message, hint=f"Open it yourself, or read the passage with: kb fetch span '{citation}'")
    remark(f"opening {file}; the passage is {citation}")
    return subprocess.run([opener, str(file)], check=False).returncode
