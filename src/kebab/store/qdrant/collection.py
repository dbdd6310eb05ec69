"""One collection of points: reading and writing it, a sensible number of points at a time. A point is what its JSON is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from kebab.core.errors import Corrupt
from kebab.store.qdrant.client import Answered, Client, lacks_replicas

Point = dict[str, Any]
Filter = dict[str, Any]
Fields = bool | Sequence[str] | Mapping[str, Sequence[str]]
"""Of the payload: all, these, or all but some."""
PointId = str | int
_Item = TypeVar("_Item")

_AT_ONCE = 1000
"""Points in one request."""
_MOST_BYTES = 4 << 20
"""About; the server takes 32 MB."""
_ALL_VALUES = 10_000_000
_KINDS: dict[str, Any] = {
    **dict.fromkeys(
        "doc source path title type format lang trust date head name content_hash fingerprint encoding metadata chunker corpus mark chunk"
        " kind text names columns_hash text_hash what trust_level created_at library_id library tag state quantization".split(),
        str,
    ),
    **dict.fromkeys(
        "root ingested_at indexed_at commit error model complete_vectors migrating_from".split(), str | None
    ),
    **dict.fromkeys("day size line_count chunk_count ordinal start end length schema at".split(), int),
    **dict.fromkeys(
        "tags aliases within tagged versions spans headings terms homes spaces notes documents own lib".split(), list
    ),
    **dict.fromkeys("held_spaces rules".split(), list | None),
    **dict.fromkeys("file_keys parts other_parts weights weighed_for".split(), dict),
    **dict.fromkeys("in_making libraries words_only".split(), bool),
    "mtime_ns": int | None,
    "snippets": int | None,
    "average": int | float,
    "fts_config": dict | None,
    "body": str | dict,
    "chunks": list | int,  # of a document, and of a term
    "repository": str | list | None,  # of a library, and of a source
}
"""Of what is stored, wherever it is."""


def point_id(*parts: str) -> str:
    """The same for the same parts, on every machine."""
    return str(UUID(bytes=sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()[:16]))


class StoredPayload(dict[str, Any]):
    """What a point says. Points are written whole: where something is missing that somebody needs, it was damaged."""

    def __missing__(self, key: str) -> Any:
        raise Corrupt(
            f"Something in the knowledge base is damaged: it lacks its {key!r}.",
            hint="Find out what it is with: kb verify",
        )


def _as_stored(points: list[Point]) -> list[Point]:
    """What is of another kind than it was written as, is missing."""
    for point in points:
        payload = point.get("payload")
        if payload is not None:
            point["payload"] = StoredPayload(
                (key, value) for key, value in payload.items() if isinstance(value, _KINDS.get(key, object))
            )
    return points


class Collection:
    def __init__(
        self,
        client: Client,
        name: str,
        *,
        careful: bool = False,
        led: bool = False,
        may_write: Callable[[], None] = lambda: None,
    ) -> None:
        """`careful`: what is read is what most replicas say. `led`: what is written goes through one leader of the
        shard. With strong ordering that would be the same server for ever, and nobody could write while it is away;
        with medium another one takes its place. `may_write` is asked before everything that is sent to be written, and
        raises where it must not be.
        """
        self.name = name
        self._client = client
        self._path = f"/collections/{name}"
        self._reading = {"consistency": "majority"} if careful else {}
        self._writing = {"wait": "true", **({"ordering": "medium"} if led else {})}
        self._may_write = may_write

    # --- reading

    def exists(self) -> bool:
        return bool(self._client.get(f"{self._path}/exists")["exists"])

    def facts(self) -> dict[str, Any]:
        """What the server tells of it."""
        return dict(self._client.get(self._path))

    def retrieve(
        self, ids: Iterable[PointId], *, payload: Fields = True, vectors: bool | Sequence[str] = False
    ) -> list[Point]:
        """What is there of these, in no order."""
        found: list[Point] = []
        for some in batches(ids, _AT_ONCE):
            found += _as_stored(self._read("points", _of_points(some, payload, vectors)))
        return found

    def begin_to_retrieve(self, ids: Sequence[PointId], *, payload: Fields = True) -> Callable[[], list[Point] | None]:
        """Of a few; see `Client.begin`."""
        answer = self._client.begin(f"{self._path}/points", _of_points(ids, payload))

        def read() -> list[Point] | None:
            found = answer()
            return None if found is None else _as_stored(found)

        return read

    def scroll(
        self,
        chosen: Filter | None = None,
        *,
        payload: Fields = True,
        vectors: bool | Sequence[str] = False,
        at_once: int = _AT_ONCE,
        after: PointId | None = None,
    ) -> Iterator[Point]:
        """All of them in the order of their ids; `after`: from behind this one."""
        body = {"filter": chosen, "limit": at_once, "with_payload": payload, "with_vector": vectors, "offset": after}
        while True:
            page = self._read("points/scroll", body)
            yield from (point for point in _as_stored(page["points"]) if point["id"] != after)
            if page["next_page_offset"] is None:
                return
            body["offset"] = page["next_page_offset"]

    def in_order(
        self, key: str, chosen: Filter | None, *, descending: bool, limit: int, payload: Fields = True
    ) -> list[Point]:
        """The first ones by a number in their payload."""
        order = {"key": key, "direction": "desc" if descending else "asc"}
        body = {"filter": chosen, "limit": limit, "with_payload": payload, "order_by": order}
        return _as_stored(self._read("points/scroll", body)["points"])

    def count(self, chosen: Filter | None = None) -> int:
        return int(self._read("points/count", {"filter": chosen, "exact": True})["count"])

    def values(self, key: str, chosen: Filter | None = None) -> dict[Any, int]:
        """Every value that an indexed part of the payload has, with the number of points that have it. Never asked of
        most replicas: the server then adds up what each of them says.
        """
        body = {"key": key, "filter": chosen, "limit": _ALL_VALUES, "exact": True}
        return {
            hit["value"]: hit["count"] for hit in self._client.post(f"{self._path}/facet", body)["hits"] if hit["count"]
        }

    def query(self, *searches: Mapping[str, Any]) -> list[list[Point]]:
        """The points of each search, best first, in one round trip."""
        return [_as_stored(answer["points"]) for answer in self._read("points/query/batch", {"searches": searches})]

    def begin_to_query(self, *searches: Mapping[str, Any]) -> Callable[[], list[list[Point]]]:
        """Sends it; what it returns waits for the answer, and asks in the ordinary way where none came."""
        answer = self._client.begin(f"{self._path}/points/query/batch", {"searches": searches})

        def read() -> list[list[Point]]:
            found = answer()
            return self.query(*searches) if found is None else [_as_stored(each["points"]) for each in found]

        return read

    def _read(self, what: str, body: Mapping[str, Any]) -> Any:
        """Of two replicas most are both: with one of them gone, the other one's word is taken, and for a while at once,
        because servers wait long for one that hangs.
        """
        if self._reading and not self._client.lacks_replicas:
            try:
                return self._client.post(f"{self._path}/{what}", body, **self._reading)
            except Answered as error:
                if not lacks_replicas(error):
                    raise
                self._client.remember_lack()
        return self._client.post(f"{self._path}/{what}", body)

    # --- writing

    def _write(self, method: str, what: str, body: Mapping[str, Any]) -> None:
        self._client.ask(method, f"{self._path}/{what}", body, self._writing, check=self._may_write)

    def upsert(self, points: Iterable[Point], *, only_where: Filter | None = None) -> None:
        """`only_where`: a point that is there already is replaced only if it passes."""
        for some in _portions(points):
            body: dict[str, Any] = {"points": some}
            if only_where is not None:
                body["update_filter"] = only_where
            self._write("PUT", "points", body)

    def set_payload(
        self,
        values: Mapping[str, Any],
        chosen: Filter | Sequence[PointId],
        *,
        replacing: bool = False,
        within: str | None = None,
    ) -> None:
        """Of the points that are chosen by a filter or by their ids; `replacing`: nothing else stays of the payload;
        `within`: of what is there under this key.
        """
        body = {"payload": values, **_chosen(chosen), **({"key": within} if within else {})}
        self._write("PUT" if replacing else "POST", "points/payload", body)

    def delete_payload(self, keys: Sequence[str], chosen: Filter | Sequence[PointId]) -> None:
        self._write("POST", "points/payload/delete", {"keys": keys, **_chosen(chosen)})

    def set_vectors(self, points: Iterable[Point]) -> None:
        """Id and vectors; other vectors of a point stay. Points that are gone are left out."""
        for some in _portions(points):
            try:
                self._write("PUT", "points/vectors", {"points": some})
            except Answered as error:
                if error.status != 404:
                    raise
                there = {point["id"] for point in self.retrieve([point["id"] for point in some], payload=False)}
                left = [point for point in some if point["id"] in there]
                if left:
                    self._write("PUT", "points/vectors", {"points": left})

    def delete_vectors(self, names: Sequence[str], chosen: Filter | Sequence[PointId]) -> None:
        self._write("POST", "points/vectors/delete", {"vector": names, **_chosen(chosen)})

    def change(self, operations: Sequence[Mapping[str, Any]]) -> None:
        """Several changes in one request, in their order."""
        for some in batches(operations, _AT_ONCE):
            self._write("POST", "points/batch", {"operations": some})

    def delete(self, chosen: Filter | Sequence[PointId]) -> None:
        if isinstance(chosen, dict):
            self._write("POST", "points/delete", {"filter": chosen})
            return
        for some in batches(chosen, _AT_ONCE):
            self._write("POST", "points/delete", {"points": some})


def _of_points(ids: Sequence[PointId], payload: Fields, vectors: bool | Sequence[str] = False) -> dict[str, Any]:
    return {"ids": ids, "with_payload": payload, "with_vector": vectors}


def _chosen(chosen: Filter | Sequence[PointId]) -> dict[str, Any]:
    return {"filter": chosen} if isinstance(chosen, dict) else {"points": list(chosen)}


def _portions(points: Iterable[Point]) -> Iterator[list[Point]]:
    some: list[Point] = []
    size = 0
    for point in points:
        some.append(point)
        size += _size(point)
        if len(some) >= _AT_ONCE or size >= _MOST_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _size(point: Point) -> int:
    """About, of what can be long in it: texts and vectors. Points without either are small."""
    payload, vectors = point.get("payload"), point.get("vector")
    text = (
        200 + len(payload.get("text") or payload.get("body") or "") + 12 * len(payload.get("terms") or "")
        if payload
        else 0
    )
    numbers = (
        sum(2 * len(vector["indices"]) if "indices" in vector else len(vector) for vector in vectors.values())
        if vectors
        else 0
    )
    return text + 12 * numbers


def batches(items: Iterable[_Item], at_once: int) -> Iterator[list[_Item]]:
    rest = iter(items)
    while some := list(islice(rest, at_once)):
        yield some
