"""What an expression demands, as a filter on the terms of a chunk: AND, OR and NOT are the server's work.

Only the order of words in a phrase is not: there every chunk passes that has all of them, and somebody has to look.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kebab.store.fts5.wanted_terms import IndexTerm
from kebab.store.qdrant.collection import Filter

_TOKEN = re.compile(r'(?P<cjk>cjk : )?"(?P<text>(?:[^"]|"")*)"(?P<star> \*)?|(?P<sign>[()]|AND|OR|NOT)|\s+')

Stems = Callable[[str], list[str]]
TermIds = Callable[[IndexTerm], int]


class TermFilter(NamedTuple):
    condition: Filter
    is_exact: bool
    """Whether all that passes matches."""


class _Atom(NamedTuple):
    text: str
    in_cjk: bool
    is_beginning: bool


class _Reader:
    """Reads what `match_expression` writes: NOT binds before AND, and AND before OR."""

    def __init__(self, expression: str, stems: Stems, term_ids: TermIds) -> None:
        self._tokens: list[_Atom | str] = []
        for match in _TOKEN.finditer(expression):
            if match["sign"]:
                self._tokens.append(match["sign"])
            elif match["text"] is not None:
                self._tokens.append(
                    _Atom(match["text"].replace('""', '"'), match["cjk"] is not None, match["star"] is not None)
                )
        self._place = 0
        self._stems = stems
        self._term_ids = term_ids

    def either(self) -> TermFilter | None:
        return _joined("should", self._chain("OR", lambda: self._chain_of_all()))

    def _chain_of_all(self) -> TermFilter | None:
        return _joined("must", self._chain("AND", self._without))

    def _without(self) -> TermFilter | None:
        kept = self._operand()
        while self._next_is("NOT"):
            dropped = self._operand()
            if kept is None or dropped is None:
                continue
            # What is only known to be in all that must go cannot be taken away here.
            parts: dict[str, Any] = {"must": [kept.condition]}
            if dropped.is_exact:
                parts["must_not"] = [dropped.condition]
            kept = TermFilter(parts, kept.is_exact and dropped.is_exact)
        return kept

    def _operand(self) -> TermFilter | None:
        token = self._tokens[self._place]
        self._place += 1
        if token == "(":
            inside = self.either()
            self._place += 1
            return inside
        assert isinstance(token, _Atom)
        return self._phrase(token)

    def _phrase(self, atom: _Atom) -> TermFilter | None:
        """None for one without any word, which asks for nothing."""
        stems = self._stems(atom.text)
        last = len(stems) - 1
        ids = [
            self._term_ids(IndexTerm(stem, atom.in_cjk, atom.is_beginning and place == last))
            for place, stem in enumerate(stems)
        ]
        has = [{"key": "terms", "match": {"value": number}} for number in dict.fromkeys(ids)]
        return TermFilter({"must": has}, len(stems) == 1) if has else None

    def _chain(self, sign: str, operand: Callable[[], TermFilter | None]) -> list[TermFilter]:
        found = [operand()]
        while self._next_is(sign):
            found.append(operand())
        return [part for part in found if part is not None]

    def _next_is(self, sign: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place] == sign:
            self._place += 1
            return True
        return False


def term_filter(expression: str, stems: Stems, term_ids: TermIds) -> TermFilter | None:
    """None where it asks for nothing."""
    return _Reader(expression, stems, term_ids).either()


def _joined(how: str, parts: list[TermFilter]) -> TermFilter | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    return TermFilter({how: [part.condition for part in parts]}, all(part.is_exact for part in parts))
