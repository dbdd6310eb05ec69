"""The command kb search."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kebab.core.errors import UsageError
from kebab.interfaces.cli.options import command, follow_up_error, knowledge_base, option
from kebab.interfaces.cli.render import follow_up_notices, show_response
from kebab.search import options as search_request
from kebab.search.options import KINDS, OPTIONS, SearchRequest

if TYPE_CHECKING:
    from kebab.core.search import SearchResponse
    from kebab.knowledge_base import KnowledgeBase

_Function = Callable[..., Any]

FILTERS = (*search_request.FILTERS, "doc")
"""The search options that filter documents."""


def search_options(*names: str, **sentences: str) -> Callable[[_Function], _Function]:
    """Adds search options to a command. `sentences`: help texts that replace the usual ones."""

    def decorate(function: _Function) -> _Function:
        for name in reversed(names):
            about, kind = OPTIONS[name], KINDS[name]
            function = option(
                *(about.flags or (f"--{name.replace('_', '-')}",)),
                name if name != "highlight" else "no_highlight",
                type=kind if kind in (int, float) else None,
                is_flag=True if kind is bool else None,
                multiple=kind is list and name != "tags_all",  # --tags A,B is one text
                metavar=about.metavar,
                help=sentences.get(name, about.cli_help or about.help),
            )(function)
        return function

    return decorate


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the user gave."""
    return {name: value for name, value in options.items() if value not in (None, ())}


@command(
    "search",
    example="kb search 'install git' --tag setup\nkb search '\"exact phrase\" OR prefix*' --json\n"
    "kb search 문서 검색 --lang ko",
)
@click.argument("query", nargs=-1)
@search_options("mode")
@option("--fts-only", is_flag=True, help="The same as --mode lexical.")
@option("--vec-only", is_flag=True, help="The same as --mode vector.")
@search_options("k", "offset", "cursor", *FILTERS, "library", "snippet_type", "match", "fusion", "sort", "per_doc")
@search_options("duplicates", "threshold", "min_score", "max_tokens", "full_text", "group", "neighbours")
@search_options("highlight", "explain")
@option("--bulk", is_flag=True, help="Queries as JSON lines on stdin, one response per line.")
@option("--exit-code", is_flag=True, help="Exit with 1 when nothing matches.")
@option(
    "--open",
    "open_hit",
    type=int,
    metavar="N",
    help="Open hit N in $EDITOR at its line; a PDF or Office file in its program.",
)
def search_command(query: tuple[str, ...], bulk: bool, exit_code: bool, open_hit: int | None, **options: Any) -> int:
    """Find the passages that answer QUERY, by its words and by its meaning.

    Words are searched together, and apart when together they give too few. "A phrase", prefix*, AND, OR and NOT in
    capitals mean what they say; a query in single quotes is raw FTS5. While there are no vectors, only words are
    compared.
    """
    if bulk and query:
        raise UsageError("--bulk reads its queries from stdin and takes no QUERY.", hint="Leave one of them out.")
    if not bulk and not query:
        raise UsageError("There is no QUERY.", hint="For example: kb search 'install git'")
    request = SearchRequest.from_options(_request_options(options))
    if bulk:
        return _bulk(request)
    request = SearchRequest.from_options({"query": " ".join(query)}, request)
    kb = knowledge_base()
    response = _answered(kb, request)
    if open_hit is not None:
        from kebab.interfaces.cli.opening import open_in_program

        return open_in_program(kb, response, open_hit)
    show_response(response, _remarks_on(response, request), dates=request.sort == "date")
    return 1 if exit_code and not response.has_matches else 0


def _request_options(options: dict[str, Any]) -> dict[str, Any]:
    fts_only, vec_only = options.pop("fts_only"), options.pop("vec_only")
    if fts_only and vec_only:
        raise UsageError("--fts-only and --vec-only contradict each other.", hint="Keep one of them.")
    if fts_only or vec_only:
        alias = "lexical" if fts_only else "vector"
        if options["mode"] not in (None, alias):
            raise UsageError(
                f"--mode {options['mode']} contradicts --{'fts' if fts_only else 'vec'}-only.", hint="Keep one of them."
            )
        options["mode"] = alias
    options["highlight"] = not options.pop("no_highlight")
    return given(options)


def _answered(kb: KnowledgeBase, request: SearchRequest) -> SearchResponse:
    response = kb.search(request)
    response.notices = follow_up_notices(response.notices)
    return response


def _remarks_on(response: SearchResponse, request: SearchRequest) -> Iterator[str]:
    messages = {notice.code: notice.message for notice in response.notices}
    for notice in response.notices:
        if notice.code == "vectors_off" and request.mode is None:
            continue  # the user has turned vectors off
        if notice.code != "did_you_mean" or response.hits:  # without hits, the suggestion is part of the last remark
            yield f"note: {notice.message}"
    if not response.hits and response.query.strip() and "empty_corpus" not in messages:
        yield f"No passage matches. {messages.get('did_you_mean') or _what_to_try(request)}"


def _what_to_try(request: SearchRequest) -> str:
    limits = {"--threshold": request.threshold, "--min-score": request.min_score}
    if given := [flag for flag, value in limits.items() if value is not None]:
        return f"Try without {' and '.join(given)}."
    return "Try fewer filters." if request.filters() else "Try other words, or kb list docs."


def _bulk(defaults: SearchRequest) -> int:
    """Reads one query per line from stdin, and prints one response per line in the same order."""
    from kebab.interfaces.bulk import answer_line
    from kebab.wire import to_json

    kb = knowledge_base()
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            click.echo(to_json(answer_line(line, number, defaults, partial(_answered, kb), follow_up_error)))
    return 0
