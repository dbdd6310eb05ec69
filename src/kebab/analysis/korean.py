"""Korean: particles taken off a typed word, and morphemes for those who install the extra `korean`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

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
