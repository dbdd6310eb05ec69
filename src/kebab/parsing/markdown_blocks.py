"""Find the top-level blocks of a Markdown document, fast and in linear time.

What this module promises:

* Blocks come in order and never overlap; every non-blank line is in exactly one block, and no block ends in a
  blank line. A line range can therefore be cited without reading anything but those lines.
* The ranges are those of CommonMark plus pipe tables, as ``markdown-it`` (preset "commonmark", rule "table") draws
  them: the tests compare with it, also where it deviates from the specification.
* Time is linear in the size of the input. Nothing backtracks, and containers nest at most ``_MAX_DEPTH`` deep;
  markers below that are read as text, which can move the end of such a container but never loses a line.

Only top-level blocks are reported. The inside of lists and quotes is parsed nevertheless, because it decides where
they end: an unindented line belongs to a list if it continues a paragraph, and not if it follows a code block.

Intended differences from markdown-it; all but the first and the last follow the specification:

* Link reference definitions are reported as paragraphs, one each: they are lines that someone may search for.
* Definitions are accepted for every URL scheme (markdown-it takes "javascript:" and a few others for text), and in two
  odd cases in which it takes a title wrongly: after a destination that ends in a backslash, and after an empty title.
* Tab stops inside nested quotes count from the start of the line.
* Only space and tab are blanks, where markdown-it lets any Unicode space end a table or an HTML tag's name.
* Nesting is limited in another way, and a table is never cut short for having too many empty cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import sub
from typing import Final

from kebab.parsing.building import LineBlock


def scan_blocks(lines: Sequence[str]) -> list[LineBlock]:
    """Return the top-level blocks of a document given as lines without their line feeds.

    The text of a heading is its inline source.
    """
    return list(iter_blocks(lines))


def iter_blocks(lines: Sequence[str]) -> Iterator[LineBlock]:
    """Yields the top-level blocks one by one, so that a caller that needs only the first can stop there."""
    document = _document(lines)
    texts = document.texts
    line, count = 0, len(texts)
    while line < count:
        if not texts[line]:
            line += 1
            continue
        kind, end, level, text = document.block_at(line, 0, _NO_LIST)
        last = end
        while not texts[last - 1]:
            last -= 1
        yield LineBlock(kind, line, last, level, text)
        line = end


# A parsed block: kind, end line, heading level, text.
_Found = tuple[str, int, int, str]

_BLANKS: Final = " \t"
_TAB_STOP: Final = 4
# A line indented this far beyond its container is code, and never starts anything else.
_CODE_INDENT: Final = 4
# The indent of a line that is in a quote without a ">" of its own: it can only continue a paragraph.
_LAZY: Final = -1
# The margin "around" a list when there is no list.
_NO_LIST: Final = -1
# Each level costs a few Python frames and time; people nest four or five levels.
_MAX_DEPTH: Final = 20

_BULLETS: Final = frozenset("-+*")
_RULES: Final = frozenset("-*_")
_DIGITS: Final = frozenset("0123456789")
_UNDERLINES: Final = frozenset("=-")
_DELIMITER_ROW_STARTS: Final = frozenset("|-:")
# A line that starts with none of these continues a paragraph. Most lines need only this test.
_SPECIAL: Final = frozenset("`~>#<") | _BULLETS | _RULES | _DIGITS | _UNDERLINES | _DELIMITER_ROW_STARTS

_BLANK_RUN: Final = re.compile(r"[ \t]*+")
_HEADING: Final = re.compile(r"#{1,6}(?=[ \t]|$)")
_ORDERED_MARKER: Final = re.compile(r"[0-9]{1,9}[.)](?=[ \t]|$)")
# All repetition is possessive ("*+", "++"), so that a line that fails to match fails in one pass. Patterns
# that few documents need (tables, HTML) are strings, which `re` compiles at first use.
_DELIMITER_ROW: Final = r"\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+"

_LABEL_TEXT: Final = re.compile(r"(?:[^\[\]\\]++|\\.?)*+")
_DESTINATION: Final = re.compile(r"<(?:[^<>\\]++|\\.)*+>|(?!<)(?:[^\x00-\x20\x7f\\]++|\\(?! ).?)++")
_PARENTHESIS: Final = re.compile(r"\\.|([()])")
_MAX_PARENTHESES: Final = 32
_TITLE_TEXT: Final = {
    '"': re.compile(r'(?:[^"\\]++|\\.?)*+'),
    "'": re.compile(r"(?:[^'\\]++|\\.?)*+"),
    "(": re.compile(r"(?:[^()\\]++|\\.?)*+"),
}
_TITLE_END: Final = {'"': '"', "'": "'", "(": ")"}

_HTML_NAME: Final = r"</?([A-Za-z][A-Za-z0-9-]*+)(?=[ \t]|/?>|$)"
_HTML_COMPLETE_TAG: Final = r"""(?x)
    (?: <[A-Za-z][A-Za-z0-9-]*+
        (?: [ \t]++ [A-Za-z_:][A-Za-z0-9:._-]*+
            (?: [ \t]*+ = [ \t]*+ (?: [^"'=<>`\x00-\x20]++ | '[^']*+' | "[^"]*+" ) )?+
        )*+
        [ \t]*+ /?
    |   </[A-Za-z][A-Za-z0-9-]*+ [ \t]*+
    ) > [ \t]*+ $
    """
_HTML_RAW_NAMES: Final = frozenset(["script", "pre", "style", "textarea"])
_HTML_BLOCK_NAMES: Final = frozenset(
    """address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt
    fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li
    link main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th
    thead title tr track ul""".split()
)
# Text that ends an HTML block. For raw text, such as a script, "</" is only a first test before the pattern. A line
# feed, which no line contains, means that the block ends at a blank line.
_HTML_RAW_END: Final = "</"
_HTML_RAW_END_TAG: Final = r"(?ia)</(?:script|pre|style|textarea)>"
_HTML_BLANK_LINE_END: Final = "\n"


class _Region:
    """The lines of the document, or of the inside of one block quote.

    ``texts`` are the lines without leading blanks, so that a blank line is simply false. ``indents`` are the widths of
    those blanks, tabs expanded; ``columns`` are where in the document the region starts on each line, which tab stops
    depend on. Within a region list items differ only in their *margin*, the indent that their content must have.

    Methods that take ``margin`` and ``outer`` look at a line from inside a container: ``margin`` is the indent of that
    container's content, ``outer`` the margin around the innermost open list.
    """

    def __init__(self, texts: list[str], indents: list[int], columns: list[int], depth: int) -> None:
        self.texts = texts
        self.indents = indents
        self.columns = columns
        self.depth = depth
        self.end = len(texts)
        self._quoted: tuple[int, int, int, _Region] | None = None

    # -- dispatch ----------------------------------------------------------------------------------------------------

    def skip_blocks(self, line: int, margin: int, outer: int) -> int:
        """Return the first line at or after ``line`` that is outside the container."""
        texts, indents, end = self.texts, self.indents, self.end
        while line < end:
            if not texts[line]:
                line += 1
            elif indents[line] < margin:
                break
            else:
                line = self.block_at(line, margin, outer)[1]
        return line

    def block_at(self, line: int, margin: int, outer: int) -> _Found:
        """Return the block that starts at ``line``, which is not blank."""
        text = self.texts[line]
        # Tables come first: with a delimiter row below, even "- a | b" is a header row.
        if "|" in text and self._is_table(line, margin):
            return "table", self._table_end(line, margin, outer), 0, ""
        if self.indents[line] - margin >= _CODE_INDENT:
            return "code", self._indented_code_end(line, margin), 0, ""
        first = text[0]
        if first not in _SPECIAL:
            if first == "[":
                end = self._definition_end(line, margin, outer)
                if end:
                    return "paragraph", end, 0, ""
            return self._paragraph(line, margin, outer)
        if first == "#":
            level = _heading_level(text)
            if level:
                return "heading", line + 1, level, _heading_text(text, level)
        elif first in "`~":
            length = _fence_length(text)
            if length:
                return "code", self._fence_end(line, length, margin), 0, _language(text[length:])
        elif first == "<":
            closing = _html_closing(text) or (_HTML_BLANK_LINE_END if re.match(_HTML_COMPLETE_TAG, text) else "")
            if closing:
                return "html", self._html_end(line, closing, margin), 0, ""
        elif first == ">":
            if self.depth < _MAX_DEPTH:
                return "quote", self._quote_end(line, margin, outer), 0, ""
        elif first in _RULES and _is_rule(text):
            return "rule", line + 1, 0, ""
        else:
            length = _list_marker_length(text)
            if length and self.depth < _MAX_DEPTH:
                return "list", self._list_end(line, length, margin), 0, ""
        return self._paragraph(line, margin, outer)

    def _interrupts(self, line: int, margin: int, outer: int, *, paragraph: bool = False) -> bool:
        """Whether the line starts a block although the block before it could go on.

        A ``paragraph`` is harder to interrupt: a list must begin with 1 and with some text, so that a number or a dash
        that wraps to the start of a line does not begin one.
        """
        indent = self.indents[line]
        if indent - margin >= _CODE_INDENT:
            return False
        text = self.texts[line]
        first = text[0]
        if first not in _SPECIAL:
            return False
        if first == "#":
            return _heading_level(text) > 0
        if first in "`~":
            return _fence_length(text) > 0
        if first == "<":
            return _html_closing(text) != ""
        if first == ">" or (first in _RULES and _is_rule(text)):
            return True
        length = _list_marker_length(text)
        if not length:
            return False
        if indent < margin:
            # The line closes list items. It is the next item of a list further out, unless it is indented too far.
            return outer < 0 or indent - outer < _CODE_INDENT
        if not paragraph:
            return True
        return (first in _BULLETS or int(text[: length - 1]) == 1) and bool(text[length:].strip(_BLANKS))

    # -- leaf blocks -------------------------------------------------------------------------------------------------

    def _paragraph(self, line: int, margin: int, outer: int) -> _Found:
        """Return the paragraph or the setext heading that starts at ``line``."""
        texts, indents, end = self.texts, self.indents, self.end
        for following in range(line + 1, end):
            text = texts[following]
            if not text:
                return "paragraph", following, 0, ""
            first = text[0]
            if first not in _SPECIAL:
                continue
            indent = indents[following]
            if indent - margin >= _CODE_INDENT or indent == _LAZY:
                continue
            # A table ends the paragraph one line earlier, at its header row, which may look like any other line.
            header = following - 1
            if first in _DELIMITER_ROW_STARTS and header > line and self._is_table(header, margin):
                return "paragraph", header, 0, ""
            if first in _UNDERLINES and indent >= margin and _is_underline(text):
                heading = " ".join(text.strip() for text in texts[line:following])
                return "heading", following + 1, 1 if first == "=" else 2, heading
            if self._interrupts(following, margin, outer, paragraph=True):
                return "paragraph", following, 0, ""
        return "paragraph", end, 0, ""

    def _indented_code_end(self, line: int, margin: int) -> int:
        texts, indents = self.texts, self.indents
        last = line
        for following in range(line + 1, self.end):
            if texts[following]:
                if indents[following] - margin < _CODE_INDENT:
                    break
                last = following
        return last + 1

    def _fence_end(self, line: int, length: int, margin: int) -> int:
        texts, indents, end = self.texts, self.indents, self.end
        marker = texts[line][0]
        fence = texts[line][:length]
        for following in range(line + 1, end):
            text = texts[following]
            if not text:
                continue
            indent = indents[following]
            if indent < margin:
                return following
            if text.startswith(fence) and indent - margin < _CODE_INDENT and not text.rstrip(_BLANKS).strip(marker):
                return following + 1
        return end

    def _html_end(self, line: int, closing: str, margin: int) -> int:
        texts, indents = self.texts, self.indents
        if _closes_html(texts[line], closing):
            return line + 1
        for following in range(line + 1, self.end):
            text = texts[following]
            if not text:
                if closing == _HTML_BLANK_LINE_END:
                    return following
            elif indents[following] < margin:
                return following
            elif closing in text and _closes_html(text, closing):  # the first test saves most of the calls
                return following + 1
        return self.end

    def _is_table(self, header: int, margin: int) -> bool:
        """Whether the line is a header row: with a delimiter row below it that has as many cells."""
        below = header + 1
        if below >= self.end:
            return False
        delimiters = self.texts[below]
        if not delimiters or delimiters[0] not in _DELIMITER_ROW_STARTS:
            return False
        if not 0 <= self.indents[below] - margin < _CODE_INDENT:
            return False
        indent = self.indents[header]
        if indent == _LAZY or indent - margin >= _CODE_INDENT:
            return False
        # A lone dash, or a dash and a blank, is a list item even if only dashes and pipes follow.
        if delimiters == "-" or delimiters.startswith(("- ", "-\t")) or not re.fullmatch(_DELIMITER_ROW, delimiters):
            return False
        text = self.texts[header]
        return "|" in text and _count_cells(text) == _count_cells(delimiters)

    def _table_end(self, header: int, margin: int, outer: int) -> int:
        texts, indents = self.texts, self.indents
        for line in range(header + 2, self.end):
            if not texts[line] or not 0 <= indents[line] - margin < _CODE_INDENT:
                return line
            if self._interrupts(line, margin, outer):
                return line
        return self.end

    def _definition_end(self, line: int, margin: int, outer: int) -> int:
        """Return the end of the link reference definition at ``line``, or 0 if there is none."""
        cursor = _DefinitionCursor(self, line, margin, outer)
        if not cursor.skip_label() or not cursor.skip_blanks() or not cursor.skip_destination():
            return 0
        # After the destination, text that is no title ends the definition if it is on a line of its own. On the same
        # line, it means that there is no definition.
        end = cursor.line + 1 if cursor.rest_is_blank() else 0
        if cursor.skip_blanks() and cursor.follows_blank() and cursor.skip_title() and cursor.rest_is_blank():
            end = cursor.line + 1
        return end

    def continues_definition(self, line: int, margin: int, outer: int) -> bool:
        if line >= self.end or not self.texts[line]:
            return False
        if self.indents[line] == _LAZY:
            return True
        return not self._is_table(line, margin) and not self._interrupts(line, margin, outer)

    # -- containers --------------------------------------------------------------------------------------------------

    def _list_end(self, line: int, length: int, margin: int) -> int:
        """Return the end of the list that starts at ``line`` with a marker of ``length`` characters."""
        texts, indents, end = self.texts, self.indents, self.end
        # Items of one list share the character that ends their marker: "-", "+", "*", "." or ")".
        kind = texts[line][length - 1]
        self.depth += 1
        while True:
            line = self._item_end(line, length, margin)
            if line >= end:
                break
            text = texts[line]
            if not text or not 0 <= indents[line] - margin < _CODE_INDENT:
                break
            length = _list_marker_length(text)
            if not length or text[length - 1] != kind or (kind in _RULES and _is_rule(text)):
                break
        self.depth -= 1
        return line

    def _item_end(self, line: int, length: int, margin: int) -> int:
        """Return the end of the list item at ``line``, with a marker of ``length`` characters."""
        texts, indents = self.texts, self.indents
        text, indent = texts[line], indents[line]
        content = text[length:].lstrip(_BLANKS)
        content_start = indent + length
        if not content:
            if line + 1 >= self.end or not texts[line + 1]:
                # An item can begin with one blank line, not with two: whatever follows is outside.
                return min(line + 2, self.end)
            padding = content_margin = content_start + 1
        else:
            blanks = text[length : len(text) - len(content)]
            padding = content_start + _width(blanks, self.columns[line] + content_start)
            # Content that is indented further is code, which begins one blank after the marker.
            content_margin = padding if padding - content_start <= _CODE_INDENT else content_start + 1
        # Inside the item its first line is the part after the marker.
        texts[line], indents[line] = content, padding
        end = self.skip_blocks(line, content_margin, margin)
        texts[line], indents[line] = text, indent
        return end

    def _quote_end(self, line: int, margin: int, outer: int) -> int:
        start, inside = self._quote_at(line, margin, outer)
        inside.depth = self.depth + 1
        return start + inside.skip_blocks(line - start, 0, _NO_LIST)

    def _quote_at(self, line: int, margin: int, outer: int) -> tuple[int, _Region]:
        """Return the inside of the quote at ``line``, as a region and the line at which that region starts.

        The region holds all the lines that could be in the quote. Often a line without ">" ends it early, as it has no
        paragraph to continue, and then the next quote would collect the rest of the same lines again. So the region
        is kept: without that, n quotes of this sort would collect n * n / 2 lines.
        """
        opening = self._quoted_line(line)
        if self._quoted:
            start, known_margin, known_outer, inside = self._quoted
            at = line - start
            if (
                (margin, outer) == (known_margin, known_outer)
                and 0 < at < inside.end
                and (inside.texts[at], inside.indents[at], inside.columns[at]) == opening
            ):
                return start, inside
        inside = self._collect_quote(line, opening, margin, outer)
        self._quoted = line, margin, outer, inside
        return line, inside

    def _collect_quote(self, line: int, opening: tuple[str, int, int], margin: int, outer: int) -> _Region:
        collected = [opening]
        for following in range(line + 1, self.end):
            text = self.texts[following]
            if not text:
                break
            if text[0] == ">" and self.indents[following] >= margin:
                collected.append(self._quoted_line(following))
            elif self._interrupts(following, margin, outer):
                break
            else:
                collected.append((text, _LAZY, 0))
        texts, indents, columns = map(list, zip(*collected, strict=True))
        return _Region(texts, indents, columns, self.depth + 1)

    def _quoted_line(self, line: int) -> tuple[str, int, int]:
        """Return text, indent and column of what follows the ">" and one blank, which may be a part of a tab."""
        content = self.texts[line][1:]
        text = content.lstrip(_BLANKS)
        column = self.columns[line] + self.indents[line] + 1
        if len(text) == len(content):
            return text, 0, column
        width = _width(content[: len(content) - len(text)], column)
        return text, width - 1, column + 1


class _DefinitionCursor:
    """A position in a link reference definition, each part of which may go on in the next line.

    Lines are taken one at a time, as needed: most definitions have one line, and looking at all the lines that could
    belong to one would make a long list of definitions quadratic.
    """

    def __init__(self, region: _Region, line: int, margin: int, outer: int) -> None:
        self.line = line
        self._region = region
        self._margin = margin
        self._outer = outer
        self._text = region.texts[line]
        self._position = 0

    def skip_label(self) -> bool:
        """Skip "[label]:"; false unless there is one, with something in it."""
        self._position += 1
        label = self._skip_text(_LABEL_TEXT)
        if not label.strip() or not self._text.startswith("]:", self._position):
            return False
        self._position += 2
        return True

    def skip_blanks(self) -> bool:
        """Skip to the next word, which may be on the next line; false if there is none."""
        self._position = _skip_blanks(self._text, self._position)
        return self._position < len(self._text) or self._next_line()

    def skip_destination(self) -> bool:
        destination = _DESTINATION.match(self._text, self._position)
        if not destination or not (destination[0][0] == "<" or _is_balanced(destination[0])):
            return False
        self._position = destination.end()
        return True

    def skip_title(self) -> bool:
        quote = self._text[self._position]
        if quote not in _TITLE_TEXT:
            return False
        self._position += 1
        self._skip_text(_TITLE_TEXT[quote])
        closed = self._text.startswith(_TITLE_END[quote], self._position)
        self._position += 1
        return closed

    def follows_blank(self) -> bool:
        return self._position == 0 or self._text[self._position - 1] in _BLANKS

    def rest_is_blank(self) -> bool:
        return _skip_blanks(self._text, self._position) >= len(self._text)

    def _skip_text(self, pattern: re.Pattern[str]) -> str:
        """Skip the text that matches the pattern, over any number of lines, and return it."""
        parts = []
        while match := pattern.match(self._text, self._position):
            parts.append(match[0])
            self._position = match.end()
            if self._position < len(self._text) or not self._next_line():
                break
        return " ".join(parts)

    def _next_line(self) -> bool:
        if not self._region.continues_definition(self.line + 1, self._margin, self._outer):
            return False
        self.line += 1
        self._text = self._region.texts[self.line]
        self._position = 0
        return True


def _document(lines: Sequence[str]) -> _Region:
    # Searching one string is much faster than searching each line, and most documents have neither "\r" nor tabs.
    joined = "".join(lines)
    if "\r" in joined:
        lines = [line.rstrip("\r").replace("\r", " ") for line in lines]
    texts = [line.lstrip(_BLANKS) for line in lines]
    indents = list(map(sub, map(len, lines), map(len, texts)))
    if "\t" in joined:
        for number, line in enumerate(lines):
            indent = indents[number]
            if indent and "\t" in line[:indent]:
                indents[number] = _width(line[:indent], 0)
    return _Region(texts, indents, [0] * len(texts), 0)


def _width(blanks: str, column: int) -> int:
    """Return how many columns the blanks take up when they start at ``column``."""
    if "\t" not in blanks:
        return len(blanks)
    end = column
    for blank in blanks:
        end += _TAB_STOP - end % _TAB_STOP if blank == "\t" else 1
    return end - column


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANK_RUN.match(text, position)
    return blanks.end() if blanks else position


def _heading_level(text: str) -> int:
    match = _HEADING.match(text)
    return match.end() if match else 0


def _heading_text(text: str, level: int) -> str:
    content = text[level:].rstrip(_BLANKS)
    without_closing = content.rstrip("#")
    # Closing "#" count as such only after a blank: "# C#" is about C#.
    if without_closing and without_closing[-1] in _BLANKS:
        content = without_closing
    return content.strip()


def _is_underline(text: str) -> bool:
    return not text.rstrip(_BLANKS).strip(text[0])


def _is_rule(text: str) -> bool:
    first = text[0]
    return not text.strip(first + _BLANKS) and text.count(first) >= 3


def _fence_length(text: str) -> int:
    """Return the number of "`" or "~" that open a fenced code block, or 0."""
    if not text.startswith(("```", "~~~")):
        return 0
    marker = text[0]
    length = len(text) - len(text.lstrip(marker))
    # With another backtick this is a code span that happens to start a line.
    return 0 if marker == "`" and "`" in text[length:] else length


def _language(info: str) -> str:
    words = info.split(None, 1)
    return words[0] if words else ""


def _list_marker_length(text: str) -> int:
    """Return the length of the list marker, without the blanks behind it, or 0."""
    if text[0] in _BULLETS:
        return 1 if len(text) == 1 or text[1] in _BLANKS else 0
    marker = _ORDERED_MARKER.match(text)
    return marker.end() if marker else 0


def _count_cells(row: str) -> int:
    """Count the cells of a table row. Pipes at its ends and pipes after a backslash do not separate cells."""
    row = row.strip()
    cells = row.count("|") - row.count("\\|") + 1
    if row.startswith("|"):
        cells -= 1
    if row.endswith("|") and not row.endswith("\\|") and cells:
        cells -= 1
    return cells


def _is_balanced(destination: str) -> bool:
    depth = 0
    for match in _PARENTHESIS.finditer(destination):
        if match[1] == "(":
            depth += 1
            if depth > _MAX_PARENTHESES:
                return False
        elif match[1]:
            depth -= 1
            if depth < 0:
                return False
    return depth == 0


def _html_closing(text: str) -> str:
    """Return the text that ends the HTML block which starts with this line, "" if none starts.

    A tag of any other name counts as none here: its block cannot interrupt a paragraph.
    """
    name = re.match(_HTML_NAME, text)
    if name:
        tag = name[1].lower()
        if tag in _HTML_BLOCK_NAMES:
            return _HTML_BLANK_LINE_END
        is_raw = tag in _HTML_RAW_NAMES and text[1] != "/" and not text.startswith("/", name.end())
        return _HTML_RAW_END if is_raw else ""
    if text.startswith("<!"):
        if text.startswith("<!--"):
            return "-->"
        if text.startswith("<![CDATA["):
            return "]]>"
        return ">" if text[2:3].isascii() and text[2:3].isalpha() else ""
    return "?>" if text.startswith("<?") else ""


def _closes_html(text: str, closing: str) -> bool:
    return closing in text and (closing != _HTML_RAW_END or re.search(_HTML_RAW_END_TAG, text) is not None)
