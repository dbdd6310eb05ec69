"""Checks by times and sizes of files, within a time limit, whether the index is up to date.

A hit is stale if its file was changed or deleted after indexing. Files are pending if they are changed, deleted or new,
so that the next ingest would process them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.core.notices import Notice, Says
from kebab.core.ports import IndexedFile

if TYPE_CHECKING:
    from kebab.config.settings import IngestSettings, Settings
    from kebab.core.records import SourceRecord


def is_stale(file: IndexedFile) -> bool:
    try:
        status = os.stat(file.place)  # noqa: PTH116 - faster than Path.stat for thousands of files
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # an unreadable file need not be changed
    if status.st_size != file.size:
        return True
    if file.mtime_ns is not None:
        return status.st_mtime_ns != file.mtime_ns
    return status.st_mtime > _seconds(file.indexed_at) + 1


def stale_documents(files: Iterable[IndexedFile]) -> set[str]:
    return {file.doc_id for file in files if is_stale(file)}


def pending_notice(
    files: Sequence[IndexedFile], sources: Sequence[SourceRecord], settings: Settings, own_files: Iterable[Path]
) -> tuple[Notice, ...]:
    """A notice with the number of pending files, if any; it says "at least" if the time limit ended the count."""
    until = time.perf_counter() + settings.search.freshness_ms / 1000
    pending, complete = 0, True
    for number, file in enumerate(files):
        if number % 64 == 0 and time.perf_counter() > until:
            complete = False
            break
        pending += is_stale(file)
    if complete:
        found = _new_files(files, sources, settings.ingest, {str(file) for file in own_files}, until)
        pending, complete = pending + found[0], found[1]
    if not pending:
        return ()
    count = f"{pending} file{'s' if pending != 1 else ''}" + ("" if complete else " at least")
    return (Says.PENDING.notice(count),)


def _new_files(
    files: Sequence[IndexedFile],
    sources: Sequence[SourceRecord],
    settings: IngestSettings,
    own_files: set[str],
    until: float,
) -> tuple[int, bool]:
    from kebab.sources.folder import KnownFolder, count_new_files

    roots = {source.root for source in sources if source.root is not None}
    paths: dict[str, list[str]] = {root: [] for root in roots}
    for file in files:
        paths[file.root].append(file.path)
    count = 0
    for source in sources:
        if source.kind != "folder" or source.root is None or source.ingested_at is None:
            continue
        since = _seconds(source.ingested_at) + 1  # the stored time has whole seconds
        folder = KnownFolder(Path(source.root), paths[source.root], since, own_files | roots - {source.root})
        found = count_new_files(folder, settings, until)
        count += found.number
        if not found.complete:
            return count, False
    return count, True


def _seconds(moment: str) -> float:
    from datetime import UTC, datetime  # most searches need no date

    try:
        return datetime.fromisoformat(moment.removesuffix("Z")).replace(tzinfo=UTC).timestamp()
    except ValueError:  # a damaged record: the time is unknown
        return 0.0
