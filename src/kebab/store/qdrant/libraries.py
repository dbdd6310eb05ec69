"""Reads and writes libraries and their versions. While a new version is made, searches use the old one.

A document that several versions share (the same bytes under the same path) is stored once. It belongs to the source of
one version; if that version is deleted, it gets the source of another. The document and its chunks list its versions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from kebab.core.addresses import without_password
from kebab.core.errors import Corrupt, NotFound
from kebab.core.libraries import DoneFile, Library, LibraryVersion, Making, VectorSpace, VersionDocument
from kebab.core.ports import ChunkVector, FileState, IndexedDocument, Key, StoredDocument
from kebab.core.records import ContentCounts, SpaceCount
from kebab.core.text import storable
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Payload, bare_point, batches, one_of, point_id, where
from kebab.store.qdrant.documents import QdrantDocumentStore
from kebab.store.qdrant.index_writer import IndexWriter, WriterPart
from kebab.store.qdrant.state import LIBRARY_KIND, Stored, StoredSource, StoredVersion, now, stored_versions
from kebab.store.qdrant.terms import LIBRARIES, OWN

_BATCH = 500
_FACTS = tuple(field for field in Library._fields if field != "versions")
_DOCUMENT_FIELDS = ["doc", "path", "source", "versions", "file_keys", "fingerprint", "chunk_count"]


class QdrantLibraryCatalog(Stored):
    def libraries(self) -> list[Library]:
        versions = _by_library(stored_versions(self._catalog))
        found = self._catalog.payloads(where("what", "library"))
        libraries = [_library(payload, versions) for payload in found if "library_id" in payload]
        return sorted(libraries, key=lambda library: library.library_id)

    def find(self, library_id: str) -> Library:
        if found := [library for library in self.libraries() if library.library_id == storable(library_id)]:
            return found[0]
        raise NotFound(f"There is no library {library_id}.", hint="See what is there with: kb lib list")


def _by_library(versions: Iterable[StoredVersion]) -> Mapping[str, list[LibraryVersion]]:
    """The versions of each library. A complete version and the unfinished one that will replace it appear as one."""
    parts: defaultdict[tuple[str, str], dict[bool, StoredVersion]] = defaultdict(dict)
    for version in versions:
        parts[version.library, version.tag][version.in_making] = version
    found: defaultdict[str, list[LibraryVersion]] = defaultdict(list)
    for (library, tag), both in sorted(parts.items()):
        done, making = both.get(False), both.get(True)
        state: Any = "indexed" if done else making.state if making else "pending"
        facts = (done.commit, done.snippets, done.indexed_at) if done else (None, 0, None)
        found[library].append(LibraryVersion(tag or None, state, *facts, making.error if making else None))
    return found


def _library(payload: Payload, versions: Mapping[str, list[LibraryVersion]]) -> Library:
    facts: dict[str, Any] = {field: payload.get(field) for field in _FACTS}
    facts["rules"] = tuple(facts["rules"] or ())
    if not isinstance(facts["origin"], str):
        message = f"The origin of {payload['library_id']} is damaged."
        raise Corrupt(message, hint="Add it again with: kb lib add ADDRESS")
    return Library(**facts, versions=tuple(versions.get(payload["library_id"], ())))


class QdrantContentReader(Stored):
    def stored(self, source: str) -> dict[str, StoredDocument]:
        payloads = self._documents.payloads(where("source", source), ["doc", "path", *FileState._fields])
        return {
            payload["path"]: StoredDocument(payload["doc"], payload["doc"], codec.file_state(payload))
            for payload in sorted(payloads, key=lambda payload: str(payload["path"]))
        }

    def documents(self, keys: Sequence[Key]) -> list[IndexedDocument]:
        """Returns these documents. Their source is left empty, because a library document may belong to several."""
        wanted = list(map(str, keys))
        points = self._documents.retrieve(map(codec.document_point_id, wanted))
        stored = {point["payload"]["doc"]: point["payload"] for point in points}
        chunks: defaultdict[str, list[Payload]] = defaultdict(list)
        fields = ["doc", "ordinal", "start", "end", "headings", "spans", "kind", "names"]
        for payload in self._chunks.payloads(where("doc", *wanted), fields):
            chunks[payload["doc"]].append(payload)
        return [codec.indexed_document(stored[doc_id], chunks[doc_id]) for doc_id in wanted if doc_id in stored]

    def spaces(self) -> list[VectorSpace]:
        return self._state.spaces

    def vectors_of(self, space: VectorSpace, chunk_ids: Sequence[str]) -> dict[str, ChunkVector]:
        name, ids = space.fingerprint, map(codec.chunk_point_id, chunk_ids)
        points = self._chunks.retrieve(ids, payload=["chunk", "text_hash", "homes"], vectors=[name])
        found = {}
        for payload, vectors in ((point["payload"], point.get("vector") or {}) for point in points):
            if name in vectors:
                vector, is_primary = codec.to_float16(vectors[name]), name in payload["homes"]
                found[payload["chunk"]] = ChunkVector(bytes.fromhex(payload["text_hash"]), vector, is_primary)
        return found

    def complete_vectors(self) -> str | None:
        return self._state.meta.get("complete_vectors")

    def counts(self) -> ContentCounts:
        own = one_of("corpus", [OWN])
        versions = stored_versions(self._catalog, complete=True)
        searched = one_of("versions", (version.key for version in versions))
        count, either = self._chunks.count, {"should": [own, searched]}
        spaces = []
        for name in (space.fingerprint for space in self._state.spaces):
            has = {"has_vector": name}
            primary = count({**either, "must": [has, one_of("homes", [name])]})
            spaces.append(SpaceCount(name, count({**either, "must": [has]}), primary))
        sizes = [each.count({"must": [part]}) for part in (own, searched) for each in (self._documents, self._chunks)]
        return ContentCounts(sizes[0], sizes[1], sizes[2], sizes[3], tuple(spaces))

    def library_documents(self, library_id: str) -> list[VersionDocument]:
        found = []
        for version in stored_versions(self._catalog, library_id, complete=True):
            payloads = self._documents.payloads(where("versions", version.key), _DOCUMENT_FIELDS)
            for payload in sorted(payloads, key=lambda payload: str(payload["path"])):
                file_key = payload["file_keys"][version.key]
                facts = (payload["doc"], payload["path"], payload["fingerprint"])
                found.append(VersionDocument(version.tag or None, version.commit, payload["doc"], file_key, *facts))
        return found

    def library_vectors(self, library_id: str, space: VectorSpace) -> Iterator[tuple[bytes, bytes]]:
        """Yields the hash of each embedded text, once, and its vector as float16."""
        name, given = space.fingerprint, set()
        versions = [version.key for version in stored_versions(self._catalog, library_id, complete=True)]
        chosen = {"must": [one_of("versions", versions), {"has_vector": name}]}
        for point in self._chunks.scroll(chosen, payload=["text_hash"], vectors=[name]):
            text_hash = point["payload"]["text_hash"]
            if text_hash not in given:
                given.add(text_hash)
                yield bytes.fromhex(text_hash), codec.to_float16(point["vector"][name])


class QdrantLibraryWriter(WriterPart):
    def __init__(self, writer: IndexWriter) -> None:
        super().__init__(writer)
        self._store = QdrantDocumentStore(writer, for_libraries=True)

    def describe(self, library: Library) -> None:
        payload = {
            **{field: getattr(library, field) for field in _FACTS},
            "title": storable(library.title),
            "description": storable(library.description),
            "origin": storable(without_password(library.origin)),
            "rules": list(map(storable, library.rules)),
        }
        point = point_id("library", library.library_id)
        self._catalog.upsert([bare_point(point, what="library", created_at=now(), **payload)])

    def begin(self, library_id: str, tag: str | None, commit: str | None) -> Making:
        """Begins a version, or continues an earlier attempt. Returns its key, its source and the files already done."""
        version = self._making(library_id, tag) or self._new_making(library_id, tag)
        version = version._replace(state="indexing", error=None, commit=commit)
        self._catalog.upsert([version.point])
        done = {
            payload["path"]: DoneFile(payload["doc"], payload["file_keys"][version.key], payload["fingerprint"])
            for payload in self._with_versions(version.key)
        }
        return Making(version.key, version.source, done)

    def drop(self, making: Making, files: Iterable[DoneFile]) -> None:
        """Removes these files from the version, and deletes documents that a killed run wrote but did not link."""
        key = str(making.key)
        self._unlink([str(file.document) for file in files], key)
        self._sweep(key, making.source)

    def known(self, library_id: str, fingerprints: Iterable[str]) -> Mapping[tuple[str, str], Key]:
        wanted = set(fingerprints)
        versions = [version.key for version in stored_versions(self._catalog, library_id)]
        return {
            (payload["path"], file_key): payload["doc"]
            for payload in self._with_versions(*versions)
            if payload["fingerprint"] in wanted
            for version, file_key in payload["file_keys"].items()
            if version in versions
        }

    def link(self, making: Making, documents: Sequence[tuple[Key, str]]) -> None:
        new, version = {str(document): key for document, key in documents}, str(making.key)
        self._set_file_keys(list(new), lambda keys, document: {**keys, version: new[document]})

    share = link

    def finish(self, making: Making, indexed_at: str | None = None) -> int:
        """Replaces the old version by the new one with one request, and deletes it. Returns the number of snippets."""
        [version] = [version for version in stored_versions(self._catalog) if version.key == str(making.key)]
        snippets = sum(payload["chunk_count"] for payload in self._with_versions(version.key))
        when = indexed_at or now()
        done = version._replace(in_making=False, state="indexed", error=None, snippets=snippets, indexed_at=when)
        before = stored_versions(self._catalog, version.library, version.tag, complete=True)
        retired = [other._replace(in_making=True, state="retired") for other in before]
        self._catalog.upsert([each.point for each in (done, *retired)])
        for other in retired:
            self._drop(other)
        self._rename_source(done, _source_name(done.library, done.tag))
        self._forget_unused_sources()
        self._writer.remember(complete_vectors=None)
        return int(snippets)

    def fail(self, library_id: str, tag: str | None, reason: str) -> None:
        """Marks a version as failed. Its documents stay, so that the next attempt continues."""
        version = self._making(library_id, tag) or self._new_making(library_id, tag)
        self._catalog.upsert([version._replace(state="failed", error=storable(reason)).point])

    def forget_attempt(self, library_id: str, tag: str | None) -> None:
        if version := self._making(library_id, tag):
            self._drop(version)

    def remove(self, library_id: str, tag: str | None = None, *, whole: bool = True) -> None:
        for version in stored_versions(self._catalog, library_id, None if whole else tag or ""):
            self._drop(version)
        if whole:
            self._catalog.delete([point_id("library", library_id)])
        self._forget_unused_sources()
        self._writer.remember(libraries=self._chunks.has_any(where("corpus", LIBRARIES)))

    def _making(self, library_id: str, tag: str | None) -> StoredVersion | None:
        """The unfinished version with this tag, or None. Deletes a retired version that an interrupted run left."""
        found = None
        for version in stored_versions(self._catalog, library_id, tag or ""):
            if version.in_making and version.state == "retired":
                self._drop(version)
            elif version.in_making:
                found = version
        return found

    def _new_making(self, library_id: str, tag: str | None) -> StoredVersion:
        key = str(uuid4())
        # The name contains the key, because the version that is searched now may have a source of the same name.
        source = f"{_source_name(library_id, tag)} (in the making, {key[:8]})"
        self._add_source(source)
        return StoredVersion(key, library_id, tag or "", True, source, None, "indexing")

    def _drop(self, version: StoredVersion) -> None:
        """Deletes a version and the documents that no other one has. An interruption may have left several sources."""
        documents = self._with_versions(version.key)
        self._unlink([payload["doc"] for payload in documents], version.key)
        others = {other.source for other in stored_versions(self._catalog) if other.key != version.key}
        for source in {version.source, *({payload["source"] for payload in documents} - others)}:
            self._sweep(version.key, source)
        self._catalog.delete([version.key])
        self._writer.delete_source(version.source)

    def _forget_unused_sources(self) -> None:
        """Deletes library sources that interrupted runs left without a version and documents."""
        used = {version.source for version in stored_versions(self._catalog)}
        for name, source in list(self._state.sources.items()):
            is_unused = source.kind == LIBRARY_KIND and name not in used
            if is_unused and not self._documents.has_any(where("source", name)):
                self._writer.delete_source(name)

    def _rename_source(self, version: StoredVersion, name: str) -> None:
        if name == version.source:
            return
        self._add_source(name, ingested_at=version.indexed_at)
        for collection in (self._chunks, self._documents):
            collection.set_payload({"source": name}, where("source", version.source))
        self._catalog.upsert([version._replace(source=name).point])
        self._writer.delete_source(version.source)

    def _add_source(self, name: str, ingested_at: str | None = None) -> None:
        self._writer.write_source(StoredSource(name, LIBRARY_KIND, None, "secondary", now(), ingested_at))

    def _with_versions(self, *versions: str) -> list[Payload]:
        return list(self._documents.payloads(where("versions", *versions), _DOCUMENT_FIELDS)) if versions else []

    def _unlink(self, doc_ids: Sequence[str], version: str) -> None:
        self._set_file_keys(doc_ids, lambda keys, _: {key: keys[key] for key in keys if key != version})

    def _set_file_keys(self, doc_ids: Sequence[str], new_keys: Callable[[dict[str, str], str], dict[str, str]]) -> None:
        """Sets the versions of documents, with the keys of their files in them. Chunks are written first, so that a
        document lists a new version only after its chunks do.
        """
        for some in batches(doc_ids, _BATCH):
            points = self._documents.retrieve(map(codec.document_point_id, some), payload=["doc", "file_keys"])
            by_versions: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
            changes = []
            for point in points:
                keys = new_keys(point["payload"]["file_keys"], point["payload"]["doc"])
                by_versions[tuple(sorted(keys))].append(point["payload"]["doc"])
                # `set_payload` replaces the whole of `file_keys`.
                changed = {"versions": sorted(keys), "file_keys": keys}
                changes.append({"set_payload": {"payload": changed, "points": [point["id"]]}})
            for versions, ids in by_versions.items():
                self._chunks.set_payload({"versions": versions}, where("doc", *ids))
            self._documents.change(changes)

    def _sweep(self, version: str, source: str) -> None:
        """Moves documents under this source that its version no longer contains to the source of another version that
        contains them, or deletes them. So a source never has two documents with one path.
        """
        source_of = {known.key: known.source for known in stored_versions(self._catalog)}
        moved: defaultdict[str | None, list[str]] = defaultdict(list)
        chosen = {**where("source", source), "must_not": [one_of("versions", [version])]}
        for payload in self._documents.payloads(chosen, _DOCUMENT_FIELDS):
            others = [source_of[key] for key in payload["versions"] if key in source_of]
            moved[others[0] if others else None].append(payload["doc"])
        for name, doc_ids in moved.items():
            for some in batches(doc_ids, _BATCH):
                if name is None:
                    self._store.remove_documents(some)
                else:
                    self._chunks.set_payload({"source": name}, where("doc", *some))
                    self._documents.set_payload({"source": name}, list(map(codec.document_point_id, some)))


def _source_name(library_id: str, tag: str | None) -> str:
    return f"{library_id}/{tag}" if tag else library_id
