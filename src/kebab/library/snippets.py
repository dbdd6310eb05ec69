"""Makes snippets from stored chunks: title, breadcrumb, and code without its fence.

Passages of Markdown and reStructuredText are parsed again. In passages of HTML and notebooks, the parser has put a mark
(`BLOCK_BREAK`) before the code, and the code span names the language; such a passage without a mark is all code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kebab.analysis.code_lines import dedented, directive_lines, fence_lines, fences, is_fence, unquoted
from kebab.analysis.orders import reads_like_orders
from kebab.core.citations import Citation
from kebab.core.libraries import LibrarySnippet
from kebab.core.paths import file_name
from kebab.core.spans import CodeSpan
from kebab.core.text import estimate_tokens, nfc, one_line
from kebab.parsing.building import BLOCK_BREAK, LINE_BREAK, LineBlock, plain_heading
from kebab.parsing.file_types import classify
from kebab.parsing.markdown_blocks import iter_blocks, scan_blocks
from kebab.parsing.restructured_text import rst_blocks

MARKED_FORMATS = frozenset({"html", "ipynb"})
MARKDOWN_FORMATS = frozenset({"md", "mdx", "ipynb"})
_LINE_END = re.compile(r"\r\n?")
_NAME_OF_LANGUAGE = re.compile(r"[\w#+.-]+")


class SnippetParts(NamedTuple):
    language: str
    description: str
    content: str


def make_snippet(
    *,
    chunk_id: str,
    kind: str,
    text: str,
    library: str,
    page: str,
    headings: tuple[str, ...],
    citation: Citation,
    score: float,
    url: str | None = None,
) -> LibrarySnippet:
    """Makes a snippet from a chunk. `library` and `page` are titles."""
    *above, title = _without_repetition((library, page, *headings))
    language, description, content = _parts(kind, text, citation, headings)
    return LibrarySnippet(
        chunk_id=chunk_id,
        kind="code" if kind == "code" else "info",
        title=title,
        breadcrumb=" > ".join(above),
        description=description,
        language=language,
        content=content,
        citation=citation,
        url=url,
        tokens=estimate_tokens(text, code=kind == "code"),
        score=score,
        suspicious=reads_like_orders("\n\n".join((*above, title, text))),
    )


def _without_repetition(names: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for name in map(one_line, names):
        if name and (not kept or name.casefold() != kept[-1].casefold()):
            kept.append(name)
    return kept or [""]


def is_llms_txt(path: str) -> bool:
    """Whether a file is llms.txt or llms-full.txt, which are Markdown in spite of their extension."""
    name = file_name(path).lower()
    return name.startswith("llms") and name.endswith(".txt")


def format_of(path: str) -> str:
    return "md" if is_llms_txt(path) else classify(path)[1]


def _parts(kind: str, text: str, citation: Citation, headings: tuple[str, ...]) -> SnippetParts:
    """Splits a passage into its parts. `headings` are removed from the text, because title and breadcrumb show them."""
    text = _LINE_END.sub("\n", text)
    format_ = format_of(citation.path)
    if format_ == "ipynb":
        text = text.replace(LINE_BREAK, "\n")
    prose = _PROSE.get(format_, _plain_prose)
    if kind != "code":
        return SnippetParts("", "", prose(text, headings) or text.strip())
    if isinstance(citation.span, CodeSpan):
        before, _, code = text.rpartition(BLOCK_BREAK) if format_ in MARKED_FORMATS else ("", "", text)
        language = _NAME_OF_LANGUAGE.match(citation.span.lang or "")
        return SnippetParts(language[0] if language else "", prose(before, headings), code.strip("\n"))
    if format_ in MARKDOWN_FORMATS:
        return _markdown_code(text, headings)
    return _rst_code(text, headings) if format_ == "rst" else SnippetParts("", "", text.strip("\n"))


def _plain_prose(text: str, _headings: tuple[str, ...]) -> str:
    """Text of formats without markup, which has no headings to remove."""
    return text.strip("\n")


def _html_prose(text: str, headings: tuple[str, ...]) -> str:
    parts = [part for part in text.split(BLOCK_BREAK) if part.strip()]
    while parts and nfc(" ".join(parts[0].split())) in headings:
        parts.pop(0)
    return "\n".join(part.strip("\n") for part in parts).strip()


def _markdown_prose(text: str, headings: tuple[str, ...]) -> str:
    lines = text.split("\n")
    return "\n".join(lines[_end_of_headings(iter_blocks(lines), headings) :]).strip()


def _end_of_headings(blocks: Iterable[LineBlock], headings: tuple[str, ...]) -> int:
    end = 0
    for block in blocks:
        if block.kind != "heading" or ((title := plain_heading(block.text)) and title not in headings):
            break
        end = block.end_line
    return end


def _rst_prose(text: str, headings: tuple[str, ...]) -> str:
    start = next(
        (block.start for block in rst_blocks(text) if block.kind != "heading" or block.title not in headings), len(text)
    )
    return text[start:].strip()


_PROSE: dict[str, Callable[[str, tuple[str, ...]], str]] = {
    "md": _markdown_prose,
    "mdx": _markdown_prose,
    "ipynb": _markdown_prose,
    "rst": _rst_prose,
    "html": _html_prose,
}


def _markdown_code(text: str, headings: tuple[str, ...]) -> SnippetParts:
    lines = text.split("\n")
    blocks = scan_blocks(lines)
    start = _end_of_headings(blocks, headings)
    lines = lines[start:]
    block = next(
        (slice(block.first_line - start, block.end_line - start) for block in blocks if block.kind == "code"), None
    )
    nested = list(fences(lines))
    if block is not None and not (
        len(nested) == 1 and nested[0].after >= len(lines) and not is_fence(lines[block.start])
    ):
        before, shown = lines[: block.start], lines[block]
        code = fence_lines(shown)
    elif nested:  # the code is in a list or a quote, and the passage may be the middle of it
        fence = nested[0]
        before, shown = list(map(unquoted, lines[: fence.first])), list(map(unquoted, lines[fence.first : fence.after]))
        code = fence_lines(shown, closed=fence.after > fence.end)
    else:
        return SnippetParts("", "", dedented("\n".join(lines)).strip("\n"))
    content = dedented("\n".join(shown[code.first : code.end])).strip("\n")
    return SnippetParts(code.language, "\n".join(before).strip(), content)


def _rst_code(text: str, headings: tuple[str, ...]) -> SnippetParts:
    """Splits a passage into introduction and code. Headings and directives belong to neither."""
    found = next((block for block in rst_blocks(text) if block.kind == "code"), None)
    if found is None:
        return SnippetParts("", "", dedented(text).strip("\n"))
    lines = text[found.start : found.end].split("\n")
    code = directive_lines(lines, found.title)
    description = _rst_prose(text[: found.start], headings)
    content = dedented("\n".join(lines[code.first : code.end])).strip("\n")
    return SnippetParts(
        code.language, description.removesuffix(":") if description.endswith("::") else description, content
    )
