"""Chunks by their ids, with what a hit needs to know of their documents."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from kebab.core.citations import Citation
from kebab.core.ports import ChunkContext
from kebab.core.search import Neighbour, Neighbours
from kebab.core.text import content_hash
from kebab.store.sqlite.rows import CHUNK_CONTEXT, chunk_context, heading_list, rows_of, spans_from_json

_AT_ONCE = 1000
# Led by the few hits, whose neighbours the index on document and ordinal finds.
_NEIGHBOURS = """
SELECT hit.chunk_id, near.ordinal < hit.ordinal, near.chunk_id, near.heading_path, near.headings, near.section_label, near.text,
       d.path, near.source_spans
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

    def expect(self, chunk_ids: Sequence[str]) -> None:
        """They are here."""

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
