"""Labels: names of one letter, or of a number and the noun it numbers: gate B, hepatitis A, drive D:, B동, 2팀. One label
never means another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kebab.analysis import korean
from kebab.analysis.language import is_stop_word

LABEL = "label"
"""The script of labels, which have no other forms."""
_HANGUL = "\uac00-\ud7a3"
_LETTER = re.compile(rf"(?<![^\W{_HANGUL}])(?<!['’&./+#-])[A-Za-z](?![^\W{_HANGUL}])(?![&/+#-]|\.[A-Za-z]|['’](?!s\b))")
_BESIDE_HANGUL = re.compile(rf"[{_HANGUL}]\s?$")
_COUNTED = re.compile(r"\d\s?$")
"""A number before a letter, which makes the letter a unit: 5 V."""
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:\n])[\s\"“'(*-]*$")
_AS_SUBJECT = re.compile(r"\s(?:is|was|are|were|and|or|has|had|costs?|gets?|only|to)\b|\s*[,;:)]|['’]s\b|\s*$")
_IN_A_TITLE = re.compile(r"\b[A-Z]\w+\s$")
_TITLE_GOES_ON = re.compile(r"\s[A-Z][a-z]+")
_ROMAN = re.compile(r"\b(?:type|phase|part|class|level|grade|category|stage|volume|war|tier|section)\s$", re.IGNORECASE)
_IN_SMALL_LETTERS = re.compile(
    r"\b(?:node|variable|point|option|section|figure|item|column|row|axis|line|case|part|key|step|host|server|vertex|type)\s$",
    re.IGNORECASE,
)
_LISTED = r"(?:[A-Z](?:,\s(?:and\s|or\s)?|\s(?:and|or|to|&)\s|\s?[–/]\s?))*"
_NOUN_BEFORE = re.compile(rf"([^\W\d_]{{2,}})[\s-](?:and\s|or\s)?{_LISTED}$")
_NOUN_BEHIND = re.compile(rf"(?:[\s-]([a-z]{{2,}})|([{_HANGUL}]))")
NUMBERED_NOUNS = "팀|반|조|동|호기|호선|호실|관|구역|공장|라인|그룹|학년|단지|창구|게이트"
"""Korean nouns that are distinguished by a number before them."""
_NUMBERED = re.compile(rf"(\d+)\s?({NUMBERED_NOUNS})")


class Label(NamedTuple):
    text: str
    """The label as written, with the noun before it."""
    mark: str
    nouns: frozenset[str]
    """The nouns that the label names, as far as its neighbours show."""


def is_label(text: str, start: int) -> bool:
    """Whether a letter that stands alone is a label, and not an article, a pronoun or a unit."""
    if _LETTER.match(text, start) is None:
        return False
    letter, before, behind = text[start], text[:start], text[start + 1 :]
    if _COUNTED.search(before):
        return False
    if _BESIDE_HANGUL.search(before) or re.match(f"[{_HANGUL}]", behind):
        return letter.isupper()
    if letter.islower():
        return letter not in "aio" and _IN_SMALL_LETTERS.search(before) is not None
    if letter == "I":
        return _ROMAN.search(before) is not None
    if letter == "A" and _SENTENCE_BEGINS.search(before):
        return _AS_SUBJECT.match(behind) is not None
    return letter != "A" or not (_IN_A_TITLE.search(before) and _TITLE_GOES_ON.match(behind))


def key_of(letter: str) -> str:
    """The key of a label, which differs from that of any word: a thing called B is not the b in a formula."""
    return f"#{letter.lower()}"


def numbered_at(text: str, start: int) -> str | None:
    """The numbered label at this place of a text, such as 2팀."""
    found = _NUMBERED.match(text, start)
    return f"{found[1]}{found[2]}" if found else None


def labels_in(text: str) -> Iterator[Label]:
    for match in _LETTER.finditer(text):
        if is_label(text, match.start()):
            before = re.search(r"[^\W\d_]+\s$", text[: match.start()])
            written = f"{before[0] if before else ''}{match[0]}"
            yield Label(written, match[0].lower(), frozenset(_nouns(text[: match.start()], text[match.end() :])))


def _nouns(before: str, behind: str) -> Iterator[str]:
    found = _NOUN_BEFORE.search(before)
    if found is not None and not is_stop_word(found[1].lower()):
        yield _bare(found[1])
        return
    follows = _NOUN_BEHIND.match(behind)
    if follows is not None:
        yield _bare(follows[1] or follows[2])


def _bare(noun: str) -> str:
    return korean.strip_particle(noun.casefold()).removesuffix("s")


def mislabelled(claim: str, passage: str) -> Iterable[str]:
    """Labels that the passage gives to something else, while the claim's thing has other labels: vitamin C, if the
    passage has vitamin D and hepatitis C.
    """
    theirs = list(labels_in(passage))
    for mine in labels_in(claim):
        known_as = {one.mark for one in theirs if one.nouns & mine.nouns}
        same = [one for one in theirs if one.mark == mine.mark]
        if same and known_as and mine.mark not in known_as and all(one.nouns for one in same):
            yield mine.text
