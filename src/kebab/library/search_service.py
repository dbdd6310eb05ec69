"""SearchService: libraries by name, the snippets of one library, and a page of its documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kebab.core.citations import Citation
from kebab.core.deadline import time_limit
from kebab.core.errors import NotFound, SourceError, UsageError
from kebab.core.libraries import SNIPPET_KINDS, Library, LibrarySnippet
from kebab.core.notices import Notice, Says
from kebab.core.query_tree import parse
from kebab.core.search import SearchFilters
from kebab.library.docs import DEFAULT_TOKENS, LibraryDocs, VersionChoice, chosen_version, page_of, rules_within
from kebab.library.query_preprocessor import preprocess
from kebab.library.ranking import LibraryMatch, ranked
from kebab.library.snippets import make_snippet
from kebab.library.versions import ordered
from kebab.search.options import SearchRequest, join_library, split_library
from kebab.search.pipeline import lexical_index, search_in
from kebab.sources.git_repository import source_url

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.ports import ChunkContext
    from kebab.core.search import SearchHit
    from kebab.core.store_ports import Reading
    from kebab.session import Session

_FARTHEST = 10**9
_ENOUGH = 20
"""If fewer snippets have all the words, those that have any of them are searched."""
_SHORT_SNIPPET = 100
"""Tokens. A budget divided by this is the number of snippets to ask for at first; more are asked for if they fit."""
_DEEPEST = 400
"""Snippets that a page of documentation is made of, at most."""


class RepositoryName(NamedTuple):
    id: str
    title: str


class SnippetResult(NamedTuple):
    snippet: LibrarySnippet
    score: float
    """In lexical mode bm25 as the index gives it: negative, lower is better. In hybrid mode from 0 to 1."""
    repository: RepositoryName


class SnippetList(list[SnippetResult]):
    """Snippets, the best first."""

    notices: tuple[Notice, ...] = ()
    next_cursor: str | None = None
    """Of a hybrid list that goes on."""


@contextmanager
def open_search_service(session: Session) -> Iterator[SearchService]:
    with time_limit(session.settings.search.timeout_s), session.reading() as reading:
        yield SearchService(session, reading)


class SearchService:
    """Answers from one state of the store. It knows only libraries of the organisations that the settings allow."""

    def __init__(self, session: Session, reading: Reading | None) -> None:
        self._session = session
        self._reading = reading
        self._found: dict[str, Library] = {}

    # --- libraries

    def libraries(self) -> list[Library]:
        found = self._reading.libraries().libraries() if self._reading else []
        return [ordered(library) for library in found if _is_allowed(library.library_id, self._session.settings)]

    def known(self, library_id: str) -> Library | None:
        refuse_other_organisations(library_id, self._session.settings)
        try:
            return ordered(self._reading.libraries().find(library_id)) if self._reading else None
        except NotFound:
            return None

    def find(self, library_id: str) -> Library:
        library = self._found.get(library_id) or self.known(library_id)
        if library is None:
            raise NotFound(f"There is no library {library_id}.", hint=self._hint(library_id))
        self._found[library_id] = library
        return library

    def choose(
        self, library: str, version: str | None = None, project: str | None = None
    ) -> tuple[Library, VersionChoice]:
        """The library and the version that /owner/project or /owner/project/version names."""
        try:
            library_id, named = split_library(library)
        except UsageError as error:
            meant = self._hint(library)
            hint = f"{error.hint} {meant}" if meant.startswith("Did") else error.hint
            raise UsageError(error.message, hint=hint) from error
        found = self.find(library_id)
        return found, chosen_version(found, version or named, project)

    def search_repositories(
        self, library_name: str, query: str | None = None, limit: int | None = 10
    ) -> list[LibraryMatch]:
        """By title, id and description, and after those by what their snippets say. `query`: what it is wanted for."""
        name = " ".join(library_name.split())
        if not name or self._reading is None:
            return []
        if limit is not None and limit < 1:
            raise UsageError("At least one library must be asked for.", hint="The default limit is 10.")
        index = lexical_index(self._reading, self._session.settings)
        named = {library.library_id for library in self._reading.libraries().named(name)}
        trees = [parse(preprocess(text)) for text in dict.fromkeys((name, query or "")) if text.strip()]
        searched = [library for library in self.libraries() if library.is_searchable]
        matching: dict[str, int] = {}
        for library in searched:
            filters = SearchFilters(library=library.library_id, library_version="")
            counts = (index.count(tree, match="all", drop_stop_words=True, filters=filters) for tree in trees)
            matching[library.library_id] = max(counts)
        found = [library for library in searched if library.library_id in named or matching[library.library_id]]
        return ranked(found, name, named=frozenset(named), matching=matching)[:limit]

    def _hint(self, library_id: str) -> str:
        """What to do about an id that does not exist."""
        known = [library.library_id for library in self.libraries()]
        meant = close_id(library_id, known)
        if meant is not None:
            return f"Did you mean {meant}?"
        return (
            "See what is there with: kb lib list"
            if known
            else "Add one with: kb lib add https://github.com/owner/project"
        )

    # --- snippets

    def search_snippets(
        self,
        query: str,
        repository_id: str,
        version_id: str | None = None,
        type: str | None = None,
        limit: int = 20,
        offset: int = 0,
        *,
        mode: str = "lexical",
        cursor: str | None = None,
    ) -> SnippetList:
        """The snippets of a library that answer, the best first. An empty `version_id` is the default branch.

        In lexical mode, which needs no model, no `version_id` means all versions. In hybrid mode it means the default
        branch, `cursor` continues a list, and there is nothing where only unrelated snippets are left.
        """
        _check_kind(type)
        if limit < 1 or not 0 <= offset < _FARTHEST or limit > _FARTHEST:
            raise UsageError(
                "A page begins at 0 or later, and has at least one snippet.",
                hint="The defaults are limit 20 and offset 0.",
            )
        library = self.find(repository_id)
        if mode == "lexical":
            filters = SearchFilters(library=repository_id, library_version=version_id, kinds=(type,) if type else ())
            return self._results(library, version_id, self._by_words(query, filters, limit, offset))
        place = join_library(repository_id, version_id or None)
        request = SearchRequest(preprocess(query), mode, limit, offset, cursor, library=place, snippet_type=type)
        assert self._reading is not None  # the library was found in it
        response = search_in(self._reading, self._session, request, without_snippets=True)
        hits = response.hits if response.has_matches else ()
        found = self._results(library, version_id or "", [(hit, hit.citation, hit.score) for hit in hits])
        found.notices = tuple(notice for notice in response.notices if notice.code != Says.FAR_AWAY.code)
        found.next_cursor = response.next_cursor
        return found

    def docs(
        self,
        library: str,
        query: str,
        *,
        version: str | None = None,
        tokens: int | None = None,
        kind: str | None = None,
        project: str | None = None,
        page: int = 1,
    ) -> LibraryDocs:
        """The snippets of one version that answer, whole ones up to a budget of tokens."""
        _check_kind(kind)
        budget = DEFAULT_TOKENS if tokens is None else tokens
        if budget < 1 or page < 1:
            raise UsageError(
                "The budget of tokens and the page are at least 1.", hint=f"The defaults are {DEFAULT_TOKENS} and 1."
            )
        found, choice = self.choose(library, version, project)
        most = min(_DEEPEST, budget // _SHORT_SNIPPET + 1)
        search = partial(self.search_snippets, query, found.library_id, choice.version, kind, most, mode="hybrid")
        first = search()
        rules, left = rules_within(found.rules, budget)
        shown, more = page_of(_continued(first, search), left, page)
        return LibraryDocs(found, choice.version, choice.reason, page, rules, tuple(shown), first.notices, more)

    def _by_words(
        self, query: str, filters: SearchFilters, limit: int, offset: int
    ) -> list[tuple[ChunkContext, Citation, float]]:
        """Those with all words, or with any of them if those are few. That does not depend on the limit: pages of any
        size are parts of one list.
        """
        assert self._reading is not None  # the library was found in it
        index = lexical_index(self._reading, self._session.settings)
        tree = parse(preprocess(query))
        together = index.count(tree, match="all", drop_stop_words=True, filters=filters)
        match = "all" if together >= _ENOUGH else "any"
        found = index.search(
            tree, match=match, drop_stop_words=True, filters=filters, limit=limit, offset=offset, type_ahead=True
        )
        chunks = self._reading.chunks().contexts([match.chunk_id for match in found.matches])
        there = [(chunks[match.chunk_id], match.bm25) for match in found.matches if match.chunk_id in chunks]
        return [(chunk, chunk.citation, bm25) for chunk, bm25 in there]

    def _results(
        self,
        library: Library,
        version_id: str | None,
        found: Sequence[tuple[ChunkContext | SearchHit, Citation, float]],
    ) -> SnippetList:
        assert self._reading is not None  # the library was found in it
        kinds = self._reading.libraries().kinds_of(chunk.chunk_id for chunk, _, _ in found)
        commits = {version.name or "": version.commit for version in library.versions}
        commit = None if version_id is None else commits.get(version_id)
        repository = RepositoryName(library.library_id, library.title)
        results = SnippetList()
        for chunk, citation, score in found:
            snippet = make_snippet(
                chunk_id=chunk.chunk_id,
                kind=kinds.get(chunk.chunk_id, "info"),
                text=chunk.text,
                library=library.title,
                page=chunk.title,
                headings=chunk.heading_path,
                citation=citation,
                score=score,
                url=source_url(library.repository, commit, chunk.doc_path, citation.lines),
            )
            results.append(SnippetResult(snippet, score, repository))
        return results


def _continued(first: SnippetList, search: Callable[..., SnippetList]) -> Iterator[LibrarySnippet]:
    """One list, read as far as it is wanted."""
    some, seen = first, 0
    while some:
        yield from (result.snippet for result in some)
        seen += len(some)
        if some.next_cursor is None or seen >= _DEEPEST:
            return
        some = search(cursor=some.next_cursor)


def _check_kind(kind: str | None) -> None:
    if kind is not None and kind not in SNIPPET_KINDS:
        raise UsageError(f"There are no snippets of type {kind!r}.", hint=f"Valid: {', '.join(SNIPPET_KINDS)}.")


def refuse_other_organisations(library_id: str, settings: Settings) -> None:
    if library_id.count("/") == 2 and not _is_allowed(library_id, settings):
        raise SourceError(
            f"{library_id} is not of an organisation that is allowed here.",
            hint=f"library.organisations allows: {settings.library.organisations}.",
        )


def _is_allowed(library_id: str, settings: Settings) -> bool:
    allowed = {name.strip().casefold() for name in settings.library.organisations.split(",") if name.strip()}
    return not allowed or library_id.split("/")[1].casefold() in allowed


def close_id(wanted: str, known: Sequence[str]) -> str | None:
    """The library that was probably meant: the same in other letters, by its last part alone, or with a slip in it."""
    plain = wanted.strip().casefold()
    for library_id in known:
        if plain.lstrip("/") in (library_id.casefold().lstrip("/"), library_id.casefold().rpartition("/")[2]):
            return library_id
    from difflib import get_close_matches

    by_plain = {library_id.casefold(): library_id for library_id in known}
    close = get_close_matches(plain if plain.startswith("/") else f"/{plain}", by_plain, n=1, cutoff=0.75)
    return by_plain[close[0]] if close else None
