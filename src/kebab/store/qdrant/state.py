"""What every reader and writer needs, read in one round trip: the index configuration, sizes, sources and notes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from kebab.analysis.terms import terms_of_note
from kebab.core.documents import Repository
from kebab.core.libraries import VectorSpace
from kebab.core.ports import ColumnWeights
from kebab.core.records import ContextNote
from kebab.store.qdrant.collection import Collection, Point, point_id, where
from kebab.store.qdrant.schema import META
from kebab.store.qdrant.terms import CORPORA, LIBRARIES

LIBRARY_KIND = "library"
_SIZES = point_id("sizes")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class CorpusSize(NamedTuple):
    chunks: int = 0
    tokens: int = 0
    average: float | None = None
    """The chunk length that weights are computed for; None before the first chunk."""

    @property
    def current_average(self) -> float:
        return self.tokens / self.chunks if self.chunks else 0.0


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
        payload = {**self._asdict(), "what": "source", "repository": repository, "notes": list(map(list, self.notes))}
        return {"id": point_id("source", self.name), "vector": {}, "payload": payload}

    @property
    def ordered_notes(self) -> list[ContextNote]:
        """The outermost first. The terms of a passage must not depend on when its notes were written."""
        return sorted(self.notes, key=lambda note: (len(note.folder), note.folder))


class State(NamedTuple):
    """As it was when it was read. A writer keeps it up to date."""

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

    @property
    def weights(self) -> ColumnWeights:
        """How much each column counts in the stored vectors."""
        return ColumnWeights(**self.meta.get("weights") or {})

    def is_too_new(self, payload: Mapping[str, Any]) -> bool:
        """Whether the chunk is of a library that was added after this state was read, when there was none: searches did
        not leave it out.
        """
        return payload["corpus"] == LIBRARIES and not self.has_libraries

    def notes_above(self, payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The notes on the source and folders of a document or chunk, the outermost first."""
        return tuple(note.text for note in self._notes(payload))

    def note_terms(self, payload: Mapping[str, Any], korean_analysis: str) -> str:
        """The terms that a chunk gets from the notes above it."""
        return " ".join(terms_of_note(korean_analysis, note.text) for note in self._notes(payload))

    def _notes(self, payload: Mapping[str, Any]) -> list[ContextNote]:
        source = self.sources.get(payload["source"])
        if source is None or not source.notes:
            return []
        return [note for note in source.ordered_notes if note.covers(payload["path"])]


def read_state(catalog: Collection) -> State:
    """Damaged parts are left out: `kb verify` notices what that leads to."""
    points = {point["id"]: point["payload"] for point in catalog.scroll(where("what", "meta", "sizes", "source"))}
    meta, sizes = dict(points.get(META, {})), points.get(_SIZES, {})
    if not all(_is_row(space, VectorSpace) for space in meta.get("spaces") or ()):
        del meta["spaces"]
    if "korean" not in (meta.get("fts_config") or {"korean": ""}):
        del meta["fts_config"]
    sources = [_source(payload) for payload in points.values() if payload["what"] == "source"]
    return State(
        meta,
        {corpus: CorpusSize(*_row(sizes.get(corpus), CorpusSize)) for corpus in CORPORA},
        {source.name: source for source in sorted(filter(None, sources))},
    )


def remember(catalog: Collection, state: State, **values: Any) -> None:
    """Writes values into the meta point, and into the writer's state."""
    catalog.set_payload(values, [META])
    state.meta.update(values)


def write_sizes(catalog: Collection, sizes: Mapping[str, CorpusSize]) -> None:
    payload = {"what": "sizes", **{corpus: list(size) for corpus, size in sizes.items()}}
    catalog.upsert([{"id": _SIZES, "vector": {}, "payload": payload}])


def write_source(catalog: Collection, state: State, source: StoredSource) -> None:
    catalog.upsert([source.point])
    state.sources[source.name] = source


def delete_source(catalog: Collection, state: State, name: str) -> None:
    catalog.delete([point_id("source", name)])
    state.sources.pop(name, None)


def _source(payload: Mapping[str, Any]) -> StoredSource | None:
    values: dict[str, Any] = {field: payload.get(field) for field in StoredSource._fields}
    if any(values[field] is None for field in ("name", "kind", "trust_level", "created_at")):
        return None
    repository, notes = values["repository"], values["notes"]
    values["repository"] = Repository(*repository) if _is_row(repository, Repository) else None
    values["notes"] = tuple(ContextNote(*note) for note in notes or () if _is_row(note, ContextNote))
    return StoredSource(**values)


def _row(values: Any, of: type[CorpusSize]) -> list[Any]:
    return values if _is_row(values, of) else []


def _is_row(values: Any, of: type[Repository | ContextNote | VectorSpace | CorpusSize]) -> bool:
    return isinstance(values, list) and len(values) == len(of._fields)
