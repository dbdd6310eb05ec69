"""Does every stored passage still stand in its file? ok / moved / changed / gone, passage by passage. And is the store
whole itself?

A file that is gone is looked for under other names in its source: by its size, and then by its content.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab.config.settings import IngestSettings
from kebab.core.citations import Citation
from kebab.core.documents import PAGE_BREAK
from kebab.core.errors import Corrupt, NotFound, ParseError, SourceError
from kebab.core.files import read_regular
from kebab.core.places import stands_there
from kebab.core.records import Check, ChunkRecord, DocumentRecord, SourceRecord
from kebab.core.spans import LineSpan, PageSpan, Span
from kebab.core.text import LineTable, nfc

if TYPE_CHECKING:
    from kebab.core.search import SearchHit
    from kebab.core.store_ports import Catalog
    from kebab.sources.folder import FoundFile

_MOST_LISTED = 1000


@dataclass(frozen=True)
class Difference:
    chunk_id: str
    citation: str
    source: str
    status: str
    """moved (within its file or with it), changed or gone; `unreadable` when nobody may look, `corrupt` when the stored
    passage is not even in the stored text.
    """
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
    checks: list[Check] = field(default_factory=list)
    """Of the store itself: whether all that is in it fits together."""

    def judge_store(self, checks: Iterable[Check]) -> None:
        """`checks`: what the store says of itself. Not every store compares passages with texts."""
        self.checks = list(checks)
        if self.corrupt and self.sound:
            hint = "Restore a backup; or read them again with: kb source remove SOURCE, and kb ingest FOLDER"
            self.checks.append(
                Check("texts", False, f"{self.corrupt:,} passages are not in the stored texts of their documents", hint)
            )

    @property
    def truncated(self) -> bool:
        """Whether there are more differences than are listed."""
        return self._different > len(self.differences)

    @property
    def whole(self) -> bool:
        return not self._different and self.sound

    @property
    def sound(self) -> bool:
        """Whether the store is whole, whatever has become of the files."""
        return all(check.ok for check in self.checks)

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


def line_in_file(file: Path, hit: SearchHit, passage: Callable[[], str]) -> int | None:
    """Where the passage of a hit begins in its file now; None if it has no lines."""
    from kebab.parsing.registry import parser_for

    parser = parser_for(hit.doc_path)
    if not file.is_file():
        raise NotFound(
            f"{file} is gone since it was indexed.", hint="Bring the index up to date with: kb ingest", path=str(file)
        )
    if hit.citation.lines is None or not parser.keeps_lines:
        return None
    return line_now(parser.parse(read_regular(file), hit.doc_path).text, passage(), hit.citation.lines[0])


def line_now(text: str, passage: str, first: int) -> int:
    """The line where a passage begins that was indexed as beginning at `first`; the nearest there is when it is gone."""
    lines = LineTable(text)
    if first <= len(lines) and text.startswith(passage, lines.start_of(first)):
        return first
    found = text.find(passage)
    return lines.line_of(found) if found >= 0 else min(first, len(lines))


class _RenamedFiles:
    """Files with a content that is not indexed under their path, looked up by what they say. Nothing is read before one
    is gone.
    """

    def __init__(self, catalog: Catalog, sources: Collection[SourceRecord], settings: IngestSettings) -> None:
        self._catalog = catalog
        self._sources = sources
        self._settings = settings
        self._by_size: dict[str, dict[int, list[FoundFile]]] = {}
        self._hashes: dict[Path, str | None] = {}
        self._indexed: set[tuple[str, str, str]] | None = None

    def find(self, source: SourceRecord, document: DocumentRecord) -> str | None:
        """The path at which the file now is."""
        if source.kind != "folder":
            return None
        if source.name not in self._by_size:
            by_size = self._by_size[source.name] = {}
            for file in self._files_of(source):
                by_size.setdefault(file.size, []).append(file)
        for file in self._by_size[source.name].get(document.size, ()):
            if self._hash(file.absolute) == document.content_hash and not self._is_indexed(
                source.name, file.path, document.content_hash
            ):
                return file.path
        return None

    def _files_of(self, source: SourceRecord) -> list[FoundFile]:
        from kebab.sources.folder import scan_folder

        others = [
            Path(other.root)
            for other in self._sources
            if other.root and other.kind == "folder" and other.name != source.name
        ]
        try:
            return scan_folder(Path(source.root or ""), self._settings, other_sources=others).files
        except SourceError:  # all of it is gone
            return []

    def _hash(self, file: Path) -> str | None:
        if file not in self._hashes:
            try:
                self._hashes[file] = sha256(read_regular(file)).hexdigest()
            except OSError:
                self._hashes[file] = None
        return self._hashes[file]

    def _is_indexed(self, source: str, path: str, content_hash: str) -> bool:
        """A copy that was there before is not where a file has gone."""
        if self._indexed is None:
            self._indexed = {
                (document.source, document.path, document.content_hash) for document in self._catalog.all_documents()
            }
        return (source, path, content_hash) in self._indexed


class _Now(NamedTuple):
    """What a document's file says now, and where it is."""

    text: str | None
    """None when it is gone, or cannot be read."""
    path: str
    readable: bool = True


def verify(catalog: Catalog, read: Callable[[bytes, str], str], settings: IngestSettings) -> VerifyReport:
    """`read` gives the text of a file's bytes, as an ingest would, or raises ParseError."""
    report = VerifyReport()
    roots = {source.name: source for source in catalog.sources()}
    renamed = _RenamedFiles(catalog, roots.values(), settings)
    for document in catalog.all_documents():
        report.documents += 1
        try:
            body, chunks = catalog.body(document.doc_id), catalog.chunks_of(document.doc_id)
        except (Corrupt, NotFound):
            report.corrupt += 1
            if len(report.differences) < _MOST_LISTED:
                report.differences.append(Difference(document.doc_id, document.path, document.source, "corrupt"))
            continue
        lines = LineTable(body)
        now = _now(roots.get(document.source), document, body, read, renamed)
        for chunk in chunks:
            _judge(report, chunk, body, lines, now)
    return report


def _now(
    source: SourceRecord | None,
    document: DocumentRecord,
    body: str,
    read: Callable[[bytes, str], str],
    renamed: _RenamedFiles,
) -> _Now:
    """The stored text itself where there is no file, or the file is unchanged."""
    if source is None or source.root is None:
        return _Now(body, document.path)
    try:
        data = read_regular(locate(source, document.path))
    except (FileNotFoundError, NotADirectoryError):
        path = renamed.find(source, document)
        return _Now(None, document.path) if path is None else _Now(body, path)
    except OSError:
        return _Now(None, document.path, readable=False)
    if sha256(data).hexdigest() == document.content_hash:
        return _Now(body, document.path)
    try:
        return _Now(read(data, document.path), document.path)
    except ParseError:
        return _Now("", document.path)


def _span_at(text: str, start: int, chunk: ChunkRecord, *, paged: bool) -> Span:
    if paged:
        return PageSpan(text.count(PAGE_BREAK, 0, start) + 1)
    return LineSpan(*LineTable(text).lines_of(start, start + len(chunk.text)))


def _judge(report: VerifyReport, chunk: ChunkRecord, body: str, lines: LineTable, now: _Now) -> None:
    current = now.text
    status, now_at = "ok", None
    if not stands_there(chunk.text, chunk.start_offset, chunk.end_offset, chunk.spans[0], body, lines):
        status = "corrupt"
    elif current is None:
        status = "gone" if now.readable else "unreadable"
    elif now.path != chunk.doc_path:
        status, now_at = "moved", chunk.citation._replace(path=now.path).uri
    elif current is not body and current[chunk.start_offset : chunk.end_offset] != chunk.text:
        found = current.find(chunk.text)
        status = "moved" if found >= 0 else "changed"
        if found >= 0:
            now_at = Citation(
                chunk.doc_path, _span_at(current, found, chunk, paged=isinstance(chunk.spans[0], PageSpan))
            ).uri
    setattr(report, status, getattr(report, status) + 1)
    if status != "ok" and len(report.differences) < _MOST_LISTED:
        report.differences.append(Difference(chunk.chunk_id, chunk.citation.uri, chunk.source, status, now_at))
