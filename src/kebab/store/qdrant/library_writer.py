"""Writing libraries: a version is made beside the one that is searched, and takes its place when it is complete.

Documents that two versions have in common, the same bytes under the same path, are stored once. Each belongs to the
source of one of the versions that have it, and is handed on when that one goes. Which versions have a document stands
on it and on its chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import uuid4

from kebab.core.addresses import without_password
from kebab.core.libraries import DoneFile, Library, Making
from kebab.core.ports import Key
from kebab.core.text import storable
from kebab.store.qdrant.collection import Filter, Point, batches, point_id
from kebab.store.qdrant.documents import QdrantDocumentStore
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import IndexWriter, document_point_id, of_documents
from kebab.store.qdrant.libraries import StoredVersion, library_point, stored_versions
from kebab.store.qdrant.payloads import Payload
from kebab.store.qdrant.state import LIBRARY_KIND, StoredSource, delete_source, now, remember, write_sources
from kebab.store.qdrant.terms import LIBRARIES

_AT_ONCE = 500
_OF_DOCUMENT = ["doc", "path", "source", "versions", "file_keys", "fingerprint", "chunk_count"]


class QdrantLibraryWriter:
    def __init__(self, writer: IndexWriter, documents: QdrantDocumentStore) -> None:
        """`documents`: what removes those that no version has any more."""
        self._writer = writer
        self._schema = writer.schema
        self._documents = documents

    def describe(self, library: Library) -> None:
        """Adds a library, or changes what is said of it; its versions stay."""
        said = library._replace(
            title=storable(library.title),
            description=storable(library.description),
            origin=storable(without_password(library.origin)),
            rules=tuple(map(storable, library.rules)),
        )
        known = self._schema.catalog.retrieve([point_id("library", library.library_id)], payload=["created_at"])
        self._schema.catalog.upsert([library_point(said, known[0]["payload"]["created_at"] if known else now())])

    def begin(self, library_id: str, tag: str | None, commit: str | None) -> Making:
        """Goes on with what was begun."""
        version = self._making(library_id, tag)
        if version is None:
            version = self._new_making(library_id, tag, commit)
        else:
            version = version._replace(state="indexing", error=None, commit=commit)
            self._put(version)
        done = {
            payload["path"]: DoneFile(payload["doc"], payload["file_keys"][version.key], payload["fingerprint"])
            for payload in self._having(version.key)
        }
        return Making(version.key, version.source, done)

    def drop(self, making: Making, files: Iterable[DoneFile]) -> None:
        """What an earlier attempt left that is no part of the version any more, or is to be read again; and whatever
        was written and then not said to belong to it, because the run was killed in between.
        """
        key = str(making.key)
        self._change([str(file.document) for file in files], lambda payload: _without(payload, key))
        self._sweep(key, making.source)

    def known(self, library_id: str, fingerprints: Iterable[str]) -> Mapping[tuple[str, str], Key]:
        """Documents of all versions that need not be read again, by path and key of their file."""
        wanted = set(fingerprints)
        versions = [version.key for version in stored_versions(self._schema.catalog, library_id)]
        return {
            (payload["path"], file_key): payload["doc"]
            for payload in self._having(*versions)
            if payload["fingerprint"] in wanted
            for version, file_key in payload["file_keys"].items()
            if version in versions
        }

    def share(self, making: Making, documents: Sequence[tuple[Key, str]]) -> None:
        """Documents (with the key of their file) that other versions have too."""
        self.link(making, [(str(document), key) for document, key in documents])

    def link(self, making: Making, documents: Sequence[tuple[str, str]]) -> None:
        """Documents (id, key of their file) that were just written."""
        keys, version = dict(documents), str(making.key)
        self._change(list(keys), lambda payload: {**payload["file_keys"], version: keys[payload["doc"]]})

    def finish(self, making: Making, indexed_at: str | None = None) -> int:
        """Puts it in the place of the version that is searched; how many snippets it has. `indexed_at`: if not now. One
        point says which of the two that is; the old one goes afterwards.
        """
        versions = {version.key: version for version in stored_versions(self._schema.catalog)}
        version = versions[str(making.key)]
        before = [
            other
            for other in versions.values()
            if (other.library, other.tag, other.in_making) == (version.library, version.tag, False)
        ]
        snippets = sum(payload["chunk_count"] for payload in self._having(version.key))
        done = version._replace(
            in_making=False, state="indexed", error=None, snippets=snippets, indexed_at=indexed_at or now()
        )
        retired = [other._replace(in_making=True, state="retired") for other in before]
        self._schema.catalog.upsert([done.point, *(other.point for other in retired)])
        for other in retired:
            self._drop(other)
        self._rename_source(done, _source_of(done.library, done.tag))
        self._forget_unused_sources()
        remember(self._schema.catalog, complete_vectors=None)
        self._writer.state.meta["complete_vectors"] = None
        return int(snippets)

    def fail(self, library_id: str, tag: str | None, reason: str) -> None:
        """What was begun stays, to go on from; what is searched stays too."""
        version = self._making(library_id, tag) or self._new_making(library_id, tag, None)
        self._put(version._replace(state="failed", error=storable(reason)))

    def forget_attempt(self, library_id: str, tag: str | None) -> None:
        """What was begun and failed is not wanted after all; what is searched stays."""
        version = self._making(library_id, tag)
        if version is not None:
            self._drop(version)

    def remove(self, library_id: str, tag: str | None = None, *, whole: bool = True) -> None:
        """A version, or the whole library."""
        for version in stored_versions(self._schema.catalog, library_id):
            if whole or version.tag == (tag or ""):
                self._drop(version)
        if whole:
            self._schema.catalog.delete([point_id("library", library_id)])
        self._forget_unused_sources()
        self._writer.tell_of_libraries(there=self._schema.chunks.count({"must": [one_of("corpus", [LIBRARIES])]}) > 0)

    # --- versions

    def _making(self, library_id: str, tag: str | None) -> StoredVersion | None:
        """One that was retired, by somebody who was interrupted then, is not gone on with."""
        found = None
        for version in stored_versions(self._schema.catalog, library_id):
            if version.tag == (tag or "") and version.in_making:
                if version.state == "retired":
                    self._drop(version)
                else:
                    found = version
        return found

    def _new_making(self, library_id: str, tag: str | None, commit: str | None) -> StoredVersion:
        key = str(uuid4())
        source = f"{_source_of(library_id, tag)} (in the making, {key[:8]})"  # one that was searched may have kept such a name
        self._add_source(source)
        version = StoredVersion(key, library_id, tag or "", True, source, commit, "indexing")
        self._put(version)
        return version

    def _put(self, version: StoredVersion) -> None:
        self._schema.catalog.upsert([version.point])

    def _drop(self, version: StoredVersion) -> None:
        """A version, and the documents that no other one has; the others are handed on. Its documents may be of several
        sources, when somebody was interrupted while they were given another.
        """
        having = self._having(version.key)
        self._change([payload["doc"] for payload in having], lambda payload: _without(payload, version.key))
        for source in {version.source, *(payload["source"] for payload in having)}:
            if source == version.source or source not in self._sources_of_others(version.key):
                self._sweep(version.key, source)
        self._schema.catalog.delete([version.key])
        self._forget_source(version.source)

    def _sources_of_others(self, key: str) -> set[str]:
        return {version.source for version in stored_versions(self._schema.catalog) if version.key != key}

    def _forget_unused_sources(self) -> None:
        """Of versions that somebody was interrupted at."""
        used = self._sources_of_others("")
        for name, source in list(self._writer.state.sources.items()):
            unused = source.kind == LIBRARY_KIND and name not in used
            if unused and not any(
                self._schema.documents.scroll({"must": [one_of("source", [name])]}, payload=False, at_once=1)
            ):
                self._forget_source(name)

    def _rename_source(self, version: StoredVersion, name: str) -> None:
        if name == version.source:
            return
        self._add_source(name, ingested_at=version.indexed_at)
        for collection in (self._schema.chunks, self._schema.documents):
            collection.set_payload({"source": name}, {"must": [one_of("source", [version.source])]})
        self._put(version._replace(source=name))
        self._forget_source(version.source)

    def _add_source(self, name: str, ingested_at: str | None = None) -> None:
        source = StoredSource(name, LIBRARY_KIND, None, "secondary", now(), ingested_at)
        write_sources(self._schema.catalog, [source])
        self._writer.state.sources[name] = source

    def _forget_source(self, name: str) -> None:
        delete_source(self._schema.catalog, name)
        self._writer.state.sources.pop(name, None)

    # --- documents

    def _having(self, *versions: str) -> list[Payload]:
        return self._read({"must": [one_of("versions", versions)]}) if versions else []

    def _read(self, chosen: Filter) -> list[Payload]:
        return [point["payload"] for point in self._schema.documents.scroll(chosen, payload=_OF_DOCUMENT)]

    def _change(self, doc_ids: Sequence[str], new_keys: Callable[[Payload], Mapping[str, str]]) -> None:
        """Gives documents other versions, with the keys of their files in them. Chunks first when they are given one,
        so that what a document says of itself is true of its chunks.
        """
        for some in batches(doc_ids, _AT_ONCE):
            points = self._schema.documents.retrieve(map(document_point_id, some), payload=_OF_DOCUMENT)
            alike: dict[tuple[str, ...], list[str]] = {}
            changes = []
            for point in points:
                keys = dict(new_keys(point["payload"]))
                alike.setdefault(tuple(sorted(keys)), []).append(point["payload"]["doc"])
                changes.append(_facts(point, keys))
            for versions, ids in alike.items():
                self._schema.chunks.set_payload({"versions": versions}, of_documents(ids))
            self._schema.documents.change(changes)

    def _sweep(self, version: str, source: str) -> None:
        """Documents of the source that the version has not: those that another one has go to its source, the rest goes.
        So a source owns only documents of its version, and never two under one path.
        """
        source_of = {known.key: known.source for known in stored_versions(self._schema.catalog)}
        unowned: list[str] = []
        handed: dict[str, list[str]] = {}
        for payload in self._read({"must": [one_of("source", [source])], "must_not": [one_of("versions", [version])]}):
            others = [source_of[key] for key in payload["versions"] if key in source_of]
            (handed.setdefault(others[0], []) if others else unowned).append(payload["doc"])
        for name, doc_ids in handed.items():
            for some in batches(doc_ids, _AT_ONCE):
                self._schema.chunks.set_payload({"source": name}, of_documents(some))
                self._schema.documents.set_payload({"source": name}, list(map(document_point_id, some)))
        for some in batches(unowned, _AT_ONCE):
            self._documents.remove_documents(some)


def _source_of(library_id: str, tag: str | None) -> str:
    return f"{library_id}/{tag}" if tag else library_id


def _without(payload: Payload, version: str) -> dict[str, str]:
    return {key: file_key for key, file_key in payload["file_keys"].items() if key != version}


def _facts(point: Point, keys: Mapping[str, str]) -> dict[str, object]:
    """`file_keys` is replaced as a whole: setting a part of the payload would keep what is gone from it."""
    return {"set_payload": {"payload": {"versions": sorted(keys), "file_keys": keys}, "points": [point["id"]]}}
