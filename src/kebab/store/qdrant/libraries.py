"""Reading libraries and their versions.

A version is a point of the catalog. Its key is on every document and chunk it has. The catalog alone decides which keys
are searched, so that a new version replaces the old one at once, however many chunks it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kebab.core.errors import Corrupt, NotFound
from kebab.core.libraries import Library, LibraryVersion
from kebab.core.text import storable
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Collection, Payload, Point, point_id, where
from kebab.store.qdrant.schema import Schema

_FACTS = tuple(field for field in Library._fields if field != "versions")


class StoredVersion(NamedTuple):
    key: str
    library: str
    tag: str
    """Empty for the default branch."""
    in_making: bool
    source: str
    """The source of its documents, unless another version has them too."""
    commit: str | None
    state: str
    snippets: int = 0
    indexed_at: str | None = None
    error: str | None = None

    @property
    def point(self) -> Point:
        values = self._asdict()
        return {"id": values.pop("key"), "vector": {}, "payload": {"what": "version", **values}}

    @property
    def name(self) -> str:
        return f"{self.library} {self.tag}".rstrip()


def stored_versions(catalog: Collection, library_id: str | None = None) -> list[StoredVersion]:
    """The versions of a library, or of all. Damaged ones are left out: `kb verify` finds their documents."""
    found = []
    for point in catalog.scroll(where("what", "version")):
        values = {field: point["payload"].get(field) for field in StoredVersion._fields}
        version = StoredVersion(**{**values, "key": point["id"]})
        texts = (version.library, version.tag, version.source)
        if all(isinstance(text, str) for text in texts) and isinstance(version.in_making, bool):
            found.append(version)
    found = [version for version in found if library_id in (None, version.library)]
    return sorted(found, key=lambda version: (version.library, version.tag, version.in_making))


def searched_versions(catalog: Collection, library_id: str, tag: str | None) -> list[str]:
    """The keys of the complete versions. An empty id means all libraries; no tag means all versions, an empty one the
    default branch.
    """
    return [
        version.key
        for version in stored_versions(catalog, storable(library_id) or None)
        if not version.in_making and (tag is None or version.tag == storable(tag))
    ]


def library_point(library: Library, created_at: str) -> Point:
    payload = {"what": "library", "created_at": created_at, **{field: getattr(library, field) for field in _FACTS}}
    return {"id": point_id("library", library.library_id), "vector": {}, "payload": payload}


class QdrantLibraryCatalog:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def libraries(self) -> list[Library]:
        versions = _by_library(stored_versions(self._schema.catalog))
        found = self._schema.catalog.payloads(where("what", "library"))
        libraries = [_library(payload, versions) for payload in found if isinstance(payload.get("library_id"), str)]
        return sorted(libraries, key=lambda library: library.library_id)

    def find(self, library_id: str) -> Library:
        for library in self.libraries():
            if library.library_id == storable(library_id):
                return library
        raise NotFound(f"There is no library {library_id}.", hint="See what is there with: kb lib list")

    def named(self, name: str) -> list[Library]:
        return [library for library in self.libraries() if library.is_named(name)]

    def kinds_of(self, chunk_ids: Iterable[str]) -> dict[str, str]:
        points = self._schema.chunks.retrieve(map(codec.chunk_point_id, chunk_ids), payload=["chunk", "kind"])
        return {point["payload"]["chunk"]: point["payload"]["kind"] for point in points}


def _by_library(versions: Iterable[StoredVersion]) -> dict[str, list[LibraryVersion]]:
    """A complete version and its successor in the making are shown as one."""
    parts: dict[tuple[str, str], dict[bool, StoredVersion]] = {}
    for version in versions:
        parts.setdefault((version.library, version.tag), {})[version.in_making] = version
    found: dict[str, list[LibraryVersion]] = {}
    for (library, tag), both in sorted(parts.items()):
        done, making = both.get(False), both.get(True)
        state: Any = "indexed" if done else making.state if making else "pending"
        facts = (done.commit, done.snippets, done.indexed_at) if done else (None, 0, None)
        error = making.error if making else None
        found.setdefault(library, []).append(LibraryVersion(tag or None, state, *facts, error))
    return found


def _library(payload: Payload, versions: dict[str, list[LibraryVersion]]) -> Library:
    facts: dict[str, Any] = {field: payload.get(field) for field in _FACTS}
    facts["rules"] = tuple(facts["rules"] or ())
    if not isinstance(facts["origin"], str):
        message = f"The origin of {payload['library_id']} is damaged."
        raise Corrupt(message, hint="Add it again with: kb lib add ADDRESS")
    return Library(**facts, versions=tuple(versions.get(payload["library_id"], ())))
