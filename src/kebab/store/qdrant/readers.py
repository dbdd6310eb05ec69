"""Reads documents and chunks: by id, prefix or path, for hits, or whole as they were written."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from kebab.core.errors import Ambiguous, Corrupt, NotFound
from kebab.core.libraries import VectorSpace, VersionDocument
from kebab.core.ports import (
    ChunkContext,
    ChunkText,
    ChunkVector,
    FileState,
    IndexedDocument,
    IndexedFile,
    Key,
    StoredDocument,
)
from kebab.core.records import (
    ContentCounts,
    DocumentRecord,
    SourceRecord,
    SpaceCount,
    StoreStats,
    TagRecord,
)
from kebab.core.search import Neighbours, SearchFilters
from kebab.core.spans import PageSpan
from kebab.core.text import storable
from kebab.store.index_versions import fts_config, lexical_index_version
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Filter, Payload, batches, one_of, where
from kebab.store.qdrant.filters import document_filter
from kebab.store.qdrant.lexical import QdrantLexicalIndex
from kebab.store.qdrant.libraries import QdrantLibraryCatalog
from kebab.store.qdrant.schema import SCHEMA, Schema
from kebab.store.qdrant.state import LIBRARY_KIND, State, Stored, StoredVersion, searched_versions, stored_versions
from kebab.store.qdrant.terms import LIBRARIES, OWN
from kebab.store.qdrant.vectors import QdrantVectorStore, coverage
from kebab.store.tags import folded, tag_records

_SHORTEST_ID_PREFIX = 4
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#]+)(?:[|#][^\[\]]*)?\]\]")
_LIST_HINT = "See what is there with: kb list docs"
_BATCH = 200


class QdrantReading(Stored):
    """One thread's view of the store. Its state (settings, sizes, sources) is read once, at the beginning."""

    is_immutable = False

    def __init__(self, schema: Schema, state: State, *, korean_analysis: str, paths_on_disk: bool) -> None:
        super().__init__(schema, state)
        self._analysis = state.korean_analysis or korean_analysis
        self.catalog = QdrantCatalog(schema, state, paths_on_disk=paths_on_disk)
        self.lexical_index = partial(QdrantLexicalIndex, schema, state, self._analysis)
        self.vectors = partial(QdrantVectorStore, schema, state)
        self.vector_coverage = partial(coverage, schema, state)
        self.chunks = partial(QdrantChunkReader, schema, state)
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
        wanted = wanted[offset : None if limit < 0 else offset + limit]
        return list(map(self._record, self._read(wanted)))

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
        ways = (self._by_id, self._by_path, self._by_library_path, self._by_prefix, self._by_link)
        found = next(filter(None, (find(key) for find in ways)), [])
        if not found:
            raise NotFound(f"No document {key} is indexed.", hint=_LIST_HINT)
        if len(found) > 1:
            names = sorted(f"{payload['source']}:{payload['path']}" for payload in found)
            some = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
            message = f"{key} fits {len(found)} documents: {some}."
            raise Ambiguous(message, hint="Name one of them, as SOURCE:path or by its id.")
        return self._record(found[0])

    def in_libraries(self, path: str) -> dict[tuple[str, str], DocumentRecord]:
        path = storable(path)
        versions = [version for version in stored_versions(self._catalog) if not version.in_making]
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
            raise NotFound(f"No document {doc_id} is indexed.", hint=_LIST_HINT)
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

    def _by_id(self, key: str) -> list[Payload]:
        return self._read([codec.document_point_id(key)])

    def _by_path(self, key: str) -> list[Payload]:
        """The user's own documents named `path` or `SOURCE:path`; both parts may contain colons."""
        cuts = [place for place, letter in enumerate(key) if letter == ":"]
        either = [one_of("within", [key])]
        either += [{"must": [one_of("source", [key[:cut]]), one_of("within", [key[cut + 1 :]])]} for cut in cuts]
        found = self._select(one_of("corpus", [OWN]), {"should": either})
        return [payload for payload in found if key in (payload["path"], f"{payload['source']}:{payload['path']}")]

    def _by_library_path(self, key: str) -> list[Payload]:
        """Library documents named `/owner/project:path` or `/owner/project/version:path`."""
        place, colon, path = key.partition(":")
        parts = place.split("/", 3)
        if not colon or len(parts) < 3 or parts[0]:
            return []
        library, tag = f"/{parts[1]}/{parts[2]}", parts[3] if len(parts) > 3 else ""
        versions = searched_versions(self._catalog, library, tag)
        found = self._select(one_of("within", [path]), one_of("versions", versions))
        return [payload for payload in found if payload["path"] == path]

    def _by_prefix(self, key: str) -> list[Payload]:
        if len(key) < _SHORTEST_ID_PREFIX or not set(key) <= set("0123456789abcdef"):
            return []
        found = self._select(one_of("head", [key[:_SHORTEST_ID_PREFIX]]))
        return [payload for payload in found if payload["doc"].startswith(key)]

    def _by_link(self, key: str) -> list[Payload]:
        """Markdown notes named `Page` or `[[folder/Page#Heading|label]]`: the end of the path without extension."""
        link = _WIKI_LINK.fullmatch(key.strip())
        ending = folded(f"/{link[1].strip() if link else key}.md")
        found = self._select(one_of("format", ["md"]), one_of("name", [ending.rpartition("/")[2]]))
        return [payload for payload in found if folded(f"/{payload['path']}").endswith(ending)]

    def _record(self, payload: Payload) -> DocumentRecord:
        return codec.document_record(payload, self._state.notes_above(payload))

    def find_chunk(self, key: str) -> ChunkContext:
        key = storable(key)
        found = self._chunks.retrieve([codec.chunk_point_id(key)], payload=codec.HIT_FIELDS)
        # The id of a chunk begins with the first eight letters of its document's id.
        if not found and (documents := [payload["doc"] for payload in self._by_prefix(key[:8])]):
            names = self._chunks.payloads(where("doc", *documents), ["chunk"])
            ids = [codec.chunk_point_id(name["chunk"]) for name in names if name["chunk"].startswith(key)]
            found = self._chunks.retrieve(ids, payload=codec.HIT_FIELDS)
        if len(found) > 1:
            raise Ambiguous(f"{key} is the beginning of {len(found)} chunk ids.", hint="Give more of it.")
        if not found:
            hint = "It may have changed since: search again for its current id."
            raise NotFound(f"No chunk {key} is indexed.", hint=hint)
        return self._chunk_record(found[0]["payload"])

    def chunks_of(self, doc_id: str) -> list[ChunkContext]:
        payloads = self._chunks.payloads(where("doc", doc_id), codec.HIT_FIELDS)
        return sorted(map(self._chunk_record, payloads), key=lambda record: record.ordinal)

    def _chunk_record(self, payload: Payload) -> ChunkContext:
        return codec.chunk_context(payload, self._state.notes_above(payload))


class QdrantChunkReader(Stored):
    def contexts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkContext]:
        return {
            payload["chunk"]: codec.chunk_context(payload, self._state.notes_above(payload))
            for payload in self._payloads(chunk_ids, codec.CONTEXT_FIELDS)
        }

    def texts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkText]:
        return {
            payload["chunk"]: ChunkText(payload["doc"], payload["text"])
            for payload in self._payloads(chunk_ids, ["chunk", "doc", "text", "corpus"])
        }

    def _payloads(self, chunk_ids: Sequence[str], fields: list[str]) -> list[Payload]:
        ids = [codec.chunk_point_id(chunk_id) for chunk_id in dict.fromkeys(chunk_ids)]
        payloads = [point["payload"] for point in self._chunks.retrieve(ids, payload=fields)]
        return [payload for payload in payloads if not self._state.is_too_new(payload)]

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> dict[str, Neighbours]:
        """Returns the chunks before and after each of these chunks, with two requests for all of them."""
        found = dict.fromkeys(chunk_ids, Neighbours())
        fields = ["chunk", "doc", "ordinal"]
        points = self._chunks.retrieve(map(codec.chunk_point_id, chunk_ids), payload=fields)
        hits = [[point["payload"][field] for field in fields] for point in points]
        wanted: defaultdict[str, set[int]] = defaultdict(set)
        for _, doc, ordinal in hits:
            wanted[doc].update(range(max(0, ordinal - count), ordinal + count + 1))
        either = [
            {"must": [one_of("doc", [doc]), {"key": "ordinal", "match": {"any": sorted(ordinals)}}]}
            for doc, ordinals in wanted.items()
        ]
        read = self._chunks.payloads({"should": either}, codec.HIT_FIELDS) if either else ()
        near = {(payload["doc"], payload["ordinal"]): payload for payload in read}
        for chunk_id, doc, ordinal in hits:
            before, after = (
                tuple(codec.neighbour(near[doc, place]) for place in places if (doc, place) in near)
                for places in (range(ordinal - count, ordinal), range(ordinal + 1, ordinal + count + 1))
            )
            found[chunk_id] = Neighbours(before, after)
        return found


class QdrantContentReader(Stored):
    def stored(self, source: str) -> dict[str, StoredDocument]:
        fields = ["doc", "path", *FileState._fields]
        payloads = self._documents.payloads(where("source", source), fields)
        return {
            payload["path"]: StoredDocument(payload["doc"], payload["doc"], codec.file_state(payload))
            for payload in sorted(payloads, key=lambda payload: str(payload["path"]))
        }

    def documents(self, keys: Sequence[Key]) -> list[IndexedDocument]:
        """Returns these documents. Their source is left empty, because a library document may belong to several."""
        wanted = list(map(str, keys))
        points = self._documents.retrieve(map(codec.document_point_id, wanted))
        stored = {point["payload"]["doc"]: point["payload"] for point in points}
        chunks: defaultdict[str, list[Payload]] = defaultdict(list)
        fields = ["doc", "ordinal", "start", "end", "headings", "spans", "kind", "names"]
        for payload in self._chunks.payloads(where("doc", *wanted), fields):
            chunks[payload["doc"]].append(payload)
        return [codec.indexed_document(stored[doc_id], chunks[doc_id]) for doc_id in wanted if doc_id in stored]

    def spaces(self) -> list[VectorSpace]:
        return self._state.spaces

    def vectors_of(self, space: VectorSpace, chunk_ids: Sequence[str]) -> dict[str, ChunkVector]:
        name, fields = space.fingerprint, ["chunk", "text_hash", "homes"]
        points = self._chunks.retrieve(map(codec.chunk_point_id, chunk_ids), payload=fields, vectors=[name])
        found = {}
        for point in points:
            if name in (point.get("vector") or {}):
                chunk, text_hash, primaries = (point["payload"][field] for field in fields)
                vector = codec.to_float16(point["vector"][name])
                found[chunk] = ChunkVector(bytes.fromhex(text_hash), vector, name in primaries)
        return found

    def complete_vectors(self) -> str | None:
        return self._state.meta.get("complete_vectors")

    def counts(self) -> ContentCounts:
        own = one_of("corpus", [OWN])
        searched = one_of("versions", searched_versions(self._catalog, "", None))
        count, either = self._chunks.count, {"should": [own, searched]}
        spaces = []
        for name in (space.fingerprint for space in self._state.spaces):
            has = {"has_vector": name}
            primary = count({**either, "must": [has, one_of("homes", [name])]})
            spaces.append(SpaceCount(name, count({**either, "must": [has]}), primary))
        sizes = [each.count({"must": [part]}) for part in (own, searched) for each in (self._documents, self._chunks)]
        return ContentCounts(sizes[0], sizes[1], sizes[2], sizes[3], tuple(spaces))

    def library_documents(self, library_id: str) -> list[VersionDocument]:
        found = []
        for version in self._complete_versions(library_id):
            fields = ["doc", "path", "file_keys", "fingerprint"]
            payloads = self._documents.payloads(where("versions", version.key), fields)
            for payload in sorted(payloads, key=lambda payload: str(payload["path"])):
                file_key = payload["file_keys"][version.key]
                facts = (payload["doc"], payload["path"], payload["fingerprint"])
                found.append(VersionDocument(version.tag or None, version.commit, payload["doc"], file_key, *facts))
        return found

    def library_vectors(self, library_id: str, space: VectorSpace) -> Iterator[tuple[bytes, bytes]]:
        """Yields the hash of each embedded text, once, and its vector as float16."""
        name, given = space.fingerprint, set()
        chosen = {
            "must": [
                one_of("versions", [version.key for version in self._complete_versions(library_id)]),
                {"has_vector": name},
            ]
        }
        for point in self._chunks.scroll(chosen, payload=["text_hash"], vectors=[name]):
            text_hash = point["payload"]["text_hash"]
            if text_hash not in given:
                given.add(text_hash)
                yield bytes.fromhex(text_hash), codec.to_float16(point["vector"][name])

    def _complete_versions(self, library_id: str) -> list[StoredVersion]:
        return [version for version in stored_versions(self._catalog, library_id) if not version.in_making]
