"""Writes documents. New chunks are written first, then the document; then its old chunks are deleted. So a search never
finds less than before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from kebab.core.documents import Repository, Source, chunk_id, document_id, embedded_text
from kebab.core.errors import SourceError
from kebab.core.ports import FileState, IndexedDocument
from kebab.store.fts5.chunk_columns import columns_of, titles_of
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Filter, Payload, Point, batches, where
from kebab.store.qdrant.index_writer import ChunkWords, IndexWriter, WriterPart, words_of
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.state import LIBRARY_KIND, StoredSource, now
from kebab.store.qdrant.terms import LIBRARIES, OWN, Counted, counted
from kebab.store.qdrant.vectors import UnusedVectors
from kebab.store.qdrant.vocabulary import Vocabulary

_BATCH = 200
_VECTOR_FIELDS = ("homes", "spaces", "model")
"""The chunk fields about its vectors, which stay when the other fields are written again."""


class _NewChunk(NamedTuple):
    doc_id: str
    payload: Payload
    words: Counted


class QdrantDocumentStore(WriterPart):
    def __init__(self, writer: IndexWriter, *, for_libraries: bool = False) -> None:
        super().__init__(writer)
        self._vocabulary = Vocabulary(writer.schema.terms)
        self._corpus = LIBRARIES if for_libraries else OWN
        self._tokenizer = SqliteTokenizer()

    def sources(self) -> list[Source]:
        known = sorted(source for source in self._state.sources.values() if source.kind != LIBRARY_KIND)
        return [Source(*source[: len(Source._fields)]) for source in known]  # type: ignore[arg-type]

    def add_source(self, source: Source) -> None:
        if source.name in self._state.sources:
            raise SourceError(f"There is already a source named {source.name}.", hint="Choose another with --name.")
        self._writer.write_source(StoredSource(source.name, source.kind, source.root, source.trust_level, now()))

    def remove_source(self, name: str) -> None:
        """Removes the documents of a source, then the source. After an interruption the source still exists, so the
        remaining documents can be found and removed.
        """
        self.remove(name, list(self.known_files(name)))
        self._writer.delete_source(name)

    def absorb_source(self, lone: str, folder: str, path: str) -> None:
        into = self._state.sources[folder]
        taken = {note.folder for note in into.notes}
        moved = [note._replace(folder=path) for note in self._state.sources[lone].notes if path not in taken]
        self._writer.write_source(into._replace(notes=(*into.notes, *moved)))
        self.remove_source(lone)

    def source_ingested(self, name: str, repository: Repository | None, at: str | None = None) -> None:
        ingested = self._state.sources[name]._replace(ingested_at=at or now(), repository=repository)
        self._writer.write_source(ingested)

    def has_chunks(self) -> bool:
        return self._chunks.has_any()

    def known_files(self, source: str) -> dict[str, FileState]:
        payloads = self._documents.payloads(where("source", source), ["path", *FileState._fields])
        return {payload["path"]: codec.file_state(payload) for payload in payloads}

    def date_of(self, source: str, path: str) -> str:
        found = self._documents.retrieve([codec.document_point_id(document_id(source, path))], payload=["date"])
        return str(found[0]["payload"]["date"])

    def touch(self, source: str, path: str, state: FileState, date: str) -> None:
        doc_id, dates = document_id(source, path), {"date": date, "day": codec.day_number(date)}
        self._chunks.set_payload(dates, where("doc", doc_id))
        changed = {"size": state.size, "mtime_ns": state.mtime_ns, **dates}
        self._documents.set_payload(changed, [codec.document_point_id(doc_id)])

    def remove(self, source: str, paths: Iterable[str]) -> int:
        ids = (document_id(source, path) for path in paths)
        return sum(self.remove_documents(some) for some in batches(ids, _BATCH))

    def remove_documents(self, doc_ids: list[str]) -> int:
        """Deletes these documents and their chunks, and returns how many of the documents existed."""
        documents = self._stored_documents(doc_ids)
        if not documents:
            return 0
        chosen = where("doc", *documents)
        gone = words_of(self._chunks.payloads(chosen, ChunkWords._fields))
        with self._writer.change(documents, gone, []):
            self._keep_vectors(chosen)
            self._documents.delete(list(map(codec.document_point_id, documents)))
            self._chunks.delete(chosen)
        self._forget("held_spaces")  # these may have been the last chunks with vectors of a space
        return len(documents)

    def write(self, *documents: IndexedDocument) -> int:
        ids = {document.doc_id or document_id(document.source, document.path): document for document in documents}
        made = {doc_id: self._made(doc_id, document) for doc_id, document in ids.items()}
        if self._corpus == LIBRARIES:
            self._writer.remember_libraries(exist=True)
        known = self._stored_documents(list(ids))
        stored = self._chunks.payloads(where("doc", *known)) if known else ()
        change = _Change(stored, chain.from_iterable(made.values()), self._corpus)
        with self._writer.change(ids, change.gone_words, change.new_words) as mark:
            self._forget("complete_vectors")
            payloads = {
                doc_id: {
                    **codec.document_payload(doc_id, document, self._corpus, now()),
                    "chunks": [chunk.payload["chunk"] for chunk in made[doc_id]],
                    "mark": mark,
                    "versions": known[doc_id]["versions"] if doc_id in known else [],
                    "file_keys": known[doc_id]["file_keys"] if doc_id in known else {},
                }
                for doc_id, document in ids.items()
            }
            self._vocabulary.add(
                text
                for document in documents
                for text in (titles_of(document).first, *(c.text for c in document.chunks))
            )
            self._write_chunks(change, payloads)
            self._write_documents(payloads, known)
            if change.gone:
                gone = list(map(codec.chunk_point_id, change.gone))
                self._keep_vectors({"must": [{"has_id": gone}]})
                self._chunks.delete(gone)
        return len(change.new) + len(change.updated)

    def _stored_documents(self, doc_ids: list[str]) -> dict[str, Payload]:
        fields = ["doc", "versions", "file_keys", f"{codec.BODY}.in"]
        points = self._documents.retrieve(map(codec.document_point_id, doc_ids), payload=fields)
        return {point["payload"]["doc"]: point["payload"] for point in points}

    def _made(self, doc_id: str, document: IndexedDocument) -> list[_NewChunk]:
        titles = titles_of(document)
        place = {"source": document.source, "path": document.path}
        korean_analysis = self._writer.korean_analysis
        note_terms = self._state.note_terms(place, korean_analysis)
        made = []
        for chunk in document.chunks:
            columns = columns_of(chunk, titles, korean_analysis, note_terms)
            words = counted(columns, self._corpus, self._tokenizer, self._state.weights)
            names = titles.first if titles.first != titles.others and not chunk.ordinal else None
            embedded = embedded_text(document.path, document.parsed.title, chunk.heading_path, chunk.text)
            payload = {
                **codec.chunk_payload(chunk_id(doc_id, chunk.ordinal, chunk.text), chunk, names),
                "terms": list(words.frequencies),
                "length": words.length,
                "columns_hash": codec.hash_of(*columns),
                "text_hash": codec.hash_of(embedded),
                "homes": codec.common_primaries(columns, chunk.kind),
                "spaces": [],
            }
            made.append(_NewChunk(doc_id, payload, words))
        return made

    def _write_chunks(self, change: _Change, documents: Mapping[str, Payload]) -> None:
        """Writes new and changed chunks, and gives all chunks the new fields of their documents. A stored chunk keeps
        its vectors, unless its embedded text has changed.
        """
        average = self._writer.average(self._corpus)
        of_document = {
            doc_id: {key: payload[key] for key in codec.DOCUMENT_FIELDS} for doc_id, payload in documents.items()
        }
        self._chunks.upsert(
            {
                "id": codec.chunk_point_id(identifier),
                "vector": {WORDS: chunk.words.vector(average)},
                "payload": {**chunk.payload, **of_document[chunk.doc_id], "average": average},
            }
            for identifier, chunk in change.new.items()
        )
        operations: list[dict[str, Any]] = []
        for identifier, (chunk, before) in change.updated.items():
            point = codec.chunk_point_id(identifier)
            kept = {key: before[key] for key in (*_VECTOR_FIELDS, "average") if key in before}
            own = {**chunk.payload, **kept}
            if chunk.payload["columns_hash"] != before["columns_hash"]:
                own["average"] = average
                new = {"id": point, "vector": {WORDS: chunk.words.vector(average)}}
                operations.append({"update_vectors": {"points": [new]}})
            if chunk.payload["text_hash"] != before["text_hash"]:
                own |= {"homes": chunk.payload["homes"], "spaces": []}
                own.pop("model", None)
                if before["spaces"]:
                    operations.append({"delete_vectors": {"points": [point], "vector": before["spaces"]}})
            own |= of_document[chunk.doc_id]
            operations.append({"overwrite_payload": {"points": [point], "payload": own}})
        for doc_id in change.unchanged_in:
            operations.append({"set_payload": {"payload": of_document[doc_id], "filter": where("doc", doc_id)}})
        self._chunks.change(operations)

    def _write_documents(self, payloads: Mapping[str, Payload], known: Mapping[str, Payload]) -> None:
        parts = {doc_id: codec.parts_of(payload[codec.BODY]) for doc_id, payload in payloads.items()}
        short = {doc_id: payload for doc_id, payload in payloads.items() if len(parts[doc_id]) == 1}
        self._documents.upsert(_point(doc_id, payload) for doc_id, payload in short.items())
        for doc_id in payloads.keys() - short.keys():
            self._write_in_parts(doc_id, payloads[doc_id], parts[doc_id], known.get(doc_id))

    def _write_in_parts(self, doc_id: str, payload: Payload, parts: list[str], known: Payload | None) -> None:
        """Writes a document with a long text. The old text stays in use until the last part of the new one is stored; a
        new document is UNREAD until then.
        """
        documents, point = self._documents, [codec.document_point_id(doc_id)]
        used = known and (known.get(codec.BODY) or {}).get("in")
        free, other = codec.BODY_PARTS if used != codec.BODY_PARTS[0] else codec.BODY_PARTS[::-1]
        payload = {**payload, codec.BODY: {"in": free}}
        if known is None:
            documents.upsert([_point(doc_id, {**payload, **codec.UNREAD})])
        documents.set_payload({free: {}}, point)
        for number, part in enumerate(parts):
            documents.set_payload({str(number): part}, point, within=free)
        documents.set_payload({**payload, other: {}}, point)

    def _keep_vectors(self, chosen: Filter) -> None:
        """Keeps the vectors of chunks that are about to be deleted, because their texts may return elsewhere."""
        if self._state.spaces:
            points = self._chunks.scroll(chosen, payload=["text_hash"], vectors=True)
            UnusedVectors(self._catalog).keep_of(points)

    def _forget(self, name: str) -> None:
        if self._state.meta.get(name) is not None:
            self._writer.remember(**{name: None})


class _Change:
    """The difference between the stored chunks of some documents and the chunks that replace them."""

    def __init__(self, stored: Iterable[Payload], chunks: Iterable[_NewChunk], corpus: str) -> None:
        old = {payload["chunk"]: payload for payload in stored}
        self.new: dict[str, _NewChunk] = {}
        self.updated: dict[str, tuple[_NewChunk, Payload]] = {}
        self.unchanged_in: set[str] = set()
        """Ids of documents with unchanged chunks."""
        for chunk in chunks:
            identifier = chunk.payload["chunk"]
            before = old.pop(identifier, None)
            if before is None:
                self.new[identifier] = chunk
            elif any(before.get(key) != value for key, value in chunk.payload.items() if key not in _VECTOR_FIELDS):
                self.updated[identifier] = chunk, before
            else:
                self.unchanged_in.add(chunk.doc_id)
        self.gone = list(old)
        self.gone_words = words_of((*old.values(), *(before for _, before in self.updated.values())))
        written = (*self.new.values(), *(chunk for chunk, _ in self.updated.values()))
        self.new_words = words_of({**chunk.payload, "corpus": corpus} for chunk in written)


def _point(doc_id: str, payload: Payload) -> Point:
    return {"id": codec.document_point_id(doc_id), "vector": {}, "payload": payload}
