"""Templates to pages. Everything that is put into one is escaped, unless it is markup that we made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from kebab._version import __version__
from kebab.interfaces.http import addresses
from kebab.interfaces.http.snippet_markup import marked_snippet

if TYPE_CHECKING:
    from kebab.interfaces.http.static_files import StaticFiles


class Templates:
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
            static=static.address,
            version=__version__,
            has_login=has_login,
            marked_snippet=marked_snippet,
        )
        self._environment.filters.update(score=_score, number=lambda count: f"{count:,}", size=_size, counted=_counted)

    def page(self, template: str, http_status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._environment.get_template(template).render(**values), http_status)


def _score(score: float) -> str:
    """Where a word is in half of all passages, bm25 is tiny: small is not nothing."""
    return f"{score:.2f}" if score >= 0.005 else "<0.01"


def _size(count: int) -> str:
    for unit, bytes_ in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count} bytes"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
