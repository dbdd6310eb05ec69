"""Removes what a model writes between tags such as <think> before its answer, while the text arrives."""

from __future__ import annotations

import re

_OPENS = re.compile(r"\s*<(think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
_CLOSES = re.compile(r"</(?:think|thinking|thought|reasoning|reflection)>\s*", re.IGNORECASE)
_LONGEST_TAG = len("</reflection>")
_MAY_OPEN = re.compile(r"\s*(?:<[a-z]*)?", re.IGNORECASE)


class WithoutThoughts:
    """Takes the pieces of an answer as they arrive, and returns the parts that can be shown."""

    def __init__(self) -> None:
        self._held = ""
        self._answers = False
        """Whether the answer itself has begun; a later tag is text."""
        self._thinks = False

    def shown(self, piece: str) -> str:
        if self._answers:
            return piece
        self._held += piece
        while True:
            if self._thinks:
                end = _CLOSES.search(self._held)
                if end is None or end.end() == len(self._held):  # more white space may follow
                    self._held = self._held[end.start() :] if end else self._held[-_LONGEST_TAG:]
                    return ""
                self._held, self._thinks = self._held[end.end() :], False
            begin = _OPENS.match(self._held)
            if begin is None:
                break
            self._held, self._thinks = self._held[begin.end() :], True
        if _MAY_OPEN.fullmatch(self._held) and len(self._held.lstrip()) < _LONGEST_TAG:
            return ""
        return self._begin()

    def rest(self) -> str:
        """The text held back at the end: white space, or the beginning of something that is no tag. A thought without
        an end is not part of the answer.
        """
        return "" if self._thinks else self._begin()

    def _begin(self) -> str:
        held, self._held, self._answers = self._held, "", True
        return held


def without_thoughts(text: str) -> str:
    """A whole answer without thoughts, also if only their end is marked because the template of the model began them."""
    end = _CLOSES.search(text)
    return text[end.end() :] if end and "<" not in text[: end.start()] and "```" not in text[: end.start()] else text
