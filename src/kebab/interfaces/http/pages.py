"""The web pages and their routes. All pages work without JavaScript.

The reader page shows the indexed text of a document at the cited passage. It reads the store, never the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from kebab.core.citations import Citation, LineSpan, PageSpan
from kebab.core.documents import PAGE_BREAK
from kebab.core.errors import KebabError, StaleCursor, Unauthorized, UsageError
from kebab.core.libraries import SNIPPET_KINDS
from kebab.core.search import MODES
from kebab.core.text import LineTable
from kebab.interfaces.http import addresses
from kebab.interfaces.http.addresses import reader_of, reader_of_document, with_parameters
from kebab.interfaces.http.api import checked_text, values_given
from kebab.interfaces.http.ingest_jobs import IngestJobs
from kebab.interfaces.http.safety import LOGIN_PATH, SESSION_COOKIE, Rules, Tokens
from kebab.interfaces.http.templating import Page, StaticFiles, Templates, filled_in, form_body, form_fields
from kebab.interfaces.service import FilterChoices, Service, Workers
from kebab.search.lookup import Opened
from kebab.search.options import SearchRequest, join_library, read_texts
from kebab.wire.libraries import LibraryDocsV1, LibraryV1, library_docs_v1, library_v1
from kebab.wire.search import SearchHitV1, SearchResponseV1

_PARAMETERS = {"uri", "doc_id", "lines", "page", "chunk", "view", "from"}
_NUMBER = {"type": "integer"}
_MARKDOWN = ("md", "mdx", "markdown")
_LINES_AT_ONCE = 1000
_LONGEST_LINE = 5000
"""The most characters shown of one line. Longer lines are mostly generated ones."""
_LONGEST_RENDERED = 200_000
"""The longest Markdown that is rendered, in characters. Of a longer document the source is shown in parts."""


class Line(NamedTuple):
    number: int
    text: str
    cited: bool
    cut: int
    """The number of characters at its end that are not shown."""


class Part(NamedTuple):
    """The shown part of a long document, and the addresses of the parts before and after it."""

    number: int
    of: int
    before: str | None
    after: str | None


class ReaderPage(Page):
    async def page(self, request: Request) -> Response:
        values = form_fields(request, _PARAMETERS)
        shown = await self.workers.run(self._shown, values)
        return self.templates.page("reader.html", back=_results_before(request), **shown)

    def _shown(self, values: dict[str, str]) -> dict[str, Any]:
        opened = self.service.open_cited(_citation_of(values), values.get("chunk"))
        document = opened.document
        whole = reader_of_document(opened.place, document.path, document.doc_id)
        citation = Citation(document.path, opened.span) if opened.span is not None else None
        view = _view_of(opened, values.get("view"))
        shown = {
            "document": document,
            "place": opened.place,
            "citation": citation.uri if citation else document.path,
            "is_cited": citation is not None,
            "is_suspicious": opened.suspicious,
            "view": view,
            "is_markdown": document.format in _MARKDOWN,
            "too_long": document.format in _MARKDOWN and len(opened.text) > _LONGEST_RENDERED,
            "other_view": {name: _with_view(values, name) for name in ("source", "rendered")},
            "whole": whole,
            "shows_title": False,
        }
        if view == "rendered":
            return {**shown, **self._rendered(opened)}
        return {**shown, **(_page_shown(opened, values) if view == "page" else _lines_shown(opened, values))}

    def _rendered(self, opened: Opened) -> dict[str, Any]:
        from kebab.interfaces.http.markdown_page import MarkdownPage

        document = opened.document
        front = opened.front_matter
        # Empty lines for the front matter, so that lines keep their numbers.
        page = MarkdownPage("\n" * front.count("\n") + opened.text[len(front) :], document.path)
        known = self.service.paths_beside(document.doc_id, page.targets())
        lines = citation_lines(opened)
        html = page.html(lines, known, lambda path: reader_of_document(opened.place, path))
        return {
            "html": html,
            "shows_title": page.first_heading.strip() == document.title.strip(),
            "front_matter": front.strip(),
        }


def _citation_of(values: dict[str, str]) -> str:
    """The citation in the page's parameters: the uri, or the doc_id with lines or a page."""
    if ("uri" in values) == ("doc_id" in values):
        hint = "For example /read?uri=notes/git.md%23L10-L20, or ?doc_id=… with lines=10-20 or page=3."
        raise UsageError("Name a document.", hint=hint)
    if "uri" in values:
        return values["uri"]
    doc_id = values["doc_id"].replace("%", "%25").replace("#", "%23")
    if "page" in values:
        return f"{doc_id}#page={checked_text('page', values['page'], _NUMBER)}"
    if "lines" in values:
        first, dash, last = values["lines"].partition("-")
        if not first.isdecimal() or not (last if dash else first).isdecimal():
            raise UsageError(f"lines takes two numbers, not {values['lines']!r}.", hint="For example lines=10-20.")
        return f"{doc_id}#L{first}-L{last or first}"
    return values["doc_id"]


def citation_lines(opened: Opened) -> tuple[int, int] | None:
    return (opened.span.start, opened.span.end) if isinstance(opened.span, LineSpan) else None


def _view_of(opened: Opened, asked: str | None) -> str:
    if asked not in (None, "source", "rendered"):
        raise UsageError(f"There is no view {asked!r}.", hint="Valid: source, rendered.")
    if opened.paged:
        return "page"
    is_rendered = opened.document.format in _MARKDOWN and len(opened.text) <= _LONGEST_RENDERED
    return "rendered" if is_rendered and asked != "source" else "source"


def _with_view(values: dict[str, str], view: str) -> str:
    kept = {name: value for name, value in values.items() if name != "from"}
    address = with_parameters(addresses.READER, kept, view=view)
    return f"{address}#{addresses.CITED}"


# --- by line


def _lines_shown(opened: Opened, values: dict[str, str]) -> dict[str, Any]:
    table = LineTable(opened.text)
    cited = citation_lines(opened)
    asked = checked_text("from", values["from"], _NUMBER) if "from" in values else cited[0] if cited else 1
    count = -(-len(table) // _LINES_AT_ONCE)
    number = min(max(0, asked - 1) // _LINES_AT_ONCE, count - 1)
    first = number * _LINES_AT_ONCE + 1
    last = min(len(table), first + _LINES_AT_ONCE - 1)
    lines = [_line(table, line, cited) for line in range(first, last + 1)]

    def at(line: int) -> str:
        return with_parameters(addresses.READER, {**values, "from": str(line)})

    before = at(first - _LINES_AT_ONCE) if number else None
    return {"lines": lines, "part": Part(number + 1, count, before, at(last + 1) if last < len(table) else None)}


def _line(table: LineTable, number: int, cited: tuple[int, int] | None) -> Line:
    text = table.slice(number, number).rstrip("\r\n")
    is_cited = cited is not None and cited[0] <= number <= cited[1]
    return Line(number, text[:_LONGEST_LINE], is_cited, max(0, len(text) - _LONGEST_LINE))


# --- by page


def _page_shown(opened: Opened, values: dict[str, str]) -> dict[str, Any]:
    pages = opened.text.split(PAGE_BREAK)
    number = opened.span.page if isinstance(opened.span, PageSpan) else 1
    begin = sum(len(page) + len(PAGE_BREAK) for page in pages[: number - 1])
    text = pages[number - 1]
    is_part = opened.span is not None and "chunk" in values and (opened.start, opened.end) != (begin, begin + len(text))
    first, last = (opened.start - begin, opened.end - begin) if is_part else (0, 0)

    def at(page: int) -> str | None:
        citation = Citation(opened.document.path, PageSpan(page)).uri
        return addresses.reader_of(opened.place, citation) if 1 <= page <= len(pages) else None

    return {
        "page_text": (text[:first], text[first:last], text[last:]),
        "part": Part(number, len(pages), at(number - 1), at(number + 1)),
    }


def _results_before(request: Request) -> str | None:
    """The address of the list of results that the user comes from (by the Referer header), or None."""
    try:
        parts = urlsplit(request.headers.get("referer", ""))
    except ValueError:  # with an invalid header there is no link back
        return None
    is_ours = parts.netloc == request.headers.get("host")
    is_list = is_ours and parts.path in (addresses.SEARCH, addresses.LIBRARY) and parts.query
    return f"{parts.path}?{parts.query}" if is_list else None


# --- the reader page


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
            following = wanted if wanted != addresses.SEARCH else None
            return RedirectResponse(with_parameters(LOGIN_PATH, {"next": following}), 303)
        return self._templates.page("error.html", error=error)


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
        return [library_v1(match.library, match.score) for match in self.service.kb.libraries.search(name)]

    async def library(self, request: Request) -> Response:
        """One library, and the snippets that answer a question."""
        values = form_fields(request, {"id", "version", "q", "type", "page"})
        library, docs, error = await self.workers.run(self._asked, values)
        place = join_library(library.library_id, docs.version if docs else values.get("version"))
        return self.templates.page(
            "library.html",
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


_FILTERS = {"type": "type", "tag": "tag", "lang": "language", "source": "source", "after": "after", "before": "before"}
"""The labels of the filters in the form, by search option."""
_PLACE_IN_LIST = ("cursor", "offset", "type_ahead")
"""Parameters that belong to one list of hits; links that change the search drop them."""


class Asked(NamedTuple):
    """The search that the address of the page describes."""

    parameters: dict[str, list[str]]
    """The query parameters as written; `q` is the query."""

    @property
    def query(self) -> str:
        return self.one("q")

    def one(self, name: str) -> str:
        return self.parameters.get(name, [""])[0]

    def options(self) -> dict[str, Any]:
        """The search options. Every search option is allowed, also those without a field in the form."""
        renamed = {name: values for name, values in self.parameters.items() if name != "q"}
        options = read_texts(renamed)
        options.pop("query", None)
        return {**options, "query": self.query}

    def address(self, **changes: Any) -> str:
        """The address of this search with changed parameters, from the first hit on."""
        kept = {name: values for name, values in self.parameters.items() if name not in _PLACE_IN_LIST}
        return with_parameters(addresses.SEARCH, kept, **changes)

    def beside_the_form(self) -> list[tuple[str, str]]:
        """Names and values of the parameters without a form field. Hidden fields keep them when the form is sent."""
        fields = {"q", "mode", "sort", "explain", *_FILTERS, *_PLACE_IN_LIST}
        return [(name, value) for name, values in self.parameters.items() if name not in fields for value in values]

    def filters(self) -> dict[str, str]:
        """The values of the filters that are set, by search option."""
        return {
            name: ", ".join(value for value in self.parameters.get(name, []) if value.strip())
            for name in _FILTERS
            if self.one(name)
        }


class ThereIs(NamedTuple):
    """The numbers of documents, sources and libraries that can be searched."""

    documents: int
    sources: int
    libraries: int


class SearchPage(Page):
    async def page(self, request: Request) -> Response:
        asked = Asked(filled_in(request))
        choices, there_is, answer, error = await self.workers.run(self._everything, asked)
        return self.templates.page(
            "search.html",
            choices=choices,
            modes=MODES,
            default_mode="hybrid",
            there_is=there_is,
            **_list_values(asked, answer, error),
        )

    async def results(self, request: Request) -> Response:
        """Returns only the list of hits, for the script."""
        asked = Asked(filled_in(request))
        answer, error = await self.workers.run(self._answered, asked)
        return self.templates.page("results.html", **_list_values(asked, answer, error))

    def _everything(self, asked: Asked) -> tuple[FilterChoices, ThereIs, SearchResponseV1 | None, KebabError | None]:
        choices = self.service.filter_choices()
        kb = self.service.kb
        there_is = ThereIs(kb.count_documents(), len(choices.sources), len(kb.libraries.all()))
        return choices, there_is, *self._answered(asked)

    def _answered(self, asked: Asked) -> tuple[SearchResponseV1 | None, KebabError | None]:
        """The hits or the error; both are None without a query."""
        try:
            if not asked.query.strip():
                SearchRequest.from_options(asked.options())
                return None, None
            return self.service.search(asked.options()), None
        except KebabError as error:
            return None, error


def _list_values(asked: Asked, answer: SearchResponseV1 | None, error: KebabError | None) -> Mapping[str, Any]:
    return {
        "asked": asked,
        "filter_names": _FILTERS,
        "answer": answer,
        "error": error,
        "is_stale": isinstance(error, StaleCursor),
        "reader_of_hit": reader_of_hit,
        "several_sources": answer is not None and len({hit.source for hit in answer.hits}) > 1,
    }


def reader_of_hit(hit: SearchHitV1) -> str:
    """The reader page's address for a hit. In a paged document it names the chunk too: a page may have several."""
    address = addresses.reader_of(hit.source, hit.citation.uri)
    if hit.citation.kind != "page":
        return address
    front, hash_sign, fragment = address.partition("#")
    return f"{front}&chunk={hit.chunk_id}{hash_sign}{fragment}"
