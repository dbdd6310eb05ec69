"""Finds the source of a path, names new sources, changes the notes on them, and removes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Literal, NamedTuple

from kebab.core.documents import Source
from kebab.core.errors import NotFound, SourceError, UsageError
from kebab.core.records import ContextNote
from kebab.core.text import nfc, storable
from kebab.session import Session

MOST_CHARACTERS = 1000
"""The most characters of a note."""
_MOST_FOLDERS_NAMED = 8


@dataclass(frozen=True)
class Scope:
    """What to ingest: a whole source, or only the file or folder at the path `below` in it."""

    source: Source
    below: str = ""
    is_new: bool = False

    def holds(self, path: str) -> bool:
        return not self.below or path == self.below or path.startswith(self.below + "/")

    def lies_in(self, folder: str) -> bool:
        return self.below.startswith(folder.rstrip("/") + "/")


def resolve(paths: Sequence[Path], known: Sequence[Source], name: str | None) -> list[Scope]:
    """Returns one scope per path. A path inside a known source belongs to it; any other path becomes a new source."""
    if name is not None and len(paths) != 1:
        message = "--name names one source, so it takes exactly one path."
        raise UsageError(message, hint="Ingest the paths one after another.")
    sources = list(known)
    scopes: dict[tuple[str, str], Scope] = {}
    for path in paths:
        absolute = _existing(path)
        scope = _known_scope(absolute, sources)
        if scope is None:
            kind: Literal["folder", "file"] = "folder" if absolute.is_dir() else "file"
            source = Source(_free_name(absolute, sources, name), kind, str(absolute))
            scope = Scope(source, is_new=True)
            sources.append(source)
        elif name not in (None, scope.source.name):
            hint = "Leave --name out: a source keeps its name, it is part of all ids."
            raise SourceError(f"{absolute} is already the source {scope.source.name}.", hint=hint)
        scopes.setdefault((scope.source.name, scope.below), scope)
    return list(scopes.values())


def roots_below(source: Source, known: Iterable[Source], kind: str) -> list[Source]:
    """Returns the other sources of this kind whose roots are inside the folder of `source`."""
    root = Path(source.root or "")
    return [
        other
        for other in known
        if other.kind == kind and other.root and other.name != source.name and root in Path(other.root).parents
    ]


def _existing(path: Path) -> Path:
    shown = str(path).encode("utf-8", "replace").decode()
    try:
        absolute = path.expanduser().resolve()
        str(absolute).encode("utf-8")
        mode = absolute.stat().st_mode
    except FileNotFoundError as error:
        raise SourceError(f"There is no file or folder {path}.", hint="Check the path.", path=str(path)) from error
    except UnicodeEncodeError as error:
        message = f"The name of {shown} is not valid UTF-8."
        raise SourceError(message, hint="Rename it and ingest it again.", path=shown) from error
    except (OSError, ValueError, RuntimeError) as error:  # no permission, too long, a NUL, ~nobody
        message = f"{path} cannot be read: {error}."
        raise SourceError(message, hint="Check the path and its permissions.", path=str(path)) from error
    if not (S_ISDIR(mode) or S_ISREG(mode)):
        message = f"{path} is neither a file nor a folder."
        raise SourceError(message, hint="Name a folder or a text file.", path=str(path))
    return absolute


def _known_scope(absolute: Path, sources: Sequence[Source]) -> Scope | None:
    """Returns the part of the innermost known source that the path names, or None."""
    roots = {Path(source.root): source for source in reversed(sources) if source.root is not None}
    if absolute in roots:
        return Scope(roots[absolute])
    for folder in absolute.parents:
        if folder in roots and roots[folder].kind == "folder":
            return Scope(roots[folder], nfc(absolute.relative_to(folder).as_posix()))
    return None


def _free_name(absolute: Path, sources: Sequence[Source], wanted: str | None) -> str:
    taken = {source.name for source in sources}
    if wanted is not None:
        name = nfc(wanted.strip())
        if not name:
            raise UsageError("A source's name must not be empty.", hint="For example --name notes")
        if name.startswith(("/", "~")) or not name.isprintable() or ":" in name:
            hint = "A name is a word or two without a colon, and no path. For example --name notes"
            raise UsageError(f"{name!r} is no name for a source.", hint=hint)
        if name in taken:
            raise SourceError(f"There is already a source named {name}.", hint="Choose another with --name.")
        return name
    base = nfc(absolute.name.encode("utf-8", "replace").decode()) or "root"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


# --- notes


class Description(NamedTuple):
    """A change of a note, and its effect."""

    source: str
    folder: str
    text: str | None
    """The new text, or None if the note was removed."""
    before: str | None
    chunks: int
    """How many chunks have other terms because of the change."""

    @property
    def place(self) -> str:
        return f"{self.source}/{self.folder}" if self.folder else self.source


def describe_source(session: Session, place: str, text: str) -> Description:
    """Adds or replaces the note on SOURCE or SOURCE/FOLDER. An empty text removes the note."""
    with session.writing("kb source describe", existing=True) as writing:
        writing.settle_analysis()
        store = writing.notes()
        text = _checked(text)
        source, folder = _split_place(place, store.source_names())
        before = next((note.text for note in store.notes(source) if note.folder == folder), None)
        note = ContextNote(folder, text)
        if not text:
            return Description(source, folder, None, before, store.remove(source, note))
        _refuse_empty(source, note, list(writing.documents().known_files(source)))
        return Description(source, folder, text, before, store.put(source, note))


def remove_source(session: Session, name: str) -> int:
    """Removes a source with its documents and notes. Returns the number of its documents."""
    with session.writing("kb source remove", existing=True) as writing:
        documents = writing.documents()
        names = [source.name for source in documents.sources()]
        if name not in names:
            raise _no_such_source(name, names)
        count = len(documents.known_files(name))
        documents.remove_source(name)
        return count


def _no_such_source(name: str, known: Sequence[str]) -> NotFound:
    return NotFound(f"There is no source {name}.", hint=f"Sources: {', '.join(known) or 'none yet'}.")


def _checked(text: str) -> str:
    text = nfc(storable(" ".join(text.split())))
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"A note has at most {MOST_CHARACTERS:,} characters; this one has {len(text):,}.",
            hint="Its words count for every passage below it: say what they all have in common, "
            "and put the rest into a file.",
        )
    return text


def _split_place(place: str, sources: Sequence[str]) -> tuple[str, str]:
    """Splits SOURCE/FOLDER. Source names may contain slashes, so the longest matching name counts."""
    wanted = nfc(storable(place)).rstrip("/")
    for source in sorted(sources, key=len, reverse=True):
        if wanted == source:
            return source, ""
        if wanted.startswith(source + "/"):
            return source, "/".join(part for part in wanted[len(source) :].split("/") if part not in ("", "."))
    raise _no_such_source(wanted.partition("/")[0] or place, sources)


def _refuse_empty(source: str, note: ContextNote, paths: Sequence[str]) -> None:
    """Raises NotFound if the folder has no documents, because it may be misspelt. A whole source may be empty."""
    if not note.folder or any(map(note.covers, paths)):
        return
    folders = sorted({path.partition("/")[0] for path in paths if "/" in path})
    named = ", ".join(folders[:_MOST_FOLDERS_NAMED]) + (" …" if len(folders) > _MOST_FOLDERS_NAMED else "")
    hint = f"Folders there: {named}." if folders else "Its documents lie in no folder: describe the source itself."
    raise NotFound(f"The source {source} has no document in {note.folder}.", hint=hint)
