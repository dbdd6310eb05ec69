"""Libraries: the door to documentation of libraries, behind the one to everything (`KnowledgeBase.libraries`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kebab.core.addresses import shown_address, without_password
from kebab.core.errors import ModelError, NotFound, SourceError, UsageError
from kebab.core.libraries import SNIPPET_KINDS, Library, LibrarySnippet
from kebab.core.search import FAR_AWAY
from kebab.core.text import one_line
from kebab.search.request import SearchRequest, join_library, split_library

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.ports import EmbeddingModels, Progress
    from kebab.core.search import SearchHit, SearchResponse
    from kebab.core.store_ports import Reading, Writing
    from kebab.ingest.report import IngestReport
    from kebab.library.adding import Said
    from kebab.library.docs import LibraryDocs
    from kebab.library.ranking import LibraryMatch
    from kebab.library.search_service import SearchService
    from kebab.parsing.isolation import Parsers
    from kebab.sources.origin import Origin

_SHORT_SNIPPET = 100
"""Tokens. So many fit into a budget at most, nearly always; if not, the rest of the list is asked for."""
_MOST_STARS = 10**9
_DEEPEST = 400
"""Behind that nothing is worth a page."""


class BareSearch(Protocol):
    def __call__(self, query: SearchRequest, /, *, bare: bool) -> SearchResponse: ...


class Engine(NamedTuple):
    """What of the knowledge base libraries are made with."""

    settings: Settings
    reading: Callable[[], AbstractContextManager[Reading | None]]
    writing: Callable[[str], AbstractContextManager[Writing]]
    parsers: Callable[[], Parsers]
    models: Callable[[], EmbeddingModels | None]
    embed: Callable[[str, IngestReport, Progress | None], bool]
    search: BareSearch


class Libraries:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

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

        Tags are those given here, and those that the repository itself names as its previous versions.
        """
        from kebab.library.adding import Said
        from kebab.sources.origin import checked_id, origin_of

        if not source.strip():
            raise UsageError(
                "There is nothing to add.", hint="For example: kb lib add https://github.com/owner/project"
            )
        if trust is not None and not 0 <= trust <= 10:
            raise UsageError("A trust score lies between 0 and 10.", hint="For example: --trust 7.5")
        if stars is not None and not 0 <= stars < _MOST_STARS:
            raise UsageError("That is no number of stars.", hint="For example: --stars 1200")
        if any(not version.strip() for version in versions):
            raise UsageError(
                "A version without a name is the default branch, which is always indexed.",
                hint="Leave out the empty --version.",
            )
        origin = _exported(origin_of(source))
        versions = _checked_versions(origin, versions, branch)
        wanted = self._allowed(checked_id(library_id or origin.library_id))
        known = self._known(wanted)
        is_other = known is not None and not _is_same_origin(known, origin)
        if (
            known is not None
            and library_id is None
            and is_other
            and any(version.indexed_at for version in known.versions)
        ):
            raise UsageError(
                f"{wanted} is there already, from {shown_address(known.origin)}.",
                hint=f"Name this one with --id /owner/project, or say --id {wanted} to put it in its place.",
            )
        same = (
            None if is_other else known
        )  # trust, stars and branch of one place are not those of another that takes its name
        library = Library(
            library_id=wanted,
            title=one_line(title or "")
            or (known.title if known and (known.titled or known.origin == origin.place) else origin.name),
            description=one_line(description)
            if description is not None
            else _kept_description(known, is_other=is_other),
            origin=origin.place,
            origin_kind=origin.kind,
            branch=branch or (same.branch if same else None),
            titled=title is not None or (known is not None and known.titled),
            described=description is not None or (known is not None and known.described),
            repository=origin.repository,
            stars=stars if stars is not None else (same.stars if same else None),
            trust_score=round(trust, 1) if trust is not None else (same.trust_score if same else None),
            rules=same.rules if same else (),
            versions=known.versions if known else (),
        )
        said = Said(stars=stars is not None)
        if fetch_metadata:
            library = self._with_facts(library, said)
        return self._index(
            "kb lib add", library, origin, versions, said, embed, progress, replaces=is_other and origin.kind == "git"
        )

    def refresh(
        self, library_id: str, *, fetch_metadata: bool = False, embed: bool = True, progress: Progress | None = None
    ) -> tuple[Library, IngestReport]:
        """Fetches what a library was added from, and indexes what has changed."""
        from kebab.library.adding import Said
        from kebab.sources.origin import Origin

        library = self.find(library_id)
        said = Said(stars=False)
        if fetch_metadata:
            library = self._with_facts(library, said)
        # Of a folder or an archive a named version is what it was when it was added.
        tags = (
            [version.name for version in library.versions if version.name is not None]
            if library.origin_kind == "git"
            else []
        )
        origin = Origin(library.origin_kind, library.origin, library.library_id, library.title, library.repository)
        return self._index("kb lib refresh", library, origin, tags, said, embed, progress)

    def remove(self, library_id: str, version: str | None = None) -> None:
        from kebab.config.loading import cache_folder
        from kebab.library.docs import no_version
        from kebab.sources.library_tree import forget_mirror

        library = self.find(library_id)
        if version is not None and version not in {known.name for known in library.versions}:
            raise no_version(library, version)
        with self._engine.writing("kb lib remove") as writing:
            writing.libraries().remove(library_id, version, whole=version is None)
        if (
            version is None
            and library.origin_kind == "git"
            and all(other.origin != library.origin for other in self.all())
        ):
            forget_mirror(without_password(library.origin), cache_folder())

    def export(self, library_id: str, path: Path) -> int:
        """Writes all that is indexed of it into one file, which `add` takes anywhere. How many documents that are."""
        from kebab.library.transfer import export_library

        if library_id.count("/") > 2:
            whole, _ = split_library(library_id)
            raise UsageError(
                "A library is exported with all its versions.", hint=f"For example: kb lib export {whole} {path}"
            )
        library = self.find(library_id)
        with self._engine.reading() as reading:
            assert reading is not None  # or it would not have been found
            return export_library(library, reading.library_reader(library_id), path)

    def _index(
        self,
        who: str,
        library: Library,
        origin: Origin,
        tags: Sequence[str],
        said: Said,
        embed: bool,
        progress: Progress | None,
        replaces: bool = False,
    ) -> tuple[Library, IngestReport]:
        from kebab.config.loading import cache_folder
        from kebab.ingest.report import IngestReport
        from kebab.library.adding import IndexingJob, LibraryAdding

        settings = self._engine.settings
        models = (
            self._engine.models() if embed else None
        )  # one that is not there is better noticed before the work than after it
        report = IngestReport(sources=[library.library_id])
        with self._engine.writing(who) as writing:
            writing.settle_analysis(settings.analysis.korean)
            if models is not None:
                with suppress(ModelError):  # words are indexed all the same
                    writing.expect_vectors(models.embedders)
            documents = writing.documents(settings.analysis.korean, for_libraries=True)
            adding = LibraryAdding(writing.libraries(), documents, settings, report, progress)
            if origin.kind == "export":
                adding.import_file(
                    library,
                    Path(origin.place),
                    said,
                    *((models.embedders, writing.vectors()) if models else ((), None)),
                )
            else:
                with self._engine.parsers() as parsers:
                    job = IndexingJob(parsers.of, cache_folder(), with_previous=who == "kb lib add", replaces=replaces)
                    adding.index(library, origin, tags, job)
        if embed:
            self._engine.embed(who, report, progress)
        return self.find(library.library_id), report

    def _with_facts(self, library: Library, said: Said) -> Library:
        from kebab.sources.repository_address import on_github
        from kebab.sources.web import repository_facts

        place = on_github(library.repository)
        if place is None:
            raise UsageError(
                f"{library.library_id} does not come from github.com, so nobody is known to ask.",
                hint="Leave out --fetch-metadata, and give --stars and --description.",
            )
        settings = self._engine.settings.library
        facts = repository_facts(*place, settings.github_api, settings.fetch_seconds)
        return library._replace(
            stars=library.stars if said.stars or facts.stars is None else facts.stars,
            description=library.description or facts.description or "",
        )

    # --- looking

    def all(self) -> list[Library]:
        """Those of the organisations that are allowed."""
        with self._engine.reading() as reading:
            found = reading.libraries().libraries() if reading else []
        return [_ordered(library) for library in found if self._is_allowed(library.library_id)]

    def find(self, library_id: str) -> Library:
        library = self._known(self._allowed(library_id))
        if library is None:
            raise NotFound(f"There is no library {library_id}.", hint=self._meant(library_id))
        return library

    def _meant(self, library_id: str) -> str:
        """What to do about an id that does not exist."""
        from kebab.library.versions import close_id

        known = [library.library_id for library in self.all()]
        meant = close_id(library_id, known)
        if meant is not None:
            return f"Did you mean {meant}?"
        return (
            "See what is there with: kb lib list"
            if known
            else "Add one with: kb lib add https://github.com/owner/project"
        )

    def _place(self, library: str) -> tuple[str, str | None]:
        """Id and version of /owner/project/version."""
        try:
            return split_library(library)
        except UsageError as error:
            meant = self._meant(library)
            raise UsageError(
                error.message, hint=f"{error.hint} {meant}" if meant.startswith("Did") else error.hint
            ) from error

    def _known(self, library_id: str) -> Library | None:
        try:
            with self._engine.reading() as reading:
                return _ordered(reading.libraries().find(library_id)) if reading else None
        except NotFound:  # nor is there a database, perhaps
            return None

    @contextmanager
    def service(self) -> Iterator[SearchService | None]:
        """Search by words over one state of the store; None while there is nothing."""
        with self._engine.reading() as reading:
            yield _service(reading, self._engine.settings) if reading else None

    def search(self, name: str, query: str | None = None, limit: int = 10) -> list[LibraryMatch]:
        """Libraries by name, the likeliest first."""
        with self.service() as service:
            found = service.search_repositories(name, query, None) if service else []
        allowed = [match for match in found if self._is_allowed(match.library.library_id)]
        return allowed[:limit]

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
        """The snippets of one version that answer, whole ones up to a budget of tokens. `library` may end in /version."""
        from kebab.library.docs import DEFAULT_TOKENS, LibraryDocs, chosen_version, page_of, rules_within
        from kebab.library.query_preprocessor import preprocess

        if kind is not None and kind not in SNIPPET_KINDS:
            raise UsageError(f"There are no snippets of type {kind!r}.", hint=f"Valid: {', '.join(SNIPPET_KINDS)}.")
        budget = DEFAULT_TOKENS if tokens is None else tokens
        if budget < 1 or page < 1:
            raise UsageError(
                "The budget of tokens and the page are at least 1.", hint=f"The defaults are {DEFAULT_TOKENS} and 1."
            )
        library_id, named = self._place(library)
        found = self.find(library_id)
        choice = chosen_version(found, version or named, project)
        place = join_library(library_id, choice.version)
        most = min(_DEEPEST, budget // _SHORT_SNIPPET + 1)
        request = SearchRequest(query=preprocess(query), library=place, snippet_type=kind, k=most)
        first = self._engine.search(request, bare=True)
        rules, left = rules_within(found.rules, budget)
        commit = next((known.commit for known in found.versions if known.name == choice.version), None)
        snippets, more = page_of(self._found(request, first, found, commit), left, page)
        notices = tuple(notice for notice in first.notices if notice.code != FAR_AWAY)  # what is far away is not shown
        return LibraryDocs(found, choice.version, choice.reason, page, rules, tuple(snippets), notices, more)

    def _found(
        self, request: SearchRequest, response: SearchResponse, library: Library, commit: str | None
    ) -> Iterator[LibrarySnippet]:
        """One list, read as far as it is wanted. Nothing where there is only what is nearest of all that is far away:
        who asks for documentation does not want a guess.
        """
        seen = 0
        while response.has_matches:
            with self._engine.reading() as reading:
                kinds = reading.libraries().kinds_of(hit.chunk_id for hit in response.hits) if reading else {}
            yield from (_snippet(hit, kinds.get(hit.chunk_id, "info"), library, commit) for hit in response.hits)
            seen += len(response.hits)
            if response.next_cursor is None or seen >= _DEEPEST:
                return
            response = self._engine.search(request._replace(cursor=response.next_cursor), bare=True)

    def resolved(self, request: SearchRequest) -> SearchRequest:
        """With the library and version it means, which can be searched."""
        from kebab.library.docs import chosen_version

        library_id, named = self._place(request.library or "")
        choice = chosen_version(self.find(library_id), named, None)
        return request._replace(library=join_library(library_id, choice.version))

    # --- organisations

    def _is_allowed(self, library_id: str) -> bool:
        allowed = {
            name.strip().casefold() for name in self._engine.settings.library.organisations.split(",") if name.strip()
        }
        return not allowed or library_id.split("/")[1].casefold() in allowed

    def _allowed(self, library_id: str) -> str:
        if library_id.count("/") == 2 and not self._is_allowed(library_id):
            raise SourceError(
                f"{library_id} is not of an organisation that is allowed here.",
                hint=f"library.organisations allows: {self._engine.settings.library.organisations}.",
            )
        return library_id


def _ordered(library: Library) -> Library:
    if len(library.versions) < 2:
        return library
    from kebab.library.versions import ordered

    return ordered(library)


def _checked_versions(origin: Origin, versions: Sequence[str], branch: str | None) -> Sequence[str]:
    """Of a repository any tags; anything else is one state, which may have a name."""
    if origin.kind == "git":
        return versions
    if versions and origin.kind == "export":
        raise UsageError(
            "What was exported brings all its versions along.", hint="Leave out --version; kb lib docs names one."
        )
    if branch or len(versions) > 1:
        raise UsageError(
            f"{shown_address(origin.place)} is no git repository, so it has no tags or branches.",
            hint="Leave out --branch; --version names one.",
        )
    return versions or ([origin.version] if origin.version else [])


def _is_same_origin(known: Library, origin: Origin) -> bool:
    """However its address is written; another release in the same place, or another export, is the same library too."""
    from kebab.sources.repository_address import same_repository

    if without_password(known.origin) == origin.place or known.origin_kind == origin.kind == "export":
        return True
    if known.origin_kind == origin.kind == "git":
        return same_repository(known.origin, origin.place)
    return origin.version is not None and known.origin.rpartition("/")[0] == origin.place.rpartition("/")[0]


def _kept_description(known: Library | None, *, is_other: bool) -> str:
    """What the user said stays; what another place said of itself does not."""
    return known.description if known is not None and (known.described or not is_other) else ""


def _exported(origin: Origin) -> Origin:
    """An archive that `kb lib export` wrote is more than a folder in one file, whatever it is called."""
    from kebab.library.library_file import is_library_file, open_library_file

    if "://" in origin.place or origin.kind in ("git", "folder"):
        return origin
    if origin.kind != "export" and not is_library_file(Path(origin.place)):
        return origin
    with open_library_file(Path(origin.place)) as file:
        return origin._replace(kind="export", library_id=file.library_id, name=file.title, repository=file.repository)


def _service(reading: Reading, settings: Settings) -> SearchService:
    from kebab.library.search_service import SearchService
    from kebab.search.retrievers import lexical_index

    return SearchService(lexical_index(reading, settings), reading.libraries())


def _snippet(hit: SearchHit, kind: str, library: Library, commit: str | None) -> LibrarySnippet:
    from kebab.library.snippets import make_snippet
    from kebab.sources.repository_address import source_url

    return make_snippet(
        chunk_id=hit.chunk_id,
        kind=kind,
        text=hit.text,
        library=library.title,
        page=hit.title,
        headings=hit.heading_path,
        citation=hit.citation,
        score=hit.score,
        url=source_url(library.repository, commit, hit.doc_path, hit.citation.lines),
    )
