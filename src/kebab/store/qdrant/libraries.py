"""Reading what is known of libraries and their versions.

A version is a point of the catalog, and its key stands on every document and chunk it has. Which keys are searched is
decided in the catalog alone: so a new version takes the place of the old one at once, however many chunks it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kebab.core.errors import Corrupt, NotFound
from kebab.core.libraries import Library, LibraryVersion
from kebab.core.text import storable
from kebab.store.qdrant.collection import Collection, Point, point_id
from kebab.store.qdrant.index_writer import chunk_point_id
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import what

FACTS = tuple(field for field in Library._fields if field != "versions")


class StoredVersion(NamedTuple):
    key: str
    library: str
    tag: str
    """Empty for the default branch."""
    in_making: bool
    source: str
    """The name of the source that its documents belong to, as far as no other version has them."""
    commit: str | None
    state: str
    snippets: int = 0
    indexed_at: str | None = None
    error: str | None = None

    @property
    def point(self) -> Point:
        values = self._asdict()
        return {"id": values.pop("key"), "vector": {}, "payload": {"what": "version", **values}}


def stored_versions(catalog: Collection, library_id: str | None = None) -> list[StoredVersion]:
    """Of a library, or of all."""
    found = []
    for point in catalog.scroll(what("version")):
        values = {field: point["payload"].get(field) for field in StoredVersion._fields}
        version = StoredVersion(**{**values, "key": point["id"]})
        # One that was damaged is none: `kb verify` finds its documents without a version.
        texts = (version.library, version.tag, version.source)
        is_readable = all(isinstance(text, str) for text in texts) and isinstance(version.in_making, bool)
        if is_readable and (library_id is None or version.library == library_id):
            found.append(version)
    return sorted(found, key=lambda version: (version.library, version.tag, version.in_making))


def searched_versions(catalog: Collection, library_id: str, tag: str | None) -> list[str]:
    """The keys of those that may answer. An empty id means all libraries; no tag means all versions, an empty one the
    default branch.
    """
    return [
        version.key
        for version in stored_versions(catalog, storable(library_id) or None)
        if not version.in_making and (tag is None or version.tag == storable(tag))
    ]


def library_point(library: Library, created_at: str) -> Point:
    payload = {"what": "library", "created_at": created_at, **{field: getattr(library, field) for field in FACTS}}
    return {"id": point_id("library", library.library_id), "vector": {}, "payload": payload}


class QdrantLibraryCatalog:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def libraries(self) -> list[Library]:
        versions = _by_library(stored_versions(self._schema.catalog))
        found = [
            point["payload"]
            for point in self._schema.catalog.scroll(what("library"))
            if isinstance(point["payload"].get("library_id"), str)
        ]
        return sorted((_library(payload, versions) for payload in found), key=lambda library: library.library_id)

    def find(self, library_id: str) -> Library:
        for library in self.libraries():
            if library.library_id == storable(library_id):
                return library
        raise NotFound(f"There is no library {library_id}.", hint="See what is there with: kb lib list")

    def named(self, name: str) -> list[Library]:
        return [library for library in self.libraries() if library.is_named(name)]

    def kinds_of(self, chunk_ids: Iterable[str]) -> dict[str, str]:
        points = self._schema.chunks.retrieve(map(chunk_point_id, chunk_ids), payload=["chunk", "kind"])
        return {point["payload"]["chunk"]: point["payload"]["kind"] for point in points}


def _by_library(versions: Iterable[StoredVersion]) -> dict[str, list[LibraryVersion]]:
    """What is searched and what is being made are one version to whoever asks."""
    parts: dict[tuple[str, str], dict[bool, StoredVersion]] = {}
    for version in versions:
        parts.setdefault((version.library, version.tag), {})[version.in_making] = version
    found: dict[str, list[LibraryVersion]] = {}
    for (library, tag), both in sorted(parts.items()):
        done, making = both.get(False), both.get(True)
        found.setdefault(library, []).append(
            LibraryVersion(
                name=tag or None,
                state="indexed" if done else making.state if making else "pending",  # type: ignore[arg-type]
                commit=done.commit if done else None,
                snippets=done.snippets if done else 0,
                indexed_at=done.indexed_at if done else None,
                error=making.error if making else None,
            )
        )
    return found


def _library(payload: dict[str, Any], versions: dict[str, list[LibraryVersion]]) -> Library:
    facts: dict[str, Any] = {field: payload.get(field) for field in FACTS}
    facts["rules"] = tuple(facts["rules"] or ())
    if not isinstance(facts["origin"], str):
        raise Corrupt(
            f"The origin of {payload['library_id']} is damaged.", hint="Add it again with: kb lib add ADDRESS"
        )
    return Library(**facts, versions=tuple(versions.get(payload["library_id"], ())))
