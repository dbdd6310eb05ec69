"""A file as the index knows it. In a module of its own, because every search asks for it and for little else."""

from __future__ import annotations

from typing import NamedTuple


class IndexedFile(NamedTuple):
    """A file as it was when it was indexed, to tell whether it has changed since."""

    doc_id: str
    root: str
    """Of its source: a folder, or the file itself."""
    kind: str
    path: str
    size: int
    mtime_ns: int | None
    """None when the file was so young that its time proved nothing."""
    indexed_at: str
    ingested_at: str
    """When its source was last looked through."""

    @property
    def place(self) -> str:
        return self.root if self.kind == "file" else f"{self.root}/{self.path}"
