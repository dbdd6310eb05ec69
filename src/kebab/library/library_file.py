"""One library in one file, to carry to another machine: a zip archive with its documents and vectors.

    library.json            the library, and which documents each version has
    documents/0.json …      text and passages; a document of several versions is stored once
    vectors/0.bin …         one file per model: for each text its hash and its vector

The reader checks every range, line and name. A version is imported whole or not at all.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.addresses import shown_address
from kebab.core.citations import SPAN_KINDS, CodeSpan, LineSpan, Span, span_kind
from kebab.core.documents import Chunk, ParsedDocument, bounded, embedded_text
from kebab.core.errors import NotFound, SourceError, file_errors
from kebab.core.files import open_file
from kebab.core.libraries import SNIPPET_KINDS, Library, VectorSpace
from kebab.core.ports import Embedder, FileState, IndexedDocument
from kebab.core.text import count_lines, one_line, whole_characters
from kebab.ingest.embedding import hash_of_text
from kebab.library.version_writer import VersionMaker, WantedFile, library_document_id
from kebab.sources.git_mirror import checked_ref, checked_url
from kebab.sources.origin import DAMAGED, path_inside

if TYPE_CHECKING:
    from kebab.core.store_ports import ContentReader, VectorWriter

FORMAT = "kebab.library.v1"
_ABOUT = "library.json"
_ABOUT_LIBRARY = ("library_id", "title", "description", "repository", "stars", "trust_score", "rules")
"""Without `origin`, because that may be a folder of this machine."""
FROM_FILE = "from a file"
"""The fingerprint of documents that another machine parsed. They are parsed again when the library is added from its
repository.
"""
_MOST_BYTES = 256 << 20
"""Limit for one member of the archive."""
_MOST_IN_ALL = 8 << 30
_MOST_DOCUMENTS = 500_000
_MOST_STARS = 10**9
_MOST_RULES = 100
_MOST_CHARACTERS = 1000
_HASH_BYTES = 16
_TEXTS, _LISTS = ("doc_type", "format", "lang"), ("tags", "aliases")
"""Fields of a parsed document that are texts, and those that are lists of texts."""
_VECTORS_AT_ONCE = 4096


class FileVersion(NamedTuple):
    tag: str | None
    commit: str | None
    documents: tuple[tuple[int, str], ...]
    """Number of each document, and the key of its file."""


# --- writing


def write_library_file(
    path: Path,
    library: Library,
    versions: Sequence[FileVersion],
    documents: Iterable[IndexedDocument],
    vectors: Iterable[tuple[VectorSpace, Iterable[tuple[bytes, bytes]]]],
) -> None:
    """Writes a library file, first under a temporary name, so that a file at `path` is always complete.

    `documents` are in the order of the numbers in `FileVersion.documents`. `vectors` has for each model the hash of
    every embedded text, and its vector as bytes of float16.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with file_errors(path, "cannot be written", "Name another place for the file."):
            unfinished.unlink(missing_ok=True)
            with open_file(unfinished, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                spaces = []
                for number, document in enumerate(documents):
                    _put(archive, f"documents/{number}.json", _document_json(document))
                for number, (space, embedded) in enumerate(vectors):
                    spaces.append(space._asdict())
                    with archive.open(_member(f"vectors/{number}.bin"), "w") as member:
                        member.writelines(text_hash + vector for text_hash, vector in embedded)
                about = {
                    "format": FORMAT,
                    **{name: getattr(library, name) for name in _ABOUT_LIBRARY},
                    "versions": [version._asdict() for version in versions],
                    "vectors": spaces,
                }
                _put(archive, _ABOUT, about)
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _document_json(document: IndexedDocument) -> dict[str, Any]:
    parsed, state = document.parsed, document.state
    return {
        "path": document.path,
        **{name: getattr(parsed, name) for name in ("title", *_TEXTS, *_LISTS, "metadata", "encoding", "text")},
        **{name: getattr(document, name) for name in ("date", "trust_level", "chunker_version")},
        **{name: getattr(state, name) for name in ("size", "content_hash", "fingerprint")},
        "chunks": [
            {
                "start": chunk.start,
                "end": chunk.end,
                "kind": chunk.kind,
                "headings": chunk.heading_path,
                "spans": [[span_kind(span), *span] for span in chunk.spans],
            }
            for chunk in document.chunks
        ],
    }


def _put(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    archive.writestr(
        _member(name), json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    )


def _member(name: str) -> zipfile.ZipInfo:
    """An archive member with a fixed time, so that the same library gives the same file."""
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


# --- reading


def is_library_file(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return _ABOUT in archive.namelist() and FORMAT.encode() in archive.open(_ABOUT).read(200)
    except DAMAGED:
        return False


class LibraryFile:
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self._left = _MOST_IN_ALL
        about = self._json(_ABOUT)
        with self._checked():
            if about["format"] != FORMAT:
                raise ValueError(f"its format is {about['format']!r}")
            self.library_id = _text(about["library_id"])
            self.title = _line(about["title"])
            self.description = _line(about["description"])
            place = about["repository"]
            self.repository = None if place is None else shown_address(checked_url(_line(place)))
            self.stars = None if about["stars"] is None else _number(about["stars"], _MOST_STARS)
            self.trust_score = _trust(about["trust_score"])
            self.rules = tuple(_line(rule) for rule in about["rules"][:_MOST_RULES])
            self.versions = tuple(_version(version) for version in about["versions"])
            self.spaces = tuple(_space(space) for space in about["vectors"])
            tags = [version.tag for version in self.versions]
            if not tags or tags[0] is not None or None in tags[1:] or len(set(tags)) < len(tags):
                raise ValueError("its versions are not one default version and others with names of their own")

    def document(self, number: int) -> IndexedDocument:
        """The document with this number, without a source and an id."""
        found = self._json(f"documents/{number}.json")
        with self._checked():
            return _document(found)

    def vectors(self, number: int) -> Iterator[list[tuple[bytes, bytes]]]:
        """The vectors of the model with this number, each with the hash of its text, in batches."""
        space = self.spaces[number]
        size = _HASH_BYTES + 2 * space.dimension
        with self._checked(), self._archive.open(f"vectors/{number}.bin") as file:
            while part := file.read(size * _VECTORS_AT_ONCE):
                if len(part) % size:
                    raise ValueError("its vectors are cut off")
                yield [
                    (part[start : start + _HASH_BYTES], part[start + _HASH_BYTES : start + size])
                    for start in range(0, len(part), size)
                ]

    def _json(self, name: str) -> Any:
        with self._checked(), self._archive.open(name) as file:
            data = file.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise ValueError("a part of it is too large")
            self._left -= len(data)
            if self._left < 0:
                raise ValueError("it is too large")
            found = json.loads(data.decode("utf-8", "surrogatepass"))
            if not isinstance(found, dict):
                raise ValueError(f"{name} is not what it should be")
            return found

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except (*DAMAGED, KeyError, TypeError, IndexError) as error:
            raise _damaged(self._path, error) from error
        except SourceError as error:
            if "is no whole library file" in error.message:
                raise
            raise _damaged(self._path, ValueError(error.message.rstrip("."))) from error


@contextmanager
def open_library_file(path: Path) -> Iterator[LibraryFile]:
    try:
        with file_errors(path, "cannot be read", "Check its name and permissions."):
            archive = zipfile.ZipFile(path)
    except DAMAGED as error:
        raise _damaged(path, error) from error
    with archive:
        yield LibraryFile(path, archive)


def _damaged(path: Path, error: Exception) -> SourceError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    hint = "Make it again with: kb lib export"
    return SourceError(f"{path} is no whole library file: {reason}.", hint=hint, path=str(path))


def _version(found: dict[str, Any]) -> FileVersion:
    documents = tuple((_number(number, _MOST_DOCUMENTS), _text(key)) for number, key in found["documents"])
    if not documents or len({number for number, _ in documents}) != len(documents):
        raise ValueError("a version has no document, or one twice")
    tag = None if found["tag"] is None else checked_ref(_text(found["tag"]))
    return FileVersion(tag, None if found["commit"] is None else _line(found["commit"]), documents)


def _space(found: dict[str, Any]) -> VectorSpace:
    return VectorSpace(_text(found["model"]), _text(found["version"]), _number(found["dimension"], 65_536))


def _document(found: dict[str, Any]) -> IndexedDocument:
    text = _text(found["text"])
    lines = count_lines(text)
    path = _text(found["path"])
    if path_inside(path) is None:  # a valid path is kept as it is written, because links need it
        raise ValueError("the path of a document leads elsewhere")
    chunks = [_chunk(number, chunk, text, lines) for number, chunk in enumerate(found["chunks"])]
    if not chunks:
        raise ValueError("a document has no passages")
    metadata = found["metadata"]
    fields: dict[str, Any] = {name: _text(found[name]) for name in (*_TEXTS, "encoding")}
    fields |= {name: tuple(map(_text, found[name])) for name in _LISTS}
    parsed = ParsedDocument(
        text=text,
        title=_line(found["title"]),
        blocks=(),
        **fields,
        metadata=metadata if isinstance(metadata, dict) else {},
    )
    return IndexedDocument(
        source="",
        path=path,
        state=FileState(_number(found["size"]), None, _text(found["content_hash"]), _text(found["fingerprint"])),
        parsed=bounded(parsed),
        chunks=chunks,
        chunker_version=_text(found["chunker_version"]),
        date=_text(found["date"]),
        trust_level="secondary",
    )


def _chunk(ordinal: int, found: dict[str, Any], text: str, lines: int) -> Chunk:
    start, end = _number(found["start"], len(text)), _number(found["end"], len(text))
    if start >= end or found["kind"] not in SNIPPET_KINDS:
        raise ValueError("a passage is not in its document")
    spans = tuple(_span(span, lines) for span in found["spans"])
    if not spans:
        raise ValueError("a passage does not say where it stands")
    if isinstance(spans[0], LineSpan | CodeSpan) and spans[0][0] != text.count("\n", 0, start) + 1:
        raise ValueError("a passage stands elsewhere than it says")
    headings = tuple(_line(heading) for heading in found["headings"])
    return Chunk(ordinal, start, end, text[start:end], headings, spans, found["kind"])


def _span(found: list[Any], lines: int) -> Span:
    kind, *values = found
    span = SPAN_KINDS[kind](*values)
    if any(value is not None and type(value) not in (int, str) for value in span):
        raise ValueError("a passage does not say where it stands")
    if isinstance(span, LineSpan | CodeSpan) and not 1 <= span[0] <= span[1] <= lines:
        raise ValueError("a passage stands on lines that its document does not have")
    return span


def _number(value: Any, most: int = 2**53) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not a number that fits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not a text")
    return whole_characters(value)


def _line(value: Any) -> str:
    """A text on one line, of limited length, without control characters."""
    return one_line(_text(value))[:_MOST_CHARACTERS]


def _trust(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= 10:
        raise ValueError("its trust score is not between 0 and 10")
    return float(value)


# --- between the store and a file


def export_library(library: Library, reader: ContentReader, path: Path) -> int:
    """Writes a library into a file. Returns the number of documents."""
    entries = reader.library_documents(library.library_id)
    if not entries:
        hint = f"Index it with: kb lib refresh {library.library_id}"
        raise NotFound(f"Nothing of {library.library_id} is indexed yet.", hint=hint)
    keys = list(dict.fromkeys(entry.document for entry in entries))
    numbers = {key: number for number, key in enumerate(keys)}
    versions = dict.fromkeys((entry.tag, entry.commit) for entry in entries)
    stored = [
        FileVersion(
            tag, commit, tuple((numbers[entry.document], entry.file_key) for entry in entries if entry.tag == tag)
        )
        for tag, commit in versions
    ]
    documents = (reader.documents([key])[0] for key in keys)
    vectors = ((space, reader.library_vectors(library.library_id, space)) for space in reader.spaces())
    write_library_file(path, library, stored, documents, vectors)
    return len(keys)


def import_version(file: LibraryFile, version: FileVersion, library_id: str, maker: VersionMaker) -> int:
    """Stores one version from a library file. Returns the number of snippets."""
    numbers: dict[str, int] = {}
    wanted = []
    for number, _ in version.documents:
        document = file.document(number)
        if document.path in numbers:
            hint = "Make it again: kb lib export"
            raise SourceError(f"Two documents of one version in this file are called {document.path}.", hint=hint)
        numbers[document.path] = number
        wanted.append(WantedFile(document.path, _key(document), FROM_FILE))

    def document_of(entry: WantedFile, source: str) -> IndexedDocument:
        document = file.document(numbers[entry.path])
        doc_id = library_document_id(library_id, document.path, entry.key)
        return document._replace(source=source, doc_id=doc_id, state=document.state._replace(fingerprint=FROM_FILE))

    return maker.make(library_id, version.tag, version.commit, wanted, document_of)


def _key(document: IndexedDocument) -> str:
    """A key computed from the content, since the file may claim any key. A repository's file never has the same key."""
    chunks = [(chunk.start, chunk.end, chunk.kind, chunk.heading_path, chunk.spans) for chunk in document.chunks]
    content = repr((FROM_FILE, document.path, document.parsed, chunks))
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def import_vectors(file: LibraryFile, embedders: Sequence[Embedder], keeper: VectorWriter) -> None:
    """Stores the vectors of models that are in use here, but only for texts in this file, because a file must not
    supply vectors for the user's own notes.
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
