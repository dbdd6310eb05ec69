"""Finds what a question names and an answer must be about: codes, numbers, months, letters, names and things. An answer
about error F.28 does not answer a question about error F.75, however much else the two have in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from unicodedata import combining, normalize

from kebab.analysis.word_forms import base_of
from kebab.answering.designations import designations
from kebab.answering.kinds import CURRENCY, MONTH, WEEKDAY, Kind
from kebab.answering.korean_words import noun_phrases
from kebab.answering.measures import MONTHS, UNITS
from kebab.answering.named import Named
from kebab.answering.question_parts import Parts

_UNIT_FORMS = "|".join(sorted((form for form in UNITS if form.isascii() and form.isalpha()), key=len, reverse=True))
_CODE = re.compile(r"(?<![\w.-])(?=[\w.-]*\d)(?=[\w.-]*[A-Za-z])[A-Za-z\d]+(?:[._-][A-Za-z\d]+)*(?![\w-])")
"""Codes: F.75, E99, v1.3."""
_MEASURED = re.compile(r"\d+(?:[.,]\d+)*[A-Za-z]{1,4}")
"""A number with a unit or ending: 40GB, 3rd."""
_NUMBER = re.compile(r"(?<![\w.,:-])\d+(?:[.,:]\d+)*(?![\d]|[.,:]\d)")
_IS_NUMBERED = re.compile(
    r"\b(?!(?:of|for|to|than|about|least|most|after|within|every|with|the|are|do)\b)[A-Za-z]{2,}\s$"
)
"""A noun and its number: Debian 12, light 4."""
_LETTER = re.compile(
    r"(?<=[a-z]\s)(?:[B-HJ-Z]|A(?=\s*[?!.,;]|\s*$|\s(?:is|are|was|were|cost|costs|has|have|in|on|of|for)\b))(?=[\s?!,;]|$|\.(?!\w))"
)
_MONTHS = re.compile(rf"(?<![\w-]){MONTH}(?![\w-])|(?<!\d)(?:1[0-2]|[1-9])월", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w.`'’-])(?=[\w'’.+-]*[A-Z])[A-Za-z][\w+]*(?:[-.][A-Za-z\d]\w*)*")
_ASKS = re.compile(
    r"(?:^|[.!?:]\s+)\W*(?:who|what|when|where|which|why|how|whose|whom|is|are|was|were|do|does|did|can|could|may|must|should|will|would|has"
    r"|have|up|to|from|on|in|at|until|since|by|for|and|so|but|if|after|before|under|with|tell|show|give|name|list|explain|describe)$",
    re.IGNORECASE,
)
_NO_NAME = re.compile(rf"(?:i|i'm|i've|{MONTH}|{WEEKDAY})$", re.IGNORECASE)
_IN_SMALL_LETTERS = re.compile(r"\b(?!the\b|and\b|for\b|from\b|with\b|into\b)[a-z]{2,}\b")
_QUANTITY = re.compile(rf"\s?(?:%|percent|{CURRENCY}\b|[가-힣]|[a-z]+s\b)|\s?(?:{_UNIT_FORMS})\b")
"""What follows a number that counts something. Such a number may be within limits."""
_SPELT_OUT = "one two three four five six seven eight nine ten".split()
_FOR_SO_MANY = re.compile(rf"\bfor\s({'|'.join(_SPELT_OUT)})\b(?!\s[a-z]+s\b)", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:st|nd|rd|th|['’]?s)\b|-[a-z]")
_IS_SO = re.compile(
    r"^\W*(?:is|are|was|were)\b|\b(?:when|where|why|how)\s(?:\w+\s)?(?:is|are|was|were)\b", re.IGNORECASE
)
_TOKEN = re.compile(r"[\w'’.+/-]*\w|[?!,;:]")
_DETERMINERS = frozenset("a an the my our your his her their its this these any each every per some".split())
_PREPOSITIONS = frozenset("of for from in on at with about inside into by using use against without during".split())
_AUXILIARIES = frozenset("do does did".split())
_AUXILIARIES_BEFORE = re.compile(r"\b(?:do|does|did|will|would|can|could|may|must|should)\b", re.IGNORECASE)
_ENDS = _PREPOSITIONS | frozenset(
    """to is are was were be been do does did can could may might must should will would has have had and or but if when where who which
    what why how that than as not only while after before until since over under between through out off up down i we you one he she it they
    there himself herself itself themselves""".split()
)
_OF_VERBS = ("ly", "ing", "ed")
_STATES = frozenset(
    "running existing following missing failing remaining pending working upcoming matching ongoing outgoing incoming".split()
)
_LONGEST_PHRASE = 4
# What is asked about something, and may be said in other words: the longest is the maximum, and a limit.
_TRAITS = frozenset(
    """one two three four five six seven eight nine ten eleven twelve default maximum minimum max min largest smallest longest shortest
    highest lowest biggest best worst first second third fourth fifth sixth last next previous earlier later new old current latest
    newest total whole average exact main different same other another certain specific large small big long short high low number
    amount size value limit count version name type kind way time times day days date hour hours minute minutes seconds week weeks month
    months year years list example message problem reason difference purpose meaning step steps place part parts end beginning start
    moment case people person somebody someone anything something everything thing things half most least possible allowed required own
    right correct question answer price cost fee share percentage level rate speed temperature colour color range area region role order
    ability situation condition detail details information impact effect field option setting command age address
    once present work use""".split()
)


def named_in(question: str, kind: Kind | None, parts: Parts) -> tuple[Named, ...]:
    """The named things, each once, in the order of their kinds; `question` is in NFC."""
    found = {one.text.lower(): one for find in _FINDERS for one in find(question)}
    for word in sorted(parts.counted if kind is Kind.AMOUNT else ()):
        if word not in _TRAITS:
            found.setdefault(word, Named(word, words=(word,)))
    if kind is Kind.STEPS and parts.deed is not None and parts.deed.says_something:
        found.setdefault(parts.deed.verb, Named(parts.deed.verb, words=(parts.deed.verb,)))
    return tuple(found.values())


def _phrases(question: str) -> Iterator[Named]:
    """The words after an article or a preposition, and those before "have"."""
    tokens = _TOKEN.findall(question)
    lower = [token.lower() for token in tokens]
    is_so = _IS_SO.search(question) is not None
    place = 0
    while place < len(tokens):
        begins = lower[place]
        place += 1
        if begins not in _DETERMINERS | _PREPOSITIONS | _AUXILIARIES:
            continue
        verbs = _AUXILIARIES | ({"is", "are", "was", "were"} if is_so else frozenset())
        after_verb = begins in _AUXILIARIES or (place > 1 and lower[place - 2] in verbs)
        phrase = _phrase(lower, place)
        if begins in _AUXILIARIES:  # what comes with an article comes again
            has = lower[place + len(phrase) : place + len(phrase) + 1] == ["have"]
            phrase = phrase[:1] if len(phrase) == (1 if has else 2) and phrase[0] not in _DETERMINERS else ()
        elif after_verb and len(phrase) > 1 and lower[place + len(phrase) : place + len(phrase) + 1] != ["have"]:
            names = [number for number in range(len(phrase) - 1) if tokens[place + number] != phrase[number]]
            phrase = (
                phrase[: names[-1] + 1] if names else phrase[:-1]
            )  # "does the router reboot", "does the NAS check disks"
        # Of "the billing database" too; but any of them may be running.
        begins_it = (
            phrase[:1]
            if len(phrase) > 1 and begins in _DETERMINERS and phrase[0].endswith("ing") and phrase[0] not in _STATES
            else ()
        )
        yield from (
            Named(_bare(word), words=_pieces(_bare(word)))
            for word in phrase
            if word in begins_it or _says_something(word)
        )


def _phrase(tokens: Sequence[str], start: int) -> Sequence[str]:
    end = start
    while end < len(tokens) and end - start < _LONGEST_PHRASE and tokens[end] not in _ENDS and tokens[end][0].isalnum():
        end += 1
    return tokens[start:end]


def _says_something(word: str) -> bool:
    bare = _bare(word)
    is_trait = bare in _TRAITS or bare.removesuffix("s") in _TRAITS
    is_verb = bare.endswith(_OF_VERBS) or base_of(bare) is not None
    return len(bare) > 1 and bare.isascii() and not is_verb and not is_trait and not bare[0].isdigit()


def _bare(word: str) -> str:
    return re.sub(r"['’]s?$", "", word.lower())


def _pieces(word: str) -> tuple[str, ...]:
    """The parts of a name as they are looked for, and the whole name."""
    word = "".join(letter for letter in normalize("NFD", word) if not combining(letter))
    return tuple(dict.fromkeys((word, *(part for part in re.split(r"[-./_+]", word) if len(part) > 1))))


def _names(question: str) -> Iterator[Named]:
    if not _IN_SMALL_LETTERS.search(question):
        return  # every word has a capital
    run: list[re.Match[str]] = []
    for match in _NAME.finditer(question):
        if not _is_name(question, match):
            continue
        if run and question[run[-1].end() : match.start()] != " ":
            yield _name(question, run)
            run = []
        run.append(match)
    if run:
        yield _name(question, run)


def _is_name(question: str, match: re.Match[str]) -> bool:
    before, name = question[: match.start()].rstrip(), match[0]
    begins = not before or before[-1] in ".!?:"
    return not ((begins and name[1:].islower()) or len(name) == 1 or _NO_NAME.match(name) or _ASKS.match(name))


def _name(question: str, run: Sequence[re.Match[str]]) -> Named:
    start, end = run[0].start(), run[-1].end()
    words = tuple(piece for match in run for piece in _pieces(match[0].lower()))
    return Named(question[start:end], kin=_kin_of_name(question[:start], question[end:]), words=words, is_name=True)


def _kin_of_name(before: str, after: str) -> re.Pattern[str] | None:
    """The pattern of another thing with the same kind of name: for the Oak network or project Oak, network Elm or the
    Elm network. What follows "did" and a name is what that person did.
    """
    follows = re.match(r"\s([a-z]{3,})\b(\s[a-z]{3,})?", after)
    if (
        follows
        and _AUXILIARIES_BEFORE.search(before)
        and (not follows[2] or follows[2].strip() in _ENDS | _DETERMINERS)
    ):
        follows = None
    noun = follows or re.search(r"\b([a-z]{3,})\s$", before)
    if noun is None or noun[1] in _ENDS or noun[1] in _DETERMINERS:
        return None
    return re.compile(rf"\b(?i:{noun[1]})s?\b(?:\s|:\s)[A-Z]|(?<![.!?:]\s)\b[A-Z]\w+\s{noun[1]}\b")


def _codes(question: str) -> Iterator[Named]:
    for match in _CODE.finditer(question):
        if not _MEASURED.fullmatch(match[0]):
            runs = re.findall(r"[A-Za-z]+|\d+", re.sub(r"^[vV](?=\d)", "", match[0]))
            letters = "".join(re.findall(r"^[A-Za-z]+", match[0]))
            body = r"[\s._-]?".join(map(re.escape, runs))
            rivals = rf"(?<![A-Za-z\d]){letters}[\s._-]?\d" if letters else r"\d"
            yield Named(
                match[0], _any_case(rf"(?<![A-Za-z\d.])v?{body}(?![A-Za-z\d]|\.\d)"), _any_case(rivals), is_name=True
            )


def spelt_with_marks(question: str) -> Iterator[str]:
    """Codes with a separator between letters and digits, which are words by themselves: F.75."""
    return (code[0] for code in _CODE.finditer(question) if re.search(r"[A-Za-z][._-]\d", code[0]))


def _numbers(question: str) -> Iterator[Named]:
    for match in _NUMBER.finditer(question):
        text = match[0]
        after = question[match.end() :]
        counts = _ORDINAL.match(after) or (
            _QUANTITY.match(after) and not _IS_NUMBERED.search(question[: match.start()])
        )
        if counts or after.startswith("월"):
            continue
        bare = text.replace(",", "")
        pattern = r",?".join(bare) if bare.isdigit() else re.escape(text)
        is_year = len(bare) == 4 and bare[:2] in ("19", "20")
        rivals = _any_case(r"(?<!\d)(?:19|20)\d\d(?!\d)") if is_year else None
        noun = re.search(r"\b([A-Za-z]{3,})\s$", question[: match.start()])
        kin = rivals or (_any_case(rf"\b{noun[1]}s?\s(?:v|no\.?\s)?\d") if noun else None)
        ends = rf"{pattern}(?!\d|[.,:]\d)"
        elsewhere = _any_case(rf"\b{noun[1]}s?\s(?:v|no\.?\s)?{ends}") if noun and not is_year else None
        yield Named(
            text,
            _any_case(rf"(?<!\d)(?<!\d[.,:])v?{ends}"),
            rivals,
            kin,
            elsewhere,
            only_among_rivals=is_year,
            is_name=True,
        )


def _spelt_out(question: str) -> Iterator[Named]:
    """Numbers in a question that are spelt out: "a room for four" is not answered by one for two."""
    for match in _FOR_SO_MANY.finditer(question):
        digits = _SPELT_OUT.index(match[1].lower()) + 1
        yield Named(
            match[1],
            _any_case(rf"\b(?:{match[1]}|{digits})\b"),
            _any_case(rf"\bfor\s(?:{'|'.join(_SPELT_OUT)}|\d)"),
            is_name=True,
        )


def _letters(question: str) -> Iterator[Named]:
    for match in _LETTER.finditer(question):
        yield Named(
            match[0],
            re.compile(rf"(?<![A-Za-z'’]){match[0]}(?![A-Za-z'’])"),
            re.compile(r"(?<![A-Za-z'’])[A-HJ-Z](?![A-Za-z'’])"),
            is_name=True,
        )


def _months(question: str) -> Iterator[Named]:
    for match in _MONTHS.finditer(question):
        word = match[0]
        if word.lower() in ("may", "march") and not (word[0].isupper() and question[: match.start()].strip()):
            continue
        number = int(word[:-1]) if word.endswith("월") else _number_of(word)
        name = MONTHS[number - 1]
        yield Named(
            word,
            _any_case(
                rf"\b{name[:3]}(?:{name[3:]})?\b|(?<!\d){number}월|\b\d{{4}}-{number:02}\b|(?<!\d){number}/\d|\d\.\s?0?{number}\.(?!\d\d\b)"
            ),
            others := _any_case(rf"\b(?:{MONTH})\b|\d월|\b\d{{4}}-\d\d"),
            others,
            is_name=True,
        )


def _number_of(month: str) -> int:
    return next(number for number, name in enumerate(MONTHS, start=1) if name.startswith(month.lower()[:3]))


def _korean(question: str) -> Iterator[Named]:
    return (Named(word, words=(word,)) for word in noun_phrases(question))


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FINDERS: tuple[Callable[[str], Iterator[Named]], ...] = (
    _phrases,
    _korean,
    _names,
    _numbers,
    _spelt_out,
    _codes,
    _letters,
    _months,
    designations,
)
"""The functions that find named things. If two find the same thing, the later one counts."""
