"""`kb verify` for a cluster: the proof that all that is stored fits together, chunk by chunk.

Qdrant keeps points, and knows nothing of what one has to do with another: that a document has these chunks, that its words are those of its
text, that so many chunks have a term. All of that is computed anew here and compared, some documents at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kebab.core.errors import NotFound, StoreError
from kebab.core.records import Check
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant.client import Client, our_errors
from kebab.store.qdrant.collection import Filter, batches
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import of_documents
from kebab.store.qdrant.libraries import stored_versions
from kebab.store.qdrant.payloads import OF_DOCUMENT, Payload, columns
from kebab.store.qdrant.repair import OF_CHUNK, is_as_written
from kebab.store.qdrant.schema import WORDS, Schema
from kebab.store.qdrant.state import CorpusSize, State, read_state, stored_weights, what
from kebab.store.qdrant.terms import CORPORA, counted, is_far_from
from kebab.store.qdrant.vectors import stored_spaces
from kebab.store.qdrant.vocabulary import Vocabulary
from kebab.store.qdrant.writer_lease import live_writer

_DOCUMENTS_AT_ONCE = 100
_OF_DOCUMENT = [*OF_DOCUMENT, "chunks", "chunk_count", "content_hash"]
_WEIGHT_OFF = 0.002
"""How far the weight of a word may be from what it should be: it was rounded, and computed back once or twice."""
_SHOWN = 3
_REBUILD = "kb index --rebuild-fts"
_READ_AGAIN = "kb index --rebuild-fts; then read those documents again with: kb ingest, or those of a library with: kb lib refresh"
_NOT_NOW = "Look again when it is done."


def wholeness_checks(client: Client, schema: Schema, korean_analysis: str) -> list[Check]:
    try:
        with our_errors(client.address):
            schema.require()
            if writer := live_writer(schema.catalog):
                return [_unchecked(writer)]
            checks = _Proof(schema, read_state(schema.catalog), korean_analysis).checks()
            if not all(check.ok for check in checks) and (writer := live_writer(schema.catalog)):
                return [_unchecked(writer)]  # what looked wrong may just have been changed
            return checks
    except NotFound:
        return [Check("database", True, "none yet; the first kb ingest makes it")]
    except StoreError as error:
        return [Check("database", False, error.message, error.hint)]


def _unchecked(writer: str) -> Check:
    return Check("store", True, f"NOT checked: {writer} is writing", _NOT_NOW)


class _Found:
    """What is wrong in one way: how much of it, and some of it by name."""

    def __init__(self) -> None:
        self.count = 0
        self._names: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        if len(self._names) < _SHOWN and name not in self._names:
            self._names.append(name)

    def __str__(self) -> str:
        return f"{', '.join(self._names)}{' …' if self.count > len(self._names) else ''}"


class _Proof:
    def __init__(self, schema: Schema, state: State, korean_analysis: str) -> None:
        self._schema = schema
        self._state = state
        self._korean_analysis = state.korean_analysis or korean_analysis
        self._weights = stored_weights(state)
        self._tokenizer = SqliteTokenizer()
        self._vocabulary = Vocabulary(schema.terms, self._tokenizer)
        self._documents: set[str] = set()
        self._chunks = 0
        self._sizes = {corpus: CorpusSize() for corpus in CORPORA}
        self._terms: Counter[int] = Counter()
        self._lacking, self._unread, self._surplus, self._other_facts, self._other_words = (_Found() for _ in range(5))
        self._unknown_words = _Found()

    def checks(self) -> list[Check]:
        for some in batches(self._schema.documents.scroll(payload=_OF_DOCUMENT), _DOCUMENTS_AT_ONCE):
            self._look_at([point["payload"] for point in some])
        self._find_unknown(note.text for source in self._state.sources.values() for note in source.notes)
        return [
            self._document_check(),
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
        missing = {doc_id: set(document["chunks"]) for doc_id, document in by_id.items()}
        texts: list[str] = []
        for point in self._schema.chunks.scroll(of_documents(by_id), vectors=[WORDS]):
            payload = point["payload"]
            self._chunks += 1
            document = by_id[payload["doc"]]
            name = f"{document['source']}:{document['path']}"
            identifier = payload.get("chunk")
            if identifier in missing[document["doc"]] and payload.keys() >= OF_CHUNK:
                missing[document["doc"]].discard(identifier)
                self._look_at_chunk(payload, point["vector"].get(WORDS) or {}, document, name, texts)
            else:
                self._surplus.add(name)
        for doc_id, lost in missing.items():
            document = by_id[doc_id]
            name = f"{document['source']}:{document['path']}"
            if lost or document["chunk_count"] != len(document["chunks"]):
                self._lacking.add(name)
            elif not document["content_hash"]:
                self._unread.add(name)
        self._find_unknown(texts)

    def _look_at_chunk(self, payload: Payload, stored: dict[str, Any], document: Payload, name: str, texts: list[str]) -> None:
        size = self._sizes[payload["corpus"]]
        self._sizes[payload["corpus"]] = size._replace(chunks=size.chunks + 1, tokens=size.tokens + payload["length"])
        self._terms.update(payload["terms"])
        if any(payload[key] != document[key] for key in OF_DOCUMENT):
            self._other_facts.add(name)
        if not is_as_written(payload):
            self._lacking.add(name)  # it says something else than was indexed
        note_terms = self._state.note_terms(payload["source"], payload["path"], self._korean_analysis)
        found = columns(payload, self._korean_analysis, note_terms)
        texts += (found.title, payload["text"])
        words = counted(found, payload["corpus"], self._tokenizer, self._weights)
        wanted = words.vector(payload["average"])
        weights = dict(zip(stored.get("indices") or (), stored.get("values") or (), strict=True))
        if (
            words.length != payload["length"]
            or is_far_from(payload["average"], self._state.sizes[payload["corpus"]].average)
            or set(payload["terms"]) != words.frequencies.keys()
            or weights.keys() != words.frequencies.keys()
            or any(abs(weights[term] - weight) > _WEIGHT_OFF for term, weight in zip(wanted["indices"], wanted["values"], strict=True))
        ):
            self._other_words.add(name)

    def _find_unknown(self, texts: Iterable[str]) -> None:
        for word in sorted(self._vocabulary.missing(texts)):
            self._unknown_words.add(word)

    # --- what follows

    def _document_check(self) -> Check:
        parts = []
        if self._lacking.count:
            parts.append(f"{self._lacking.count:,} lack chunks, or have others than they say ({self._lacking})")
        if self._unread.count:
            parts.append(f"{self._unread.count:,} were not written to their end ({self._unread})")
        message = f"{len(self._documents):,} documents, each with all its chunks"
        return Check.judged("documents", not parts, "; ".join(parts) or message, _READ_AGAIN if self._lacking.count else "kb ingest")

    def _chunk_check(self) -> Check:
        parts = []
        orphans = self._orphans() if self._schema.chunks.count() != self._chunks else 0
        if orphans:
            parts.append(f"{orphans:,} belong to no document")
        if self._surplus.count:
            parts.append(f"{self._surplus.count:,} are not named by their documents ({self._surplus})")
        if self._other_facts.count:
            parts.append(f"{self._other_facts.count:,} say something else of their documents than those ({self._other_facts})")
        return Check.judged("chunks", not parts, "; ".join(parts) or f"{self._chunks:,} chunks, each of a document", _REBUILD)

    def _orphans(self) -> int:
        return sum(point["payload"].get("doc") not in self._documents for point in self._schema.chunks.scroll(payload=["doc"]))

    def _word_check(self) -> Check:
        wrong = self._other_words
        message = f"the words of {wrong.count:,} chunks are not those of their texts ({wrong})" if wrong.count else "as in the texts"
        return Check.judged("words", not wrong.count, message, _REBUILD)

    def _count_check(self) -> Check:
        parts = []
        for corpus, size in self._sizes.items():
            known = self._state.sizes[corpus]
            if (known.chunks, known.tokens) != (size.chunks, size.tokens) or (size.chunks and not known.average):
                parts.append(
                    f"{known.chunks:,} chunks with {known.tokens:,} words are counted, and there are {size.chunks:,} with {size.tokens:,}"
                )
        stored = {
            point["id"]: point["payload"]["chunks"]
            for point in self._schema.terms.scroll({"must_not": [{"is_empty": {"key": "chunks"}}]}, payload=["chunks"])
        }
        wrong = sum(stored.get(term, 0) != self._terms[term] for term in stored.keys() | self._terms.keys())
        if wrong:
            parts.append(f"{wrong:,} terms are in more or fewer chunks than is counted")
        return Check.judged("word counts", not parts, "; ".join(parts) or f"{len(stored):,} terms, counted right", _REBUILD)

    def _vocabulary_check(self) -> Check:
        wrong = self._unknown_words
        message = f"{wrong.count:,} words of the texts are not known ({wrong})" if wrong.count else "every word of the texts is known"
        return Check.judged("vocabulary", not wrong.count, message, _REBUILD)

    def _vector_check(self) -> Check:
        """The servers themselves see to it that every vector has the size of its space."""
        parts = []
        room = self._schema.chunks.facts()["config"]["params"].get("vectors") or {}
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
        return Check.judged("vectors", not parts, "; ".join(parts) or "where they should be", "kb index --rebuild-vectors")

    def _count(self, chosen: Filter) -> int:
        return self._schema.chunks.count(chosen)

    def _library_check(self) -> Check:
        parts = []
        versions = [version for version in stored_versions(self._schema.catalog) if not version.in_making]
        for version in versions:
            snippets = self._count({"must": [one_of("versions", [version.key])]})
            if snippets != version.snippets:
                parts.append(f"{version.library} {version.tag} has {snippets:,} snippets of {version.snippets:,}".replace("  ", " "))
        hint = "kb lib refresh, or of one that was imported: kb lib add"
        return Check.judged("libraries", not parts, "; ".join(parts) or f"{len(versions):,} versions with all their snippets", hint)

    def _writer_check(self) -> Check:
        left = len(list(self._schema.catalog.scroll(what("unfinished"), payload=False)))
        message = f"{left:,} were interrupted" if left else "none was left unfinished"
        return Check.judged("changes", not left, message, "The next kb ingest puts that in order.")
