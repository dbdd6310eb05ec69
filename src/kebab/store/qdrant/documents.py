"""Writing documents. New chunks come first, then the document, then its old chunks leave: a search never finds less
than before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import wait
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from kebab.core.documents import Repository, Source, chunk_id, document_id, embedded_text
from kebab.core.errors import SourceError
from kebab.core.ports import FileState, IndexedDocument
from kebab.store.fts5.chunk_columns import Titles, columns_of, titles_of
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant.collection import Filter, Point, batches
from kebab.store.qdrant.index_writer import (
    ChunkWords,
    IndexWriter,
    chunk_point_id,
    document_point_id,
    of_documents,
    words_of,
)
from kebab.store.qdrant.kept_vectors import KeptVectors
from kebab.store.qdrant.payloads import (
    BODY,
    IN_PARTS,
    OF_DOCUMENT,
    TO_BE_READ_AGAIN,
    Payload,
    chunk_payload,
    common_homes,
    day_number,
    document_payload,
    file_state,
    parts_of,
)
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.state import (
    LIBRARY_KIND,
    StoredSource,
    delete_source,
    now,
    remember,
    stored_weights,
    write_sources,
)
from kebab.store.qdrant.terms import LIBRARIES, OWN, Counted, counted
from kebab.store.qdrant.vocabulary import Vocabulary

_DOCUMENTS_AT_ONCE = 200
_OF_VECTORS = ("homes", "spaces", "model")
"""What a chunk says of its vectors, which is not made anew with it."""


class _NewChunk(NamedTuple):
    identifier: str
    payload: Payload
    words: Counted


class QdrantDocumentStore:
    def __init__(
        self, writer: IndexWriter, vocabulary: Vocabulary, *, korean_analysis: str, for_libraries: bool = False
    ) -> None:
        self._writer = writer
        self._schema = writer.schema
        self._vocabulary = vocabulary
        self._korean_analysis = korean_analysis
        self._corpus = LIBRARIES if for_libraries else OWN
        self._tokenizer = SqliteTokenizer()
        self._weights = stored_weights(writer.state)

    # --- sources

    @property
    def _sources(self) -> dict[str, StoredSource]:
        return self._writer.state.sources

    def sources(self) -> list[Source]:
        known = [source for source in self._sources.values() if source.kind != LIBRARY_KIND]
        return [Source(source.name, source.kind, source.root, source.trust_level) for source in sorted(known)]  # type: ignore[arg-type]

    def add_source(self, source: Source) -> None:
        if source.name in self._sources:
            raise SourceError(f"There is already a source named {source.name}.", hint="Choose another with --name.")
        self._put(StoredSource(source.name, source.kind, source.root, source.trust_level, now()))

    def remove_source(self, name: str) -> None:
        """Its documents first: while it is there, they can be found and removed."""
        self.remove(name, list(self.known_files(name)))
        self._forget(name)

    def absorb_source(self, lone: str, folder: str, path: str) -> None:
        into = self._sources[folder]
        taken = {note.folder for note in into.notes}
        moved = [note._replace(folder=path) for note in self._sources[lone].notes if path not in taken]
        self._put(into._replace(notes=(*into.notes, *moved)))
        self.remove_source(lone)

    def source_ingested(self, name: str, repository: Repository | None, at: str | None = None) -> None:
        self._put(self._sources[name]._replace(ingested_at=at or now(), repository=repository))

    def has_chunks(self) -> bool:
        self._writer.settle()
        return any(self._schema.chunks.scroll(payload=False, at_once=1))

    def _put(self, source: StoredSource) -> None:
        write_sources(self._schema.catalog, [source])
        self._sources[source.name] = source

    def _forget(self, name: str) -> None:
        delete_source(self._schema.catalog, name)
        del self._sources[name]

    # --- documents

    def known_files(self, source: str) -> dict[str, FileState]:
        self._writer.settle()
        chosen = {"must": [{"key": "source", "match": {"value": source}}]}
        fields = ["path", *FileState._fields]
        return {
            point["payload"]["path"]: file_state(point["payload"])
            for point in self._schema.documents.scroll(chosen, payload=fields)
        }

    def date_of(self, source: str, path: str) -> str:
        self._writer.settle()
        found = self._schema.documents.retrieve([document_point_id(document_id(source, path))], payload=["date"])
        return str(found[0]["payload"]["date"])

    def touch(self, source: str, path: str, state: FileState, date: str) -> None:
        self._writer.settle()
        doc_id = document_id(source, path)
        day = {"date": date, "day": day_number(date)}
        self._schema.chunks.set_payload(day, of_documents([doc_id]))
        self._schema.documents.set_payload(
            {"size": state.size, "mtime_ns": state.mtime_ns, **day}, [document_point_id(doc_id)]
        )

    def remove(self, source: str, paths: Iterable[str]) -> int:
        removed = 0
        for some in batches((document_id(source, path) for path in paths), _DOCUMENTS_AT_ONCE):
            removed += self.remove_documents(some)
        return removed

    def remove_documents(self, doc_ids: list[str]) -> int:
        """By their ids; how many of them there were."""
        self._writer.settle()
        documents = self._stored_documents(doc_ids)
        if not documents:
            return 0
        counted_until_now = ["doc", "corpus", "terms", "length"]
        chunks = [
            point["payload"] for point in self._schema.chunks.scroll(of_documents(documents), payload=counted_until_now)
        ]
        gone = list(map(words_of, chunks))
        self._writer.announce(documents, {term for chunk in gone for term in chunk.terms})
        self._writer.expect(gone, [])
        self._keep_vectors(of_documents(documents))
        self._schema.documents.delete([document_point_id(doc_id) for doc_id in documents])
        self._schema.chunks.delete(of_documents(documents))
        self._writer.changed(gone, [])
        if self._writer.state.meta.get("held_spaces") is not None:  # these may have been the last ones in one of them
            remember(self._schema.catalog, held_spaces=None)
            self._writer.state.meta["held_spaces"] = None
        return len(documents)

    def write(self, *documents: IndexedDocument) -> int:
        return self.begin(*documents)()

    def begin(self, *documents: IndexedDocument) -> Callable[[], int]:
        """They are analysed here, while the servers may still be at work on those before."""
        ids = {document.doc_id or document_id(document.source, document.path): document for document in documents}
        chunks = {doc_id: self._chunks(doc_id, document) for doc_id, document in ids.items()}
        words = self._vocabulary.unseen(
            text
            for document in documents
            for text in (titles_of(document).first, *(chunk.text for chunk in document.chunks))
        )
        return self._writer.begin(partial(self._write, ids, chunks, words))

    def _write(
        self, ids: Mapping[str, IndexedDocument], chunks: Mapping[str, list[_NewChunk]], words: Mapping[str, str]
    ) -> int:
        if self._corpus == LIBRARIES:
            self._writer.tell_of_libraries(there=True)
        known = self._stored_documents(list(ids))
        old = self._stored_chunks(known)
        change = _Change(old, chunks, self._corpus)
        mark = self._writer.announce(ids, {term for words in change.words() for term in words.terms})
        self._forget_complete_vectors()
        self._writer.expect(change.gone_words, change.new_words)
        facts = {
            doc_id: self._document_payload(doc_id, document, known.get(doc_id), chunks[doc_id], mark)
            for doc_id, document in ids.items()
        }
        words_written = self._writer.threads.submit(self._vocabulary.put, words)
        try:
            self._write_chunks(change, facts)
        finally:
            wait([words_written])
        words_written.result()
        self._write_documents(facts, known)
        gone = [chunk_point_id(identifier) for identifier in change.gone]
        if gone:
            self._keep_vectors(gone)
            self._schema.chunks.delete(gone)
        self._writer.changed(change.gone_words, change.new_words)
        return len(change.new) + len(change.updated)

    def _stored_documents(self, doc_ids: list[str]) -> dict[str, Payload]:
        points = self._schema.documents.retrieve(
            map(document_point_id, doc_ids), payload=["doc", "versions", "file_keys", f"{BODY}.in"]
        )
        return {point["payload"]["doc"]: point["payload"] for point in points}

    def _stored_chunks(self, doc_ids: Iterable[str]) -> dict[str, Payload]:
        wanted = list(doc_ids)
        if not wanted:
            return {}
        return {
            point["payload"]["chunk"]: point["payload"] for point in self._schema.chunks.scroll(of_documents(wanted))
        }

    def _chunks(self, doc_id: str, document: IndexedDocument) -> list[_NewChunk]:
        titles = titles_of(document)
        note_terms = self._writer.state.note_terms(document.source, document.path, self._korean_analysis)
        made = []
        for chunk in document.chunks:
            columns = columns_of(chunk, titles, self._korean_analysis, note_terms)
            words = counted(columns, self._corpus, self._tokenizer, self._weights)
            identifier = chunk_id(doc_id, chunk.ordinal, chunk.text)
            payload = {
                **chunk_payload(identifier, chunk, _names(titles) if not chunk.ordinal else None),
                "terms": list(words.frequencies),
                "length": words.length,
                "columns_hash": hash_of(*columns),
                "text_hash": hash_of(
                    embedded_text(document.path, document.parsed.title, chunk.heading_path, chunk.text)
                ),
                "homes": common_homes(columns, chunk.kind),
                "spaces": [],
            }
            made.append(_NewChunk(identifier, payload, words))
        return made

    def _document_payload(
        self, doc_id: str, document: IndexedDocument, known: Payload | None, chunks: list[_NewChunk], mark: str
    ) -> Payload:
        return {
            **document_payload(doc_id, document, self._corpus, now()),
            "chunks": [chunk.identifier for chunk in chunks],
            "mark": mark,
            "versions": known["versions"] if known else [],
            "file_keys": known["file_keys"] if known else {},
        }

    def _write_chunks(self, change: _Change, documents: Mapping[str, Payload]) -> None:
        average = self._writer.average(self._corpus)
        points = []
        for identifier, chunk in change.new.items():
            payload = {**chunk.payload, **_of_document(documents[change.document_of[identifier]]), "average": average}
            points.append(
                {"id": chunk_point_id(identifier), "vector": {WORDS: chunk.words.vector(average)}, "payload": payload}
            )
        self._schema.chunks.upsert(points)
        self._update_chunks(change, documents, average)

    def _write_documents(self, facts: Mapping[str, Payload], known: Mapping[str, Payload]) -> None:
        parts = {doc_id: parts_of(payload[BODY]) for doc_id, payload in facts.items()}
        in_one = {doc_id: payload for doc_id, payload in facts.items() if len(parts[doc_id]) == 1}
        self._schema.documents.upsert(_document_point(doc_id, payload) for doc_id, payload in in_one.items())
        for doc_id in facts.keys() - in_one.keys():
            self._write_in_parts(doc_id, facts[doc_id], parts[doc_id], known.get(doc_id))

    def _write_in_parts(self, doc_id: str, payload: Payload, parts: list[str], known: Payload | None) -> None:
        """Beside the text that is there, which is used until the last part is there too. Where there is none yet, it is
        a document that has to be read again until then.
        """
        documents, point = self._schema.documents, [document_point_id(doc_id)]
        used = known and (known.get(BODY) or {}).get("in")
        free, other = IN_PARTS if used != IN_PARTS[0] else IN_PARTS[::-1]
        facts = {**payload, BODY: {"in": free}}
        if known is None:
            documents.upsert([_document_point(doc_id, {**facts, **TO_BE_READ_AGAIN})])
        documents.set_payload({free: {}}, point)
        for number, part in enumerate(parts):
            documents.set_payload({str(number): part}, point, within=free)
        documents.set_payload(facts, point)
        documents.delete_payload([other], point)

    def _update_chunks(self, change: _Change, documents: Mapping[str, Payload], average: float) -> None:
        """Chunks that stay keep their vectors, unless what these are made of has changed; all get the new facts of
        their documents.
        """
        operations: list[dict[str, Any]] = []
        for identifier, (chunk, before) in change.updated.items():
            point = chunk_point_id(identifier)
            own = {
                **chunk.payload,
                **{key: before[key] for key in _OF_VECTORS if key in before},
                "average": before["average"],
            }
            if chunk.payload["columns_hash"] != before["columns_hash"]:
                own["average"] = average
                operations.append(
                    {"update_vectors": {"points": [{"id": point, "vector": {WORDS: chunk.words.vector(average)}}]}}
                )
            if chunk.payload["text_hash"] != before["text_hash"]:
                own |= {"homes": chunk.payload["homes"], "spaces": []}
                own.pop("model", None)
                if before["spaces"]:
                    operations.append({"delete_vectors": {"points": [point], "vector": before["spaces"]}})
            of_document = _of_document(documents[change.document_of[identifier]])
            operations.append({"overwrite_payload": {"points": [point], "payload": {**own, **of_document}}})
        for doc_id in change.kept_in:
            operations.append(
                {"set_payload": {"payload": _of_document(documents[doc_id]), "filter": of_documents([doc_id])}}
            )
        if operations:
            self._schema.chunks.change(operations)

    def _keep_vectors(self, chosen: Filter | list[str]) -> None:
        """Of chunks that are about to go: their texts may come again, under another path."""
        if self._writer.state.meta.get("spaces"):
            by_ids: Filter = {"must": [{"has_id": chosen}]}
            points = self._schema.chunks.scroll(
                chosen if isinstance(chosen, dict) else by_ids, payload=["text_hash"], vectors=True
            )
            KeptVectors(self._schema.catalog).keep_those_of(points)

    def _forget_complete_vectors(self) -> None:
        if self._writer.state.meta.get("complete_vectors"):
            remember(self._schema.catalog, complete_vectors=None)
            self._writer.state.meta["complete_vectors"] = None


class _Change:
    """What a group of documents asks of the chunks."""

    def __init__(self, old: Mapping[str, Payload], chunks: Mapping[str, list[_NewChunk]], corpus: str) -> None:
        self.new: dict[str, _NewChunk] = {}
        self.updated: dict[str, tuple[_NewChunk, Payload]] = {}
        self.kept_in: set[str] = set()
        """Documents with chunks that stay as they are."""
        self.document_of = {chunk.identifier: doc_id for doc_id, made in chunks.items() for chunk in made}
        self.gone_words: list[ChunkWords] = []
        self.new_words: list[ChunkWords] = []
        for doc_id, made in chunks.items():
            for chunk in made:
                before = old.get(chunk.identifier)
                if before is None:
                    self.new[chunk.identifier] = chunk
                elif any(before.get(key) != value for key, value in chunk.payload.items() if key not in _OF_VECTORS):
                    self.updated[chunk.identifier] = (chunk, before)
                    self.gone_words.append(words_of(before))
                else:
                    self.kept_in.add(doc_id)
        self.gone = [identifier for identifier in old if identifier not in self.document_of]
        self.gone_words += [words_of(old[identifier]) for identifier in self.gone]
        for chunk in (*self.new.values(), *(chunk for chunk, _ in self.updated.values())):
            self.new_words.append(ChunkWords(corpus, chunk.payload["terms"], chunk.payload["length"]))

    def words(self) -> list[ChunkWords]:
        return [*self.gone_words, *self.new_words]


def hash_of(*texts: str) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _names(titles: Titles) -> str | None:
    return titles.first if titles.first != titles.others else None


def _document_point(doc_id: str, payload: Payload) -> Point:
    return {"id": document_point_id(doc_id), "vector": {}, "payload": payload}


def _of_document(document: Payload) -> Payload:
    return {key: document[key] for key in OF_DOCUMENT}
