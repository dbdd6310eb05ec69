"""Libraries: adding, refreshing, removing, exporting and searching documentation of libraries (`kb.libraries`).

`SearchService` finds libraries by name and the snippets of one library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab.analysis.language import is_stop_word
from kebab.analysis.orders import reads_like_orders
from kebab.config.loading import cache_folder
from kebab.core.addresses import without_password
from kebab.core.checking import checked, checked_argument, close_to
from kebab.core.deadline import time_limit
from kebab.core.errors import KebabError, NotFound, SourceError, StillIndexing, UsageError
from kebab.core.libraries import Library, LibrarySnippet, LibraryVersion
from kebab.core.notices import Notice, Says
from kebab.core.query_tree import parse
from kebab.core.search import MAX_QUERY_CHARS, SearchFilters
from kebab.core.text import estimate_tokens
from kebab.library.formatters import BETWEEN_PARTS, snippet_text
from kebab.library.ranking import LibraryMatch, is_allowed, ranked, refuse_other_organisations
from kebab.library.snippets import make_snippet
from kebab.library.versions import Choice, choose, latest_first, likeness, ordered, same_version, shortened
from kebab.search.options import LIBRARY_LIMIT, PAGE, SNIPPET_KIND, TOKENS, SearchRequest, join_library, split_library
from kebab.search.pipeline import lexical_index, search_in
from kebab.sources.git_repository import source_url

if TYPE_CHECKING:
    from kebab.core.ports import ChunkContext, Progress
    from kebab.core.store_ports import Reading
    from kebab.ingest.report import IngestReport
    from kebab.session import Session
    from kebab.sources.lock_files import LockedPackage

_PARENTHESES = str.maketrans("()", "  ")
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_LEAST_PREFIX = 3
_FARTHEST = 10**9
_ENOUGH = 20
"""If fewer snippets than this have all the words, those that have any of them are found."""
_SHORT_SNIPPET = 100
"""Tokens. The first search asks for as many such snippets as fit into the budget; more are read if they fit."""
_DEEPEST = 400
"""No further snippets are read for documentation after this many."""


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
    """Continues a hybrid list; None if nothing follows."""


class SearchService:
    """Searches one state of the store. It sees only libraries of the organisations that the settings allow."""

    def __init__(self, session: Session, reading: Reading | None) -> None:
        self._session = session
        self._reading = reading
        self._found: dict[str, Library] = {}

    # --- libraries

    def libraries(self) -> list[Library]:
        found = self._reading.libraries().libraries() if self._reading else []
        return [ordered(library) for library in found if is_allowed(library.library_id, self._session.settings)]

    def find(self, library_id: str) -> Library:
        refuse_other_organisations(library_id, self._session.settings)
        if self._reading is not None and library_id not in self._found:
            with suppress(NotFound):
                self._found[library_id] = ordered(self._reading.libraries().find(library_id))
        if library_id not in self._found:
            raise NotFound(f"There is no library {library_id}.", hint=self._hint(library_id))
        return self._found[library_id]

    def choose(self, library: str, version: str | None = None, project: str | None = None) -> tuple[Library, Choice]:
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
        """Libraries that match by title, id or description, then those that match only by their snippets. `query`: the
        task that the library is wanted for.
        """
        name = " ".join(library_name.split())
        if not name or self._reading is None:
            return []
        if limit is not None:
            checked_argument("limit", limit, LIBRARY_LIMIT)
        index = lexical_index(self._reading, self._session.settings)
        trees = [parse(preprocess(text)) for text in dict.fromkeys((name, query or "")) if text.strip()]
        searched = [library for library in self.libraries() if library.is_searchable]
        named = {library.library_id for library in searched if library.is_named(name)}
        matching: dict[str, int] = {}
        for library in searched:
            filters = SearchFilters(library=library.library_id, library_version="")
            counts = (index.count(tree, match="all", drop_stop_words=True, filters=filters) for tree in trees)
            matching[library.library_id] = max(counts)
        found = [library for library in searched if library.library_id in named or matching[library.library_id]]
        return ranked(found, name, named=frozenset(named), matching=matching)[:limit]

    def _hint(self, library_id: str) -> str:
        """A hint for an id that does not exist: the id that was probably meant, or a command."""
        known = [library.library_id for library in self.libraries()]
        meant = close_id(library_id, known)
        if meant is not None:
            return f"Did you mean {meant}?"
        if not known:
            return "Add one with: kb lib add https://github.com/owner/project"
        return "See what is there with: kb lib list"

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
        """The best snippets of a library for a query. An empty `version_id` is the default branch.

        In lexical mode, which needs no model, no `version_id` means all versions. In hybrid mode it means the default
        branch, `cursor` continues a list, and unrelated snippets are left out.
        """
        if type is not None:
            checked_argument("type", type, SNIPPET_KIND)
        checked("limit", limit, int, least=1, most=_FARTHEST)
        checked("offset", offset, int, least=0, most=_FARTHEST)
        library = self.find(repository_id)
        if mode == "lexical":
            filters = SearchFilters(library=repository_id, library_version=version_id, kinds=(type,) if type else ())
            return self._results(library, version_id, self._by_words(query, filters, limit, offset))
        place = join_library(repository_id, version_id or None)
        options = {"query": preprocess(query), "mode": mode, "k": limit, "offset": offset, "cursor": cursor}
        request = SearchRequest.from_options({**options, "library": place, "snippet_type": type})
        assert self._reading is not None  # the library was found in it
        response = search_in(self._reading, self._session, request, without_snippets=True)
        hits = response.hits if response.has_matches else ()
        found = self._results(library, version_id or "", [(hit.chunk, hit.score) for hit in hits])
        found.notices = tuple(notice for notice in response.notices if notice.code != Says.FAR_AWAY.code)
        found.next_cursor = response.next_cursor
        return found

    def _by_words(
        self, query: str, filters: SearchFilters, limit: int, offset: int
    ) -> list[tuple[ChunkContext, float]]:
        """Snippets with all words of the query, or with any of them if few have all. This does not depend on the limit,
        so that pages of any size are parts of one list.
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
        return [(chunks[match.chunk_id], match.bm25) for match in found.matches if match.chunk_id in chunks]

    def _results(
        self, library: Library, version_id: str | None, found: Sequence[tuple[ChunkContext, float]]
    ) -> SnippetList:
        commits = {version.name or "": version.commit for version in library.versions}
        commit = None if version_id is None else commits.get(version_id)
        repository = RepositoryName(library.library_id, library.title)
        results = SnippetList()
        for chunk, score in found:
            url = source_url(library.repository, commit, chunk.doc_path, chunk.citation.lines)
            snippet = make_snippet(chunk, library.title, score, url)
            results.append(SnippetResult(snippet, score, repository))
        return results


def _continued(first: SnippetList, search: Callable[..., SnippetList]) -> Iterator[LibrarySnippet]:
    """The snippets of the first page and of those after it, read on demand."""
    some, seen = first, 0
    while some:
        yield from (result.snippet for result in some)
        seen += len(some)
        if some.next_cursor is None or seen >= _DEEPEST:
            return
        some = search(cursor=some.next_cursor)


def preprocess(query: str) -> str:
    """Turns typed text into a query: one space between words, no parentheses, and the last word as a prefix, because it
    may be half typed. The operators `*`, "…", AND, OR and NOT are kept.
    """
    words = query[:MAX_QUERY_CHARS].translate(_PARENTHESES).split()
    if words and _may_be_half_typed(words):
        words[-1] += "*"
    return " ".join(words)


def _may_be_half_typed(words: list[str]) -> bool:
    last = words[-1]
    inside_quotes = sum(word.count('"') for word in words) % 2 == 1 or last.endswith('"')
    is_word = len(last) >= _LEAST_PREFIX and last[-1].isalnum() and sum(map(str.isalnum, last)) >= _LEAST_PREFIX
    return is_word and last not in _OPERATORS and not is_stop_word(last) and not inside_quotes


def close_id(wanted: str, known: Sequence[str]) -> str | None:
    """The known id that was probably meant, or None: in another case, by its last part alone, or misspelt."""
    plain = wanted.strip().casefold()
    for library_id in known:
        if plain.lstrip("/") in (library_id.casefold().lstrip("/"), library_id.casefold().rpartition("/")[2]):
            return library_id
    by_plain = {library_id.casefold(): library_id for library_id in known}
    return by_plain.get(close_to(plain if plain.startswith("/") else f"/{plain}", by_plain, cutoff=0.75) or "")


class Libraries:
    def __init__(self, session: Session) -> None:
        self._session = session

    # --- adding

    def add(
        self,
        source: str,
        *,
        library_id: str | None = None,
        title: str | None = None,
        description: str | None = None,
        stars: int | None = None,
        trust: float | None = None,
        versions: Sequence[str] = (),
        branch: str | None = None,
        fetch_metadata: bool = False,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> tuple[Library, IngestReport]:
        """Indexes the default branch and tags of a repository, or a folder, file, archive or exported library.

        Tags are the given `versions` and the previous versions that the repository itself names.
        """
        from kebab.library.adding import Given, add

        given = Given(library_id, title, description, stars, trust, versions, branch)
        return add(self._session, source, given, fetch_metadata=fetch_metadata, embed=embed, progress=progress)

    def refresh(
        self, library_id: str, *, fetch_metadata: bool = False, embed: bool = True, progress: Progress | None = None
    ) -> tuple[Library, IngestReport]:
        """Fetches a library from its origin again, and indexes the files that have changed."""
        from kebab.library.adding import refresh

        library = self.find(library_id)
        return refresh(self._session, library, fetch_metadata=fetch_metadata, embed=embed, progress=progress)

    def remove(self, library_id: str, version: str | None = None) -> None:
        """Removes a library, or one version of it, from the index."""
        from kebab.sources.origin import forget_mirror

        library = self.find(library_id)
        if version is not None and version not in {known.name for known in library.versions}:
            raise no_version(library, version)
        with self._session.writing("kb lib remove") as writing:
            writing.libraries().remove(library_id, version, whole=version is None)
        if version is not None or library.origin_kind != "git":
            return
        if all(other.origin != library.origin for other in self.all()):
            forget_mirror(without_password(library.origin), cache_folder())

    def export(self, library_id: str, path: Path) -> int:
        """Writes a library into one file, which `add` takes on any machine. Returns the number of its documents."""
        from kebab.library.library_file import export_library

        if library_id.count("/") > 2:
            whole, _ = split_library(library_id)
            hint = f"For example: kb lib export {whole} {path}"
            raise UsageError("A library is exported with all its versions.", hint=hint)
        library = self.find(library_id)
        with self._session.existing() as reading:
            return export_library(library, reading.content(), path)

    # --- searching

    @contextmanager
    def service(self) -> Iterator[SearchService]:
        """A search service that answers several questions from one state of the store."""
        with time_limit(self._session.settings.search.timeout_s), self._session.reading() as reading:
            yield SearchService(self._session, reading)

    def all(self) -> list[Library]:
        with self.service() as service:
            return service.libraries()

    def find(self, library_id: str) -> Library:
        with self.service() as service:
            return service.find(library_id)

    def search(self, name: str, query: str | None = None, limit: int = 10) -> list[LibraryMatch]:
        """Libraries that match a name, the best first. `query`: the task that the library is wanted for."""
        with self.service() as service:
            return service.search_repositories(name, query, limit)

    def search_snippets(
        self,
        query: str,
        library_id: str,
        version: str | None = None,
        type: str | None = None,
        limit: int = 20,
        offset: int = 0,
        *,
        mode: str = "lexical",
    ) -> SnippetList:
        """The best snippets for a query; see `SearchService.search_snippets`."""
        with self.service() as service:
            return service.search_snippets(query, library_id, version, type, limit, offset, mode=mode)

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
        """The best snippets of one version: as many whole ones as fit into `tokens`. `library` may end in /version."""
        budget = checked_argument("tokens", TOKENS["default"] if tokens is None else tokens, TOKENS)
        checked_argument("page", page, PAGE)
        with self.service() as service:
            found, choice = service.choose(library, version, project)
            most = min(_DEEPEST, budget // _SHORT_SNIPPET + 1)
            search = partial(
                service.search_snippets, query, found.library_id, choice.version, kind, most, mode="hybrid"
            )
            first = search()
            rules, left = rules_within(found.rules, budget)
            shown, more = page_of(_continued(first, search), left, page)
        return LibraryDocs(found, choice.version, choice.reason or None, page, rules, tuple(shown), first.notices, more)

    def resolved(self, request: SearchRequest) -> SearchRequest:
        """The request with its library written as exact id and version."""
        with self.service() as service:
            library, choice = service.choose(request.library or "")
        return request._replace(library=join_library(library.library_id, choice.version))


# --- the version, and the snippets that fit


class LibraryDocs(NamedTuple):
    """A page of documentation from one version of a library."""

    library: Library
    version: str | None
    """None: the default branch."""
    reason: str | None
    """Why this version, if it is not the one that was named."""
    page: int
    rules: tuple[str, ...]
    """The rules that fit into half of the budget of tokens."""
    snippets: tuple[LibrarySnippet, ...]
    notices: tuple[Notice, ...]
    truncated: bool
    """Whether the budget ended the page and another one follows."""

    @property
    def suspicious_rules(self) -> bool:
        return any(map(reads_like_orders, self.rules))


def chosen_version(library: Library, named: str | None, project: str | None) -> Choice:
    """The named version, else the one in the project's lock file, else the default branch; an error if it is not
    searchable.
    """
    if named is not None:
        choice = _named(library, named)
    elif project is not None:
        choice = _locked(library, Path(project).expanduser())
    else:
        choice = Choice(None)
    if choice.version is None and not library.is_searchable:
        raise not_searchable(library, library.versions[0] if library.versions else None)
    return choice


def _named(library: Library, named: str) -> Choice:
    if named in library.tags:
        return Choice(named)
    if (same := same_version(named, library.tags)) is not None:
        return Choice(same, f"{named} is {same} here")
    known = next((version for version in library.versions if version.name == named), None)
    if known is not None:
        raise not_searchable(library, known)
    raise no_version(library, named)


def _locked(library: Library, project: Path) -> Choice:
    from kebab.sources.lock_files import locked_packages  # loads a TOML parser

    package = _package_of(library, locked_packages(project))
    if package is None:
        return Choice(None, "No lock file of the project names this library: the default branch")
    if package.version is None:
        return Choice(None, f"{package.file} names {package.name} without a version: the default branch")
    choice = choose(package.version, library.tags, package.name)
    return choice._replace(reason=f"{package.file} has {package.name} {shortened(package.version)}: {choice.reason}")


def _package_of(library: Library, packages: Sequence[LockedPackage]) -> LockedPackage | None:
    """The package that is most likely this library. Of several, one with a version is preferred, then one in the first
    lock file, then the most direct requirement, then the latest version.
    """
    likely: list[tuple[tuple[int, bool, int, int], LockedPackage]] = []
    files = list(dict.fromkeys(package.file for package in packages))
    for package in packages:
        like = likeness(package.name, library.library_id, library.title)
        if like is not None:
            likely.append(((like, package.version is None, files.index(package.file), package.depth), package))
    if not likely:
        return None
    best, first = min(likely, key=lambda one: one[0])
    equal = {package.version: package for rank, package in likely if rank == best and package.name == first.name}
    latest = latest_first(version for version in equal if version is not None)
    return equal[latest[0]] if latest else first


def not_searchable(library: Library, version: LibraryVersion | None) -> KebabError:
    """The error for a version that cannot be searched."""
    what = f"{library.library_id}/{version.name}" if version is not None and version.name else library.library_id
    go_on = f"Go on with: kb lib refresh {library.library_id}"
    if version is not None and version.state == "failed":
        return SourceError(f"{what} could not be indexed: {version.error or 'no reason is known'}", hint=go_on)
    hint = f"If no other process is indexing it now: {go_on[0].lower()}{go_on[1:]}"
    return StillIndexing(f"{what} is not indexed yet.", hint=hint)


def no_version(library: Library, version: str) -> NotFound:
    known = ", ".join(library.tags) or "only the default branch"
    add = f" Add it with: kb lib add {library.repository} --version {version}" if library.repository else ""
    return NotFound(f"{library.library_id} has no version {version}.", hint=f"Indexed: {known}.{add}")


def rules_within(rules: Sequence[str], tokens: int) -> tuple[tuple[str, ...], int]:
    """The first rules that fit into half of the budget, and the tokens that remain."""
    kept: list[str] = []
    used = 0
    for rule in rules:
        used += estimate_tokens(rule)
        if used > tokens / 2:
            break
        kept.append(rule)
    return tuple(kept), max(1, tokens - sum(map(estimate_tokens, kept)))


def page_of(found: Iterable[LibrarySnippet], tokens: int, page: int) -> tuple[list[LibrarySnippet], bool]:
    """The whole snippets of a page (at least one, even if it exceeds the budget), and whether another page follows.
    Reads no more of `found` than it needs.
    """
    current: list[LibrarySnippet] = []
    number, used = 1, 0
    for snippet in found:
        # Its tokens as shown with its headings, or of its passage if that has more: programs get the passage.
        text = f"{snippet_text(snippet)}{BETWEEN_PARTS}"
        size = max(snippet.tokens, estimate_tokens(text, code=snippet.kind == "code"))
        if current and used + size > tokens:
            if number == page:
                return current, True
            current, number, used = [], number + 1, 0
        current.append(snippet)
        used += size
    return (current if number == page else []), False
