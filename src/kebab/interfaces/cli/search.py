"""kb search"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kebab.core.errors import UsageError
from kebab.interfaces.cli.follow_up import follow_up_error, follow_up_notices
from kebab.interfaces.cli.options import command, knowledge_base, wants_json
from kebab.interfaces.cli.render import print_json, print_search, remark
from kebab.search.request import MAX_NEIGHBOURS, SearchRequest

if TYPE_CHECKING:
    from kebab.core.search import SearchResponse


def filter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which documents may answer."""
    for decorate in reversed(
        (
            click.option(
                "--tag", "tags_any", multiple=True, help="Documents with this tag; repeat it for any of several."
            ),
            click.option("--tags", "tags_all", metavar="A,B", help="Documents with all of these tags."),
            click.option("--type", "type", multiple=True, help="pdf, markdown, code or note; may be repeated."),
            click.option("--format", "format", multiple=True, help="Finer than --type: md, txt, py, …"),
            click.option("--lang", help="Language of the document: en, ko, ja, zh, …"),
            click.option("--path", metavar="GLOB", help="'docs/**/*.md'; * stops at a slash."),
            click.option("--exclude-path", multiple=True, metavar="GLOB", help="Leave out these paths."),
            click.option("--exclude-tag", multiple=True, help="Leave out documents with this tag."),
            click.option("--trust-min", help="primary, secondary or generated."),
            click.option("--source", multiple=True, help="Only this source; see kb list sources."),
            click.option("--doc", multiple=True, metavar="ID", help="Only this document."),
            click.option("--after", metavar="DATE", help="Not older: 2026-01-31, or '2 weeks'."),
            click.option("--before", metavar="DATE", help="Older than: 2026-01-31, or '1 year'."),
        )
    ):
        function = decorate(function)
    return function


@command(
    "search",
    example="kb search 'install git' --tag setup\nkb search '\"exact phrase\" OR prefix*' --json\nkb search 문서 검색 --lang ko",
)
@click.argument("query", nargs=-1)
@click.option(
    "--mode",
    metavar="MODE",
    help="hybrid: by words and by meaning (the default); lexical: by words; vector: by meaning.",
)
@click.option("--fts-only", is_flag=True, help="The same as --mode lexical.")
@click.option("--vec-only", is_flag=True, help="The same as --mode vector.")
@click.option("-k", "--k", "--top", "k", type=int, help="How many hits (setting search.default_k, 10).")
@click.option("--offset", type=int, help="Leave out this many from the beginning.")
@click.option("--cursor", help="Go on where a response with next_cursor ended.")
@filter_options
@click.option(
    "--library",
    metavar="/OWNER/PROJECT[/VERSION]",
    help="The documentation of this library instead of what was ingested.",
)
@click.option("--snippet-type", help="Of a library: code or info.")
@click.option("--match", help="all words, any of them, or auto: all first, any when that gives too few.")
@click.option(
    "--fusion", help="How hybrid mixes: rrf, by rank, or convex, by score (setting search.hybrid_fusion, rrf)."
)
@click.option("--sort", help="relevance or date (newest first).")
@click.option("--per-doc", type=int, help="At most this many hits of one document.")
@click.option(
    "--duplicates",
    metavar="HOW",
    help="Passages with nearly the same text: fold them under the best one, or show each (setting, fold).",
)
@click.option(
    "--threshold", type=float, help="Least raw RRF score; first on both sides is 0.033. Only hybrid with rrf has one."
)
@click.option("--min-score", type=float, help="Least score, 0 to 1, in every mode.")
@click.option("--max-tokens", type=int, help="Whole hits up to about this many tokens.")
@click.option("--full-text", is_flag=True, help="The whole passage, not only a snippet.")
@click.option("--group", is_flag=True, help="Hits of one document together, documents in the order of their best hits.")
@click.option(
    "--neighbours",
    type=int,
    metavar="N",
    help=f"The N passages before and after each hit too; {MAX_NEIGHBOURS} at most.",
)
@click.option("--no-highlight", is_flag=True, help="No marks on what matched.")
@click.option("--explain", is_flag=True, help="Why each hit is where it is.")
@click.option("--bulk", is_flag=True, help="Queries as JSON lines on stdin, one response per line.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 when nothing matches.")
@click.option(
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
    response = follow_up_notices(kb.search(request))
    if open_hit is not None:
        from kebab.interfaces.cli.opening import open_in_program

        return open_in_program(kb, response, open_hit)
    if wants_json():
        from kebab.wire.search import search_response_v1

        print_json(search_response_v1(response))
        _remark_on(response, request)
    else:
        _remark_on(response, request)
        print_search(response, dates=request.sort == "date")
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
    return {name: value for name, value in options.items() if value not in (None, ())}


def _remark_on(response: SearchResponse, request: SearchRequest) -> None:
    for notice in response.notices:
        if notice.code == "vectors_off" and request.mode is None:
            continue  # it was the user who turned them off
        if notice.code == "did_you_mean" and not response.hits:
            continue  # said below, where nothing else has to be tried
        remark(f"note: {notice.message}")
    if (
        not response.hits
        and response.query.strip()
        and not any(notice.code == "empty_corpus" for notice in response.notices)
    ):
        meant = [notice.message for notice in response.notices if notice.code == "did_you_mean"]
        remark(f"No passage matches. {meant[0] if meant else _what_to_try(request)}")


def _what_to_try(request: SearchRequest) -> str:
    given = [
        option
        for option, value in (("--threshold", request.threshold), ("--min-score", request.min_score))
        if value is not None
    ]
    if given:
        return f"Try without {' and '.join(given)}."
    return "Try fewer filters." if request.filters() else "Try other words, or kb list docs."


def _bulk(defaults: SearchRequest) -> int:
    """One response per line, in order."""
    from kebab.interfaces.bulk import answer_line
    from kebab.wire.objects import to_json

    kb = knowledge_base()
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            click.echo(
                to_json(
                    answer_line(
                        line, number, defaults, lambda request: follow_up_notices(kb.search(request)), follow_up_error
                    )
                )
            )
    return 0
