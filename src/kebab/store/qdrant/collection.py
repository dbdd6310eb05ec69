"""Reads and writes the points of one collection in batches, and makes the filters that select points."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from kebab.core.errors import Corrupt
from kebab.core.text import storable
from kebab.store.qdrant.client import LACK_S, Client, Guard, StatusError

Point = dict[str, Any]  # in the form of its JSON: id, vector, payload
Payload = dict[str, Any]
Filter = dict[str, Any]
Fields = bool | Sequence[str] | Mapping[str, Sequence[str]]  # all or none, these, or all but these ({"exclude": names})
Names = bool | Sequence[str]  # all or none, or these
PointId = str | int
Chosen = Filter | Sequence[PointId]
_Item = TypeVar("_Item")

_BATCH = 1000
_BATCH_BYTES = 4 << 20  # roughly; the server accepts 32 MB
_ALL_VALUES = 10_000_000
_TYPES: dict[str, Any] = {
    name: kind
    for names, kind in {
        "doc source path title type format lang trust date head name content_hash fingerprint encoding metadata "
        "chunker corpus chunk kind text names columns_hash text_hash what trust_level created_at library_id "
        "library tag state quantization": str,
        "root ingested_at indexed_at commit error complete_vectors migrating_from vectors_end": str | None,
        "day size line_count chunk_count ordinal start end length schema": int,
        "tags aliases within tagged versions spans headings terms homes spaces notes documents own lib": list,
        "held_spaces rules": list | None,
        "file_keys parts other_parts weights weighed_for": dict,
        "in_making libraries": bool,
        "mtime_ns snippets": int | None,
        "average": int | float,
        "fts_config": dict | None,
        "body": str | dict,
        "chunks": list | int,  # of a document, and of a term
        "repository": str | list | None,  # of a library, and of a source
    }.items()
    for name in names.split()
}  # the type of each payload field, in whatever collection it is


def one_of(key: str, values: Iterable[str]) -> Filter:
    return {"key": key, "match": {"any": [storable(value) for value in values]}}


def none_of(key: str, values: Iterable[str]) -> Filter:
    """A condition that no value matches, for a list of conditions. As `must_not` of the whole filter, Qdrant 1.16
    ignores it if the filter also has a single `must` with the same condition.
    """
    return {"must_not": [one_of(key, values)]}


def where(key: str, *values: str) -> Filter:
    """The filter for points whose field has one of these values."""
    return {"must": [one_of(key, values)]}


def point_id(*parts: str) -> str:
    """The id of the point that these parts name; a hash, so that every machine gets the same id."""
    return str(UUID(bytes=sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()[:16]))


def bare_point(identifier: PointId, **payload: Any) -> Point:
    return {"id": identifier, "vector": {}, "payload": payload}


class StoredPayload(dict[str, Any]):
    """The payload of a stored point. Reading a missing field raises Corrupt, because points are written whole."""

    def __missing__(self, key: str) -> Any:
        message = f"Something in the knowledge base is damaged: it lacks its {key!r}."
        raise Corrupt(message, hint="Find out what it is with: kb verify")


def checked(points: list[Point]) -> list[Point]:
    """Removes payload fields whose values have the wrong type, and returns the points."""
    for point in points:
        if (payload := point.get("payload")) is not None:
            for key in [key for key, value in payload.items() if not isinstance(value, _TYPES.get(key, object))]:
                del payload[key]
            point["payload"] = StoredPayload(payload)
    return points


class Collection:
    def __init__(
        self, client: Client, name: str, check: Guard, *, by_majority: bool = False, by_leader: bool = False
    ) -> None:
        """`check`: called before every write. `by_majority`: reads return what most replicas agree on. `by_leader`:
        writes go through the leader of the shard, or the server that replaces it.
        """
        self.name = name
        self._client = client
        self._path = f"/collections/{name}"
        self._by_majority = by_majority
        self._write_options = {"wait": "true", **({"ordering": "medium"} if by_leader else {})}
        self._check = check

    def exists(self) -> bool:
        return bool(self._client.ask("GET", f"{self._path}/exists")["exists"])

    def info(self) -> dict[str, Any]:
        return dict(self._client.ask("GET", self._path))

    def retrieve(self, ids: Iterable[PointId], *, payload: Fields = True, vectors: Names = False) -> list[Point]:
        """Returns those of the points with these ids that exist, in any order."""
        found: list[Point] = []
        for some in batches(ids, _BATCH):
            found += checked(self._read("points", {"ids": some, "with_payload": payload, "with_vector": vectors}))
        return found

    def scroll(
        self,
        chosen: Filter | None = None,
        *,
        payload: Fields = True,
        vectors: Names = False,
        batch: int = _BATCH,
        after: PointId | None = None,
    ) -> Iterator[Point]:
        """Yields the selected points in the order of their ids. `after`: the id behind which to begin."""
        body = {"filter": chosen, "limit": batch, "with_payload": payload, "with_vector": vectors, "offset": after}
        while True:
            page = self._read("points/scroll", body)
            yield from (point for point in checked(page["points"]) if point["id"] != after)
            if page["next_page_offset"] is None:
                return
            body["offset"] = page["next_page_offset"]

    def payloads(
        self, chosen: Filter | None = None, fields: Fields = True, *, batch: int = _BATCH
    ) -> Iterator[Payload]:
        return (point["payload"] for point in self.scroll(chosen, payload=fields, batch=batch))

    def has_any(self, chosen: Filter | None = None) -> bool:
        return any(self.scroll(chosen, payload=False, batch=1))

    def first_by(self, key: str, direction: str, chosen: Filter, limit: int, payload: Fields) -> list[Point]:
        """Returns the first points in the order ("asc" or "desc") of a number in their payload."""
        order = {"key": key, "direction": direction}
        body = {"filter": chosen, "limit": limit, "with_payload": payload, "order_by": order}
        return checked(self._read("points/scroll", body)["points"])

    def count(self, chosen: Filter | None = None) -> int:
        return int(self._read("points/count", {"filter": chosen, "exact": True})["count"])

    def values(self, key: str, chosen: Filter | None = None) -> dict[Any, int]:
        """Returns every value of an indexed field with the number of points that have it."""
        # Never by majority, because the server would add up the counts of the replicas.
        body = {"key": key, "filter": chosen, "limit": _ALL_VALUES, "exact": True}
        hits = self._client.ask("POST", f"{self._path}/facet", body)["hits"]
        return {hit["value"]: hit["count"] for hit in hits if hit["count"]}

    def query(self, *searches: Mapping[str, Any]) -> list[list[Point]]:
        """Returns the points of each search, best first. All searches are sent in one request."""
        return [checked(answer["points"]) for answer in self._read("points/query/batch", {"searches": searches})]

    def _read(self, what: str, body: Mapping[str, Any]) -> Any:
        """Reads what most replicas agree on, if set so; from one replica for LACK_S seconds after too few answered."""
        if self._by_majority and time.monotonic() > self._client.lacks_replicas_until:
            try:
                return self._client.ask("POST", f"{self._path}/{what}", body, {"consistency": "majority"})
            except StatusError as error:
                if not error.lacks_replicas:
                    raise
                self._client.lacks_replicas_until = time.monotonic() + LACK_S
        return self._client.ask("POST", f"{self._path}/{what}", body)

    def _write(self, method: str, what: str, body: Mapping[str, Any]) -> None:
        self._client.ask(method, f"{self._path}/{what}", body, self._write_options, check=self._check)

    def upsert(self, points: Iterable[Point], *, only_where: Filter | None = None) -> None:
        """Writes whole points. `only_where`: an existing point is replaced only if it passes this filter."""
        for some in _batches_by_size(points):
            self._write("PUT", "points", {"points": some, "update_filter": only_where})

    def set_payload(self, values: Mapping[str, Any], chosen: Chosen, *, within: str | None = None) -> None:
        """Sets some payload fields and keeps the others. `within`: sets fields of the object in this field instead."""
        self._write("POST", "points/payload", {"payload": values, "key": within, **_chosen(chosen)})

    def change(self, operations: Iterable[Mapping[str, Any]]) -> None:
        """Applies operations in their order, many in one request."""
        for some in batches(operations, _BATCH):
            self._write("POST", "points/batch", {"operations": some})

    def delete(self, chosen: Chosen) -> None:
        for some in [chosen] if isinstance(chosen, dict) else batches(chosen, _BATCH):
            self._write("POST", "points/delete", _chosen(some))


def _chosen(chosen: Chosen) -> dict[str, Any]:
    return {"filter": chosen} if isinstance(chosen, dict) else {"points": list(chosen)}


def batches(items: Iterable[_Item], count: int) -> Iterator[list[_Item]]:
    rest = iter(items)
    while some := list(islice(rest, count)):
        yield some


def _batches_by_size(points: Iterable[Point]) -> Iterator[list[Point]]:
    some: list[Point] = []
    size = 0
    for point in points:
        some.append(point)
        size += _size(point)
        if len(some) >= _BATCH or size >= _BATCH_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _size(point: Point) -> int:
    """A rough size of the point in bytes, from the fields that can be long."""
    payload, vectors = point.get("payload") or {}, point.get("vector") or {}
    letters = len(payload.get("text") or payload.get("body") or "")
    numbers = sum(2 * len(vector["indices"]) if "indices" in vector else len(vector) for vector in vectors.values())
    return 200 + letters + 12 * (len(payload.get("terms") or "") + numbers)
