"""Reading back all that was written, as it was written: documents with their chunks, and the vectors of chunks."""

from __future__ import annotations

from collections.abc import Sequence

from kebab.core.libraries import VectorSpace
from kebab.core.ports import ChunkVector, IndexedDocument, Key, StoredDocument
from kebab.core.records import ContentCounts, SpaceCount
from kebab.store.qdrant.collection import Filter
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import chunk_point_id, document_point_id, of_documents
from kebab.store.qdrant.libraries import searched_versions
from kebab.store.qdrant.payloads import FILE_STATE, Payload, file_state, indexed_document
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import State
from kebab.store.qdrant.terms import OWN
from kebab.store.qdrant.vectors import stored_spaces

_OF_CHUNK = ["doc", "ordinal", "start", "end", "headings", "spans", "kind", "names"]


class QdrantContentReader:
    def __init__(self, schema: Schema, state: State) -> None:
        self._schema = schema
        self._state = state

    def stored(self, source: str) -> dict[str, StoredDocument]:
        points = self._schema.documents.scroll(
            {"must": [one_of("source", [source])]}, payload=["doc", "path", *FILE_STATE]
        )
        payloads = sorted((point["payload"] for point in points), key=lambda payload: str(payload["path"]))
        return {
            payload["path"]: StoredDocument(payload["doc"], payload["doc"], file_state(payload)) for payload in payloads
        }

    def documents(self, keys: Sequence[Key]) -> list[IndexedDocument]:
        wanted = list(map(str, keys))
        stored = {
            point["payload"]["doc"]: point["payload"]
            for point in self._schema.documents.retrieve(map(document_point_id, wanted))
        }
        chunks: dict[str, list[Payload]] = {doc_id: [] for doc_id in wanted}
        for point in self._schema.chunks.scroll(of_documents(wanted), payload=_OF_CHUNK):
            chunks[point["payload"]["doc"]].append(point["payload"])
        return [indexed_document(stored[doc_id], chunks[doc_id]) for doc_id in wanted if doc_id in stored]

    def spaces(self) -> list[VectorSpace]:
        return stored_spaces(self._state)

    def vectors_of(self, space: VectorSpace, chunk_ids: Sequence[str]) -> dict[str, ChunkVector]:
        import numpy as np

        name = space.fingerprint
        points = self._schema.chunks.retrieve(
            map(chunk_point_id, chunk_ids), payload=["chunk", "text_hash", "homes"], vectors=[name]
        )
        return {
            payload["chunk"]: ChunkVector(
                bytes.fromhex(payload["text_hash"]),
                np.array(point["vector"][name], np.float16).tobytes(),
                name in payload["homes"],
            )
            for point in points
            if name in (point.get("vector") or {})
            for payload in [point["payload"]]
        }

    def complete_vectors(self) -> str | None:
        return self._state.meta.get("complete_vectors")

    def counts(self) -> ContentCounts:
        own: Filter = one_of("corpus", [OWN])
        searched: Filter = one_of("versions", searched_versions(self._schema.catalog, "", None))
        documents, chunks = self._schema.documents, self._schema.chunks
        spaces = []
        for name in (space.fingerprint for space in self.spaces()):
            carried = {"should": [own, searched], "must": [{"has_vector": name}]}
            at_home = {"should": [own, searched], "must": [{"has_vector": name}, one_of("homes", [name])]}
            spaces.append(SpaceCount(name, chunks.count(carried), chunks.count(at_home)))
        return ContentCounts(
            documents.count({"must": [own]}),
            chunks.count({"must": [own]}),
            documents.count({"must": [searched]}),
            chunks.count({"must": [searched]}),
            tuple(spaces),
        )
