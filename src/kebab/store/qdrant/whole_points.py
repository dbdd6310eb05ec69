"""What a whole point is, of a document and of a chunk. One that is not was damaged: a server keeps whatever it is
given.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from kebab.core.documents import chunk_id, document_id, embedded_text
from kebab.core.errors import Corrupt
from kebab.core.places import stands_there
from kebab.core.text import LineTable
from kebab.store.qdrant.collection import Collection, Point, batches
from kebab.store.qdrant.documents import hash_of
from kebab.store.qdrant.index_writer import chunk_point_id, document_point_id
from kebab.store.qdrant.payloads import (
    EVERYWHERE,
    OF_DOCUMENT,
    TEXT,
    WITHOUT_BODY,
    Payload,
    body_of,
    derived,
    document_record,
    spans_of,
)
from kebab.store.qdrant.terms import CORPORA, LIBRARIES

WHOLE_DOCUMENT = frozenset(
    {*OF_DOCUMENT, *WITHOUT_BODY, "head", "name", "aliases", "fingerprint", "chunks", "file_keys"}
)
"""What a whole document has in its payload, beside its text."""
WHOLE_CHUNK = frozenset(
    {*OF_DOCUMENT, "chunk", "ordinal", "kind", "start", "end", "headings", "text", "spans", "text_hash", "columns_hash", "terms", "length",
     "average", "homes", "spaces"}
)  # fmt: skip
BUT_TEXT = {"exclude": TEXT}
"""Of the payload of documents."""
_TEXTS_AT_ONCE = 20


def is_document(point: Point) -> bool:
    """Whether it can be read as one."""
    payload = point["payload"] or {}
    if (
        not payload.keys() >= WHOLE_DOCUMENT
        or document_point_id(str(payload["doc"])) != point["id"]
        or payload["corpus"] not in CORPORA
    ):
        return False
    try:
        document_record(payload, ())
        is_as_derived(payload)
    except (
        Corrupt,
        TypeError,
        ValueError,
        AttributeError,
    ):  # something in it is of another kind than it was written as
        return False
    return isinstance(payload["chunks"], list)


def is_as_derived(document: Payload) -> bool:
    """Whether its id is made of its place, what filters ask for is what follows from the rest, and the versions are
    those of its files.
    """
    known = derived(document["doc"], document["path"], document["tags"], document["date"])
    return (
        all(document[key] == value for key, value in known.items())
        and sorted(document["versions"]) == sorted(document["file_keys"])
        and (document["corpus"] == LIBRARIES or document["doc"] == document_id(document["source"], document["path"]))
    )


def is_chunk_of(point: Point, document: Payload) -> bool:
    """Whether it can be read as one that the document names, and is found where one looks for it."""
    chunk = point["payload"]
    return (
        chunk.keys() >= WHOLE_CHUNK
        and chunk["chunk"] in document["chunks"]
        and point["id"] == chunk_point_id(str(chunk["chunk"]))
    )


def contradictions(chunk: Payload, document: Payload) -> list[str]:
    """What a chunk says of its document that this does not say itself."""
    return [key for key in OF_DOCUMENT if chunk[key] != document[key]]


def is_as_written(chunk: Payload, spaces: AbstractSet[str]) -> bool:
    """Whether it has the text that its id was made of, knows the hash that its vectors go by, and has vectors in known
    spaces only.
    """
    embedded = embedded_text(chunk["path"], chunk["title"], tuple(chunk["headings"]), chunk["text"])
    identifier, text_hash = chunk_id(chunk["doc"], chunk["ordinal"], chunk["text"]), hash_of(embedded)
    return (identifier, text_hash) == (chunk["chunk"], chunk["text_hash"]) and spaces >= {
        *chunk["spaces"],
        *chunk["homes"],
    } - {EVERYWHERE}


class StoredText:
    """The text of a document, and what is to stand in it."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._lines = LineTable(body)

    def has(self, chunk: Payload) -> bool:
        """Where it says that it stands."""
        try:
            return stands_there(
                chunk["text"], chunk["start"], chunk["end"], spans_of(chunk)[0], self._body, self._lines
            )
        except (Corrupt, ValueError, TypeError, LookupError):  # no place, or none that there can be
            return False


def stored_texts(documents: Collection, doc_ids: list[str]) -> dict[str, StoredText]:
    """Of those whose text can be read."""
    texts = {}
    for some in batches(doc_ids, _TEXTS_AT_ONCE):
        points: list[dict[str, Any]] = documents.retrieve(map(document_point_id, some), payload=["doc", *TEXT])
        for point in points:
            try:
                texts[str(point["payload"]["doc"])] = StoredText(body_of(point["payload"]))
            except Corrupt:
                continue
    return texts
