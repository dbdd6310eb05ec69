"""Addresses of the page, written in one place: a hit, a citation and a link in a document lead to the same reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from kebab.core import citations

SEARCH, RESULTS, READER, LIBRARIES, LIBRARY, STATUS, LOGOUT = (
    "/",
    "/results",
    "/read",
    "/libraries",
    "/library",
    "/status",
    "/logout",
)
INGEST = "/status/ingest"
CITED = "cited"
"""The id of the marked passage."""


def with_parameters(path: str, parameters: Mapping[str, Any], **changes: Any) -> str:
    """A path with these parameters; empty ones, and those changed to None, are left out."""
    merged = {
        name: value for name, value in {**parameters, **changes}.items() if value not in (None, "", [], (), False)
    }
    return f"{path}?{urlencode(merged, doseq=True, quote_via=quote, safe='/:')}" if merged else path


def reader_of(place: str, citation: str) -> str:
    """Where a citation's uri is read. `place` is the source, or /owner/project and version of a library: paths alone
    may be ambiguous.
    """
    if citation.startswith("/"):  # one of a library says which
        return with_parameters(READER, {"uri": citation}) + f"#{CITED}"
    path, hash_sign, fragment = citation.rpartition("#")
    place = place.replace("%", "%25").replace("#", "%23")
    return with_parameters(READER, {"uri": f"{place}:{path}{hash_sign}{fragment}"}) + f"#{CITED}"


def reader_of_document(place: str, path: str, doc_id: str | None = None) -> str:
    """Where a whole document is read."""
    whole = f"{place}:{path}"
    if citations.parse(whole)[1] is not None and doc_id is not None:  # a file may be called like a citation
        return with_parameters(READER, {"doc_id": doc_id})
    return with_parameters(READER, {"uri": whole})


def safe_next(address: str | None) -> str:
    """Where to go after logging in: only ever to a page of this server."""
    if (
        not address
        or not address.startswith("/")
        or address.startswith(("//", "/\\"))
        or any(letter < " " for letter in address)
    ):
        return SEARCH
    return address
