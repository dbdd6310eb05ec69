"""Which parser reads which file. A new format is one module and one line here.

Parsers are light: what they need to read a file with, they import when they read one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kebab.core.ports import Parser
from kebab.parsing.file_types import classify

_PLAIN_TEXT = "plain_text:PlainTextParser"
_BY_FORMAT = {
    "md": "markdown:MarkdownParser",
    "mdx": "markdown:MarkdownParser",
    "pdf": "pdf:PdfParser",
    "html": "html:HtmlParser",
    "htm": "html:HtmlParser",
    "xhtml": "html:HtmlParser",
    "ipynb": "notebook:NotebookParser",
    "docx": "docx:DocxParser",
    "pptx": "pptx:PptxParser",
    "xlsx": "xlsx:XlsxParser",
    "epub": "epub:EpubParser",
    "rst": "restructured_text:RestructuredTextParser",
    "org": "org:OrgParser",
    "csv": "delimited:DelimitedParser",
    "tsv": "delimited:DelimitedParser",
    "eml": "eml:EmlParser",
}
"""Format (of `file_types`) → module of this package and class."""


def parser_for(path: str) -> Parser:
    return _parser(_BY_FORMAT.get(classify(path)[1], _PLAIN_TEXT))


def all_parsers() -> list[Parser]:
    return [_parser(name) for name in dict.fromkeys([*_BY_FORMAT.values(), _PLAIN_TEXT])]


@cache
def _parser(name: str) -> Parser:
    module, _, parser = name.partition(":")
    made: Parser = getattr(import_module(f"kebab.parsing.{module}"), parser)()
    return made
