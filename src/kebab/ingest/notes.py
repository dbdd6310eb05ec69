"""Describing a source or a folder in it: which place is meant, and what may be said about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kebab.core.errors import NotFound, UsageError
from kebab.core.records import ContextNote
from kebab.core.text import nfc, storable
from kebab.ingest.source_names import no_such_source

if TYPE_CHECKING:
    from kebab.core.store_ports import NoteStore

MOST_CHARACTERS = 1000
_MOST_FOLDERS_NAMED = 8


class Description(NamedTuple):
    """What has become of a place's note."""

    source: str
    folder: str
    text: str | None
    """None: there is no note now."""
    before: str | None
    chunks: int
    """How many are found by other words than before."""

    @property
    def place(self) -> str:
        return f"{self.source}/{self.folder}" if self.folder else self.source


def describe(store: NoteStore, place: str, text: str) -> Description:
    """`place` is SOURCE or SOURCE/FOLDER. Its note becomes `text`; an empty text takes the note away."""
    text = _checked(text)
    source, folder = _resolved(place, store.source_names())
    before = next((note.text for note in store.notes(source) if note.folder == folder), None)
    note = ContextNote(folder, text)
    if text:
        _refuse_empty(source, note, store.document_paths(source))
        return Description(source, folder, text, before, store.put(source, note))
    return Description(source, folder, None, before, store.remove(source, note))


def _checked(text: str) -> str:
    """On one line, as it is shown and compared."""
    text = nfc(storable(" ".join(text.split())))
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"A note has at most {MOST_CHARACTERS:,} characters; this one has {len(text):,}.",
            hint="Its words count for every passage below it: say what they all have in common, and put the rest into a file.",
        )
    return text


def _resolved(place: str, sources: Sequence[str]) -> tuple[str, str]:
    """The longest source that fits: a source's name may have slashes of its own."""
    wanted = nfc(storable(place)).rstrip("/")
    for source in sorted(sources, key=len, reverse=True):
        if wanted == source:
            return source, ""
        if wanted.startswith(source + "/"):
            return source, "/".join(part for part in wanted[len(source) :].split("/") if part not in ("", "."))
    raise no_such_source(wanted.partition("/")[0] or place, sources)


def _refuse_empty(source: str, note: ContextNote, paths: Sequence[str]) -> None:
    """A slip of the pen would otherwise be a note that nobody ever sees. A whole source may still be empty."""
    if not note.folder or any(map(note.covers, paths)):
        return
    folders = sorted({path.partition("/")[0] for path in paths if "/" in path})
    named = ", ".join(folders[:_MOST_FOLDERS_NAMED]) + (" …" if len(folders) > _MOST_FOLDERS_NAMED else "")
    raise NotFound(
        f"The source {source} has no document in {note.folder}.",
        hint=f"Folders there: {named}." if folders else "Its documents lie in no folder: describe the source itself.",
    )
