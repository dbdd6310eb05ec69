"""Limits: at least, up to, 이상, 미만. Whoever says at most of what is at least says something else."""

from __future__ import annotations

import re

_MORE = "more|greater|larger|bigger|longer|older|higher|later|heavier|further"
_LESS = "less|fewer|smaller|shorter|younger|lower|earlier|lighter|sooner"
_NOT = r"(?:no|not|not be|never)"
_BEFORE = re.compile(
    rf"(?:(?P<at_least>\bat least|\b{_NOT} (?:{_LESS}) than|\b{_NOT} (?:under|below)|\b(?:a )?minimum(?: of)?|최소(?:한)?|적어도)"
    rf"|(?P<at_most>\bat most|\bup to|\b{_NOT} (?:{_MORE}) than|\b{_NOT} (?:exceed|over|above)|\b(?:a )?maximum(?: of)?"
    r"|\bwithin|최대|많아야)"
    rf"|(?P<more>\b(?:{_MORE}) than|\bover|\babove|\bexceed(?:s|ed|ing)?)"
    rf"|(?P<less>\b(?:{_LESS}) than|\bunder|\bbelow))\s*[$€₩]?$",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    rf"\s?(?:[을를이가]\s)?(?:(?P<at_least>이상|at (?:the )?least\b(?!\s\d)|minimum\b|or (?:{_MORE}|over|above)\b(?! than))"
    rf"|(?P<at_most>이하|이내|at (?:the )?most\b(?!\s\d)|maximum\b|까지|[을를] 넘지|넘지|초과하지|or (?:{_LESS}|under|below)\b(?! than))"
    r"|(?P<more>초과|[을를] 넘|넘)|(?P<less>미만))",
    re.IGNORECASE,
)
_SIGNS = {"at_least": "≥", "at_most": "≤", "more": ">", "less": "<"}
_LONGEST = 24


def bound_of(number: re.Match[str]) -> str:
    """<, ≤, ≥ or >, or nothing; of a number with its unit where it stands in a text."""
    found = _behind(number) or _before(number)
    return _SIGNS[found.lastgroup or ""] if found else ""


def start_with_bound(number: re.Match[str]) -> int:
    found = _before(number)
    return number.start() - len(found[0]) if found else number.start()


def _before(number: re.Match[str]) -> re.Match[str] | None:
    return _BEFORE.search(number.string[max(0, number.start() - _LONGEST) : number.start()])


def _behind(number: re.Match[str]) -> re.Match[str] | None:
    return _BEHIND.match(number.string, number.end())
