"""Makes documents of any chunks for tests."""

from __future__ import annotations

from typing import Any

from kebab.core.citations import LineSpan
from kebab.core.documents import Chunk, ParsedDocument
from kebab.core.ports import FileState, IndexedDocument


def make_document(
    path: str, *texts: str, source: str = "notes", title: str | None = None, **details: Any
) -> IndexedDocument:
    """A document in which every text is one paragraph and one chunk. `details`: fields of ParsedDocument, and date,
    trust, headings, kind, state and doc_id.
    """
    body, chunks, line = "", [], 1
    for ordinal, text in enumerate(texts):
        chunks.append(
            Chunk(
                ordinal,
                len(body),
                len(body) + len(text),
                text,
                details.get("headings", ()),
                (LineSpan(line, line + text.count("\n")),),
                details.get("kind", "text"),
            )
        )
        body += text + "\n\n"
        line += text.count("\n") + 2
    parsed = ParsedDocument(
        text=body,
        title=path if title is None else title,
        blocks=(),
        doc_type=details.get("doc_type", "markdown"),
        format=details.get("format", "md"),
        lang=details.get("lang", "en"),
        tags=tuple(details.get("tags", ())),
        aliases=tuple(details.get("aliases", ())),
        metadata=details.get("metadata", {}),
    )
    return IndexedDocument(
        source=source,
        path=path,
        state=details.get("state", FileState(len(body), 1, "hash", "print")),
        parsed=parsed,
        chunks=chunks,
        chunker_version="test-1",
        date=details.get("date", "2026-01-01"),
        trust_level=details.get("trust", "primary"),
        doc_id=details.get("doc_id"),
    )
