"""The ports of a store for libraries: reading them, writing them, and exporting a whole one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kebab.core.libraries import DoneFile, Library, Making, VectorSpace, VersionDocument
    from kebab.core.ports import IndexedDocument, Key


class LibraryCatalog(Protocol):
    def libraries(self) -> list[Library]: ...
    def find(self, library_id: str) -> Library:
        """NotFound when it is not there."""

    def named(self, name: str) -> list[Library]:
        """Those with this in their title, id or description, in any case of any alphabet."""

    def kinds_of(self, chunk_ids: Iterable[str]) -> Mapping[str, str]:
        """code or info."""


class LibraryReader(Protocol):
    """All of one library, to be packed."""

    def version_documents(self) -> Sequence[VersionDocument]:
        """Of the versions that are searched, the default one first."""

    def document(self, key: Key, /) -> IndexedDocument:
        """Without a source: it belongs to several."""

    def spaces(self) -> Sequence[VectorSpace]: ...
    def vectors(self, space: VectorSpace, /) -> Iterable[tuple[bytes, bytes]]:
        """Hash of the embedded text, and float16."""


class LibraryWriter(Protocol):
    """A version is made beside the one that is searched, and takes its place when it is complete. Documents that two
    versions have in common, the same bytes under the same path, are stored once.
    """

    def describe(self, library: Library) -> None:
        """Adds a library or changes its metadata; its versions stay."""

    def begin(self, library_id: str, tag: str | None, commit: str | None) -> Making:
        """Goes on with what was begun."""

    def drop(self, making: Making, files: Iterable[DoneFile]) -> None:
        """Removes files of an earlier attempt that are no longer part of the version or must be read again, and
        documents that a killed run wrote without linking them.
        """

    def known(self, library_id: str, fingerprints: Iterable[str]) -> Mapping[tuple[str, str], Key]:
        """Documents of all versions that need not be read again, by path and key of their file."""

    def share(self, making: Making, documents: Sequence[tuple[Key, str]]) -> None:
        """Documents (with the key of their file) that other versions have too."""

    def link(self, making: Making, documents: Sequence[tuple[str, str]]) -> None:
        """Documents (id, key of their file) that were just written."""

    def finish(self, making: Making, indexed_at: str | None = None) -> int:
        """Puts it in the place of the version that is searched; how many snippets it has. `indexed_at`: if not now."""

    def fail(self, library_id: str, tag: str | None, reason: str) -> None:
        """The unfinished version stays, to go on from; the searched version stays too."""

    def forget_attempt(self, library_id: str, tag: str | None) -> None:
        """Removes an unfinished version; the searched version stays."""

    def remove(self, library_id: str, tag: str | None = None, *, whole: bool = True) -> None:
        """A version, or the whole library."""
