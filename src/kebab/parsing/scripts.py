"""Files without an extension: a script says in its first line which program runs it, and is code of that language; the
others are text.
"""

from __future__ import annotations

from kebab.core.documents import ParsedDocument
from kebab.core.text import decode
from kebab.parsing.code import CodeParser
from kebab.parsing.code_languages import LANGUAGE_OF_FORMAT
from kebab.parsing.file_types import classify
from kebab.parsing.plain_text import PlainTextParser


class ScriptParser:
    version = f"script-1 {CodeParser.version} {PlainTextParser.version}"
    keeps_lines = True
    isolated = True  # as code is: which files are code is only known once they are read

    def __init__(self) -> None:
        self._code, self._text = CodeParser(), PlainTextParser()

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, _ = decode(data)
        _, format_ = classify(path, text)
        return (self._code if format_ in LANGUAGE_OF_FORMAT else self._text).parse(data, path)
