"""Text without structure of its own: paragraphs are runs of lines that are not blank. Source code goes this way too."""

from __future__ import annotations

import re

from kebab.analysis.language import language_of
from kebab.core.documents import Block, ParsedDocument, file_name
from kebab.core.text import decode, nfc
from kebab.parsing.file_types import classify

_PARAGRAPH_BREAK = re.compile(r"\n(?:[ \t\r]*\n)+")


class PlainTextParser:
    version = "text-1"
    keeps_lines = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        doc_type, format_ = classify(path)
        kind = "code" if doc_type == "code" else "paragraph"
        return ParsedDocument(
            text=text,
            title=nfc(file_name(path)),
            blocks=tuple(_paragraphs(text, kind)),
            doc_type=doc_type,
            format=format_,
            lang=language_of(text),
            encoding=encoding,
        )


def _paragraphs(text: str, kind: str) -> list[Block]:
    blocks, start = [], 0
    for gap in _PARAGRAPH_BREAK.finditer(text):
        if text[start : gap.start()].strip():
            blocks.append(Block(kind, start, gap.end()))
            start = gap.end()
    if text[start:].strip():
        blocks.append(Block(kind, start, len(text)))
    return blocks
