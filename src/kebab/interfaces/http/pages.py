"""The routes of the web pages, the error page, and the pages for libraries, status and login. The search page and the
reader page are in other modules. All pages work without JavaScript.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse
from starlette.routing import Route

from kebab.core.errors import KebabError, Unauthorized, UsageError
from kebab.core.libraries import SNIPPET_KINDS
from kebab.interfaces.http import addresses
from kebab.interfaces.http.addresses import reader_of, with_parameters
from kebab.interfaces.http.endpoints import checked_text, form_body, form_fields, values_given
from kebab.interfaces.http.reader_page import ReaderPage
from kebab.interfaces.http.safety import LOGIN_PATH, SESSION_COOKIE
from kebab.interfaces.http.search_page import SearchPage
from kebab.interfaces.http.templating import Page, StaticFiles, Templates
from kebab.search.options import join_library
from kebab.wire.errors import http_status
from kebab.wire.libraries import LibraryDocsV1, LibraryV1, library_docs_v1, library_v1

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kebab.interfaces.http.ingest_jobs import IngestJobs
    from kebab.interfaces.http.safety import Rules, Tokens
    from kebab.interfaces.service import Service
    from kebab.interfaces.workers import Workers

_TOKENS = 2000
"""Tokens of snippets in one page of a library. Programs get 5,000 by default, but people read less at a time."""


class Pages:
    def __init__(self, service: Service, jobs: IngestJobs, workers: Workers, rules: Rules, tokens: Tokens) -> None:
        self._static = StaticFiles()
        self._templates = Templates(self._static, has_login=bool(rules.token))
        self._search = SearchPage(service, workers, self._templates)
        self._reader = ReaderPage(service, workers, self._templates)
        self._libraries = LibraryPages(service, workers, self._templates)
        self._status = StatusPage(service, workers, self._templates, jobs)
        self._login = LoginPage(rules, tokens, self._templates)

    def routes(self) -> list[Route]:
        return [
            Route(addresses.SEARCH, self._search.page),
            Route(addresses.RESULTS, self._search.results),
            Route(addresses.READER, self._reader.page),
            Route(addresses.LIBRARIES, self._libraries.libraries),
            Route(addresses.LIBRARY, self._libraries.library),
            Route(addresses.STATUS, self._status.page),
            Route(addresses.INGEST, self._status.ingest, methods=["POST"]),
            Route(LOGIN_PATH, self._login.page),
            Route(LOGIN_PATH, self._login.login, methods=["POST"]),
            Route(addresses.LOGOUT, self._login.logout, methods=["POST"]),
            Route("/static/{name}", self._static.serve),
        ]

    @staticmethod
    def is_asked_by(request: Request) -> bool:
        """Whether the request comes from a browser that accepts HTML, not from a program."""
        return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")

    def refused(self, request: Request, error: KebabError) -> Response:
        """The error page, or for Unauthorized a redirect to the login page."""
        if isinstance(error, Unauthorized) and request.method in ("GET", "HEAD"):
            # The address of the results is only for the script, so a login leads to the search page.
            path = addresses.SEARCH if request.url.path == addresses.RESULTS else request.url.path
            wanted = path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(
                with_parameters(LOGIN_PATH, {"next": wanted if wanted != addresses.SEARCH else None}), 303
            )
        return self._templates.page("error.html", http_status(type(error)), error=error)


class LibraryPages(Page):
    """The list of libraries, and the page of one library with the snippets that answer a question."""

    async def libraries(self, request: Request) -> Response:
        """All libraries, or those whose name is like the given one."""
        values = form_fields(request, {"name"})
        name = values.get("name", "").strip()
        found = await self.workers.run(self._named, name)
        return self.templates.page("libraries.html", name=name, libraries=found)

    def _named(self, name: str) -> list[LibraryV1]:
        if not name:
            return self.service.libraries().items
        return [library_v1(match.library, match.score) for match in self.service.find_libraries(name)]

    async def library(self, request: Request) -> Response:
        """One library, and the snippets that answer a question."""
        values = form_fields(request, {"id", "version", "q", "type", "page"})
        library, docs, error = await self.workers.run(self._asked, values)
        place = join_library(library.library_id, docs.version if docs else values.get("version"))
        return self.templates.page(
            "library.html",
            http_status(type(error)) if error else 200,
            library=library,
            kinds=SNIPPET_KINDS,
            values={"q": "", "version": "", "type": "", **values},
            docs=docs,
            error=error,
            reader=partial(reader_of, place),
            page=lambda number: with_parameters(addresses.LIBRARY, values, page=number if number > 1 else None),
        )

    def _asked(self, values: dict[str, str]) -> tuple[LibraryV1, LibraryDocsV1 | None, KebabError | None]:
        """The library, and the snippets or the error of the question. Raises an error if the library does not exist."""
        if "id" not in values:
            raise UsageError("Name a library.", hint="Choose one at /libraries.")
        library = library_v1(self.service.kb.libraries.find(values["id"]))
        query = values.get("q", "").strip()
        if not query:
            return library, None, None
        try:
            return library, self._docs(values, query), None
        except KebabError as error:
            return library, None, error

    def _docs(self, values: dict[str, str], query: str) -> LibraryDocsV1:
        place = join_library(values["id"], values.get("version"))
        page = checked_text("page", values.get("page", "1"), {"type": "integer"})
        found = self.service.library_docs(place, query, tokens=_TOKENS, type=values.get("type"), page=page)
        return library_docs_v1(query, found)


@dataclass
class StatusPage(Page):
    """The page with the sources, libraries and ingests. If writing is allowed, a button updates the sources."""

    jobs: IngestJobs

    async def page(self, request: Request) -> Response:
        values_given(request, {})
        shown = await self.workers.run(self._shown)
        return self.templates.page("status.html", jobs=self.jobs.all().items, running=self.jobs.is_running, **shown)

    def _shown(self) -> dict[str, Any]:
        return {
            "status": self.service.status(),
            "sources": self.service.sources().items,
            "libraries": self.service.libraries().items,
        }

    async def ingest(self, request: Request) -> Response:
        """Starts an ingest of all known sources, and returns to the status page."""
        self.service.require_write()
        sent = await form_body(request)
        self.jobs.start((), None, "embed" in sent)
        return RedirectResponse(addresses.STATUS, 303)


@dataclass
class LoginPage:
    """The page that asks for the token, and sets a session cookie if the token is right."""

    rules: Rules
    tokens: Tokens
    templates: Templates

    async def page(self, request: Request) -> Response:
        next_page = addresses.safe_next(request.query_params.get("next"))
        if not self.rules.token:
            return RedirectResponse(next_page, 303)
        return self.templates.page("login.html", next_page=next_page, is_wrong=False)

    async def login(self, request: Request) -> Response:
        sent = await form_body(request)
        next_page = addresses.safe_next(sent.get("next"))
        if self.rules.token and not self.tokens.accepts(request.scope, sent.get("token", "").strip()):
            return self.templates.page("login.html", 401, next_page=next_page, is_wrong=True)
        response = RedirectResponse(next_page, 303)
        if self.rules.token:
            secure = request.url.scheme == "https"
            response.set_cookie(SESSION_COOKIE, self.rules.session, secure=secure, httponly=True, samesite="strict")
        return response

    async def logout(self, _request: Request) -> Response:
        response = RedirectResponse(LOGIN_PATH, 303)
        response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
        return response
