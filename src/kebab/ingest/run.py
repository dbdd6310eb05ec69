"""Ingest: finds files, skips unchanged ones, parses, chunks and writes the rest, and removes documents without a file.

Documents are written in small groups, each in one transaction, so a run can be stopped at any time and run again. A
file that cannot be indexed is an entry in the report. Problems that stop the whole run (no space, no permission, a
missing folder) are exceptions.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import Settings, all_settings
from kebab.core.documents import Chunk, ParsedDocument, Source, bounded, date_in_name
from kebab.core.errors import Corrupt, ModelError, ParseError, SourceError, UsageError, only_parse_errors
from kebab.core.ports import BackgroundParser, Chunker, FileState, IndexedDocument, Key, Parser, Progress
from kebab.core.text import nfc, storable, whole_characters
from kebab.ingest.embedding import embed_missing
from kebab.ingest.report import Failure, IngestReport, quiet
from kebab.ingest.sources import Scope, resolve, roots_below
from kebab.parsing.markdown import MarkdownParser, parse_markdown
from kebab.parsing.registry import parser_for
from kebab.sources import folder as on_disk
from kebab.sources.git_repository import repository_of

if TYPE_CHECKING:
    from kebab.core.store_ports import Writing
    from kebab.session import Session

STDIN_SOURCE = "stdin"

_GROUP_CHARACTERS = 1 << 19
"""Characters of a group of documents: enough to update the text index rarely, few enough for short transactions."""
_GROUP_SECONDS = 0.5
_MOST_AHEAD = 16
"""The most files that are read but not written yet."""
_MOST_BYTES_AHEAD = 1 << 25
_FIRST_MOMENT = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


class _Begun(NamedTuple):
    """A file that was read, and whose parser may still run."""

    path: str
    is_new: bool
    size: int
    document: Callable[[], IndexedDocument]
    """Waits for the parser and returns the document, or raises ParseError."""
    elsewhere: bool
    """Whether the parser runs in another process."""
    seconds: float
    """Time spent on reading the file."""


class _Waiting(NamedTuple):
    """A document that is ready to be written."""

    document: IndexedDocument
    is_new: bool
    seconds: float
    """Time spent on reading and parsing the file."""


def _date(parsed: ParsedDocument, path: str, modified: str) -> str:
    return parsed.date or date_in_name(path) or modified


def _moment(time_of_file: float) -> str:
    """Returns a file's time as ISO in UTC, limited to the years 1 to 9999, because file systems allow others."""
    within = min(max(time_of_file, _FIRST_MOMENT), _LAST_MOMENT)
    return datetime.fromtimestamp(within, UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def nothing_yet() -> UsageError:
    return UsageError("There is nothing to ingest yet.", hint="Name a folder: kb ingest ~/notes")


def fingerprints(settings: Settings, chunker_version: str) -> Callable[[str], str]:
    """A function that returns, for the version of a parser, a hash of everything besides the file that shapes chunks:
    parser, chunker and settings. Unchanged files are indexed again if the hash differs from the stored one.
    """
    shaping = {
        item.key: getattr(getattr(settings, item.section), item.name) for item in all_settings() if item.changes_index
    }

    @cache
    def of(parser_version: str) -> str:
        parts = json.dumps([parser_version, chunker_version, shaping], sort_keys=True)
        return sha256(parts.encode()).hexdigest()[:12]

    return of


def chunked(parse: Callable[[], ParsedDocument], chunker: Chunker) -> tuple[ParsedDocument, list[Chunk]]:
    """Parses and chunks a document. Raises no other error than ParseError."""
    with only_parse_errors():
        parsed = bounded(parse())
        chunks = chunker.chunk(parsed)
    if not chunks:
        raise ParseError("There is no text in it.", reason="empty")
    return parsed, chunks


def original(document: IndexedDocument) -> bytes | None:
    """The bytes of the file that a stored document was made from, or None if its text does not have all of them."""
    for encoding in (document.parsed.encoding, "utf-8-sig"):
        with suppress(LookupError, UnicodeEncodeError):
            data = document.parsed.text.encode(encoding)
            if sha256(data).hexdigest() == document.state.content_hash:
                return data
    return None


def ingest(
    session: Session,
    paths: Sequence[str | os.PathLike[str]],
    report: IngestReport,
    *,
    name: str | None = None,
    embed: bool = True,
    password: str | None = None,
    known_only: bool = False,
    progress: Progress | None = None,
) -> IngestReport:
    """Indexes the changes in the paths, or in every known source, then makes vectors. Fills `report` and returns it."""
    if not all(map(os.fspath, paths)):
        raise UsageError("A path is empty.", hint="Name a folder, or . for this one.")
    models = session.models if embed else None  # a missing model is reported before the work, not after it
    if not paths and not session.store.exists():
        raise nothing_yet()
    folders = [Path(path) for path in paths]
    if folders:
        resolve(folders, (), name)  # a wrong path is reported before waiting for another writer
    missing: SourceError | None = None
    with session.writing("kb ingest", existing=known_only) as writing, session.parsers(password) as parsers:
        if embed:
            with suppress(ModelError):  # words are indexed even if an embedding endpoint does not answer
                writing.expect_vectors(models.embedders if models is not None else ())
        run = Ingest(session, writing, parsers.of, report, progress)
        try:
            run.folders(folders, name, known_only=known_only)
        except SourceError as error:  # raised after the other sources are embedded
            missing = error
    if embed and (missing is None or report.scanned):
        embed_missing(session, "kb ingest", report, progress)
    if missing is not None:
        raise missing
    return report


def upgrade(session: Session, report: IngestReport, progress: Progress | None = None) -> IngestReport:
    """Parses the documents again that an older version has parsed, then makes vectors. Fills and returns `report`."""
    purpose = "kb index --upgrade"
    with session.writing(purpose, existing=True) as writing, session.parsers() as parsers:
        Ingest(session, writing, parsers.of, report, progress).upgrade()
    embed_missing(session, purpose, report, progress)
    return report


def ingest_text(
    session: Session, text: str, *, title: str, embed: bool, progress: Progress | None = None
) -> IngestReport:
    """Indexes one document without a file."""
    if not title.strip():
        hint = "For example: kb ingest - --title 'Shopping list'"
        raise UsageError("A text without a file needs a title.", hint=hint)
    if embed:
        _ = session.models  # a missing model is reported before the work
    report = IngestReport()
    with session.writing("kb ingest -") as writing:
        Ingest(session, writing, parser_for, report).text(whole_characters(text), storable(title.strip()))
    if embed:
        embed_missing(session, "kb ingest -", report, progress)
    return report


class Ingest:
    """One run. `report` is always up to date, so that an interrupted run can show how far it came."""

    def __init__(
        self,
        session: Session,
        writing: Writing,
        parser_for: Callable[[str], Parser],
        report: IngestReport,
        progress: Progress | None = None,
    ) -> None:
        self.report = report
        self._session = session
        self._settings = session.settings
        self._parser_for = parser_for
        self._progress: Progress = progress or quiet
        self._started = time.perf_counter()
        self._chunker = StructureChunker(self._settings.chunking)
        self._fingerprint_of = fingerprints(self._settings, self._chunker.version)
        self._group: list[_Waiting] = []
        self._group_since = 0.0
        report.started = True
        report.reanalysed = writing.settle_analysis()
        self._store = writing.documents()
        self._upgrade([STDIN_SOURCE])

    def folders(self, paths: Sequence[Path], name: str | None = None, *, known_only: bool = False) -> None:
        """Ingests the paths, or every known source if there are no paths; then a missing folder raises SourceError only
        after the other sources are ingested. `known_only`: skips paths that belong to no known source.
        """
        known = self._store.sources()
        scopes = resolve(paths, known, name) if paths else [Scope(source) for source in known if source.root]
        if known_only:
            scopes = [scope for scope in scopes if not scope.is_new]
        if not scopes:
            if not known_only and (paths or not self._store.has_chunks()):
                raise nothing_yet()
            return  # only libraries, whose vectors may still be missing
        missing: list[SourceError] = []
        try:
            for scope in scopes:
                if scope.is_new:
                    self._store.add_source(scope.source)
                try:
                    self._ingest_scope(scope, known)
                except SourceError as error:
                    if paths:
                        raise
                    missing.append(error)
                    self._upgrade([scope.source.name])
        finally:
            self.report.seconds = time.perf_counter() - self._started
        if missing:
            raise missing[0]

    def upgrade(self) -> None:
        """Parses the documents of all sources again that an older version has parsed."""
        self._upgrade([source.name for source in self._store.sources()])
        self.report.seconds = time.perf_counter() - self._started

    def text(self, text: str, title: str) -> None:
        source = Source(STDIN_SOURCE, "stdin", None)
        if STDIN_SOURCE not in {known.name for known in self._store.sources()}:
            self._store.add_source(source)
        known = self._store.known_files(STDIN_SOURCE).get(title)
        self.report.sources = [STDIN_SOURCE]
        self.report.scanned += 1
        data = text.encode("utf-8", "surrogatepass")
        state = FileState(len(data), None, sha256(data).hexdigest(), self._fingerprint(source, title))
        try:
            parse, _ = self._parsing(source, title, data)
            document = self._document(source, title, parse, state, _moment(time.time()))
        except ParseError as error:
            self.report.reject(title, error)
            if known is not None and not error.is_defect:
                self.report.removed = self._store.remove(STDIN_SOURCE, [title])
        else:
            if known is not None and (known.content_hash, known.fingerprint) == (state.content_hash, state.fingerprint):
                self.report.unchanged += 1
            else:
                self._group.append(_Waiting(document, known is None, 0.0))
                self._write_group()
        self._store.source_ingested(STDIN_SOURCE, None)
        self.report.seconds = time.perf_counter() - self._started

    def _upgrade(self, names: Sequence[str]) -> None:
        """Parses the documents of these sources again that other versions or settings have parsed, or whose storing was
        interrupted. What cannot be parsed again stays as it is.
        """
        for source in self._store.sources():
            if source.name in names:
                self._finish(self._begun_again(source), set())

    def _begun_again(self, source: Source) -> Iterator[_Begun]:
        with self._session.existing() as reading:
            stored = reading.content().stored(source.name)
        old = [path for path, each in stored.items() if each.state.fingerprint != self._fingerprint(source, path)]
        self.report.scanned += len(old)
        for number, path in enumerate(old):
            self._progress("file", source=source.name, path=path, done=number, total=len(old))
            begun = self._begin_stored(source, path, stored[path].key)
            if begun is None and source.root is not None:
                with suppress(OSError):  # the file is gone
                    root = Path(source.root)
                    file = on_disk.found_file(root / path if source.kind == "folder" else root, path)
                    begun = self._begin_file(source, file, stored[path].state, self._fingerprint(source, path), set())
            if begun is not None:
                yield begun

    def _begin_stored(self, source: Source, path: str, key: Key) -> _Begun | None:
        """Begins to parse the stored text of a document; None if that is not all of its file."""
        started = time.perf_counter()
        try:
            with self._session.existing() as reading:
                [stored] = reading.content().documents([key])
        except Corrupt:
            return None
        data = stored.parsed.text.encode("utf-8", "surrogatepass") if source.kind == "stdin" else original(stored)
        if data is None:
            return None
        state = stored.state._replace(
            content_hash=sha256(data).hexdigest(), fingerprint=self._fingerprint(source, path)
        )
        parse, elsewhere = self._parsing(source, path, data)
        document = partial(self._document, source, path, parse, state, stored.date)
        return _Begun(path, False, len(data), document, elsewhere, time.perf_counter() - started)

    def _fingerprint(self, source: Source, path: str) -> str:
        is_file = source.kind != "stdin"
        return self._fingerprint_of(self._parser_for(path).version if is_file else f"stdin {MarkdownParser.version}")

    def _parsing(self, source: Source, path: str, data: bytes) -> tuple[Callable[[], ParsedDocument], bool]:
        """A function that waits for the parser, which may have begun, and whether it runs in another process."""
        if source.kind == "stdin":
            text = data.decode("utf-8", "surrogatepass")
            return partial(parse_markdown, text, f"{path}.md", doc_type="note", format="stdin"), False
        parser = self._parser_for(path)
        # The name of the source comes first, because a README is called by its folder.
        named = f"{source.name}/{path}" if source.kind == "folder" else path
        if isinstance(parser, BackgroundParser):
            return parser.begin(data, named), True
        return partial(parser.parse, data, named), False

    def _ingest_scope(self, scope: Scope, known: Sequence[Source]) -> None:
        source = scope.source
        root = Path(source.root or "")
        self.report.sources.append(source.name)
        self._progress("scanning", source=source.name, path=source.root)
        if source.kind == "file":
            if not root.is_file():
                hint = "Its text stays searchable; restore it or remove the source."
                raise SourceError(f"The file {root} is not there.", hint=hint, path=str(root))
            scan = on_disk.FolderScan()
            file = on_disk.found_file(root, nfc(root.name))
            if on_disk.is_too_large(file.size, self._settings.ingest):
                scan.skips.append(on_disk.Skip(file.path, "too_large"))
            else:
                scan.files.append(file)
        else:
            others = [Path(other.root or "") for other in roots_below(source, known, "folder")]
            own = {str(path) for path in self._session.store.own_files()}
            scan = on_disk.scan_folder(root, self._settings.ingest, exclude=own, other_sources=others)
            self._absorb_lone_files(source, known, {file.absolute: file.path for file in scan.files})
        files = [file for file in scan.files if scope.holds(file.path)]
        for skip in scan.skips:
            if scope.lies_in(skip.path):  # the path to ingest is in a skipped folder
                self.report.skip(scope.below, skip.reason)
            elif scope.holds(skip.path):
                self.report.skip(skip.path, skip.reason)
        states = self._store.known_files(source.name)
        keep = self._take_files(source, files, states)
        gone = [path for path in states if path not in keep and scope.holds(path) and scan.covers(path)]
        self._progress("sweeping", source=source.name, total=len(gone))
        self.report.removed += self._store.remove(source.name, gone)
        for path in gone:
            self.report.did("removed", path)
        self._store.source_ingested(source.name, repository_of(root if source.kind == "folder" else root.parent))

    def _absorb_lone_files(self, folder: Source, known: Sequence[Source], files: dict[Path, str]) -> None:
        """Merges sources of single files that the scan of `folder` has found into the source `folder`."""
        for lone in roots_below(folder, known, "file"):
            path = files.get(Path(lone.root or ""))
            if path is not None:  # otherwise the scan has skipped the file, and its source stays
                self._store.absorb_source(lone.name, folder.name, path)
                self.report.absorbed.append(lone.name)

    def _take_files(
        self, source: Source, files: Sequence[on_disk.FoundFile], states: Mapping[str, FileState]
    ) -> set[str]:
        """Indexes new and changed files, and returns the paths that must stay in the index."""
        keep = {file.path for file in files}
        self.report.scanned += len(files)

        def new_or_changed() -> Iterator[_Begun]:
            for number, file in enumerate(files):
                self._progress("file", source=source.name, path=file.path, done=number, total=len(files))
                known = states.get(file.path)
                fingerprint = self._fingerprint(source, file.path)
                if known and (known.size, known.mtime_ns, known.fingerprint) == (file.size, file.mtime_ns, fingerprint):
                    self.report.unchanged += 1
                elif begun := self._begin_file(source, file, known, fingerprint, keep):
                    yield begun

        self._finish(new_or_changed(), keep)
        return keep

    def _finish(self, files: Iterable[_Begun], keep: set[str]) -> None:
        """Writes the documents in order. Parsers in other processes get several files in advance."""
        ahead: deque[_Begun] = deque()
        try:
            for begun in files:
                ahead.append(begun)
                while ahead and (
                    not ahead[0].elsewhere
                    or len(ahead) > _MOST_AHEAD
                    or sum(begun.size for begun in ahead) > _MOST_BYTES_AHEAD
                ):
                    self._finish_file(ahead.popleft(), keep)
            while ahead:
                self._finish_file(ahead.popleft(), keep)
        finally:  # also when interrupted between two files
            self._write_group()

    def _begin_file(
        self, source: Source, file: on_disk.FoundFile, known: FileState | None, fingerprint: str, keep: set[str]
    ) -> _Begun | None:
        """Reads the file, and begins to parse it if it has changed. A file that cannot be read now stays indexed."""
        started = time.perf_counter()
        try:
            settings = self._settings.ingest
            follow_link = settings.follow_links or source.kind == "file"
            read = on_disk.read_file(file.absolute, settings, follow_link=follow_link)
        except FileNotFoundError:  # deleted since the folder was scanned
            self.report.scanned -= 1
            keep.discard(file.path)
            return None
        except ParseError as error:
            self.report.reject(file.path, error)
            keep.discard(file.path)
            return None
        except OSError as error:
            self.report.fail(Failure(file.path, "unreadable", f"The file cannot be read: {error.strerror}."))
            return None
        if read is None:
            self.report.fail(Failure(file.path, "changing", "The file changed while it was read; run again later."))
            return None
        state = FileState(read.size, read.mtime_ns, sha256(read.data).hexdigest(), fingerprint)
        if known and (known.content_hash, known.fingerprint) == (state.content_hash, fingerprint):
            if (known.size, known.mtime_ns) != (state.size, state.mtime_ns):
                date = self._date_of_touched(source.name, file.path, known, read)
                self._store.touch(source.name, file.path, state, date)
            self.report.unchanged += 1
            return None
        parse, elsewhere = self._parsing(source, file.path, read.data)
        document = partial(self._document, source, file.path, parse, state, _moment(read.modified))
        return _Begun(file.path, known is None, read.size, document, elsewhere, time.perf_counter() - started)

    def _date_of_touched(self, source: str, path: str, known: FileState, read: on_disk.FileBytes) -> str:
        """Returns the date of a file whose time changed, not its content: the document's own, or else the new time."""
        date, modified = self._store.date_of(source, path), _moment(read.modified)
        if known.mtime_ns is not None:
            return modified if date == _moment(known.mtime_ns / 1e9) else date
        if date == modified or len(date) != len(modified):
            return date
        try:  # without a stored file time, only parsing tells whether the date came from the file's time
            return _date(self._parser_for(path).parse(read.data, path), path, modified)
        except ParseError:
            return date

    def _finish_file(self, begun: _Begun, keep: set[str]) -> None:
        started = time.perf_counter()
        try:
            document = begun.document()
        except ParseError as error:
            self.report.reject(begun.path, error)
            if not error.is_defect:
                keep.discard(begun.path)
            return
        now = time.perf_counter()
        self._group_since = self._group_since if self._group else now
        self._group.append(_Waiting(document, begun.is_new, begun.seconds + now - started))
        characters = sum(len(waiting.document.parsed.text) for waiting in self._group)
        if characters >= _GROUP_CHARACTERS or now - self._group_since >= _GROUP_SECONDS:
            self._write_group()

    def _document(
        self, source: Source, path: str, parse: Callable[[], ParsedDocument], state: FileState, modified: str
    ) -> IndexedDocument:
        parsed, chunks = chunked(parse, self._chunker)
        date, trust = _date(parsed, path, modified), parsed.trust_level or source.trust_level
        return IndexedDocument(source.name, path, state, parsed, chunks, self._chunker.version, date, trust)

    def _write_group(self) -> None:
        group, self._group = self._group, []
        if not group:
            return
        self.report.chunks += self._store.write(*(waiting.document for waiting in group))
        for document, is_new, seconds in group:
            self.report.added += is_new
            self.report.updated += not is_new
            self.report.did("added" if is_new else "updated", document.path)
            self.report.bytes += document.state.size
            self.report.took(document.path, seconds)
            self.report.warnings += [Failure(document.path, "parse", warning) for warning in document.parsed.warnings]
