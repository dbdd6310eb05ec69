"""Documentation of libraries: find one by name, choose a version, ask it, and read what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kebab.core.errors import KebabError, UsageError
from kebab.core.libraries import SNIPPET_KINDS
from kebab.interfaces.http import addresses
from kebab.interfaces.http.addresses import reader_of, with_parameters
from kebab.interfaces.http.reading import form_fields, whole_number
from kebab.search.request import join_library
from kebab.wire.errors import outcome_of
from kebab.wire.libraries import LibraryDocsV1, LibraryV1, library_docs_v1, library_v1

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kebab.interfaces.http.templating import Templates
    from kebab.interfaces.service import Service
    from kebab.interfaces.workers import Workers

_TOKENS = 2000
"""Of one page: what a person reads at once, where a program takes 5,000."""


class LibraryPages:
    def __init__(self, service: Service, workers: Workers, templates: Templates) -> None:
        self._service = service
        self._workers = workers
        self._templates = templates

    async def libraries(self, request: Request) -> Response:
        """All of them, or those that a name may mean."""
        values = form_fields(request, {"name"})
        name = values.get("name", "").strip()
        found = await self._workers.run(self._named, name)
        return self._templates.page("libraries.html", name=name, libraries=found)

    def _named(self, name: str) -> list[LibraryV1]:
        if not name:
            return self._service.libraries().items
        return [library_v1(match.library, match.score) for match in self._service.find_libraries(name)]

    async def library(self, request: Request) -> Response:
        """One library, and the snippets that answer a question."""
        values = form_fields(request, {"id", "version", "q", "type", "page"})
        library, docs, error = await self._workers.run(self._asked, values)
        place = join_library(library.library_id, docs.version if docs else values.get("version"))

        def reader(citation: str) -> str:
            return reader_of(place, citation)

        def page(number: int) -> str:
            return with_parameters(addresses.LIBRARY, values, page=number if number > 1 else None)

        return self._templates.page(
            "library.html",
            outcome_of(error).http_status if error else 200,
            library=library,
            kinds=SNIPPET_KINDS,
            values={"q": "", "version": "", "type": "", **values},
            docs=docs,
            error=error,
            reader=reader,
            page=page,
        )

    def _asked(self, values: dict[str, str]) -> tuple[LibraryV1, LibraryDocsV1 | None, KebabError | None]:
        """A library that is not there is an error of the page; what goes wrong with the question is said beside the
        form.
        """
        if "id" not in values:
            raise UsageError("Name a library.", hint="Choose one at /libraries.")
        library = library_v1(self._service.kb.libraries.find(values["id"]))
        query = values.get("q", "").strip()
        if not query:
            return library, None, None
        try:
            return library, self._docs(values, query), None
        except KebabError as error:
            return library, None, error

    def _docs(self, values: dict[str, str], query: str) -> LibraryDocsV1:
        place = join_library(values["id"], values.get("version"))
        options: dict[str, Any] = {
            "tokens": _TOKENS,
            "type": values.get("type"),
            "page": whole_number(values, "page", 1),
        }
        return library_docs_v1(query, self._service.library_docs(place, query, **options))
