"""Parses Org files: headings by their stars, source blocks and keywords, as ranges of the file's own text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from kebab.core.documents import ParsedDocument
from kebab.core.text import decode, storable
from kebab.parsing.building import FileParser, LineBlock, as_ranges, document, title_of

_HEADING = re.compile(r"(\*+)[ \t]+(?=\S)(.*)")
_STATE = re.compile(r"(?:TODO|DONE|NEXT|WAITING|HOLD|CANCELL?ED|STARTED)(?:[ \t]+|$)")
_PRIORITY = re.compile(r"\[#\w\][ \t]*")
_HEADING_TAGS = re.compile(r"[ \t]+:[\w@#%:]+:$")
_LINK = re.compile(r"\[\[(?:[^\[\]]*\]\[)?([^\[\]]*)\]\]")
_KEYWORD = re.compile(r"#\+(\w+):[ \t]*(.*)")
_BEGIN = re.compile(r"[ \t]*#\+begin_(\w+)(?:[ \t]+(\S+))?", re.IGNORECASE)
_END = re.compile(r"[ \t]*#\+end_(\w+)", re.IGNORECASE)
_LIST = re.compile(r"[ \t]*(?:[-+]|[0-9]{1,9}[.)])[ \t]|[ \t]+\*[ \t]")
_KINDS = {"src": "code", "example": "code", "export": "code", "quote": "quote", "verse": "quote"}


class OrgParser(FileParser):
    version = "org-2"

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        lines = text.split("\n")
        blocks = as_ranges(lines, _scan(lines))
        keywords = _keywords(lines)
        tags = [storable(tag) for tag in re.split(r"[:\s]+", keywords.get("filetags", "")) if tag]
        return document(
            path,
            text,
            blocks,
            title_of(keywords.get("title", ""), path, text, blocks),
            tags=tuple(dict.fromkeys(tags)),
            metadata={key: storable(keywords[key]) for key in ("author", "date") if keywords.get(key)},
            encoding=encoding,
        )


def _keywords(lines: list[str]) -> dict[str, str]:
    """The keywords before the first heading; values of a repeated one are joined."""
    found: dict[str, str] = {}
    for line in lines:
        if _HEADING.match(line):
            break
        keyword = _KEYWORD.match(line)
        if keyword:
            name = keyword[1].lower()
            found[name] = f"{found.get(name, '')} {keyword[2].strip()}".strip()
    return found


def _scan(lines: list[str]) -> Iterator[LineBlock]:
    headings = [number for number, line in enumerate(lines) if line.startswith("*") and _HEADING.match(line)]
    endings: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if "#+" in line and (end := _END.match(line)):
            endings.setdefault(end[1].lower(), []).append(number)
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        block = _block_at(lines, at, headings, endings)
        yield block
        at = block.end_line


def _block_at(lines: list[str], at: int, headings: list[int], endings: dict[str, list[int]]) -> LineBlock:
    line = lines[at]
    heading = _HEADING.match(line)
    if heading:
        return LineBlock("heading", at, at + 1, len(heading[1]), _plain(heading[2]))
    begin = _BEGIN.match(line)
    if begin:
        end = _next(endings.get(begin[1].lower(), []), at)
        if end is not None and end < (_next(headings, at) or len(lines)):
            kind = _KINDS.get(begin[1].lower(), "paragraph")
            return LineBlock(kind, at, end + 1, 0, begin[2] or "" if kind == "code" else "")
    stop = at + 1
    while stop < len(lines) and lines[stop].strip() and not (_HEADING.match(lines[stop]) or _BEGIN.match(lines[stop])):
        stop += 1
    if line.lstrip().startswith("|"):
        return LineBlock("table", at, stop)
    return LineBlock("list" if _LIST.match(line) else "paragraph", at, stop)


def _next(numbers: list[int], after: int) -> int | None:
    place = bisect_left(numbers, after + 1)
    return numbers[place] if place < len(numbers) else None


def _plain(words: str) -> str:
    """A heading as a reader sees it: without state, priority, tags and link marks."""
    bare = _HEADING_TAGS.sub("", words.rstrip())
    bare = _PRIORITY.sub("", _STATE.sub("", bare, count=1), count=1)
    return storable(" ".join(_LINK.sub(r"\1", bare).split()))
