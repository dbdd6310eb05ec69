"""Reading a whole library back out of the store: documents as they were stored, and their vectors."""

from __future__ import annotations

from collections.abc import Iterator

from kebab.core.libraries import VectorSpace, VersionDocument
from kebab.core.ports import IndexedDocument, Key
from kebab.store.qdrant.content_reader import QdrantContentReader
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.libraries import StoredVersion, stored_versions
from kebab.store.qdrant.schema import Schema

_FACTS = ["doc", "path", "file_keys", "fingerprint"]


class QdrantLibraryReader:
    def __init__(self, schema: Schema, content: QdrantContentReader, library_id: str) -> None:
        self._schema = schema
        self._content = content
        self._library_id = library_id

    def version_documents(self) -> list[VersionDocument]:
        """Of the versions that are searched, the default one first."""
        found = []
        for version in self._searched():
            documents = self._schema.documents.scroll({"must": [one_of("versions", [version.key])]}, payload=_FACTS)
            for payload in sorted((point["payload"] for point in documents), key=lambda payload: str(payload["path"])):
                file_key = payload["file_keys"][version.key]
                facts = (payload["doc"], payload["path"], payload["fingerprint"])
                found.append(VersionDocument(version.tag or None, version.commit, payload["doc"], file_key, *facts))
        return found

    def document(self, key: Key) -> IndexedDocument:
        """Without a source: it belongs to several."""
        return self._content.documents([key])[0]

    def spaces(self) -> list[VectorSpace]:
        return self._content.spaces()

    def vectors(self, space: VectorSpace) -> Iterator[tuple[bytes, bytes]]:
        """Hash of the embedded text, and float16."""
        import numpy as np

        name, given = space.fingerprint, set()
        chosen = {"must": [one_of("versions", [version.key for version in self._searched()]), {"has_vector": name}]}
        for point in self._schema.chunks.scroll(chosen, payload=["text_hash"], vectors=[name]):
            text_hash = point["payload"]["text_hash"]
            if text_hash not in given:
                given.add(text_hash)
                yield bytes.fromhex(text_hash), np.array(point["vector"][name], np.float16).tobytes()

    def _searched(self) -> list[StoredVersion]:
        return [version for version in stored_versions(self._schema.catalog, self._library_id) if not version.in_making]
