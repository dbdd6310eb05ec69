"""Writes tool answers as text for models: citations, quoted passages, cursors. None of it is an instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab.core.search import SUSPICIOUS
from kebab.core.text import one_line
from kebab.wire.records import DocSummaryV1

if TYPE_CHECKING:
    from kebab.wire.answers import AnswerCitationV1, AnswerV1
    from kebab.wire.errors import ErrorV1
    from kebab.wire.records import FetchResultV1, ListV1
    from kebab.wire.reports import IngestReportV1
    from kebab.wire.search import NeighbourV1, SearchHitV1, SearchResponseV1
    from kebab.wire.serving import StatusV1

_BETWEEN = " · "
_NEAREST = 3


def search_text(response: SearchResponseV1) -> str:
    lines = [line for hit in response.hits for line in _hit(hit)]
    lines += [f"note: {one_line(notice.message)}" for notice in response.notices]
    lines.append(f"returned: {response.returned}")
    if response.next_cursor is not None:
        lines.append(f"There are more hits: cursor {response.next_cursor}")
    return "\n".join(lines)


def _hit(hit: SearchHitV1) -> list[str]:
    heading = one_line(" > ".join(hit.heading_path)) or one_line(hit.title)
    about = [f"{hit.rank}. {one_line(hit.citation.text)}", heading, f"source {one_line(hit.source)}"]
    about += [f"score {hit.score:.2g}", "the file has changed since" if hit.stale else ""]
    before, after = (hit.neighbours.before, hit.neighbours.after) if hit.neighbours else ([], [])
    return [
        _BETWEEN.join(filter(None, about)),
        *(f"   context: {one_line(note)}" for note in hit.context),
        *_remark(hit.suspicious),
        *(line for neighbour in before for line in _neighbour(neighbour)),
        *quoted(hit.text),
        *(line for neighbour in after for line in _neighbour(neighbour)),
        "",
    ]


def _neighbour(neighbour: NeighbourV1) -> list[str]:
    place = one_line(neighbour.citation.text)
    return [f"   beside it: {place}", *_remark(neighbour.suspicious), *quoted(neighbour.text)]


def _remark(suspicious: bool) -> list[str]:
    return [f"   note: {SUSPICIOUS}"] if suspicious else []


def quoted(text: str) -> list[str]:
    """The lines of a text, each after a >, so that no quoted line looks like a line of the tool answer."""
    return [f"> {line}".rstrip() for line in text.strip("\n").splitlines()]


def answer_text(answer: AnswerV1) -> str:
    """The quoted answer, the citation of each marker, and the claims that are not supported. For a refusal: its reason
    and the nearest passages.
    """
    if answer.answer is None:
        hits = answer.candidates[:_NEAREST]
        nearest = [
            line for hit in hits for line in (f"nearest: {one_line(hit.citation.text)}", *_remark(hit.suspicious))
        ]
        return "\n".join([f"No answer ({answer.refusal_reason}): {one_line(answer.refusal_message or '')}", *nearest])
    places = dict.fromkeys("\n".join(_cited(citation)) for citation in answer.citations)
    doubts = [f"{claim.verdict}: {one_line(claim.text)}" for claim in answer.claims if claim.verdict != "supported"]
    notes = [f"note: {one_line(notice.message)}" for notice in answer.notices]
    return "\n".join([*quoted(answer.answer), "", *places, *doubts, *notes])


def _cited(cited: AnswerCitationV1) -> list[str]:
    place = one_line((cited.quoted_at or cited.citation).text)
    return [f"[{cited.marker}] {place}{_BETWEEN}source {one_line(cited.source)}", *_remark(cited.suspicious)]


def fetch_texts(fetched: FetchResultV1) -> tuple[str, ...]:
    """Parts of an answer: the citation and title, the verbatim text, and the offset of the rest if there is more."""
    place = fetched.citation.text if fetched.citation else fetched.doc_path
    head = _BETWEEN.join((one_line(place), one_line(fetched.title), f"source {one_line(fetched.source)}"))
    more = (f"There is more of it: offset {fetched.next_offset}",) if fetched.next_offset is not None else ()
    return ("\n".join([head, *_remark(fetched.suspicious)]), fetched.text, *more)


def list_text(listed: ListV1) -> str:
    lines = [_document(item) for item in listed.items if isinstance(item, DocSummaryV1)]
    lines.append(f"{len(lines)} of {listed.total} documents")
    if listed.next_offset is not None:
        lines.append(f"There are more: cursor {listed.next_offset}")
    return "\n".join(lines)


def _document(document: DocSummaryV1) -> str:
    parts = [one_line(document.doc_path), one_line(document.title), f"source {one_line(document.source)}"]
    parts += [document.doc_type, f"{document.lines} lines", document.date[:10], f"doc_id {document.doc_id}"]
    return _BETWEEN.join(filter(None, parts))


def status_text(status: StatusV1) -> str:
    stats = status.stats
    held = "nothing ingested yet"
    if stats:
        held = f"{stats.documents} documents, {stats.chunks} passages, {stats.embedded_chunks} with a vector"
    lines = [f"Kebab {status.version}: {held}", f"sources: {', '.join(map(one_line, status.sources)) or 'none'}"]
    lines += [f"libraries: {status.libraries}", "read-only" if status.read_only else "ingest is allowed"]
    return "\n".join([*lines, *(["an ingest is running"] if status.ingest_running else [])])


def ingest_text(report: IngestReportV1, more_failed: int) -> str:
    counts = f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged, {report.removed} removed"
    lines = [
        f"{report.scanned} files: {counts}",
        f"{report.chunks} passages, {report.vectors_made} vectors made, {report.seconds:.1f} s",
    ]
    lines += [f"skipped {skipped.count}: {skipped.meaning}" for skipped in report.skipped]
    lines += [f"failed: {one_line(failed.path)}: {one_line(failed.message)}" for failed in report.failed]
    return "\n".join([*lines, *([f"and {more_failed} more failed"] if more_failed else [])])


def error_text(error: ErrorV1) -> str:
    hint = f"\n{error.hint}" if error.hint else ""
    return f"Error ({error.code}): {error.message}{hint}"
