"""What an index holds, as values to compare: the parts of endurance.py judge an index by these.

They go through the store's own ports, so they hold for any schema.
"""

from __future__ import annotations

from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import kebab
from kebab.config.loading import load_settings
from kebab.core.errors import NotFound
from kebab.core.ports import IndexedDocument
from kebab.core.search import SearchResponse
from kebab.core.store_ports import Reading
from kebab.session import open_store

Contents = dict[str, str]


def contents(db: Path, *, vectors: bool = False) -> Contents:
    """A digest of every document by "source:path", and of every version of a library. Empty without a database.

    Times of indexing are left out: two indexes of the same files have the same contents.
    """
    found: Contents = {}
    settings = load_settings(flags={"store.path": str(db)}).settings
    with closing(open_store(settings)) as store, suppress(NotFound), store.reading() as reading:
        assert reading is not None
        for source in reading.catalog.sources():
            for path, entry in reading.content().stored(source.name).items():
                for document in reading.content().documents([entry.key]):
                    more = _vectors(reading, entry.doc_id) if vectors else ()
                    found[f"{source.name}:{path}"] = digest(_timeless(document), more)
        for library in reading.libraries().libraries():
            for item in reading.content().library_documents(library.library_id):
                version = f"{library.library_id} {item.tag or ''}"
                document = reading.content().documents([item.document])[0]._replace(date="")  # the time of indexing
                more = _vectors(reading, item.doc_id) if vectors else ()
                found[version] = digest(found.get(version), item.commit, item.file_key, _timeless(document), more)
    return found


def fingerprint(db: Path, *queries: str) -> str:
    """The same for equal indexes: contents with vectors, tags, and what the queries find with which scores."""
    with kebab.open(db, embedding_model="none") as kb:
        found = [_found(kb.search(query, k=1000, mode="lexical", duplicates="show")) for query in queries]
        sources = [(source.name, source.kind, source.root, source.documents, source.notes) for source in kb.sources()]
        tags = sorted((tag.tag, tag.documents) for tag in kb.tags())
    return digest(sorted(contents(db, vectors=True).items()), sources, tags, found)


def problems(db: Path) -> list[str]:
    """What `kb verify` finds wrong with the store itself; nothing when there is no database."""
    with suppress(NotFound), kebab.open(db, embedding_model="none") as kb:
        return [f"{check.name}: {check.message}" for check in kb.verify().checks if not check.ok]
    return []


def _timeless(document: IndexedDocument) -> IndexedDocument:
    return document._replace(indexed_at="", state=document.state._replace(mtime_ns=None))


def _vectors(reading: Reading, doc_id: str) -> list[Any]:
    ids = [chunk.chunk_id for chunk in reading.catalog.chunks_of(doc_id)]
    content = reading.content()
    return [sorted(content.vectors_of(space, ids).items()) for space in sorted(content.spaces())]


def _found(response: SearchResponse) -> list[tuple[str, str]]:
    return sorted((f"{hit.score:.6g}", hit.citation.uri) for hit in response.hits)


def digest(*values: object) -> str:
    return sha256(repr(values).encode("utf-8", "surrogatepass")).hexdigest()


def write_notes(folder: Path, *, words: str = "heron", count: int = 24, korean: bool = True) -> None:
    """Small notes in two folders, `house` and `work`; each has a word of its own, such as heron3."""
    for number in range(count):
        file = folder / ("house", "work")[number % 2] / f"{number:03}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        tags = f"---\ntags: [t{number % 5}]\n---\n"
        text = f"# Note {number}\n\nThe {words}{number} stands at the river bank.\n\n## Setting {number}\n"
        text += f"\n강둑 문서 {number}.\n" if korean else ""
        text += "".join(f"\nLine {line} of {words} {number * line % 97}.\n" for line in range(20))
        file.write_text(tags + text, encoding="utf-8")
