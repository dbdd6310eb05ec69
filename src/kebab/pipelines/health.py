"""The checks of `kb doctor`: each one says what is so, and what to do when it is wrong."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import apsw

from kebab._version import __version__
from kebab.config.settings import Settings
from kebab.core.errors import KebabError
from kebab.core.records import Check
from kebab.store.sqlite import maintenance
from kebab.store.sqlite.catalog import SqliteCatalog
from kebab.store.sqlite.database import Database

_LITTLE_SPACE = 200_000_000


def health_checks(database: Database, settings: Settings, *, named: bool) -> list[Check]:
    checks = [_program(), _disk(database.path)]
    if not database.path.exists() and not named:
        return [*checks, Check("database", True, "none yet; the first kb ingest makes it")]
    try:
        reader = database.reader()
    except KebabError as error:
        return [*checks, Check("database", False, error.message, error.hint)]
    try:
        checks.append(Check("database", True, f"schema {reader.pragma('user_version')} at {database.path}"))
        if not database.immutable:
            checks.extend(maintenance.integrity_checks(database))
        checks.append(_analysis(reader, settings))
        checks.extend(_sources(SqliteCatalog(reader)))
    except apsw.Error as error:
        checks.append(Check("database", False, f"reading failed: {error}", "Restore a backup, or: kb reset and ingest again"))
    finally:
        reader.close()
    return checks


def _program() -> Check:
    python = ".".join(map(str, sys.version_info[:3]))
    return Check("program", True, f"Kebab {__version__}, Python {python}, SQLite {apsw.sqlite_lib_version()}")


def _disk(path: Path) -> Check:
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    enough = free >= _LITTLE_SPACE
    return Check(
        "disk",
        enough,
        f"{free / 1e9:.1f} GB free",
        None if enough else "Free some space: ingest needs room for its index.",
    )


def _analysis(reader: apsw.Connection, settings: Settings) -> Check:
    stored = maintenance.stored_fts_config(reader)
    if stored is None or stored == maintenance.fts_config(settings.analysis.korean):
        return Check("analysis", True, "the text index was built with the current settings")
    return Check(
        "analysis", False, f"the text index was built with korean = {stored.get('korean')}, analysis {stored.get('analysis')}",
        "kb index --rebuild-fts",
    )  # fmt: skip


def _sources(catalog: SqliteCatalog) -> list[Check]:
    checks = []
    for source in catalog.sources():
        if source.root is None:
            continue
        there = Path(source.root).exists()
        hint = None if there else "Mount its disk or restore the folder; until then its documents stay as they are."
        message = f"{source.documents} documents from {source.root}" if there else f"{source.root} is not there"
        checks.append(Check(f"source {source.name}", there, message, hint))
    return checks
