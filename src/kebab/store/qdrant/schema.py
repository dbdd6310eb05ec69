"""The collections of a knowledge base: creating, checking and deleting them.

NAME.chunks is an alias of NAME.chunks.N. Each point is a chunk with its words, its vectors, and all that hits and
filters need. NAME.documents has the documents with their texts. NAME.terms counts the chunks of each term and lists the
words that occur. NAME.catalog has sources, notes, libraries, sizes, the writer's lease, and unfinished changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from kebab.core.errors import Corrupt, NotEmpty, NotFound, TooNew, TooOld
from kebab.core.libraries import VectorSpace
from kebab.store.qdrant.client import Client, Guard, Missing, StatusError
from kebab.store.qdrant.collection import Collection, bare_point, point_id

if TYPE_CHECKING:
    from kebab.config.settings import StoreSettings

SCHEMA = 2
OLDEST_SERVER = (1, 16)  # the first version with conditional updates, which the writer's lease needs
WORDS = "words"  # the sparse vector of a chunk
SPELLING = "spelling"  # the sparse vector of a word: its pairs of letters
META = point_id("meta")  # describes the knowledge base; written last, deleted first: without it the rest is incomplete
LEASE = point_id("lease")
_MAKER = point_id("maker")  # marks the catalog as Kebab's, from its creation to its deletion
RESTORE = (
    "Restore them from snapshots; or make them anew with: kb index --rebuild-fts, and kb ingest, "
    "which reads what was lost"
)

_FILTERED = ("source", "corpus", "type", "format", "lang", "trust", "tagged", "within", "versions", "doc")
"""The fields of documents and chunks that filters use."""
_KEYWORD = {"type": "keyword"}
_ORDERED = {"type": "integer", "lookup": False, "range": True}
_INDEXES: dict[str, dict[str, Any]] = {
    "chunks": {
        **dict.fromkeys((*_FILTERED, "kind", "homes", "text_hash"), _KEYWORD),
        "day": _ORDERED,
        "terms": {"type": "integer", "lookup": True, "range": False},
    },
    "documents": {**dict.fromkeys((*_FILTERED, "tags", "head", "name"), _KEYWORD), "day": _ORDERED},
    "terms": {"begins": _KEYWORD, "length": _ORDERED},
    "catalog": {"what": _KEYWORD},
}
_SPARSE = {"chunks": WORDS, "terms": SPELLING}
_QUANTIZATION: dict[str, Any] = {
    "none": None,
    "scalar": {"scalar": {"type": "int8", "always_ram": True}},
    "binary": {"binary": {"always_ram": True}},
}
SEGMENTS = 8
"""The segments of the chunks, over all shards. Inserting a sparse vector is slower in large segments: 28,000 chunks
take a server 26 s with two segments, and 11 s with eight.
"""
_THREADS = 8


class Schema:
    """The collections of one knowledge base."""

    def __init__(
        self, client: Client, settings: StoreSettings, *, by_majority: bool = True, check_lease: Guard = lambda: None
    ) -> None:
        """`by_majority`: reads the catalog from most replicas; a search does not, to get a quick answer while only one
        is alive. `check_lease` is called before every change.
        """
        self._client = client
        self._settings = settings
        self._change = partial(client.ask, check=check_lease)
        self._name = client.address.name
        self.address = str(client.address)
        self.quantization = settings.quantization
        self._collection = partial(Collection, client, check=check_lease)
        self.chunks, self.documents, self.terms = (
            self._collection(f"{self._name}.{kind}") for kind in ("chunks", "documents", "terms")
        )
        self.catalog = self._collection(f"{self._name}.catalog", by_majority=by_majority, by_leader=True)

    def version(self) -> int | None:
        """The schema of the stored knowledge base; None if there is none, or only an incomplete one."""
        with suppress(Missing):
            for point in self.catalog.retrieve([META], payload=["schema"]):
                return int(point["payload"].get("schema", 0))
        return None

    def exists(self) -> bool:
        return self.version() is not None

    def missing(self) -> list[str]:
        """The names of the collections that the knowledge base lacks."""
        names = {*self._names(), *self._aliases()}
        return [each.name for each in (self.chunks, self.documents, self.terms) if each.name not in names]

    def missing_error(self) -> Corrupt | None:
        """The error for an existing knowledge base that lacks collections."""
        missing = self.exists() and self.missing()
        return Corrupt(f"Parts of {self.address} are missing: {', '.join(missing)}.", hint=RESTORE) if missing else None

    def require(self) -> None:
        """Raises unless the knowledge base exists and has the current schema."""
        version, address = self.version(), self.address
        if version is None:
            self.check_version(self.server_version())
        if not version:
            self._refuse_undescribed()
        if version is None:
            message = f"There is no knowledge base {address}."
            raise NotFound(message, hint=f"Make one with: kb --db {address} ingest FOLDER", path=address)
        if version < SCHEMA:
            message = f"{address} was written by an earlier Kebab (schema {version}, this one needs {SCHEMA})."
            hint = f"Give it up with: kb --db {address} reset; and ingest again, or carry it over with that Kebab."
            raise TooOld(message, hint=hint, path=address)
        if version > SCHEMA:
            message = f"{address} was written by a newer Kebab (schema {version}, this one knows {SCHEMA})."
            raise TooNew(message, hint="Update Kebab, or use another knowledge base with --db.", path=address)

    def server_version(self) -> str:
        return str(self._client.ask("GET", "/telemetry?details_level=0")["app"]["version"])

    def check_version(self, version: str) -> None:
        if tuple(int(part) for part in version.split("-")[0].split(".")[:2]) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            message = f"The Qdrant server is of version {version}, and {oldest} or later is needed."
            raise TooOld(message, hint="Update the servers, one minor version after the other.", path=self.address)

    def create_catalog(self) -> None:
        """Creates the catalog, which holds the lease. Only its holder creates and deletes the other collections."""
        self.check_version(self.server_version())
        self.refuse_foreign()
        self._create({self.catalog.name: "catalog"}, ())
        if not self.catalog.retrieve([_MAKER], payload=False):
            self.mark_as_ours()

    def open_for_writing(self, *, mending: bool = False) -> None:
        """Creates a knowledge base if there is none, and deletes what an interrupted reset left. Only for the holder of
        the lease. `mending`: creates missing collections, empty; the caller then counts everything again.
        """
        if self.exists():
            if error := self.missing_error():
                if not mending:
                    raise error
                self._create_parts()
            if self._is_given_up():  # by a reset that was interrupted before it deleted anything
                self.mark_as_ours()
            return
        self._refuse_undescribed()
        self._create_parts()
        for collection in (self.documents, self.terms, self.chunks):
            collection.delete({"must": []})
        self.catalog.delete({"must_not": [{"key": "what", "match": {"any": ["lease", "maker"]}}]})
        self.mark_as_ours()
        meta = {"schema": SCHEMA, "quantization": self.quantization, "libraries": False}
        self.catalog.upsert([bare_point(META, what="meta", **meta)])

    def _create_parts(self) -> None:
        used = self.current_chunks()
        # If the alias is lost, the largest collection is taken for the one in use.
        by_size = [] if used else sorted((self._collection(name).count(), name) for name in self.chunks_collections())
        chunks = used or (by_size[-1][1] if by_size else f"{self.chunks.name}.1")
        meta = self.catalog.retrieve([META], payload=["spaces"])
        spaces = [VectorSpace(*space) for point in meta for space in point["payload"].get("spaces") or ()]
        self._create({chunks: "chunks", self.documents.name: "documents", self.terms.name: "terms"}, spaces)
        if used is None:
            self.use_chunks(chunks)

    def drop(self) -> None:
        if self.catalog.exists():
            self.mark_as_ours(given_up=True)
            self.catalog.delete([META])
        for name in (*self.chunks_collections(), self.documents.name, self.terms.name, self.catalog.name):
            self._change("DELETE", f"/collections/{name}")

    def mark_as_ours(self, *, given_up: bool = False) -> None:
        """Marks the catalog as Kebab's. `given_up`: a reset has begun, so the whole knowledge base may be deleted."""
        self.catalog.upsert([bare_point(_MAKER, what="maker", given_up=given_up)])

    def _is_given_up(self) -> bool:
        return any(point["payload"].get("given_up") for point in self.catalog.retrieve([_MAKER]))

    def _refuse_undescribed(self) -> None:
        """Raises if there are documents but nothing that describes them, unless a reset has begun."""
        try:
            known = self.documents.info()["payload_schema"]
        except Missing:
            return
        if not known.keys() >= _INDEXES["documents"].keys() or not self.documents.count():
            return
        if self.catalog.exists() and self._is_given_up():
            return
        way_out = f"give it up with: kb --db {self.address} reset"
        if not self.catalog.exists():
            way_out = f"delete the collections that begin with {self._name}. on the servers"
        message = f"{self.address} has documents, and what describes it is missing or damaged."
        hint = f"Restore {self.catalog.name} from a snapshot; or {way_out}"
        raise Corrupt(message, hint=hint, path=self.address)

    def refuse_foreign(self) -> None:
        """Raises if collections that are not Kebab's have the names that this knowledge base needs."""
        foreign = self._foreign() and self._foreign()  # twice, because another process may be creating or deleting
        if foreign:
            self._refuse_undescribed()
            message = "There are collections on the server that are not those of a knowledge base"
            hint = f"Choose another name than {self._name}, or delete them there."
            raise NotEmpty(f"{message}: {', '.join(foreign)}.", hint=hint, path=self.address)

    def _foreign(self) -> list[str]:
        """The collections that have Kebab's names and are not Kebab's."""
        # Listed before the catalog's mark is looked for, because Kebab creates its collections after the mark.
        aliases, names = set(self._aliases()), self._names()
        fixed = {self.documents.name, self.terms.name}
        there = sorted(name for name in names | aliases if name in fixed or self._is_chunks_name(name))
        if renamed := sorted((fixed | {self.catalog.name}) & aliases):
            return renamed
        if self.catalog.name not in names:
            return [] if self.catalog.exists() else there
        if self.catalog.retrieve([_MAKER, META, LEASE], payload=False):
            return []
        return [name for name in (self.catalog.name, *there) if self._collection(name).count()]

    def current_chunks(self) -> str | None:
        """The name of the collection behind the alias of the chunks, or None."""
        return self._aliases().get(self.chunks.name)

    def chunks_collections(self) -> list[str]:
        """The names of all collections of chunks: several while chunks are moved, or after that was interrupted."""
        found = []
        for name in sorted(self._names()):
            with suppress(Missing):
                if name != self.chunks.name and self._is_chunks_name(name):
                    params = self._collection(name).info()["config"]["params"]
                    found += [name] if WORDS in (params.get("sparse_vectors") or {}) else []
        return found

    def spaces(self) -> dict[str, Any]:
        """The vectors that the collection of chunks can hold: name → size and distance."""
        return dict(self.chunks.info()["config"]["params"].get("vectors") or {})

    def create_next_chunks(self, spaces: Iterable[VectorSpace]) -> Collection:
        """Creates and returns an empty collection of chunks with these vector spaces. It is not in use yet."""
        self.drop_unused_chunks()
        taken = self._names()
        number = int((self.current_chunks() or ".0").rpartition(".")[2]) + 1
        name = next(free for free in (f"{self.chunks.name}.{later}" for later in count(number)) if free not in taken)
        self._create({name: "chunks"}, spaces)
        return self._collection(name)

    def unused_chunks(self) -> list[str]:
        """The names of collections of chunks that an interrupted move left."""
        used = self.current_chunks()
        return [name for name in self.chunks_collections() if name != used]

    def drop_unused_chunks(self) -> None:
        for name in self.unused_chunks():
            self._change("DELETE", f"/collections/{name}")

    def use_chunks(self, name: str) -> None:
        """Points the alias to this collection. One request does it, so a search sees the old or the new one."""
        actions: list[Any] = [{"create_alias": {"collection_name": name, "alias_name": self.chunks.name}}]
        if self.current_chunks() is not None:
            actions.insert(0, {"delete_alias": {"alias_name": self.chunks.name}})
        self._change("POST", "/collections/aliases", {"actions": actions})

    def _is_chunks_name(self, name: str) -> bool:
        return re.fullmatch(rf"{re.escape(self.chunks.name)}(\.\d+)?", name) is not None

    def _names(self) -> set[str]:
        return {str(collection["name"]) for collection in self._client.ask("GET", "/collections")["collections"]}

    def _aliases(self) -> dict[str, str]:
        return {each["alias_name"]: each["collection_name"] for each in self._client.ask("GET", "/aliases")["aliases"]}

    def _create(self, kinds: Mapping[str, str], spaces: Iterable[VectorSpace]) -> None:
        """Creates collections (name → kind) with their indexes, several at a time: that takes no longer than one."""
        spaces = list(spaces)
        servers = len(self._client.ask("GET", "/cluster").get("peers") or {}) or 1
        on_disk = {"on_disk": self._settings.on_disk}
        with ThreadPoolExecutor(_THREADS) as pool:
            bodies = [self._collection_body(kind, spaces, servers) for kind in kinds.values()]
            list(pool.map(self._create_collection, kinds, bodies))
            lacking = [
                (f"/collections/{name}/index", {"field_name": field, "field_schema": {**form, **on_disk}})
                for name, kind in kinds.items()
                for known in [self._collection(name).info()["payload_schema"]]
                for field, form in _INDEXES[kind].items()
                if field not in known
            ]
            list(pool.map(lambda index: self._change("PUT", index[0], index[1], {"wait": "true"}), lacking))

    def _collection_body(self, kind: str, spaces: list[VectorSpace], servers: int) -> dict[str, Any]:
        on_disk, replicas, shards = self._settings.on_disk, self._settings.replicas, self._settings.shards
        body: dict[str, Any] = {
            "vectors": {},
            "sparse_vectors": {_SPARSE[kind]: {"index": {"on_disk": on_disk}}} if kind in _SPARSE else {},
            "replication_factor": replicas,
            "write_consistency_factor": self._settings.write_consistency_factor,
            "on_disk_payload": True,
        }
        if shards:
            body["shard_number"] = shards
        if kind == "chunks":
            body["optimizers_config"] = {"default_segment_number": max(2, SEGMENTS // (shards or servers))}
            # All vectors have length 1, so that the product is the cosine.
            form = {"distance": "Dot", "datatype": "float16", "on_disk": on_disk}
            body["vectors"] = {space.fingerprint: {"size": space.dimension, **form} for space in spaces}
            if spaces:
                body["quantization_config"] = _QUANTIZATION[self._settings.quantization]
        if kind == "catalog":
            body |= {"optimizers_config": {"default_segment_number": 1}, "wal_config": {"wal_capacity_mb": 4}}
            if replicas > 1:  # a majority is left after the loss of as many servers as other collections bear
                body["replication_factor"] = min(2 * replicas - 1, max(replicas, servers))
        return body

    def _create_collection(self, name: str, body: dict[str, Any]) -> None:
        try:
            self._change("PUT", f"/collections/{name}", body)
        except StatusError as error:
            if "already exists" not in error.message:
                raise
