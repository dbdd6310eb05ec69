"""Checks words in quotation marks: whether a source has them in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

_QUOTED = re.compile(r'"([^"\n]{3,})"|“([^”\n]{3,})”|「([^」\n]{2,})」|『([^』\n]{2,})』|‘([^’\n]{3,})’')
_LEFT_OUT = re.compile(r"\s*(?:\[?…\]?|\[?\.{3}\]?)\s*")
_WORD = re.compile(r"\w+")
_SAYS = re.compile(
    r"\b(?:says?|said|states?|stated|reads?|writes?|wrote|warns?|notes?|claims?|tells?|according to)\b|라고|적혀|쓰여|따르면",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\b([A-Z][a-z]+)\b(?!\.)|([가-힣]{2,}?)(?:은|는|이|가|께서)(?=\s)")
_NOBODY = frozenset("The According In On At It He She They This That As For And But Yes No".split())
_PRONOUN = re.compile(r"""\s*(?:["“‘'「『]|(?:he|she|they|it|그는|그녀는|이어)\b)""", re.IGNORECASE)
_SHORTEST_PIECE = 2
"""The least number of words of a quoted piece: a single word is in every text."""


class Placement(Enum):
    VERBATIM = "verbatim"
    IN_PIECES = "in pieces"
    """All parts of the quotation are in the text, but not one after the other."""
    NOWHERE = "nowhere"


def quotations(text: str) -> Iterator[str]:
    for match in _QUOTED.finditer(text):
        yield next(group for group in match.groups() if group is not None)


def placed(quotation: str, texts: Sequence[str]) -> Placement:
    """Where the texts have a quotation. Words and their order are compared; case, white space, markup and the last mark
    are not.
    """
    said = [_words(text) for text in texts]
    wanted = _words(quotation)
    if not wanted or any(_contains(text, wanted) for text in said):
        return Placement.VERBATIM
    pieces = [words for piece in _LEFT_OUT.split(quotation) if (words := _words(piece))]
    if len(pieces) > 1 and all(any(_contains(text, piece) for text in said) for piece in pieces):
        return Placement.IN_PIECES
    return Placement.IN_PIECES if _is_put_together(wanted, said) else Placement.NOWHERE


def _is_put_together(wanted: list[str], said: Sequence[list[str]]) -> bool:
    for cut in range(_SHORTEST_PIECE, len(wanted) - _SHORTEST_PIECE + 1):
        if all(any(_contains(text, piece) for text in said) for piece in (wanted[:cut], wanted[cut:])):
            return True
    return False


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _contains(text: list[str], piece: list[str]) -> bool:
    joined = f" {' '.join(piece)} "
    return joined in f" {' '.join(text)} "


def presents(text: str) -> bool:
    """Whether a claim presents words in quotation marks as what somebody wrote, so that the words need not be true."""
    return _SAYS.search(text) is not None and next(quotations(text), None) is not None


def is_another_speaker(claim: str, quotation: str, sentences: Sequence[str]) -> bool:
    """Whether the claim attributes the words to somebody whom only other sentences name."""
    wanted = _words(quotation)
    holding = [number for number, sentence in enumerate(sentences) if _contains(_words(sentence), wanted)]
    if not holding:
        return False
    outside = claim.replace(quotation, " ")
    speakers = {match[1] or match[2] for match in _SPEAKER.finditer(outside)} - _NOBODY
    known = {speaker for speaker in speakers if any(_names(sentence, speaker) for sentence in sentences)}
    return bool(known) and not any(
        all(
            _names(sentences[number].replace(quotation, " "), speaker) or _refers_back(sentences, number, speaker)
            for speaker in known
        )
        for number in holding
    )


def _names(sentence: str, speaker: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(speaker)}", sentence) is not None


def _refers_back(sentences: Sequence[str], number: int, speaker: str) -> bool:
    """Whether a sentence begins with a pronoun (She wrote:) and the sentence before names the speaker."""
    return number > 0 and _PRONOUN.match(sentences[number]) is not None and _names(sentences[number - 1], speaker)
