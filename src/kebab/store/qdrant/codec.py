"""Converts documents and chunks to points with payloads, and payloads back to the records of `core`."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from struct import pack, unpack
from typing import Any, TypeVar

from kebab.core.citations import SPAN_KINDS, Span, span_kind
from kebab.core.documents import Chunk, ParsedDocument
from kebab.core.errors import Corrupt
from kebab.core.ports import ChunkContext, FileState, IndexedDocument
from kebab.core.records import DocumentRecord
from kebab.core.search import Neighbour
from kebab.core.text import content_hash, count_lines
from kebab.store.fts5.chunk_columns import ChunkColumns, Names, names_in
from kebab.store.qdrant.collection import Payload, PointId, point_id
from kebab.store.tags import folded

_Record = TypeVar("_Record", DocumentRecord, ChunkContext)
_KEYS = {  # by field of a record, the payload key, if it is another one
    "doc_id": "doc", "doc_path": "path", "doc_type": "type", "trust_level": "trust", "chunker_version": "chunker",
    "chunk_id": "chunk", "heading_path": "headings", "start_offset": "start", "end_offset": "end",
}  # fmt: skip
_PARSED = ("title", "format", "lang", "encoding")  # attributes of a parsed document that are stored under their name
_CUT = ("ordinal", "kind", "start", "end")  # attributes of a chunk that are stored under their name
HEAD = 4  # letters of a document's id, by which beginnings of ids are looked up
BODY = "body"
BODY_PARTS = ("parts", "other_parts")  # for a text that is too long for one request; `body` then names the one in use
TEXT_FIELDS = [BODY, *BODY_PARTS]
RECORD_FIELDS = [_KEYS.get(field, field) for field in DocumentRecord._fields if field != "context"]
HIT_FIELDS = {"exclude": ["terms", "within", "tagged", "versions", "columns_hash", "text_hash", "average", "length"]}
"""Selects all fields of a chunk but those that only filters and writers need."""
_COMPUTED = ("section_label", "content_hash", "embedding_model", "notes")
_STORED = (_KEYS.get(field, field) for field in ChunkContext._fields if field not in _COMPUTED)
CONTEXT_FIELDS = ["corpus", "homes", "spaces", *_STORED]
DOCUMENT_FIELDS = (
    *"doc source path within title type format lang trust tags tagged date day chunker indexed_at".split(),
    *("corpus", "versions"),
)  # document fields that every chunk repeats, because a server cannot join points
UNREAD: Payload = {"content_hash": "", "mtime_ns": None, "fingerprint": ""}  # of no file, so that it is read again
EVERYWHERE = "*"  # a primary space that stands for all: questions in any script find the chunk's words

PART_LENGTH = 8 << 20  # letters of a stored text in one request: servers accept 32 MB by default
_COMPRESSION = 3
_ISO = re.compile(r"(\d{1,4})(?:-(\d\d))?(?:-(\d\d))?(?:[T ](\d\d))?(?::(\d\d))?(?::(\d\d))?")
_DATE_UNITS = (10_000, 14, 33, 26, 62, 62)
_CHUNK_ID = re.compile("[0-9a-f]{20}")
_PADDING = "0" * 12  # fills a chunk id up to the length of a UUID
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


document_point_id = partial(point_id, "document")  # the point of a document, by its id


def chunk_point_id(chunk_id: str) -> str:
    """The id of a chunk's point. It contains the chunk id, so that search results name their chunks without a payload,
    and the order of the points is that of the chunk ids.
    """
    if not _CHUNK_ID.fullmatch(chunk_id):
        return point_id("chunk", chunk_id)  # the caller's text is no id of a chunk
    return f"{chunk_id[:8]}-{chunk_id[8:12]}-{chunk_id[12:16]}-{chunk_id[16:]}-{_PADDING}"


def chunk_of(point: PointId) -> str:
    return str(point).replace("-", "")[: -len(_PADDING)]


def hash_of(*texts: str) -> str:
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def to_float16(vector: Sequence[float]) -> bytes:
    return pack(f"<{len(vector)}e", *vector)


def from_float16(data: bytes) -> list[float]:
    return list(unpack(f"<{len(data) // 2}e", data))


def document_payload(doc_id: str, document: IndexedDocument, corpus: str, now: str) -> Payload:
    parsed = document.parsed
    distinct = {folded(tag): tag for tag in reversed(parsed.tags)}
    return {
        "doc": doc_id,
        "source": document.source,
        "path": document.path,
        "type": parsed.doc_type,
        "trust": document.trust_level,
        "tags": [distinct[tag] for tag in sorted(distinct)],
        "aliases": list(parsed.aliases),
        "date": document.date,
        **derived_fields(doc_id, document.path, parsed.tags, document.date),
        **document.state._asdict(),
        **{key: getattr(parsed, key) for key in _PARSED},
        "line_count": count_lines(parsed.text),
        "chunk_count": len(document.chunks),
        "metadata": _encode(parsed.metadata),
        "chunker": document.chunker_version,
        "indexed_at": document.indexed_at or now,
        "corpus": corpus,
        BODY: b64encode(zlib.compress(parsed.text.encode("utf-8", "surrogatepass"), _COMPRESSION)).decode(),
    }


def derived_fields(doc_id: str, path: str, tags: Sequence[str], date: str) -> Payload:
    """The fields for filters and lookups, computed from other fields. `within` has the path and all folders above it;
    `tagged` has the tags and all tags above them, such as a for a/b.
    """
    return {
        "head": doc_id[:HEAD],
        "within": [path, *_beginnings(path, 1)],
        "name": folded(path.rpartition("/")[2]),
        "tagged": sorted({above for tag in map(folded, tags) for above in (tag, *_beginnings(tag, 0))}),
        "day": day_number(date),
    }


def _beginnings(path: str, with_slash: int) -> list[str]:
    return [path[: place + with_slash] for place, letter in enumerate(path) if letter == "/"]


def day_number(date: str) -> int:
    """A date as a number that sorts like its text: a missing part sorts before all values of that part."""
    match = _ISO.match(date)
    number = 0
    for size, part in zip(_DATE_UNITS, match.groups() if match else (None,) * len(_DATE_UNITS), strict=True):
        number = number * size + (0 if part is None else int(part) + 1)
    return number


def body_of(payload: Payload) -> str:
    try:
        stored = payload[BODY]
        parts = {"0": stored} if isinstance(stored, str) else payload[stored["in"]]
        joined = "".join(parts[str(number)] for number in range(len(parts)))
        return zlib.decompress(b64decode(joined)).decode("utf-8", "surrogatepass")
    except (zlib.error, ValueError, TypeError, KeyError) as error:
        raise Corrupt("The stored text of a document cannot be read.", hint="Find it with: kb verify") from error


def parts_of(body: str) -> list[str]:
    """A stored text in parts, each small enough for one request."""
    return [body[start : start + PART_LENGTH] for start in range(0, len(body), PART_LENGTH)]


def file_state(payload: Payload) -> FileState:
    return FileState(*map(payload.get, FileState._fields))  # type: ignore[arg-type]


def _metadata(payload: Payload) -> dict[str, Any]:
    try:
        return dict(json.loads(payload["metadata"]))
    except (ValueError, TypeError) as error:
        raise Corrupt("The stored facts of a document cannot be read.", hint="Find it with: kb verify") from error


def indexed_document(payload: Payload, chunks: list[Payload]) -> IndexedDocument:
    """Rebuilds the document that was stored, from its payload and those of its chunks. Its source is left empty."""
    text = body_of(payload)
    names = Names(tuple(payload["aliases"]), tuple(payload["tags"]))
    if first_title := next((chunk["names"] for chunk in chunks if chunk.get("names")), None):
        names = names_in(first_title, payload["path"], payload["title"], payload["tags"])  # in their original order
    parsed = ParsedDocument(
        text=text,
        blocks=(),
        doc_type=payload["type"],
        tags=names.tags,
        aliases=names.aliases,
        metadata=_metadata(payload),
        **{key: payload[key] for key in _PARSED},
    )
    cut = [
        Chunk(
            **{key: chunk[key] for key in _CUT},
            text=text[chunk["start"] : chunk["end"]],
            heading_path=tuple(chunk["headings"]),
            spans=spans_of(chunk),
        )
        for chunk in sorted(chunks, key=lambda chunk: int(chunk["ordinal"]))
    ]
    rest = (payload[key] for key in ("chunker", "date", "trust", "doc", "indexed_at"))
    return IndexedDocument("", payload["path"], file_state(payload), parsed, cut, *rest)


def chunk_payload(identifier: str, chunk: Chunk, names: str | None) -> Payload:
    """The fields of a chunk without those of its document. `names`: its title column, if it has more than the title."""
    return {
        "chunk": identifier,
        **{key: getattr(chunk, key) for key in _CUT},
        "spans": [[span_kind(span), *span] for span in chunk.spans],
        "headings": list(chunk.heading_path),
        "text": chunk.text,
        **({"names": names} if names is not None else {}),
    }


def spans_of(payload: Payload) -> tuple[Span, ...]:
    try:
        spans = tuple(SPAN_KINDS[kind](*values) for kind, *values in payload["spans"])
    except (KeyError, TypeError, ValueError):
        spans = ()
    if not spans:
        message = f"A passage of {payload.get('path', 'a document')} does not say where it stands."
        raise Corrupt(message, hint="Find it with: kb verify")
    return spans


def title_of(payload: Payload) -> str:
    """The title column of a chunk. On the first chunk of a document it has the tags and aliases too."""
    return str(payload.get("names") or payload["title"])


def primaries(columns: ChunkColumns, kind: str, before: Sequence[str] = ()) -> list[str]:
    """The primary spaces of a chunk: those it had before, and EVERYWHERE if it has CJK terms and is not code."""
    kept = [space for space in before if space != EVERYWHERE]
    return [*kept, EVERYWHERE] if columns.cjk and kind != "code" else kept


def _record(of: type[_Record], payload: Payload, **computed: Any) -> _Record:
    stored = {field: payload[_KEYS.get(field, field)] for field in of._fields if field not in computed}
    return of(**stored, **computed)


def document_record(payload: Payload, notes: tuple[str, ...]) -> DocumentRecord:
    return _record(DocumentRecord, payload, tags=tuple(payload["tags"]), metadata=_metadata(payload), context=notes)


def chunk_context(payload: Payload, notes: tuple[str, ...] = (), model: str | None = None) -> ChunkContext:
    headings, text_hash = tuple(payload["headings"]), content_hash(payload["text"])
    place = {"heading_path": headings, "section_label": headings[-1] if headings else None, "spans": spans_of(payload)}
    more = {"tags": tuple(payload["tags"]), "embedding_model": model, "notes": notes}
    return _record(ChunkContext, payload, **place, **more, content_hash=text_hash)


def neighbour(payload: Payload) -> Neighbour:
    chunk = chunk_context(payload)
    return Neighbour(chunk.chunk_id, chunk.heading_path, chunk.section_label, chunk.text, chunk.citation)
