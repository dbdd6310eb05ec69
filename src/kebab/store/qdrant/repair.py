"""Checking whether the points of documents and chunks fit together, and repairing them after damage or an interruption.

A server stores whatever it is given. What is lost is read again by the next ingest.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from kebab.core.documents import chunk_id, document_id, embedded_text, stands_there
from kebab.core.errors import Corrupt
from kebab.core.text import LineTable
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Collection, Payload, Point, PointId, batches, where
from kebab.store.qdrant.libraries import StoredVersion, stored_versions
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.terms import CORPORA, LIBRARIES, OWN

WITHOUT_TEXT = {"exclude": codec.TEXT_FIELDS}
_DOCUMENT = {*codec.DOCUMENT_FIELDS, *codec.RECORD_FIELDS, *"head name aliases fingerprint chunks file_keys".split()}
_CHUNK = {
    *codec.DOCUMENT_FIELDS,
    *"chunk ordinal kind start end headings text spans text_hash columns_hash terms length average".split(),
    *("homes", "spaces"),
}
_BATCH = 100
_TEXTS_BATCH = 20
_LIBRARY_FIELDS = {"source", "versions"}
"""When a library changes, chunks get these fields before or after their document: there the document is right."""
_DATE_FIELDS = {"indexed_at", "date", "day"}


# --- checks


def is_document(point: Point) -> bool:
    """Whether the point can be read as a document."""
    payload = point["payload"] or {}
    if not payload.keys() >= _DOCUMENT or payload["corpus"] not in CORPORA:
        return False
    try:
        codec.document_record(payload, ())
        has_right_fields(payload)
    except (Corrupt, TypeError, ValueError, AttributeError):  # a value has another type than was written
        return False
    return codec.document_point_id(str(payload["doc"])) == point["id"] and isinstance(payload["chunks"], list)


def has_right_fields(document: Payload) -> bool:
    """Whether the fields that follow from others do, the id among them."""
    derived = codec.derived_fields(document["doc"], document["path"], document["tags"], document["date"])
    return (
        all(document[key] == value for key, value in derived.items())
        and sorted(document["versions"]) == sorted(document["file_keys"])
        and (document["corpus"] == LIBRARIES or document["doc"] == document_id(document["source"], document["path"]))
    )


def is_chunk_of(point: Point, document: Payload) -> bool:
    """Whether the point can be read as a chunk that the document lists, and has the id of that chunk."""
    chunk = point["payload"]
    is_listed = chunk.keys() >= _CHUNK and chunk["chunk"] in document["chunks"]
    return is_listed and point["id"] == codec.chunk_point_id(str(chunk["chunk"]))


def differing_fields(chunk: Payload, document: Payload) -> set[str]:
    """The fields of the document that the chunk repeats with another value."""
    return {key for key in codec.DOCUMENT_FIELDS if chunk[key] != document[key]}


def is_as_written(chunk: Payload, spaces: AbstractSet[str]) -> bool:
    """Whether the chunk has the text that its id and hash were made of, and vectors of known spaces only."""
    embedded = embedded_text(chunk["path"], chunk["title"], tuple(chunk["headings"]), chunk["text"])
    return (
        chunk["chunk"] == chunk_id(chunk["doc"], chunk["ordinal"], chunk["text"])
        and chunk["text_hash"] == codec.hash_of(embedded)
        and spaces >= {*chunk["spaces"], *chunk["homes"]} - {codec.EVERYWHERE}
    )


class StoredText:
    """The text of a document, in which its chunks stand."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._lines = LineTable(body)

    def contains(self, chunk: Payload) -> bool:
        """Whether the chunk stands where it says."""
        try:
            place = chunk["start"], chunk["end"], codec.spans_of(chunk)[0]
            return stands_there(chunk["text"], *place, self._body, self._lines)
        except (Corrupt, ValueError, TypeError, LookupError):  # no place, or an impossible one
            return False


def stored_texts(documents: Collection, doc_ids: list[str]) -> dict[str, StoredText]:
    """The texts of those documents whose text can be read."""
    texts = {}
    for some in batches(doc_ids, _TEXTS_BATCH):
        for point in documents.retrieve(map(codec.document_point_id, some), payload=["doc", *codec.TEXT_FIELDS]):
            try:
                texts[str(point["payload"]["doc"])] = StoredText(codec.body_of(point["payload"]))
            except Corrupt:
                continue
    return texts


# --- after damage


def repair_points(schema: Schema) -> None:
    """Afterwards every document has exactly the chunks it lists, these repeat its fields, and there are no others. The
    caller counts everything anew.
    """
    versions = {version.key: version for version in stored_versions(schema.catalog)}
    spaces = frozenset(schema.spaces())
    known: set[str] = set()
    for some in batches(schema.documents.scroll(payload=WITHOUT_TEXT), _BATCH):
        kept = [point for point in some if is_document(point) and _has_owner(schema, point["payload"], versions)]
        schema.documents.delete([point["id"] for point in some if point not in kept])
        documents = {point["payload"]["doc"]: point["payload"] for point in kept}
        known |= documents.keys()
        _repair_chunks(schema, documents, spaces)
    orphans = schema.chunks.scroll(payload=["doc"])
    schema.chunks.delete([point["id"] for point in orphans if point["payload"].get("doc") not in known])


def _has_owner(schema: Schema, document: Payload, versions: Mapping[str, StoredVersion]) -> bool:
    """Whether the document belongs to a source or to existing versions. Versions that are gone are taken off it."""
    is_own = document["corpus"] == OWN
    existing = set() if is_own else versions.keys() & set(document["versions"])
    keys = {key: file_key for key, file_key in document["file_keys"].items() if key in existing}
    sources = [versions[key].source for key in keys] or [document["source"]]
    source = document["source"] if document["source"] in sources else sources[0]
    facts = {"versions": sorted(keys), "file_keys": keys, "source": source}
    if any(document[key] != value for key, value in facts.items()):
        document.update(facts)
        schema.documents.set_payload(facts, [codec.document_point_id(document["doc"])])
    return is_own or bool(keys)


def _repair_chunks(schema: Schema, documents: Mapping[str, Payload], spaces: frozenset[str]) -> None:
    texts = stored_texts(schema.documents, list(documents))
    found: dict[str, set[str]] = {doc_id: set() for doc_id in documents}
    differing: dict[str, set[str]] = {doc_id: set() for doc_id in documents}
    unwanted: list[PointId] = []
    for point in schema.chunks.scroll(where("doc", *documents)):
        chunk = point["payload"]
        document, text = documents[chunk["doc"]], texts.get(chunk["doc"])
        if is_chunk_of(point, document) and is_as_written(chunk, spaces) and (text is None or text.contains(chunk)):
            found[chunk["doc"]].add(chunk["chunk"])
            differing[chunk["doc"]] |= differing_fields(chunk, document)
        else:
            unwanted.append(point["id"])
    schema.chunks.delete(unwanted)
    for doc_id, document in documents.items():
        if differing[doc_id]:
            _copy_fields(schema, document)
        chunks = [identifier for identifier in document["chunks"] if identifier in found[doc_id]]
        is_whole = len(chunks) == len(document["chunks"]) == document["chunk_count"]
        is_doubtful = differing[doc_id] - _LIBRARY_FIELDS  # the chunk may be right, or the document
        if not is_whole or is_doubtful or doc_id not in texts or not has_right_fields(document):
            unread = {"chunks": chunks, "chunk_count": len(chunks), **codec.UNREAD}
            schema.documents.set_payload(unread, [codec.document_point_id(doc_id)])


def _copy_fields(schema: Schema, document: Payload) -> None:
    """Writes the fields of a document to its chunks."""
    fields = {key: document[key] for key in codec.DOCUMENT_FIELDS}
    schema.chunks.set_payload(fields, where("doc", document["doc"]))


# --- after an interruption


def recover_documents(schema: Schema, doc_ids: list[str], marks: Mapping[str, PointId]) -> None:
    """Leaves each document the chunks it lists and no others, with its own fields. A document that is neither the old
    one nor the new one is read again. `marks`: of the last change of each document.
    """
    points = schema.documents.retrieve(map(codec.document_point_id, doc_ids), payload=WITHOUT_TEXT)
    documents: dict[str, Payload] = {point["payload"]["doc"]: point["payload"] for point in filter(is_document, points)}
    chunks: dict[str, list[Payload]] = {doc_id: [] for doc_id in doc_ids}
    unwanted: list[PointId] = []
    for point in schema.chunks.scroll(where("doc", *doc_ids)):
        document = documents.get(point["payload"]["doc"])
        if document is None or not is_chunk_of(point, document):
            unwanted.append(point["id"])
        else:
            chunks[document["doc"]].append(point["payload"])
    schema.chunks.delete(unwanted)
    # A document with the mark of the last change is the new one, with all its chunks.
    old = {doc_id: document for doc_id, document in documents.items() if document.get("mark") != marks[doc_id]}
    texts = stored_texts(schema.documents, list(old))
    for doc_id, document in old.items():
        if not _is_as_before(document, chunks[doc_id], texts.get(doc_id)):
            schema.documents.set_payload(codec.UNREAD, [codec.document_point_id(doc_id)])
        elif any(differing_fields(chunk, document) for chunk in chunks[doc_id]):
            _copy_fields(schema, document)


def _is_as_before(document: Payload, chunks: list[Payload], text: StoredText | None) -> bool:
    """Whether the document is as before the change, but perhaps for the dates on its chunks."""
    if text is None or not has_right_fields(document) or len(chunks) != len(document["chunks"]):
        return False
    return all(differing_fields(chunk, document) <= _DATE_FIELDS and text.contains(chunk) for chunk in chunks)
