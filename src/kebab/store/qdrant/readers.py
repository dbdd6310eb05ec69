"""Reads documents and chunks: by id, prefix or path, or for hits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from kebab.core.citations import PageSpan
from kebab.core.errors import Corrupt
from kebab.core.ports import ChunkContext, ChunkText, IndexedFile
from kebab.core.records import DocumentRecord, SourceRecord, StoreStats, TagRecord
from kebab.core.search import Neighbours, SearchFilters
from kebab.core.text import storable
from kebab.store import document_keys
from kebab.store.index_versions import fts_config, lexical_index_version
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Fields, Filter, Payload, batches, one_of, where
from kebab.store.qdrant.filters import document_filter
from kebab.store.qdrant.lexical import QdrantLexicalIndex
from kebab.store.qdrant.libraries import QdrantContentReader, QdrantLibraryCatalog
from kebab.store.qdrant.schema import SCHEMA, Schema
from kebab.store.qdrant.state import LIBRARY_KIND, State, Stored, stored_versions
from kebab.store.qdrant.terms import LIBRARIES, OWN
from kebab.store.qdrant.vectors import QdrantVectorStore, coverage
from kebab.store.tags import folded, tag_records

_BATCH = 200


class QdrantReading(Stored):
    """One thread's view of the store. Its state (settings, sizes, sources) is read once, at the beginning."""

    is_immutable = False

    def __init__(self, schema: Schema, state: State, *, korean_analysis: str, paths_on_disk: bool) -> None:
        super().__init__(schema, state)
        self._analysis = state.korean_analysis or korean_analysis
        self.catalog = QdrantCatalog(schema, state, paths_on_disk=paths_on_disk)
        self.chunks: Callable[[], QdrantCatalog] = lambda: self.catalog  # which is a ChunkReader too
        self.lexical_index = partial(QdrantLexicalIndex, schema, state, self._analysis)
        self.vectors = partial(QdrantVectorStore, schema, state)
        self.vector_coverage = partial(coverage, schema, state)
        self.content = partial(QdrantContentReader, schema, state)
        self.libraries = partial(QdrantLibraryCatalog, schema, state)

    def index_version(self) -> str:
        return lexical_index_version(self._state.fts_config or fts_config(self._analysis), SCHEMA)

    def korean_analysis(self) -> str | None:
        return self._state.korean_analysis

    def files(self, doc_ids: Collection[str] | None = None) -> list[IndexedFile]:
        fields = ["doc", "source", "path", "size", "mtime_ns", "indexed_at"]
        chosen = None if doc_ids is None else where("doc", *doc_ids)
        found = []
        for payload in self._documents.payloads(chosen, fields):
            source = self._state.sources.get(payload["source"])
            if source is not None and source.root is not None:
                facts = (payload["path"], payload["size"], payload.get("mtime_ns"), payload["indexed_at"])
                ingested_at = source.ingested_at or payload["indexed_at"]
                found.append(IndexedFile(payload["doc"], source.root, source.kind, *facts, ingested_at))
        return found

    def stats(self) -> StoreStats:
        documents, chunks = self._documents, self._chunks
        spaces = [space.fingerprint for space in self._state.spaces]
        has_vector = [{"has_vector": space} for space in spaces]
        return StoreStats(
            path=self._schema.address,
            bytes=None,
            schema=SCHEMA,
            sqlite=self._schema.server_version(),
            sources=len(self._state.sources),
            documents=documents.count(),
            chunks=chunks.count(),
            tags=len({folded(tag) for tag in documents.values("tags")}),
            words=self._schema.terms.count({"must_not": [{"is_empty": {"key": "begins"}}]}),
            text_bytes=sum(payload["size"] for payload in documents.payloads(None, ["size"])),
            vectors=sum(chunks.count({"must": [has]}) for has in has_vector),
            embedded_chunks=chunks.count({"should": has_vector}) if spaces else 0,
            embedding_models=tuple(spaces),
            index_version=self.index_version(),
        )


class QdrantCatalog(Stored):
    def __init__(self, schema: Schema, state: State, *, paths_on_disk: bool = True) -> None:
        super().__init__(schema, state)
        self.paths_on_disk = paths_on_disk

    def documents(self, filters: SearchFilters, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        wanted = self._ordered_ids(document_filter(self._schema, filters))
        return list(map(self._record, self._read(wanted[offset : None if limit < 0 else offset + limit])))

    def count_documents(self, filters: SearchFilters) -> int:
        return self._documents.count(document_filter(self._schema, filters))

    def all_documents(self) -> Iterator[DocumentRecord]:
        """Yields the user's own documents, without damaged ones, which `kb verify` names."""
        for some in batches(self._ordered_ids(where("corpus", OWN)), _BATCH):
            for payload in self._read(some):
                with suppress(Corrupt):
                    yield self._record(payload)

    def _ordered_ids(self, chosen: Filter) -> list[str]:
        """The point ids of the selected documents, ordered by source and path."""
        points = self._documents.scroll(chosen, payload=["source", "path"])
        places = [(*(str(point["payload"].get(key)) for key in ("source", "path")), point["id"]) for point in points]
        return [place[-1] for place in sorted(places)]

    def _read(self, ids: list[str]) -> list[Payload]:
        found = {point["id"]: point["payload"] for point in self._documents.retrieve(ids, payload=codec.RECORD_FIELDS)}
        return [found[identifier] for identifier in ids if identifier in found]

    def sources(self) -> list[SourceRecord]:
        documents, chunks = (each.values("source") for each in (self._documents, self._chunks))
        return [
            SourceRecord(*source[:4], *counts, source.ingested_at, source.repository, tuple(source.ordered_notes))
            for source in sorted(self._state.sources.values())
            for counts in [(documents.get(source.name, 0), chunks.get(source.name, 0))]
            if source.kind != LIBRARY_KIND
        ]

    def tags(self) -> list[TagRecord]:
        return tag_records(self._documents.values("tags", where("corpus", OWN)).items())

    def languages(self) -> list[str]:
        return sorted(self._documents.values("lang", where("corpus", OWN)))

    def formats(self) -> list[str]:
        return sorted(self._documents.values("format"))

    def find_document(self, key: str) -> DocumentRecord:
        key = storable(key)
        found = self._read([codec.document_point_id(key)])
        for find in (self._by_path, self._by_library_path, self._by_prefix, self._by_link):
            found = found or find(key)
        records = map(self._record, found)
        return document_keys.only_document(sorted(records, key=lambda record: (record.source, record.path)), key)

    def in_libraries(self, path: str) -> dict[tuple[str, str], DocumentRecord]:
        path = storable(path)
        versions = stored_versions(self._catalog, complete=True)
        chosen = {"must": [one_of("within", [path]), one_of("corpus", [LIBRARIES])]}
        documents = list(self._documents.payloads(chosen, [*codec.RECORD_FIELDS, "versions"])) if versions else []
        return {
            (version.library, version.tag): self._record(payload)
            for version in versions
            for payload in documents
            if payload["path"] == path and version.key in payload["versions"]
        }

    def body(self, doc_id: str) -> str:
        found = self._documents.retrieve([codec.document_point_id(doc_id)], payload=codec.TEXT_FIELDS)
        if not found:
            raise document_keys.no_document(doc_id)
        return codec.body_of(found[0]["payload"])

    def paths_beside(self, doc_id: str, paths: Iterable[str]) -> set[str]:
        wanted = set(paths)
        here = self._documents.retrieve([codec.document_point_id(doc_id)], payload=["source", "versions"])
        if not here or not wanted:
            return set()
        beside = [one_of("source", [here[0]["payload"]["source"]]), one_of("versions", here[0]["payload"]["versions"])]
        found = self._documents.payloads({"must": [one_of("within", wanted)], "should": beside}, ["path"])
        return {payload["path"] for payload in found} & wanted

    def is_paged(self, doc_id: str) -> bool:
        first = {"must": [one_of("doc", [doc_id]), {"key": "ordinal", "match": {"value": 0}}]}
        found = self._chunks.payloads(first, ["spans"])
        return any(isinstance(codec.spans_of(payload)[0], PageSpan) for payload in found)

    def _select(self, *conditions: Filter) -> list[Payload]:
        return list(self._documents.payloads({"must": conditions}, codec.RECORD_FIELDS))

    def _by_path(self, key: str) -> list[Payload]:
        """The user's own documents named `path` or `SOURCE:path`; both parts may contain colons."""
        cuts = [place for place, letter in enumerate(key) if letter == ":"]
        either = [one_of("within", [key])]
        either += [{"must": [one_of("source", [key[:cut]]), one_of("within", [key[cut + 1 :]])]} for cut in cuts]
        found = self._select(one_of("corpus", [OWN]), {"should": either})
        return [payload for payload in found if key in (payload["path"], f"{payload['source']}:{payload['path']}")]

    def _by_library_path(self, key: str) -> list[Payload]:
        """Library documents named `/owner/project:path` or `/owner/project/version:path`."""
        place = document_keys.place_in_library(key)
        if place is None:
            return []
        library, tag, path = place
        versions = stored_versions(self._catalog, library, tag, complete=True)
        found = self._select(one_of("within", [path]), one_of("versions", (version.key for version in versions)))
        return [payload for payload in found if payload["path"] == path]

    def _by_prefix(self, key: str) -> list[Payload]:
        if not document_keys.is_id_prefix(key):
            return []
        found = self._select(one_of("head", [key[: codec.HEAD]]))
        return [payload for payload in found if payload["doc"].startswith(key)]

    def _by_link(self, key: str) -> list[Payload]:
        ending = folded(document_keys.linked_path(key))
        found = self._select(one_of("format", ["md"]), one_of("name", [ending.rpartition("/")[2]]))
        return [payload for payload in found if folded(f"/{payload['path']}").endswith(ending)]

    def _record(self, payload: Payload) -> DocumentRecord:
        return codec.document_record(payload, self._state.notes_above(payload))

    def find_chunk(self, key: str) -> ChunkContext:
        key = storable(key)
        found = self._chunks.retrieve([codec.chunk_point_id(key)], payload=codec.HIT_FIELDS)
        # The id of a chunk begins with the first eight letters of its document's id.
        if not found and (documents := [payload["doc"] for payload in self._by_prefix(key[:8])]):
            points = self._chunks.scroll(where("doc", *documents), payload=codec.HIT_FIELDS)
            found = [point for point in points if point["payload"]["chunk"].startswith(key)]
        return document_keys.only_chunk([self._chunk_record(point["payload"]) for point in found], key)

    def chunks_of(self, doc_id: str) -> list[ChunkContext]:
        payloads = self._chunks.payloads(where("doc", doc_id), codec.HIT_FIELDS)
        return sorted(map(self._chunk_record, payloads), key=lambda record: record.ordinal)

    def _chunk_record(self, payload: Payload) -> ChunkContext:
        return codec.chunk_context(payload, self._state.notes_above(payload), self._model_of(payload))

    def contexts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkContext]:
        return {
            payload["chunk"]: self._chunk_record(payload) for payload in self._payloads(chunk_ids, codec.CONTEXT_FIELDS)
        }

    def texts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkText]:
        return {
            payload["chunk"]: ChunkText(payload["doc"], payload["text"])
            for payload in self._payloads(chunk_ids, ["chunk", "doc", "text", "corpus"])
        }

    def _payloads(self, chunk_ids: Sequence[str], fields: Fields) -> list[Payload]:
        ids = map(codec.chunk_point_id, dict.fromkeys(chunk_ids))
        payloads = [point["payload"] for point in self._chunks.retrieve(ids, payload=fields)]
        return [payload for payload in payloads if not self._state.is_too_new(payload)]

    def _model_of(self, chunk: Payload) -> str | None:
        """The model of a primary space of the chunk or, if it has none, of any space."""
        latest = self._state.spaces[::-1]
        found = [space for key in ("homes", "spaces") for space in latest if space.fingerprint in chunk[key]]
        return found[0].model if found else None

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> dict[str, Neighbours]:
        """Returns the chunks before and after each of these chunks, with two requests for all of them."""
        found = dict.fromkeys(chunk_ids, Neighbours())
        fields = ["chunk", "doc", "ordinal"]
        points = self._chunks.retrieve(map(codec.chunk_point_id, chunk_ids), payload=fields)
        hits = [[point["payload"][field] for field in fields] for point in points]
        either = []
        for _, doc, ordinal in hits:
            near_it = {"gte": ordinal - count, "lte": ordinal + count}
            either.append({"must": [one_of("doc", [doc]), {"key": "ordinal", "range": near_it}]})
        read = self._chunks.payloads({"should": either}, codec.HIT_FIELDS) if either else ()
        near = {(payload["doc"], payload["ordinal"]): payload for payload in read}
        for chunk_id, doc, ordinal in hits:
            before, after = (
                tuple(codec.neighbour(near[doc, place]) for place in places if (doc, place) in near)
                for places in (range(ordinal - count, ordinal), range(ordinal + 1, ordinal + count + 1))
            )
            found[chunk_id] = Neighbours(before, after)
        return found
