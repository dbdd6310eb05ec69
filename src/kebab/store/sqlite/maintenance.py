"""The life of the index: its configuration and version, rebuilding, optimising, checking, copying."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import apsw

from kebab.core.errors import Corrupt, StoreError
from kebab.core.records import Check, StoreStats
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Database, our_errors, run_script, write_transaction
from kebab.store.sqlite.documents import cjk_column
from kebab.store.sqlite.tokenizer import SqliteTokenizer
from kebab.store.sqlite.vocabulary import Vocabulary

ANALYSIS_VERSION = 1
"""Raised whenever the terms of the same text change, so that an index built before is noticed."""
_BATCH = 500


def fts_config(korean_analysis: str) -> dict[str, object]:
    return {
        "tokenize": "porter unicode61 remove_diacritics 2",
        "columns": ["chunk_id", "doc_id", "heading_path", "text", "title", "cjk"],
        "korean": korean_analysis,
        "analysis": ANALYSIS_VERSION,
    }


def lexical_index_version(config: dict[str, object], schema: int = migrations.LATEST) -> str:
    digest = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return f"lex:{schema}:{digest}"


def stored_fts_config(connection: apsw.Connection) -> dict[str, object] | None:
    """How the text index was built; None when nothing has been indexed yet."""
    rows = connection.execute("SELECT value FROM meta WHERE key = 'fts_config'").fetchall()
    return json.loads(rows[0][0]) if rows else None


def remember_fts_config(connection: apsw.Connection, config: dict[str, object]) -> None:
    connection.execute(
        "INSERT INTO meta VALUES ('fts_config', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (json.dumps(config),),
    )


def rebuild_fts(connection: apsw.Connection, path: Path, korean_analysis: str) -> int:
    """Analyse every chunk again and build the text index and the vocabulary from nothing, in one transaction."""
    vocabulary = Vocabulary(connection, SqliteTokenizer(connection))
    with our_errors(path), write_transaction(connection):
        connection.execute("DELETE FROM words")
        # The triggers would update a possibly damaged index row by row; it is rebuilt as a whole instead.
        for trigger in ("chunks_ai", "chunks_ad", "chunks_au"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        count = 0
        for batch in _chunk_batches(connection):
            connection.executemany(
                "UPDATE chunks SET cjk = ? WHERE id = ?",
                [(cjk_column(korean_analysis, title, headings, text), row_id) for row_id, headings, text, title in batch],
            )
            vocabulary.add(part for _, _, text, title in batch for part in (title, text))
            count += len(batch)
        connection.execute("DROP TABLE IF EXISTS chunks_fts")
        run_script(connection, migrations.statements(migrations.TEXT_INDEX))
        connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")
        remember_fts_config(connection, fts_config(korean_analysis))
    return count


def _chunk_batches(connection: apsw.Connection) -> Iterator[list[tuple[int, str, str, str]]]:
    last = -1
    while batch := connection.execute(
        "SELECT id, heading_path, text, title FROM chunks WHERE id > ? ORDER BY id LIMIT ?", (last, _BATCH)
    ).fetchall():
        yield batch
        last = batch[-1][0]


def optimize(connection: apsw.Connection, path: Path) -> None:
    with our_errors(path):
        connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('optimize')")
        connection.execute("ANALYZE")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def stats(connection: apsw.Connection, database: Database) -> StoreStats:
    def number(sql: str) -> int:
        return int(connection.execute(sql).fetchall()[0][0] or 0)

    config = stored_fts_config(connection)
    return StoreStats(
        path=str(database.path),
        bytes=database.path.stat().st_size,
        schema=int(connection.pragma("user_version")),
        sqlite=apsw.sqlite_lib_version(),
        sources=number("SELECT count(*) FROM sources"),
        documents=number("SELECT count(*) FROM documents"),
        chunks=number("SELECT count(*) FROM chunks"),
        tags=number("SELECT count(DISTINCT tag) FROM document_tags"),
        words=number("SELECT count(*) FROM words"),
        text_bytes=number("SELECT sum(size) FROM documents"),
        index_version=lexical_index_version(config or fts_config("bigrams")),
    )


def integrity_checks(database: Database) -> list[Check]:
    """Whether file, text index and references are whole. Needs a writer: FTS5 takes its check as an INSERT."""
    checks = []
    try:
        connection = database.writer()
    except StoreError as error:
        return [Check("database", False, error.message, error.hint)]
    try:
        checks.append(_file_check(connection))
        checks.append(_fts_check(connection))
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        checks.append(
            Check(
                "references",
                not orphans,
                f"{len(orphans)} rows refer to nothing" if orphans else "every row has its owner",
                "Restore a backup, or: kb reset and ingest again" if orphans else None,
            )  # fmt: skip
        )
    finally:
        connection.close()
    return checks


def _file_check(connection: apsw.Connection) -> Check:
    try:
        found = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    except apsw.Error as error:
        found = [str(error)]
    whole = found == ["ok"]
    hint = None if whole else "Restore a backup, or: kb reset and ingest again"
    return Check("file", whole, "the database file is whole" if whole else f"damaged: {'; '.join(found)}", hint)


def _fts_check(connection: apsw.Connection) -> Check:
    """Rank 1 compares the index with the chunks; the plain form, and SQLite's own check, find a stale index in order."""
    try:
        connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.Error as error:
        return Check("text index", False, f"the text index does not match the chunks ({error})", "kb index --rebuild-fts")
    return Check("text index", True, "the text index matches the chunks")


def backup(connection: apsw.Connection, target: Path) -> None:
    """A consistent copy while others read and write. It appears under its name only when it is complete."""
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    with our_errors(target):
        try:
            copy = apsw.Connection(str(unfinished))
            with copy.backup("main", connection, "main") as running:
                while not running.done:
                    running.step(1000)
            copy.pragma("journal_mode", "delete")  # one file, nothing beside it
            if copy.pragma("quick_check") != "ok":
                raise Corrupt(f"The copy in {unfinished} is damaged.", hint="Check the disk and try again.", path=str(target))
            copy.close()
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
