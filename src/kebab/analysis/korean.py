"""Korean words: removes particles and verb endings, and splits into morphemes if the extra `korean` is installed.

Patterns are compiled on first use, because most English queries need none of them.
"""

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

# Longest first, so that 에서는 is removed as a whole. Only particles of nouns: pairs of characters match verb endings.
_PARTICLES = sorted(
    """은 는 이 가 을 를 의 에 와 과 도 만 로 나 랑 야 께 에서 에게 한테 으로 까지 부터 보다 처럼 마다 조차 마저 이나
    이랑 이란 란 밖에 에는 에도 에서는 에서도 에서의 에게서 으로는 으로도 으로의 로는 로도 로의 까지는 부터는 와의 과의
    와는 과는 만을 만이 들은 들이 들을 들의 들에 들에게 이라는 라는 이라고 라고 으로서 로서 으로써 로써 이며 이고 인가
    인가요 입니까 이다 인지""".split(),
    key=len,
    reverse=True,
)

# Morphemes that carry meaning: nouns, roots, verb and adjective stems, adverbs, foreign words, numbers.
_CONTENT_TAGS = ("N", "V", "XR", "MAG", "SL", "SH", "SN", "W")
_EMPTY_STEMS = frozenset({"하", "되", "있", "없", "이", "것", "수", "등"})

# Verbs made from nouns: 설정하나요, 설정하려면 and 설정되는 all contain the noun 설정.
_VERB_OF_NOUN = r"([가-힣]{2,}?)(?:하|되|할|한|함|합|했|해|될|된|됨|됩|됐|돼|시키|시킬|시켜)[가-힣]{0,5}"
# Endings of verbs: 익힌다 and 익힙니다 have the stem 익히. Several endings may follow each other. _OTHER_ENDINGS also end
# nouns such as 대기, so they are removed only if two syllables remain.
_SURE_ENDINGS = (
    "습니다 습니까 는다 으면 면서 면 지만 도록 려고 려면 거나 는데 으며 며 고 아야 어야 여야 야 아서 어서 서 "
    "었 았 였 던 "
)
_OTHER_ENDINGS = "을 는 은 게 기 음 요 니 지 "
_P, _N, _SS = "\u11b8", "\u11ab", "\u11bb"  # final consonants: ㅂ니다, ㄴ다, ㅆ다
_CONTRACTED = {"\u116f": "\u116e", "\u1167": "\u1175", "\u116a": "\u1169", "\u116b": "\u116c"}
"""Contracted vowels and the stem's vowel: 바꿔 is 바꾸어, 걸려 is 걸리어, 봐 is 보아, 돼 is 되어."""
_FINAL_CONSONANT = "[\u11a8-\u11ff]$"

_QUESTION_ENDING = (
    r"(?:으?려면|으?려고|[는은던]가요|[는은]지요?|습니까|니까|을?까요|나요|[어아여]야|[어아여]도|지요|죠|[어아여]요"
    r"|는데요?|[어아]서)$"
)
"""Endings of verbs in questions; only those that no noun has, unlike the ends of 휴가 and 창고."""
_TENSE = ("었", "았", "였", "겠")
_FIRST, _LAST = ord("가"), ord("힣")
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_PAST = 20
"""The number of the final consonant ㅆ."""
_R_BELOW = 8
"""The number of the final consonant ㄹ."""
_OTHER_VOWELS = dict(zip("ㅝㅘㅕㅙㅓㅏㅜㅗㅣㅚㅡㅐ", "ㅜ ㅗ ㅣ ㅚ ㅡ ㅡ ㅝ ㅘ ㅕ ㅙ ㅓㅏ ㅏ".split(), strict=True))
"""The vowels that a stem's last vowel changes to before other endings."""
_AFTER_STEM = "다고며면서는은을었았였지게기도요니러려자야던아어여"
_NO_STEM = frozenset("이 하 되 있 없 계시 시 알 주 싶".split())


def is_particle(word: str) -> bool:
    return word in _PARTICLES


def strip_particle(word: str) -> str:
    """The word without one known particle at its end; at least two syllables remain."""
    for particle in _PARTICLES:
        if word.endswith(particle) and len(word) - len(particle) >= 2:
            return word[: -len(particle)]
    return word


@cache
def _endings() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of all verb endings, and of those that only verbs have, in decomposed letters (NFD)."""
    polite, plain = normalize("NFD", "니다"), normalize("NFD", "다")
    spelt = ["|".join(normalize("NFD", forms).split()) for forms in (_SURE_ENDINGS + _OTHER_ENDINGS, _SURE_ENDINGS)]
    all_, sure = (re.compile(f"(?:{forms}|{_P}{polite}|[{_N}{_SS}]?{plain})+$") for forms in spelt)
    return all_, sure


@lru_cache(maxsize=4096)
def root(word: str) -> str:
    """The part shared by all forms of a word: a noun without particle, a verb without endings. Not for display."""
    verb = re.fullmatch(_VERB_OF_NOUN, word)
    noun = strip_particle(word)
    if verb or len(word) - len(noun) >= 2:  # 에서 in 도서관에서 is a particle, not a verb ending as in 걸려서
        return _shortened(normalize("NFD", verb[1] if verb else noun))
    letters = normalize("NFD", word)
    for ending, least in zip(_endings(), (2, 1), strict=True):
        bare = ending.sub("", letters)
        if bare != letters and len(normalize("NFC", bare)) >= least:
            return _shortened(bare)
    return _shortened(normalize("NFD", noun))


@lru_cache(maxsize=4096)
def dictionary_form(word: str) -> str:
    """The probable dictionary form: 제출하다 for 제출해야, 미루다 for 미뤘다; of a noun, the noun without particle."""
    verb = re.fullmatch(_VERB_OF_NOUN, word)
    if verb:
        return f"{verb[1]}하다"
    noun = strip_particle(word)
    letters = normalize("NFD", word)
    bare = _endings()[1].sub("", letters)
    if bare in ("", letters) or len(word) - len(noun) >= 2:
        return noun
    stem = bare[:-1] + _CONTRACTED.get(bare[-1], bare[-1])
    return normalize("NFC", stem) + "다"


def _shortened(letters: str) -> str:
    bare = re.sub(_FINAL_CONSONANT, "", letters)  # 끝난 and 끝나면 differ only in the final consonant
    return bare[:-1] + _CONTRACTED.get(bare[-1:], bare[-1:])


@lru_cache(maxsize=1 << 10)
def verb_stem(word: str) -> str | None:
    """The stem of a verb with a question ending: 냈나요 has the same stem as 냈다 and 낸. "" for a verb without meaning
    of its own, None for a word without such an ending.
    """
    match = re.search(_QUESTION_ENDING, word)
    if match is None or match.start() == 0:
        return None
    stem = word[: match.start()]
    while len(stem) > 1 and stem.endswith(_TENSE):
        stem = stem[:-1]
    onset, vowel, below = _parts(stem[-1])
    if below == _PAST:
        stem = stem[:-1] + _syllable(onset, vowel, 0)
    if len(stem) > 1 and stem[-1] in "지져":  # 미뤄지, 만들어지
        stem = stem[:-1]
        stem = stem[:-1] if len(stem) > 1 and stem[-1] in "어아" else stem
    return "" if stem in _NO_STEM else stem


@lru_cache(maxsize=1 << 10)
def forms_of(stem: str) -> re.Pattern[str]:
    """A pattern that matches words that begin with any form of the verb with this stem."""
    before, last = stem[:-1], stem[-1]
    onset, vowel, below = _parts(last)
    written = _VOWELS[vowel]
    vowels = [_VOWELS.index(one) for one in written + _OTHER_VOWELS.get(written, "")] if not below else [vowel]
    syllables = "".join(last if below else f"{_syllable(onset, one, 0)}-{_syllable(onset, one, 27)}" for one in vowels)
    irregular = ""  # in 올라, a form of 오르다, the previous syllable gets a final ㄹ
    if before and last in "라르":
        onset, vowel, _ = _parts(before[-1])
        below, forms = (0, "[르-릏]") if last == "라" else (_R_BELOW, "[라-랗러-렇]")
        irregular = f"|{re.escape(before[:-1])}{_syllable(onset, vowel, below)}{forms}"
    short = f"(?=[{_AFTER_STEM}]|[^가-힣]|$)" if not before else ""
    return re.compile(rf"(?<![가-힣])(?:{re.escape(before)}[{syllables}]{short}{irregular})")


def _parts(syllable: str) -> tuple[int, int, int]:
    """The numbers of the first consonant, the vowel and the final consonant of a syllable."""
    code = ord(syllable) - _FIRST
    if not 0 <= code <= _LAST - _FIRST:
        return 0, 0, 0
    return code // 588, code % 588 // 28, code % 28


def _syllable(onset: int, vowel: int, below: int) -> str:
    return chr(_FIRST + onset * 588 + vowel * 28 + below)


@cache
def _kiwi() -> Kiwi:
    try:
        from kiwipiepy import Kiwi
    except ImportError as error:
        raise MissingExtra(
            'analysis.korean = "morphemes" needs the package kiwipiepy.',
            hint="Install it with: pip install 'kebab[korean]', or set analysis.korean = \"bigrams\" and run: "
            "kb index --rebuild-fts",
        ) from error
    return Kiwi(num_workers=1)


def morphemes(text: str) -> Iterator[str]:
    """The morphemes of a Korean text that carry meaning, in order; of other CJK scripts, pairs of characters."""
    for token in _kiwi().tokenize(nfc(text)):
        if not token.tag.startswith(_CONTENT_TAGS) or token.form in _EMPTY_STEMS:
            continue
        for run in cjk.runs(token.form):
            if run.script in ("kana", "han"):
                yield from cjk.pairs(run.text)
            else:
                yield run.text
