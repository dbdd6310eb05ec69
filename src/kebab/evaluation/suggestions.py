"""Suggests queries for a golden set from the headings of the documents, for a person to review."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from kebab.core.documents import Block
from kebab.core.errors import ParseError
from kebab.core.records import DocumentRecord
from kebab.core.search import SearchFilters
from kebab.core.text import LineTable
from kebab.knowledge_base import KnowledgeBase
from kebab.parsing.registry import parser_for
from kebab.wire.evaluation import EvalSuggestionV1

_HEADER = """\
# Candidates for a golden set, from the headings of your documents. Go over each of them:
#   query           write it as you would ask; a heading word for word is too easy
#   expected_docs   all documents that answer it
#   expected_spans  the lines that hold the answer
# Take out what nobody would ask, and add questions without an answer (unanswerable: true).
# Then: kb eval run FILE
"""
_WITH_HEADINGS = frozenset({"markdown", "note"})
_SLUG = re.compile(r"\W+")
_HAS_WORDS = re.compile(r"[^\W\d_]{2,}")
_LONGEST = 120
_LONGEST_ID = 60


class _Section(NamedTuple):
    document: DocumentRecord
    name: str
    """The path of the document, or SOURCE:path if several documents have this path."""
    heading: str
    parent: str
    """The nearest heading of a higher level; empty if there is none."""
    first: int
    last: int


def suggest(kb: KnowledgeBase, filters: SearchFilters | None = None, *, count: int = 25) -> list[EvalSuggestionV1]:
    """Suggestions from the first section of every document, then from the second, …, so many documents are used."""
    documents = [document for document in kb.documents(filters) if document.doc_type in _WITH_HEADINGS]
    paths = Counter(document.path for document in documents)
    by_document = [list(_sections(document, kb, paths)) for document in documents]
    how_often = Counter(section.heading.casefold() for sections in by_document for section in sections)
    suggested: dict[str, EvalSuggestionV1] = {}
    for section in (section for sections in zip_longest(*by_document) for section in sections if section is not None):
        query = _query(section, repeated=how_often[section.heading.casefold()] > 1)
        id = _slug(query)
        if not id or id in suggested:
            continue
        lines = f"{section.name}#L{section.first}-L{section.last}"
        suggested[id] = EvalSuggestionV1(id=id, query=query, expected_docs=[section.name], expected_spans=[lines])
        if len(suggested) == count:
            break
    return list(suggested.values())


def _sections(document: DocumentRecord, kb: KnowledgeBase, paths: Counter[str]) -> Iterator[_Section]:
    """The text below each heading, up to the next one; the section of the document's title comes last."""
    name = document.path if paths[document.path] == 1 else f"{document.source}:{document.path}"
    headings, lines = _headings(kb.fetch_document(document.doc_id).text, document.path)
    above: list[Block] = []
    sections = []
    for heading, following in zip_longest(headings, headings[1:]):
        above = [block for block in above if block.level < heading.level]
        first, last = lines.line_of(heading.start), lines.line_of(following.start) - 1 if following else len(lines)
        last = _without_blank_lines(lines, first, last)
        title = " ".join(heading.title.split())
        if last > lines.lines_of(heading.start, heading.end)[1] and _HAS_WORDS.search(title) and len(title) <= _LONGEST:
            parent = " ".join(above[-1].title.split()) if above else ""
            sections.append(_Section(document, name, title, parent, first, last))
        above.append(heading)
    yield from (section for section in sections if section.parent)
    yield from (section for section in sections if not section.parent)


def _headings(text: str, path: str) -> tuple[list[Block], LineTable]:
    """The headings that the parser finds in the indexed text; none if the parser changes it or reads it in pages."""
    try:
        parsed = parser_for(path).parse(text.encode("utf-8", "surrogatepass"), path)
    except ParseError:  # the text of an office file cannot be parsed as an office file
        return [], LineTable("")
    if parsed.text != text or parsed.paged:
        return [], LineTable("")
    return [block for block in parsed.blocks if block.kind == "heading" and block.title], LineTable(parsed.text)


def _without_blank_lines(lines: LineTable, first: int, last: int) -> int:
    while last > first and not lines.slice(last, last).strip():
        last -= 1
    return last


def _query(section: _Section, *, repeated: bool) -> str:
    """The heading; if it alone is too general ("Overview"), with the heading above it."""
    above = section.parent or section.document.title
    alone = not repeated and len(section.heading.split()) > 2
    if alone or above.casefold() == section.heading.casefold() or not above:
        return section.heading
    return f"{above}: {section.heading}"


def _slug(query: str) -> str:
    return _SLUG.sub("-", query.casefold()).strip("-")[:_LONGEST_ID].strip("-")


def as_yaml(suggestions: Sequence[EvalSuggestionV1]) -> str:
    """A golden set that `kb eval run` reads, with instructions for its reviewer."""
    import yaml

    entries = [vars(suggestion) for suggestion in suggestions]
    return _HEADER + (
        "\n" + yaml.safe_dump(entries, allow_unicode=True, sort_keys=False, width=1000) if entries else ""
    )
