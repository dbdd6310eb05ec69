"""The life of the index: rebuilding, optimising, checking, copying."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from kebab.analysis.terms import cjk_column
from kebab.core.errors import Corrupt, NotFound, ReadOnly, StoreError
from kebab.core.private_files import make_file
from kebab.core.records import NOT_CHECKED, Check, StoreStats
from kebab.store.fts5.index_config import fts_config, lexical_index_version
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Database, our_errors, run_script, write_transaction
from kebab.store.sqlite.documents import NoteTerms
from kebab.store.sqlite.filters import TEXT_INDEXES
from kebab.store.sqlite.index_state import remember_fts_config, stored_fts_config, stored_spaces
from kebab.store.sqlite.lexical import Vocabulary
from kebab.store.sqlite.rows import rows_of
from kebab.store.sqlite.schema import restore

_BATCH = 500
_RESTORE = "Restore a backup, or: kb reset and ingest again"


def rebuild_fts(connection: apsw.Connection, path: Path, korean_analysis: str) -> int:
    """Analyse every chunk again and build the text index and the vocabulary from nothing, in one transaction."""
    with our_errors(path), write_transaction(connection):
        restore(connection)
        # The triggers would update a possibly damaged index row by row; it is rebuilt as a whole instead.
        for index in TEXT_INDEXES:
            for event in ("ai", "ad", "au"):
                connection.execute(f"DROP TRIGGER IF EXISTS {index.removesuffix('_fts')}_{event}")
        notes = NoteTerms(connection, korean_analysis)
        count = 0
        for batch in _chunk_batches(connection):
            connection.executemany(
                "UPDATE chunks SET cjk = ? WHERE id = ?",
                [
                    (
                        cjk_column(
                            korean_analysis,
                            title,
                            headings,
                            text,
                            is_code=kind == "code",
                            note_terms=notes.of(source, path),
                        ),
                        row_id,
                    )
                    for row_id, headings, text, title, kind, source, path in batch
                ],
            )
            count += len(batch)
        _rebuild_vocabulary(connection)
        for index in TEXT_INDEXES:
            with suppress(apsw.Error):  # without its version, FTS5 refuses even to drop the table
                connection.execute(f"REPLACE INTO {index}_config VALUES ('version', 4)")
        run_script(connection, migrations.statements(migrations.TEXT_INDEX))
        remember_fts_config(connection, fts_config(korean_analysis))
    return count


def _rebuild_vocabulary(connection: apsw.Connection) -> None:
    """From the words of the chunks and notes that there are. Inside the caller's transaction."""
    vocabulary = Vocabulary(connection, SqliteTokenizer(connection))
    connection.execute("DELETE FROM words")
    vocabulary.add(text for (text,) in rows_of(connection, "SELECT text FROM context_notes"))
    for batch in _chunk_batches(connection):
        vocabulary.add(part for _, _, text, title, *_ in batch for part in (title, text))


def _chunk_batches(connection: apsw.Connection) -> Iterator[list[tuple[Any, ...]]]:
    last = -(2**63)
    sql = """SELECT c.id, c.heading_path, c.text, c.title, c.kind, s.name, d.path
        FROM chunks c LEFT JOIN documents d ON d.id = c.document_id LEFT JOIN sources s ON s.id = d.source_id
        WHERE c.id > ? ORDER BY c.id LIMIT ?"""
    while batch := rows_of(connection, sql, (last, _BATCH)):
        yield batch
        last = batch[-1][0]


def optimize(connection: apsw.Connection, path: Path) -> None:
    """Afterwards no word of a deleted document is left in the file: FTS5 merges its tombstones, VACUUM writes only live
    rows.
    """
    from kebab.store.sqlite.vector_writer import SqliteVectorWriter

    SqliteVectorWriter(connection, path).drop_unused()
    with our_errors(path):
        with write_transaction(connection):
            _rebuild_vocabulary(connection)
        for index in TEXT_INDEXES:
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
        connection.execute("ANALYZE")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def stats(connection: apsw.Connection, database: Database) -> StoreStats:
    def number(sql: str) -> int:
        return int(rows_of(connection, sql)[0][0] or 0)

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
        vectors=number("SELECT count(*) FROM vectors"),
        embedded_chunks=number("SELECT count(DISTINCT chunk) FROM chunks_vec"),
        embedding_models=tuple(space.fingerprint for space in stored_spaces(connection)),
        index_version=lexical_index_version(config or fts_config("bigrams"), migrations.LATEST),
    )


def health_checks(database: Database, korean_analysis: str, *, named: bool) -> list[Check]:
    """Whether file, text index and references are whole, and the index is of the current analysis."""
    try:
        connection, may_write = _opened_for_checks(database)
    except StoreError as error:
        if isinstance(error, NotFound) and not named:
            return [Check("database", True, "none yet; the first kb ingest makes it")]
        return [Check("database", False, error.message, error.hint)]
    checks = [Check("database", True, f"schema {connection.pragma('user_version')} at {database.path}")]
    try:
        checks.append(_file_check(connection))
        checks.append(_fts_check(connection) if may_write else _unchecked_fts())
        checks.append(_reference_check(connection))
        checks.append(_vector_check(connection))
        checks.append(_analysis_check(connection, korean_analysis))
    except apsw.Error as error:
        checks.append(Check("database", False, f"reading failed: {error}", _RESTORE))
    finally:
        connection.close()
    return checks


def _opened_for_checks(database: Database) -> tuple[apsw.Connection, bool]:
    """And whether it may write: FTS5 takes its check as an INSERT, which a read-only medium or folder forbids."""
    connection = database.reader()
    if not database.immutable:
        with suppress(ReadOnly):
            writer = database.writer()
            connection.close()
            return writer, True
    return connection, False


def _reference_check(connection: apsw.Connection) -> Check:
    orphans = len(rows_of(connection, "PRAGMA foreign_key_check"))
    return Check.judged(
        "references",
        not orphans,
        f"{orphans} rows refer to nothing" if orphans else "every row has its owner",
        _RESTORE,
    )


def _vector_check(connection: apsw.Connection) -> Check:
    """Every vector as long as its model says, and every one of a large space to be found by its code."""
    wrong = """SELECT count(*) FROM vectors v JOIN embedding_spaces e ON e.id = v.space_id
        WHERE length(v.vector) != 2 * e.dimension"""
    uncoded = """SELECT count(*) FROM embedding_spaces e WHERE e.centre IS NOT NULL
        AND (SELECT count(*) FROM vectors v WHERE v.space_id = e.id)
            != (SELECT sum(count) FROM vector_codes c WHERE c.space_id = e.id)"""
    broken = [int(rows_of(connection, sql)[0][0]) for sql in (wrong, uncoded)]
    message = (
        f"{broken[0]} vectors of a wrong size, {broken[1]} models with missing codes"
        if any(broken)
        else "vectors and their codes agree"
    )
    return Check.judged("vector index", not any(broken), message, "kb index --rebuild-vectors")


def _analysis_check(connection: apsw.Connection, korean_analysis: str) -> Check:
    stored = stored_fts_config(connection)
    if stored is None or stored == fts_config(korean_analysis):
        return Check("analysis", True, "the text index was built with the current settings")
    built = f"korean = {stored.get('korean')}, analysis {stored.get('analysis')}"
    return Check("analysis", False, f"the text index was built with {built}", "kb index --rebuild-fts")


def _file_check(connection: apsw.Connection) -> Check:
    try:
        found = [str(row[0]) for row in rows_of(connection, "PRAGMA quick_check(5)")]
    except apsw.Error as error:
        found = [str(error)]
    whole = found == ["ok"]
    return Check.judged(
        "file", whole, "the database file is whole" if whole else f"damaged: {'; '.join(found)}", _RESTORE
    )


def _unchecked_fts() -> Check:
    message = f"{NOT_CHECKED}: that needs a place that can be written to; check a copy of the file elsewhere"
    return Check("text index", True, message)


def _fts_check(connection: apsw.Connection) -> Check:
    """Rank 1 compares the index with the chunks; without it, as in SQLite's own check, a stale index passes."""
    try:
        for index in TEXT_INDEXES:
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
    except apsw.BusyError:
        return Check("text index", True, f"{NOT_CHECKED}: another process is writing")
    except apsw.Error as error:
        return Check(
            "text index", False, f"the text index does not match the chunks ({error})", "kb index --rebuild-fts"
        )
    return Check("text index", True, "the text index matches the chunks")


@contextmanager
def _blaming(source: Path) -> Iterator[None]:
    """What is found damaged while copying is the original."""
    try:
        yield
    except apsw.CorruptError as error:
        raise Corrupt(f"The database {source} is damaged.", hint=_RESTORE, path=str(source)) from error


def backup(connection: apsw.Connection, source: Path, target: Path) -> None:
    """A consistent copy while others read and write. It appears under its name only when it is complete."""
    try:
        _backup(connection, source, target)
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror}.", hint="Name another place.", path=str(target)
        ) from error


def _backup(connection: apsw.Connection, source: Path, target: Path) -> None:
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    make_file(unfinished)
    with our_errors(target):
        try:
            with closing(apsw.Connection(str(unfinished))) as copy, _blaming(source):
                with copy.backup("main", connection, "main") as running:
                    while not running.done:
                        running.step(1000)
                copy.pragma("journal_mode", "delete")  # one file, nothing beside it
                if copy.pragma("quick_check") != "ok":
                    raise Corrupt(
                        f"The copy of {source} is damaged.",
                        hint="See kb doctor, check the disk, try again.",
                        path=str(source),
                    )
            unfinished.replace(target)
        finally:
            for suffix in ("", "-journal", "-wal", "-shm"):
                unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
