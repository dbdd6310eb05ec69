"""Whether hits still match their files, by times and sizes only, within a time limit.

A hit is stale when its file has changed or is gone since it was indexed. Files are pending when an ingest would have
something to do with them: changed, gone, or new.
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
        status = os.stat(file.place)  # noqa: PTH116 - thousands of them
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # unreadable is not the same as changed
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
    """How many files wait for an ingest; "at least" if the time limit ends the count."""
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
        since = _seconds(source.ingested_at) + 1  # it is kept in whole seconds
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
    except ValueError:  # a damaged record: the file may be older or younger
        return 0.0
