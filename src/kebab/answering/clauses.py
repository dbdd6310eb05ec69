"""Reads a text clause by clause: the words and numbers of each clause, and whether it says yes or no."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kebab.analysis.language import is_stop_word
from kebab.answering.bounds import start_with_bound
from kebab.answering.claim_words import NOTHING_SAID, ClaimWord, Said, distinct, is_action, is_light, said_by, words_of
from kebab.answering.idioms import in_plain_words
from kebab.answering.labels import LABEL, key_of, numbered_at
from kebab.answering.polarity import Polarity, polarity_of
from kebab.answering.quantities import Quantity, end_of, quantities
from kebab.answering.spelt_out import in_digits
from kebab.core.ports import Tokenizer
from kebab.core.text import nfc

_CUT = re.compile(
    r"[;()]|[:,!?](?=\s|$)|(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bNo)(?<!\bProf)\.(?=\s|$)|\sand\s(?!\d+\s(?:minute|second)s?\b|an?\s(?:half|quarter)\b)|\s(?:but|while|whereas|then|plus)\s"
    r"|\sor\s(?=(?:the|your|it|you|they)\s(?:\w+\s){0,3}?(?:is|are|will|must)\b)"
    r"|\s(?=(?:unless|if|when|because(?! of)|although|instead of|rather than|except)\s)"
    r"|(?<=[고며])\s|(?<=지만)\s|(?<=[으하되]면)\s(?!안\s|못|[된되돼됩])|(?<=면서)\s|(?<=는데)\s"
    r"|(?<=\d[원명개장권일점])\s(?:가운데|중(?:에서?)?)\s|(?<=\d [원명개장권일점])\s(?:가운데|중(?:에서?)?)\s"
)
_BETWEEN = re.compile(r"\b(between(?:\s[\w.:,°%€$]+){1,3}?)\sand\s", re.IGNORECASE)
_GOES_ON = re.compile(
    r"\s*(?:it|its|they|them|their|this|these|those|such|he|she|which|who|whose|이는|그는|이것은|이를"
    r"|(?!(?:if|when|while|because|unless|until|after|before|although|since|that|as|but|once|where|so)\s)[a-z]+\s(?:it|them))\b",
    re.IGNORECASE,
)
"""Begins a clause that is about the same thing as the clause before it."""
_EXCEPTION = re.compile(r"\s*except\s", re.IGNORECASE)
"""Begins an exception: it is allowed if the clause before it is denied, and the reverse."""
_LEAVES_OUT = re.compile(r"\s*(?:except|not)\s+(?!only\b)", re.IGNORECASE)
_HAS_VERB = re.compile(r"\b(?:is|are|was|were|be|do|does|did|can|may|must|will|would|should|has|have)\b", re.IGNORECASE)
_SWITCHED = re.compile(r"\b(?:turn|switch|power)(?:s|ed|ing)?\s+(?:\w+\s+){0,3}?(on|off)\b", re.IGNORECASE)
_OPEN_UNTIL = re.compile(
    r"\bopen\b.*\b(?:until|till|to)\s+\d|\d시?(?:\s\d+분)?까지\s*(?:문을\s)?(?:연다|엽니다|열고|열며|열려|운영|영업)",
    re.IGNORECASE,
)
_KEPT_FOR = re.compile(
    r"\b(?:kept|retained|stored|keep|retain)\b.*\bfor\s+\d+\s(?:day|week|month|year)s?\b|\d(?:일|주|개월|년)(?:간|\s동안)\s.*보관(?!료)",
    re.IGNORECASE,
)
_BEGINS_WITH_NUMBER = re.compile(
    r"\s*(?:(?:until|till|from|within|after|before|at|for|to|up to|at least|at most|only|about)\s+)*[$€₩]?\d",
    re.IGNORECASE,
)
_LEADS = re.compile(
    r"\s*(?:in|on|at|for|from|during|after|before|to|with|by|of|within|under|until|since|without|among)\s"
    r"(?!.*\b(?:is|are|was|were|has|have|had|do|does|did|can|may|must|will|would|should)\b).*",
    re.IGNORECASE,
)
"""The beginning of a sentence that belongs to the following clause: In an emergency, call Ada."""
_BEGINS_WITH_VERB = re.compile(
    r"\s*(?:(?:must|can|cannot|may|might|should|will|would|shall|is|are|was|were|has|have|had|does|do|did|needs?)\s|[a-z]+(?:s|ed)\s)"
)
_KOREAN_SUBJECT = re.compile(r"[가-힣](?:은|는|이|가|께서)(?=[\s,])")
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+\s+)?\w+(?:ed|en|n|t)\b.*\bby\b", re.IGNORECASE)
_UNIT = re.compile(r"^\s?[A-Z](?![\w'’])")
"""A unit of one letter behind a number: 5 V."""
_INHERITED = 0.45
_CARRIED_ON = 0.9
"""The weight of a word that is only in the clause before: of the same sentence, or if a pronoun refers to that clause.
"""


class Clause(NamedTuple):
    text: str
    words: tuple[ClaimWord, ...]
    """The words that say something, each once."""
    tokens: tuple[str, ...]
    """The keys of these words at every mention, and the values of numbers, in order."""
    order: tuple[str, ...]
    """The keys of all words except stop words, in order: who comes before whom."""
    said: Said
    quantities: tuple[tuple[int, Quantity], ...]
    """The numbers, each with its index in `tokens`."""
    polarity: Polarity
    before: Said = NOTHING_SAID
    """What the clause need not repeat: the earlier clauses of its sentence, or the first clause of the sentence before
    if this one continues with a pronoun.
    """
    tokens_before: tuple[str, ...] = ()
    order_before: tuple[str, ...] = ()
    carried_on: bool = False
    anew: bool = False
    """Whether a semicolon before it makes it a statement of its own."""
    head: tuple[str, ...] = ()
    """The tokens before the number of an earlier clause, if this clause begins with another number: within 10 minutes
    by day, within 20 at night.
    """

    @property
    def inherited(self) -> float:
        return _CARRIED_ON if self.carried_on else _INHERITED

    @property
    def own_tokens(self) -> tuple[str, ...]:
        """The tokens of this clause, together with those that a pronoun refers to or that it does not repeat."""
        return (*self.tokens_before, *self.tokens) if self.carried_on else (*self.head, *self.tokens)

    @property
    def is_passive(self) -> bool:
        return _PASSIVE.search(self.text) is not None

    @property
    def is_exception(self) -> bool:
        return _EXCEPTION.match(self.text) is not None

    @property
    def is_fragment(self) -> bool:
        """Whether the clause says the contrary of something else without repeating the statement: but not Linux, except
        Linux.
        """
        return _LEAVES_OUT.match(self.text) is not None and _HAS_VERB.search(self.text) is None

    @property
    def goes_on(self) -> bool:
        return _GOES_ON.match(self.text) is not None


def clauses_of(text: str, tokenizer: Tokenizer, previous: Sequence[Clause] = ()) -> list[Clause]:
    """The clauses of a sentence. `previous`: the clauses of the sentence before."""
    found: list[Clause] = []
    for part, anew in _parts(text):
        clause = _clause(part, tokenizer)._replace(anew=anew)
        earlier = found or (list(previous[:1]) if clause.goes_on else [])
        if earlier and clause.is_exception:
            clause = clause._replace(polarity=clause.polarity._replace(denies=not earlier[-1].polarity.denies))
        if earlier:
            clause = clause._replace(
                before=NOTHING_SAID.with_(*(one.said for one in earlier)),
                tokens_before=tuple(token for one in earlier for token in one.tokens),
                order_before=tuple(key for one in earlier for key in one.order),
                carried_on=clause.goes_on or clause.is_fragment,
                head=_head(found, clause),
            )
        found.append(clause)
    return found


def _head(earlier: Sequence[Clause], clause: Clause) -> tuple[str, ...]:
    counted = next((one for one in reversed(earlier) if one.quantities), None)
    if counted is None and earlier and clause.quantities and not clause.words:
        return earlier[-1].tokens  # rear tyre: 5 bar
    if counted is None or not clause.quantities:
        return ()
    korean = clause.said.text and not _KOREAN_SUBJECT.search(clause.text)
    if not korean and not _BEGINS_WITH_NUMBER.match(clause.text) and not _BEGINS_WITH_VERB.match(clause.text):
        return ()
    verbs = {word.key for word in counted.words if is_action(word, counted.text)}
    return tuple(token for token in counted.tokens[: counted.quantities[0][0]] if token not in verbs)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a text, each with whether a semicolon precedes it."""
    plain = in_plain_words(_BETWEEN.sub(r"\1 to ", in_digits(nfc(" ".join(text.split())))))
    last, anew = 0, False
    for cut in _CUT.finditer(plain):
        if plain[last : cut.start()].strip():
            yield plain[last : cut.start()], anew
            anew = False
        anew, last = anew or cut[0] == ";", cut.end()
    if plain[last:].strip():
        yield plain[last:], anew


def _clause(text: str, tokenizer: Tokenizer) -> Clause:
    words: list[ClaimWord] = []
    tokens: list[str] = []
    numbers: list[tuple[int, Quantity]] = []
    last = 0
    switched = " ".join({"on": "enable", "off": "disable"}[match[1].lower()] for match in _SWITCHED.finditer(text))

    def read(part: str) -> None:
        found = words_of(_UNIT.sub(" ", part) if last else part, tokenizer)
        words.extend(found)
        tokens.extend(word.key for word in found if not is_light(word))

    for match, quantity in quantities(text):
        read(text[last : start_with_bound(match)])
        numbers.append((len(tokens), quantity))
        tokens.append(quantity.value)
        if (label := numbered_at(text, match.start())) is not None:
            words.append(ClaimWord(label, key_of(label), LABEL))
        last = end_of(match)
    read(f"{text[last:]} {switched}")
    closing = _closing(text)
    return Clause(
        text=text,
        words=tuple(distinct(word for word in words if not is_light(word))),
        tokens=tuple(tokens),
        order=tuple(word.key for word in words if not is_stop_word(word.text)),
        said=said_by(f"{text} {closing}", [*words, *words_of(closing, tokenizer)], tokenizer),
        quantities=tuple(numbers),
        polarity=polarity_of(text),
    )


def _closing(text: str) -> str:
    """What a clause implies about an end: what is open until eight closes at eight, and what is kept for a month is
    deleted after a month.
    """
    if _KEPT_FOR.search(text):
        return "삭제한다" if "보관" in text else "delete"
    if not _OPEN_UNTIL.search(text):
        return ""
    return "닫는다" if "까지" in text else "close"


def joined(clauses: Sequence[Clause], tokenizer: Tokenizer) -> list[Clause]:
    """The clauses of a claim, in which a clause that says too little by itself is joined to the one before it, or the
    first one to the one after it.
    """
    parts: list[str] = []
    waiting = ""
    for clause in clauses:
        says_little = len(clause.words) + len(clause.quantities) < 2 and not (clause.words and clause.polarity.denies)
        leads = not parts and clause is not clauses[-1] and _LEADS.fullmatch(clause.text) is not None
        if leads or (says_little and (parts or clause is not clauses[-1])):
            if parts:
                parts[-1] += f", {clause.text.strip()}"
            else:
                waiting += f"{clause.text.strip()}, "
            continue
        parts.append(waiting + clause.text.strip())
        waiting = ""
    if waiting:
        parts.append(waiting)
    return [_clause(part, tokenizer) for part in parts]
