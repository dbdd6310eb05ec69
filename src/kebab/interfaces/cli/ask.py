"""The command kb ask."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from kebab.core.answers import Answer, AnswerCitation, Claim
from kebab.core.citations import Citation
from kebab.core.errors import UsageError, VectorsOff
from kebab.core.notices import Says
from kebab.core.search import SUSPICIOUS
from kebab.interfaces.cli.options import command, knowledge_base, wants_json
from kebab.interfaces.cli.render import follow_up_notices, harmless, print_json, remark, say, shown
from kebab.interfaces.cli.search import FILTERS, given, search_options

_ONE_LINE = re.compile(r":L(\d+)-L\1$")


@command(
    "ask",
    example="kb ask 'how do I undo the last commit?'\nkb ask 'when does the boiler need service?' --tag house --json",
)
@click.argument("question", nargs=-1)
@search_options(
    *("mode", "k", *FILTERS, "library", "rerank", "max_tokens", "explain"),
    mode="How passages are found: hybrid (the default), lexical or vector.",
    k="How many passages are looked at.",
    library="Answer from the documentation of this library.",
    max_tokens="About how many tokens of passages the answer may rest on (setting ask.max_tokens).",
    explain="What was found, how much of the question it covers, and the verdict on every claim.",
)
def ask_command(question: tuple[str, ...], **options: Any) -> int:
    """Answer QUESTION from what was ingested; - reads it from the standard input.

    Without a model the answer is made of quotations; with the setting ask.model, a model writes it. Either way every
    statement carries the number of the passage it rests on and is checked against it. When the evidence is not enough,
    there is no answer: the exit code is 1, and the nearest passages are shown.
    """
    if question == ("-",):
        question = (sys.stdin.read(),)
    if not question or not " ".join(question).strip():
        raise UsageError("There is no QUESTION.", hint="For example: kb ask 'how do I undo the last commit?'")
    written: list[str] = []

    def write(piece: str) -> None:
        written.append(piece)
        click.echo(harmless(piece), nl=False)

    on_text = write if sys.stdout.isatty() and not wants_json() else None
    answer = knowledge_base().ask(" ".join(question), on_text=on_text, **given(options))
    answer = answer._replace(notices=follow_up_notices(answer.notices))
    if wants_json():
        from kebab.wire.answers import answer_v1

        print_json(answer_v1(answer))
    for notice in answer.notices:
        if notice.code not in (VectorsOff.code, Says.SOME_WORDS.code):
            remark(f"note: {notice.message}")
    if not wants_json():
        _print_answer(answer, streamed=bool(written))
    return 1 if answer.text is None else 0


def _print_answer(answer: Answer, *, streamed: bool) -> None:
    if answer.text is None:
        _print_refusal(answer, streamed=streamed)
        return
    click.echo("" if streamed else harmless(answer.text))
    click.echo()
    for marker, cited in _by_marker(answer.citations).items():
        places = dict.fromkeys(_place(citation.quoted_at or citation.citation) for citation in cited)
        stale = "; stale: its file has changed or is gone since it was indexed" if cited[0].stale else ""
        click.echo(f"[{marker}] {', '.join(places)} ({shown(cited[0].title)}{stale})")
        if cited[0].suspicious:
            click.echo(f"    note: {SUSPICIOUS}")
    for claim in answer.claims:
        if claim.verdict != "supported":
            say(f"{claim.verdict}: {shown(claim.text)}{_lacks(claim)}")
    if answer.explanation is not None:
        _print_explanation(answer)


def _by_marker(citations: Sequence[AnswerCitation]) -> dict[int, list[AnswerCitation]]:
    by_marker: dict[int, list[AnswerCitation]] = {}
    for citation in citations:
        by_marker.setdefault(citation.marker, []).append(citation)
    return by_marker


def _place(citation: Citation) -> str:
    """The text of a citation, with notes.md:L9-L9 shortened to notes.md:L9."""
    return _ONE_LINE.sub(r":L\1", shown(citation.text))


def _lacks(claim: Claim) -> str:
    if claim.verdict == "misattributed":
        return f" (said by {', '.join(f'[{marker}]' for marker in claim.supported_by)})"
    return f" (not found: {', '.join(claim.missing)})" if claim.missing else ""


def _print_refusal(answer: Answer, *, streamed: bool) -> None:
    if streamed:
        click.echo()
        if answer.refusal_reason != "model_declined":  # then the model itself wrote that it has no answer
            say("Withdrawn: what the model wrote above does not count as an answer.")
    say(f"No answer: {answer.refusal_message}")
    if answer.candidates:
        say("Nearest passages:")
    for hit in answer.candidates[:3]:
        say(f"  {shown(hit.citation.text)}  {shown(hit.snippet)}")
        if hit.suspicious:
            say(f"    note: {SUSPICIOUS}")
    if answer.explanation is not None:
        _print_explanation(answer)


def _print_explanation(answer: Answer) -> None:
    evidence = (answer.explanation or {}).get("evidence")
    click.echo()
    if evidence:
        similarity = "not compared" if evidence["similarity"] is None else f"{evidence['similarity']:.2f}"
        margin = "" if evidence["margin"] is None else f", {evidence['margin']:.2f} above the middle of the list"
        if evidence["similarity"] is not None and not evidence["by_meaning"]:
            margin += " (no measure is known for this language, so it does not count)"
        words = f"{evidence['coverage']:.0%} of the question's words in the best passage"
        say(f"evidence: {words}, {evidence['focus']:.0%} in two sentences")
        strength = f"strength {evidence['strength']:.2f}, {evidence['least']:.2f} is enough"
        say(f"evidence: similarity {similarity}{margin}; {strength}")
        if evidence["missing_words"]:
            say(f"evidence: in no passage: {', '.join(evidence['missing_words'])}")
        for passage in evidence["passages"]:
            beside = " (beside a hit)" if passage["beside"] else ""
            say(f"passage: {passage['coverage']:.0%} {passage['citation']}{beside}")
    for hit in answer.candidates:
        ranks = {"lexical": hit.retrieval.lexical_rank, "vector": hit.retrieval.vector_rank}
        found = ", ".join(f"{side} rank {rank}" for side, rank in ranks.items() if rank is not None)
        say(f"retrieval: {hit.rank}. {shown(hit.citation.text)} ({found})")
    for claim in answer.claims:
        markers = "".join(f"[{marker}]" for marker in claim.markers)
        say(f"claim: {claim.verdict} {markers} matched: {', '.join(claim.matched) or 'nothing'}{_lacks(claim)}")
