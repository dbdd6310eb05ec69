"""`kb migrate`: copies everything from one store, the origin, into another, the target, and compares both.

Documents, chunks and vectors are copied as they are stored; nothing is parsed, chunked or embedded again. The target
stores the address of its origin until the comparison has found no difference. After an interruption, the same command
continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kebab.core.addresses import without_password
from kebab.core.documents import Source
from kebab.core.errors import CopyDiffers, NotEmpty, NotFound, UsageError
from kebab.core.libraries import LibraryVersion, VectorSpace, VersionDocument
from kebab.core.ports import ChunkVector, EmbeddingKind, IndexedDocument, Key, NewVector, PendingChunk, Progress
from kebab.core.records import SourceRecord, SpaceCount
from kebab.core.text import content_hash
from kebab.ingest.report import IngestReport, quiet
from kebab.library.version_writer import VersionMaker, WantedFile

if TYPE_CHECKING:
    from kebab.core.store_ports import ContentReader, DocumentStore, NoteStore, Reading, Store, VectorWriter, Writing
    from kebab.session import Session

_PURPOSE = "kb migrate"
_DOCUMENTS_AT_ONCE = 50
_GROUP_CHARACTERS = 500_000
"""About how many characters of documents are written together."""
_CHUNKS_AT_ONCE = 500
"""The number of chunks whose vectors are written together."""
_COMPARED = 200
"""The number of documents in the sample of which every word, span and vector is compared."""


class MigrationCounts(NamedTuple):
    sources: int
    notes: int
    documents: int
    chunks: int
    tags: int
    libraries: int
    versions: int
    library_documents: int
    snippets: int
    spaces: tuple[SpaceCount, ...]


@dataclass
class MigrationReport:
    origin: str
    target: str
    resumed: bool = False
    """Whether this run continues an interrupted one."""
    documents: int = 0
    vectors: int = 0
    """How many vectors this run has copied."""
    counts: MigrationCounts | None = None
    """The counts of origin and target, after the comparison has found them equal."""
    compared: int = 0
    """Documents that were compared word by word."""
    seconds: float = 0.0


class Migration:
    def __init__(self, origin: Session, target: Store, progress: Progress | None = None) -> None:
        self._origin = origin
        self._target = target
        self._progress: Progress = progress or quiet
        self.report = MigrationReport(_place(origin.store), _place(target))

    def run(self) -> MigrationReport:
        started = time.perf_counter()
        try:
            self._run()
        finally:
            self.report.seconds = time.perf_counter() - started
        return self.report

    def _run(self) -> None:
        place = self.report.origin
        if place == self.report.target:
            raise UsageError(f"{place} cannot be carried into itself.", hint="Name another place with --to.")
        with self._origin.reading(whole=True) as origin:
            if origin is None:
                raise NotFound("There is nothing to carry over yet.", hint="Begin with: kb ingest FOLDER")
            if (before := origin.migrating_from()) is not None:  # the copy of an incomplete origin would look complete
                hint = f"Finish it first with: kb migrate --from {before} --to {place}"
                raise NotEmpty(f"{place} is itself being filled from {before}, and that is not finished.", hint=hint)
            with self._target.writing(_PURPOSE) as writing:
                self._admit(origin, writing)
                writing.remember_migration(place)
                self._carry(origin, writing)
            with self._target.reading(whole=True) as target:
                assert target is not None  # it has just been written
                self.report.counts, self.report.compared = _compare(origin, target, self.report.target, self._progress)
        with self._target.writing(_PURPOSE) as writing:
            writing.remember_migration(None)

    def _admit(self, origin: Reading, writing: Writing) -> None:
        """Raises NotEmpty unless the target is empty or an interrupted migration from the same origin."""
        with self._target.reading() as target:
            assert target is not None  # the writer has created it
            there, before = _names(target), target.migrating_from()
        place = self.report.target
        reset = f"kb --db {place} reset"
        if before is None and (there or writing.documents().has_chunks()):
            hint = f"Name another place with --to, or empty it with: {reset}"
            raise NotEmpty(f"{place} holds a knowledge base already.", hint=hint)
        if before not in (None, self.report.origin):
            hint = f"Finish it with: kb migrate --from {before} --to {place}; or empty it with: {reset}"
            raise NotEmpty(f"{place} is being filled from {before}, and that is not finished.", hint=hint)
        if surplus := sorted(there - _names(origin)):
            hint = f"Remove it there, or begin anew after: {reset}"
            raise NotEmpty(f"{place} has what {self.report.origin} has not: {', '.join(surplus)}.", hint=hint)
        self.report.resumed = before is not None

    def _carry(self, origin: Reading, writing: Writing) -> None:
        content, vectors = origin.content(), writing.vectors()
        writing.settle_analysis(origin.korean_analysis())
        vectors.prepare(content.spaces())
        documents, notes = writing.documents(), writing.notes()
        known = {source.name for source in documents.sources()}
        for source in origin.catalog.sources():
            if source.name not in known:
                documents.add_source(Source(source.name, cast("Any", source.kind), source.root, source.trust_level))
            _carry_notes(source, notes)  # before the documents, because their terms include those of the notes
            self._carry_documents(source, content, documents)
            if source.ingested_at is not None:
                documents.source_ingested(source.name, source.repository, source.ingested_at)
        self._carry_libraries(origin, content, writing)
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

    def _carry_libraries(self, origin: Reading, content: ContentReader, writing: Writing) -> None:
        with self._target.reading() as target:
            assert target is not None  # it is being written
            there = {
                (library.library_id, version.name): (version.commit, version.snippets, version.indexed_at)
                for library in target.libraries().libraries()
                for version in library.versions
            }
        writer, documents = writing.libraries(), writing.documents(for_libraries=True)
        for library in origin.libraries().libraries():
            library_id = library.library_id
            writer.describe(library)
            entries = content.library_documents(library_id)
            for version in library.versions:
                state = (version.commit, version.snippets, version.indexed_at)
                if version.indexed_at is not None and there.get((library_id, version.name)) != state:
                    report = IngestReport()
                    maker = VersionMaker(writer, documents, report, self._progress)
                    own = [entry for entry in entries if entry.tag == version.name]
                    _carry_version(library_id, version, own, content, maker)
                    self.report.documents += report.added
                if version.error is not None:
                    writer.fail(library_id, version.name, version.error)
                elif version.indexed_at is None:
                    writer.begin(library_id, version.name, version.commit)

    # --- vectors

    def _carry_vectors(self, content: ContentReader, writer: VectorWriter) -> None:
        """Copies the vectors of chunks that have none in the target yet, so that a stopped run can continue."""
        for space in content.spaces():
            model = _Model(space)
            total, done, after = writer.count_pending([model], primary=False), 0, None
            while chunks := writer.pending([model], primary=False, after=after, limit=_CHUNKS_AT_ONCE):
                self._progress("vectors", path=space.model, done=done, total=total)
                after = chunks[-1].key
                found = content.vectors_of(space, [chunk.chunk_id for chunk in chunks])
                for primary in (False, True):
                    writer.add(model, _of_chunks(chunks, found, primary), primary=primary)
                done += len(chunks)
                self.report.vectors += len(found)


def _names(reading: Reading) -> set[str]:
    """Returns the names of all sources and libraries."""
    libraries = {library.library_id for library in reading.libraries().libraries()}
    return libraries | {source.name for source in reading.catalog.sources()}


def _place(store: Store) -> str:
    """Returns the address of a store, which does not depend on the working directory."""
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
    """Yields groups of documents to write together."""
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


def _carry_version(
    library_id: str,
    version: LibraryVersion,
    entries: Sequence[VersionDocument],
    content: ContentReader,
    maker: VersionMaker,
) -> None:
    places = {entry.path: place for place, entry in enumerate(entries)}
    ahead: dict[str | None, IndexedDocument] = {}

    def document_of(file: WantedFile, source: str) -> IndexedDocument | None:
        """Returns a document. Reads several at a time, because VersionMaker asks for them in about this order."""
        nonlocal ahead
        place = places[file.path]
        if entries[place].doc_id not in ahead:
            some = [entry.document for entry in entries[place : place + _DOCUMENTS_AT_ONCE]]
            ahead = {document.doc_id: document for document in content.documents(some)}
        document = ahead.pop(entries[place].doc_id, None)  # None if it was deleted meanwhile
        return document and document._replace(source=source)

    wanted = [WantedFile(entry.path, entry.file_key, entry.fingerprint) for entry in entries]
    maker.make(library_id, version.name, version.commit, wanted, document_of, version.indexed_at)


class _Model:
    """A replacement for the model of a space, because copying needs its name but not the model itself."""

    def __init__(self, space: VectorSpace) -> None:
        self.name, self.version, self.dimension = space
        self.fingerprint = space.fingerprint

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Any:  # noqa: ARG002
        raise AssertionError("vectors are copied, not made")


def _of_chunks(chunks: Sequence[PendingChunk], found: Mapping[str, ChunkVector], primary: bool) -> list[NewVector]:
    import numpy as np

    keys: dict[tuple[bytes, bytes], list[Key]] = {}
    for chunk in chunks:
        vector = found.get(chunk.chunk_id)
        if vector is not None and vector.primary == primary:
            keys.setdefault((vector.text_hash, vector.vector), []).append(chunk.key)
    return [
        NewVector(text_hash, np.frombuffer(stored, np.float16), chunk_keys)
        for (text_hash, stored), chunk_keys in keys.items()
    ]


# --- comparing both sides


def _compare(origin: Reading, target: Reading, place: str, progress: Progress) -> tuple[MigrationCounts, int]:
    """Returns the counts of both stores, and how many documents were compared. Raises CopyDiffers if they differ."""
    for difference in _differences(origin, target, progress):
        hint = f"Run the command again, which carries what is missing; or begin anew after: kb --db {place} reset"
        raise CopyDiffers(f"Not everything is the same in {place}: {difference}.", hint=hint, path=place)
    counts = _counted(origin)
    return counts, min(_COMPARED, counts.documents + counts.library_documents)


def _differences(origin: Reading, target: Reading, progress: Progress) -> Iterator[str]:
    """Yields the differences between origin and target: first of totals, then of sources, documents and contents."""

    def between(what: str, part_of: Callable[[Reading], Mapping[Any, Any]]) -> Iterator[str]:
        yield from _between(what, part_of(origin), part_of(target))

    progress("verifying", path="counts", done=0, total=None)
    yield from between("the number of", lambda reading: _numbers(_counted(reading)))
    analysis, wanted = target.korean_analysis(), origin.korean_analysis()
    if wanted not in (None, analysis):
        yield f"the Korean analysis is {analysis} and was {wanted}"
    yield from between("the vectors that are complete", lambda reading: {"": reading.content().complete_vectors()})
    yield from between("the source", lambda reading: {source.name: source for source in reading.catalog.sources()})
    yield from between("the tag", lambda reading: {tag.tag: tag for tag in reading.catalog.tags()})
    own: set[str] = set()
    for source in origin.catalog.sources():
        yield from between("the document", partial(_documents_of, name=source.name))
        own |= {document.doc_id for document in origin.content().stored(source.name).values()}
    yield from between("the library", _libraries)
    ids = set(own)
    for library in origin.libraries().libraries():
        documents = partial(_version_documents, library_id=library.library_id)
        yield from between(f"the document of {library.library_id}", documents)
        ids |= set(documents(origin).values())
    chosen = _spread(sorted(ids))
    for number, doc_id in enumerate(chosen):
        progress("verifying", path=doc_id, done=number, total=len(chosen))
        yield from _in_document(origin, target, doc_id, is_own=doc_id in own)


def _counted(reading: Reading) -> MigrationCounts:
    sources, libraries = reading.catalog.sources(), reading.libraries().libraries()
    return MigrationCounts(
        sources=len(sources),
        notes=sum(len(source.notes) for source in sources),
        tags=len(reading.catalog.tags()),
        libraries=len(libraries),
        versions=sum(len(library.versions) for library in libraries),
        **reading.content().counts()._asdict(),
    )


def _numbers(counts: MigrationCounts) -> dict[str, int]:
    numbers = {name: value for name, value in counts._asdict().items() if name != "spaces"}
    for space in counts.spaces:
        numbers[f"vectors of {space.fingerprint}"] = space.vectors
        numbers[f"chunks whose primary space is {space.fingerprint}"] = space.primaries
    return numbers


def _libraries(reading: Reading) -> dict[str, Any]:
    """Returns the libraries by id, with sorted versions, because their order differs between stores, and with
    origins without passwords, which are not copied.
    """
    return {
        library.library_id: library._replace(
            origin=without_password(library.origin),
            versions=tuple(sorted(library.versions, key=lambda version: version.name or "")),
        )
        for library in reading.libraries().libraries()
    }


def _documents_of(reading: Reading, name: str) -> dict[str, Any]:
    documents = reading.content().stored(name)
    return {f"{name}:{path}": (stored.doc_id, stored.state) for path, stored in documents.items()}


def _version_documents(reading: Reading, library_id: str) -> dict[tuple[Any, ...], str]:
    entries = reading.content().library_documents(library_id)
    return {(entry.tag or "", entry.path, entry.file_key, entry.fingerprint): entry.doc_id for entry in entries}


def _in_document(origin: Reading, target: Reading, doc_id: str, *, is_own: bool) -> Iterator[str]:
    before, after = (_document(reading, doc_id, is_own=is_own) for reading in (origin, target))
    name = f"{before['source']}:{before['path']}"
    yield from _between(f"of {name} the", before, after)
    ids = [chunk.chunk_id for chunk in before["chunks"]]
    for space in origin.content().spaces():
        vectors = [reading.content().vectors_of(space, ids) for reading in (origin, target)]
        for chunk_id in ids:
            if vectors[0].get(chunk_id) != vectors[1].get(chunk_id):
                yield f"of {name} the vector of {space.model} for chunk {chunk_id}"


def _document(reading: Reading, doc_id: str, *, is_own: bool) -> dict[str, Any]:
    """Returns all of a document but its vectors, to compare it. The source of a library document is replaced by
    "library", because stores may assign a document that several versions share to any of their sources.
    """
    record = reading.catalog.find_document(doc_id)
    if not is_own:
        record = record._replace(source="library")
    chunks = [chunk._replace(source=record.source, embedding_model=None) for chunk in reading.catalog.chunks_of(doc_id)]
    body = content_hash(reading.catalog.body(doc_id))
    return {**record._asdict(), "text": body, "chunks": chunks}


def _between(what: str, before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[str]:
    for key in (*before, *(key for key in after if key not in before)):
        if key not in after:
            yield f"{what} {_shown(key)} is missing"
        elif key not in before:
            yield f"{what} {_shown(key)} is there, and was not"
        elif before[key] != after[key]:
            yield f"{what} {_shown(key)}: {_contrast(before[key], after[key])}"


def _contrast(before: Any, after: Any) -> str:
    """Returns the first difference between two records or lists, in words."""
    if hasattr(before, "_asdict"):
        values = after._asdict()
        name = next(name for name, value in before._asdict().items() if value != values[name])
        return f"{name}: {_contrast(getattr(before, name), values[name])}"
    if isinstance(before, list | tuple) and len(before) == len(after):
        return next(_contrast(*pair) for pair in zip(before, after, strict=True) if pair[0] != pair[1])
    return f"{_shown(after)} instead of {_shown(before)}"


def _shown(value: Any) -> str:
    text = " ".join(str(part) for part in value) if type(value) is tuple else str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _spread(ids: Sequence[str]) -> list[str]:
    """Returns a sample of the ids, the same in every run. It is random enough, because ids are hashes."""
    most = min(_COMPARED, len(ids))
    return [ids[number * len(ids) // most] for number in range(most)]
