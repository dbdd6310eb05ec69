"""The parts that all pages share: templates, static files, marked snippets and forms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from kebab._version import __version__
from kebab.core.checking import by_name
from kebab.core.errors import KebabError, NotFound, UsageError
from kebab.core.notices import Says
from kebab.interfaces.http import addresses
from kebab.interfaces.http.api import texts_of
from kebab.interfaces.service import Service, Workers
from kebab.wire.search import HighlightV1

_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"
WORDS = 16
_CUT = "…"
_WORD = re.compile(r"\S+")
_MOST_FIELDS = 100
"""The most fields of a posted form."""
_LEAD = 3
"""The number of words shown before the first match."""

Ranges = Sequence[tuple[int, int]]


class Templates:
    """Renders the page templates. Every value is escaped, except Markup."""

    def __init__(self, static: StaticFiles, *, has_login: bool) -> None:
        self._environment = Environment(
            loader=PackageLoader("kebab.interfaces.http"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(
            addresses=addresses,
            Says=Says,
            static=static.address,
            version=__version__,
            has_login=has_login,
            marked_snippet=marked_snippet,
        )
        self._environment.filters.update(score=_score, number=lambda count: f"{count:,}", size=_size, counted=_counted)

    def page(
        self, template: str, status: int = 200, /, *, error: KebabError | None = None, **values: Any
    ) -> HTMLResponse:
        """A page, with the HTTP status of its error if it has one."""
        text = self._environment.get_template(template).render(error=error, **values)
        return HTMLResponse(text, error.status if error else status)


@dataclass
class Page:
    """The objects that every page needs."""

    service: Service
    workers: Workers
    templates: Templates


def _score(score: float) -> str:
    """A score with two decimals, or <0.01. bm25 is tiny for a word that is in half of all passages."""
    return f"{score:.2f}" if score >= 0.005 else "<0.01"


def _size(count: int) -> str:
    for unit, bytes_ in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count} bytes"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# --- style and script


class StaticFiles:
    """The style and script of the pages. Their names contain a digest, so browsers may cache them forever.

    They are read once at the start; a request never reads a file.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[bytes, str]] = {}
        self._addresses: dict[str, str] = {}
        for file in files(__package__).joinpath("static").iterdir():
            stem, dot, ending = file.name.rpartition(".")
            if media_type := _MEDIA_TYPES.get(dot + ending):
                content = file.read_bytes()
                named = f"{stem}.{sha256(content).hexdigest()[:12]}.{ending}"
                self._by_name[named] = content, media_type
                self._addresses[file.name] = f"/static/{named}"

    def address(self, name: str) -> str:
        return self._addresses[name]

    async def serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._by_name:
            raise NotFound(f"There is no file {request.url.path}.", hint="Load the page again.")
        content, media_type = self._by_name[name]
        return Response(content, media_type=media_type, headers={"Cache-Control": _FOREVER})


# --- snippets


def marked_snippet(snippet: str, highlights: Sequence[HighlightV1], words: int = WORDS) -> Markup:
    """A snippet shortened to some words around the matches, as escaped HTML on one line with the matches in <b>."""
    text, marks = shortened(snippet, [(one.start, one.end) for one in highlights], words)
    parts, last = [], 0
    for start, end in marks:
        parts += [escape(text[last:start]), Markup("<b>"), escape(text[start:end]), Markup("</b>")]
        last = end
    return Markup(" ").join(Markup("").join([*parts, escape(text[last:])]).split())


def shortened(snippet: str, highlights: Ranges, words: int) -> tuple[str, list[tuple[int, int]]]:
    """The `words` words of a snippet with the most matches, and the matches in them. Text without spaces is not cut."""
    begin, stop = snippet.startswith(_CUT), len(snippet) - snippet.endswith(_CUT)
    places = [match.span() for match in _WORD.finditer(snippet, begin, stop)]
    if not places:
        return snippet, []
    first = _densest(places, highlights, words)
    shown = places[first : first + words]
    start, end = shown[0][0], shown[-1][1]
    before = _CUT if first or begin else ""
    after = _CUT if end < places[-1][1] or stop < len(snippet) else ""
    shift = len(before) - start
    marks = [(max(a, start) + shift, min(b, end) + shift) for a, b in highlights if a < end and b > start]
    return before + snippet[start:end] + after, marks


def _densest(places: Ranges, highlights: Ranges, words: int) -> int:
    """The number of the first word to show, chosen to show as many matches as possible."""
    hits = [number for number, (start, end) in enumerate(places) if any(a < end and b > start for a, b in highlights)]
    if not hits:
        return 0
    room = words - _LEAD
    best = max(hits, key=lambda first: (sum(first <= hit < first + room for hit in hits), -first))
    return max(0, min(best - _LEAD, len(places) - words))


# --- forms


def filled_in(request: Request) -> dict[str, list[str]]:
    """The query parameters without empty values, because a browser also sends the form fields that are left empty."""
    kept = {name: [text for text in texts if text.strip()] for name, texts in texts_of(request).items()}
    return {name: texts for name, texts in kept.items() if texts}


def form_fields(request: Request, known: set[str]) -> dict[str, str]:
    """The first value of each non-empty query parameter. A parameter that is not in `known` raises UsageError."""
    by_name(texts_of(request), sorted(known))
    return {name: texts[0] for name, texts in filled_in(request).items()}


async def form_body(request: Request) -> dict[str, str]:
    """The fields of a posted HTML form. The last value counts if a field is repeated."""
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        hint = "Send it as application/x-www-form-urlencoded, in UTF-8."
        raise UsageError(f"The body is no form: {error}.", hint=hint) from error
