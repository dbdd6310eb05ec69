"""A library between the store and a file: `kb lib export`, and `kb lib add` of what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from kebab.core.documents import embedded_text
from kebab.core.errors import NotFound
from kebab.core.libraries import Library, VectorSpace, VersionDocument
from kebab.core.ports import Embedder, IndexedDocument
from kebab.library.library_file import FileVersion, LibraryContents, LibraryFile, write_library_file
from kebab.pipelines.embedding import hash_of_text
from kebab.pipelines.library_indexing import library_document_id
from kebab.pipelines.library_version import VersionMaker, WantedFile


class LibraryReader(Protocol):
    def version_documents(self) -> Sequence[VersionDocument]: ...
    def document(self, row: int, /) -> IndexedDocument: ...
    def spaces(self) -> Sequence[VectorSpace]: ...
    def vectors(self, space: VectorSpace, /) -> Iterable[tuple[bytes, bytes]]: ...


class VectorKeeper(Protocol):
    def keep(self, embedder: Embedder, vectors: Sequence[tuple[bytes, bytes]], /) -> int: ...


def export_library(library: Library, reader: LibraryReader, path: Path) -> int:
    """How many documents it has."""
    entries = reader.version_documents()
    if not entries:
        raise NotFound(f"Nothing of {library.library_id} is indexed yet.", hint=f"Index it with: kb lib refresh {library.library_id}")
    rows = list(dict.fromkeys(entry.document for entry in entries))
    numbers = {row: number for number, row in enumerate(rows)}
    versions = dict.fromkeys((entry.tag, entry.commit) for entry in entries)
    contents = LibraryContents(
        library,
        tuple(
            FileVersion(tag, commit, tuple((numbers[entry.document], entry.file_key) for entry in entries if entry.tag == tag))
            for tag, commit in versions
        ),
        map(reader.document, rows),
        ((space, reader.vectors(space)) for space in reader.spaces()),
    )
    write_library_file(path, contents)
    return len(rows)


def import_version(file: LibraryFile, version: FileVersion, library_id: str, maker: VersionMaker) -> int:
    """How many snippets it has."""
    numbers: dict[str, int] = {}
    wanted = []
    for number, key in version.documents:
        document = file.document(number)
        numbers[document.path] = number
        wanted.append(WantedFile(document.path, key, document.state.fingerprint))

    def document_of(entry: WantedFile, source: str) -> IndexedDocument:
        document = file.document(numbers[entry.path])
        doc_id = library_document_id(library_id, document.path, document.state.content_hash)
        return document._replace(source=source, doc_id=doc_id)

    return maker.make(library_id, version.tag, version.commit, wanted, document_of)


def import_vectors(file: LibraryFile, embedders: Sequence[Embedder], keeper: VectorKeeper) -> None:
    """Those of models that are in use here, and of the file's own texts: others would be forgotten, or could be meant for notes of whoever
    imports it.
    """
    if not embedders or not file.spaces:
        return
    own = {
        hash_of_text(embedded_text(document.path, document.parsed.title, chunk.heading_path, chunk.text))
        for number in {number for version in file.versions for number, _ in version.documents}
        for document in (file.document(number),)
        for chunk in document.chunks
    }
    for number, space in enumerate(file.spaces):
        for embedder in embedders:
            if space == (embedder.name, embedder.version, embedder.dimension):
                for vectors in file.vectors(number):
                    keeper.keep(embedder, [vector for vector in vectors if vector[0] in own])
