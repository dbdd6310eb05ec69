"""The commands kb search and kb similar."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kebab.core.errors import UsageError, VectorsOff
from kebab.core.notices import Says
from kebab.core.search import SUSPICIOUS, DocumentGroup, Neighbour, Neighbours, SearchHit, SearchResponse
from kebab.interfaces.cli.options import command, knowledge_base, option, wants_json
from kebab.interfaces.cli.render import (
    CONTROL,
    follow_up_error,
    follow_up_notices,
    has_colour,
    print_json,
    remark,
    say,
    shown,
)
from kebab.search import options as search_request
from kebab.search.options import KINDS, OPTIONS, SearchRequest

if TYPE_CHECKING:
    from kebab.knowledge_base import KnowledgeBase

_NAMED_DUPLICATES = 3
"""The most duplicates of a hit that are named. The others are only counted."""
_MOST_CONTEXT = 200
"""The most characters that are shown of a hit's context notes."""
_Function = Callable[..., Any]

FILTERS = (*search_request.FILTERS, "doc")
"""The search options that filter documents."""


def search_options(*names: str, **sentences: str) -> Callable[[_Function], _Function]:
    """Adds search options to a command. `sentences`: help texts that replace the usual ones."""

    def decorate(function: _Function) -> _Function:
        for name in reversed(names):
            about, kind = OPTIONS[name], KINDS[name]
            value: dict[str, Any] = {"flag_value": about.flag_value} if about.flag_value is not None else {}
            function = option(
                *(about.flags or (f"--{name.replace('_', '-')}",)),
                name if name != "highlight" else "no_highlight",
                type=kind if kind in (int, float) else None,
                is_flag=True if kind is bool else False if value else None,
                multiple=kind is list and name != "tags_all",  # --tags A,B is one text
                metavar=about.metavar,
                **value,
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
@search_options("k", "offset", "cursor", *FILTERS, "library", "snippet_type", "match", "fusion", "rerank", "sort")
@search_options("per_doc", "duplicates", "threshold", "min_score", "max_tokens", "full_text", "group", "neighbours")
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
            hint = "Keep one of them."
            raise UsageError(f"--mode {options['mode']} contradicts --{'fts' if fts_only else 'vec'}-only.", hint=hint)
        options["mode"] = alias
    options["highlight"] = not options.pop("no_highlight")
    return given(options)


def _answered(kb: KnowledgeBase, request: SearchRequest) -> SearchResponse:
    response = kb.search(request)
    response.notices = follow_up_notices(response.notices)
    return response


def _remarks_on(response: SearchResponse, request: SearchRequest) -> Iterator[str]:
    advice = _what_to_try(request)
    for notice in response.notices:
        if notice.code == VectorsOff.code and request.mode is None:
            continue  # the user has turned vectors off
        if notice.code == Says.DID_YOU_MEAN.code and not response.hits:
            advice = notice.message
            continue
        yield f"note: {notice.message}"
    if not response.hits and response.query.strip() and not Says.EMPTY_CORPUS.is_in(response.notices):
        yield f"No passage matches. {advice}"


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


@command(
    "similar",
    example="kb similar git/undo.md#L23-L54\nkb similar git/undo.md --type markdown -k 3\n"
    "kb similar 1f0c9a7be2 --other-docs",
)
@click.argument("passage", metavar="ID|PATH|PATH#L10-L20")
@option("--other-docs", is_flag=True, help="Nothing of the passage's own document.")
@search_options(
    *("mode", "k", "offset", *FILTERS, "per_doc", "min_score", "max_tokens", "full_text"),
    mode="vector: by meaning (the default, while there are vectors); lexical: by telling words.",
    min_score="Least score, 0 to 1.",
)
@option("--exit-code", is_flag=True, help="Exit with 1 when nothing is found.")
def similar_command(passage: str, other_docs: bool, exit_code: bool, **options: Any) -> int:
    """Find passages like this one: a chunk by its id, lines or a page by their citation, or a whole document.

    The vectors that were made of it are compared with those of all other passages; several are taken together. Where
    there are none, passages that share its most telling words are found. The passage itself is left out.
    """
    response = knowledge_base().similar(passage, other_docs=other_docs, **given(options))
    response.notices = follow_up_notices(response.notices)
    show_response(response, [f"note: {notice.message}" for notice in response.notices])
    return 1 if exit_code and not response.hits else 0


# --- hits


def show_response(response: SearchResponse, remarks: Iterable[str], *, dates: bool = False) -> None:
    """Prints a response as JSON or as text, and the remarks to stderr."""
    if wants_json():
        from kebab.wire.search import search_response_v1

        print_json(search_response_v1(response))
    for text in remarks:
        remark(text)
    if not wants_json():
        print_search(response, dates=dates)


def print_search(response: SearchResponse, *, dates: bool = False) -> None:
    """Prints the hits of a response as text. `dates`: whether to print the date of each document."""
    sources = {hit.source for hit in response.hits} | {copy.source for hit in response.hits for copy in hit.duplicates}
    several_sources = len(sources) > 1
    if response.grouped:
        for group in response.by_document():
            _print_group(group, several_sources, dates)
    else:
        for hit in response.hits:
            _print_hit(hit, several_sources, dates)
    if response.explanation is not None:
        _print_explanation(response.explanation)
    if response.next_cursor and sys.stdout.isatty():
        remark(f"more: --cursor {response.next_cursor}")
    click.echo(f"returned: {len(response.hits)}")


def _print_group(group: DocumentGroup, show_source: bool, show_date: bool) -> None:
    click.echo(f"doc: {shown(group.doc_path)}" + (f" ({shown(group.title)})" if group.title else ""))
    if show_source:
        click.echo(f"source: {shown(group.source)}")
    if show_date:
        click.echo(f"date: {group.hits[0].date[:10]}")
    click.echo()
    for hit in group.hits:
        _print_hit(hit, show_source=False, show_date=False, show_doc=False)


def _print_hit(hit: SearchHit, show_source: bool, show_date: bool, show_doc: bool = True) -> None:
    before, after = hit.neighbours or Neighbours()
    for neighbour in before:
        _print_neighbour("before", neighbour)
    # bm25 is tiny but not zero for a word that is in half of all passages.
    score = f"{hit.score:.2f}" if hit.score >= 0.005 else "<0.01"
    click.echo(f"{hit.rank}. [{score}] {_one_line(hit)}")
    is_suspicious = hit.suspicious or any(neighbour.suspicious for neighbour in (*before, *after))
    for name, text in (
        ("doc", shown(hit.doc_path) if show_doc else ""),
        ("citation", _styled(shown(hit.citation.text), fg="cyan")),
        ("source", shown(hit.source) if show_source else ""),
        ("date", hit.date[:10] if show_date else ""),
        ("stale", "its file has changed or is gone since it was indexed" if hit.stale else ""),
        ("note", SUSPICIOUS if is_suspicious else ""),
        ("heading", shown(" > ".join(hit.heading_path))),
        ("context", _styled(_cut(shown(" > ".join(hit.context))), dim=True) if hit.context else ""),
    ):
        if text:
            click.echo(f"   {name}: {text}")
    if hit.duplicates:
        click.echo(f"   {_styled(_also_in(hit), dim=True)}")
    if hit.explanation is not None:
        _print_hit_explanation(hit)
    if hit.text != hit.snippet:
        click.echo()
        for line in hit.text.splitlines():
            say(f"   | {line}".expandtabs(4))
    for neighbour in after:
        _print_neighbour("after", neighbour)
    click.echo()


def _print_neighbour(where: str, neighbour: Neighbour) -> None:
    click.echo(f"   {_styled(f'{where}: {shown(neighbour.citation.text)}', dim=True)}")
    for line in neighbour.text.splitlines():
        click.echo(_styled(CONTROL.sub("\ufffd", f"   | {line}".expandtabs(4)), dim=True))


def _also_in(hit: SearchHit) -> str:
    places = [
        duplicate.citation.text if duplicate.source == hit.source else f"{duplicate.source}:{duplicate.citation.text}"
        for duplicate in hit.duplicates
    ]
    named = ", ".join(map(shown, places[:_NAMED_DUPLICATES]))
    others = len(hit.duplicates) - _NAMED_DUPLICATES
    return f"also in: {named}" + (f" (+{others})" if others > 0 else "")


def _one_line(hit: SearchHit) -> str:
    """The snippet of a hit on one line, with its matches coloured if the terminal has colour."""
    if not has_colour():
        return shown(hit.snippet)
    parts, last = [], 0
    for start, end in hit.highlights:
        parts += [
            CONTROL.sub(_without_control, hit.snippet[last:start]),
            click.style(shown(hit.snippet[start:end]), bold=True, fg="yellow"),
        ]
        last = end
    return " ".join("".join([*parts, CONTROL.sub(_without_control, hit.snippet[last:])]).split())


def _without_control(match: re.Match[str]) -> str:
    return " " if match[0].isspace() else "\ufffd"


def _styled(text: str, **style: Any) -> str:
    return click.style(text, **style) if has_colour() else text


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CONTEXT else text[: _MOST_CONTEXT - 1].rstrip() + "…"


def _print_hit_explanation(hit: SearchHit) -> None:
    detail, explanation = hit.retrieval, hit.explanation or {}
    for name, rank, score in (
        ("lexical", detail.lexical_rank, detail.lexical_score),
        ("vector", detail.vector_rank, detail.vector_score),
    ):
        absent = "not found" if detail.method == "hybrid" else "not used"
        model = (explanation.get(name) or {}).get("model")
        found = f"rank {rank}, score {score:.4f}" if rank is not None else absent
        click.echo(f"   {name}: {found}{f' ({model})' if model else ''}")
    fusion = explanation.get("fusion") or {}
    if detail.rrf_score is not None:
        parts = f"lexical {fusion['from_lexical']:.4f} + vector {fusion['from_vector']:.4f}"
        click.echo(f"   rrf: {detail.rrf_score:.4f}; with weights {parts} + exact {fusion['from_exact']:.4f}")
    elif hit.score_kind == "convex":
        click.echo(f"   convex: {hit.score:.4f}")
    weights = ""
    if detail.weights:
        lexical, vector, exact = detail.weights
        weights = f", weights lexical {lexical:.3g}, vector {vector:.3g}, exact {exact}"
    click.echo(f"   fusion: rank {hit.rank}, score {detail.fusion_score:.4f} ({hit.retrieval_method}{weights})")
    if rerank := explanation.get("rerank"):
        click.echo(f"   rerank: rank {rerank['rank_before']} before, score {rerank['score']:.4f} ({rerank['model']})")
    if explanation.get("moved"):
        click.echo(f"   moved: {explanation['moved']}")
    matched = explanation.get("matched") or {}
    listed = "; ".join(f"{column}: {', '.join(terms)}" for column, terms in matched.items() if terms)
    if listed:
        say(f"   matched: {listed}")


def _print_explanation(explanation: dict[str, Any]) -> None:
    lexical, vector, fusion = (explanation.get(side) or {} for side in ("lexical", "vector", "fusion"))
    if lexical:
        matches = f"{lexical['matches']} matches, {lexical['removed_by_filters']} removed by filters"
        click.echo(f"lexical: match {lexical['match']}, {matches}")
        say(f"lexical: expression {lexical['expression']}")
        if lexical["stop_words_dropped"]:
            click.echo(f"lexical: stop words dropped: {', '.join(lexical['stop_words_dropped'])}")
    for space in vector.get("spaces", ()):
        scopes = {"own_scripts": ", text of its own scripts", "other_scripts": ", text of other scripts"}
        scope = scopes.get(space["scope"], "")
        click.echo(f"vector: {space['model']}, {space['found']} found{scope}")
    if fusion:
        alone = f"{fusion['lexical_only']} by words only, {fusion['vector_only']} by meaning only"
        asked = f"{fusion['depth']} asked of each side"
        click.echo(f"fusion: {fusion['kind']}, {asked}, {fusion['both']} found by both, {alone}")
        if fusion["too_far"]:
            click.echo(f"fusion: too far away in meaning to count by itself: {fusion['too_far']}")
    if explanation["fewer_than_asked"]:
        fewer = explanation["fewer_than_asked"]
        click.echo(f"fewer than asked for by {fewer}: no more passages match or pass the filters")
    click.echo(f"removed by --threshold: {explanation['removed_by_threshold']}")
    click.echo(f"removed by --min-score: {explanation['removed_by_min_score']}")
    click.echo(f"removed by --max-tokens: {explanation['removed_by_max_tokens']}")
