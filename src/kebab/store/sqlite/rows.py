"""Reads chunks as the records of kebab.core, and how the indexes were built. Every search uses it, so no numpy here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from kebab.core.citations import SPAN_KINDS, Citation, LineSpan, Span, span_kind
from kebab.core.errors import Corrupt
from kebab.core.ports import ChunkContext, ChunkText
from kebab.core.search import Neighbour, Neighbours
from kebab.core.text import content_hash
from kebab.store.sqlite.database import RESTORE, Connection

# The notes on a document, its folders and its source, the outermost first, for a query with `documents d`.
NOTES_ABOVE = """(SELECT group_concat(text, char(31)) FROM (
        SELECT n.text FROM context_notes n WHERE n.source_id = d.source_id
        AND (n.folder = '' OR n.folder = d.path OR n.folder || '/' = substr(d.path, 1, length(n.folder) + 1))
        ORDER BY length(n.folder)))"""

# The tags of a document, for a query with `documents d`.
TAGS_OF_DOCUMENT = """(SELECT group_concat(tag, char(31)) FROM (
        SELECT t.tag FROM document_tags t WHERE t.document_id = d.id ORDER BY t.tag))"""

# The fields of a ChunkContext in their order, with an empty text for its hash, then the column `headings`.
CONTEXTS = f"""
SELECT c.chunk_id, c.doc_id, d.path, d.title, c.heading_path, c.section_label, c.text, c.source_spans, '',
       d.chunker_version, d.doc_type, d.lang, {TAGS_OF_DOCUMENT}, d.trust_level, s.name, d.indexed_at, d.date,
       c.ordinal, c.kind, c.start_offset, c.end_offset,
       (SELECT e.model FROM chunks_vec v JOIN embedding_spaces e ON e.id = v.space_id
        WHERE v.chunk = c.id ORDER BY v.home DESC, e.id DESC LIMIT 1),
       {NOTES_ABOVE}, c.headings
FROM chunks c JOIN documents d ON d.id = c.document_id JOIN sources s ON s.id = d.source_id
"""
STATE = "d.size, d.mtime_ns, d.content_hash, d.fingerprint"
"""The columns of a FileState, in the order of its fields."""
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def split_values(joined: str | None) -> tuple[str, ...]:
    return tuple(joined.split("\x1f")) if joined else ()


def heading_list(heading_path: str, headings: str | None) -> tuple[str, ...]:
    if headings is not None:
        return tuple(stored_json(headings))
    return tuple(heading_path.split(" > ")) if heading_path else ()


def unsplittable_headings(headings: tuple[str, ...]) -> str | None:
    """Returns the headings as JSON if the column `heading_path` cannot be split into them again, or else None."""
    return None if heading_list(" > ".join(headings), None) == headings else json.dumps(headings, ensure_ascii=False)


def spans_to_json(spans: tuple[Span, ...]) -> str:
    if len(spans) == 1 and type(spans[0]) is LineSpan:  # nearly all chunks; the encoder takes five times as long
        return f'[["line",{spans[0].start},{spans[0].end}]]'
    return _compact([[span_kind(span), *span] for span in spans])


def spans_from_json(text: str) -> tuple[Span, ...]:
    try:
        return tuple(SPAN_KINDS[kind](*values) for kind, *values in json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise _not_ours(text) from error


def stored_json(text: str) -> Any:
    """The value that was stored as JSON."""
    try:
        return json.loads(text)
    except (TypeError, ValueError) as error:
        raise _not_ours(text) from error


def _not_ours(text: object) -> Corrupt:
    return Corrupt(f"The database holds a value that Kebab did not write: {str(text)[:40]!r}.", hint=RESTORE)


# CROSS JOIN makes SQLite begin with the few hits, whose neighbours an index finds.
_NEIGHBOURS = """
SELECT hit.chunk_id, near.ordinal < hit.ordinal, near.chunk_id, near.heading_path, near.headings, near.section_label,
       near.text, d.path, near.source_spans
FROM json_each(:hits) AS wanted
CROSS JOIN chunks hit ON hit.chunk_id = wanted.value
CROSS JOIN chunks near ON near.document_id = hit.document_id
    AND near.ordinal BETWEEN hit.ordinal - :count AND hit.ordinal + :count AND near.ordinal <> hit.ordinal
JOIN documents d ON d.id = hit.document_id
ORDER BY hit.id, near.ordinal
"""


def chunk_context(row: tuple[Any, ...]) -> ChunkContext:
    *stored, headings = row
    values = dict(zip(ChunkContext._fields, stored, strict=True))
    values["heading_path"] = heading_list(values["heading_path"], headings)
    values["spans"] = spans_from_json(values["spans"])
    values["content_hash"] = content_hash(values["text"])
    values |= {name: split_values(values[name]) for name in ("tags", "notes")}
    return ChunkContext(**values)


class SqliteChunkReader:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def contexts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkContext]:
        sql = f"{CONTEXTS} WHERE c.chunk_id IN (SELECT value FROM json_each(?))"
        return {row[0]: chunk_context(row) for row in self._connection.rows(sql, (json.dumps(list(chunk_ids)),))}

    def texts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkText]:
        sql = "SELECT chunk_id, doc_id, text FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))"
        rows = self._connection.rows(sql, (json.dumps(list(chunk_ids)),))
        return {chunk_id: ChunkText(*stored) for chunk_id, *stored in rows}

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> dict[str, Neighbours]:
        """Returns up to `count` chunks before and after each of these chunks."""
        found = dict.fromkeys(chunk_ids, Neighbours())
        for row in self._connection.rows(_NEIGHBOURS, {"hits": json.dumps(list(chunk_ids)), "count": count}):
            of, is_before, chunk_id, heading_path, headings, label, text, path, spans = row
            citation = Citation(path, spans_from_json(spans)[0], label, content_hash(text))
            near = Neighbour(chunk_id, heading_list(heading_path, headings), label, text, citation)
            before, after = found[of]
            found[of] = Neighbours((*before, near), after) if is_before else Neighbours(before, (*after, near))
        return found


# --- how the indexes were built


def stored_fts_config(connection: Connection) -> dict[str, object] | None:
    """Returns the configuration that the text index was built with, or None if nothing has been indexed yet."""
    stored = connection.remembered("fts_config")
    if stored is None:
        return None
    try:
        config: dict[str, object] = json.loads(stored)
        config["korean"]  # raises KeyError if it is missing
    except (KeyError, TypeError, ValueError) as error:
        hint = "Rebuild the text index with: kb index --rebuild-fts"
        raise Corrupt("What is stored of the text index cannot be read.", hint=hint) from error
    return config


class Space(NamedTuple):
    """A row of embedding_spaces."""

    id: int
    model: str
    version: str
    dimension: int
    has_codes: bool

    @property
    def fingerprint(self) -> str:
        return f"{self.model}@{self.version}:{self.dimension}"


def stored_spaces(connection: Connection) -> list[Space]:
    rows = connection.rows("SELECT id, model, version, dimension, centre IS NOT NULL FROM embedding_spaces ORDER BY id")
    return [Space._make((*row[:4], bool(row[4]))) for row in rows]
