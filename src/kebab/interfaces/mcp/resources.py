"""Documents as resources: kebab://SOURCE/PATH is the whole of one, and with #L3-L9 or #page=2 behind it a part."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import mcp_types as types

from kebab.core.errors import NotFound, UsageError
from kebab.core.search import SUSPICIOUS
from kebab.wire.records import DocSummaryV1

if TYPE_CHECKING:
    from kebab.interfaces.service import Service

_SCHEME = "kebab://"
_PAGE = 100
_EXAMPLE = "It looks like kebab://notes/git.md or kebab://notes/git.md#L3-L9; see resources/list."

TEMPLATES = [
    types.ResourceTemplate(
        name="document",
        title="A document",
        uri_template=f"{_SCHEME}{{source}}/{{+path}}",
        description="The indexed text of a document.",
    ),
    types.ResourceTemplate(
        name="lines",
        title="Lines of a document",
        uri_template=f"{_SCHEME}{{source}}/{{+path}}#L{{first}}-L{{last}}",
        description="Exactly these lines of the indexed text, as a citation names them.",
    ),
]


def listed(service: Service, cursor: str | None) -> types.ListResourcesResult:
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise UsageError(f"{cursor!r} is no cursor of this list.", hint="Take nextCursor as it was given.")
    page = service.documents({}, limit=_PAGE, offset=int(cursor or 0))
    return types.ListResourcesResult(
        resources=[_resource(item) for item in page.items if isinstance(item, DocSummaryV1)],
        next_cursor=None if page.next_offset is None else str(page.next_offset),
    )


def _resource(document: DocSummaryV1) -> types.Resource:
    return types.Resource(
        name=document.doc_path,
        title=document.title,
        uri=uri_of(document.source, document.doc_path),
        mime_type=_mime_type(document.doc_path),
    )


def uri_of(source: str, path: str) -> str:
    return f"{_SCHEME}{quote(source, safe='')}/{quote(path)}"


def _mime_type(path: str) -> str:
    return "text/markdown" if path.lower().endswith((".md", ".markdown")) else "text/plain"


def read(service: Service, uri: str) -> types.ReadResourceResult:
    place, mark, span = uri.removeprefix(_SCHEME).partition("#")
    source, slash, path = place.partition("/")
    if not uri.startswith(_SCHEME) or not source or not slash or not path:
        raise NotFound(f"There is no resource {uri!r}.", hint=_EXAMPLE)
    fetched = (
        service.span(f"{source}:{path}#{span}") if mark else service.fetch(doc_id=f"{unquote(source)}:{unquote(path)}")
    )
    contents = types.TextResourceContents(uri=uri, mime_type=_mime_type(fetched.doc_path), text=fetched.text)
    if not fetched.suspicious:
        return types.ReadResourceResult(contents=[contents])
    # The text stays verbatim: the flag goes beside it, for programs, and a remark in a part of its own, for models.
    contents.meta = {"suspicious": True}
    note = types.TextResourceContents(uri=uri, mime_type="text/plain", text=f"note: {SUSPICIOUS}")
    return types.ReadResourceResult(contents=[note, contents])
