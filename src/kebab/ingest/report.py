"""The report of an ingest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kebab.core.errors import ParseError

_EXAMPLES = 5
_SLOWEST = 5

SKIP_REASONS = {
    "ignored": "excluded by .gitignore or .kebabignore",
    "hidden": "name begins with a dot (setting ingest.hidden)",
    "link": "symbolic link (setting ingest.follow_links)",
    "special": "neither a file nor a folder",
    "too_large": "larger than ingest.max_file_mb",
    "binary": "not text",
    "encoding": "text in an encoding that is not known",
    "empty": "no text in it",
    "no_text": "pictures only, no text that could be read",
    "encrypted": "needs a password",
    "damaged": "damaged, or not what its name says",
    "generated": "generated or minified, not written by a person",
    "unsafe": "made to exhaust memory, or to reach outside itself",
    "too_costly": "takes more time or memory than ingest.max_seconds and ingest.max_memory_mb allow",
    "unreadable": "no permission to read",
    "unreadable_rules": "its ignore rules cannot be read",
    "bad_name": "file name is not valid UTF-8",
    "same_name": "another file has the same name in another Unicode form",
    "other_source": "belongs to another source",
}


def quiet(event: str, **details: Any) -> None:
    """Ignores all events: a Progress that shows nothing."""


class Failure(NamedTuple):
    """A file that could not be indexed, whose earlier text stays indexed; or a warning about a file."""

    path: str
    code: str
    message: str


@dataclass(frozen=True)
class Skipped:
    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass
class IngestReport:
    started: bool = False
    """Whether the run has got the writer's lock."""
    sources: list[str] = field(default_factory=list)
    scanned: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    unread: int = 0
    """Scanned files that were skipped for their content, or failed. Files excluded by name are not scanned."""
    removed: int = 0
    chunks: int = 0
    bytes: int = 0
    seconds: float = 0.0
    skipped: dict[str, Skipped] = field(default_factory=dict)
    failed: list[Failure] = field(default_factory=list)
    warnings: list[Failure] = field(default_factory=list)
    slowest: list[tuple[str, float]] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    """The first few files that were added, updated or removed: what happened, and the path."""
    absorbed: list[str] = field(default_factory=list)
    """Names of single-file sources that are now part of a folder source."""
    reanalysed: int = 0
    """Chunks that were analysed again because the settings had changed."""

    vectors_made: int = 0
    """Texts that were embedded."""
    vectors_reused: int = 0
    """Chunks whose text had been embedded before."""
    vectors_unfinished: bool = False
    """Whether making vectors was begun and stopped early."""
    embedding_seconds: float = 0.0

    def skip(self, path: str, reason: str) -> None:
        self._skip(reason, Skipped(1, (path,)))

    def _skip(self, reason: str, more: Skipped) -> None:
        before = self.skipped.get(reason, Skipped())
        examples = (*before.examples, *more.examples)[:_EXAMPLES]
        self.skipped[reason] = Skipped(before.count + more.count, examples)

    def fail(self, failure: Failure) -> None:
        self.unread += 1
        self.failed.append(failure)

    def reject(self, path: str, error: ParseError) -> None:
        """Counts a file as failed if its parser crashed, and as skipped if its parser refused it."""
        if error.is_defect:
            self.fail(Failure(path, error.reason, error.message))
        else:
            self.unread += 1
            self.skip(path, error.reason)

    def did(self, what: str, path: str) -> None:
        if len(self.changes) < _EXAMPLES:
            self.changes.append((what, path))

    def include(self, other: IngestReport) -> None:
        """Adds the numbers, skipped files, failures and warnings of another report."""
        for name in ("scanned", "added", "updated", "unchanged", "removed", "chunks", "bytes", "unread", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, skipped in other.skipped.items():
            self._skip(reason, skipped)
        self.failed += other.failed
        self.warnings += other.warnings

    def took(self, path: str, seconds: float) -> None:
        self.slowest = sorted([*self.slowest, (path, seconds)], key=lambda item: -item[1])[:_SLOWEST]

    @property
    def done(self) -> int:
        return self.added + self.updated + self.unchanged + self.removed
