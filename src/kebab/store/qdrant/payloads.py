"""Documents and chunks as the payload of points, and back as the records the rest of the program knows."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from kebab.analysis.derived_terms import cjk_column
from kebab.core.citations import Citation
from kebab.core.documents import Chunk, ParsedDocument
from kebab.core.errors import Corrupt
from kebab.core.ports import ChunkContext, FileState, IndexedDocument
from kebab.core.records import ChunkRecord, DocumentRecord
from kebab.core.search import Neighbour
from kebab.core.spans import SPAN_KINDS, Span, span_kind
from kebab.core.text import content_hash, count_lines
from kebab.store.fts5.chunk_columns import ChunkColumns, Names, names_in
from kebab.store.tags import folded

Payload = dict[str, Any]

BODY = "body"
IN_PARTS = ("parts", "other_parts")
"""Where the text of a document is that is too long for one request; the body then names the one that is used."""
TEXT = [BODY, *IN_PARTS]
FILE_STATE = ("size", "mtime_ns", "content_hash", "fingerprint")
TO_BE_READ_AGAIN: Payload = {"content_hash": "", "mtime_ns": None, "fingerprint": ""}
"""The state of a file that none has: the next ingest reads it."""
WITHOUT_BODY = [
    "doc", "source", "path", "title", "type", "format", "lang", "trust", "tags", "date", "size", "encoding", "line_count", "chunk_count",
    "content_hash", "chunker", "indexed_at", "metadata",
]  # fmt: skip
"""What a DocumentRecord is made of."""
OF_DOCUMENT = (
    "doc", "source", "path", "within", "title", "type", "format", "lang", "trust", "tags", "tagged", "date", "day", "chunker", "indexed_at",
    "corpus", "versions",
)  # fmt: skip
"""What chunks repeat of their documents: filters and hits need it, and a server cannot join."""
EVERYWHERE = "*"
"""Among the homes of a chunk: its words are found by questions in any script."""

LONGEST_PART = 8 << 20
"""Letters of a stored text that are sent in one request: servers take 32 MB, as long as nobody tells them otherwise."""
_COMPRESSION = 3
_ISO = re.compile(r"(\d{1,4})(?:-(\d\d))?(?:-(\d\d))?(?:[T ](\d\d))?(?::(\d\d))?(?::(\d\d))?")
_FIELDS = (10_000, 14, 33, 26, 62, 62)
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


# --- what filters ask for


def day_number(date: str) -> int:
    """A date as a number, in the order of the texts: what is missing at the end comes before everything that could
    stand there.
    """
    match = _ISO.match(date)
    number = 0
    for size, part in zip(_FIELDS, match.groups() if match else (None,) * len(_FIELDS), strict=True):
        number = number * size + (0 if part is None else int(part) + 1)
    return number


def places(path: str) -> list[str]:
    """The path itself, and all folders above it with a slash at their ends."""
    return [path, *(path[: place + 1] for place, letter in enumerate(path) if letter == "/")]


def tags_with_ancestors(tags: Sequence[str]) -> list[str]:
    """`propulsion` means `propulsion/liquid` too, in upper or lower case."""
    return sorted({above for tag in map(folded, tags) for above in _above(tag)})


def _above(tag: str) -> Iterator[str]:
    yield tag
    yield from (tag[:place] for place, letter in enumerate(tag) if letter == "/")


# --- documents


def document_payload(doc_id: str, document: IndexedDocument, corpus: str, now: str) -> Payload:
    parsed = document.parsed
    return {
        "doc": doc_id,
        "source": document.source,
        "path": document.path,
        "title": parsed.title,
        "type": parsed.doc_type,
        "format": parsed.format,
        "lang": parsed.lang,
        "trust": document.trust_level,
        "tags": sorted(_distinct(parsed.tags), key=folded),
        "aliases": list(parsed.aliases),
        "date": document.date,
        **derived(doc_id, document.path, parsed.tags, document.date),
        **dict(zip(FILE_STATE, document.state, strict=True)),
        "encoding": parsed.encoding,
        "line_count": count_lines(parsed.text),
        "chunk_count": len(document.chunks),
        "metadata": _encode(parsed.metadata),
        "chunker": document.chunker_version,
        "indexed_at": document.indexed_at or now,
        "corpus": corpus,
        "versions": [],
        BODY: b64encode(zlib.compress(parsed.text.encode("utf-8", "surrogatepass"), _COMPRESSION)).decode(),
    }


def derived(doc_id: str, path: str, tags: Sequence[str], date: str) -> Payload:
    """What filters and lookups ask for, which follows from the rest."""
    return {
        "head": doc_id[:4],
        "within": places(path),
        "name": folded(path.rpartition("/")[2]),
        "tagged": tags_with_ancestors(tags),
        "day": day_number(date),
    }


def _distinct(tags: tuple[str, ...]) -> list[str]:
    """Of tags that differ in case only the first."""
    return list({folded(tag): tag for tag in reversed(tags)}.values())


def body_of(payload: Payload) -> str:
    try:
        stored = payload[BODY]
        parts = {"0": stored} if isinstance(stored, str) else payload[stored["in"]]
        whole = "".join(parts[str(number)] for number in range(len(parts)))
        return zlib.decompress(b64decode(whole)).decode("utf-8", "surrogatepass")
    except (zlib.error, ValueError, TypeError, KeyError) as error:
        raise Corrupt("The stored text of a document cannot be read.", hint="Find it with: kb verify") from error


def parts_of(body: str) -> list[str]:
    """As they are stored, by their numbers, where a text is too long for one request."""
    return [body[start : start + LONGEST_PART] for start in range(0, len(body), LONGEST_PART)]


def file_state(payload: Payload) -> FileState:
    return FileState(*(payload.get(name) for name in FILE_STATE))  # type: ignore[arg-type]


def document_record(payload: Payload, notes: tuple[str, ...]) -> DocumentRecord:
    return DocumentRecord(
        doc_id=payload["doc"],
        source=payload["source"],
        path=payload["path"],
        title=payload["title"],
        doc_type=payload["type"],
        format=payload["format"],
        lang=payload["lang"],
        trust_level=payload["trust"],
        tags=tuple(payload["tags"]),
        date=payload["date"],
        size=payload["size"],
        encoding=payload["encoding"],
        line_count=payload["line_count"],
        chunk_count=payload["chunk_count"],
        content_hash=payload["content_hash"],
        chunker_version=payload["chunker"],
        indexed_at=payload["indexed_at"],
        metadata=_metadata(payload),
        context=notes,
    )


def _metadata(payload: Payload) -> dict[str, Any]:
    try:
        return dict(json.loads(payload["metadata"]))
    except (ValueError, TypeError) as error:
        raise Corrupt("The stored facts of a document cannot be read.", hint="Find it with: kb verify") from error


def indexed_document(payload: Payload, chunks: list[Payload]) -> IndexedDocument:
    """As it was before it was stored, without a source."""
    text = body_of(payload)
    first_title = next((chunk["names"] for chunk in chunks if chunk.get("names")), None)
    names = Names(tuple(payload["aliases"]), tuple(payload["tags"]))
    if first_title is not None:  # in the order in which the document has them
        names = names_in(first_title, payload["path"], payload["title"], payload["tags"])
    parsed = ParsedDocument(
        text=text,
        title=payload["title"],
        blocks=(),
        doc_type=payload["type"],
        format=payload["format"],
        lang=payload["lang"],
        tags=names.tags,
        aliases=names.aliases,
        metadata=_metadata(payload),
        encoding=payload["encoding"],
    )
    cut = [
        Chunk(
            chunk["ordinal"], chunk["start"], chunk["end"], text[chunk["start"] : chunk["end"]], tuple(chunk["headings"]), spans_of(chunk),
            chunk["kind"],
        )
        for chunk in sorted(chunks, key=lambda chunk: int(chunk["ordinal"]))
    ]  # fmt: skip
    rest = (payload[key] for key in ("chunker", "date", "trust", "doc", "indexed_at"))
    return IndexedDocument("", payload["path"], file_state(payload), parsed, cut, *rest)


# --- chunks


def chunk_payload(identifier: str, chunk: Chunk, names: str | None) -> Payload:
    """What is its own. `names`: by which its document is found, when they are more than the title."""
    return {
        "chunk": identifier,
        "ordinal": chunk.ordinal,
        "kind": chunk.kind,
        "start": chunk.start,
        "end": chunk.end,
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
        raise Corrupt(
            f"A passage of {payload.get('path', 'a document')} does not say where it stands.",
            hint="Find it with: kb verify",
        )
    return spans


def title_of(payload: Payload) -> str:
    """As the text index has it: the first chunk's also has tags and aliases."""
    return str(payload.get("names") or payload["title"])


def columns(payload: Payload, korean_analysis: str, note_terms: str) -> ChunkColumns:
    """What the text index knows of it."""
    heading_path, text = " > ".join(payload["headings"]), payload["text"]
    title = title_of(payload)
    cjk = cjk_column(
        korean_analysis, title, heading_path, text, is_code=payload["kind"] == "code", note_terms=note_terms
    )
    return ChunkColumns(heading_path, text, title, cjk)


def common_homes(columns: ChunkColumns, kind: str) -> list[str]:
    """Beside those of its vectors."""
    return [EVERYWHERE] if columns.cjk and kind != "code" else []


FOR_CONTEXTS = [
    "chunk", "doc", "path", "title", "headings", "text", "spans", "chunker", "type", "lang", "tags", "trust", "source", "indexed_at",
    "date", "model", "corpus",
]  # fmt: skip
"""What a ChunkContext is made of, and whose chunk it is."""


def chunk_context(payload: Payload, notes: tuple[str, ...], embedding_model: str | None = None) -> ChunkContext:
    headings = tuple(payload["headings"])
    return ChunkContext(
        payload["chunk"],
        payload["doc"],
        payload["path"],
        payload["title"],
        headings,
        headings[-1] if headings else None,
        payload["text"],
        spans_of(payload),
        content_hash(payload["text"]),
        payload["chunker"],
        payload["type"],
        payload["lang"],
        tuple(payload["tags"]),
        payload["trust"],
        payload["source"],
        payload["indexed_at"],
        payload["date"],
        embedding_model,
        notes,
    )


def chunk_record(payload: Payload, notes: tuple[str, ...]) -> ChunkRecord:
    headings = tuple(payload["headings"])
    return ChunkRecord(
        chunk_id=payload["chunk"],
        doc_id=payload["doc"],
        source=payload["source"],
        doc_path=payload["path"],
        title=payload["title"],
        ordinal=payload["ordinal"],
        kind=payload["kind"],
        heading_path=headings,
        section_label=headings[-1] if headings else None,
        start_offset=payload["start"],
        end_offset=payload["end"],
        spans=spans_of(payload),
        text=payload["text"],
        content_hash=content_hash(payload["text"]),
        chunker_version=payload["chunker"],
        context=notes,
    )


def neighbour(payload: Payload) -> Neighbour:
    headings = tuple(payload["headings"])
    label = headings[-1] if headings else None
    citation = Citation(payload["path"], spans_of(payload)[0], label, content_hash(payload["text"]))
    return Neighbour(payload["chunk"], headings, label, payload["text"], citation)
