"""Korean: particles taken off a typed word, and morphemes for those who install the extra `korean`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from unicodedata import normalize

from kebab.analysis import cjk
from kebab.core.errors import MissingExtra
from kebab.core.text import nfc

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

# Longest first, so that 에서는 goes as a whole. Only what follows a noun: verb endings are left to the pairs of `any`.
_PARTICLES = sorted(
    """은 는 이 가 을 를 의 에 와 과 도 만 로 나 랑 야 께 에서 에게 한테 으로 까지 부터 보다 처럼 마다 조차 마저 이나 이랑 이란 란
    밖에 에는 에도 에서는 에서도 에서의 에게서 으로는 으로도 으로의 로는 로도 로의 까지는 부터는 와의 과의 와는 과는 만을 만이 들은 들이
    들을 들의 들에 들에게 이라는 라는 이라고 라고 으로서 로서 으로써 로써 이며 이고 인가 인가요 입니까 이다 인지""".split(),
    key=len,
    reverse=True,
)

# Morphemes that carry meaning: nouns, roots, verb and adjective stems, adverbs, foreign words, numbers.
_CONTENT_TAGS = ("N", "V", "XR", "MAG", "SL", "SH", "SN", "W")
_EMPTY_STEMS = frozenset({"하", "되", "있", "없", "이", "것", "수", "등"})


def is_particle(word: str) -> bool:
    return word in _PARTICLES


def strip_particle(word: str) -> str:
    """The word without one known particle at its end; two syllables at least must remain."""
    for particle in _PARTICLES:
        if word.endswith(particle) and len(word) - len(particle) >= 2:
            return word[: -len(particle)]
    return word


# 설정하나요, 설정하려면 and 설정되는 are about 설정.
VERB_OF_NOUN = re.compile(r"([가-힣]{2,}?)(?:하|되|할|한|함|합|했|해|될|된|됨|됩|됐|돼|시키|시킬|시켜)[가-힣]{0,5}")
# Endings of verbs, in the letters that syllables are made of: 익힌다 and 익힙니다 are 익히. Several follow each other. Those of
# the second kind end nouns too, such as 대기, and must leave two syllables.
_SURE_ENDINGS = "습니다 습니까 는다 으면 면서 면 지만 도록 려고 려면 거나 는데 으며 며 고 아야 어야 여야 야 아서 어서 서 었 았 였 던 "
_OTHER_ENDINGS = "을 는 은 게 기 음 요 니 지 "
_P, _N, _SS = "\u11b8", "\u11ab", "\u11bb"  # what stands below a syllable: ㅂ니다, ㄴ다, ㅆ다


def _endings(forms: str) -> re.Pattern[str]:
    spelt = normalize("NFD", forms).split()
    verbs = normalize("NFD", "니다"), normalize("NFD", "다")
    return re.compile(f"(?:{'|'.join(spelt)}|{_P}{verbs[0]}|[{_N}{_SS}]?{verbs[1]})+$")


_ENDINGS = (_endings(_SURE_ENDINGS + _OTHER_ENDINGS), _endings(_SURE_ENDINGS))
_CONTRACTED = {"\u116f": "\u116e", "\u1167": "\u1175", "\u116a": "\u1169", "\u116b": "\u116c"}
"""바꿔 is 바꾸어, 걸려 is 걸리어, 봐 is 보아, 돼 is 되어."""
_FINAL_CONSONANT = re.compile("[\u11a8-\u11ff]$")


@lru_cache(maxsize=4096)
def root(word: str) -> str:
    """What forms of a word have in common: nouns without their particle, verbs without their endings. To be compared,
    not to be shown.
    """
    verb = VERB_OF_NOUN.fullmatch(word)
    noun = strip_particle(word)
    if verb or len(word) - len(noun) >= 2:  # 도서관에서 does not end as 걸려서 does
        return _shortened(normalize("NFD", verb[1] if verb else noun))
    letters = normalize("NFD", word)
    cuts = ((ending, ending.sub("", letters)) for ending in _ENDINGS)
    bare = next((cut for ending, cut in cuts if cut != letters and _is_enough(cut, ending)), normalize("NFD", noun))
    return _shortened(bare)


@lru_cache(maxsize=4096)
def dictionary_form(word: str) -> str:
    """As a dictionary has it, as far as the letters tell: 제출해야 is 제출하다, 미뤘다 is 미루다; nouns without their particle."""
    verb = VERB_OF_NOUN.fullmatch(word)
    if verb:
        return f"{verb[1]}하다"
    noun = strip_particle(word)
    letters = normalize("NFD", word)
    bare = _ENDINGS[1].sub("", letters)
    if bare == letters or len(word) - len(noun) >= 2 or not _is_enough(bare, _ENDINGS[1]):
        return noun
    stem = bare[:-1] + _CONTRACTED.get(bare[-1], bare[-1])
    return normalize("NFC", stem) + "다"


def _shortened(letters: str) -> str:
    bare = _FINAL_CONSONANT.sub("", letters)  # 끝난 and 끝나면 differ in it
    return bare[:-1] + _CONTRACTED.get(bare[-1:], bare[-1:])


def _is_enough(letters: str, ending: re.Pattern[str]) -> bool:
    return len(normalize("NFC", letters)) >= (2 if ending is _ENDINGS[0] else 1)


@cache
def _kiwi() -> Kiwi:
    try:
        from kiwipiepy import Kiwi
    except ImportError as error:
        raise MissingExtra(
            'analysis.korean = "morphemes" needs the package kiwipiepy.',
            hint="Install it with: pip install 'kebab[korean]', or set analysis.korean = \"bigrams\" and run: kb index --rebuild-fts",
        ) from error
    return Kiwi(num_workers=1)


def morphemes(text: str) -> Iterator[str]:
    """Content morphemes of Korean text in order; other CJK scripts still go as pairs of characters."""
    for token in _kiwi().tokenize(nfc(text)):
        if not token.tag.startswith(_CONTENT_TAGS) or token.form in _EMPTY_STEMS:
            continue
        for run in cjk.runs(token.form):
            if run.script in ("kana", "han"):
                yield from cjk.pairs(run.text)
            else:
                yield run.text
