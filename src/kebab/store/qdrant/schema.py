"""What a knowledge base consists of on the server: its collections, what of their payload is indexed, and the version
of all that.

NAME.chunks      → NAME.chunks.N, an alias. A point is a chunk with its words, its vectors, and all that a hit and a
filter need NAME.documents   a point is a document, with its text NAME.terms       how many chunks have a term; and the
words that occur, for half-typed and misspelt ones NAME.catalog     everything small: sources and notes, libraries,
counts, who writes, what was begun and not finished
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from kebab.core.errors import Corrupt, NotEmpty, NotFound, TooNew, TooOld
from kebab.core.libraries import VectorSpace
from kebab.store.qdrant.client import LEAST_VERSION, Answered, Client
from kebab.store.qdrant.collection import Collection, point_id

SCHEMA = 2
WORDS = "words"
"""The sparse vector of a chunk."""
SPELLING = "spelling"
"""The sparse vector of a word: its pairs of letters."""
META = point_id("meta")
LEASE = point_id("lease")
_MAKER = point_id("maker")
"""That the catalog is ours, from its beginning to its end; `META`, that the whole is."""

REMAKE = "Restore them from snapshots; or make them anew with: kb index --rebuild-fts, and kb ingest, which reads what was lost"

_DOCUMENT_KEYWORDS = ("source", "corpus", "type", "format", "lang", "trust", "tagged", "within", "versions")
"""Of documents and of chunks: what filters ask for."""
_LOOKED_UP = {"type": "integer", "lookup": True, "range": False}
_ORDERED = {"type": "integer", "lookup": False, "range": True}
_INDEXES: dict[str, dict[str, Any]] = {
    "chunks": {
        **dict.fromkeys((*_DOCUMENT_KEYWORDS, "doc", "kind", "homes", "text_hash"), "keyword"),
        "day": _ORDERED,
        "terms": _LOOKED_UP,
    },
    "documents": {**dict.fromkeys((*_DOCUMENT_KEYWORDS, "doc", "tags", "head", "name"), "keyword"), "day": _ORDERED},
    "terms": {"begins": "keyword", "length": _ORDERED},
    "catalog": {"what": "keyword"},
}
_SPARSE = {"chunks": WORDS, "terms": SPELLING}
_TASKS_AT_ONCE = 8
_QUANTISATION: dict[str, Any] = {
    "none": None,
    "scalar": {"scalar": {"type": "int8", "always_ram": True}},
    "binary": {"binary": {"always_ram": True}},
}
_SMALL: dict[str, Any] = {"optimizers_config": {"default_segment_number": 1}, "wal_config": {"wal_capacity_mb": 4}}
"""What a collection of a few points needs."""
_SEGMENTS = 8
"""Of the chunks, in all shards together, at least. A sparse vector is put into lists that are as long as its segment
has points, and moves what follows it: with two segments, 28,000 chunks take a server 26 s of its time, and with eight
11 s.
"""


class Layout(NamedTuple):
    """How collections are spread over the servers, and how their vectors are kept."""

    shards: int = 0
    """0: as many as there are servers."""
    replicas: int = 1
    write_consistency_factor: int = 1
    quantization: str = "none"
    on_disk: bool = False


class Schema:
    """The collections of one knowledge base."""

    def __init__(
        self, client: Client, layout: Layout, *, careful: bool = True, may_write: Callable[[], None] = lambda: None
    ) -> None:
        """`careful`: what is read of the catalog is what most replicas say. Whoever only searches must get an answer
        while one lives, and quickly. Elsewhere there may be two replicas, of which most are both: then points would be
        left out that one of them has not got yet. `may_write` is asked before every change.
        """
        self._client = client
        self._layout = layout
        self._may_write = may_write
        self._name = client.address.name
        self._careful = careful
        self.chunks = self._collection(f"{self._name}.chunks")
        self.documents = self._collection(f"{self._name}.documents")
        self.terms = self._collection(f"{self._name}.terms")
        self.catalog = Collection(client, f"{self._name}.catalog", careful=careful, led=True, may_write=may_write)

    def _collection(self, name: str) -> Collection:
        return Collection(self._client, name, may_write=self._may_write)

    def for_writer(self, may_write: Callable[[], None]) -> Schema:
        """The same, for whoever may write as long as this does not raise."""
        return Schema(self._client, self._layout, careful=self._careful, may_write=may_write)

    @property
    def address(self) -> str:
        return str(self._client.address)

    @property
    def quantization(self) -> str:
        """Of the vectors in a collection that is made from now on."""
        return self._layout.quantization

    def collections(self) -> list[str]:
        """By the names that servers know."""
        return [self.chunks_collection() or self.chunks.name, self.documents.name, self.terms.name, self.catalog.name]

    # --- is it there?

    def version(self) -> int | None:
        """Of what is stored; None where there is nothing, or only what somebody began to make."""
        try:
            found = self.catalog.retrieve([META], payload=["schema"])
        except Answered as error:
            if error.status != 404:
                raise
            return None
        if not found:
            return None
        version = found[0]["payload"].get("schema")
        return version if isinstance(version, int) else 0

    def exists(self) -> bool:
        return self.version() is not None

    def missing(self) -> list[str]:
        """Of what the description says that there is."""
        names, used = set(self._names()), self.chunks_collection()
        lacking = [name for name in (self.documents.name, self.terms.name) if name not in names]
        return lacking if used in names else [self.chunks.name, *lacking]

    def lacks_parts(self) -> Corrupt | None:
        """What to say of a knowledge base that is there, and not all of it; None where there is none."""
        return self._lacks_parts() if self.exists() else None

    def _lacks_parts(self) -> Corrupt | None:
        missing = self.missing()
        return (
            Corrupt(f"Parts of {self._client.address} are missing: {', '.join(missing)}.", hint=REMAKE)
            if missing
            else None
        )

    def require(self) -> None:
        """That it is there, and of a version that is understood."""
        version = self.version()
        if version is None:
            self.check_server()
            self._refuse_undescribed()
            raise NotFound(
                f"There is no knowledge base {self._client.address}.",
                hint=f"Make one with: kb --db {self._client.address} ingest FOLDER",
                path=str(self._client.address),
            )
        if version < 1:
            self._refuse_undescribed()
        if version < SCHEMA:
            raise TooOld(
                f"{self._client.address} was written by an earlier Kebab (schema {version}, this one needs {SCHEMA}).",
                hint=f"Give it up with: kb --db {self._client.address} reset; and ingest again, or carry it over with that Kebab.",
                path=str(self._client.address),
            )
        if version > SCHEMA:
            raise TooNew(
                f"{self._client.address} was written by a newer Kebab (schema {version}, this one knows {SCHEMA}).",
                hint="Update Kebab, or use another knowledge base with --db.",
                path=str(self._client.address),
            )

    def server_version(self) -> str:
        """Of any of them. The root of a server is the one page that is not wrapped in `result`."""
        return str(self._client.get("/telemetry", details_level="0")["app"]["version"])

    def check_server(self) -> None:
        self.check_version(self.server_version())

    def check_version(self, version: str) -> None:
        if tuple(int(part) for part in version.split("-")[0].split(".")[:2]) < LEAST_VERSION:
            least = ".".join(map(str, LEAST_VERSION))
            raise TooOld(
                f"The Qdrant server is of version {version}, and {least} or later is needed.",
                hint="Update the servers, one minor version after the other.",
                path=str(self._client.address),
            )

    # --- making and changing it

    def begin(self) -> None:
        """The catalog, which the right to write is put into, with the mark that it is ours. All else is made by whoever
        has that right, so that nobody makes something while another one deletes it: the catalog comes first, and goes
        last.
        """
        self.check_server()
        self._refuse_foreign()
        self._make({self.catalog.name: "catalog"}, ())
        if not self.catalog.retrieve([_MAKER], payload=False):
            self._mark_as_ours()

    def has_begun(self) -> bool:
        """Whether there is anything of it, if only what was left of making or deleting it."""
        self._refuse_foreign()
        return self.catalog.exists()

    def take_into_use(self, *, mending: bool = False) -> None:
        """By the one who may write, where nobody has yet. The mark that it is whole comes last, so that nothing half
        made is taken for a knowledge base, and what is left of one that somebody began to delete does not come back.
        """
        if self.exists():
            self._use_again(mending=mending)
            return
        self._refuse_undescribed()
        self._make_parts()
        for collection in (self.documents, self.terms, self.chunks):
            collection.delete({"must": []})
        self.catalog.delete({"must_not": [{"key": "what", "match": {"any": ["lease", "maker"]}}]})
        self._mark_as_ours()
        facts = {"what": "meta", "schema": SCHEMA, "quantization": self.quantization, "libraries": False}
        self.catalog.upsert([{"id": META, "vector": {}, "payload": facts}])

    def _use_again(self, *, mending: bool) -> None:
        """`mending`: what is missing is made, empty, by somebody who then counts everything and has the rest read
        again. Whoever gave it up before did not come to delete anything.
        """
        if lacking := self._lacks_parts():
            if not mending:
                raise lacking
            self._make_parts()
        if self._is_given_up():
            self._mark_as_ours()

    def _make_parts(self) -> None:
        used = self.chunks_collection()
        # Without the alias, the collection that has most is the one that was used.
        found = (
            sorted((self._collection(name).count(), name) for name in self.chunks_collections()) if used is None else []
        )
        chunks = used or (found[-1][1] if found else f"{self.chunks.name}.1")
        described = self.catalog.retrieve([META], payload=["spaces"])
        spaces = [VectorSpace(*space) for point in described for space in point["payload"].get("spaces") or ()]
        self._make({chunks: "chunks", self.documents.name: "documents", self.terms.name: "terms"}, spaces)
        if used is None:
            self._point_alias(chunks)

    def drop(self) -> None:
        """The mark that it is whole goes first, so that nothing half deleted is taken for a knowledge base; the
        catalog, which has the lease, goes last.
        """
        if self.catalog.exists():
            self._mark_as_ours(given_up=True)
            self.catalog.delete([META])
        for name in (*self.chunks_collections(), self.documents.name, self.terms.name, self.catalog.name):
            self._delete(name)

    def _mark_as_ours(self, *, given_up: bool = False) -> None:
        """`given_up`: whatever is in it may be deleted, because somebody has begun to."""
        self.catalog.upsert([{"id": _MAKER, "vector": {}, "payload": {"what": "maker", "given_up": given_up}}])

    def _is_given_up(self) -> bool:
        return any(point["payload"].get("given_up") for point in self.catalog.retrieve([_MAKER]))

    def _refuse_undescribed(self) -> None:
        """Documents whose description is lost are not what is left of an interrupted reset, and must not be deleted as
        that.
        """
        if not self._is_ours(self.documents.name) or not self.documents.count():
            return
        if not self.catalog.exists():
            way_out = f"delete the collections that begin with {self._name}. on the servers"
        elif not self._is_given_up():
            way_out = f"give it up with: kb --db {self._client.address} reset"
        else:
            return
        raise Corrupt(
            f"{self._client.address} has documents, and what describes it is missing or damaged.",
            hint=f"Restore {self.catalog.name} from a snapshot; or {way_out}",
            path=str(self._client.address),
        )

    def _is_ours(self, documents: str) -> bool:
        """By what of its payload is indexed."""
        facts = self._facts(documents)
        return facts is not None and set(_INDEXES["documents"]) <= set(facts["payload_schema"])

    def _facts(self, name: str) -> dict[str, Any] | None:
        """Of a collection that may not be there."""
        try:
            return self._collection(name).facts()
        except Answered as error:
            if error.status != 404:
                raise
            return None

    def _refuse_foreign(self) -> None:
        """Somebody else's collections must not be emptied for having such a name."""
        foreign = (
            self._foreign() and self._foreign()
        )  # the first time, somebody may have been making or deleting it just then
        if foreign:
            self._refuse_undescribed()
            raise NotEmpty(
                f"There are collections on the server that are not those of a knowledge base: {', '.join(foreign)}.",
                hint=f"Choose another name than {self._name}, or delete them there.",
                path=str(self._client.address),
            )

    def _foreign(self) -> list[str]:
        """Collections, and other names of some, that are called as ours are and are not. What there is comes before the
        mark is looked for, as ours are made after it.
        """
        aliases = set(self._aliases())
        names = set(self._names())
        there = sorted(
            name
            for name in names | aliases
            if name in (self.documents.name, self.terms.name) or self._is_of_chunks(name)
        )
        renamed = sorted({self.documents.name, self.terms.name, self.catalog.name} & aliases)
        if renamed or self.catalog.name not in names:
            return renamed or ([] if self.catalog.exists() else there)
        if self.catalog.retrieve([_MAKER, META, LEASE], payload=False):
            return []
        return [
            name for name in (self.catalog.name, *there) if self._collection(name).count()
        ]  # what is empty has nothing to lose

    def chunks_collection(self) -> str | None:
        """What the alias stands for."""
        return self._aliases().get(self.chunks.name)

    def chunks_collections(self) -> list[str]:
        """All of ours; more than one while chunks are moved, or when that was interrupted."""
        named_so = (name for name in self._names() if name != self.chunks.name and self._is_of_chunks(name))
        return sorted(name for name in named_so if self._has_words(name))

    def _has_words(self, name: str) -> bool:
        """As every collection of chunks has from its beginning. What has not is somebody else's."""
        facts = self._facts(name)
        return facts is not None and WORDS in (facts["config"]["params"].get("sparse_vectors") or {})

    def _is_of_chunks(self, name: str) -> bool:
        """The alias, or what it may stand for."""
        return re.fullmatch(rf"{re.escape(self.chunks.name)}(\.\d+)?", name) is not None

    def _names(self) -> list[str]:
        """Of all collections on the servers."""
        return [str(collection["name"]) for collection in self._client.get("/collections")["collections"]]

    def _aliases(self) -> dict[str, str]:
        return {
            str(alias["alias_name"]): str(alias["collection_name"]) for alias in self._client.get("/aliases")["aliases"]
        }

    def spaces(self) -> list[str]:
        """The fingerprints of the models that chunks can have vectors of."""
        vectors = self.chunks.facts()["config"]["params"].get("vectors") or {}
        return sorted(vectors)

    def next_chunks(self, spaces: Iterable[VectorSpace]) -> Collection:
        """A collection for the same chunks with vectors of other models, empty, not in use yet."""
        self.drop_unused_chunks()  # somebody may have been interrupted
        taken = set(self._names())
        current = self.chunks_collection()
        number = int((current or ".0").rpartition(".")[2]) + 1
        name = next(free for free in (f"{self.chunks.name}.{later}" for later in count(number)) if free not in taken)
        self._make({name: "chunks"}, spaces)
        return self._collection(name)

    def use_chunks(self, collection: Collection) -> None:
        """From now on; the others go."""
        self._point_alias(collection.name)
        self.drop_unused_chunks()

    def drop_unused_chunks(self) -> None:
        """What is left of a collection that chunks were moved from, or to, until somebody was interrupted."""
        used = self.chunks_collection()
        for name in self.chunks_collections():
            if name != used:
                self._delete(name)

    def _delete(self, name: str) -> None:
        self._client.ask("DELETE", f"/collections/{name}", None, check=self._may_write)

    def _point_alias(self, name: str) -> None:
        """In one step: whoever searches meanwhile sees the one or the other."""
        create = {"create_alias": {"collection_name": name, "alias_name": self.chunks.name}}
        known = self.chunks_collection() is not None
        actions = [{"delete_alias": {"alias_name": self.chunks.name}}, create] if known else [create]
        self._client.ask("POST", "/collections/aliases", {"actions": actions}, check=self._may_write)

    def _dense(self, space: VectorSpace) -> dict[str, Any]:
        """All vectors are of length 1, so that the product is the cosine."""
        return {"size": space.dimension, "distance": "Dot", "datatype": "float16", "on_disk": self._layout.on_disk}

    def _make(self, names: Mapping[str, str], spaces: Iterable[VectorSpace]) -> None:
        """Collections by name and kind. A cluster agrees on every single thing, which takes a while, and on several at
        once as fast.
        """
        dense = {space.fingerprint: self._dense(space) for space in spaces}
        self._at_once([partial(self._make_collection, name, kind, dense) for name, kind in names.items()])
        lacking = [
            partial(self._index, name, field, form)
            for name, kind in names.items()
            for known in [Collection(self._client, name).facts()["payload_schema"]]
            for field, form in _INDEXES[kind].items()
            if field not in known
        ]
        self._at_once(lacking)

    def _make_collection(self, name: str, kind: str, dense: dict[str, Any]) -> None:
        if Collection(self._client, name).exists():
            return
        has_vectors = bool(dense) and kind == "chunks"
        sparse = _SPARSE.get(kind)
        body = {
            "vectors": dense if has_vectors else {},
            "sparse_vectors": {sparse: {"index": {"on_disk": self._layout.on_disk}}} if sparse else {},
            "replication_factor": self._replicas(kind),
            "write_consistency_factor": self._layout.write_consistency_factor,
            "on_disk_payload": True,
            **({"shard_number": self._layout.shards} if self._layout.shards else {}),
            **({"quantization_config": _QUANTISATION[self._layout.quantization]} if has_vectors else {}),
            **self._segments(kind),
        }
        try:
            self._client.ask("PUT", f"/collections/{name}", body, check=self._may_write)
        except Answered as error:
            if "already exists" not in error.said:  # or another process was faster
                raise

    def _replicas(self, kind: str) -> int:
        """Of the catalog enough that most of them live when as many servers are lost as the other collections can do
        without.
        """
        wanted = self._layout.replicas
        if kind != "catalog" or wanted == 1:
            return wanted
        return min(2 * wanted - 1, max(wanted, self._servers()))

    def _servers(self) -> int:
        return len(self._client.get("/cluster").get("peers") or {}) or 1

    def _segments(self, kind: str) -> dict[str, Any]:
        if kind != "chunks":
            return _SMALL if kind == "catalog" else {}
        shards = self._layout.shards or self._servers()
        return {"optimizers_config": {"default_segment_number": max(2, _SEGMENTS // shards)}}

    def _index(self, name: str, field: str, form: Any) -> None:
        if self._layout.on_disk:
            form = {"type": form} if isinstance(form, str) else form
            form = {**form, "on_disk": True}
        body = {"field_name": field, "field_schema": form}
        self._client.ask("PUT", f"/collections/{name}/index", body, {"wait": "true"}, check=self._may_write)

    def _at_once(self, tasks: Sequence[Callable[[], None]]) -> None:
        if not tasks:
            return
        from concurrent.futures import ThreadPoolExecutor

        def done(task: Callable[[], None]) -> None:
            try:
                task()
            finally:
                self._client.close()  # this thread's connections

        with ThreadPoolExecutor(_TASKS_AT_ONCE) as pool:
            list(pool.map(done, tasks))
