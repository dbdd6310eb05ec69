"""Points that do not fit together put in order, as far as they can be: what is lost is read again by the next ingest."""

from __future__ import annotations

from kebab.core.documents import chunk_id, embedded_text
from kebab.store.qdrant.collection import PointId, batches
from kebab.store.qdrant.documents import hash_of
from kebab.store.qdrant.index_writer import document_point_id, of_documents
from kebab.store.qdrant.payloads import OF_DOCUMENT, Payload
from kebab.store.qdrant.schema import Schema

_DOCUMENTS_AT_ONCE = 100
OF_CHUNK = frozenset(
    {*OF_DOCUMENT, "chunk", "ordinal", "kind", "headings", "text", "spans", "text_hash", "terms", "length", "average", "homes", "spaces"}
)
"""What a whole one has in its payload."""


def put_in_order(schema: Schema) -> None:
    """Afterwards every document has exactly the chunks it names, these say of it what it says itself, and there are no others. Whoever
    calls this counts everything anew.
    """
    known: set[str] = set()
    for some in batches(schema.documents.scroll(payload=[*OF_DOCUMENT, "chunks", "chunk_count"]), _DOCUMENTS_AT_ONCE):
        documents = {point["payload"]["doc"]: point["payload"] for point in some}
        known |= documents.keys()
        _order(schema, documents)
    orphans = [point["id"] for point in schema.chunks.scroll(payload=["doc"]) if point["payload"].get("doc") not in known]
    schema.chunks.delete(orphans)


def _order(schema: Schema, documents: dict[str, Payload]) -> None:
    found: dict[str, set[str]] = {doc_id: set() for doc_id in documents}
    unwanted: list[PointId] = []
    strays: set[str] = set()
    for point in schema.chunks.scroll(of_documents(documents), payload=sorted(OF_CHUNK)):
        payload = point["payload"]
        document = documents[payload["doc"]]
        if _is_one_of(payload, document):
            found[document["doc"]].add(payload["chunk"])
            if any(payload[key] != document[key] for key in OF_DOCUMENT):
                strays.add(document["doc"])
        else:
            unwanted.append(point["id"])
    schema.chunks.delete(unwanted)
    for doc_id in strays:
        schema.chunks.set_payload({key: documents[doc_id][key] for key in OF_DOCUMENT}, of_documents([doc_id]))
    for doc_id, document in documents.items():
        there = [identifier for identifier in document["chunks"] if identifier in found[doc_id]]
        if len(there) != len(document["chunks"]) or document["chunk_count"] != len(there):
            again = {"chunks": there, "chunk_count": len(there), "content_hash": "", "mtime_ns": None, "fingerprint": ""}
            schema.documents.set_payload(again, [document_point_id(doc_id)])


def _is_one_of(chunk: Payload, document: Payload) -> bool:
    return chunk.keys() >= OF_CHUNK and chunk["chunk"] in document["chunks"] and is_as_written(chunk)


def is_as_written(chunk: Payload) -> bool:
    """Whether it has the text that its id was made of, knows the hash that its vectors go by, and says where it stands."""
    embedded = embedded_text(chunk["path"], chunk["title"], tuple(chunk["headings"]), chunk["text"])
    return (
        chunk_id(chunk["doc"], chunk["ordinal"], chunk["text"]) == chunk["chunk"]
        and hash_of(embedded) == chunk["text_hash"]
        and bool(chunk["spans"])
    )
