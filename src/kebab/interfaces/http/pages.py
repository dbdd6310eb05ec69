"""The web page: its routes, and errors as pages. The pages themselves stand in `search_page`, `reader_page`,
`library_pages`, `status_page` and `login_page`; they are whole without a script, which only makes them quicker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import Route

from kebab.core.errors import Unauthorized
from kebab.interfaces.http import addresses
from kebab.interfaces.http.addresses import with_parameters
from kebab.interfaces.http.library_pages import LibraryPages
from kebab.interfaces.http.login_page import LoginPage
from kebab.interfaces.http.reader_page import ReaderPage
from kebab.interfaces.http.safety import LOGIN_PATH
from kebab.interfaces.http.search_page import SearchPage
from kebab.interfaces.http.static_files import StaticFiles
from kebab.interfaces.http.status_page import StatusPage
from kebab.interfaces.http.templating import Templates
from kebab.wire.errors import outcome_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kebab.core.errors import KebabError
    from kebab.interfaces.http.ingest_jobs import IngestJobs
    from kebab.interfaces.http.safety import Rules, Tokens
    from kebab.interfaces.service import Service
    from kebab.interfaces.workers import Workers


class Pages:
    def __init__(self, service: Service, jobs: IngestJobs, workers: Workers, rules: Rules, tokens: Tokens) -> None:
        self._static = StaticFiles()
        self._templates = Templates(self._static, has_login=bool(rules.token))
        self._search = SearchPage(service, workers, self._templates)
        self._reader = ReaderPage(service, workers, self._templates)
        self._libraries = LibraryPages(service, workers, self._templates)
        self._status = StatusPage(service, jobs, workers, self._templates)
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
            self._static.route(),
        ]

    @staticmethod
    def is_asked_by(request: Request) -> bool:
        """Whether a browser wants to show the answer, rather than a program to read it."""
        return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")

    def refused(self, request: Request, error: KebabError) -> Response:
        """An error as a page; who is not known yet is asked for the token."""
        if isinstance(error, Unauthorized) and request.method in ("GET", "HEAD"):
            # The list alone is for the script; whoever has logged in wants the page around it.
            path = addresses.SEARCH if request.url.path == addresses.RESULTS else request.url.path
            wanted = path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(
                with_parameters(LOGIN_PATH, {"next": wanted if wanted != addresses.SEARCH else None}), 303
            )
        return self._templates.page("error.html", outcome_of(error).http_status, error=error)
