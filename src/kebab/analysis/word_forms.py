"""Forms of English words that a stemmer does not bring together: took and take, e-mail and email, photos and
photography.

And one that it brings together though it should not: capitalization has nothing to do with capitals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

# Of each line the first word is the one that the others are forms of. Not here: what is also another common word
# (found, felt, lay).
_FORMS = """
arise arose arisen
become became
begin began begun beginning
bend bent
bite bit bitten
blow blew blown
borrow borrowed
break broke broken
bring brought
build built
buy bought
catch caught
choose chose chosen choice
come came
deal dealt
decide decision
die died dead death
dig dug
do did done
draw drew drawn
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
fight fought
flee fled
fly flew flown flight
forbid forbade forbidden
forget forgot forgotten
freeze froze frozen
get got gotten
give gave given
go went gone
grow grew grown growth
hang hung
have had
hear heard
hide hid hidden
high height
hold held
keep kept
know knew known
lead led
learn learnt
leave left
lend lent
lose lost loss
long length
make made
mean meant
meet met meeting
pay paid payment payments
prove proven proof
ride rode ridden
ring rang rung
rise rose risen
run ran
say said
see saw seen
seek sought
sell sold sale sales
send sent
shake shook shaken
shoot shot
show shown
shrink shrank shrunk
sing sang sung
sink sank sunk
sit sat
sleep slept
speak spoke spoken
spend spent
stand stood
steal stole stolen
stick stuck
strike struck
strong strength
sweep swept
swear swore sworn
swim swam swum
take took taken
teach taught
tear tore torn
tell told
think thought
throw threw thrown
understand understood
wake woke woken
wear wore worn
weigh weight weights heavy
win won
write wrote written
person people
child children
foot feet
man men
woman women
mouse mice
knife knives
life lives
"""
_SUFFIXES = ("ment", "graphi", "graph", "eri", "anc", "enc", "iti")
"""On stems: deployment, photography, photographs, delivery, disturbance, dependency, validity."""
_LEAST_ROOT = 5
_OF_WHOM = ("er", "or")
_IZED = re.compile(r"\b([a-z]{4,}i[sz])(?:e[ds]?|ing|ations?|ers?)\b", re.IGNORECASE)
_FOUNDED = re.compile(r"\bfound(?:ed|ers?|ing|s)\b", re.IGNORECASE)
"""Who founded something did not find it."""
_COMPOUND = re.compile(r"\b[a-z]+(?:-[a-z]+)+\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{3,}")
_SHORT_PART = 2


@cache
def _bases() -> dict[str, str]:
    return {form: base for base, *forms in map(str.split, _FORMS.strip().splitlines()) for form in forms}


def other_words(text: str) -> Iterator[str]:
    """What a text also has: the words that some of its words are forms of, and its compounds in one."""
    lower = text.lower()
    bases = _bases()
    yield from (bases[word] for word in bases.keys() & set(_WORD.findall(lower)))
    if "-" in lower:
        yield from (compound.replace("-", "") for compound in _COMPOUND.findall(lower))


def told_apart(text: str) -> str:
    """With other letters where the stemmer would confuse two words."""
    return _FOUNDED.sub("foundexed", _IZED.sub(r"\1ex", text))


def base_of(word: str) -> str | None:
    """take of took; in small letters."""
    return _bases().get(word)


def short_compounds(text: str) -> Iterator[str]:
    """e-mail, Wi-Fi: compounds that nobody would understand by their parts."""
    for compound in _COMPOUND.findall(text):
        if min(map(len, compound.split("-"))) <= _SHORT_PART:
            yield compound


@lru_cache(maxsize=1 << 10)
def related_stems(stem: str, *, who: bool = False) -> frozenset[str]:
    """Stems of words made of the same root; with `who`, of the one who does it as well."""
    roots = (
        {stem, stem[:-1] + "y"} if stem.endswith("i") else {stem}
    )  # the stemmer has deploi of deploy, and deploy of deployment
    longer = {root + suffix for root in roots if len(root) >= _LEAST_ROOT for suffix in _SUFFIXES}
    shorter = {stem.removesuffix(suffix) for suffix in _SUFFIXES if stem.endswith(suffix)}
    shorter = {root for root in shorter if len(root) >= _LEAST_ROOT}
    related = (
        {root for root in roots if len(root) >= _LEAST_ROOT}
        | longer
        | shorter
        | {root[:-1] + "i" for root in (stem, *shorter) if root.endswith("y")}
    )
    if who:
        related |= {stem.removesuffix("e") + suffix for suffix in _OF_WHOM}
        related |= {stem.removesuffix(suffix) + e for suffix in _OF_WHOM if stem.endswith(suffix) for e in ("", "e")}
    return frozenset(related)
