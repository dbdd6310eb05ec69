"""Ingest again whenever something changes, and again after what stood in the way: another writer, a folder that is gone for now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from threading import Event

from kebab.core.errors import KebabError
from kebab.pipelines.ingest_report import IngestReport


def keep_up(
    roots: Sequence[Path], ingest: Callable[[Path], IngestReport], *, own_files: Collection[Path], stop: Event | None
) -> Iterator[IngestReport | KebabError]:
    """A report whenever something was done; an error once, however often it is met again."""
    from kebab.sources.watching import changed_roots

    again: dict[Path, str] = {}
    for changed in changed_roots(roots, own_files=own_files, stop=stop, again=again):
        for root in sorted(changed):
            try:
                report = ingest(root)
            except KebabError as error:
                if again.get(root) != error.message:
                    yield error
                again[root] = error.message
                continue
            again.pop(root, None)
            if report.added or report.updated or report.removed or report.failed:
                yield report
