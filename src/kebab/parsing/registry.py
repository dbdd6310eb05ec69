"""Which parser reads which file. A new format is one module and one line here."""

from __future__ import annotations

from kebab.core.ports import Parser
from kebab.parsing.file_types import classify
from kebab.parsing.markdown import MarkdownParser
from kebab.parsing.plain_text import PlainTextParser

_BY_DOC_TYPE: dict[str, Parser] = {"markdown": MarkdownParser()}
_PLAIN_TEXT: Parser = PlainTextParser()


def parser_for(path: str) -> Parser:
    return _BY_DOC_TYPE.get(classify(path)[0], _PLAIN_TEXT)


def all_parsers() -> list[Parser]:
    return [*_BY_DOC_TYPE.values(), _PLAIN_TEXT]
