"""Lists on a terminal: one line per row, whole ids, and paths that are shortened in the middle."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len


def on_a_terminal(width: int, *arguments: str | Path) -> list[str]:
    """The lines that `kb` prints on a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "kebab", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # what Linux says when the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(ours)
    assert process.returncode == 0
    return shown.decode().replace("\r", "").splitlines()


@pytest.mark.parametrize("width", [80, 100, 200])
def test_every_document_is_one_line_that_fits(sample_db: Path, width: int) -> None:
    heading, *rows = on_a_terminal(width, "--db", sample_db, "list", "docs")
    assert heading.split() == ["id", "source", "path", "title", "type", "lang", "chunks", "tags"]
    assert len(rows) == 23
    for row in (heading, *rows):
        assert cell_len(row) <= width
    for row in rows:
        assert len(row.split()[0]) == 16, "an id is never broken"
    (sourdough,) = [row for row in rows if "ourdough" in row or "Sour" in row]
    assert ("cooking/sourdough.md" in sourdough) == (width > 80)
    if width == 80:
        assert "cookin…ugh.md" in sourdough


def test_ids_are_not_shortened_on_the_narrowest_terminal(sample_db: Path) -> None:
    _, *rows = on_a_terminal(30, "--db", sample_db, "list", "docs", "--limit", "3")
    assert [len(row.split()[0]) for row in rows] == [16, 16, 16]


def test_every_source_is_one_line_that_fits(sample_db: Path) -> None:
    _, *rows = on_a_terminal(80, "--db", sample_db, "list", "sources")
    assert len(rows) == 1
    assert "…" in rows[0]
