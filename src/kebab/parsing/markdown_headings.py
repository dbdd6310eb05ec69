"""Headings of Markdown as a reader sees them."""

from __future__ import annotations

import re

from kebab.core.text import nfc

# Compiled by `re` when a heading with markup is first met: most searches meet none.
_IMAGE_OR_LINK = r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])"
_WIKI_LINK = r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]"
_ATTRIBUTES = r"\s*\{[#.:][^{}]*\}\s*$"
_TAG_OR_COMMENT = r"<!--.*?-->|</?[A-Za-z][^<>]*>"
_STARS = r"(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1"
_UNDERSCORES = r"(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)"
_LITERAL = r"\\([!-/:-@\[-`{-~])|(`+)\s?(.+?)\s?(?<!`)\2(?!`)"
_KEPT = "\ue000(\\d+)\ue001"
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

    source = re.sub(_ATTRIBUTES, "", source)
    source = re.sub(_LITERAL, keep, source)
    source = re.sub(_TAG_OR_COMMENT, "", source)
    source = re.sub(_WIKI_LINK, r"\1", source)
    source = re.sub(_IMAGE_OR_LINK, r"\1", source)
    for emphasis in (_STARS, _UNDERSCORES) * 2:  # one inside the other
        source = re.sub(emphasis, r"\2", source)
    source = re.sub(_KEPT, lambda match: literals[int(match[1])] if int(match[1]) < len(literals) else "", source)
    return nfc(" ".join(source.split()))
