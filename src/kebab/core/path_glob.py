"""Path globs: `*`, `?` and `[…]` do not match a slash, `**` does, and `**/` also matches nothing.

A glob with at most two `**` becomes a regular expression. With more, a regular expression could take extremely long on
a path that almost matches, so a state machine matches the path in at most pattern × path steps.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_MOST_FOR_REGEX = 2


class _Token(NamedTuple):
    kind: str
    """letter, one, class, star, anything, folders"""
    regex: str = ""


def path_matches(pattern: str, path: str) -> bool:
    tokens, expression = _compiled(pattern)
    return expression.fullmatch(path) is not None if expression is not None else _follow(tokens, path)


def passes(pattern: str, path: str) -> bool:
    """Whether a path passes the filter `path`, which is a glob, a path, or a folder (matching everything below it)."""
    if set("*?[") & set(pattern):
        return path_matches(pattern, path)
    return path == pattern or path.startswith(pattern.rstrip("/") + "/")


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> tuple[tuple[_Token, ...], re.Pattern[str] | None]:
    tokens = tuple(_tokens(pattern))
    crossing = sum(token.kind in ("anything", "folders") for token in tokens)
    return tokens, re.compile(_expression(tokens), re.DOTALL) if crossing <= _MOST_FOR_REGEX else None


def _tokens(pattern: str) -> list[_Token]:
    tokens: list[_Token] = []
    i = 0
    while i < len(pattern):
        if pattern.startswith("**/", i) and (i == 0 or pattern[i - 1] == "/"):
            token, i = _Token("folders"), i + 3
        elif pattern.startswith("**", i):
            token, i = _Token("anything"), i + 2
        elif pattern[i] in "*?":
            token, i = _Token("star" if pattern[i] == "*" else "one", "[^/]"), i + 1
        elif pattern[i] == "[" and (end := _class_end(pattern, i)) > 0 and (members := _class(pattern[i + 1 : end])):
            token, i = _Token("class", members), end + 1
        else:
            token, i = _Token("letter", re.escape(pattern[i])), i + 1
        if not (tokens and token.kind == tokens[-1].kind and token.kind in ("star", "anything", "folders")):
            tokens.append(token)  # two equal wildcards in a row mean the same as one
    return tokens


def _class_end(pattern: str, start: int) -> int:
    """The index of the bracket that closes a class, or -1. A bracket right after [ or [! is a member, not the end."""
    return pattern.find("]", start + (3 if pattern[start + 1 : start + 2] in ("!", "^") else 2))


def _class(inside: str) -> str:
    """The regular expression of a class. Empty for a range without members, such as z-a: [ is then a plain letter."""
    negated = inside[0] in "!^"
    members = inside[1:] if negated else inside
    parts, i = [], 0
    while i < len(members):
        if members[i + 1 : i + 2] == "-" and i + 2 < len(members):
            if members[i] > members[i + 2]:
                return ""
            parts.append(f"{re.escape(members[i])}-{re.escape(members[i + 2])}")
            i += 3
        else:
            parts.append(re.escape(members[i]))
            i += 1
    return f"(?!/)[{'^' if negated else ''}{''.join(parts)}]"


def _expression(tokens: tuple[_Token, ...]) -> str:
    """The regular expression of a glob. Atomic groups, `(?>…)`, prevent slow backtracking over stars."""
    out, i = [], 0
    while i < len(tokens):
        kind = tokens[i].kind
        if kind == "folders":
            out.append("(?:.*/)?")
        elif kind == "anything":
            out.append(".*")
        elif kind == "star":
            end = i + 1
            while end < len(tokens) and tokens[end].kind in ("letter", "one", "class"):
                end += 1
            fixed = "".join(token.regex for token in tokens[i + 1 : end])
            another_star = end < len(tokens) and tokens[end].kind == "star"
            out.append(f"(?>[^/]*?{fixed})" if another_star else f"[^/]*{fixed}")
            i = end
            continue
        else:
            out.append(tokens[i].regex)
        i += 1
    return "".join(out)


def _follow(tokens: tuple[_Token, ...], path: str) -> bool:
    """Whether the path matches, by tracking all positions in the pattern that are possible after each letter."""
    classes = [re.compile(token.regex) if token.regex else None for token in tokens]
    states = _skipping({0}, tokens)
    inside: set[int] = set()  # positions of `**/` tokens that match the current folder
    for letter in path:
        after: set[int] = set()
        inside |= {state for state in states if state < len(tokens) and tokens[state].kind == "folders"}
        if letter == "/":
            after |= {state + 1 for state in inside}
        for state in states:
            if state == len(tokens) or tokens[state].kind == "folders":
                continue
            kind, fits = tokens[state].kind, classes[state]
            if kind == "anything" or (kind == "star" and letter != "/"):
                after.add(state)
            elif kind != "star" and fits is not None and fits.fullmatch(letter):
                after.add(state + 1)
        states = _skipping(after, tokens)
    return len(tokens) in states


def _skipping(states: set[int], tokens: tuple[_Token, ...]) -> set[int]:
    """These positions, and those reached from them by letting stars and `**/` match nothing."""
    reached: set[int] = set()
    for start in states:
        state = start
        reached.add(state)
        while state < len(tokens) and tokens[state].kind in ("star", "anything", "folders"):
            state += 1
            reached.add(state)
    return reached
