"""Reads limits: at least, up to, 이상, 미만, before, after. A claim of "at most" is wrong if the passage says "at least"."""

from __future__ import annotations

import re

_MORE = "more|greater|larger|bigger|longer|older|higher|later|heavier|further"
_LESS = "less|fewer|smaller|shorter|younger|lower|earlier|lighter|sooner"
_NOT = r"(?:no|not|not be|never)"
_BEFORE = re.compile(
    rf"(?:(?P<at_least>\bat least|\b{_NOT} (?:{_LESS}) than|\b{_NOT} (?:under|below)|\b(?:a )?minimum(?: of)?|최소(?:한)?|적어도)"
    rf"|(?P<at_most>\bat most|\bup to|\b{_NOT} (?:{_MORE}) than|\b{_NOT} (?:exceed|over|above)|\b(?:a )?maximum(?: of)?"
    r"|\bwithin|최대|많아야)"
    rf"|(?P<more>\b(?:{_MORE}) than|\bover|\babove|\bexceed(?:s|ed|ing)?|\bafter)"
    rf"|(?P<less>\b(?:{_LESS}) than|\bunder|\bbelow))\s*(?:the\s)?[$€₩]?$",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    rf"\s?(?:[을를이가]\s)?(?:(?P<at_least>이상|at (?:the )?least\b(?!\s\d)|minimum\b|or (?:{_MORE}|over|above)\b(?! than))"
    rf"|(?P<at_most>이하|이내|at (?:the )?most\b(?!\s\d)|maximum\b|까지|[을를] 넘지|넘지|초과하지|[을를] 넘을 수 없"
    rf"|넘을 수 없|초과할 수 없|or (?:{_LESS}|under|below)\b(?! than))"
    r"|(?P<more>초과|[을를] 넘|넘|이후|(?:이\s)?지나|뒤)|(?P<less>미만)|(?P<in_time>안에|내에))",
    re.IGNORECASE,
)
_TIME_BEFORE = re.compile(
    rf"(?:(?P<less>\b(?:before|until|till|by|prior to|{_NOT} later than|latest at|up to)(?: at)?)"
    rf"|(?P<more>\b(?:after|from|since|{_NOT} earlier than)(?: at)?))\s*$",
    re.IGNORECASE,
)
_TIME_BEHIND = re.compile(
    r"\s?(?:(?P<less>이?전|까지)|(?P<more>이?후|부터|넘어))|\s(?:at the latest|or earlier)\b", re.IGNORECASE
)
_AHEAD = re.compile(r"\s?(?:(?:before|prior|ahead|in advance|beforehand)\b|전)", re.IGNORECASE)
_SIGNS = {"at_least": "≥", "at_most": "≤", "in_time": "≤", "more": ">", "less": "<"}
_AT_LATEST = re.compile(rf"\b{_NOT} later than\s*$", re.IGNORECASE)
_IN_TIME = re.compile(r"within|after|안에|내에|이내|뒤|이후|지나", re.IGNORECASE)
_NEAR = 40
_LONGEST = 24


def bound_of(number: re.Match[str]) -> str:
    """The limit that a number with its unit is at this place of a text: <, ≤, ≥ or >; empty if it is no limit."""
    if _AHEAD.match(number.string, number.end()):  # no later than three days before is at least three days before
        ahead = _BEFORE.search(number.string[max(0, number.start() - _LONGEST) : number.start()])
        return "≥" if ahead and (ahead.lastgroup == "at_least" or _AT_LATEST.search(ahead[0])) else ""
    found = _behind(number) or _before(number)
    if found and _IN_TIME.search(found[0]) and _is_denied_there(number):
        return ""  # not ready within ten minutes: not ready after ten minutes
    return _SIGNS[found.lastgroup or ""] if found else ""


def _is_denied_there(number: re.Match[str]) -> bool:
    text = number.string
    before, behind = text[max(0, number.start() - _NEAR) : number.start()], text[number.end() : number.end() + _NEAR]
    return (
        re.search(r"\b(?:not|never)\b|n['’]t\b", before, re.IGNORECASE) is not None
        or re.search(r"지\s?(?:않|못)", behind) is not None
    )


def side_of(time: re.Match[str]) -> str:
    """< or > if a time of day or a date only ends or begins something; otherwise empty."""
    found = _TIME_BEHIND.match(time.string, time.end()) or _TIME_BEFORE.search(
        time.string[max(0, time.start() - _LONGEST) : time.start()]
    )
    return _SIGNS[found.lastgroup] if found and found.lastgroup else "<" if found else ""


def start_with_bound(number: re.Match[str]) -> int:
    found = _before(number)
    return number.start() - len(found[0]) if found else number.start()


def _before(number: re.Match[str]) -> re.Match[str] | None:
    return _BEFORE.search(number.string[max(0, number.start() - _LONGEST) : number.start()])


def _behind(number: re.Match[str]) -> re.Match[str] | None:
    return _BEHIND.match(number.string, number.end())
