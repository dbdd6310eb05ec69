"""Makes an answer without a model: the quotation that answers the question, with its marker, and further quotations if
they say more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kebab.answering.deeds import DeedAsked
from kebab.answering.disagreement import differs, newest_first, revisions
from kebab.answering.evidence import Passage
from kebab.answering.identity import Identity
from kebab.answering.kinds import Kind
from kebab.answering.question import Question, joined
from kebab.answering.ranking import STRICT, Ranked, ranked
from kebab.answering.units import WHOLES, Unit
from kebab.core.citations import CodeSpan
from kebab.core.ports import Tokenizer

_MOST_MORE = 2
"""The most quotations after the first."""
_MOST_ROWS = 8
_MOST_LOOKED_AT = 60
"""How many of the best quotable units are compared."""
_AS_GOOD = 0.995
_SURE = 0.8
"""The share of the question that the first quotation must cover; if it covers less, it may be about something else, and
other passages are quoted too.
"""
# Of the first: how good another passage must be to be quoted as well.
_AS_LIKELY = 0.6
_AS_GOOD_STEPS = 0.85
_NEVER = 2.0
_ADDS = 0.2
"""The share of the question that a further quotation must add to what the others cover."""
_ALL_OF_IT = 1.2
"""The score by words of a sentence that has all words of the question."""
_COMES_NEAR = 0.5
"""If a unit that has nothing of the kind asked for speaks so much more about the subject, the kind is probably missing.
"""
_WHAT_TO_DO = re.compile(
    r"\bwhat\s(?:do|does|should|can|must|shall)\s(?:i|we|you|one)\sdo\b|어떻게\s?(?:하|해)", re.IGNORECASE
)
_TWO_PARTS = re.compile(r"\band\s(?:when|who|where|how|why|what|which)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*\d{1,3}[.)]\s", re.MULTILINE)
_TITLE_SAYS_IT = 0.9
_SUBJECT_IS_TITLE = frozenset({Kind.TIME, Kind.PLACE, Kind.PERSON})


class Quotation(NamedTuple):
    passage: int
    """The index of the passage, from 0."""
    unit: Unit


class Chosen(NamedTuple):
    quotations: tuple[Quotation, ...]
    """The quotations, best first; empty if nothing has what was asked for."""
    lacking: tuple[str, ...] = ()
    """The things that the question names and even the best unit does not mention."""
    undone: str = ""
    """The action that the question asks about, if no unit says it."""


def quotations_for(question: Question, passages: Sequence[Passage], tokenizer: Tokenizer) -> Chosen:
    identity = Identity(question)
    order = ranked(question, passages, tokenizer)[:_MOST_LOOKED_AT]
    named = [
        one
        for one in order
        if not identity.lacks(one.unit, passages[one.passage]) and identity.has_enough(one.unit, passages[one.passage])
    ]
    deed = DeedAsked(question, tokenizer)
    to_the_point = [one for one in named if not identity.is_beside_the_point(one.unit, passages[one.passage])]
    about_it = [one for one in to_the_point if deed.allows(one.unit, passages[one.passage])]
    best = _best(question, passages, about_it, named)
    if best is not None and not question.wants_steps:
        likeliest = _best(question, passages, to_the_point, named)
        if likeliest is not None and best.by_words < _SURE * likeliest.by_words:
            return Chosen((), undone=deed.text)  # of what is asked about, the contrary is said
    if best is not None and not identity.has_their_parts(best.unit, passages[best.passage]):
        most = _SURE * best.by_words  # what has less of the question does not say what this one says of others
        fair = [
            one
            for one in about_it
            if one.by_words >= most and identity.has_their_parts(one.unit, passages[one.passage])
        ]
        best = _best(question, passages, fair, fair)
        if best is None:
            return Chosen(())
    if best is None:
        if _best(question, passages, to_the_point, named) is not None:
            return Chosen((), undone=deed.text)
        if (other := _best(question, passages, named, named)) is not None:
            return Chosen((), identity.is_beside_the_point(other.unit, passages[other.passage]))
        other = _best(question, passages, order, order)
        return Chosen((), identity.lacks(other.unit, passages[other.passage]) if other else ())
    chosen = list(_whole(question, passages[best.passage], best, about_it))
    chosen += _more(question, passages, chosen, about_it)
    chosen += revisions(
        question, passages, chosen, (one for one in order if identity.is_of_kin(one.unit, passages[one.passage]))
    )
    return Chosen(tuple(Quotation(one.passage, one.unit) for one in newest_first(question, passages, chosen)))


def _shows_how(one: Ranked, passage: Passage) -> bool:
    """Whether a unit shows how something is done: as steps do, as source code does, and a sentence that has everything
    that was asked about.
    """
    return one.fits or one.by_words >= _ALL_OF_IT or passage.hit.doc_type == "code"


def _best(
    question: Question, passages: Sequence[Passage], order: Sequence[Ranked], among: Sequence[Ranked]
) -> Ranked | None:
    """The best unit. `among`: all units that it is compared with."""
    enough = {passage.hit.chunk_id for passage in passages if passage.is_enough}
    order, among = (
        [one for one in some if passages[one.passage].hit.chunk_id in enough] for some in (order, among)
    )  # or beside such a hit
    if question.kind not in STRICT:
        return next((one for one in order if not question.wants_steps or _shows_how(one, passages[one.passage])), None)
    fitting = [one for one in order if one.fits and (one.is_about or _title_says_it(question, passages[one.passage]))]
    most = max((one.by_words for one in among), default=0.0)
    return next((one for one in fitting if one.by_words >= _COMES_NEAR * most), None)


def _title_says_it(question: Question, passage: Passage) -> bool:
    """Whether the title says when or where something is, or who: "Departure: Monday" in a note about a trip."""
    return question.kind in _SUBJECT_IS_TITLE and question.coverage(passage.title) >= _TITLE_SAYS_IT


def _whole(question: Question, passage: Passage, best: Ranked, order: Sequence[Ranked]) -> Iterator[Ranked]:
    """The best unit with what belongs to it: other rows that say as much, the rest of its list, the code that follows."""
    unit = best.unit
    if unit.kind == "row":
        alike = [
            one
            for one in order
            if one.unit.kind == "row" and one.passage == best.passage and one.unit.header == unit.header
        ]
        rows = [one for one in alike if one.score >= _AS_GOOD * best.score][:_MOST_ROWS]
        yield from sorted(rows, key=lambda one: one.unit.start)
        return
    if (
        question.wants_steps
        and question.coverage(unit.own) < _TITLE_SAYS_IT
        and (steps := _steps_around(passage, unit))
    ):
        yield best._replace(unit=steps)
        return
    if unit.kind == "item" and not question.touches(unit.own) and question.touches(unit.near):
        lists = (one for one in passage.units if one.kind == "list" and one.start <= unit.start < one.end)
        yield best._replace(unit=next(lists, unit))
        return
    if unit.of(passage.text).endswith((":", "：")):
        yield best._replace(
            unit=next((one for one in passage.units if one.kind == "list" and one.start == unit.start), unit)
        )
        return
    following = _following(passage, unit)
    if following is not None and _WHAT_TO_DO.search(question.text) and _is_same_block(passage, unit, following):
        yield best._replace(
            unit=unit._replace(end=following.end, last=following.last, around=unit.around | following.around)
        )
        return
    yield best
    shows_how = question.kind in (Kind.STEPS, None) and unit.kind in ("prose", "item")
    if shows_how and following is not None and following.kind == "code":
        yield best._replace(unit=following)


def _steps_around(passage: Passage, unit: Unit) -> Unit | None:
    """The whole list of steps that this unit is a part of; a list that is too long only if it is cut behind this unit."""
    lists = (one for one in passage.units if one.kind == "list" and one.start <= unit.start and unit.end <= one.end)
    return next(
        (
            one
            for one in lists
            if one.of(passage.text) != unit.of(passage.text) and _NUMBERED.search(one.of(passage.text))
        ),
        None,
    )


def _following(passage: Passage, unit: Unit) -> Unit | None:
    single = (one for one in passage.units if one.kind not in WHOLES and one.first == unit.last + 1)
    following = next(single, None)
    return following if following is not None and following.headings == unit.headings else None


def _is_same_block(passage: Passage, unit: Unit, other: Unit) -> bool:
    return passage.sentences[unit.last].block == passage.sentences[other.first].block


def _more(
    question: Question, passages: Sequence[Passage], chosen: Sequence[Ranked], order: Sequence[Ranked]
) -> Iterator[Ranked]:
    """Units that cover something of the question which the others do not, or say another number about the same."""
    first = chosen[0]
    two_parts = _TWO_PARTS.search(question.text) is not None
    covered = joined([one.unit.own | passages[one.passage].title if two_parts else one.unit.around for one in chosen])
    said = [one.unit.of(passages[one.passage].text) for one in chosen]
    left = _MOST_MORE
    used = {one.passage for one in chosen}
    likely = (
        _AS_LIKELY
        if question.coverage(first.unit.around) < _SURE
        else _AS_GOOD_STEPS
        if question.wants_steps
        else _NEVER
    )
    for one in order:
        text = one.unit.of(passages[one.passage].text)
        if not left or one.unit.kind in WHOLES or any(text in other or other in text for other in said):
            continue
        if one.passage != first.passage and not passages[one.passage].is_enough:
            continue
        gain = question.coverage(covered | one.unit.near) - question.coverage(covered)
        if one.passage not in used and one.fits and one.is_about and one.score >= likely * first.score:
            yield one
            used.add(one.passage)
            said.append(text)
            left -= 1
            continue
        adds = gain >= _ADDS and one.is_about and (two_parts or _belongs(question, passages, first, one))
        says_otherwise = one.passage not in used - {first.passage} and differs(question, passages, first, one)
        if adds or says_otherwise:
            yield one
            used.add(one.passage)
            covered |= one.unit.near
            said.append(text)
            left -= 1


def _belongs(question: Question, passages: Sequence[Passage], first: Ranked, other: Ranked) -> bool:
    """Whether a unit is about the same as the first: it is beside it, or has words of the question in common with it."""
    if first.passage != other.passage or _is_same_block(passages[first.passage], first.unit, other.unit):
        return True
    return bool(question.touched(first.unit.near) & question.touched(other.unit.near))


def written_out(quotes: Sequence[tuple[Passage, int, Unit]]) -> str:
    """The quotations as one text: each by itself with its marker, rows under the head of their table."""
    paragraphs: list[str] = []
    table: tuple[int, tuple[int, int]] | None = None
    for passage, marker, unit in quotes:
        text = unit.of(passage.text)
        if unit.header is not None and table == (marker, unit.header):
            paragraphs[-1] = paragraphs[-1].removesuffix(f"\n[{marker}]") + f"\n{text}\n[{marker}]"
            continue
        table = (marker, unit.header) if unit.header is not None else None
        if unit.kind in ("row", "code", *WHOLES):
            paragraphs.append("\n".join((_shown(text, passage, unit), *(["…"] if unit.cut else []), f"[{marker}]")))
        elif unit.kind == "item" and passage.text[max(0, unit.start - 1) : unit.start] in ("", "\n"):
            paragraphs.append(f"{text} [{marker}]")  # an entry without a mark, whose lines are not running text
        else:
            paragraphs.append(f"{' '.join(_QUOTE_MARK.sub(' ', text).split())} [{marker}]")
    return "\n\n".join(paragraphs)


_QUOTE_MARK = re.compile(r"\n[ \t]*>[ \t]?")
_FENCED = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})", re.MULTILINE)
_RULE = re.compile(r"\n(\s*\|[\s|:+=-]+)(?:\n|$)")


def _shown(text: str, passage: Passage, unit: Unit) -> str:
    """The text of a unit with the head of its table, or with a fence if it is code without one."""
    if unit.header is not None:
        start, end = unit.header
        rule = _RULE.match(passage.text, end)
        return "\n".join((passage.text[start:end], *([rule[1]] if rule else []), text))
    if unit.kind != "code" or _FENCED.search(text):
        return text
    span = passage.citation.span
    return f"```{(span.lang or '') if isinstance(span, CodeSpan) else ''}\n{text}\n```"
