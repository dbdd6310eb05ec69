"""What is small and everybody needs: how the index was built, how large it is, the sources and the notes on them. One
round trip.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kebab.analysis.derived_terms import terms_of_note
from kebab.core.documents import Repository
from kebab.core.libraries import VectorSpace
from kebab.core.ports import ColumnWeights
from kebab.core.records import ContextNote
from kebab.store.qdrant.collection import Collection, Filter, Point, point_id
from kebab.store.qdrant.schema import META
from kebab.store.qdrant.terms import CORPORA, LIBRARIES

LIBRARY_KIND = "library"
_SIZES = point_id("sizes")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def what(*kinds: str) -> Filter:
    return {"must": [{"key": "what", "match": {"any": list(kinds)}}]}


class CorpusSize(NamedTuple):
    chunks: int = 0
    tokens: int = 0
    average: float | None = None
    """What weights are computed for; None before the first chunk."""

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
        values = {**self._asdict(), "what": "source", "repository": self.repository and list(self.repository)}
        return {
            "id": point_id("source", self.name),
            "vector": {},
            "payload": {**values, "notes": [list(note) for note in self.notes]},
        }

    def notes_above(self, path: str) -> tuple[str, ...]:
        """The outermost first."""
        return tuple(note.text for note in sorted(self.notes, key=lambda note: len(note.folder)) if note.covers(path))


class State(NamedTuple):
    """As it was when it was read."""

    meta: dict[str, Any]
    sizes: dict[str, CorpusSize]
    sources: dict[str, StoredSource]

    @property
    def fts_config(self) -> dict[str, object] | None:
        """How the text index was built; None when nothing has been indexed yet."""
        return self.meta.get("fts_config")

    @property
    def korean_analysis(self) -> str | None:
        return str(self.fts_config["korean"]) if self.fts_config else None

    @property
    def has_libraries(self) -> bool:
        """Whether there may be chunks of libraries beside one's own."""
        return self.meta.get("libraries") is not False

    def is_too_new(self, payload: Mapping[str, Any]) -> bool:
        """Whether a chunk is of a library, the first of which came after this was read: searches were not told to leave
        it out.
        """
        return payload["corpus"] == LIBRARIES and not self.has_libraries

    def notes_above(self, source: str, path: str) -> tuple[str, ...]:
        known = self.sources.get(source)
        return known.notes_above(path) if known is not None and known.notes else ()

    def note_terms(self, source: str, path: str, korean_analysis: str) -> str:
        """The terms that passages of a document get from the notes above them."""
        known = self.sources.get(source)
        if known is None or not known.notes:
            return ""
        # In the order of the notes, as in every store: what a passage is analysed to must not depend on when.
        ordered = sorted(known.notes, key=lambda note: (len(note.folder), note.folder))
        return " ".join(terms_of_note(korean_analysis, note.text) for note in ordered if note.covers(path))


def stored_weights(state: State) -> ColumnWeights:
    """How much columns count in the stored vectors."""
    return ColumnWeights(**state.meta.get("weights") or {})


def read_state(catalog: Collection) -> State:
    points = {point["id"]: point["payload"] for point in catalog.scroll(what("meta", "sizes", "source"))}
    sources = [_source(payload) for payload in points.values() if payload["what"] == "source" and _is_source(payload)]
    sizes = points.get(_SIZES, {})
    return State(
        _readable(points.get(META, {})),
        {corpus: _size(sizes.get(corpus)) for corpus in CORPORA},
        {source.name: source for source in sorted(sources)},
    )


def _readable(meta: dict[str, Any]) -> dict[str, Any]:
    """What was damaged is as if nobody had said it: `kb verify` notices what that leads to."""
    damaged = set()
    if not all(_is_row(space, VectorSpace) for space in meta.get("spaces") or ()):
        damaged.add("spaces")
    if "korean" not in (meta.get("fts_config") or {"korean": ""}):
        damaged.add("fts_config")
    return {key: value for key, value in meta.items() if key not in damaged}


def remember(catalog: Collection, **values: Any) -> None:
    """In the meta point; None for what is no longer so."""
    catalog.set_payload(values, [META])


def write_sizes(catalog: Collection, sizes: Mapping[str, CorpusSize]) -> None:
    payload = {"what": "sizes", **{corpus: list(size) for corpus, size in sizes.items()}}
    catalog.upsert([{"id": _SIZES, "vector": {}, "payload": payload}])


def write_sources(catalog: Collection, sources: Iterable[StoredSource]) -> None:
    catalog.upsert([source.point for source in sources])


def delete_source(catalog: Collection, name: str) -> None:
    catalog.delete([point_id("source", name)])


def _size(values: Any) -> CorpusSize:
    """Nothing where it was damaged: `kb verify` notices, and counting again mends it."""
    return CorpusSize(*values) if isinstance(values, list) and len(values) == len(CorpusSize._fields) else CorpusSize()


def _is_source(payload: Mapping[str, Any]) -> bool:
    """Whether it can be read as one; `kb verify` finds the documents of one that was damaged without a source."""
    return all(payload.get(field) is not None for field in ("name", "kind", "trust_level", "created_at"))


def _source(payload: dict[str, Any]) -> StoredSource:
    values: dict[str, Any] = {field: payload.get(field) for field in StoredSource._fields}
    values["repository"] = Repository(*values["repository"]) if _is_row(values["repository"], Repository) else None
    notes = values["notes"] if isinstance(values["notes"], list) else ()
    values["notes"] = tuple(ContextNote(*note) for note in notes if _is_row(note, ContextNote))
    return StoredSource(**values)


def _is_row(values: Any, of: type[Repository | ContextNote | VectorSpace]) -> bool:
    return isinstance(values, list) and len(values) == len(of._fields)
