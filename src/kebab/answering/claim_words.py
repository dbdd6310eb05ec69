"""Finds the words of a claim that a supporting passage must have, and looks for them in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kebab.analysis import cjk, korean
from kebab.analysis.language import is_stop_word
from kebab.analysis.terms import inner_words
from kebab.answering.labels import LABEL, is_label, key_of
from kebab.answering.word_senses import Senses, korean_like
from kebab.core.ports import Tokenizer

_WORD = re.compile(r"[^\W_]+")
# What statements are made with, and a paraphrase may add: being, having, needing, measures, and words about the text
# itself.
_LIGHT = frozenset(
    """able about above according achieve actually additionally after all allow also although always amount any approximately
    around available barely because become before being below besides between both call cannot capacity case certain command
    consist     contain currently describe do document documentation does done down duration during each either ensure even every exactly
    example except exist far fewer find follow following further furthermore gave general generally get getting give given go goes
    got guide handbook happen hardly have having here however indicate issue instead involve just kind know known leaflet least length less
    let lie located long made make manual many matter may mean measure mention might more moreover most much must namely need never no none
    normally not note now number occur once one only order otherwise ought out over page passage per perform permit person policy
    possible provide quantity quite rather refer regarding require respectively roughly said say see seen set several shall should
    same run since some source specify state step still such take taken text therefore thing through thus time together total toward
    typically under unless up use user usually value via want warn way worth well whether while within without work yet
    가능 개수 꼭 내 내에서 반드시 최대 최소 실행 후 후에 뒤 뒤에 같다 같습니다 것 것이다
    것입니다 경우 그 그것 그러나 그러므로 그런 그렇게 그리고 기간 나와 내용 다음 다음과 대략 대상 더 데
    동안 되었다 된다 됩니다 등 따라 따르면 때문 때에 또한 라고 만 만약 많이 매우 명령 명령어 모두 모든 못 못한다 못합니다
    무엇 문서 및 방법 방식 사람 사용 사항 설명 수 쓰여 아니다 아닙니다 아래 아무 안 안내 안내문 않고 않는다 않다 않습니다 않은 약
    양 언급 없고 없다 없습니다 없으며 여기 예를 위치 위해 의미 이 이것 이다 이며 이용 이후에 있고 있다 있습니다 있어야 있으며
    자료 저 적혀 정도 정보 제공 주의 중 즉 총 출처 통해 특히 필요 하나 하는 하지 하지만 한다 합니다 항목 해당 해야 했다""".split()
)
_BEFORE_THINGS = frozenset(
    "a an the this that these those its their his her our your every each no and or of for in on at from by with per".split()
)
_AFTER_THINGS = frozenset(
    "can could may might must should will would shall is are was were has have do does did".split()
)
_BEFORE_ACTIONS = frozenset(
    """to can cannot could may might must should will would shall not never be been being is are was were has have had get gets got you we
    they it he she who please""".split()
)
_PREPOSITIONS = frozenset("of for in on at from by with per to up out off and or within until via as".split())
_AFTER_ACTIONS = _PREPOSITIONS | frozenset(
    "a an the this that these those its their his her our your every each no all any".split()
)
_ADDS = r"\b(?:by|with|without|from|because of|due to|in|at|near|via|through)\s+(?:(?:the|an?|its|their|your|our)\s+)?(?:\w+\s+)?"
_DERIVED = re.compile(r"(?:ur|ure|er|or|ment|i|y|al|anc|enc|ion|ation|abl|ibl|ness|ful|iv|iti|li|ing|eri|ery)")
_NEGATED = re.compile(r"(?<=[가-힣])지(?=[은도를]?\s(?:않|못|말|마[라세십시]))")
"""Finds the verb before a negation: 넣지 않는다 is about 넣다."""
_NOTHING_LEARNED: frozenset[str] = frozenset()
_LONG_ENOUGH = 4
"""The least number of letters of a stem from which another stem may be derived: expir, expiri."""


class ClaimWord(NamedTuple):
    text: str
    key: str
    """A key that is the same for all forms of the word."""
    script: str
    """hangul, kana, han, other or label"""
    form: str = ""
    """The dictionary form of a Korean word; otherwise empty."""


class Said(NamedTuple):
    """What a text says, prepared for looking up words."""

    stems: frozenset[str]
    roots: frozenset[str]
    """The dictionary forms of its Korean words."""
    text: str
    """The text itself, for words of scripts that have no stems."""

    def with_(self, *others: Said) -> Said:
        every = (self, *others)
        return Said(
            frozenset().union(*(one.stems for one in every)),
            frozenset().union(*(one.roots for one in every)),
            "\n".join(one.text for one in every if one.text),
        )

    def says(self, word: ClaimWord, senses: Senses, *, or_opposite: bool = False) -> bool:
        """Whether the text has this word in any form, or a word of the same sense; with `or_opposite`, also one of the
        opposite sense.
        """
        if word.script == LABEL:
            return word.key in self.stems
        if word.script == "other":
            return (
                word.key in self.stems
                or senses.like(word.key, self.stems, or_opposite=or_opposite)
                or _is_derived(word.key, self.stems)
            )
        if word.script == "hangul":
            if (len(word.text) > 1 and word.text in self.text) or word.key in self.roots:
                return True
            if not senses.learned.get(word.key, _NOTHING_LEARNED).isdisjoint(self.roots):
                return True
            return _begins(word.key, self.roots) or korean_like(word.text, self.text, or_opposite=or_opposite)
        return word.text in self.text


NOTHING_SAID = Said(frozenset(), frozenset(), "")


def words_of(text: str, tokenizer: Tokenizer) -> list[ClaimWord]:
    """Every word of a text in order, also stop words. The text is in NFC."""
    parts: list[ClaimWord] = []
    plain = _NEGATED.sub("다", text)
    for match in _WORD.finditer(plain):
        word = match[0]
        if is_label(plain, match.start()):
            parts.append(ClaimWord(word[0], key_of(word[0]), LABEL))
            word = word[1:]
        for run in cjk.runs(word) if not word.isascii() and cjk.has_cjk(word) else ():
            if run.script == "hangul" and run.text != word and korean.is_particle(run.text):
                continue  # of DB를
            if run.script == "hangul":
                parts.append(
                    ClaimWord(
                        korean.strip_particle(run.text),
                        korean.root(run.text),
                        "hangul",
                        korean.dictionary_form(run.text),
                    )
                )
            elif run.script == "other":
                parts.append(ClaimWord(run.text.lower(), "", "other"))
            else:
                parts.extend(ClaimWord(pair, pair, run.script) for pair in cjk.pairs(run.text))
        if word and (word.isascii() or not cjk.has_cjk(word)):
            parts.append(ClaimWord(word.lower(), "", "other"))
    return _with_stems(parts, tokenizer)


def _with_stems(words: list[ClaimWord], tokenizer: Tokenizer) -> list[ClaimWord]:
    plain = [word.text for word in words if word.script == "other"]
    stems = tokenizer.stems("\n".join(plain)) if plain else []
    if len(stems) != len(plain):  # a letter that is no letter to the tokenizer
        stems = ["".join(tokenizer.stems(word)) or word for word in plain]
    following = iter(stems)
    return [word if word.key else word._replace(key=next(following)) for word in words]


def is_light(word: ClaimWord) -> bool:
    """Whether a word says nothing by itself."""
    if word.script == "other":
        return (
            len(word.text) < 2
            or word.text.isdigit()
            or is_stop_word(word.text)
            or not _LIGHT.isdisjoint(_simple_forms(word.text))
        )
    if word.script == "hangul":
        return (
            word.text in _LIGHT
            or is_stop_word(word.text)
            or word.key in _LIGHT_ROOTS
            or (word.form.endswith("하다") and word.form.removesuffix("하다") in _LIGHT)
        )
    return False


def is_thing(word: ClaimWord, text: str) -> bool:
    """Whether a word is used as a noun, as far as its neighbours show: the tape, and interns can, 창고에."""
    found = re.search(rf"(?:(\w+)\W+)?\b{re.escape(word.text)}(\w*)(?:\W+(\w+))?", text, re.IGNORECASE)
    if found is None:
        return False
    before, ending, after = ((part or "").lower() for part in found.groups())
    if word.script == "hangul":
        return korean.is_particle(ending)
    if word.script == LABEL:
        return True
    return before in _BEFORE_THINGS or after in _AFTER_THINGS


def is_action(word: ClaimWord, text: str) -> bool:
    """Whether a word is used as a verb, as far as its form and its neighbours show: must submit, Ada owns the, 제출해야."""
    if word.script != "other":
        return word.form.endswith("다")
    found = re.search(
        rf"(?:([\w'’]+)\s+)?(?:(\w+ly)\s+)?\b({re.escape(word.text)})\b(?:\s+(\w+))?", text, re.IGNORECASE
    )
    if found is None:
        return False
    before, after = (found[1] or "").lower(), (found[4] or "").lower()
    if before in _BEFORE_ACTIONS or before.endswith(("n't", "n’t")):
        return True
    ends_so = word.text.endswith(("s", "ed")) and not word.text.endswith("ss")
    if before in _BEFORE_THINGS:
        return word.text.endswith("ed") or (before in _PREPOSITIONS and word.text.endswith("ing"))
    if not before:
        return after in _AFTER_ACTIONS
    return ends_so and (
        after in _BEFORE_THINGS - _PREPOSITIONS
        or (found.start(1) > 0 and after in _AFTER_ACTIONS)
        or (found[4] or "") != after
    )


def is_added(word: ClaimWord, text: str) -> bool:
    """Whether a word adds by whom, with what, where or why: a circumstance that no other word implies."""
    before = _ADDS if word.script == "other" else ""
    behind = "" if word.script == "other" else "(?:에서|으?로|에게|한테|와|과|때문)"
    return re.search(rf"{before}\b{re.escape(word.text)}{behind}", text, re.IGNORECASE) is not None


def _simple_forms(word: str) -> tuple[str, ...]:
    return (word, *(word.removesuffix(ending) for ending in ("s", "es", "d", "ed", "ing")))


_LIGHT_ROOTS = frozenset(
    korean.root(word)
    for word in "하다 한다 해야 되다 된다 돼야 있다 없다 않다 이다 아니다 위하다 대하다 따르다 말하다 적히다 라고".split()
) | {""}


def said_by(text: str, words: Iterable[ClaimWord], tokenizer: Tokenizer) -> Said:
    """What the whole text with these `words` says, also inside identifiers: imagePullPolicy is about image, pull and
    policy.
    """
    known = list(words)
    inside = list(inner_words(cjk.without_cjk(text)))
    stems = {word.key for word in known if word.script in ("other", LABEL)}
    if inside:
        stems.update(tokenizer.stems("\n".join(inside)))
    roots = frozenset(word.key for word in known if word.script == "hangul")
    return Said(frozenset(stems), roots, text if cjk.has_cjk(text) else "")


def claim_words(text: str, tokenizer: Tokenizer) -> list[ClaimWord]:
    """The words of a claim that say something, each once."""
    return distinct(word for word in words_of(text, tokenizer) if not is_light(word))


def distinct(words: Iterable[ClaimWord]) -> list[ClaimWord]:
    return list({word.key: word for word in words}.values())


def _is_derived(stem: str, stems: Iterable[str]) -> bool:
    if len(stem) < _LONG_ENOUGH:
        return False
    return any(
        len(other) >= _LONG_ENOUGH
        and other[:_LONG_ENOUGH] == stem[:_LONG_ENOUGH]
        and (
            (other.startswith(stem) and _DERIVED.fullmatch(other, len(stem)) is not None)
            or (stem.startswith(other) and _DERIVED.fullmatch(stem, len(other)) is not None)
        )
        for other in stems
    )


def _begins(root: str, roots: Sequence[str] | frozenset[str]) -> bool:
    """Whether the root begins like one of the others, as a compound or a verb with one more ending does. Both have at
    least two syllables.
    """
    return len(root) >= 4 and any(
        other.startswith(root) or (len(other) >= 4 and root.startswith(other)) for other in roots
    )
