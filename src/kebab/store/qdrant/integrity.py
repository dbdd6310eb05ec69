"""`kb verify` for a cluster: checks that everything stored fits together, chunk by chunk.

The server does not know how points relate: that a document has these chunks, that a chunk has the words of its text,
that so many chunks have a term. All of that is computed anew and compared, some documents at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kebab.core.errors import NotFound, StoreError
from kebab.core.records import NOT_CHECKED, Check
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant import codec
from kebab.store.qdrant.client import Client, our_errors
from kebab.store.qdrant.collection import Payload, batches, one_of, where
from kebab.store.qdrant.libraries import stored_versions
from kebab.store.qdrant.repair import (
    WITHOUT_TEXT,
    StoredText,
    differing_fields,
    has_right_fields,
    is_as_written,
    is_chunk_of,
    is_document,
    stored_texts,
)
from kebab.store.qdrant.schema import RESTORE, WORDS, Schema
from kebab.store.qdrant.state import CorpusSize, State, read_state
from kebab.store.qdrant.terms import CORPORA, LIBRARIES, counted, is_far_from
from kebab.store.qdrant.vocabulary import Vocabulary
from kebab.store.qdrant.writer_lease import live_writer

_BATCH = 100
_WEIGHT_OFF = 0.002
"""How far the weight of a word may be off: it is rounded, and may have been computed back."""
_SHOWN = 3
_REBUILD = "kb index --rebuild-fts"
_READ = "kb ingest; documents of a library with: kb lib refresh"
_READ_AGAIN = f"{_REBUILD}; then read those documents again with: {_READ}"


def integrity_checks(client: Client, schema: Schema, korean_analysis: str) -> list[Check]:
    try:
        with our_errors(client.address, missing=schema.missing_error):
            schema.require()
            if missing := schema.missing():
                return [Check("collections", False, f"missing: {', '.join(missing)}", RESTORE)]
            checks: list[Check] = []
            writer = live_writer(schema.catalog)
            if not writer:
                checks = _Verification(schema, read_state(schema.catalog), korean_analysis).checks()
                if not all(check.ok for check in checks):
                    writer = live_writer(schema.catalog)  # what looks wrong may just be changing
            if writer:
                return [Check("store", True, f"{NOT_CHECKED}: {writer} is writing", "Look again when it is done.")]
            return checks
    except NotFound as error:
        return [Check("database", not schema.exists(), error.message, error.hint)]
    except StoreError as error:
        return [Check("database", False, error.message, error.hint)]


class _Faults:
    """How often something is wrong, and some of it by name."""

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


class _Verification:
    def __init__(self, schema: Schema, state: State, korean_analysis: str) -> None:
        self._schema = schema
        self._state = state
        self._korean_analysis = state.korean_analysis or korean_analysis
        self._tokenizer = SqliteTokenizer()
        self._vocabulary = Vocabulary(schema.terms)
        self._versions = {version.key: version for version in stored_versions(schema.catalog)}
        self._spaces = frozenset(schema.spaces())
        self._documents: set[str] = set()
        self._chunks = 0
        self._sizes = {corpus: CorpusSize() for corpus in CORPORA}
        self._terms: Counter[int] = Counter()
        self._damaged, self._incomplete, self._unread, self._without_text = (_Faults() for _ in range(4))
        self._unlisted, self._other_fields, self._other_words, self._unknown_words = (_Faults() for _ in range(4))
        self._lost_sources, self._lost_versions = _Faults(), _Faults()
        self._other_average = 0

    def checks(self) -> list[Check]:
        for some in batches(self._schema.documents.scroll(payload=WITHOUT_TEXT), _BATCH):
            readable = {}
            for point in some:
                if is_document(point):
                    readable[point["payload"]["doc"]] = point["payload"]
                else:
                    self._damaged.add(_name(point["payload"]))
            self._verify(readable)
        self._find_unknown_words(note.text for source in self._state.sources.values() for note in source.notes)
        return [
            self._document_check(),
            self._source_check(),
            self._chunk_check(),
            self._word_check(),
            self._count_check(),
            self._vocabulary_check(),
            self._vector_check(),
            self._library_check(),
            self._change_check(),
        ]

    # --- looking at documents and chunks

    def _verify(self, documents: Mapping[str, Payload]) -> None:
        self._documents |= documents.keys()
        stored = stored_texts(self._schema.documents, list(documents))
        missing = {doc_id: set(document["chunks"]) for doc_id, document in documents.items()}
        texts: list[str] = []
        for point in self._schema.chunks.scroll(where("doc", *documents), vectors=[WORDS]):
            chunk = point["payload"]
            document = documents[chunk["doc"]]
            self._chunks += 1
            if is_chunk_of(point, document) and chunk["chunk"] in missing[chunk["doc"]]:
                missing[chunk["doc"]].discard(chunk["chunk"])
                self._verify_chunk(chunk, document, stored.get(chunk["doc"]))
                texts += self._verify_words(chunk, document, point["vector"].get(WORDS) or {})
            else:
                self._unlisted.add(_name(document))
        for doc_id, document in documents.items():
            self._verify_document(document, lacks_chunks=bool(missing[doc_id]), has_text=doc_id in stored)
        self._find_unknown_words(texts)

    def _verify_document(self, document: Payload, *, lacks_chunks: bool, has_text: bool) -> None:
        name, versions = _name(document), document["versions"]
        if lacks_chunks or document["chunk_count"] != len(document["chunks"]):
            self._incomplete.add(name)
        elif not document["content_hash"]:
            self._unread.add(name)
        if not has_text:
            self._without_text.add(name)
        if not has_right_fields(document):
            self._damaged.add(name)
        if document["source"] not in self._state.sources:
            self._lost_sources.add(document["source"])
        if document["corpus"] == LIBRARIES and not (versions and self._versions.keys() >= set(versions)):
            self._lost_versions.add(name)

    def _verify_chunk(self, chunk: Payload, document: Payload, text: StoredText | None) -> None:
        size = self._sizes[document["corpus"]]
        changed = size._replace(chunks=size.chunks + 1, tokens=size.tokens + chunk["length"])
        self._sizes[document["corpus"]] = changed
        self._terms.update(chunk["terms"])
        if differing_fields(chunk, document):
            self._other_fields.add(_name(document))
        if not is_as_written(chunk, self._spaces) or (text is not None and not text.contains(chunk)):
            self._incomplete.add(_name(document))
        self._other_average += is_far_from(chunk["average"], self._state.sizes[document["corpus"]].average)

    def _verify_words(self, chunk: Payload, document: Payload, stored: Mapping[str, Any]) -> tuple[str, str]:
        """The texts whose words must be known."""
        found = codec.columns(chunk, self._korean_analysis, self._state.note_terms(chunk, self._korean_analysis))
        words = counted(found, document["corpus"], self._tokenizer, self._state.weights)
        wanted, has = (
            dict(zip(vector.get("indices") or (), vector.get("values") or (), strict=True))
            for vector in (words.vector(chunk["average"]), stored)
        )
        is_right = (
            words.length == chunk["length"]
            and codec.hash_of(*found) == chunk["columns_hash"]
            and (codec.EVERYWHERE in chunk["homes"]) == bool(codec.common_primaries(found, chunk["kind"]))
            and set(chunk["terms"]) == has.keys() == wanted.keys()
            and all(abs(has[term] - weight) <= _WEIGHT_OFF for term, weight in wanted.items())
        )
        if not is_right:
            self._other_words.add(_name(document))
        return found.title, chunk["text"]

    def _find_unknown_words(self, texts: Iterable[str]) -> None:
        for word in sorted(self._vocabulary.missing(texts)):
            self._unknown_words.add(word)

    # --- the checks

    def _document_check(self) -> Check:
        parts = [
            *self._damaged.told("are damaged"),
            *self._incomplete.told("lack chunks, or have others than they say"),
            *self._without_text.told("have a text that cannot be read"),
        ]
        hint = _READ_AGAIN if parts else _READ
        parts += self._unread.told("were not written to their end")
        right = f"{len(self._documents):,} documents, each with its text and all its chunks"
        return _check("documents", parts, right, hint)

    def _source_check(self) -> Check:
        parts = self._lost_sources.told("documents are of sources that are not there")
        hint = "kb ingest FOLDER --name SOURCE; a library with: kb lib add"
        return _check("sources", parts, "every document has its source", hint)

    def _chunk_check(self) -> Check:
        orphans = 0
        if self._schema.chunks.count() != self._chunks:
            payloads = self._schema.chunks.payloads(None, ["doc"])
            orphans = sum(payload.get("doc") not in self._documents for payload in payloads)
        parts = [
            *([f"{orphans:,} belong to no document"] if orphans else []),
            *self._unlisted.told("are not named by their documents"),
            *self._other_fields.told("say something else of their documents than those"),
        ]
        return _check("chunks", parts, f"{self._chunks:,} chunks, each of a document", _READ_AGAIN)

    def _word_check(self) -> Check:
        wrong = self._other_words
        parts = [f"the words of {wrong.count:,} chunks are not those of their texts ({wrong})"] if wrong.count else []
        if self._chunks and self._state.fts_config is None:
            parts.append("how they were analysed is not known any more")
        if self._other_average and not parts:  # a writer was stopped: ranks could be a little better
            message = f"as in the texts; {self._other_average:,} chunks are weighed for another average length"
            return Check("words", True, message, "The next kb ingest weighs them again.")
        return _check("words", parts, "as in the texts", _REBUILD)

    def _count_check(self) -> Check:
        parts = []
        for corpus, size in self._sizes.items():
            known = self._state.sizes[corpus]
            if known[:2] != size[:2] or (size.chunks and not known.average):
                stored = f"{known.chunks:,} chunks with {known.tokens:,} words are counted"
                parts.append(f"{stored}, and there are {size.chunks:,} with {size.tokens:,}")
        if self._sizes[LIBRARIES].chunks and not self._state.has_libraries:
            parts.append("there are chunks of libraries, and searches of other documents do not know that")
        with_counts = {"must_not": [{"is_empty": {"key": "chunks"}}]}
        points = self._schema.terms.scroll(with_counts, payload=["chunks"])
        counts = {point["id"]: point["payload"]["chunks"] for point in points}
        wrong = sum(counts.get(term, 0) != self._terms[term] for term in counts.keys() | self._terms.keys())
        if wrong:
            parts.append(f"{wrong:,} terms are in more or fewer chunks than is counted")
        return _check("word counts", parts, f"{len(counts):,} terms, counted right", _REBUILD)

    def _vocabulary_check(self) -> Check:
        parts = self._unknown_words.told("words of the texts are not known")
        return _check("vocabulary", parts, "every word of the texts is known", _REBUILD)

    def _vector_check(self) -> Check:
        """The servers themselves ensure that every vector has the size of its space."""
        count, parts = self._schema.chunks.count, []
        room = self._schema.chunks.info()["config"]["params"].get("vectors") or {}
        for name in room.keys() - {space.fingerprint for space in self._state.spaces}:
            if unknown := count({"must": [{"has_vector": name}]}):
                parts.append(f"{unknown:,} chunks have a vector of {name}, which nobody knows any more")
        for space in self._state.spaces:
            name, has_vector = space.fingerprint, {"has_vector": space.fingerprint}
            if name not in room or room[name]["size"] != space.dimension:
                parts.append(f"there is no room for vectors of {name}")
                continue
            claims = {"should": [one_of("spaces", [name]), one_of("homes", [name])]}
            if lost := count({"must": [claims], "must_not": [has_vector]}):
                parts.append(f"{lost:,} chunks should have a vector of {space.model} and have none")
            if unsaid := count({"must": [has_vector], "must_not": [one_of("spaces", [name])]}):
                parts.append(f"{unsaid:,} chunks have a vector of {space.model} that nobody knows of")
        return _check("vectors", parts, "where they should be", "kb index --rebuild-vectors")

    def _library_check(self) -> Check:
        parts = self._lost_versions.told("documents are of versions that are not there")
        homeless: list[str] = []
        payloads = self._schema.catalog.payloads(where("what", "library"))
        libraries = {str(payload.get("library_id")) for payload in payloads}
        for version in self._versions.values():
            if version.library not in libraries:
                homeless.append(f"{version.name} is of a library that is not there")
            elif not version.in_making:
                snippets = self._schema.chunks.count(where("versions", version.key))
                if snippets != version.snippets:
                    of = f"{version.snippets:,}" if isinstance(version.snippets, int) else "an unknown number"
                    parts.append(f"{version.name} has {snippets:,} snippets of {of}")
        hint = "kb lib add" if homeless else "kb lib refresh, or of one that was imported: kb lib add"
        hint = f"{_REBUILD}; then: {hint}" if self._lost_versions.count else hint
        complete = sum(not version.in_making for version in self._versions.values())
        return _check("libraries", parts + homeless, f"{complete:,} versions with all their snippets", hint)

    def _change_check(self) -> Check:
        left = self._schema.catalog.count(where("what", "unfinished"))
        parts = [f"{left:,} were interrupted"] if left else []
        return _check("changes", parts, "none was left unfinished", "The next kb ingest puts that in order.")


def _check(name: str, faults: list[str], right: str, hint: str) -> Check:
    return Check.judged(name, not faults, "; ".join(faults) or right, hint)
