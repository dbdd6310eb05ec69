"""Libraries: adding, refreshing, removing, exporting and searching documentation of libraries (`kb.libraries`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.config.loading import cache_folder
from kebab.core.addresses import without_password
from kebab.core.errors import UsageError
from kebab.library.docs import no_version
from kebab.library.search_service import SearchService, SnippetList, open_search_service
from kebab.search.options import SearchRequest, join_library, split_library

if TYPE_CHECKING:
    from kebab.core.libraries import Library
    from kebab.core.ports import Progress
    from kebab.ingest.report import IngestReport
    from kebab.library.docs import LibraryDocs
    from kebab.library.ranking import LibraryMatch
    from kebab.session import Session


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
            raise UsageError(
                "A library is exported with all its versions.", hint=f"For example: kb lib export {whole} {path}"
            )
        library = self.find(library_id)
        with self._session.existing() as reading:
            return export_library(library, reading.library_reader(library_id), path)

    # --- searching

    def service(self) -> AbstractContextManager[SearchService]:
        """A search service that answers several questions from one state of the store."""
        return open_search_service(self._session)

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
        with self.service() as service:
            return service.docs(library, query, version=version, tokens=tokens, kind=kind, project=project, page=page)

    def resolved(self, request: SearchRequest) -> SearchRequest:
        """The request with its library written as exact id and version."""
        with self.service() as service:
            library, choice = service.choose(request.library or "")
        return request._replace(library=join_library(library.library_id, choice.version))
