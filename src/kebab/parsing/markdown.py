"""Markdown: front matter, then the blocks that `markdown_blocks` finds, as ranges of the file's own text."""

from __future__ import annotations

import re

from kebab.analysis.language import language_of
from kebab.core.documents import Block, ParsedDocument
from kebab.core.paths import file_stem
from kebab.core.text import decode, nfc
from kebab.parsing import front_matter
from kebab.parsing.building import FileParser, as_ranges, first_heading, plain_heading
from kebab.parsing.file_types import classify
from kebab.parsing.markdown_blocks import iter_blocks

_INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_TAG = re.compile(r"(?:(?<=\s)|(?<![\s\S]))#(?=[\w/-]*[^\W\d_])(\w[\w/-]{0,80}\w|\w)(?![\w/-]|\()")
_COLOUR = re.compile(r"(?=[a-fA-F]*\d)[0-9a-fA-F]{3,8}")
_WITHOUT_TAGS = frozenset({"code", "html", "table"})


class MarkdownParser(FileParser):
    version = "markdown-2"
    isolated = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        doc_type, format_ = classify(path)
        return parse_markdown(text, path, doc_type=doc_type, format=format_, encoding=encoding)


def parse_markdown(text: str, path: str, *, doc_type: str, format: str, encoding: str = "utf-8") -> ParsedDocument:
    matter = front_matter.read_front_matter(text)
    blocks = _blocks(text, matter.end or matter.unread_end)
    if matter.unread_end:
        blocks = (Block("code", 0, matter.unread_end), *blocks)  # searchable, but neither heading nor title
    if not blocks and matter.end:
        blocks = (Block("paragraph", 0, matter.end),)  # so that a file with only front matter is searchable
    trust_level, trust_warning = front_matter.trust_of(matter.values)
    date, date_warning = front_matter.date_of(matter.values)
    return ParsedDocument(
        text=text,
        title=front_matter.title_of(matter.values) or first_heading(blocks) or nfc(file_stem(path)),
        blocks=blocks,
        doc_type=doc_type,
        format=format,
        lang=front_matter.lang_of(matter.values) or language_of(text[matter.end :]),
        tags=tuple(dict.fromkeys((*front_matter.words_of(matter.values, "tags", "tag"), *_inline_tags(text, blocks)))),
        aliases=front_matter.alias_list(matter.values),
        trust_level=trust_level,
        date=date,
        metadata=matter.values,
        warnings=tuple(warning for warning in (matter.warning, trust_warning, date_warning) if warning),
        encoding=encoding,
    )


def _blocks(text: str, start: int) -> tuple[Block, ...]:
    lines = text[start:].split("\n")
    found = (
        block._replace(text=plain_heading(block.text)) if block.kind == "heading" else block
        for block in iter_blocks(lines)
    )
    return as_ranges(lines, found, start)


def _inline_tags(text: str, blocks: tuple[Block, ...]) -> list[str]:
    """Inline tags as in Obsidian: # after white space, with a letter; not in code, and not a colour such as #ff0."""
    if "#" not in text:
        return []
    found = []
    for block in blocks:
        if block.kind in _WITHOUT_TAGS or text.find("#", block.start, block.end) < 0:
            continue
        prose = _INLINE_CODE.sub(" ", text[block.start : block.end])
        found += [match[1] for match in _TAG.finditer(prose) if not _COLOUR.fullmatch(match[1])]
    return found
