"""The search page: a form and the hits. The list of hits also has an address of its own, for the script that searches
while the user types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.errors import KebabError, StaleCursor
from kebab.core.search import MODES
from kebab.interfaces.http import addresses
from kebab.interfaces.http.addresses import with_parameters
from kebab.interfaces.http.endpoints import filled_in
from kebab.interfaces.http.templating import Page
from kebab.search.options import SearchRequest, read_texts
from kebab.wire.errors import http_status

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kebab.interfaces.service import FilterChoices
    from kebab.wire.search import SearchHitV1, SearchResponseV1

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
            http_status(type(error)) if error else 200,
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
        return self.templates.page(
            "results.html", http_status(type(error)) if error else 200, **_list_values(asked, answer, error)
        )

    def _everything(self, asked: Asked) -> tuple[FilterChoices, ThereIs, SearchResponseV1 | None, KebabError | None]:
        choices = self.service.filter_choices()
        kb = self.service.kb
        return (
            choices,
            ThereIs(kb.count_documents(), len(choices.sources), len(kb.libraries.all())),
            *self._answered(asked),
        )

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
