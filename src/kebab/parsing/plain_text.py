"""Text without structure of its own: paragraphs are runs of lines that are not blank.

Configuration goes this way too, and code of languages without a grammar.
"""

from __future__ import annotations

import re

from kebab.analysis.language import language_of
from kebab.core.documents import Block, ParsedDocument
from kebab.core.paths import file_name
from kebab.core.text import decode, nfc
from kebab.parsing.file_types import classify
from kebab.parsing.generated_files import refuse_generated

_PARAGRAPH_BREAK = re.compile(r"\n(?:[ \t\r]*\n)+")


class PlainTextParser:
    version = "text-2"
    keeps_lines = True
    isolated = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        doc_type, format_ = classify(path, text)
        if doc_type == "code":
            refuse_generated(text, path, format_)
        kind = "code" if doc_type == "code" else "paragraph"
        return ParsedDocument(
            text=text,
            title=nfc(file_name(path)),
            blocks=tuple(paragraphs(text, kind)),
            doc_type=doc_type,
            format=format_,
            lang=language_of(text),
            encoding=encoding,
        )


def paragraphs(text: str, kind: str, start: int = 0, end: int | None = None) -> list[Block]:
    """The runs of lines that are not blank in this range of the text."""
    blocks = []
    end = len(text) if end is None else end
    for gap in _PARAGRAPH_BREAK.finditer(text, start, end):
        if text[start : gap.start()].strip():
            blocks.append(Block(kind, start, gap.end()))
            start = gap.end()
    if text[start:end].strip():
        blocks.append(Block(kind, start, end))
    return blocks
