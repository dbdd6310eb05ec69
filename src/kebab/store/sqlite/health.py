"""Statistics of the database, and the checks of `kb doctor` on it."""

from __future__ import annotations

from contextlib import closing, suppress

import apsw

from kebab.core.errors import NotFound, ReadOnly, StoreError
from kebab.core.records import NOT_CHECKED, Check, StoreStats
from kebab.store.index_versions import fts_config, lexical_index_version
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import RESTORE, Connection, Database
from kebab.store.sqlite.filters import TEXT_INDEXES
from kebab.store.sqlite.rows import stored_fts_config, stored_spaces


def stats(connection: Connection) -> StoreStats:
    def number(sql: str) -> int:
        return int(connection.value(sql) or 0)

    return StoreStats(
        path=str(connection.path),
        bytes=connection.path.stat().st_size,
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
        index_version=lexical_index_version(stored_fts_config(connection) or fts_config("bigrams"), migrations.LATEST),
    )


def health_checks(database: Database, korean_analysis: str, *, named: bool) -> list[Check]:
    """Checks the file, text index, references and vectors, and whether the text index fits the current settings."""
    try:
        connection, may_write = _opened_for_checks(database)
    except StoreError as error:
        if isinstance(error, NotFound) and not named:
            return [Check("database", True, "none yet; the first kb ingest makes it")]
        return [Check("database", False, error.message, error.hint)]
    checks = [Check("database", True, f"schema {connection.pragma('user_version')} at {database.path}")]
    with closing(connection):
        try:
            checks.append(_file_check(connection))
            checks.append(_fts_check(connection, may_write=may_write))
            checks.append(_reference_check(connection))
            checks.append(_vector_check(connection))
            checks.append(_analysis_check(connection, korean_analysis))
        except apsw.Error as error:
            checks.append(Check("database", False, f"reading failed: {error}", RESTORE))
    return checks


def _opened_for_checks(database: Database) -> tuple[Connection, bool]:
    """Opens a connection, and returns whether it may write: the check of FTS5 is an INSERT statement."""
    connection = database.reader()
    if not database.immutable:
        with suppress(ReadOnly):
            writer = database.writer()
            connection.close()
            return writer, True
    return connection, False


def _file_check(connection: Connection) -> Check:
    try:
        found = [str(row[0]) for row in connection.rows("PRAGMA quick_check(5)")]
    except apsw.Error as error:
        found = [str(error)]
    if found == ["ok"]:
        return Check("file", True, "the database file is whole")
    return Check("file", False, f"damaged: {'; '.join(found)}", RESTORE)


def _fts_check(connection: Connection, *, may_write: bool) -> Check:
    """Compares the text indexes with the chunks. Without rank 1, FTS5 would accept a stale index."""
    if not may_write:
        message = f"{NOT_CHECKED}: that needs a place that can be written to; check a copy of the file elsewhere"
        return Check("text index", True, message)
    try:
        for index in TEXT_INDEXES:
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
    except apsw.BusyError:
        return Check("text index", True, f"{NOT_CHECKED}: another process is writing")
    except apsw.Error as error:
        message = f"the text index does not match the chunks ({error})"
        return Check("text index", False, message, "kb index --rebuild-fts")
    return Check("text index", True, "the text index matches the chunks")


def _reference_check(connection: Connection) -> Check:
    orphans = len(connection.rows("PRAGMA foreign_key_check"))
    message = f"{orphans} rows refer to nothing" if orphans else "every row has its owner"
    return Check.judged("references", not orphans, message, RESTORE)


def _vector_check(connection: Connection) -> Check:
    """Checks that every vector has the dimension of its model, and that every vector of a large space has a code."""
    wrong = connection.value(
        """SELECT count(*) FROM vectors v JOIN embedding_spaces e ON e.id = v.space_id
           WHERE length(v.vector) != 2 * e.dimension"""
    )
    uncoded = connection.value(
        """SELECT count(*) FROM embedding_spaces e WHERE e.centre IS NOT NULL
           AND (SELECT count(*) FROM vectors v WHERE v.space_id = e.id)
               != (SELECT sum(count) FROM vector_codes c WHERE c.space_id = e.id)"""
    )
    if not wrong and not uncoded:
        return Check("vector index", True, "vectors and their codes agree")
    message = f"{wrong} vectors of a wrong size, {uncoded} models with missing codes"
    return Check("vector index", False, message, "kb index --rebuild-vectors")


def _analysis_check(connection: Connection, korean_analysis: str) -> Check:
    stored = stored_fts_config(connection)
    if stored is None or stored == fts_config(korean_analysis):
        return Check("analysis", True, "the text index was built with the current settings")
    built = f"korean = {stored.get('korean')}, analysis {stored.get('analysis')}"
    return Check("analysis", False, f"the text index was built with {built}", "kb index --rebuild-fts")
