"""Reading what is stored: documents, chunks, sources, tags, by id, by id prefix, or by path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kebab.core.errors import Ambiguous, Corrupt, NotFound
from kebab.core.records import ChunkRecord, DocumentRecord, SourceRecord, TagRecord
from kebab.core.search import SearchFilters
from kebab.core.spans import PageSpan
from kebab.core.text import storable
from kebab.store.qdrant.collection import Filter
from kebab.store.qdrant.filters import FilterBuilder, one_of
from kebab.store.qdrant.index_writer import chunk_point_id, document_point_id, of_documents
from kebab.store.qdrant.lexical import FOR_HITS
from kebab.store.qdrant.libraries import searched_versions, stored_versions
from kebab.store.qdrant.payloads import TEXT, WITHOUT_BODY, Payload, body_of, chunk_record, document_record, spans_of
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import LIBRARY_KIND, State
from kebab.store.qdrant.terms import OWN
from kebab.store.tags import folded, tag_records

_SHORTEST_ID_PREFIX = 4
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#]+)(?:[|#][^\[\]]*)?\]\]")
_NOTHING = "See what is there with: kb list docs"
_AT_ONCE = 200


class QdrantCatalog:
    def __init__(self, schema: Schema, state: State, *, paths_on_disk: bool = True) -> None:
        self._schema = schema
        self._state = state
        self._filters = FilterBuilder(schema)
        self.paths_on_disk = paths_on_disk

    def documents(self, filters: SearchFilters, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        """Of those that pass only the places are read, to put them in order; and then those that are wanted."""
        chosen = self._filters.of_documents(filters)
        places = sorted(
            (point["payload"]["source"], point["payload"]["path"], point["id"])
            for point in self._schema.documents.scroll(chosen, payload=["source", "path"])
        )
        wanted = [place[2] for place in places[offset : None if limit < 0 else offset + limit]]
        found = {point["id"]: point for point in self._schema.documents.retrieve(wanted, payload=WITHOUT_BODY)}
        return [self._document(found[identifier]["payload"]) for identifier in wanted if identifier in found]

    def count_documents(self, filters: SearchFilters) -> int:
        return self._schema.documents.count(self._filters.of_documents(filters))

    def sources(self) -> list[SourceRecord]:
        documents, chunks = (
            collection.values("source") for collection in (self._schema.documents, self._schema.chunks)
        )
        return [
            SourceRecord(
                source.name,
                source.kind,
                source.root,
                source.trust_level,
                documents.get(source.name, 0),
                chunks.get(source.name, 0),
                source.ingested_at,
                source.repository,
                tuple(sorted(source.notes, key=lambda note: (len(note.folder), note.folder))),
            )
            for source in sorted(self._state.sources.values())
            if source.kind != LIBRARY_KIND
        ]

    def tags(self) -> list[TagRecord]:
        return tag_records(self._own_values("tags").items())

    def languages(self) -> list[str]:
        return sorted(self._own_values("lang"))

    def formats(self) -> list[str]:
        return sorted(self._schema.documents.values("format"))

    def find_document(self, key: str) -> DocumentRecord:
        """By id, the beginning of an id, path, SOURCE:path, or as notes link to it. Several matches are an error that
        names them.
        """
        key = storable(key)
        found = (
            self._by_id(key)
            or self._by_path(key)
            or self._in_library(key)
            or self._by_prefix(key)
            or self._by_link(key)
        )
        if len(found) > 1:
            names = sorted(f"{payload['source']}:{payload['path']}" for payload in found)
            some = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
            raise Ambiguous(
                f"{key} fits {len(found)} documents: {some}.", hint="Name one of them, as SOURCE:path or by its id."
            )
        if not found:
            raise NotFound(f"No document {key} is indexed.", hint=_NOTHING)
        return self._document(found[0])

    def in_libraries(self, path: str) -> dict[tuple[str, str], DocumentRecord]:
        path = storable(path)
        versions = {version.key: version for version in stored_versions(self._schema.catalog) if not version.in_making}
        if not versions:
            return {}
        found = self._select(
            {"must": [one_of("within", [path]), one_of("versions", sorted(versions))]}, [*WITHOUT_BODY, "versions"]
        )
        places = [
            ((versions[key].library, versions[key].tag), self._document(payload))
            for payload in found
            if payload["path"] == path
            for key in payload["versions"]
            if key in versions
        ]
        return dict(sorted(places, key=lambda place: place[0]))

    def find_chunk(self, key: str) -> ChunkRecord:
        key = storable(key)
        found = [point["payload"] for point in self._schema.chunks.retrieve([chunk_point_id(key)], payload=FOR_HITS)]
        found = found or self._chunks_by_prefix(key)
        if len(found) > 1:
            raise Ambiguous(f"{key} is the beginning of {len(found)} chunk ids.", hint="Give more of it.")
        if not found:
            raise NotFound(
                f"No chunk {key} is indexed.", hint="It may have changed since: search again for its current id."
            )
        return self._chunk(found[0])

    def chunks_of(self, doc_id: str) -> list[ChunkRecord]:
        payloads = [point["payload"] for point in self._schema.chunks.scroll(of_documents([doc_id]), payload=FOR_HITS)]
        return [self._chunk(payload) for payload in sorted(payloads, key=lambda payload: int(payload["ordinal"]))]

    def body(self, doc_id: str) -> str:
        found = self._schema.documents.retrieve([document_point_id(doc_id)], payload=TEXT)
        if not found:
            raise NotFound(f"No document {doc_id} is indexed.", hint=_NOTHING)
        return body_of(found[0]["payload"])

    def paths_beside(self, doc_id: str, paths: Iterable[str]) -> set[str]:
        wanted = set(paths)
        here = self._schema.documents.retrieve([document_point_id(doc_id)], payload=["source", "versions"])
        if not here or not wanted:
            return set()
        beside = [one_of("source", [here[0]["payload"]["source"]])]
        if versions := here[0]["payload"]["versions"]:
            beside.append(one_of("versions", versions))
        found = self._select({"must": [one_of("within", wanted)], "should": beside}, ["path"])
        return {payload["path"] for payload in found} & wanted

    def is_paged(self, doc_id: str) -> bool:
        first = {"must": [*of_documents([doc_id])["must"], {"key": "ordinal", "match": {"value": 0}}]}
        return any(
            isinstance(spans_of(point["payload"])[0], PageSpan)
            for point in self._schema.chunks.scroll(first, payload=["spans"])
        )

    def all_documents(self) -> Iterator[DocumentRecord]:
        """Without those that are damaged, which `wholeness` names."""
        own = {"must": [one_of("corpus", [OWN])]}
        places = sorted(
            (str(point["payload"].get("source")), str(point["payload"].get("path")), point["id"])
            for point in self._schema.documents.scroll(own, payload=["source", "path"])
        )
        for start in range(0, len(places), _AT_ONCE):
            some = [place[2] for place in places[start : start + _AT_ONCE]]
            found = {
                point["id"]: point["payload"] for point in self._schema.documents.retrieve(some, payload=WITHOUT_BODY)
            }
            yield from self._readable(found[identifier] for identifier in some if identifier in found)

    def _readable(self, payloads: Iterable[Payload]) -> Iterator[DocumentRecord]:
        for payload in payloads:
            try:
                document = self._document(payload)
            except Corrupt:
                continue
            yield document

    # --- finding

    def _by_id(self, key: str) -> list[Payload]:
        return [
            point["payload"]
            for point in self._schema.documents.retrieve([document_point_id(key)], payload=WITHOUT_BODY)
        ]

    def _by_path(self, key: str) -> list[Payload]:
        """path, or SOURCE:path, where both may contain colons."""
        cuts = [place for place, letter in enumerate(key) if letter == ":"]
        either: list[Filter] = [one_of("within", [key])]
        either += [{"must": [one_of("source", [key[:cut]]), one_of("within", [key[cut + 1 :]])]} for cut in cuts]
        found = self._select({"must": [one_of("corpus", [OWN])], "should": either})
        return [payload for payload in found if key in (payload["path"], f"{payload['source']}:{payload['path']}")]

    def _in_library(self, key: str) -> list[Payload]:
        """/owner/project:path, or /owner/project/version:path."""
        place, colon, path = key.partition(":")
        parts = place.split("/", 3)
        if not colon or len(parts) < 3 or parts[0]:
            return []
        versions = searched_versions(
            self._schema.catalog, f"/{parts[1]}/{parts[2]}", parts[3] if len(parts) > 3 else ""
        )
        found = self._select({"must": [one_of("within", [path]), one_of("versions", versions)]})
        return [payload for payload in found if payload["path"] == path]

    def _by_prefix(self, key: str) -> list[Payload]:
        if len(key) < _SHORTEST_ID_PREFIX or not set(key) <= set("0123456789abcdef"):
            return []
        found = self._select({"must": [one_of("head", [key[:_SHORTEST_ID_PREFIX]])]})
        return [payload for payload in found if payload["doc"].startswith(key)]

    def _chunks_by_prefix(self, key: str) -> list[Payload]:
        """The id of a chunk begins with the first eight letters of its document's."""
        documents = [payload["doc"] for payload in self._by_prefix(key[:8])]
        if not documents:
            return []
        names = self._schema.chunks.scroll(of_documents(documents), payload=["chunk"])
        fitting = [point["id"] for point in names if point["payload"]["chunk"].startswith(key)]
        return [point["payload"] for point in self._schema.chunks.retrieve(fitting, payload=FOR_HITS)]

    def _by_link(self, key: str) -> list[Payload]:
        """`Page` or `[[folder/Page#Heading|shown so]]`: a note by the end of its path, without its extension."""
        link = _WIKI_LINK.fullmatch(key.strip())
        ending = folded(f"/{link[1].strip() if link else key}.md")
        found = self._select({"must": [one_of("format", ["md"]), one_of("name", [ending.rpartition("/")[2]])]})
        return [payload for payload in found if folded(f"/{payload['path']}").endswith(ending)]

    def _select(self, chosen: Filter, fields: list[str] | None = None) -> list[Payload]:
        return [point["payload"] for point in self._schema.documents.scroll(chosen, payload=fields or WITHOUT_BODY)]

    def _own_values(self, key: str) -> dict[Any, int]:
        return self._schema.documents.values(key, {"must": [one_of("corpus", [OWN])]})

    def _document(self, payload: Payload) -> DocumentRecord:
        return document_record(payload, self._state.notes_above(payload["source"], payload["path"]))

    def _chunk(self, payload: Payload) -> ChunkRecord:
        return chunk_record(payload, self._state.notes_above(payload["source"], payload["path"]))
