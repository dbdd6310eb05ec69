"""Checks what a model wrote, claim by claim."""

from __future__ import annotations

from collections.abc import Iterator

from kebab.answering.citation_check import CitationChecker
from kebab.answering.claims import WrittenClaim, borrowed_markers, claims_of, spoken_out
from kebab.core.answers import Claim


def checked(text: str, question: str, checker: CitationChecker) -> Iterator[tuple[WrittenClaim, Claim]]:
    """The claims of an answer with their verdicts. Only an introduction without words of its own, such as "Steps:", is
    left out. An introduction without numbers may have no marker: it is checked against the sources of the claims that
    it introduces.
    """
    said = claims_of(text)
    for number, one in enumerate(said):
        statement = spoken_out(one.text, question)
        leads_up = one.leads_up or statement != one.text
        unknown = not checker.knows(one.markers)
        if one.leads_up and not unknown and checker.says_nothing(statement):
            continue
        borrows = leads_up and not one.markers and not checker.has_numbers(statement)
        markers = borrowed_markers(said, number) if borrows else one.markers
        claim = checker.check(statement, markers)._replace(text=one.text)
        if claim.verdict == "supported" and checker.answers_wrongly(one.text, question, markers):
            claim = claim._replace(verdict="unsupported", supported_by=())
        yield one, claim
