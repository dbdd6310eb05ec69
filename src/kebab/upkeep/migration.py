"""All of a store carried into another one: `kb migrate`.

Nothing is read, cut, analysed for its language or embedded again: documents come as they were stored, and vectors as
they were made. The target remembers where it is filled from until a comparison of both has found no difference; stopped
anywhere, the same command goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from kebab.core.documents import Source
from kebab.core.errors import ModelMissing, NotEmpty, NotFound, UsageError
from kebab.core.incomplete_migration import refuse_half_copied_origin
from kebab.core.libraries import Library, LibraryVersion, VectorSpace, VersionDocument
from kebab.core.ports import ChunkVector, EmbeddingKind, IndexedDocument, Key, NewVector, PendingChunk, Progress
from kebab.ingest.report import IngestReport, quiet
from kebab.library.version_writer import VersionMaker, WantedFile
from kebab.upkeep.migration_check import MigrationCounts, compare

if TYPE_CHECKING:
    from kebab.core.records import SourceRecord
    from kebab.core.store_ports import ContentReader, DocumentStore, NoteStore, Reading, Store, VectorWriter, Writing

_PURPOSE = "kb migrate"
_DOCUMENTS_AT_ONCE = 50
_GROUP_CHARACTERS = 500_000
"""Written together, about."""
_CHUNKS_AT_ONCE = 500
"""Given their vectors together."""


@dataclass
class MigrationReport:
    origin: str
    target: str
    resumed: bool = False
    """Whether an earlier run was interrupted."""
    documents: int = 0
    vectors: int = 0
    """How many this run has carried."""
    counts: MigrationCounts | None = None
    """Of both sides, once they were found the same."""
    compared: int = 0
    """Documents that were compared word by word."""
    seconds: float = 0.0


class Migration:
    def __init__(self, origin: Store, target: Store, korean_analysis: str, progress: Progress | None = None) -> None:
        """`korean_analysis`: for an origin in which nothing has been indexed yet."""
        self._origin = origin
        self._target = target
        self._korean_analysis = korean_analysis
        self._progress: Progress = progress or quiet
        self.report = MigrationReport(_place(origin), _place(target))

    def run(self) -> MigrationReport:
        started = time.perf_counter()
        try:
            self._run()
        finally:
            self.report.seconds = time.perf_counter() - started
        return self.report

    def _run(self) -> None:
        if self.report.origin == self.report.target:
            raise UsageError(
                f"{self.report.origin} cannot be carried into itself.", hint="Name another place with --to."
            )
        with self._origin.reading(whole=True) as origin:
            if origin is None:
                raise NotFound("There is nothing to carry over yet.", hint="Begin with: kb ingest FOLDER")
            refuse_half_copied_origin(origin, self.report.origin)
            with self._target.writing(_PURPOSE) as writing:
                self._admit(origin, writing)
                writing.remember_migration(self.report.origin)
                self._carry(origin, writing)
            with self._target.reading(whole=True) as target:
                assert target is not None  # it has just been written
                self.report.counts, self.report.compared = compare(origin, target, self.report.target, self._progress)
        with self._target.writing(_PURPOSE) as writing:
            writing.remember_migration(None)

    def _admit(self, origin: Reading, writing: Writing) -> None:
        """Only what is empty, or was filled from the same place until it was interrupted."""
        with self._target.reading() as target:
            assert target is not None  # whoever writes makes it
            sources = {source.name for source in target.catalog.sources()}
            libraries = {library.library_id for library in target.libraries().libraries()}
            before = target.migrating_from()
        place = self.report.target
        if before is None and (sources or libraries or writing.documents(self._korean_analysis).has_chunks()):
            raise NotEmpty(
                f"{place} holds a knowledge base already.",
                hint=f"Name another place with --to, or empty it with: kb --db {place} reset",
            )
        if before not in (None, self.report.origin):
            raise NotEmpty(
                f"{place} is being filled from {before}, and that is not finished.",
                hint=f"Finish it with: kb migrate --from {before} --to {place}; or empty it with: kb --db {place} reset",
            )
        sources -= {source.name for source in origin.catalog.sources()}
        libraries -= {library.library_id for library in origin.libraries().libraries()}
        if sources or libraries:
            raise NotEmpty(
                f"{place} has what {self.report.origin} has not: {', '.join(sorted(sources | libraries))}.",
                hint=f"Remove it there, or begin anew after: kb --db {place} reset",
            )
        self.report.resumed = before is not None

    def _carry(self, origin: Reading, writing: Writing) -> None:
        korean = origin.korean_analysis() or self._korean_analysis
        content, vectors = origin.content(), writing.vectors()
        writing.settle_analysis(korean)
        vectors.prepare(content.spaces())
        documents, notes = writing.documents(korean), writing.notes(korean)
        known = {source.name for source in documents.sources()}
        for source in origin.catalog.sources():
            if source.name not in known:
                documents.add_source(Source(source.name, cast("Any", source.kind), source.root, source.trust_level))
            _carry_notes(source, notes)  # before the documents, which then get their words at once
            self._carry_documents(source, content, documents)
            if source.ingested_at is not None:
                documents.source_ingested(source.name, source.repository, source.ingested_at)
        self._carry_libraries(origin, content, writing, korean)
        self._carry_vectors(content, vectors)
        vectors.remember_complete(content.complete_vectors())

    # --- documents

    def _carry_documents(self, source: SourceRecord, content: ContentReader, documents: DocumentStore) -> None:
        stored, there = content.stored(source.name), documents.known_files(source.name)
        documents.remove(source.name, sorted(there.keys() - stored.keys()))
        wanted = [document.key for path, document in stored.items() if there.get(path) != document.state]
        done = 0
        for some in _groups(content, wanted):
            self._progress("file", source=source.name, path=some[0].path, done=done, total=len(wanted))
            documents.write(*(document._replace(source=source.name) for document in some))
            done += len(some)
            self.report.documents += len(some)

    # --- libraries

    def _carry_libraries(self, origin: Reading, content: ContentReader, writing: Writing, korean: str) -> None:
        with self._target.reading() as target:
            assert target is not None
            there = {
                (library.library_id, version.name): version
                for library in target.libraries().libraries()
                for version in library.versions
            }
        writer, documents = writing.libraries(), writing.documents(korean, for_libraries=True)
        for library in origin.libraries().libraries():
            writer.describe(library)
            entries = origin.library_reader(library.library_id).version_documents()
            for version in library.versions:
                if version.indexed_at is not None and not _is_same(
                    there.get((library.library_id, version.name)), version
                ):
                    report = IngestReport()
                    maker = VersionMaker(writer, documents, report, self._progress)
                    self._carry_version(
                        library, version, [entry for entry in entries if entry.tag == version.name], content, maker
                    )
                    self.report.documents += report.added
                if version.error is not None:
                    writer.fail(library.library_id, version.name, version.error)
                elif version.indexed_at is None:
                    writer.begin(library.library_id, version.name, version.commit)

    def _carry_version(
        self,
        library: Library,
        version: LibraryVersion,
        entries: Sequence[VersionDocument],
        content: ContentReader,
        maker: VersionMaker,
    ) -> None:
        by_path = {entry.path: entry for entry in entries}
        ahead = _ReadAhead(content, [(entry.doc_id, entry.document) for entry in entries])

        def document_of(file: WantedFile, source: str) -> IndexedDocument | None:
            document = ahead.document(by_path[file.path].doc_id)
            return document and document._replace(source=source)

        wanted = [WantedFile(entry.path, entry.file_key, entry.fingerprint) for entry in entries]
        maker.make(library.library_id, version.name, version.commit, wanted, document_of, version.indexed_at)

    # --- vectors

    def _carry_vectors(self, content: ContentReader, writer: VectorWriter) -> None:
        """Chunks that have none yet are asked for, so that a later run goes on where this one was stopped."""
        for space in content.spaces():
            model = _Model(space)
            total, done, after = writer.count_pending_in(model), 0, None
            while chunks := writer.pending_in(model, after=after, limit=_CHUNKS_AT_ONCE):
                self._progress("vectors", path=space.model, done=done, total=total)
                after = chunks[-1].key
                found = content.vectors_of(space, [chunk.chunk_id for chunk in chunks])
                for home in (False, True):
                    writer.add(model, _of_chunks(chunks, found, home), home=home)
                done += len(chunks)
                self.report.vectors += len(found)


def _place(store: Store) -> str:
    """The same from wherever it is named."""
    return store.address if store.file is None else str(store.file.resolve())


def _carry_notes(source: SourceRecord, notes: NoteStore) -> None:
    there = notes.notes(source.name)
    for note in there:
        if note.folder not in {wanted.folder for wanted in source.notes}:
            notes.remove(source.name, note)
    for note in source.notes:
        if note not in there:
            notes.put(source.name, note)


def _groups(content: ContentReader, keys: Sequence[Key]) -> Iterator[list[IndexedDocument]]:
    """What is written together."""
    waiting: list[IndexedDocument] = []
    characters = 0
    for start in range(0, len(keys), _DOCUMENTS_AT_ONCE):
        for document in content.documents(keys[start : start + _DOCUMENTS_AT_ONCE]):
            waiting.append(document)
            characters += len(document.parsed.text)
            if characters > _GROUP_CHARACTERS or len(waiting) == _DOCUMENTS_AT_ONCE:
                yield waiting
                waiting, characters = [], 0
    if waiting:
        yield waiting


class _ReadAhead:
    """Documents one by one for whoever takes them about in their order, read several at a time."""

    def __init__(self, content: ContentReader, documents: Sequence[tuple[str, Key]]) -> None:
        self._content = content
        self._documents = documents
        self._places = {doc_id: place for place, (doc_id, _) in enumerate(documents)}
        self._ready: dict[str | None, IndexedDocument] = {}

    def document(self, doc_id: str) -> IndexedDocument | None:
        """None when it has vanished meanwhile."""
        if doc_id not in self._ready:
            first = self._places[doc_id]
            some = [key for _, key in self._documents[first : first + _DOCUMENTS_AT_ONCE]]
            self._ready = {document.doc_id: document for document in self._content.documents(some)}
        return self._ready.pop(doc_id, None)


def _is_same(there: LibraryVersion | None, version: LibraryVersion) -> bool:
    return there is not None and (there.commit, there.snippets, there.indexed_at) == (
        version.commit,
        version.snippets,
        version.indexed_at,
    )


class _Model:
    """A model by what it is called: its vectors are there."""

    def __init__(self, space: VectorSpace) -> None:
        self.name, self.version, self.dimension = space
        self.fingerprint = space.fingerprint

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Any:  # noqa: ARG002
        raise ModelMissing(
            f"Nothing is embedded by {self.name} while it is carried over.", hint="Embed it afterwards with: kb ingest"
        )


def _of_chunks(chunks: Sequence[PendingChunk], found: Mapping[str, ChunkVector], home: bool) -> list[NewVector]:
    import numpy as np

    new: dict[bytes, NewVector] = {}
    for chunk in chunks:
        vector = found.get(chunk.chunk_id)
        if vector is not None and vector.home == home:
            known = new.setdefault(
                vector.text_hash, NewVector(vector.text_hash, np.frombuffer(vector.vector, np.float16), [])
            )
            new[vector.text_hash] = known._replace(chunks=[*known.chunks, chunk.key])
    return list(new.values())
