"""Parses plain text, configuration, and code without a grammar: a paragraph is a run of lines that are not blank.

Minified and generated code and lock files are refused: they would hide text by people in the search results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.paths import file_name
from kebab.core.text import decode, nfc
from kebab.parsing.building import FileParser, document, title_of
from kebab.parsing.file_types import classify

_PARAGRAPH_BREAK = re.compile(r"\n(?:[ \t\r]*\n)+")

_LOCK_FILES = frozenset(
    """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml cargo.lock poetry.lock uv.lock pdm.lock
    pipfile.lock go.sum composer.lock gemfile.lock""".split()
)
_MINIFIED_NAME = re.compile(r"\.min\.(?:js|mjs|cjs|css|json)$")
_MINIFIED_FORMATS = frozenset("js mjs cjs jsx ts tsx css scss less php java c h cpp py go rb lua".split())
"""Formats that people write in lines. Data such as JSON is often one line even by hand."""
_LEAST_MINIFIED = 20_000
_LONGEST_AVERAGE_LINE = 300

_HEAD = 2_000
_BLOCK_COMMENTS = {"/*": "*/", "<!--": "-->", "{-": "-}", "(*": "*)"}
_DOCSTRINGS = ('"""', "'''")
"""Docstrings are skipped, because people write them; the comment of a tool may follow."""
_LINE_COMMENTS = ("#", "//", "--", ";", "%", "REM ", "rem ")
_BLOCKS = {**_BLOCK_COMMENTS, **{quotes: quotes for quotes in _DOCSTRINGS}}
_BASIC_FORMATS = frozenset(("vb", "bas", "vbs"))
_PRELIMINARIES = ("<?", "<!DOCTYPE", "package ", '"use ', "'use ", "@charset", "@echo", "syntax ")
"""How lines begin that may precede the comment of a tool, besides other comments."""
_SIGNS = re.compile(r"^(?:REM\b|<!--|[\s*/#=~!;%+'{(-])+|(?:-->|[\s*/#=~;%+)}-])+$", re.IGNORECASE)

_MACHINE = r"(?:automatically|auto|machine|programmatically)[- ]?"
_THIS_FILE = r"(?:this|the) (?:\w+ )?(?:file|code|source|header|script)(?: \S+)?"
_IS = r"(?:is|was|has been)"
_SOURCE = r"\s+(?:by|from|with|using|via|on|at)\b"
_DO_NOT_EDIT = (
    r"(?:please )?do(?: not|n't) (?:edit|modify|change)(?: (?:this|the) (?:file|code)| it)?"
    r"(?: by hand| manually| directly)?\b"
)
_AND_DO_NOT_EDIT = (
    rf".*(?:[.,;:!)\]\n—–-]\W*{_DO_NOT_EDIT}(?=\W*$|\W*\n|[.!,;:(-]| unless\b)"
    r"|\s(?-i:DO NOT (?:EDIT|MODIFY))(?=\W*$|\W*\n))"
)
_SENTENCES = (
    rf"(?:source )?(?:code|file) {_IS}? ?(?:{_MACHINE})?generated\b{_AND_DO_NOT_EDIT}",
    rf"generated(?:{_SOURCE}| automatically| code| content| file)\b{_AND_DO_NOT_EDIT}",
    r"(?:this file is |automatically )?@generated"
    r"(?:\s*(?:$|[\n:<({])|\s+(?:by|from|with|using|via|for|at|on|SignedSource)\b)",
    r"<auto-?generated\b",
    rf"{_THIS_FILE} {_IS} {_MACHINE}generated\b",
    rf"{_THIS_FILE} {_IS} generated(?: automatically)?(?:{_SOURCE}|\W*$|\W*\n|{_AND_DO_NOT_EDIT})",
    rf"this is an? (?:{_MACHINE})?generated (?:file|code|source)\b(?! that| which)",
    rf"{_MACHINE}generated(?: (?:file|code|header|source))?(?:\s*(?:$|[\n.!:;,-])|{_SOURCE})",
    rf"{_DO_NOT_EDIT}\W+(?:(?:it|this|{_THIS_FILE}) {_IS} )?(?:{_MACHINE})?generated\b",
    r"(?:all |any )?(?:manual )?changes (?:made )?(?:in|to) this file (?:will|may) be (?:lost|overwritten)\b",
)
"""Patterns of what tools write at the top of generated files. Sentences about generated files do not match them."""
_MARKER = re.compile(
    rf"(?:(?:warning|note|caution|attention|notice|important)\b\W*)?(?:{'|'.join(_SENTENCES)})", re.IGNORECASE
)


class PlainTextParser(FileParser):
    version = "text-3"
    isolated = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        doc_type, format_ = classify(path, text)
        if doc_type == "code":
            refuse_generated(text, path, format_)
        blocks = paragraphs(text, "code" if doc_type == "code" else "paragraph")
        title = title_of("", path) if format_ == "txt" else nfc(file_name(path))
        return document(path, text, blocks, title, encoding=encoding)


def paragraphs(text: str, kind: str, start: int = 0, end: int | None = None) -> list[Block]:
    """The paragraphs in this range of the text: runs of lines that are not blank."""
    blocks = []
    end = len(text) if end is None else end
    for gap in _PARAGRAPH_BREAK.finditer(text, start, end):
        if text[start : gap.start()].strip():
            blocks.append(Block(kind, start, gap.end()))
            start = gap.end()
    if text[start:end].strip():
        blocks.append(Block(kind, start, end))
    return blocks


def refuse_generated(text: str, path: str, format_: str) -> None:
    """Raises ParseError for code or configuration that a program wrote."""
    name, message = file_name(path).lower(), ""
    if name in _LOCK_FILES:
        message = "A lock file is written by a package manager."
    elif _MINIFIED_NAME.search(name) or _is_minified(text, format_):
        message = "The file is minified."
    elif _is_marked(text[:_HEAD], format_):
        message = "The file says that it is generated."
    if message:
        raise ParseError(message, reason="generated", hint="Index what it was made from.")


def _is_minified(text: str, format_: str) -> bool:
    is_large = format_ in _MINIFIED_FORMATS and len(text) > _LEAST_MINIFIED
    return is_large and len(text) > _LONGEST_AVERAGE_LINE * (text.count("\n") + 1)


def _is_marked(head: str, format_: str) -> bool:
    comments = list(_leading_comments(head, format_))
    # "Automatically generated by X." and "Do not edit." are often on two lines.
    pairs = [f"{first}\n{second}" for first, second in pairwise(comments)]
    return any(map(_MARKER.match, comments + pairs))


def _leading_comments(head: str, format_: str) -> Iterator[str]:
    """Yields the lines of the comments above the first line of code, without comment signs."""
    openers = (*_LINE_COMMENTS, "'") if format_ in _BASIC_FORMATS else _LINE_COMMENTS
    closing = ""
    for line in map(str.strip, head.split("\n")):
        begins = not closing
        if begins:
            closing = next((end for begin, end in _BLOCKS.items() if line.startswith(begin)), "")
        if closing in _DOCSTRINGS:
            pass
        elif closing or line.startswith(openers):
            yield _SIGNS.sub("", line)
        elif line and not line.startswith(_PRELIMINARIES):
            return
        if closing and closing in (line[3:] if begins else line):
            closing = ""
