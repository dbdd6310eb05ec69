"""After an interruption: what was begun is taken back or completed, and counted. Whoever writes next does that first."""

from __future__ import annotations

from collections.abc import Mapping

from kebab.store.qdrant.collection import PointId, batches
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import IndexWriter, document_point_id, of_documents
from kebab.store.qdrant.payloads import OF_DOCUMENT, TO_BE_READ_AGAIN, Payload
from kebab.store.qdrant.reanalysis import analyse_again
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import stored_weights, what
from kebab.store.qdrant.whole_points import (
    BUT_TEXT,
    contradictions,
    is_as_derived,
    is_chunk_of,
    is_document,
    stored_texts,
)

_DOCUMENTS_AT_ONCE = 100
_WHEN = frozenset({"indexed_at", "date", "day"})


def recover(writer: IndexWriter) -> bool:
    """Whether somebody was interrupted."""
    schema = writer.schema
    schema.drop_unused_chunks()
    found = sorted(schema.catalog.scroll(what("unfinished")), key=lambda point: int(point["payload"].get("at") or 0))
    if not found:
        return False
    told = [point["payload"] for point in found]
    pledged = {payload["source"] for payload in told if "source" in payload}
    to_analyse: dict[str, None] = {}
    marks: dict[str, PointId] = {}
    for point in found:
        for doc_id in point["payload"].get("documents") or ():
            if point["payload"].get("words_only"):
                to_analyse[doc_id] = None
            else:
                marks[doc_id] = point["id"]  # of the last one
    for some in batches(marks, _DOCUMENTS_AT_ONCE):
        _put_in_order(schema, some, marks)
    if all("source" in payload or "terms" in payload for payload in told):
        writer.count_again({term for payload in told for term in payload.get("terms") or ()})
    else:
        writer.count_everything()
    for source in pledged:
        of_source = schema.documents.scroll({"must": [one_of("source", [source])]}, payload=["doc"])
        to_analyse.update(dict.fromkeys(point["payload"]["doc"] for point in of_source))
    korean_analysis = writer.state.korean_analysis
    if to_analyse and korean_analysis is not None:
        for some in batches(to_analyse, _DOCUMENTS_AT_ONCE):
            analyse_again(writer, some, korean_analysis, stored_weights(writer.state))
        writer.flush()
    schema.catalog.delete([point["id"] for point in found])
    return True


def _put_in_order(schema: Schema, doc_ids: list[str], marks: Mapping[str, PointId]) -> None:
    """A document has the chunks it names and no others, and these say of it what it says itself. One that is neither as
    it was nor as it was to be is read again.
    """
    points = schema.documents.retrieve(map(document_point_id, doc_ids), payload=BUT_TEXT)
    documents: dict[str, Payload] = {
        point["payload"]["doc"]: point["payload"] for point in points if is_document(point)
    }
    chunks: dict[str, list[Payload]] = {doc_id: [] for doc_id in doc_ids}
    unwanted: list[str] = []
    for point in schema.chunks.scroll(of_documents(doc_ids)):
        chunk = point["payload"]
        document = documents.get(chunk["doc"])
        if document is None or not is_chunk_of(point, document):
            unwanted.append(point["id"])
        else:
            chunks[chunk["doc"]].append(chunk)
    schema.chunks.delete(unwanted)
    unwritten = {doc_id: document for doc_id, document in documents.items() if document.get("mark") != marks[doc_id]}
    again = _not_whole(schema, unwritten, chunks)
    if again:
        schema.documents.set_payload(TO_BE_READ_AGAIN, list(map(document_point_id, again)))
    for doc_id, document in unwritten.items():
        if doc_id not in again and any(contradictions(chunk, document) for chunk in chunks[doc_id]):
            schema.chunks.set_payload({key: document[key] for key in OF_DOCUMENT}, of_documents([doc_id]))


def _not_whole(schema: Schema, documents: Mapping[str, Payload], chunks: Mapping[str, list[Payload]]) -> list[str]:
    """Of documents that were to be written: those of which more has been than when, so that they are not what they were
    before.
    """
    texts = stored_texts(schema.documents, list(documents))
    return [
        doc_id
        for doc_id, document in documents.items()
        if doc_id not in texts
        or not is_as_derived(document)
        or len(chunks[doc_id]) != len(document["chunks"])
        or any(
            not _WHEN.issuperset(contradictions(chunk, document)) or not texts[doc_id].has(chunk)
            for chunk in chunks[doc_id]
        )
    ]
