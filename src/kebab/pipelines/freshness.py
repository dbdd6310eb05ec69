"""Is what was found still what the file says? A look at times and sizes, never at contents, and never for long.

A hit is stale when its file has changed or is gone since it was indexed. Files are pending when an ingest would have something to do
with them: changed, gone, or new in a folder that is known.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from kebab.core.indexed_file import IndexedFile
from kebab.core.search import Notice


def is_stale(file: IndexedFile) -> bool:
    try:
        status = os.stat(file.place)  # noqa: PTH116 - thousands of them
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # whoever cannot look cannot tell
    if status.st_size != file.size:
        return True
    if file.mtime_ns is not None:
        return status.st_mtime_ns != file.mtime_ns
    return status.st_mtime > _seconds(file.indexed_at) + 1


def stale_documents(files: Iterable[IndexedFile]) -> set[str]:
    return {file.doc_id for file in files if is_stale(file)}


def pending_notice(files: Sequence[IndexedFile], budget_ms: float) -> tuple[Notice, ...]:
    """Says how many files wait for an ingest; how many at least, when the time is up before all were looked at."""
    until = time.perf_counter() + budget_ms / 1000
    pending, complete = 0, True
    for number, file in enumerate(files):
        if number % 64 == 0 and time.perf_counter() > until:
            complete = False
            break
        pending += is_stale(file)
    if complete:
        found = _new_files(files, until)
        pending, complete = pending + found[0], found[1]
    if not pending:
        return ()
    count = f"{pending} file{'s' if pending != 1 else ''}" + ("" if complete else " at least")
    return (Notice("pending", f"{count} pending: changed since the last ingest. Bring the index up to date with: kb ingest"),)


def _new_files(files: Sequence[IndexedFile], until: float) -> tuple[int, bool]:
    """A folder whose time is younger than the last ingest has got or lost something; what it has got is as young itself."""
    known: dict[str, set[str]] = {}
    ingested: dict[str, float] = {}
    for file in files:
        if file.kind == "folder":
            folder, _, name = file.place.rpartition(os.sep)
            known.setdefault(folder, set()).add(name)
            ingested[folder] = _seconds(file.ingested_at) + 1  # it is kept in whole seconds
    count = 0
    for folder, names in known.items():
        if time.perf_counter() > until:
            return count, False
        try:
            if os.stat(folder).st_mtime > ingested[folder]:  # noqa: PTH116 - thousands of them
                with os.scandir(folder) as entries:
                    count += sum(_is_new(entry, names, ingested[folder]) for entry in entries)
        except OSError:
            continue
    return count, True


def _is_new(entry: os.DirEntry[str], known: set[str], since: float) -> bool:
    return entry.name not in known and not entry.name.startswith(".") and entry.is_file() and entry.stat().st_ctime > since


def _seconds(moment: str) -> float:
    from datetime import UTC, datetime  # most searches need no date

    return datetime.fromisoformat(moment.removesuffix("Z")).replace(tzinfo=UTC).timestamp()
