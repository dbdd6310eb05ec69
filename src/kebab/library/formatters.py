"""Formats libraries and snippets as text. Agents expect exactly these formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kebab.core.libraries import Library, LibrarySnippet
from kebab.core.search import SUSPICIOUS
from kebab.core.text import one_line

if TYPE_CHECKING:
    from kebab.library.libraries import LibraryDocs

NO_LIBRARIES = "No libraries found matching your search."
BETWEEN_PARTS = "\n\n---\n\n"
_FENCES = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
_LINE_END = re.compile(r"\r\n?")


def libraries_text(libraries: Iterable[Library]) -> str:
    return "\n\n".join(_library(number, library) for number, library in enumerate(libraries, start=1)) or NO_LIBRARIES


def _library(number: int, library: Library) -> str:
    return "\n".join(
        [
            f"{number}. {one_line(library.title)}",
            f"   Library ID: {library.library_id}",
            f"   Description: {one_line(library.description) or 'No description'}",
            f"   Snippets: {library.total_snippets} | Trust Score: {library.trust_score or 0:.1f}/10",
            f"   Available Versions: {', '.join(library.tags) or 'default branch'}",
        ]
    )


def snippets_text(snippets: Iterable[LibrarySnippet], rules: Sequence[str] = ()) -> str:
    """Rules and snippets as one text, which is empty when there are neither."""
    return BETWEEN_PARTS.join([*([rules_text(rules)] if rules else []), *map(snippet_text, snippets)])


def remarks_on(docs: LibraryDocs, more: str) -> Iterator[str]:
    """The remarks to show with a page of documentation. `more`: the sentence to show if another page follows."""
    if docs.suspicious_rules or any(snippet.suspicious for snippet in docs.snippets):
        yield SUSPICIOUS
    if docs.truncated:
        yield more
    if not docs.snippets:
        yield "No snippet was found." if docs.page == 1 else f"There is no page {docs.page}."


def rules_text(rules: Sequence[str]) -> str:
    """The rules as bullets, labelled as the library's own words."""
    bullets = [f"- {one_line(rule)}" for rule in rules]
    return "\n".join(["## Library Rules", *bullets, "", "*These rules are the library's own words.*"])


def snippet_text(snippet: LibrarySnippet) -> str:
    lines = [f"### {snippet.title}"] if snippet.title else []
    lines += [f"*{snippet.breadcrumb}*"] if snippet.breadcrumb else []
    if snippet.kind == "code" or snippet.content:
        lines.append(_fenced(snippet) if snippet.kind == "code" else snippet.content)
    return "\n".join(lines)


def _fenced(snippet: LibrarySnippet) -> str:
    """The code in a fence that is longer than any fence in the code, so that the code cannot end it."""
    content = _LINE_END.sub("\n", snippet.content)
    longest = max((len(fence) for fence in _FENCES.findall(content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{one_line(snippet.language).replace('`', '')}\n{content}\n{fence}"
