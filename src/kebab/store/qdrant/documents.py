"""Writes documents. New chunks are written first, then the document; then its old chunks are deleted. So a search never
finds less than before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kebab.core.documents import Repository, Source, chunk_id, document_id, embedded_text
from kebab.core.errors import SourceError
from kebab.core.ports import FileState, IndexedDocument
from kebab.core.records import ContextNote
from kebab.store.fts5.chunk_columns import columns_of, titles_of
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Filter, Payload, Point, bare_point, batches, where
from kebab.store.qdrant.index_writer import COUNTED, IndexWriter, WriterPart, analyse_again
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.state import LIBRARY_KIND, StoredSource, now
from kebab.store.qdrant.terms import LIBRARIES, OWN, Counted, Vocabulary, word_fields

_BATCH = 200
_UNLINKED: Payload = {"versions": [], "file_keys": {}}


class _NewChunk(NamedTuple):
    payload: Payload
    words: Counted

    def differs_from(self, stored: Payload | None) -> bool:
        """Whether it differs in more than its vectors and the fields that it repeats from its document."""
        others = self.payload.keys() - {*codec.DOCUMENT_FIELDS, "homes", "spaces"}
        return stored is None or any(stored.get(key) != self.payload[key] for key in others)


class QdrantDocumentStore(WriterPart):
    def __init__(self, writer: IndexWriter, *, for_libraries: bool = False) -> None:
        super().__init__(writer)
        self.has_chunks = self._chunks.has_any
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
        """Removes the documents of a source, then the source. So after an interruption the others are still found."""
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
        gone = list(self._chunks.payloads(chosen, COUNTED))
        with self._writer.change(documents, gone, []):
            self._keep_vectors(chosen)
            self._documents.delete(list(map(codec.document_point_id, documents)))
            self._chunks.delete(chosen)
        self._writer.remember(held_spaces=None)  # these may have been the last chunks with vectors of a space
        return len(documents)

    def write(self, *documents: IndexedDocument) -> int:
        ids = {document.doc_id or document_id(document.source, document.path): document for document in documents}
        if self._corpus == LIBRARIES:
            self._writer.remember(libraries=True)
        known = self._stored_documents(list(ids))
        payloads = {
            doc_id: {
                **codec.document_payload(doc_id, document, self._corpus, now()),
                **({key: known[doc_id][key] for key in _UNLINKED} if doc_id in known else _UNLINKED),
            }
            for doc_id, document in ids.items()
        }
        made: dict[str, _NewChunk] = {}
        for doc_id, document in ids.items():
            chunks = self._made(document, payloads[doc_id])
            payloads[doc_id]["chunks"] = list(chunks)
            made |= chunks
        stored = {chunk["chunk"]: chunk for chunk in self._chunks.payloads(where("doc", *known))} if known else {}
        changed = {key: chunk for key, chunk in made.items() if chunk.differs_from(stored.get(key))}
        gone = [chunk for key, chunk in stored.items() if key in changed or key not in made]
        with self._writer.change(ids, gone, [chunk.payload for chunk in changed.values()]):
            self._writer.remember(complete_vectors=None)
            texts = [chunk.text for document in documents for chunk in document.chunks]
            self._vocabulary.add([*texts, *(titles_of(document).first for document in documents)])
            self._write_chunks(changed, stored)
            unchanged_in = dict.fromkeys(chunk.payload["doc"] for key, chunk in made.items() if key not in changed)
            self._chunks.change(
                {"set_payload": {"payload": _repeated(payloads[doc_id]), "filter": where("doc", doc_id)}}
                for doc_id in unchanged_in
            )
            self._write_documents(payloads, known)
            if left_over := [codec.chunk_point_id(key) for key in stored if key not in made]:
                self._keep_vectors({"must": [{"has_id": left_over}]})
                self._chunks.delete(left_over)
        return len(changed)

    def _stored_documents(self, doc_ids: list[str]) -> dict[str, Payload]:
        fields = ["doc", "versions", "file_keys", f"{codec.BODY}.in"]
        points = self._documents.retrieve(map(codec.document_point_id, doc_ids), payload=fields)
        return {point["payload"]["doc"]: point["payload"] for point in points}

    def _made(self, document: IndexedDocument, document_payload: Payload) -> dict[str, _NewChunk]:
        """The chunks of a document as they are to be stored, by their ids."""
        titles, repeated = titles_of(document), _repeated(document_payload)
        korean_analysis = self._writer.korean_analysis
        note_terms = self._state.note_terms(document_payload, korean_analysis)
        made = {}
        for chunk in document.chunks:
            identifier = chunk_id(document_payload["doc"], chunk.ordinal, chunk.text)
            columns = columns_of(chunk, titles, korean_analysis, note_terms)
            names = titles.first if titles.first != titles.others and not chunk.ordinal else None
            embedded = embedded_text(document.path, document.parsed.title, chunk.heading_path, chunk.text)
            payload = {**repeated, **codec.chunk_payload(identifier, chunk, names), "homes": [], "spaces": []}
            fields, words = word_fields(columns, payload, self._tokenizer)
            made[identifier] = _NewChunk({**payload, **fields, "text_hash": codec.hash_of(embedded)}, words)
        return made

    def _write_chunks(self, changed: Mapping[str, _NewChunk], stored: Mapping[str, Payload]) -> None:
        """Writes new and changed chunks. A stored chunk keeps its vectors, unless its embedded text has changed."""
        average = self._writer.average(self._corpus)
        same = {
            codec.chunk_point_id(key): stored[key]
            for key, chunk in changed.items()
            if key in stored and stored[key]["text_hash"] == chunk.payload["text_hash"]
        }
        with_vectors = [point for point, before in same.items() if before["spaces"]]
        kept = self._chunks.retrieve(with_vectors, payload=False, vectors=True)
        vectors = {point["id"]: point["vector"] for point in kept}
        points: list[Point] = []
        for key, (payload, words) in changed.items():
            point = codec.chunk_point_id(key)
            payload["average"] = average
            if before := same.get(point):
                others = [space for space in before["homes"] if space != codec.EVERYWHERE]
                payload |= {"spaces": before["spaces"], "homes": others + payload["homes"]}
            vector = {**vectors.get(point, {}), WORDS: words.vector(average)}
            points.append({"id": point, "vector": vector, "payload": payload})
        self._chunks.upsert(points)

    def _write_documents(self, payloads: Mapping[str, Payload], known: Mapping[str, Payload]) -> None:
        parts = {doc_id: codec.parts_of(payload[codec.BODY]) for doc_id, payload in payloads.items()}
        short = {doc_id: payload for doc_id, payload in payloads.items() if len(parts[doc_id]) == 1}
        self._documents.upsert(
            bare_point(codec.document_point_id(doc_id), **payload) for doc_id, payload in short.items()
        )
        for doc_id in payloads.keys() - short.keys():
            self._write_in_parts(doc_id, payloads[doc_id], parts[doc_id], known.get(doc_id))

    def _write_in_parts(self, doc_id: str, payload: Payload, parts: list[str], known: Payload | None) -> None:
        """Writes a document with a long text. Until its last part is stored, the old text is used, or it is UNREAD."""
        documents, point = self._documents, [codec.document_point_id(doc_id)]
        used = known and (known.get(codec.BODY) or {}).get("in")
        free, other = codec.BODY_PARTS if used != codec.BODY_PARTS[0] else codec.BODY_PARTS[::-1]
        payload = {**payload, codec.BODY: {"in": free}}
        if known is None:
            documents.upsert([bare_point(*point, **{**payload, **codec.UNREAD})])
        documents.set_payload({free: {}}, point)
        for number, part in enumerate(parts):
            documents.set_payload({str(number): part}, point, within=free)
        documents.set_payload({**payload, other: {}}, point)

    def _keep_vectors(self, chosen: Filter) -> None:
        """Keeps the vectors of chunks that are about to be deleted, because their texts may return elsewhere."""
        if self._state.spaces:
            vectors = (
                (space, point["payload"]["text_hash"], codec.to_float16(vector))
                for point in self._chunks.scroll(chosen, payload=["text_hash"], vectors=True)
                for space, vector in point["vector"].items()
                if space != WORDS
            )
            self._writer.keep_unused(vectors)


class QdrantNoteStore(WriterPart):
    """Writes notes on sources and folders, and adds their words to every chunk of the documents they cover."""

    def source_names(self) -> list[str]:
        return sorted(self._state.sources)

    def notes(self, source: str) -> list[ContextNote]:
        return self._state.sources[source].ordered_notes if source in self._state.sources else []

    def put(self, source: str, note: ContextNote) -> int:
        Vocabulary(self._schema.terms).add([note.text])
        return self._replace(source, note, [note])

    def remove(self, source: str, note: ContextNote) -> int:
        return self._replace(source, note, [])

    def _replace(self, source: str, note: ContextNote, new: list[ContextNote]) -> int:
        """Replaces the note on a folder; returns how many chunks changed. Those written later have its words anyway."""
        with self._writer.pledge_words(source):
            stored = self._state.sources[source]
            others = [other for other in stored.notes if other.folder != note.folder]
            self._writer.write_source(stored._replace(notes=(*others, *new)))
            payloads = self._documents.payloads(where("source", source), ["doc", "path"])
            below = [payload["doc"] for payload in payloads if note.covers(payload["path"])]
            return analyse_again(self._writer, below, self._writer.korean_analysis)


def _repeated(document: Payload) -> Payload:
    """The fields of a document that its chunks repeat."""
    return {key: document[key] for key in codec.DOCUMENT_FIELDS}
