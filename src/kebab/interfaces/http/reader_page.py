"""The reader page: shows the indexed text of a document at the cited passage. It reads the store, never the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from markupsafe import Markup

from kebab.core.citations import Citation
from kebab.core.documents import PAGE_BREAK
from kebab.core.errors import UsageError
from kebab.core.spans import LineSpan, PageSpan
from kebab.core.text import LineTable
from kebab.interfaces.http import addresses
from kebab.interfaces.http.addresses import reader_of_document, with_parameters
from kebab.interfaces.http.endpoints import checked_text, form_fields
from kebab.interfaces.http.templating import Page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kebab.search.fetching import Opened

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
            "html": Markup(""),
            "front_matter": "",
            "shows_title": False,
            "lines": (),
            "page_text": None,
            "part": None,
        }
        if view == "rendered":
            return {**shown, **self._rendered(opened)}
        return {**shown, **(_page_shown(opened, values) if view == "page" else _lines_shown(opened, values))}

    def _rendered(self, opened: Opened) -> dict[str, Any]:
        from kebab.interfaces.http.markdown_page import MarkdownPage

        document = opened.document
        front = opened.front_matter
        page = MarkdownPage(
            "\n" * front.count("\n") + opened.text[len(front) :], document.path
        )  # empty lines for the front matter, so that lines keep their numbers
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
        raise UsageError(
            "Name a document.",
            hint="For example /read?uri=notes/git.md%23L10-L20, or ?doc_id=… with lines=10-20 or page=3.",
        )
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
    address = with_parameters(
        addresses.READER, {name: value for name, value in values.items() if name != "from"}, view=view
    )
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
    return Line(
        number,
        text[:_LONGEST_LINE],
        cited is not None and cited[0] <= number <= cited[1],
        max(0, len(text) - _LONGEST_LINE),
    )


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
    is_list = (
        parts.netloc == request.headers.get("host")
        and parts.path in (addresses.SEARCH, addresses.LIBRARY)
        and parts.query
    )
    return f"{parts.path}?{parts.query}" if is_list else None
