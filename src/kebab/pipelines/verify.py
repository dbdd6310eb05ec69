"""Does every stored passage still stand in its file? ok / moved / changed / gone, passage by passage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from kebab.core.citations import Citation
from kebab.core.documents import PAGE_BREAK, page_text
from kebab.core.errors import ParseError
from kebab.core.records import ChunkRecord, DocumentRecord, SourceRecord
from kebab.core.spans import LineSpan, PageSpan, Span
from kebab.core.text import LineTable, nfc

_MOST_LISTED = 1000


class Catalog(Protocol):
    def all_documents(self) -> Iterator[DocumentRecord]: ...
    def chunks_of(self, doc_id: str) -> list[ChunkRecord]: ...
    def body(self, doc_id: str) -> str: ...
    def sources(self) -> list[SourceRecord]: ...


@dataclass(frozen=True)
class Difference:
    chunk_id: str
    citation: str
    source: str
    status: str
    """moved, changed or gone; `unreadable` when nobody may look, `corrupt` when the stored passage is not even in the stored text."""
    now_at: str | None = None


@dataclass
class VerifyReport:
    documents: int = 0
    ok: int = 0
    moved: int = 0
    changed: int = 0
    gone: int = 0
    unreadable: int = 0
    corrupt: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def truncated(self) -> bool:
        """Whether there are more differences than are listed."""
        return self._different > len(self.differences)

    @property
    def whole(self) -> bool:
        return not self._different

    @property
    def _different(self) -> int:
        return self.moved + self.changed + self.gone + self.unreadable + self.corrupt


def locate(source: SourceRecord, path: str) -> Path:
    """The file behind a document path. Paths are kept in NFC; on disk a name may be in another Unicode form."""
    root = Path(source.root or "")
    if source.kind == "file":
        return root
    if (root / path).exists():
        return root / path
    place = root
    for part in path.split("/"):
        names = [entry.name for entry in place.iterdir()] if place.is_dir() else []
        place /= next((name for name in names if nfc(name) == part), part)
    return place


def line_now(text: str, passage: str, first: int) -> int:
    """The line where a passage begins that was indexed as beginning at `first`; the nearest there is when it is gone."""
    lines = LineTable(text)
    if first <= len(lines) and text.startswith(passage, lines.start_of(first)):
        return first
    found = text.find(passage)
    return lines.line_of(found) if found >= 0 else min(first, len(lines))


def verify(catalog: Catalog, read: Callable[[bytes, str], str]) -> VerifyReport:
    """`read` gives the text of a file's bytes, as an ingest would, or raises ParseError."""
    report = VerifyReport()
    roots = {source.name: source for source in catalog.sources()}
    for document in catalog.all_documents():
        report.documents += 1
        body = catalog.body(document.doc_id)
        lines = LineTable(body)
        try:
            current, readable = _current_text(roots.get(document.source), document, body, read), True
        except OSError:
            current, readable = None, False
        for chunk in catalog.chunks_of(document.doc_id):
            _judge(report, chunk, body, lines, current, readable=readable)
    return report


def _current_text(source: SourceRecord | None, document: DocumentRecord, body: str, read: Callable[[bytes, str], str]) -> str | None:
    """What the file says now; the stored text itself where there is no file, None where the file is gone."""
    if source is None or source.root is None:
        return body
    try:
        data = locate(source, document.path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if sha256(data).hexdigest() == document.content_hash:
        return body
    try:
        return read(data, document.path)
    except ParseError:
        return ""


def _span_at(text: str, start: int, chunk: ChunkRecord, *, paged: bool) -> Span:
    if paged:
        return PageSpan(text.count(PAGE_BREAK, 0, start) + 1)
    return LineSpan(*LineTable(text).lines_of(start, start + len(chunk.text)))


def _judge(report: VerifyReport, chunk: ChunkRecord, body: str, lines: LineTable, current: str | None, *, readable: bool) -> None:
    status, now_at = "ok", None
    cited = chunk.citation.lines
    page = chunk.spans[0].page if isinstance(chunk.spans[0], PageSpan) else None
    if body[chunk.start_offset : chunk.end_offset] != chunk.text or (
        (cited and chunk.text not in lines.slice(*cited)) or (page and chunk.text not in (page_text(body, page) or ""))
    ):
        status = "corrupt"
    elif current is None:
        status = "gone" if readable else "unreadable"
    elif current is not body and current[chunk.start_offset : chunk.end_offset] != chunk.text:
        found = current.find(chunk.text)
        status = "moved" if found >= 0 else "changed"
        if found >= 0:
            now_at = Citation(chunk.doc_path, _span_at(current, found, chunk, paged=page is not None)).uri
    setattr(report, status, getattr(report, status) + 1)
    if status != "ok" and len(report.differences) < _MOST_LISTED:
        report.differences.append(Difference(chunk.chunk_id, chunk.citation.uri, chunk.source, status, now_at))
