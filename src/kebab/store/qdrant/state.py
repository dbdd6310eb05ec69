"""The small data that every reader and writer needs: index configuration, sizes, sources, notes, library versions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from kebab.analysis.terms import cjk_column, terms_of_note
from kebab.core.documents import Repository
from kebab.core.libraries import VectorSpace
from kebab.core.records import ContextNote
from kebab.core.text import storable
from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Collection, Payload, Point, bare_point, point_id, where
from kebab.store.qdrant.schema import META, Schema
from kebab.store.qdrant.terms import CORPORA, LIBRARIES

LIBRARY_KIND = "library"
SIZES = point_id("sizes")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class CorpusSize(NamedTuple):
    chunks: int = 0
    tokens: int = 0
    average: float | None = None  # the chunk length that weights are computed for; None before the first chunk


class StoredSource(NamedTuple):
    name: str
    kind: str
    root: str | None
    trust_level: str
    created_at: str
    ingested_at: str | None = None
    repository: Repository | None = None
    notes: tuple[ContextNote, ...] = ()

    @property
    def point(self) -> Point:
        repository = self.repository and list(self.repository)
        payload = {**self._asdict(), "repository": repository, "notes": list(map(list, self.notes))}
        return bare_point(point_id("source", self.name), what="source", **payload)

    @property
    def ordered_notes(self) -> list[ContextNote]:
        """The notes, outermost folder first: a chunk's terms must not depend on when its notes were written."""
        return sorted(self.notes, key=lambda note: (len(note.folder), note.folder))


class StoredVersion(NamedTuple):
    """A version of a library. Its documents and chunks list its key. The catalog decides which keys are searched."""

    key: str
    library: str
    tag: str  # empty for the default branch
    in_making: bool
    source: str  # the source of its documents; a shared document may be of another version's source
    commit: str | None
    state: str
    snippets: int = 0
    indexed_at: str | None = None
    error: str | None = None

    @property
    def point(self) -> Point:
        values = self._asdict()
        return bare_point(values.pop("key"), what="version", **values)

    @property
    def name(self) -> str:
        return f"{self.library} {self.tag}".rstrip()


class State(NamedTuple):
    """The state when it was read. A writer keeps it up to date."""

    meta: dict[str, Any]
    sizes: dict[str, CorpusSize]
    sources: dict[str, StoredSource]

    @property
    def fts_config(self) -> dict[str, object] | None:
        """How the text index was built; None if nothing has been indexed yet."""
        return self.meta.get("fts_config")

    @property
    def korean_analysis(self) -> str | None:
        return str(self.fts_config["korean"]) if self.fts_config else None

    @property
    def has_libraries(self) -> bool:
        """Whether there may be chunks of libraries."""
        return self.meta.get("libraries") is not False

    @property
    def spaces(self) -> list[VectorSpace]:
        """The vector spaces in the order in which they were added."""
        return [VectorSpace(*space) for space in self.meta.get("spaces") or ()]

    def is_too_new(self, payload: Payload) -> bool:
        """Whether the chunk is of the first library, added after this state was read: searches do not leave it out."""
        return payload["corpus"] == LIBRARIES and not self.has_libraries

    def notes_above(self, payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The notes on the source and folders of a document or chunk, the outermost first."""
        source = self.sources.get(payload["source"])
        notes = source.ordered_notes if source else ()
        return tuple(note.text for note in notes if note.covers(payload["path"]))

    def note_terms(self, payload: Mapping[str, Any], korean_analysis: str) -> str:
        """The terms that a chunk gets from the notes above it."""
        return " ".join(terms_of_note(korean_analysis, note) for note in self.notes_above(payload))

    def columns(self, chunk: Payload, korean_analysis: str) -> ChunkColumns:
        """The text-index columns of a stored chunk. `columns_of` makes the same of a chunk that is not stored yet."""
        heading_path, text, title = " > ".join(chunk["headings"]), chunk["text"], codec.title_of(chunk)
        notes, is_code = self.note_terms(chunk, korean_analysis), chunk["kind"] == "code"
        cjk = cjk_column(korean_analysis, title, heading_path, text, is_code=is_code, note_terms=notes)
        return ChunkColumns(heading_path, text, title, cjk)


class Stored:
    """Base class of the store's parts: the collections of a knowledge base, and its state."""

    def __init__(self, schema: Schema, state: State) -> None:
        self._schema = schema
        self._state = state
        self._catalog, self._documents, self._chunks = schema.catalog, schema.documents, schema.chunks

    def migrating_from(self) -> str | None:
        return self._state.meta.get("migrating_from")


def read_state(catalog: Collection) -> State:
    """Reads the state. Damaged parts are left out: `kb verify` reports the consequences."""
    points = {point["id"]: point["payload"] for point in catalog.scroll(where("what", "meta", "sizes", "source"))}
    meta, sizes = dict(points.get(META, {})), points.get(SIZES, {})
    if not all(_is_row(space, VectorSpace) for space in meta.get("spaces") or ()):
        del meta["spaces"]
    if "korean" not in (meta.get("fts_config") or {"korean": ""}):
        del meta["fts_config"]
    sources = filter(None, (_source(payload) for payload in points.values() if payload["what"] == "source"))
    read = {corpus: sizes.get(corpus) for corpus in CORPORA}
    return State(
        meta,
        {corpus: CorpusSize(*size) if _is_row(size, CorpusSize) else CorpusSize() for corpus, size in read.items()},
        {source.name: source for source in sorted(sources)},
    )


def stored_versions(
    catalog: Collection, library_id: str = "", tag: str | None = None, *, complete: bool = False
) -> list[StoredVersion]:
    """The versions of a library, or of all; with this tag (empty for the default branch), or with any. `complete`: only
    those that are searched. Damaged ones are left out: `kb verify` finds their documents.
    """
    points = catalog.scroll(where("what", "version"))
    read = (StoredVersion(point["id"], *map(point["payload"].get, StoredVersion._fields[1:])) for point in points)
    found = [version for version in read if None not in version[1:5] and not (complete and version.in_making)]
    if library_id:
        found = [version for version in found if version.library == storable(library_id)]
    if tag is not None:
        found = [version for version in found if version.tag == storable(tag)]
    return sorted(found, key=lambda version: (version.library, version.tag, version.in_making))


def _source(payload: Payload) -> StoredSource | None:
    values: dict[str, Any] = {field: payload.get(field) for field in StoredSource._fields}
    if None in map(values.get, ("name", "kind", "trust_level", "created_at")):
        return None
    repository, notes = values["repository"], values["notes"] or ()
    values["repository"] = Repository(*repository) if _is_row(repository, Repository) else None
    values["notes"] = tuple(ContextNote(*note) for note in notes if _is_row(note, ContextNote))
    return StoredSource(**values)


def _is_row(values: Any, of: type[Repository | ContextNote | VectorSpace | CorpusSize]) -> bool:
    return isinstance(values, list) and len(values) == len(of._fields)
