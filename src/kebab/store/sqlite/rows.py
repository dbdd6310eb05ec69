"""Rows of `chunks` and `documents` as the records that the rest of the program knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import apsw

from kebab.core import deadline
from kebab.core.citations import Citation
from kebab.core.ports import ChunkContext
from kebab.core.search import Neighbour, Neighbours
from kebab.core.spans import SPAN_KINDS, LineSpan, Span, span_kind
from kebab.core.text import content_hash

# The notes that a document lies below, the outermost first, for a query that has `documents d`.
NOTES_ABOVE = """(SELECT group_concat(text, char(31)) FROM (
        SELECT n.text FROM context_notes n WHERE n.source_id = d.source_id
        AND (n.folder = '' OR n.folder = d.path OR n.folder || '/' = substr(d.path, 1, length(n.folder) + 1))
        ORDER BY length(n.folder)))"""

# The tags of a document, for a query that has `documents d`.
TAGS_OF_DOCUMENT = """(SELECT group_concat(tag, char(31)) FROM (
        SELECT t.tag FROM document_tags t WHERE t.document_id = d.id ORDER BY t.tag))"""

# The columns of a ChunkContext, for a query that has `chunks c`, `documents d` and `sources s`.
CHUNK_CONTEXT = f"""c.chunk_id, c.doc_id, d.path, d.title, c.heading_path, c.headings, c.section_label, c.text,
    c.source_spans, d.chunker_version, d.doc_type, d.lang,
    {TAGS_OF_DOCUMENT},
    d.trust_level, s.name, d.indexed_at, d.date,
    {NOTES_ABOVE}"""


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def rows_of(connection: apsw.Connection, sql: str, bindings: Any = ()) -> list[tuple[Any, ...]]:
    """All rows at once: a statement left half read would keep its snapshot, and with it the log, alive."""
    deadline.check()
    return cast("list[tuple[Any, ...]]", connection.execute(sql, bindings).fetchall())


def chunk_context(row: tuple[Any, ...], embedding_model: str | None = None) -> ChunkContext:
    chunk_id, doc_id, path, title, heading_path, headings, label, text, spans, chunker, doc_type, lang, tags, *rest = (
        row
    )
    trust, source, indexed_at, date, notes = rest
    return ChunkContext(
        chunk_id,
        doc_id,
        path,
        title,
        heading_list(heading_path, headings),
        label,
        text,
        spans_from_json(spans),
        content_hash(text),
        chunker,
        doc_type,
        lang,
        split_values(tags),
        trust,
        source,
        indexed_at,
        date,
        embedding_model,
        split_values(notes),
    )


def split_values(joined: str | None) -> tuple[str, ...]:
    return tuple(joined.split("\x1f")) if joined else ()


def heading_list(heading_path: str, headings: str | None) -> tuple[str, ...]:
    if headings is not None:
        return tuple(json.loads(headings))
    return tuple(heading_path.split(" > ")) if heading_path else ()


def unsplittable_headings(headings: tuple[str, ...]) -> str | None:
    """Only where the column `heading_path`, which is for people and for the index, cannot be split again."""
    return None if heading_list(" > ".join(headings), None) == headings else json.dumps(headings, ensure_ascii=False)


def spans_to_json(spans: tuple[Span, ...]) -> str:
    if len(spans) == 1 and type(spans[0]) is LineSpan:  # nearly all of them, and the encoder takes five times as long
        return f'[["line",{spans[0].start},{spans[0].end}]]'
    return _compact([[span_kind(span), *span] for span in spans])


def spans_from_json(text: str) -> tuple[Span, ...]:
    return tuple(SPAN_KINDS[kind](*values) for kind, *values in json.loads(text))


_AT_ONCE = 1000
# Led by the few hits, whose neighbours the index on document and ordinal finds.
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


class SqliteChunkReader:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def contexts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkContext]:
        found: dict[str, ChunkContext] = {}
        for start in range(0, len(chunk_ids), _AT_ONCE):
            some = chunk_ids[start : start + _AT_ONCE]
            rows = rows_of(
                self._connection,
                f"""SELECT (SELECT e.model FROM chunks_vec v JOIN embedding_spaces e ON e.id = v.space_id
                            WHERE v.chunk = c.id ORDER BY v.home DESC, e.id DESC LIMIT 1), {CHUNK_CONTEXT}
                    FROM chunks c JOIN documents d ON d.id = c.document_id JOIN sources s ON s.id = d.source_id
                    WHERE c.chunk_id IN ({",".join("?" * len(some))})""",
                some,
            )
            found.update((row[1], chunk_context(row[1:], row[0])) for row in rows)
        return found

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> dict[str, Neighbours]:
        """One statement for all of them."""
        found = dict.fromkeys(chunk_ids, Neighbours())
        for row in rows_of(self._connection, _NEIGHBOURS, {"hits": json.dumps(list(chunk_ids)), "count": count}):
            of, is_before, chunk_id, heading_path, headings, label, text, path, spans = row
            citation = Citation(path, spans_from_json(spans)[0], label, content_hash(text))
            neighbour = Neighbour(chunk_id, heading_list(heading_path, headings), label, text, citation)
            before, after = found[of]
            found[of] = (
                Neighbours((*before, neighbour), after) if is_before else Neighbours(before, (*after, neighbour))
            )
        return found
