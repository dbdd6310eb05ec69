"""Chooses the parser for a file. A new format needs one module and one line here.

The module of a parser is imported when it is first needed.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kebab.core.errors import only_parse_errors
from kebab.core.ports import Parser
from kebab.parsing.code_languages import LANGUAGE_OF_FORMAT
from kebab.parsing.file_types import classify, extension_of

_PLAIN_TEXT = "plain_text:PlainTextParser"
_SCRIPT = "code:ScriptParser"
_PDF = "pdf:PdfParser"
_BY_FORMAT = {
    "md": "markdown:MarkdownParser",
    "mdx": "markdown:MarkdownParser",
    "pdf": _PDF,
    "html": "html:HtmlParser",
    "ipynb": "notebook:NotebookParser",
    "docx": "office:DocxParser",
    "pptx": "office:PptxParser",
    "xlsx": "office:XlsxParser",
    "epub": "epub:EpubParser",
    "rst": "restructured_text:RestructuredTextParser",
    "org": "org:OrgParser",
    "csv": "delimited:DelimitedParser",
    "tsv": "delimited:DelimitedParser",
    "eml": "eml:EmlParser",
    **dict.fromkeys(LANGUAGE_OF_FORMAT, "code:CodeParser"),
}
"""Format (of `file_types`) → module of this package and class."""


def parser_for(path: str, *, pdf_password: str = "") -> Parser:
    doc_type, format_ = classify(path)
    name = _BY_FORMAT.get(format_, _PLAIN_TEXT if extension_of(path) or doc_type == "code" else _SCRIPT)
    return _parser(name, pdf_password) if name == _PDF and pdf_password else _parser(name)


def is_known_format(format: str) -> bool:
    """Whether Kebab knows this format by name; any other text file has its extension as format."""
    return format in _BY_FORMAT or format == "txt" or classify(f"file.{format}")[0] != "note"


def all_parsers() -> list[Parser]:
    return [_parser(name) for name in dict.fromkeys([*_BY_FORMAT.values(), _PLAIN_TEXT, _SCRIPT])]


@cache
def _parser(name: str, *arguments: str) -> Parser:
    module, _, parser = name.partition(":")
    made = getattr(import_module(f"kebab.parsing.{module}"), parser)(*arguments)
    made.parse = only_parse_errors()(made.parse)  # callers then need to handle ParseError only
    return made  # type: ignore[no-any-return]
