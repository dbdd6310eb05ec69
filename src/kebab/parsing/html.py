"""Parses HTML: keeps the visible text on the lines on which it is in the source.

Markup is dropped and every line feed is kept: line N of the text is line N of the page, so a citation names lines of
the source. Any text is accepted, as in a browser, and read in linear time without recursion; nothing is fetched or run.
"""

from __future__ import annotations

import re
from contextlib import suppress
from html import unescape
from typing import NamedTuple

from kebab.core.documents import Block, ParsedDocument
from kebab.core.text import decode, nfc
from kebab.parsing.building import BLOCK_BREAK, FileParser, document, title_of

_DECLARED = re.compile(
    rb"""<meta[^>]{0,256}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,128}?encoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_WHERE_DECLARED = 4096
# As in browsers, a name often means a larger encoding that contains it. Unknown names are ignored, because Python also
# has codecs that are not for text.
_ENCODINGS = {
    **dict.fromkeys("euc-kr ks_c_5601-1987 ksc5601 cp949 ms949 windows-949".split(), "cp949"),
    **dict.fromkeys("shift_jis sjis windows-31j".split(), "cp932"),
    **dict.fromkeys("gb2312 gbk gb18030".split(), "gb18030"),
    **dict.fromkeys("iso-8859-1 latin1 us-ascii".split(), "cp1252"),
    "iso-2022-kr": "iso2022_kr", "iso-2022-jp": "iso2022_jp", "euc-jp": "euc_jp", "big5": "big5hkscs",
    "koi8-r": "koi8_r", "koi8-u": "koi8_u", "iso-8859-2": "iso8859_2", "iso-8859-5": "iso8859_5",
    "iso-8859-7": "iso8859_7", "iso-8859-9": "cp1254", "iso-8859-15": "iso8859_15",
    **{f"windows-125{n}": f"cp125{n}" for n in range(9)},
}  # fmt: skip

# Quoted values may contain ">". A quote that is never closed counts as an ordinary character, so only a missing ">"
# makes the scan fail.
_TAG = re.compile(r"""<(/?)([A-Za-z][^\s/>]*+)((?:[^"'>]++|"[^"]*+"|'[^']*+'|["'])*+)>""")
_PLAIN_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)([^>]*+)>")
_NO_TAG = re.compile(r"(?!)()()()")
_LANG = re.compile(r"""(?:^|\s)(?:xml:)?lang\s*=\s*["']?([A-Za-z]{2,3})(?![A-Za-z])""", re.IGNORECASE)
_CLASS = re.compile(r"""(?:^|\s)class\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_LANGUAGE_CLASS = re.compile(r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-(?!source-))([\w#+.-]+)")
"""The class that names the language of code, as HTML recommends it and as GitHub and Sphinx write it."""
_NAMING_LANGUAGES = frozenset("div figure pre code".split())
_NO_LANGUAGE = frozenset("default none plaintext".split())

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = frozenset(
    """address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure form
    frameset header hgroup hr html legend li main menu ol p pre section summary table tbody td tfoot th thead tr
    ul""".split()
)
_SPACES = frozenset("br img input button option textarea".split())
_RAW = frozenset("script style iframe noembed noframes object".split())
"""Elements whose content is skipped: it is no markup, or nothing that a reader would search for."""
_UNSEEN = frozenset("nav footer template svg noscript select".split())
_CONTAINERS = {"table": "table", "blockquote": "quote", "pre": "code", **dict.fromkeys("ul ol dl menu".split(), "list")}
_CELLS = frozenset(("td", "th"))
_ROWS = _CELLS | {"tr", "table"}


class HtmlParser(FileParser):
    version = "html-3"

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        source, encoding = decode_page(data)
        page = PageReader(source, marked=True).read()
        title = title_of(page.title, path, page.text, page.blocks)
        return document(path, page.text, page.blocks, title, lang=page.lang, encoding=encoding)


def decode_page(data: bytes) -> tuple[str, str]:
    """Decodes a page with the encoding that it declares, if that fits; returns the text and its encoding."""
    match = _DECLARED.search(data, 0, _WHERE_DECLARED)
    declared = (match[1] or match[2]).decode("ascii", "replace") if match else ""
    return decode_declared(data, declared)


def decode_declared(data: bytes, declared: str) -> tuple[str, str]:
    """Decodes with the declared encoding if the bytes allow it, else like any text. Returns text and encoding."""
    encoding = _ENCODINGS.get(declared.lower())
    if encoding is None or b"\0" in data:
        return decode(data)
    if not data.isascii():
        with suppress(UnicodeDecodeError):
            data.decode("utf-8")
            return decode(data)  # text that is valid UTF-8 beyond ASCII is UTF-8, even if declared otherwise
    with suppress(UnicodeDecodeError):
        return data.decode(encoding), encoding
    return decode(data)


class Page(NamedTuple):
    text: str
    blocks: tuple[Block, ...]
    title: str
    """The <title>, "" without one."""
    lang: str
    """The language in <html lang>, "" without one."""


class PageReader:
    """Reads one page. With `marked`, a `BLOCK_BREAK` follows each heading and precedes each code block."""

    def __init__(self, source: str, *, marked: bool = False) -> None:
        self._source = source
        self._marked = marked
        # In XML an element may close itself; in HTML the slash means nothing.
        self._is_xml = source.lstrip("\ufeff \t\r\n").startswith("<?xml") or "XHTML" in source[:1024]
        self._tag = _TAG
        self._unclosed: set[str] = set()
        self._parts: list[str] = []
        self._length = 0
        self._line_is_blank = True
        self._row_has_cells = False
        self._last = "\n"
        self._blocks: list[Block] = []
        self._block_start = self._block_part = 0
        self._heading = 0
        self._heading_has_text = False
        self._open = {"table": 0, "list": 0, "quote": 0, "code": 0}
        self._code_language = ""
        self._title: str | None = None
        self._lang = ""
        self._skipped = ""
        self._skipped_depth = 0

    def read(self) -> Page:
        source, position = self._source, 0
        while (opening := source.find("<", position)) >= 0:
            if opening > position:
                self._write_text(source[position:opening])
            position = self._markup(opening)
        self._write_text(source[position:])
        self._end_block()
        return Page("".join(self._parts), tuple(self._blocks), self._title or "", self._lang)

    def _markup(self, at: int) -> int:
        """Handles the markup that begins at this "<" and returns where it ends."""
        source = self._source
        following = source[at + 1 : at + 2]
        if following in ("!", "?"):
            return self._declaration(at)
        if following == "/" and not _is_letter(source[at + 2 : at + 3]) and self._has(">", at):
            return self._drop(at, source.index(">", at) + 1)  # browsers read this as a comment
        match = self._tag.match(source, at)
        if match is None and _is_letter(source[at + 1 : at + 3].lstrip("/")[:1]) and self._tag is not _NO_TAG:
            # The rest has no ">" outside quotes, or none at all. Trying again at every "<" would take quadratic time.
            self._tag = _PLAIN_TAG if self._has(">", at) else _NO_TAG
            match = self._tag.match(source, at)
        if match is None:
            self._write_text("<")
            return at + 1
        self._drop(at, match.end())
        name = match[2].lower()
        if match[1]:
            self._end_tag(name)
            return match.end()
        return self._start_tag(name, match[3], match.end())

    def _declaration(self, at: int) -> int:
        """Handles a comment, a doctype, a processing instruction or a CDATA section."""
        source = self._source
        if source.startswith("<!--", at):
            if source.startswith((">", "->"), at + 4):
                return self._drop(at, source.index(">", at) + 1)
            return self._drop(at, source.index("-->", at) + 3 if self._has("-->", at) else len(source))
        if source.startswith("<![CDATA[", at) and self._has("]]>", at):
            end = source.index("]]>", at)
            self._write_literal(source[at + 9 : end])
            return end + 3
        if not self._has(">", at):
            self._write_text(source[at])
            return at + 1
        return self._drop(at, source.index(">", at) + 1)

    def _has(self, ending: str, at: int) -> bool:
        """Whether `ending` occurs after `at`. An ending that was not found once is not searched for again."""
        if ending not in self._unclosed and self._source.find(ending, at) < 0:
            self._unclosed.add(ending)
        return ending not in self._unclosed

    def _start_tag(self, name: str, attributes: str, end: int) -> int:
        closes_itself = self._is_xml and attributes.endswith("/")
        if self._skipped:
            if name == "main" or (name == "body" and self._skipped != "template"):
                self._skipped = ""  # a menu that is never closed does not hide the page
            else:
                self._skipped_depth += name == self._skipped and not closes_itself
                return self._raw_text(name, end) if name in _RAW and not closes_itself else end
        if name in _RAW or name == "title":
            return end if closes_itself else self._raw_text(name, end)
        if name in _UNSEEN:
            if not closes_itself and self._raw_close(name, end) is not None:
                self._end_block()
                self._skipped, self._skipped_depth = name, 1
            return end
        if name == "html" and not self._lang and (lang := _LANG.search(attributes)):
            self._lang = lang[1].lower()
        self._begin(name)
        if name in _NAMING_LANGUAGES:
            self._note_language(name, attributes)
        return end

    def _note_language(self, name: str, attributes: str) -> None:
        """Remembers the language of the next code block: a class of <pre>, of <code> inside or of an element around."""
        if name == "code" and not self._open["code"]:
            return
        classes = _CLASS.search(attributes)
        found = _LANGUAGE_CLASS.search(classes[1] or classes[2] or classes[3] or "") if classes else None
        if found:
            self._code_language = "" if found[1] in _NO_LANGUAGE else found[1]

    def _begin(self, name: str) -> None:
        if name in _HEADINGS:
            self._part_words()
            self._end_block()
            self._heading, self._heading_has_text = _HEADINGS[name], False
        elif name in _BREAKS:
            self._part_words()
            ends_block = self._heading_has_text if self._heading else not self._is_kept_together
            if ends_block:
                self._end_block()
            elif not self._heading and name in _CELLS and self._row_has_cells and not self._line_is_blank:
                self._write("| ")
            if name in _ROWS:
                self._row_has_cells = name in _CELLS
            if kind := _CONTAINERS.get(name):
                if kind == "code" and self._marked and not self._heading:
                    self._write(BLOCK_BREAK)
                self._open[kind] += 1
        elif name in _SPACES:
            self._part_words()

    def _end_tag(self, name: str) -> None:
        if self._skipped:
            self._skipped_depth -= name == self._skipped
            if self._skipped_depth <= 0 or name in ("body", "html"):
                self._skipped = ""
        elif name in _HEADINGS:
            self._part_words()
            if self._heading and self._marked:
                self._write(BLOCK_BREAK)
            self._end_block()
        elif name in _BREAKS:
            self._part_words()
            if not self._heading and (name in ("table", "pre") or not self._is_kept_together):
                self._end_block()
            if kind := _CONTAINERS.get(name):
                self._open[kind] = max(0, self._open[kind] - 1)

    @property
    def _is_kept_together(self) -> bool:
        """Whether a table or code block is open: elements inside these begin no blocks."""
        return bool(self._open["table"] or self._open["code"])

    def _raw_text(self, name: str, start: int) -> int:
        """Skips the content of a raw element or title and returns its end. Remembers the first title."""
        close = self._raw_close(name, start)
        if close is None:
            return start
        if name == "title" and self._title is None:
            self._title = nfc(" ".join(unescape(self._source[start:close]).split()))
        return self._drop(start, close)

    def _raw_close(self, name: str, start: int) -> int | None:
        if name in self._unclosed:
            return None
        match = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(self._source, start)
        if match is None:
            self._unclosed.add(name)
        return match.start() if match else None

    def _drop(self, start: int, end: int) -> int:
        """Drops this range of the source except for its line feeds, and returns its end."""
        if feeds := self._source.count("\n", start, end):
            self._write("\n" * feeds)
        return end

    def _write_text(self, raw: str) -> None:
        self._write_literal(_decoded(raw) if "&" in raw and not self._skipped else raw)

    def _write_literal(self, text: str) -> None:
        if self._skipped:
            text = "\n" * text.count("\n")
        elif BLOCK_BREAK in text:
            text = text.replace(BLOCK_BREAK, " ")
        if self._heading and not self._heading_has_text:
            self._heading_has_text = bool(text.strip())
        self._write(text)

    def _write(self, text: str) -> None:
        if not text:
            return
        self._parts.append(text)
        self._length += len(text)
        self._last = text[-1]
        last_line = text.rpartition("\n")[2]
        self._line_is_blank = ("\n" in text or self._line_is_blank) and not last_line.strip()

    def _part_words(self) -> None:
        if not self._last.isspace():
            self._write(" ")

    def _end_block(self) -> None:
        start, body = self._block_start, "".join(self._parts[self._block_part :]).rstrip()
        if body:
            self._blocks.append(self._block(start, body))
        self._block_start, self._block_part = self._length, len(self._parts)
        self._heading = 0

    def _block(self, start: int, body: str) -> Block:
        end = start + len(body)
        if self._heading:
            return Block("heading", end - len(body.lstrip()), end, self._heading, nfc(" ".join(body.split())))
        kind = next((kind for kind in ("code", "table", "quote", "list") if self._open[kind]), "paragraph")
        margin = len(body) - len(body.lstrip("\r\n" + BLOCK_BREAK if kind == "code" else None))
        language, self._code_language = self._code_language, ""
        return Block(kind, start + margin, end, 0, language if kind == "code" else "")


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _decoded(raw: str) -> str:
    """The text with entities replaced by characters, but without line feeds that the source does not have."""
    decoded = unescape(raw)
    if decoded.count("\n") == raw.count("\n"):
        return decoded
    return "\n".join(unescape(line).replace("\n", " ") for line in raw.split("\n"))
