"""Prints results: as text for people, with colour on a terminal, or as JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kebab.core.search import SUSPICIOUS, DocumentGroup, Neighbour, Neighbours, SearchHit, SearchResponse
from kebab.interfaces.cli.options import follow_up, is_quiet, wants_json

if TYPE_CHECKING:
    from kebab.core.notices import Notice
    from kebab.interfaces.cli.table import Cut

_STEERING = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

_NAMED_DUPLICATES = 3
"""The most duplicates of a hit that are named. The others are only counted."""
_MOST_CONTEXT = 200
"""The most characters that are shown of a hit's context notes."""


def print_json(value: Any) -> None:
    from kebab.wire import to_json

    click.echo(to_json(value, indent=2 if sys.stdout.isatty() else None))


def printed_as_json(wire_object: Any) -> bool:
    """Prints a wire object as JSON if --json is given, and returns whether it is."""
    if wants_json():
        print_json(wire_object)
    return wants_json()


def done(command: str, message: str, *places: str | Path) -> int:
    """Prints what a command did that has no other result, and returns exit code 0."""
    if wants_json():
        from kebab.wire.records import DoneV1

        print_json(DoneV1(command=command, message=message, paths=[str(place) for place in places]))
    else:
        say(message)
    return 0


def say(text: str = "") -> None:
    """Prints a line with its control characters replaced."""
    click.echo(_CONTROL.sub("\ufffd", text))


def remark(text: str) -> None:
    """Prints a line to stderr, unless --quiet is given."""
    if not is_quiet():
        click.echo(_CONTROL.sub("\ufffd", follow_up(text)), err=True)


def shown(text: str) -> str:
    """A text on one line with its control characters replaced, because they could move the cursor of the terminal."""
    return _CONTROL.sub("\ufffd", " ".join(text.split()))


def harmless(text: str) -> str:
    """A text with its lines kept, but with the control characters replaced that could change the terminal."""
    return _STEERING.sub("\ufffd", text)


def print_verbatim(text: str) -> None:
    """Prints a text unchanged to a file or pipe; on a terminal, with its control characters replaced."""
    end = "" if text.endswith("\n") else "\n"
    if sys.stdout.isatty():
        click.echo(harmless(text) + end, nl=False)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write((text + end).encode("utf-8", "replace"))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, shorten: Mapping[str, Cut] | None = None) -> None:
    """Prints a table that fits the terminal, or tab-separated values to a file or pipe.

    `shorten`: the columns to shorten if the terminal is narrow, and where to cut their cells. Then each row is one
    line; without `shorten`, long cells continue on the next line.
    """
    rows = [[shown(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from kebab.interfaces.cli.table import print_table

        print_table(headings, rows, shorten or {})
        return
    for row in (headings, *rows):
        click.echo("\t".join(row))


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def has_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def follow_up_notices(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    return tuple(notice._replace(message=follow_up(notice.message)) for notice in notices)


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
        click.echo(_styled(_CONTROL.sub("\ufffd", f"   | {line}".expandtabs(4)), dim=True))


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
            _CONTROL.sub(_without_control, hit.snippet[last:start]),
            click.style(shown(hit.snippet[start:end]), bold=True, fg="yellow"),
        ]
        last = end
    return " ".join("".join([*parts, _CONTROL.sub(_without_control, hit.snippet[last:])]).split())


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
        click.echo(
            f"   {name}: "
            + (f"rank {rank}, score {score:.4f}" if rank is not None else absent)
            + (f" ({model})" if model else "")
        )
    fusion = explanation.get("fusion") or {}
    if detail.rrf_score is not None:
        click.echo(
            f"   rrf: {detail.rrf_score:.4f} = lexical {fusion['from_lexical']:.4f} + vector "
            f"{fusion['from_vector']:.4f}"
        )
    elif hit.score_kind == "convex":
        click.echo(f"   convex: {hit.score:.4f}")
    weights = ""
    if detail.weights:
        weights = f", weights lexical {detail.weights['lexical']:.3g}, vector {detail.weights['vector']:.3g}"
    click.echo(f"   fusion: rank {hit.rank}, score {detail.fusion_score:.4f} ({hit.retrieval_method}{weights})")
    matched = explanation.get("matched") or {}
    listed = "; ".join(f"{column}: {', '.join(terms)}" for column, terms in matched.items() if terms)
    if listed:
        say(f"   matched: {listed}")


def _print_explanation(explanation: dict[str, Any]) -> None:
    lexical, vector, fusion = (explanation.get(side) or {} for side in ("lexical", "vector", "fusion"))
    if lexical:
        click.echo(
            f"lexical: match {lexical['match']}, {lexical['matches']} matches, {lexical['removed_by_filters']} removed "
            "by filters"
        )
        say(f"lexical: expression {lexical['expression']}")
        if lexical["stop_words_dropped"]:
            click.echo(f"lexical: stop words dropped: {', '.join(lexical['stop_words_dropped'])}")
    for space in vector.get("spaces", ()):
        scope = {"own_scripts": ", text of its own scripts", "other_scripts": ", text of other scripts"}.get(
            space["scope"], ""
        )
        click.echo(f"vector: {space['model']}, {space['found']} found{scope}")
    if fusion:
        click.echo(
            f"fusion: {fusion['kind']}, {fusion['depth']} asked of each side, "
            f"{fusion['both']} found by both, {fusion['lexical_only']} by words only, {fusion['vector_only']} by "
            "meaning only"
        )
        if fusion["too_far"]:
            click.echo(f"fusion: too far away in meaning to count by itself: {fusion['too_far']}")
    if explanation["fewer_than_asked"]:
        click.echo(
            f"fewer than asked for by {explanation['fewer_than_asked']}: no more passages match or pass the filters"
        )
    click.echo(f"removed by --threshold: {explanation['removed_by_threshold']}")
    click.echo(f"removed by --min-score: {explanation['removed_by_min_score']}")
    click.echo(f"removed by --max-tokens: {explanation['removed_by_max_tokens']}")
