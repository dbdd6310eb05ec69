"""Turns claims into citations: the passage of a marker, the sentence that is meant, and its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kebab.analysis.orders import reads_like_orders
from kebab.answering.claim_words import claim_words, said_by, words_of
from kebab.answering.evidence import Passage
from kebab.answering.sentences import Sentence
from kebab.answering.source_reading import Source
from kebab.answering.units import Unit
from kebab.answering.word_senses import senses
from kebab.core.answers import AnswerCitation, Claim, Verdict
from kebab.core.citations import Citation, CodeSpan, LineSpan
from kebab.core.ports import Tokenizer

_NEAR = 0.34
"""The least share of a claim's words that a sentence must have to be the one that is meant."""


def source_of(passage: Passage, marker: int, quoted: Iterable[Unit] = ()) -> Source:
    return Source(
        marker, passage.text, passage.context, passage.sentences, frozenset(unit.of(passage.text) for unit in quoted)
    )


def citation_of(
    passage: Passage, marker: int, claim: Claim, number: int, quoted: Sentence | Unit | None
) -> AnswerCitation:
    return AnswerCitation(
        marker=marker,
        citation=passage.citation,
        chunk_id=passage.chunk_id,
        doc_id=passage.hit.doc_id,
        source=passage.hit.source,
        title=passage.hit.title,
        date=passage.hit.date,
        stale=passage.hit.stale,
        quote=quoted.of(passage.text) if quoted else None,
        quoted_at=place_of(passage, quoted) if quoted else None,
        verdict=verdict_on(claim, marker),
        claim=number,
        suspicious=reads_like_orders(passage.text),
    )


def verdict_on(claim: Claim, marker: int) -> Verdict:
    """The verdict on one citation of a claim. If a claim cites two passages and only one supports it, the other
    citation is misattributed.
    """
    if claim.verdict in ("unsupported", "stitched"):
        return claim.verdict
    return "supported" if marker in claim.supported_by else "misattributed"


def citations_of(
    claims: Sequence[Claim], passages: Mapping[int, Passage], tokenizer: Tokenizer
) -> Iterator[AnswerCitation]:
    """The citations of all claims: one for each claim and each of its markers that names a passage."""
    for number, claim in enumerate(claims):
        for marker in claim.markers:
            if marker in passages:
                nearest = nearest_sentence(claim.text, passages[marker], tokenizer)
                yield citation_of(passages[marker], marker, claim, number, nearest)


def nearest_sentence(claim: str, passage: Passage, tokenizer: Tokenizer) -> Sentence | None:
    """The sentence of a passage that has most of a claim's words; None if no sentence has a good part of them."""
    words, known = claim_words(claim, tokenizer), senses(tokenizer)
    best, most = None, _NEAR
    for sentence in passage.sentences:
        text = sentence.of(passage.text)
        said = said_by(text, words_of(text, tokenizer), tokenizer)
        share = sum(said.says(word, known) for word in words) / len(words) if words else 0.0
        if share > most:
            best, most = sentence, share
    return best


def place_of(passage: Passage, sentence: Sentence | Unit) -> Citation:
    """The lines of a sentence; in a passage without lines, the citation of the passage."""
    lines = passage.citation.lines
    if lines is None:
        return passage.citation
    first = lines[0] + passage.text.count("\n", 0, sentence.start)
    last = min(lines[1], first + passage.text.count("\n", sentence.start, sentence.end))
    span = passage.citation.span
    moved = span._replace(line_start=first, line_end=last) if isinstance(span, CodeSpan) else LineSpan(first, last)
    return passage.citation._replace(span=moved, content_hash=None)
