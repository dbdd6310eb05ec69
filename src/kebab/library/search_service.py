"""Finding snippets in a library, and libraries by name. By words only: it needs neither a model nor the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kebab.analysis.query_syntax import parse
from kebab.core.citations import Citation
from kebab.core.errors import UsageError
from kebab.core.libraries import SNIPPET_KINDS, Library, LibrarySnippet
from kebab.core.ports import LexicalMatch
from kebab.core.search import SearchFilters
from kebab.library.query_preprocessor import preprocess
from kebab.library.ranking import LibraryMatch, ranked
from kebab.library.snippets import make_snippet
from kebab.library.versions import ordered

if TYPE_CHECKING:
    from kebab.core.library_ports import LibraryCatalog
    from kebab.core.store_ports import LexicalIndex

_FARTHEST = 10**9
_ENOUGH = 20
"""Snippets with all the words; with fewer, those with any of them are looked for."""


class RepositoryName(NamedTuple):
    id: str
    title: str


class SnippetResult(NamedTuple):
    snippet: LibrarySnippet
    score: float
    """bm25 as the index gives it: negative, lower is better."""
    repository: RepositoryName


class SearchService:
    def __init__(self, index: LexicalIndex, catalog: LibraryCatalog) -> None:
        self._index = index
        self._catalog = catalog

    def search_snippets(
        self,
        query: str,
        repository_id: str,
        version_id: str | None = None,
        type: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> list[SnippetResult]:
        """The best first. Without `version_id`, of all versions; an empty one is the default branch."""
        if type is not None and type not in SNIPPET_KINDS:
            raise UsageError(f"There are no snippets of type {type!r}.", hint=f"Valid: {', '.join(SNIPPET_KINDS)}.")
        if limit < 1 or not 0 <= offset < _FARTHEST or limit > _FARTHEST:
            raise UsageError(
                "A page begins at 0 or later, and has at least one snippet.",
                hint="The defaults are limit 20 and offset 0.",
            )
        library = self._catalog.find(repository_id)
        filters = SearchFilters(library=repository_id, library_version=version_id, kinds=(type,) if type else ())
        matches = self._matches(query, filters, limit, offset)
        kinds = self._catalog.kinds_of(match.chunk.chunk_id for match in matches)
        name = RepositoryName(library.library_id, library.title)
        return [SnippetResult(_snippet(match, kinds, library), match.bm25, name) for match in matches]

    def search_repositories(
        self, library_name: str, query: str | None = None, limit: int | None = 10
    ) -> list[LibraryMatch]:
        """By title, id and description, and after those by what the snippets say; `query` is a hint at what is wanted
        of it.
        """
        name = " ".join(library_name.split())
        if not name:
            return []
        if limit is not None and limit < 1:
            raise UsageError("At least one library must be asked for.", hint="The default limit is 10.")
        named = {library.library_id: library for library in self._catalog.named(name)}
        matching: dict[str, int] = {}
        texts = [parse(preprocess(text)) for text in dict.fromkeys((name, query or "")) if text.strip()]
        searched = [ordered(library) for library in self._catalog.libraries() if library.is_searchable]
        for library in searched:
            filters = SearchFilters(library=library.library_id, library_version="")
            matching[library.library_id] = max(
                self._index.count(tree, match="all", drop_stop_words=True, filters=filters) for tree in texts
            )
        found = [library for library in searched if library.library_id in named or matching[library.library_id]]
        return ranked(found, name, named=frozenset(named), matching=matching)[:limit]

    def _matches(
        self, query: str, filters: SearchFilters, limit: int, offset: int, match: str = "auto"
    ) -> tuple[LexicalMatch, ...]:
        """All words together, or each by itself when together they give too little. Not by how much is asked for: pages
        of any size are parts of one list.
        """
        tree = parse(preprocess(query))
        if match == "auto":
            together = self._index.count(tree, match="all", drop_stop_words=True, filters=filters)
            match = "all" if together >= _ENOUGH else "any"
        found = self._index.search(
            tree, match=match, drop_stop_words=True, filters=filters, limit=limit, offset=offset, type_ahead=True
        )
        return tuple(found.matches)


def _snippet(match: LexicalMatch, kinds: Mapping[str, str], library: Library) -> LibrarySnippet:
    chunk = match.chunk
    return make_snippet(
        chunk_id=chunk.chunk_id,
        kind=kinds.get(chunk.chunk_id, "info"),
        text=chunk.text,
        library=library.title,
        page=chunk.title,
        headings=chunk.heading_path,
        citation=Citation(chunk.doc_path, chunk.spans[0], chunk.section_label, chunk.content_hash),
        score=match.bm25,
    )
