"""What is read, clause by clause: words, numbers, and yes or no, each where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kebab.analysis.stop_words import is_stop_word
from kebab.answering.bounds import start_with_bound
from kebab.answering.claim_words import NOTHING_SAID, ClaimWord, Said, distinct, is_light, said_by, words_of
from kebab.answering.polarity import Polarity, polarity_of
from kebab.answering.quantities import Quantity, end_of, quantities
from kebab.answering.spelt_out import in_digits
from kebab.core.ports import Tokenizer
from kebab.core.text import nfc

_CUT = re.compile(
    r"[;()]|[:,.!?](?=\s|$)|(?<!hour)(?<!hours)(?<!minute)(?<!minutes)\sand\s|\s(?:but|while|whereas|then)\s"
    r"|\s(?=(?:unless|if|when|because|although|instead of|rather than|except)\s)"
    r"|(?<=[고며])\s|(?<=지만)\s|(?<=면서)\s|(?<=는데)\s"
)
_GOES_ON = re.compile(r"\s*(?:it|its|they|them|their|this|these|those|such|he|she|which|who|whose|이는|그는|이것은|이를)\b", re.IGNORECASE)
"""A clause about what the one before it is about."""
_SWITCHED = re.compile(r"\b(?:turn|switch|power)(?:s|ed|ing)?\s+(?:\w+\s+){0,3}?(on|off)\b", re.IGNORECASE)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+\s+)?\w+(?:ed|en|n|t)\b.*\bby\b", re.IGNORECASE)
_INHERITED = 0.45
_CARRIED_ON = 0.9
"""What a word counts that stands in the clause before, of the same sentence or where a pronoun refers to it."""


class Clause(NamedTuple):
    text: str
    words: tuple[ClaimWord, ...]
    """Those that say something, each once."""
    tokens: tuple[str, ...]
    """Keys of the same words, every mention, and values of numbers, in order."""
    order: tuple[str, ...]
    """Keys of all words that are no stop words, in order: who comes before whom."""
    said: Said
    quantities: tuple[tuple[int, Quantity], ...]
    """Each with which of the tokens it is."""
    polarity: Polarity
    before: Said = NOTHING_SAID
    """What it need not repeat: the clauses before it in its sentence, or what begins the sentence before
    where it goes on with a pronoun."""
    tokens_before: tuple[str, ...] = ()
    order_before: tuple[str, ...] = ()
    carried_on: bool = False

    @property
    def inherited(self) -> float:
        return _CARRIED_ON if self.carried_on else _INHERITED

    @property
    def own_tokens(self) -> tuple[str, ...]:
        """With what a pronoun stands for."""
        return (*self.tokens_before, *self.tokens) if self.carried_on else self.tokens

    @property
    def is_passive(self) -> bool:
        return _PASSIVE.search(self.text) is not None

    @property
    def goes_on(self) -> bool:
        return _GOES_ON.match(self.text) is not None


def clauses_of(text: str, tokenizer: Tokenizer, previous: Sequence[Clause] = ()) -> list[Clause]:
    """`previous`: of the sentence before."""
    found: list[Clause] = []
    for part in _parts(text):
        clause = _clause(part, tokenizer)
        earlier = found or (list(previous[:1]) if clause.goes_on else [])
        if earlier:
            clause = clause._replace(
                before=NOTHING_SAID.with_(*(one.said for one in earlier)),
                tokens_before=tuple(token for one in earlier for token in one.tokens),
                order_before=tuple(key for one in earlier for key in one.order),
                carried_on=clause.goes_on,
            )
        found.append(clause)
    return found


def _parts(text: str) -> Iterator[str]:
    plain = in_digits(nfc(" ".join(text.split())))
    return (part for part in _CUT.split(plain) if part.strip())


def _clause(text: str, tokenizer: Tokenizer) -> Clause:
    words: list[ClaimWord] = []
    tokens: list[str] = []
    numbers: list[tuple[int, Quantity]] = []
    last = 0
    switched = " ".join({"on": "enable", "off": "disable"}[match[1].lower()] for match in _SWITCHED.finditer(text))

    def read(part: str) -> None:
        found = words_of(part, tokenizer)
        words.extend(found)
        tokens.extend(word.key for word in found if not is_light(word))

    for match, quantity in quantities(text):
        read(text[last : start_with_bound(match)])
        numbers.append((len(tokens), quantity))
        tokens.append(quantity.value)
        last = end_of(match)
    read(f"{text[last:]} {switched}")
    return Clause(
        text=text,
        words=tuple(distinct(word for word in words if not is_light(word))),
        tokens=tuple(tokens),
        order=tuple(word.key for word in words if not is_stop_word(word.text)),
        said=said_by(text, words, tokenizer),
        quantities=tuple(numbers),
        polarity=polarity_of(text),
    )


def joined(clauses: Sequence[Clause], tokenizer: Tokenizer) -> list[Clause]:
    """For a claim: a clause that says too little by itself belongs to the one before it, or the first to the one after it."""
    parts: list[str] = []
    waiting = ""
    for clause in clauses:
        says_little = len(clause.words) + len(clause.quantities) < 2 and not (clause.words and clause.polarity.denies)
        if says_little and (parts or clause is not clauses[-1]):
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
