"""Ingest, step by step: find the files, leave alone what is known, read, parse, chunk, write, drop what is gone.

Documents are written in small groups, each group one transaction: it can be stopped anywhere and run again. A file that
cannot be taken in is an entry in the report; only what stops the whole run (no space, no permission, a missing folder)
is an exception.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kebab.config.settings import Settings
from kebab.core.documents import ParsedDocument, Source, bounded, date_in_name, document_id
from kebab.core.errors import Corrupt, NotFound, ParseError, SourceError, UsageError, only_parse_errors
from kebab.core.ports import BackgroundParser, Chunker, FileState, IndexedDocument, Parser, Progress
from kebab.core.text import nfc
from kebab.ingest.fingerprint import Fingerprints
from kebab.ingest.report import Failure, IngestReport, quiet
from kebab.ingest.source_names import Scope, resolve, roots_below

if TYPE_CHECKING:
    from kebab.core.store_ports import DocumentStore

STDIN_SOURCE = "stdin"

# What is written together: enough that the text index is not rewritten for every file, little enough that nobody waits
# for it.
_GROUP_CHARACTERS = 1 << 19
_GROUP_SECONDS = 0.5
# What may have been read and not been written yet.
_MOST_AHEAD = 16
_MOST_BYTES_AHEAD = 1 << 25
_FIRST_MOMENT = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


class FoundFile(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def absolute(self) -> Path: ...
    @property
    def size(self) -> int: ...
    @property
    def mtime_ns(self) -> int: ...


class FileBytes(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def modified(self) -> float: ...


class _Begun(NamedTuple):
    """A file that was read and whose parser may be at work."""

    path: str
    is_new: bool
    state: FileState
    modified: float
    parsed: Callable[[], ParsedDocument]
    """Waits for the parser, and raises what it raises."""
    elsewhere: bool
    """Whether the parser is at work meanwhile."""
    seconds: float
    """What reading it took."""


def _is_enough(ahead: Collection[_Begun]) -> bool:
    return len(ahead) > _MOST_AHEAD or sum(begun.state.size for begun in ahead) > _MOST_BYTES_AHEAD


class _Waiting(NamedTuple):
    """A document that is ready to be written."""

    document: IndexedDocument
    is_new: bool
    seconds: float
    """What reading it took."""


class _Group:
    """Documents that will be written together."""

    def __init__(self) -> None:
        self.members: list[_Waiting] = []
        self._characters = 0
        self._since = 0.0

    def add(self, document: IndexedDocument, *, is_new: bool, seconds: float) -> None:
        if not self.members:
            self._since = time.perf_counter()
        self.members.append(_Waiting(document, is_new, seconds))
        self._characters += len(document.parsed.text)

    @property
    def is_full(self) -> bool:
        return self._characters >= _GROUP_CHARACTERS or time.perf_counter() - self._since >= _GROUP_SECONDS


def _date(parsed: ParsedDocument, path: str, modified: float) -> str:
    return parsed.date or date_in_name(path) or _moment(modified)


def _moment(time_of_file: float) -> str:
    """As ISO in UTC; a file system may hold times beyond the years that a date can have."""
    within = min(max(time_of_file, _FIRST_MOMENT), _LAST_MOMENT)
    return datetime.fromtimestamp(within, UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def nothing_yet() -> UsageError:
    return UsageError("There is nothing to ingest yet.", hint="Name a folder: kb ingest ~/notes")


class Ingest:
    """One run. `report` is true at every moment, so that an interrupted run can say how far it came."""

    def __init__(
        self,
        store: DocumentStore,
        settings: Settings,
        chunker: Chunker,
        parser_for: Callable[[str], Parser],
        *,
        own_files: Collection[Path] = (),
        progress: Progress | None = None,
    ) -> None:
        self.report = IngestReport()
        self._store = store
        self._settings = settings
        self._chunker = chunker
        self._parser_for = parser_for
        self._own_files = own_files
        self._progress: Progress = progress or quiet
        self._started = time.perf_counter()
        self._fingerprints = Fingerprints(settings, chunker.version)
        self._group = _Group()
        self._begun: tuple[_Group, Callable[[], int]] | None = None
        """What is being written, and how to wait for that."""

    def run(self, paths: Sequence[Path], name: str | None = None, *, known_only: bool = False) -> IngestReport:
        """Without paths, every source that is known. A remembered folder that is missing fails the run, at its end.
        `known_only`: a path that belongs to no source is left alone.
        """
        known = self._store.sources()
        scopes = resolve(paths, known, name) if paths else [Scope(source) for source in known if source.root]
        if known_only:
            scopes = [scope for scope in scopes if not scope.is_new]
        if not scopes:
            if known_only:
                return self.report
            if paths or not self._store.has_chunks():
                raise nothing_yet()
            return self.report  # documentation of libraries, whose vectors are still to be made
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
        finally:
            self.report.seconds = time.perf_counter() - self._started
        if missing:
            raise missing[0]
        return self.report

    def run_text(self, text: str, title: str) -> IngestReport:
        """One document that is nowhere on disk."""
        if STDIN_SOURCE not in {source.name for source in self._store.sources()}:
            self._store.add_source(Source(STDIN_SOURCE, "stdin", None))
        known = self._store.known_files(STDIN_SOURCE).get(title)
        self.report.sources = [STDIN_SOURCE]
        self.report.scanned += 1
        try:
            document = self._told(text, title)
        except ParseError as error:
            self.report.reject(title, error)
            if known is not None and not error.is_defect:
                self.report.removed = self._store.remove(STDIN_SOURCE, [title])
        else:
            state = document.state
            if known is not None and (known.content_hash, known.fingerprint) == (state.content_hash, state.fingerprint):
                self.report.unchanged += 1
            else:
                self._group.add(document, is_new=known is None, seconds=0.0)
                self._write_group()
                self._finish_group()
        self._store.source_ingested(STDIN_SOURCE, None)
        self.report.seconds = time.perf_counter() - self._started
        return self.report

    def read_stored_texts(self, stored: Callable[[str], str]) -> None:
        """Texts that are nowhere on disk, and that a store could not write to their end: what is `stored` of them is
        read again.
        """
        if STDIN_SOURCE not in {source.name for source in self._store.sources()}:
            return
        for title, state in self._store.known_files(STDIN_SOURCE).items():
            if not state.content_hash:
                try:
                    self._store.write(self._told(stored(document_id(STDIN_SOURCE, title)), title))
                except (Corrupt, NotFound):
                    pass
                except ParseError as error:
                    self.report.scanned += 1
                    self.report.reject(title, error)

    def _told(self, text: str, title: str) -> IndexedDocument:
        from kebab.parsing.markdown import parse_markdown

        data = text.encode("utf-8", "surrogatepass")
        state = FileState(len(data), None, sha256(data).hexdigest(), self._fingerprints.of("stdin"))
        parse = partial(parse_markdown, text, title, doc_type="note", format="stdin")
        return self._document(STDIN_SOURCE, title, parse, state, time.time(), "primary")

    def _ingest_scope(self, scope: Scope, known: Sequence[Source]) -> None:
        from kebab.sources.folder import FolderScan, Skip, found_file, is_too_large, scan_folder
        from kebab.sources.git_repository import repository_of

        source = scope.source
        root = Path(source.root or "")
        self.report.sources.append(source.name)
        self._progress("scanning", source=source.name, path=source.root)
        if source.kind == "file":
            if not root.is_file():
                raise SourceError(
                    f"The file {root} is not there.",
                    hint="Its text stays searchable; restore it or remove the source.",
                    path=str(root),
                )
            scan = FolderScan()
            file = found_file(root, nfc(root.name))
            if is_too_large(file.size, self._settings.ingest):
                scan.skips.append(Skip(file.path, "too_large"))
            else:
                scan.files.append(file)
        else:
            others = [Path(other.root or "") for other in roots_below(source, known, "folder")]
            scan = scan_folder(
                root, self._settings.ingest, exclude={str(path) for path in self._own_files}, other_sources=others
            )
            self._absorb_lone_files(source, known, {file.absolute: file.path for file in scan.files})
        files = [file for file in scan.files if scope.holds(file.path)]
        for skip in scan.skips:
            if scope.holds(skip.path) or scope.lies_in(
                skip.path
            ):  # also what was named, and is in a folder that is left out
                self.report.skip(scope.below if scope.lies_in(skip.path) else skip.path, skip.reason)
        states = self._store.known_files(source.name)
        keep = self._take_files(source, files, states)
        gone = [path for path in states if path not in keep and scope.holds(path) and scan.covers(path)]
        self._progress("sweeping", source=source.name, total=len(gone))
        self.report.removed += self._store.remove(source.name, gone)
        for path in gone:
            self.report.did("removed", path)
        self._store.source_ingested(source.name, repository_of(root if source.kind == "folder" else root.parent))

    def _absorb_lone_files(self, folder: Source, known: Sequence[Source], files: dict[Path, str]) -> None:
        """A file that was ingested alone and now comes with its folder is found once, in the folder."""
        for lone in roots_below(folder, known, "file"):
            path = files.get(Path(lone.root or ""))
            if path is None:
                continue  # the folder hides it, so it stays by itself
            self._store.absorb_source(lone.name, folder.name, path)
            self.report.absorbed.append(lone.name)

    def _take_files(self, source: Source, files: Sequence[FoundFile], states: Mapping[str, FileState]) -> set[str]:
        """The paths that must stay in the index. Parsers in processes of their own are given files ahead; all is
        written in order.
        """
        keep: set[str] = set()
        ahead: deque[_Begun] = deque()
        self.report.scanned += len(files)
        try:
            for number, file in enumerate(files):
                self._progress("file", source=source.name, path=file.path, done=number, total=len(files))
                known = states.get(file.path)
                fingerprint = self._fingerprints.of(self._parser_for(file.path).version)
                if known and (known.size, known.mtime_ns, known.fingerprint) == (file.size, file.mtime_ns, fingerprint):
                    self.report.unchanged += 1
                    keep.add(file.path)
                elif begun := self._begin_file(source, file, known, fingerprint, keep):
                    ahead.append(begun)
                while ahead and (_is_enough(ahead) or not ahead[0].elsewhere):
                    self._finish_file(source, ahead.popleft(), keep)
            while ahead:
                self._finish_file(source, ahead.popleft(), keep)
        finally:  # also when interrupted between two files
            self._write_group()
            self._finish_group()
        return keep

    def _begin_file(
        self, source: Source, file: FoundFile, known: FileState | None, fingerprint: str, keep: set[str]
    ) -> _Begun | None:
        """Reads the file and begins to parse it, if it has changed. What cannot be read just now stays as it was."""
        from kebab.sources.folder import read_file

        started = time.perf_counter()
        try:
            settings = self._settings.ingest
            read = read_file(file.absolute, settings, follow_link=settings.follow_links or source.kind == "file")
        except FileNotFoundError:  # gone since the folder was looked at
            self.report.scanned -= 1
            return None
        except ParseError as error:
            self.report.reject(file.path, error)
            return None
        except OSError as error:
            self.report.fail(Failure(file.path, "unreadable", f"The file cannot be read: {error.strerror}."))
            keep.add(file.path)
            return None
        if read is None:
            self.report.fail(Failure(file.path, "changing", "The file changed while it was read; run again later."))
            keep.add(file.path)
            return None
        state = FileState(read.size, read.mtime_ns, sha256(read.data).hexdigest(), fingerprint)
        if known and (known.content_hash, known.fingerprint) == (state.content_hash, fingerprint):
            if (known.size, known.mtime_ns) != (state.size, state.mtime_ns):
                self._store.touch(
                    source.name, file.path, state, self._date_of_touched(source.name, file.path, known, read)
                )
            self.report.unchanged += 1
            keep.add(file.path)
            return None
        parser = self._parser_for(file.path)
        if elsewhere := isinstance(parser, BackgroundParser):
            parsed = parser.begin(read.data, file.path)
        else:
            parsed = partial(parser.parse, read.data, file.path)
        return _Begun(file.path, known is None, state, read.modified, parsed, elsewhere, time.perf_counter() - started)

    def _date_of_touched(self, source: str, path: str, known: FileState, read: FileBytes) -> str:
        """The date an ingest from scratch would give it: its own, or else the new time of the file."""
        date, modified = self._store.date_of(source, path), _moment(read.modified)
        if known.mtime_ns is not None:
            return modified if date == _moment(known.mtime_ns / 1e9) else date
        if date == modified or len(date) != len(modified):
            return date
        try:  # nobody remembers whether that was the file's time
            return _date(self._parser_for(path).parse(read.data, path), path, read.modified)
        except ParseError:
            return date

    def _finish_file(self, source: Source, begun: _Begun, keep: set[str]) -> None:
        started = time.perf_counter()
        try:
            document = self._document(
                source.name, begun.path, begun.parsed, begun.state, begun.modified, source.trust_level
            )
        except ParseError as error:
            self.report.reject(begun.path, error)
            if error.is_defect:
                keep.add(begun.path)
            return
        keep.add(begun.path)
        self._group.add(document, is_new=begun.is_new, seconds=begun.seconds + time.perf_counter() - started)
        if self._group.is_full:
            self._write_group()

    def _document(
        self, source: str, path: str, parse: Callable[[], ParsedDocument], state: FileState, modified: float, trust: str
    ) -> IndexedDocument:
        """ParseError, and nothing else, when there is none."""
        with only_parse_errors():
            parsed = bounded(parse())
            chunks = self._chunker.chunk(parsed)
        if not chunks:
            raise ParseError("There is no text in it.", reason="empty")
        return IndexedDocument(
            source=source,
            path=path,
            state=state,
            parsed=parsed,
            chunks=chunks,
            chunker_version=self._chunker.version,
            date=_date(parsed, path, modified),
            trust_level=parsed.trust_level or trust,
        )

    def _write_group(self) -> None:
        """Where the store is elsewhere, the next files are read meanwhile."""
        group, self._group = self._group, _Group()
        if group.members:
            written = self._store.begin(*(member.document for member in group.members))
            self._finish_group()
            self._begun = group, written

    def _finish_group(self) -> None:
        """The report counts what is written, not what is about to be."""
        if self._begun is None:
            return
        (group, written), self._begun = self._begun, None
        self.report.chunks += written()
        for document, is_new, seconds in group.members:
            self.report.added += is_new
            self.report.updated += not is_new
            self.report.did("added" if is_new else "updated", document.path)
            self.report.bytes += document.state.size
            self.report.took(document.path, seconds)
            self.report.warnings += [Failure(document.path, "parse", warning) for warning in document.parsed.warnings]
