"""A library between the store and a file: `kb lib export`, and `kb lib add` of what it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.core.documents import embedded_text
from kebab.core.errors import NotFound, SourceError
from kebab.core.libraries import Library
from kebab.core.ports import Embedder, IndexedDocument
from kebab.ingest.embedding import hash_of_text
from kebab.library.indexing import library_document_id
from kebab.library.library_file import FileVersion, LibraryContents, LibraryFile, write_library_file
from kebab.library.version_writer import VersionMaker, WantedFile

if TYPE_CHECKING:
    from kebab.core.library_ports import LibraryReader
    from kebab.core.store_ports import VectorWriter

_FROM_FILE = "from a file"
"""The fingerprint of documents that were read by somebody else: they are read again when the library comes from its
repository.
"""


def export_library(library: Library, reader: LibraryReader, path: Path) -> int:
    """How many documents it has."""
    entries = reader.version_documents()
    if not entries:
        raise NotFound(
            f"Nothing of {library.library_id} is indexed yet.",
            hint=f"Index it with: kb lib refresh {library.library_id}",
        )
    keys = list(dict.fromkeys(entry.document for entry in entries))
    numbers = {key: number for number, key in enumerate(keys)}
    versions = dict.fromkeys((entry.tag, entry.commit) for entry in entries)
    contents = LibraryContents(
        library,
        tuple(
            FileVersion(
                tag, commit, tuple((numbers[entry.document], entry.file_key) for entry in entries if entry.tag == tag)
            )
            for tag, commit in versions
        ),
        map(reader.document, keys),
        ((space, reader.vectors(space)) for space in reader.spaces()),
    )
    write_library_file(path, contents)
    return len(keys)


def import_version(file: LibraryFile, version: FileVersion, library_id: str, maker: VersionMaker) -> int:
    """How many snippets it has."""
    numbers: dict[str, int] = {}
    wanted = []
    for number, _ in version.documents:
        document = file.document(number)
        if document.path in numbers:
            raise SourceError(
                f"Two documents of one version in this file are called {document.path}.",
                hint="Make it again: kb lib export",
            )
        numbers[document.path] = number
        wanted.append(WantedFile(document.path, _key(document), _FROM_FILE))

    def document_of(entry: WantedFile, source: str) -> IndexedDocument:
        document = file.document(numbers[entry.path])
        doc_id = library_document_id(library_id, document.path, entry.key)
        return document._replace(source=source, doc_id=doc_id, state=document.state._replace(fingerprint=_FROM_FILE))

    return maker.make(library_id, version.tag, version.commit, wanted, document_of)


def _key(document: IndexedDocument) -> str:
    """Of what the file says, not what it claims: only the very same is known, and never for a file of the repository
    itself.
    """
    chunks = [(chunk.start, chunk.end, chunk.kind, chunk.heading_path, chunk.spans) for chunk in document.chunks]
    return sha256(
        repr((_FROM_FILE, document.path, document.parsed, chunks)).encode("utf-8", "surrogatepass")
    ).hexdigest()


def import_vectors(file: LibraryFile, embedders: Sequence[Embedder], keeper: VectorWriter) -> None:
    """Those of models that are in use here, and of the file's own texts: others would be forgotten, or could be meant
    for notes of whoever imports it.
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
