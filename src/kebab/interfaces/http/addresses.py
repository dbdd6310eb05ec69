"""Makes the addresses of the web pages, so that hits, citations and links all lead to the same reader page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from kebab.core import citations

SEARCH, RESULTS, READER = "/", "/results", "/read"
LIBRARIES, LIBRARY = "/libraries", "/library"
STATUS, INGEST, LOGOUT = "/status", "/status/ingest", "/logout"
CITED = "cited"
"""The id of the HTML element that holds the cited passage."""


def with_parameters(path: str, parameters: Mapping[str, Any], **changes: Any) -> str:
    """An address with these parameters and changes. Empty parameters and those changed to None are left out."""
    merged = {
        name: value for name, value in {**parameters, **changes}.items() if value not in (None, "", [], (), False)
    }
    return f"{path}?{urlencode(merged, doseq=True, quote_via=quote, safe='/:')}" if merged else path


def reader_of(place: str, citation: str) -> str:
    """The reader page's address for a citation's uri. `place` is the source, or /owner/project and version of a
    library: two sources may have the same path.
    """
    if citation.startswith("/"):  # the uri of a library document names its library
        return with_parameters(READER, {"uri": citation}) + f"#{CITED}"
    path, hash_sign, fragment = citation.rpartition("#")
    place = place.replace("%", "%25").replace("#", "%23")
    return with_parameters(READER, {"uri": f"{place}:{path}{hash_sign}{fragment}"}) + f"#{CITED}"


def reader_of_document(place: str, path: str, doc_id: str | None = None) -> str:
    """The reader page's address for a whole document."""
    whole = f"{place}:{path}"
    if citations.parse(whole)[1] is not None and doc_id is not None:  # the file's name looks like a citation
        return with_parameters(READER, {"doc_id": doc_id})
    return with_parameters(READER, {"uri": whole})


def safe_next(address: str | None) -> str:
    """The address to open after logging in: the given one if it is a page of this server, else the search page."""
    if (
        not address
        or not address.startswith("/")
        or address.startswith(("//", "/\\"))
        or any(letter < " " for letter in address)
    ):
        return SEARCH
    return address
