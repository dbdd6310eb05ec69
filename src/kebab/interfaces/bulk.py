"""Answers bulk searches, one line of JSON per query, for `kb search --bulk` and for HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kebab.core.errors import KebabError, UsageError
from kebab.core.text import json_values
from kebab.search.options import SearchRequest

if TYPE_CHECKING:
    from kebab.core.search import SearchResponse
    from kebab.wire.errors import ErrorV1
    from kebab.wire.search import SearchResponseV1

_EXAMPLE = 'For example {"id": "q1", "query": "install git"}'


def answer_line(
    line: str | dict[str, Any],
    number: int,
    defaults: SearchRequest,
    search: Callable[[SearchRequest], SearchResponse],
    on_error: Callable[[KebabError], None] | None = None,
) -> SearchResponseV1 | ErrorV1:
    """Returns the search response to one line, or an error object if the line is wrong or its search fails."""
    from kebab.wire.errors import error_v1
    from kebab.wire.search import search_response_v1

    identifier = None
    try:
        options = dict(_options(line, number))
        identifier = _text_id(options.pop("id", None))
        if "query" not in options:
            raise UsageError(f"Line {number} has no query.", hint=_EXAMPLE)
        return search_response_v1(search(SearchRequest.from_options(options, defaults)), id=identifier)
    except KebabError as error:
        if on_error is not None:
            on_error(error)
        return error_v1(error, id=identifier)


def _options(line: str | dict[str, Any], number: int) -> dict[str, Any]:
    try:
        options = json_values(line) if isinstance(line, str) else line
    except (ValueError, RecursionError) as error:
        raise UsageError(f"Line {number} is not JSON: {error}.", hint=_EXAMPLE) from error
    if not isinstance(options, dict):
        raise UsageError(f"Line {number} is not a JSON object.", hint=_EXAMPLE)
    return options


def line_id(line: str | dict[str, Any]) -> str | None:
    """The id that the caller gave to a line, or None."""
    try:
        return _text_id(_options(line, 0).get("id"))
    except UsageError:
        return None


def _text_id(identifier: Any) -> str | None:
    return identifier if identifier is None or isinstance(identifier, str) else json.dumps(identifier)
