"""Headings of Markdown as a reader sees them."""

from __future__ import annotations

import re

from kebab.core.text import nfc

_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_WIKI_LINK = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_TAG_OR_COMMENT = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>")
_STARS = re.compile(r"(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1")
_UNDERSCORES = re.compile(r"(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)")
_LITERAL = re.compile(r"\\([!-/:-@\[-`{-~])|(`+)\s?(.+?)\s?(?<!`)\2(?!`)")
_KEPT = re.compile("\ue000(\\d+)\ue001")
_MARKUP = re.compile(r"[\[<{*_~`\\]")


def plain_heading(source: str) -> str:
    """Without links, emphasis, code marks, tags and {#anchors}."""
    if not _MARKUP.search(source):
        return nfc(" ".join(source.split()))
    literals: list[str] = []

    def keep(match: re.Match[str]) -> str:
        """Escaped characters and code are text as they stand, whatever they look like."""
        literals.append(match[1] or match[3])
        return f"\ue000{len(literals) - 1}\ue001"

    source = _ATTRIBUTES.sub("", source)
    source = _LITERAL.sub(keep, source)
    source = _TAG_OR_COMMENT.sub("", source)
    source = _WIKI_LINK.sub(r"\1", source)
    source = _IMAGE_OR_LINK.sub(r"\1", source)
    for emphasis in (_STARS, _UNDERSCORES) * 2:  # one inside the other
        source = emphasis.sub(r"\2", source)
    source = _KEPT.sub(lambda match: literals[int(match[1])] if int(match[1]) < len(literals) else "", source)
    return nfc(" ".join(source.split()))
