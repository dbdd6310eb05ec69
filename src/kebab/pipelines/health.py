"""The checks of `kb doctor`: each one says what is so, and what to do when it is wrong."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from kebab._version import __version__
from kebab.core.records import Check, SourceRecord

_LITTLE_SPACE = 200_000_000


def program_check(store_version: str) -> Check:
    python = ".".join(map(str, sys.version_info[:3]))
    return Check("program", True, f"Kebab {__version__}, Python {python}, SQLite {store_version}")


def disk_check(path: Path) -> Check:
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    return Check.judged("disk", free >= _LITTLE_SPACE, f"{free / 1e9:.1f} GB free", "Free some space: ingest needs room for its index.")


def source_checks(sources: Sequence[SourceRecord]) -> list[Check]:
    return [_source_check(source, source.root) for source in sources if source.root is not None]


def _source_check(source: SourceRecord, root: str) -> Check:
    if Path(root).exists():
        return Check(f"source {source.name}", True, f"{source.documents} documents from {root}")
    hint = "Mount its disk or restore the folder; until then its documents stay as they are."
    return Check(f"source {source.name}", False, f"{root} is not there", hint)
