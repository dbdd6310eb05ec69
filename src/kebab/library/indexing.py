"""The files of one state of a library → documents of the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from kebab.config.settings import Settings
from kebab.core.documents import bounded, document_id
from kebab.core.errors import NothingIndexable, ParseError, only_parse_errors
from kebab.core.ports import Chunker, FileReader, FileState, FileTree, IndexedDocument, Parser, Progress, TreeFile
from kebab.ingest.fingerprint import Fingerprints
from kebab.ingest.report import Failure, IngestReport, quiet
from kebab.library.documentation_files import documentation_files
from kebab.library.snippet_parts import is_llms_txt
from kebab.library.steering import FILES, Steering, read_llms_txt, read_steering
from kebab.library.version_writer import VersionMaker, WantedFile

if TYPE_CHECKING:
    from kebab.core.library_ports import LibraryWriter
    from kebab.core.store_ports import DocumentStore

_MOST_STEERING = 1 << 20
_CODE = frozenset(
    ".py .js .mjs .ts .tsx .go .rs .java .kt .c .h .cc .cpp .hpp .cs .rb .php .swift .sh .sql .scala .lua".split()
)


def steering_of(tree: FileTree, files: Sequence[TreeFile], report: IngestReport) -> Steering:
    """What the library says of itself; the first of the files it may say it in."""
    by_path = {file.path: file for file in files}
    with tree.reading() as reader:
        for name in FILES:
            if name not in by_path:
                continue
            found = read_steering(reader.read(by_path[name])) if by_path[name].size <= _MOST_STEERING else None
            if found is not None:
                return found
            report.warnings.append(Failure(name, "parse", "it is no JSON object, so what it says is not known"))
        if len(by_path) == 1 and is_llms_txt(next(iter(by_path))):
            return read_llms_txt(reader.read(next(iter(by_path.values()))))
    return Steering()


class LibraryIndexing:
    def __init__(
        self,
        libraries: LibraryWriter,
        documents: DocumentStore,
        settings: Settings,
        chunker: Chunker,
        parser_for: Callable[[str], Parser],
        progress: Progress | None = None,
    ) -> None:
        self.report = IngestReport()
        self._maker = VersionMaker(libraries, documents, self.report, progress or quiet)
        self._most_bytes = settings.ingest.max_file_mb * 2**20
        self._chunker = chunker
        self._parser_for = parser_for
        self._fingerprints = Fingerprints(settings, chunker.version)

    def run(
        self, library_id: str, tag: str | None, tree: FileTree, listed: Sequence[TreeFile], steering: Steering
    ) -> int:
        """How many snippets it has. NothingIndexable if there is nothing to index."""
        started = time.perf_counter()
        files = {file.path: file for file in documentation_files(listed, steering, is_code=_CODE)}
        self.report.sources = [library_id]
        if not files:
            raise NothingIndexable(
                f"{library_id} has no documentation and no source code.",
                hint=f"Look at folders and excludeFolders in its kebab.json, if it has one; or forget it: kb lib remove {library_id}",
            )
        wanted = [WantedFile(file.path, file.key, self._fingerprint(file.path)) for file in files.values()]
        with tree.reading() as reader:
            snippets = self._maker.make(
                library_id,
                tag,
                tree.commit,
                wanted,
                lambda file, source: self._document(library_id, source, files[file.path], reader, file.fingerprint),
            )
        self.report.seconds = time.perf_counter() - started
        return snippets

    def _document(
        self, library_id: str, source: str, file: TreeFile, reader: FileReader, fingerprint: str
    ) -> IndexedDocument | None:
        if file.size > self._most_bytes:
            self.report.skip_scanned(file.path, "too_large")
            return None
        data = reader.read(file)
        try:
            with only_parse_errors():
                parsed = bounded(self._parser_for(_read_as(file.path)).parse(data, file.path))
                chunks = self._chunker.chunk(parsed)
        except ParseError as error:
            self.report.reject(file.path, error)
            return None
        if not chunks:
            self.report.skip_scanned(file.path, "empty")
            return None
        content = sha256(data).hexdigest()
        return IndexedDocument(
            source=source,
            path=file.path,
            state=FileState(len(data), None, content, fingerprint),
            parsed=parsed,
            chunks=chunks,
            chunker_version=self._chunker.version,
            date=parsed.date or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            trust_level="secondary",
            doc_id=library_document_id(library_id, file.path, content),
        )

    def _fingerprint(self, path: str) -> str:
        return self._fingerprints.of(self._parser_for(_read_as(path)).version)


def library_document_id(library_id: str, path: str, content: str) -> str:
    """The same in every version that has these very bytes in this place."""
    return document_id(library_id, f"{path}\0{content}")


def _read_as(path: str) -> str:
    return f"{path}.md" if is_llms_txt(path) else path
