"""After an interruption: what was begun is taken back or completed, and counted. Whoever writes next does that first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kebab.store.qdrant.collection import batches
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import IndexWriter, Touched, document_point_id, of_documents
from kebab.store.qdrant.payloads import TO_BE_READ_AGAIN, Payload
from kebab.store.qdrant.reanalysis import analyse_again
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import CorpusSize, stored_weights, what
from kebab.store.qdrant.terms import CORPORA
from kebab.store.qdrant.whole_points import BUT_TEXT, contradictions, is_as_derived, is_chunk_of, is_document, stored_texts

_DOCUMENTS_AT_ONCE = 100


def recover(writer: IndexWriter) -> bool:
    """Whether somebody was interrupted."""
    schema = writer.schema
    schema.drop_unused_chunks()
    found = list(schema.catalog.scroll(what("unfinished")))
    if not found:
        return False
    pledged = {point["payload"]["source"]: None for point in found if "source" in point["payload"]}
    announced = sorted((point for point in found if "number" in point["payload"]), key=lambda point: int(point["payload"]["number"]))
    documents: dict[str, Touched] = {}
    marks: dict[str, str] = {}
    to_analyse: dict[str, None] = {}
    for point in announced:
        for doc_id, touched in point["payload"]["documents"].items():
            documents.setdefault(doc_id, Touched(*touched))  # the earliest knows what was counted
            if point["payload"]["words_only"]:
                to_analyse[doc_id] = None
            else:
                marks[doc_id] = point["id"]
    if announced:
        sizes = {corpus: CorpusSize(*size) for corpus, size in announced[0]["payload"]["sizes"].items()}
        terms = {term for point in announced for term in point["payload"]["terms"]}
        writer.count_again(terms, _sizes_now(schema, sizes, documents, marks))
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


def _sizes_now(
    schema: Schema, before: Mapping[str, CorpusSize], documents: Mapping[str, Touched], marks: Mapping[str, str]
) -> dict[str, CorpusSize]:
    """When all documents that were touched have been put in order."""
    more: Counter[str] = Counter()
    for some in batches(documents, _DOCUMENTS_AT_ONCE):
        more.update(_put_in_order(schema, some, documents, marks))
    chunks = {corpus: schema.chunks.count({"must": [one_of("corpus", [corpus])]}) for corpus in CORPORA}
    return {corpus: before[corpus]._replace(chunks=chunks[corpus], tokens=before[corpus].tokens + more[corpus]) for corpus in CORPORA}


def _put_in_order(schema: Schema, doc_ids: list[str], before: Mapping[str, Touched], marks: Mapping[str, str]) -> Counter[str]:
    """A document has the chunks it names and no others, and one that is neither as it was nor as it was to be is read again. How many
    tokens more than before there are in each corpus.
    """
    points = schema.documents.retrieve(map(document_point_id, doc_ids), payload=BUT_TEXT)
    documents: dict[str, Payload] = {point["payload"]["doc"]: point["payload"] for point in points if is_document(point)}
    chunks: dict[str, list[Payload]] = {doc_id: [] for doc_id in doc_ids}
    unwanted: list[str] = []
    more: Counter[str] = Counter()
    for point in schema.chunks.scroll(of_documents(doc_ids)):
        chunk = point["payload"]
        document = documents.get(chunk["doc"])
        if document is None or not is_chunk_of(chunk, document):
            unwanted.append(point["id"])
        else:
            chunks[chunk["doc"]].append(chunk)
            more[before[chunk["doc"]].corpus] += chunk["length"]
    schema.chunks.delete(unwanted)
    for doc_id in doc_ids:
        more[before[doc_id].corpus] -= before[doc_id].tokens
    doubtful = {doc_id: document for doc_id, document in documents.items() if doc_id in marks and document["mark"] != marks[doc_id]}
    again = [document_point_id(doc_id) for doc_id in _not_whole(schema, doubtful, chunks)]
    if again:
        schema.documents.set_payload(TO_BE_READ_AGAIN, again)
    return more


def _not_whole(schema: Schema, documents: Mapping[str, Payload], chunks: Mapping[str, list[Payload]]) -> list[str]:
    """Of documents that were to be written: those of which something has been, so that they are not what they were before."""
    texts = stored_texts(schema.documents, list(documents))
    return [
        doc_id
        for doc_id, document in documents.items()
        if doc_id not in texts
        or not is_as_derived(document)
        or len(chunks[doc_id]) != len(document["chunks"])
        or any(contradictions(chunk, document) or not texts[doc_id].has(chunk) for chunk in chunks[doc_id])
    ]
