"""The checks of `kb verify` and `kb doctor`.

`verify` compares every stored passage with its file (ok, moved, changed or gone), and checks the store itself. If a
file is missing, its source is searched for a file of the same content under another name. Each check of `kb doctor` has
a message, and a hint if something is wrong.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab._version import __version__
from kebab.config.loading import LOCAL_FOLDER, cache_folder, config_folder, data_folder
from kebab.config.settings import IngestSettings
from kebab.core.addresses import without_password
from kebab.core.citations import Citation, LineSpan, PageSpan, Span
from kebab.core.documents import PAGE_BREAK, stands_there
from kebab.core.errors import Corrupt, KebabError, ModelError, NotFound, ParseError, SourceError
from kebab.core.files import read_regular
from kebab.core.libraries import Library
from kebab.core.ports import ChunkContext
from kebab.core.records import NOT_CHECKED, Check, DocumentRecord, SourceRecord, incomplete_migration_checks
from kebab.core.text import LineTable, nfc
from kebab.parsing.registry import parser_for
from kebab.sources.folder import FoundFile, scan_folder

if TYPE_CHECKING:
    from kebab.core.search import SearchHit
    from kebab.core.store_ports import Catalog, Store
    from kebab.parsing.isolation import Parsers
    from kebab.session import Session

_MOST_LISTED = 1000


@dataclass(frozen=True)
class Difference:
    chunk_id: str
    citation: str
    source: str
    status: str
    """moved (in its file, or its file was renamed), changed, gone, unreadable, or corrupt (not in the stored text)."""
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
    """The checks of the store itself."""

    def add(self, difference: Difference) -> None:
        setattr(self, difference.status, getattr(self, difference.status) + 1)
        if len(self.differences) < _MOST_LISTED:
            self.differences.append(difference)

    @property
    def truncated(self) -> bool:
        """Whether `differences` lists only a part of the differences."""
        return self._different > len(self.differences)

    @property
    def whole(self) -> bool:
        return not self._different and self.sound

    @property
    def sound(self) -> bool:
        """Whether all checks of the store have passed. Changes of files do not count."""
        return all(check.ok for check in self.checks)

    @property
    def _different(self) -> int:
        return self.moved + self.changed + self.gone + self.unreadable + self.corrupt


def locate(source: SourceRecord, path: str) -> Path:
    """Returns the file of a document. Its stored path is in NFC; names on disk may have another Unicode form."""
    place = Path(source.root or "")
    if source.kind == "file":
        return place
    if (place / path).exists():
        return place / path
    for part in path.split("/"):
        names = [entry.name for entry in place.iterdir()] if place.is_dir() else []
        place /= next((name for name in names if nfc(name) == part), part)
    return place


def line_in_file(file: Path, hit: SearchHit, passage: Callable[[], str]) -> int | None:
    """Returns the line where the passage of a hit begins in its file now, or None if its format has no lines."""
    parser = parser_for(hit.doc_path)
    if not file.is_file():
        hint = "Bring the index up to date with: kb ingest"
        raise NotFound(f"{file} is gone since it was indexed.", hint=hint, path=str(file))
    if hit.citation.lines is None or not parser.keeps_lines:
        return None
    return line_now(parser.parse(read_regular(file), hit.doc_path).text, passage(), hit.citation.lines[0])


def line_now(text: str, passage: str, first: int) -> int:
    """Returns the line of `text` where a passage indexed at line `first` begins now, or about `first` if it is gone."""
    lines = LineTable(text)
    if first <= len(lines) and text.startswith(passage, lines.start_of(first)):
        return first
    found = text.find(passage)
    return lines.line_of(found) if found >= 0 else min(first, len(lines))


class _RenamedFiles:
    """Finds the new path of a missing file by its size and content. Scans a folder only when a file is missing."""

    def __init__(self, catalog: Catalog, sources: Collection[SourceRecord], settings: IngestSettings) -> None:
        self._catalog = catalog
        folders = [source for source in sources if source.kind == "folder"]
        self._folders = {source.name: Path(source.root) for source in folders if source.root}
        self._settings = settings
        self._files: dict[str, defaultdict[int, list[FoundFile]]] = {}
        self._hash = cache(_hash_of_file)

    def find(self, source: SourceRecord, document: DocumentRecord) -> str | None:
        """Returns the new path of a document's file, or None."""
        content = document.content_hash
        for file in self._files_of(source.name)[document.size] if source.name in self._folders else ():
            if self._hash(file.absolute) == content and (source.name, file.path, content) not in self._indexed:
                return file.path
        return None

    def _files_of(self, source: str) -> Mapping[int, list[FoundFile]]:
        """Returns the files of a source by size."""
        if source not in self._files:
            files = self._files[source] = defaultdict(list)
            others = [folder for name, folder in self._folders.items() if name != source]
            with suppress(SourceError):  # the whole folder is gone
                for file in scan_folder(self._folders[source], self._settings, other_sources=others).files:
                    files[file.size].append(file)
        return self._files[source]

    @cached_property
    def _indexed(self) -> set[tuple[str, str, str]]:
        """Source, path and content hash of all documents. An already indexed copy is not the missing file."""
        return {(document.source, document.path, document.content_hash) for document in self._catalog.all_documents()}


def _hash_of_file(file: Path) -> str | None:
    try:
        return sha256(read_regular(file)).hexdigest()
    except OSError:
        return None


class _Now(NamedTuple):
    """The current text and path of a document's file."""

    text: str | None
    """The text, or None if the file is gone or cannot be read."""
    path: str
    readable: bool = True


def verify(session: Session) -> VerifyReport:
    """Returns a report on the comparison of every stored passage with its file, and on the store."""
    report = VerifyReport()
    with session.reading(whole=True) as reading:
        if reading is None:
            return report
        with session.parsers() as parsers:
            _compare_files(report, reading.catalog, parsers, session.settings.ingest)
        migration = incomplete_migration_checks(reading, session.store.address, ok=False)
    report.checks = [*session.store.integrity(), *migration]
    if report.corrupt and report.sound:  # the integrity checks of some stores do not compare passages with texts
        message = f"{report.corrupt:,} passages are not in the stored texts of their documents"
        hint = "Restore a backup; or read them again with: kb source remove SOURCE, and kb ingest FOLDER"
        report.checks.append(Check("texts", False, message, hint))
    return report


def _compare_files(report: VerifyReport, catalog: Catalog, parsers: Parsers, settings: IngestSettings) -> None:
    roots = {source.name: source for source in catalog.sources()}
    renamed = _RenamedFiles(catalog, roots.values(), settings)
    for document in catalog.all_documents():
        report.documents += 1
        try:
            body, chunks = catalog.body(document.doc_id), catalog.chunks_of(document.doc_id)
        except (Corrupt, NotFound):
            report.add(Difference(document.doc_id, document.path, document.source, "corrupt"))
            continue
        lines = LineTable(body)
        now = _now(roots.get(document.source), document, body, parsers, renamed)
        for chunk in chunks:
            _judge(report, chunk, body, lines, now)


def _now(
    source: SourceRecord | None, document: DocumentRecord, body: str, parsers: Parsers, renamed: _RenamedFiles
) -> _Now:
    """Returns the current text of a document; the stored text if it has no file or its file is unchanged."""
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
        return _Now(parsers.of(document.path).parse(data, document.path).text, document.path)
    except ParseError:
        return _Now("", document.path)


def _judge(report: VerifyReport, chunk: ChunkContext, body: str, lines: LineTable, now: _Now) -> None:
    current = now.text
    now_at = None
    if not stands_there(chunk.text, chunk.start_offset, chunk.end_offset, chunk.spans[0], body, lines):
        status = "corrupt"
    elif current is None:
        status = "gone" if now.readable else "unreadable"
    elif now.path != chunk.doc_path:
        status, now_at = "moved", chunk.citation._replace(path=now.path).uri
    elif current is body or current[chunk.start_offset : chunk.end_offset] == chunk.text:
        report.ok += 1
        return
    elif (found := current.find(chunk.text)) < 0:
        status = "changed"
    else:
        span: Span = LineSpan(*LineTable(current).lines_of(found, found + len(chunk.text)))
        if isinstance(chunk.spans[0], PageSpan):
            span = PageSpan(current.count(PAGE_BREAK, 0, found) + 1)
        status, now_at = "moved", Citation(chunk.doc_path, span).uri
    report.add(Difference(chunk.chunk_id, chunk.citation.uri, chunk.source, status, now_at))


# --- kb doctor


_LITTLE_SPACE = 200_000_000
_GO_ON = "The rest is found by words only. Go on with: kb ingest"
"""The hint for missing vectors. These do not fail the check, because a run may be interrupted at any time."""


def health(session: Session) -> list[Check]:
    """Returns all checks. If one of the store, disk or privacy fails, skips most of the others."""
    store, settings = session.store, session.settings
    python = ".".join(map(str, sys.version_info[:3]))
    checks = [Check("program", True, f"Kebab {__version__}, Python {python}, {store.engine}")]
    checks += [_disk_check(store.file)] if store.file else []
    checks += [*store.health(), _privacy_check(_own_places(store))]
    if not all(check.ok for check in checks):
        with suppress(KebabError), store.reading() as reading:  # a failed check already gives the reason
            checks += incomplete_migration_checks(reading, store.address, ok=True)
        return checks
    with store.reading() as reading:
        checks += _stored_password_checks(reading.libraries().libraries() if reading else ())
        migration = incomplete_migration_checks(reading, store.address, ok=True)
        sources = reading.catalog.sources() if reading else []
    checks += migration or [_vector_check(session)]  # the rest of the migration brings the missing vectors
    if settings.embedding.model.strip() == "bundled":
        checks.append(model_check(*session.bundled_model_faults()))
    return [*checks, *(_source_check(source, source.root) for source in sources if source.root is not None)]


def _own_places(store: Store) -> set[Path]:
    """Returns the files and folders that Kebab creates, without a folder that the user chose with --db."""
    folders = {config_folder(), data_folder(), cache_folder()}
    if store.file is not None and store.file.parent.name == LOCAL_FOLDER:
        folders.add(store.file.parent)
    return {path.resolve() for path in (*folders, config_folder() / "config.toml", *store.own_files())}


def _vector_check(session: Session) -> Check:
    try:
        models = session.models
    except ModelError as error:
        return Check("vectors", False, error.message, error.hint)
    if models is None:
        return Check("vectors", True, "turned off (embedding.model is none): search is lexical")
    names = ", ".join(embedder.name for embedder in models.embedders)
    with session.reading() as reading:
        if reading is None:
            return Check("vectors", True, f"none yet; {names}")
        coverage = reading.vector_coverage(models)
    if coverage.other_models and not coverage.any:
        message = f"made by {', '.join(coverage.other_models)}; embedding.model stands for {names}"
        return Check("vectors", False, message, "kb index --rebuild-vectors")
    if coverage.missing:
        message = f"{coverage.embedded:,} of {coverage.chunks:,} chunks have a vector of {names}"
    elif coverage.chunks is not None:
        message = "not everything has been embedded yet that the settings ask for"
    else:
        return Check("vectors", True, f"every chunk that the model takes has a vector of {names}")
    return Check("vectors", True, message, _GO_ON)


def _disk_check(path: Path) -> Check:
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return Check("disk", True, f"{NOT_CHECKED}: it is read-only")
    free = shutil.disk_usage(folder).free
    hint = "Free some space: ingest needs room for its index."
    return Check.judged("disk", free >= _LITTLE_SPACE, f"{free / 1e9:.1f} GB free", hint)


def _privacy_check(paths: Iterable[Path]) -> Check:
    """Checks that other users of this machine cannot open the files. The hint is a command that prevents it."""
    may_change = [path for path in sorted(paths) if os.access(path, os.W_OK)]
    too_open = [path for path in may_change if path.stat().st_mode & 0o077]
    if not too_open:
        return Check("privacy", True, "only you can open what Kebab keeps here")
    names = " ".join(shlex.quote(str(path)) for path in too_open)
    return Check("privacy", True, "others on this machine may open what Kebab keeps here", f"chmod go-rwx {names}")


def _stored_password_checks(libraries: Iterable[Library]) -> list[Check]:
    """Returns a check for each library whose stored address contains a password, as older versions stored it."""
    found = [library.library_id for library in libraries if without_password(library.origin) != library.origin]
    message = "the address that {} was added from is stored with its password; the next refresh stores it without"
    return [Check("password", True, message.format(name), f"kb lib refresh {name}") for name in found]


def model_check(fault: ModelError | None, damaged: Sequence[Path]) -> Check:
    """Checks the bundled models. `fault`: error of the installed weights. `damaged`: changed models in the cache."""
    if fault is not None:
        return Check("models", False, fault.message, fault.hint)
    names = ", ".join(map(str, damaged))
    message = f"changed since they were made: {names}" if damaged else "as they were published"
    return Check.judged("models", not damaged, message, f"Delete {names}: what is needed is made anew.")


def _source_check(source: SourceRecord, root: str) -> Check:
    if Path(root).exists():
        return Check(f"source {source.name}", True, f"{source.documents} documents from {root}")
    hint = f"Mount its disk or restore the folder; or forget what came from it with: kb source remove {source.name}"
    return Check(f"source {source.name}", False, f"{root} is not there", hint)
