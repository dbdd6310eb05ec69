"""`kb verify` for a cluster: the proof that all that is stored fits together, chunk by chunk.

Qdrant keeps points, and knows nothing of what one has to do with another: that a document has these chunks, that its
words are those of its text, that so many chunks have a term. All of that is computed anew here and compared, some
documents at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kebab.core.errors import NotFound, StoreError
from kebab.core.records import NOT_CHECKED, Check
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant.client import Client, our_errors
from kebab.store.qdrant.collection import Filter, batches
from kebab.store.qdrant.documents import hash_of
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import of_documents
from kebab.store.qdrant.libraries import stored_versions
from kebab.store.qdrant.payloads import EVERYWHERE, Payload, columns, common_homes
from kebab.store.qdrant.schema import REMAKE, WORDS, Schema
from kebab.store.qdrant.state import CorpusSize, State, read_state, stored_weights, what
from kebab.store.qdrant.terms import CORPORA, LIBRARIES, counted, is_far_from
from kebab.store.qdrant.vectors import stored_spaces
from kebab.store.qdrant.vocabulary import Vocabulary
from kebab.store.qdrant.whole_points import (
    BUT_TEXT,
    StoredText,
    contradictions,
    is_as_derived,
    is_as_written,
    is_chunk_of,
    is_document,
    stored_texts,
)
from kebab.store.qdrant.writer_lease import live_writer

_DOCUMENTS_AT_ONCE = 100
_WEIGHT_OFF = 0.002
"""How far the weight of a word may be from what it should be: it was rounded, and computed back once or twice."""
_SHOWN = 3
_REBUILD = "kb index --rebuild-fts"
_READ = "kb ingest; documents of a library with: kb lib refresh"
_READ_AGAIN = f"{_REBUILD}; then read those documents again with: {_READ}"
_LIBRARIES = "kb lib refresh, or of one that was imported: kb lib add"
_NOT_NOW = "Look again when it is done."


def wholeness_checks(client: Client, schema: Schema, korean_analysis: str) -> list[Check]:
    try:
        with our_errors(client.address, missing=schema.lacks_parts):
            schema.require()
            if missing := schema.missing():
                return [Check("collections", False, f"missing: {', '.join(missing)}", REMAKE)]
            if writer := live_writer(schema.catalog):
                return [_unchecked(writer)]
            checks = _Proof(schema, read_state(schema.catalog), korean_analysis).checks()
            if not all(check.ok for check in checks) and (writer := live_writer(schema.catalog)):
                return [_unchecked(writer)]  # what looked wrong may just have been changed
            return checks
    except NotFound as error:
        return [Check("database", not schema.exists(), error.message, error.hint)]
    except StoreError as error:
        return [Check("database", False, error.message, error.hint)]


def _unchecked(writer: str) -> Check:
    return Check("store", True, f"{NOT_CHECKED}: {writer} is writing", _NOT_NOW)


class _Found:
    """What is wrong in one way: how much of it, and some of it by name."""

    def __init__(self) -> None:
        self.count = 0
        self._names: dict[str, None] = {}

    def add(self, name: str) -> None:
        self.count += 1
        if len(self._names) <= _SHOWN:
            self._names[name] = None

    def told(self, how: str) -> list[str]:
        return [f"{self.count:,} {how} ({self})"] if self.count else []

    def __str__(self) -> str:
        return ", ".join(list(self._names)[:_SHOWN]) + (" …" if len(self._names) > _SHOWN else "")


def _name(document: Mapping[str, Any]) -> str:
    return f"{document.get('source', '?')}:{document.get('path', '?')}"


class _Proof:
    def __init__(self, schema: Schema, state: State, korean_analysis: str) -> None:
        self._schema = schema
        self._state = state
        self._korean_analysis = state.korean_analysis or korean_analysis
        self._weights = stored_weights(state)
        self._tokenizer = SqliteTokenizer()
        self._vocabulary = Vocabulary(schema.terms, self._tokenizer)
        self._documents: set[str] = set()
        self._versions = {version.key: version for version in stored_versions(schema.catalog)}
        self._chunks = 0
        self._sizes = {corpus: CorpusSize() for corpus in CORPORA}
        self._terms: Counter[int] = Counter()
        self._damaged, self._lacking, self._unread, self._without_text = (_Found() for _ in range(4))
        self._surplus, self._other_facts, self._other_words, self._unknown_words = (_Found() for _ in range(4))
        self._lost_sources, self._lost_versions = _Found(), _Found()
        self._weighed_otherwise = 0
        self._spaces = frozenset(schema.spaces())

    def checks(self) -> list[Check]:
        for some in batches(self._schema.documents.scroll(payload=BUT_TEXT), _DOCUMENTS_AT_ONCE):
            whole = [point["payload"] for point in some if is_document(point)]
            for point in some:
                if not is_document(point):
                    self._damaged.add(_name(point["payload"]))
            self._look_at(whole)
        self._find_unknown(note.text for source in self._state.sources.values() for note in source.notes)
        return [
            self._document_check(),
            self._source_check(),
            self._chunk_check(),
            self._word_check(),
            self._count_check(),
            self._vocabulary_check(),
            self._vector_check(),
            self._library_check(),
            self._writer_check(),
        ]

    # --- some documents

    def _look_at(self, documents: list[Payload]) -> None:
        by_id = {document["doc"]: document for document in documents}
        self._documents |= by_id.keys()
        stored = stored_texts(self._schema.documents, list(by_id))
        missing = {doc_id: set(document["chunks"]) for doc_id, document in by_id.items()}
        texts: list[str] = []
        for point in self._schema.chunks.scroll(of_documents(by_id), vectors=[WORDS]):
            chunk = point["payload"]
            self._chunks += 1
            document = by_id[chunk["doc"]]
            if is_chunk_of(point, document) and chunk["chunk"] in missing[document["doc"]]:
                missing[document["doc"]].discard(chunk["chunk"])
                self._look_at_chunk(
                    chunk, point["vector"].get(WORDS) or {}, document, stored.get(document["doc"]), texts
                )
            else:
                self._surplus.add(_name(document))
        for doc_id, document in by_id.items():
            self._look_at_document(document, lacks_chunks=bool(missing[doc_id]), has_text=doc_id in stored)
        self._find_unknown(texts)

    def _look_at_document(self, document: Payload, *, lacks_chunks: bool, has_text: bool) -> None:
        name = _name(document)
        if lacks_chunks or document["chunk_count"] != len(document["chunks"]):
            self._lacking.add(name)
        elif not document["content_hash"]:
            self._unread.add(name)
        if not has_text:
            self._without_text.add(name)
        if not is_as_derived(document):
            self._damaged.add(name)
        if document["source"] not in self._state.sources:
            self._lost_sources.add(document["source"])
        if document["corpus"] == LIBRARIES and not (
            document["versions"] and self._versions.keys() >= set(document["versions"])
        ):
            self._lost_versions.add(name)

    def _look_at_chunk(
        self, chunk: Payload, stored: dict[str, Any], document: Payload, text: StoredText | None, texts: list[str]
    ) -> None:
        name, corpus = _name(document), document["corpus"]
        size = self._sizes[corpus]
        self._sizes[corpus] = size._replace(chunks=size.chunks + 1, tokens=size.tokens + chunk["length"])
        self._terms.update(chunk["terms"])
        if contradictions(chunk, document):
            self._other_facts.add(name)
        if not is_as_written(chunk, self._spaces) or (text is not None and not text.has(chunk)):
            self._lacking.add(name)  # it says something else than was indexed, or that it stands elsewhere
        self._weighed_otherwise += is_far_from(chunk["average"], self._state.sizes[corpus].average)
        note_terms = self._state.note_terms(chunk["source"], chunk["path"], self._korean_analysis)
        found = columns(chunk, self._korean_analysis, note_terms)
        texts += (found.title, chunk["text"])
        words = counted(found, corpus, self._tokenizer, self._weights)
        wanted = words.vector(chunk["average"])
        weights = dict(zip(stored.get("indices") or (), stored.get("values") or (), strict=True))
        if (
            words.length != chunk["length"]
            or hash_of(*found) != chunk["columns_hash"]
            or {EVERYWHERE}.intersection(chunk["homes"]) != set(common_homes(found, chunk["kind"]))
            or set(chunk["terms"]) != words.frequencies.keys()
            or weights.keys() != words.frequencies.keys()
            or any(
                abs(weights[term] - weight) > _WEIGHT_OFF
                for term, weight in zip(wanted["indices"], wanted["values"], strict=True)
            )
        ):
            self._other_words.add(name)

    def _find_unknown(self, texts: Iterable[str]) -> None:
        for word in sorted(self._vocabulary.missing(texts)):
            self._unknown_words.add(word)

    # --- what follows

    def _document_check(self) -> Check:
        parts = [
            *self._damaged.told("are damaged"),
            *self._lacking.told("lack chunks, or have others than they say"),
            *self._without_text.told("have a text that cannot be read"),
        ]
        unread = self._unread.told("were not written to their end")
        message = f"{len(self._documents):,} documents, each with its text and all its chunks"
        return Check.judged(
            "documents", not parts + unread, "; ".join(parts + unread) or message, _READ_AGAIN if parts else _READ
        )

    def _source_check(self) -> Check:
        lost = self._lost_sources
        message = (
            f"{lost.count:,} documents are of sources that are not there ({lost})"
            if lost.count
            else "every document has its source"
        )
        return Check.judged(
            "sources", not lost.count, message, "kb ingest FOLDER --name SOURCE; a library with: kb lib add"
        )

    def _chunk_check(self) -> Check:
        orphans = self._orphans() if self._schema.chunks.count() != self._chunks else 0
        parts = [
            *([f"{orphans:,} belong to no document"] if orphans else []),
            *self._surplus.told("are not named by their documents"),
            *self._other_facts.told("say something else of their documents than those"),
        ]
        return Check.judged(
            "chunks", not parts, "; ".join(parts) or f"{self._chunks:,} chunks, each of a document", _READ_AGAIN
        )

    def _orphans(self) -> int:
        return sum(
            point["payload"].get("doc") not in self._documents for point in self._schema.chunks.scroll(payload=["doc"])
        )

    def _word_check(self) -> Check:
        wrong = self._other_words
        parts = [f"the words of {wrong.count:,} chunks are not those of their texts ({wrong})"] if wrong.count else []
        if self._chunks and self._state.fts_config is None:
            parts.append("how they were analysed is not known any more")
        if (
            self._weighed_otherwise and not parts
        ):  # by somebody who was stopped: nothing is wrong, but ranks could be a little better
            message = f"as in the texts; {self._weighed_otherwise:,} chunks are weighed for another average length"
            return Check("words", True, message, "The next kb ingest weighs them again.")
        return Check.judged("words", not parts, "; ".join(parts) or "as in the texts", _REBUILD)

    def _count_check(self) -> Check:
        parts = []
        for corpus, size in self._sizes.items():
            known = self._state.sizes[corpus]
            if (known.chunks, known.tokens) != (size.chunks, size.tokens) or (size.chunks and not known.average):
                parts.append(
                    f"{known.chunks:,} chunks with {known.tokens:,} words are counted, and there are {size.chunks:,} with {size.tokens:,}"
                )
        if self._sizes[LIBRARIES].chunks and not self._state.has_libraries:
            parts.append("there are chunks of libraries, and searches of other documents do not know that")
        stored = {
            point["id"]: point["payload"]["chunks"]
            for point in self._schema.terms.scroll({"must_not": [{"is_empty": {"key": "chunks"}}]}, payload=["chunks"])
        }
        wrong = sum(stored.get(term, 0) != self._terms[term] for term in stored.keys() | self._terms.keys())
        if wrong:
            parts.append(f"{wrong:,} terms are in more or fewer chunks than is counted")
        return Check.judged(
            "word counts", not parts, "; ".join(parts) or f"{len(stored):,} terms, counted right", _REBUILD
        )

    def _vocabulary_check(self) -> Check:
        wrong = self._unknown_words
        message = (
            f"{wrong.count:,} words of the texts are not known ({wrong})"
            if wrong.count
            else "every word of the texts is known"
        )
        return Check.judged("vocabulary", not wrong.count, message, _REBUILD)

    def _vector_check(self) -> Check:
        """The servers themselves see to it that every vector has the size of its space."""
        parts = []
        room = self._schema.chunks.facts()["config"]["params"].get("vectors") or {}
        for name in room.keys() - {space.fingerprint for space in stored_spaces(self._state)}:
            if unknown := self._count({"must": [{"has_vector": name}]}):
                parts.append(f"{unknown:,} chunks have a vector of {name}, which nobody knows any more")
        for space in stored_spaces(self._state):
            name = space.fingerprint
            if name not in room or room[name]["size"] != space.dimension:
                parts.append(f"there is no room for vectors of {name}")
                continue
            says = {"should": [one_of("spaces", [name]), one_of("homes", [name])]}
            lost = self._count({"must": [says], "must_not": [{"has_vector": name}]})
            unsaid = self._count({"must": [{"has_vector": name}], "must_not": [one_of("spaces", [name])]})
            if lost:
                parts.append(f"{lost:,} chunks should have a vector of {space.model} and have none")
            if unsaid:
                parts.append(f"{unsaid:,} chunks have a vector of {space.model} that nobody knows of")
        return Check.judged(
            "vectors", not parts, "; ".join(parts) or "where they should be", "kb index --rebuild-vectors"
        )

    def _count(self, chosen: Filter) -> int:
        return self._schema.chunks.count(chosen)

    def _library_check(self) -> Check:
        parts = self._lost_versions.told("documents are of versions that are not there")
        homeless: list[str] = []
        libraries = {str(point["payload"].get("library_id")) for point in self._schema.catalog.scroll(what("library"))}
        for version in self._versions.values():
            if version.library not in libraries:
                homeless.append(f"{version.library} {version.tag}".rstrip() + " is of a library that is not there")
            elif not version.in_making:
                snippets = self._count({"must": [one_of("versions", [version.key])]})
                if snippets != version.snippets:
                    of = f"{version.snippets:,}" if isinstance(version.snippets, int) else "an unknown number"
                    parts.append(f"{version.library} {version.tag}".rstrip() + f" has {snippets:,} snippets of {of}")
        then = "kb lib add" if homeless else _LIBRARIES
        hint = f"{_REBUILD}; then: {then}" if self._lost_versions.count else then
        parts += homeless
        complete = sum(not version.in_making for version in self._versions.values())
        return Check.judged(
            "libraries", not parts, "; ".join(parts) or f"{complete:,} versions with all their snippets", hint
        )

    def _writer_check(self) -> Check:
        left = len(list(self._schema.catalog.scroll(what("unfinished"), payload=False)))
        message = f"{left:,} were interrupted" if left else "none was left unfinished"
        return Check.judged("changes", not left, message, "The next kb ingest puts that in order.")
