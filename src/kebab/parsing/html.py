"""HTML pages: what a reader sees, cited by the lines of the source."""

from __future__ import annotations

import re

from kebab.analysis.language import language_of
from kebab.core.documents import ParsedDocument
from kebab.core.text import decode
from kebab.parsing.file_types import classify
from kebab.parsing.titles import title_of

_DECLARED = re.compile(
    rb"""<meta[^>]{0,256}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,128}?encoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_WHERE_DECLARED = 4096
# As browsers read them: the name often stands for its larger successor. Nothing else is believed, least of all the
# codecs of Python that are none of text.
_ENCODINGS = {
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "ksc5601": "cp949", "cp949": "cp949", "ms949": "cp949", "windows-949": "cp949",
    "iso-2022-kr": "iso2022_kr", "shift_jis": "cp932", "sjis": "cp932", "windows-31j": "cp932", "euc-jp": "euc_jp",
    "iso-2022-jp": "iso2022_jp", "gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "big5hkscs", "koi8-r": "koi8_r",
    "koi8-u": "koi8_u", "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "iso-8859-2": "iso8859_2",
    "iso-8859-5": "iso8859_5", "iso-8859-7": "iso8859_7", "iso-8859-9": "cp1254", "iso-8859-15": "iso8859_15",
    **{f"windows-125{n}": f"cp125{n}" for n in range(9)},
}  # fmt: skip


class HtmlParser:
    version = "html-2"
    keeps_lines = True
    isolated = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        from kebab.parsing.html_text import read_page

        source, encoding = decode_page(data)
        page = read_page(source, marked=True)
        doc_type, format_ = classify(path)
        return ParsedDocument(
            text=page.text,
            title=title_of(page.title, page.blocks, path),
            blocks=page.blocks,
            doc_type=doc_type,
            format=format_,
            lang=page.lang or language_of(page.text),
            encoding=encoding,
        )


def decode_page(data: bytes) -> tuple[str, str]:
    """The text and its encoding: by the byte order mark, by what the page says of itself, or as any text; ParseError if
    none of it fits.
    """
    match = _DECLARED.search(data, 0, _WHERE_DECLARED)
    declared = (match[1] or match[2]).decode("ascii", "replace") if match else ""
    return decode_declared(data, declared)


def decode_declared(data: bytes, declared: str) -> tuple[str, str]:
    """The text and its encoding, where something said which one it is; that is believed only as far as it can be true."""
    encoding = _ENCODINGS.get(declared.lower())
    if encoding is None or b"\0" in data or _is_utf8(data):
        return decode(data)  # UTF-8 beyond ASCII is never an accident, whatever an old header says
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError:
        return decode(data)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
