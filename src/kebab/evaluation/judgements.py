"""Looks up the documents, chunks and spans that a golden set expects, and grades hits by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from kebab.core.citations import Citation, parse
from kebab.core.errors import Ambiguous, NotFound
from kebab.core.spans import LineSpan, PageSpan
from kebab.core.text import nfc
from kebab.evaluation.golden_sets import GoldenQuery, GoldenSet, file_stem, listed
from kebab.evaluation.metrics import Lines

if TYPE_CHECKING:
    from kebab.core.records import DocumentRecord
    from kebab.core.search import Duplicate, SearchHit
    from kebab.knowledge_base import KnowledgeBase


class Expected(NamedTuple):
    """One thing that a query should find."""

    name: str
    kind: Literal["doc", "chunk", "span"]
    grade: int
    unit: str | None
    """The id of a document, page or chunk that hits are compared with; None if it is not in the index."""
    doc_id: str | None
    lines: Lines | None = None
    """The lines or the page of a span."""


class Judgement(NamedTuple):
    """A golden query, with the things it expects looked up in the index."""

    golden: GoldenQuery
    ranked_by: Literal["doc", "page", "chunk"]
    expected: tuple[Expected, ...]
    types: tuple[str, ...]
    """The types of the documents that the query should find."""

    @property
    def grades(self) -> dict[str, int]:
        """Grades by unit. A thing that is not in the index gets a unit of its own, so that it counts as missed."""
        return {thing.unit or f"?{thing.name}": thing.grade for thing in self.expected if thing.kind != "span"}

    @property
    def spans(self) -> tuple[Lines, ...]:
        return tuple(thing.lines for thing in self.expected if thing.lines is not None)

    def units_of(self, hit: SearchHit) -> list[str]:
        """The unit of the hit, then those of its duplicates."""
        return [self._unit(hit), *map(self._unit, hit.duplicates)]

    def gains(self, hits: Iterable[SearchHit]) -> list[int]:
        """The grades of hits in order of rank; each unit counts once, at its first rank. A duplicate of a hit counts
        right after it if it is expected, else not at all.
        """
        grades, met, gains = self.grades, set[str](), list[int]()
        for hit in hits:
            own, *copies = self.units_of(hit)
            for unit in (own, *(copy for copy in copies if copy in grades)):
                if unit not in met:
                    met.add(unit)
                    gains.append(grades.get(unit, 0))
        return gains

    def _unit(self, hit: SearchHit | Duplicate) -> str:
        if self.ranked_by == "chunk":
            return hit.chunk_id
        return _page_unit(hit.doc_id, hit.citation.span) if self.ranked_by == "page" else hit.doc_id


def _page_unit(doc_id: str, span: object) -> str:
    return f"{doc_id}#page={span.page}" if isinstance(span, PageSpan) else doc_id


def lines_of(doc_id: str, citation: Citation) -> Lines | None:
    """The lines or the page that a citation covers; None if it has neither."""
    if isinstance(citation.span, PageSpan):
        return Lines(doc_id, citation.span.page, citation.span.page, page=True)
    return Lines(doc_id, *citation.lines) if citation.lines is not None else None


def judge(
    golden: GoldenSet, kb: KnowledgeBase, documents: Sequence[DocumentRecord], *, skip_unknown: bool
) -> tuple[list[Judgement], list[str]]:
    """The judgements in the order of the set, and the names in them that are not in the index. Such names raise
    NotFound unless `skip_unknown`.
    """
    names = _Names(kb, documents)
    judgements = [_judgement(query, names) for query in golden.queries]
    unknown = list(
        dict.fromkeys(
            f"{thing.name}" for judgement in judgements for thing in judgement.expected if thing.doc_id is None
        )
    )
    if unknown and not skip_unknown:
        raise NotFound(
            f"{golden.name} expects what is not in the index, {len(unknown):,} in all: {listed(unknown)}.",
            hint=_what_to_do(golden),
        )
    return judgements, unknown


def _what_to_do(golden: GoldenSet) -> str:
    if golden.kind == "beir":
        return (
            "Add --ingest, if the collection is not indexed yet. What its judgements name and its corpus.jsonl lacks "
            "counts as missed "
            "with --skip-unknown."
        )
    return "Correct them (see: kb list docs), ingest what is missing, or add --skip-unknown to count these as missed."


class _Names:
    """Finds documents by id, path, SOURCE:path, or path without extension."""

    def __init__(self, kb: KnowledgeBase, documents: Sequence[DocumentRecord]) -> None:
        self._kb = kb
        self._by_name: dict[str, list[DocumentRecord]] = {}
        self._by_stem: dict[str, list[DocumentRecord]] = {}
        for record in documents:
            for name in (record.doc_id, record.path, f"{record.source}:{record.path}"):
                self._by_name.setdefault(name, []).append(record)
            self._by_stem.setdefault(record.path.rpartition(".")[0] or record.path, []).append(record)
        self._pages: dict[str, set[int]] = {}

    def has_page(self, record: DocumentRecord, page: int) -> bool:
        """Whether the document has a passage on this page."""
        if record.doc_id not in self._pages:
            chunks = self._kb.document(record.doc_id)[1]
            spans = [span for chunk in chunks for span in chunk.spans]
            self._pages[record.doc_id] = {span.page for span in spans if isinstance(span, PageSpan)}
        return page in self._pages[record.doc_id]

    def document(self, name: str) -> DocumentRecord | None:
        """The document, or None. If several have this path, the error names them."""
        name = nfc(name)
        found = self._by_name.get(name) or self._by_stem.get(name) or self._by_stem.get(file_stem(name)) or []
        if len(found) > 1:
            both = ", ".join(f"{record.source}:{record.path}" for record in found)
            raise Ambiguous(
                f"{name} is expected and fits {len(found)} documents: {both}.", hint="Write it as SOURCE:path."
            )
        return found[0] if found else None

    def chunk(self, name: str) -> tuple[str, DocumentRecord | None] | None:
        try:
            found = self._kb.chunk(name)
        except NotFound:
            return None
        return found.chunk_id, self.document(found.doc_id)


def _judgement(query: GoldenQuery, names: _Names) -> Judgement:
    spans = [_span(written, names) for written in query.expected_spans]
    docs = dict(query.expected_docs)
    if not docs and not query.expected_chunks:
        docs = {parse(written)[0]: 1 for written in query.expected_spans}
    by_page = False
    expected: list[Expected] = []
    types: dict[str, None] = {}
    for name, grade in docs.items():
        record, span = names.document(name), None
        if record is None:
            path, span = parse(name)
            record = names.document(path) if isinstance(span, PageSpan) else None
            record = record if record and isinstance(span, PageSpan) and names.has_page(record, span.page) else None
        by_page = by_page or (record is not None and span is not None)
        types |= {record.doc_type: None} if record else {}
        expected.append(
            Expected(name, "doc", grade, record and _page_unit(record.doc_id, span), record and record.doc_id)
        )
    for name in query.expected_chunks:
        chunk_id, record = names.chunk(name) or (None, None)
        types |= {record.doc_type: None} if record else {}
        expected.append(Expected(name, "chunk", 1, chunk_id, record and record.doc_id))
    if query.expected_chunks:  # chunks decide the ranking; documents that are not in the index stay, to be reported
        expected = [thing for thing in expected if thing.kind == "chunk" or thing.doc_id is None]
    ranked_by: Literal["doc", "page", "chunk"] = "chunk" if query.expected_chunks else "page" if by_page else "doc"
    return Judgement(query, ranked_by, (*expected, *spans), tuple(types))


def _span(written: str, names: _Names) -> Expected:
    path, span = parse(written)
    record = names.document(path)
    lines = None
    if record is not None and isinstance(span, LineSpan):
        # A document read page by page has no lines, so a span of lines is not in the index.
        lines = Lines(record.doc_id, span.start, span.end) if 1 <= span.start <= span.end <= record.line_count else None
    elif record is not None and isinstance(span, PageSpan) and names.has_page(record, span.page):
        lines = Lines(record.doc_id, span.page, span.page, page=True)
    doc_id = record.doc_id if record is not None and lines is not None else None
    return Expected(written, "span", 1, doc_id, doc_id, lines)
