"""The opponent of `ingest.py`: a folder of Markdown into one FTS5 table, and nothing more.

    python bare_fts5.py FOLDER DATABASE

It does what a careful person would write in an afternoon: one pass, one regex for headings, one transaction, rows
handed to SQLite in bulk, the same tokenizer as Kebab. No ids, no lines, no front matter, no second run, no limit on the
size of a passage.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw

HEADING = re.compile(r"^#{1,6}[ \t]+(.*)$", re.MULTILINE)


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Each heading with the text below it; what stands before the first one has none."""
    heading, start = "", 0
    for match in HEADING.finditer(text):
        if match.start() > start:
            yield heading, text[start : match.start()]
        heading, start = match[1], match.start()
    yield heading, text[start:]


def rows(folder: Path) -> Iterator[tuple[str, str, str]]:
    for file in sorted(folder.rglob("*.md")):
        text = file.read_text(encoding="utf-8", errors="replace")
        path = file.relative_to(folder).as_posix()
        for heading, body in sections(text):
            yield path, heading, body


def main(folder: str, database: str) -> None:
    connection = apsw.Connection(database)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    connection.execute(
        "CREATE VIRTUAL TABLE notes USING fts5 (path, heading, text, tokenize = 'porter unicode61 remove_diacritics 2')"
    )
    with connection:
        connection.executemany("INSERT INTO notes VALUES (?, ?, ?)", rows(Path(folder)))
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
