"""Points that do not fit together put in order, as far as they can be: what is lost is read again by the next ingest."""

from __future__ import annotations

from collections.abc import Mapping

from kebab.store.qdrant.collection import PointId, batches
from kebab.store.qdrant.index_writer import document_point_id, of_documents
from kebab.store.qdrant.libraries import StoredVersion, stored_versions
from kebab.store.qdrant.payloads import OF_DOCUMENT, TO_BE_READ_AGAIN, Payload
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.terms import OWN
from kebab.store.qdrant.whole_points import (
    BUT_TEXT,
    contradictions,
    is_as_derived,
    is_as_written,
    is_chunk_of,
    is_document,
    stored_texts,
)

_DOCUMENTS_AT_ONCE = 100
_FOLLOWED = {"source", "versions"}
"""What is changed on chunks and documents one after the other, when libraries change: there the document is right."""


def put_in_order(schema: Schema) -> None:
    """Afterwards every document has exactly the chunks it names, these say of it what it says itself, and there are no
    others. Whoever calls this counts everything anew.
    """
    versions = {version.key: version for version in stored_versions(schema.catalog)}
    spaces = frozenset(schema.spaces())
    known: set[str] = set()
    for some in batches(schema.documents.scroll(payload=BUT_TEXT), _DOCUMENTS_AT_ONCE):
        documents = {point["payload"]["doc"]: point["payload"] for point in some if is_document(point)}
        unknown = [document["doc"] for document in documents.values() if not _belongs(schema, document, versions)]
        schema.documents.delete(
            [point["id"] for point in some if not is_document(point) or point["payload"]["doc"] in unknown]
        )
        documents = {doc_id: document for doc_id, document in documents.items() if doc_id not in unknown}
        known |= documents.keys()
        _order(schema, documents, spaces)
    orphans = [
        point["id"] for point in schema.chunks.scroll(payload=["doc"]) if point["payload"].get("doc") not in known
    ]
    schema.chunks.delete(orphans)


def _belongs(schema: Schema, document: Payload, versions: Mapping[str, StoredVersion]) -> bool:
    """One of a library belongs to the versions that there are, to no others, and to the source of one of them; what has
    none goes.
    """
    is_own = document["corpus"] == OWN
    there = set() if is_own else versions.keys() & set(document["versions"])
    keys = {key: of_file for key, of_file in document["file_keys"].items() if key in there}
    sources = [versions[key].source for key in keys] or [document["source"]]
    facts = {
        "versions": sorted(keys),
        "file_keys": keys,
        "source": document["source"] if document["source"] in sources else sources[0],
    }
    if any(document[key] != value for key, value in facts.items()):
        document.update(facts)
        schema.documents.set_payload(facts, [document_point_id(document["doc"])])
    return is_own or bool(keys)


def _order(schema: Schema, documents: dict[str, Payload], spaces: frozenset[str]) -> None:
    texts = stored_texts(schema.documents, list(documents))
    found: dict[str, set[str]] = {doc_id: set() for doc_id in documents}
    unwanted: list[PointId] = []
    strays: set[str] = set()
    doubtful: set[str] = set()
    """Nobody can tell whether these are right, or their chunks."""
    for point in schema.chunks.scroll(of_documents(documents)):
        chunk = point["payload"]
        document = documents[chunk["doc"]]
        text = texts.get(document["doc"])
        if is_chunk_of(point, document) and is_as_written(chunk, spaces) and (text is None or text.has(chunk)):
            found[document["doc"]].add(chunk["chunk"])
            if told := contradictions(chunk, document):
                strays.add(document["doc"])
                if not _FOLLOWED.issuperset(told):
                    doubtful.add(document["doc"])
        else:
            unwanted.append(point["id"])
    schema.chunks.delete(unwanted)
    for doc_id in strays:
        schema.chunks.set_payload({key: documents[doc_id][key] for key in OF_DOCUMENT}, of_documents([doc_id]))
    for doc_id, document in documents.items():
        there = [identifier for identifier in document["chunks"] if identifier in found[doc_id]]
        lacks_chunks = len(there) != len(document["chunks"]) or document["chunk_count"] != len(there)
        if lacks_chunks or doc_id in doubtful or doc_id not in texts or not is_as_derived(document):
            again = {"chunks": there, "chunk_count": len(there), **TO_BE_READ_AGAIN}
            schema.documents.set_payload(again, [document_point_id(doc_id)])
