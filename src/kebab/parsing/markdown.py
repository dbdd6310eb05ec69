"""Markdown: front matter, then the blocks that `markdown_blocks` finds, as ranges of the file's own text.

The front matter is the block of metadata at the top of a note: YAML between `---` lines, TOML between `+++` lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from math import isfinite
from reprlib import repr as shortened
from typing import Any, NamedTuple

from kebab.analysis.language import language_of
from kebab.core.documents import Block, ParsedDocument
from kebab.core.search import TRUST_LEVELS
from kebab.core.text import decode, nfc, read_toml
from kebab.parsing.building import CODE_MARK, FileParser, as_ranges, plain_heading, title_of
from kebab.parsing.file_types import classify
from kebab.parsing.markdown_blocks import iter_blocks

_INLINE_CODE = re.compile(rf"{CODE_MARK}.*?(?<!`)\1(?!`)", re.DOTALL)
_TAG = re.compile(r"(?:(?<=\s)|(?<![\s\S]))#(?=[\w/-]*[^\W\d_])(\w[\w/-]{0,80}\w|\w)(?![\w/-]|\()")
_COLOUR = re.compile(r"(?=[a-fA-F]*\d)[0-9a-fA-F]{3,8}")
_WITHOUT_TAGS = frozenset({"code", "html", "table"})


class MarkdownParser(FileParser):
    version = "markdown-3"
    isolated = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        doc_type, format_ = classify(path)
        return parse_markdown(text, path, doc_type=doc_type, format=format_, encoding=encoding)


def parse_markdown(text: str, path: str, *, doc_type: str, format: str, encoding: str = "utf-8") -> ParsedDocument:
    matter = read_front_matter(text)
    blocks = _blocks(text, matter.end or matter.unread_end)
    title = title_of(declared_title(matter.values), path, text, blocks)
    if matter.unread_end:
        blocks = (Block("code", 0, matter.unread_end), *blocks)  # searchable, but neither heading nor title
    if not blocks and matter.end:
        blocks = (Block("paragraph", 0, matter.end),)  # so that a file with only front matter is searchable
    trust_level, trust_warning = trust_of(matter.values)
    date, date_warning = date_of(matter.values)
    return ParsedDocument(
        text=text,
        title=title,
        blocks=blocks,
        doc_type=doc_type,
        format=format,
        lang=lang_of(matter.values) or language_of(text[matter.end :]),
        tags=tuple(dict.fromkeys((*words_of(matter.values, "tags", "tag"), *_inline_tags(text, blocks)))),
        aliases=alias_list(matter.values),
        trust_level=trust_level,
        date=date,
        metadata=matter.values,
        warnings=tuple(warning for warning in (matter.warning, trust_warning, date_warning) if warning),
        encoding=encoding,
    )


def _blocks(text: str, start: int) -> tuple[Block, ...]:
    lines = text[start:].split("\n")
    found = (
        block._replace(text=plain_heading(block.text)) if block.kind == "heading" else block
        for block in iter_blocks(lines)
    )
    return as_ranges(lines, found, start)


def _inline_tags(text: str, blocks: tuple[Block, ...]) -> list[str]:
    """Inline tags as in Obsidian: # after white space, with a letter; not in code, and not a colour such as #ff0."""
    if "#" not in text:
        return []
    found = []
    for block in blocks:
        if block.kind in _WITHOUT_TAGS or text.find("#", block.start, block.end) < 0:
            continue
        prose = _INLINE_CODE.sub(" ", text[block.start : block.end])
        found += [match[1] for match in _TAG.finditer(prose) if not _COLOUR.fullmatch(match[1])]
    return found


# --- front matter


_FENCES = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*\r?$", re.MULTILINE),
}
_OPENING = re.compile(r"(---|\+\+\+)[ \t]*\r?\n")
_LONGEST = 65536
_MOST_VALUES = 5000
_LARGEST_NUMBER_BITS = 256
_DATE_KEYS = ("date", "updated", "modified", "lastmod", "created")


class FrontMatter(NamedTuple):
    end: int
    """Where the text after the front matter begins; 0 without front matter."""
    values: dict[str, Any]
    warning: str | None = None
    unread_end: int = 0
    """Where a block ends that looks like front matter but cannot be read; 0 without one."""


NONE = FrontMatter(0, {})


def read_front_matter(text: str) -> FrontMatter:
    """Reads the front matter of a text. Malformed front matter gives a warning and no values."""
    opening = _OPENING.match(text)
    if opening is None:
        return NONE
    closing = _FENCES[opening[1]].search(text, opening.end(), opening.end() + _LONGEST)
    if closing is None:
        return NONE  # a rule at the top of the page, or a table of dashes
    source = text[opening.end() : closing.start()]
    end = closing.end() + 1 if closing.end() < len(text) else len(text)
    try:
        values = _plain(_load(source, is_toml=opening[1] == "+++"), [0])
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return FrontMatter(0, {}, f"the front matter was not understood: {reason}", unread_end=end)
    if values is None:
        return FrontMatter(end, {})
    if not isinstance(values, dict):
        return NONE  # not front matter, but text between two horizontal rules
    return FrontMatter(end, {str(key): value for key, value in values.items()})


def _load(source: str, *, is_toml: bool) -> Any:
    if is_toml:
        return read_toml(source.replace("\r\n", "\n"))
    from kebab.parsing.safe_yaml import load_yaml  # loads PyYAML

    return load_yaml(source, _MOST_VALUES)


def _plain(value: Any, count: list[int]) -> Any:
    """Converts a value to JSON types. Counts the values, because YAML anchors can repeat them endlessly."""
    count[0] += 1
    if count[0] > _MOST_VALUES:
        raise ValueError("it holds too many values")
    if isinstance(value, dict):
        return {str(key): _plain(item, count) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item, count) for item in value]
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has neither NaN nor infinity
    if isinstance(value, int) and value.bit_length() > _LARGEST_NUMBER_BITS:
        raise ValueError("it holds a number that is too large")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def declared_title(values: dict[str, Any]) -> str:
    title = values.get("title")
    return " ".join(nfc(str(title)).split()) if isinstance(title, str | int | float) else ""


def words_of(values: dict[str, Any], *keys: str) -> tuple[str, ...]:
    """The words under these keys: of a list, or of a text with commas or spaces. A leading # is removed."""
    found: dict[str, None] = {}
    for key in keys:
        value = values.get(key)
        if isinstance(value, str):
            value = value.split(",") if "," in value else value.split()
        found |= dict.fromkeys(text.lstrip("#").strip() for text in _texts(value))
    return tuple(filter(None, found))


def alias_list(values: dict[str, Any]) -> tuple[str, ...]:
    """The aliases. A single text is one alias, because aliases are titles and may contain spaces."""
    texts = [*_texts(values.get("aliases")), *_texts(values.get("alias"))]
    return tuple(filter(None, dict.fromkeys(texts)))


def _texts(value: Any) -> Iterator[str]:
    """Yields the texts and numbers of a list, or a single value (`tags: 2024`)."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str | int | float):
            yield nfc(str(item)).strip()


def lang_of(values: dict[str, Any]) -> str | None:
    lang = values.get("lang", values.get("language"))
    if not isinstance(lang, str) or not re.fullmatch(r"\s*[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*\s*", lang):
        return None
    return lang.strip().lower()


def trust_of(values: dict[str, Any]) -> tuple[str | None, str | None]:
    """The trust level, and a warning for an unknown one."""
    trust = values.get("trust", values.get("trust_level"))
    if trust is None:
        return None, None
    if isinstance(trust, str) and trust.strip().lower() in TRUST_LEVELS:
        return trust.strip().lower(), None
    return None, f"trust {shortened(trust)} is not one of {', '.join(reversed(TRUST_LEVELS))}"


def date_of(values: dict[str, Any]) -> tuple[str | None, str | None]:
    """The date as ISO text in UTC without a zone, so that dates sort as text, and a warning for an unreadable one."""
    unread = None
    for key in _DATE_KEYS:
        value = values.get(key)
        if value is None:
            continue
        found = _iso_date(value)
        if found is not None:
            return found, None
        unread = (
            unread or f"{key} {shortened(value)} is not understood as a date, the file's own is taken; write 2024-05-31"
        )
    return None, unread


def _iso_date(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    value = value.strip()
    if parts := re.fullmatch(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})", value):
        value = f"{parts[1]}-{int(parts[2]):02}-{int(parts[3]):02}"
    if re.fullmatch(r"\d{4}-\d{2}", value):
        value += "-01"
    try:
        if len(value) == 10:
            return date.fromisoformat(value).isoformat()
        moment = datetime.fromisoformat(value)
        return (moment.astimezone(UTC) if moment.tzinfo else moment).replace(tzinfo=None).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return None
