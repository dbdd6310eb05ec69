"""Keeps a writer's counts: how many chunks have each term, how large the corpora are; and which changes are unfinished.

The writer announces each change in the catalog before it begins. After an interruption, the next writer finds the
announcement, completes or undoes the change, and counts everything again.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.index_versions import fts_config
from kebab.store.qdrant import codec, terms
from kebab.store.qdrant.collection import Payload, Point, PointId, bare_point, batches, point_id, where
from kebab.store.qdrant.integrity import repair
from kebab.store.qdrant.schema import META, WORDS, Schema
from kebab.store.qdrant.state import SIZES, CorpusSize, Stored, StoredSource, read_state
from kebab.store.qdrant.terms import LIBRARIES

COUNTED = ["corpus", "terms", "length"]  # the fields of a chunk that are counted
UNUSED_VECTORS = where("what", "kept_vector")  # those of texts that no chunk has now
_FLUSH_S = 5.0
_MOST_WAITING = 50_000  # terms whose counts are not written yet
_BATCH = 500
_COUNTS_BATCH = 10_000
_DOCUMENTS_BATCH = 100  # documents that are analysed again at a time


class IndexWriter(Stored):
    """Keeps the counts and the state up to date while one process holds the lease."""

    def __init__(self, schema: Schema, korean_analysis: str) -> None:
        super().__init__(schema, read_state(schema.catalog))
        self.schema, self.state = self._schema, self._state
        self.korean_analysis = korean_analysis  # the Korean analysis of the chunks that it writes
        self._sizes = dict(self.state.sizes)
        self._counts: dict[int, int] = {}  # how many chunks have a term; no other process writes, so they stay valid
        self._unwritten: set[int] = set()
        self._announced: list[PointId] = []
        self.is_changing = False  # whether an announced change is unfinished
        self._flushed = time.monotonic()

    def remember(self, **values: Any) -> None:
        if changed := {key: value for key, value in values.items() if self.state.meta.get(key) != value}:
            self._catalog.set_payload(changed, [META])
            self.state.meta.update(changed)

    def write_source(self, source: StoredSource) -> None:
        self._catalog.upsert([source.point])
        self.state.sources[source.name] = source

    def delete_source(self, name: str) -> None:
        self._catalog.delete([point_id("source", name)])
        self.state.sources.pop(name, None)

    def _announce(self, **payload: Any) -> PointId:
        point = bare_point(str(uuid4()), what="unfinished", **payload)
        self._catalog.upsert([point])
        return str(point["id"])

    @contextmanager
    def change(self, documents: Iterable[str], gone: list[Payload], new: list[Payload]) -> Iterator[None]:
        """Announces that these documents or their chunks change, and counts the words of the chunks that go and come
        when the block ends. Of the chunks, the COUNTED fields are enough.
        """
        self._announced.append(self._announce(documents=list(documents)))
        self.is_changing = True
        for corpus, size in self._sizes.items():  # weights of new chunks are for the sizes after the change
            come, go = ([chunk["length"] for chunk in chunks if chunk["corpus"] == corpus] for chunks in (new, gone))
            self._sizes[corpus] = _settled(size, size.chunks + len(come) - len(go), size.tokens + sum(come) - sum(go))
        yield
        self._count(gone, new)
        self.is_changing = False
        if len(self._unwritten) > _MOST_WAITING or time.monotonic() - self._flushed > _FLUSH_S:
            self.flush()

    def _count(self, gone: list[Payload], new: list[Payload]) -> None:
        differences: Counter[int] = Counter(term for chunk in new for term in chunk["terms"])
        differences.subtract(term for chunk in gone for term in chunk["terms"])
        changes = {term: difference for term, difference in differences.items() if difference}
        unknown = [term for term in changes if term not in self._counts]
        self._counts.update(dict.fromkeys(unknown, 0))
        stored = self.schema.terms.retrieve(unknown, payload=["chunks"])
        self._counts.update({point["id"]: point["payload"]["chunks"] for point in stored})
        for term, difference in changes.items():
            self._counts[term] = max(0, self._counts[term] + difference)
        self._unwritten.update(changes)

    @contextmanager
    def pledge_words(self, source: str) -> Iterator[None]:
        """Announces that chunks of a source get other words. If interrupted, the next writer analyses them again."""
        announced = self._announce(source=source)
        yield
        self.flush()
        self._catalog.delete([announced])

    def keep_unused(self, vectors: Iterable[tuple[str, str, bytes]]) -> int:
        """Stores vectors (space, hash of the text, float16) for texts that may return. Returns how many were new."""
        new = {point_id("kept vector", space, text_hash): data for space, text_hash, data in vectors}
        for known in self._catalog.retrieve(list(new), payload=False):
            del new[known["id"]]
        encoded = {identifier: b64encode(data).decode() for identifier, data in new.items()}
        self._catalog.upsert(bare_point(each, what="kept_vector", data=data) for each, data in encoded.items())
        return len(new)

    def forget_unused(self, *, more_than: int = 0) -> None:
        if self._catalog.count(UNUSED_VECTORS) > more_than:
            self._catalog.delete(UNUSED_VECTORS)

    def flush(self) -> None:
        """Writes the counts, and deletes the announcements."""
        if self._announced:
            self._write_counts()
            self._catalog.delete(self._announced)
            self._announced = []
        self._flushed = time.monotonic()

    def count_everything(self) -> None:
        """Counts all terms, chunks and tokens again, by reading every chunk, and corrects what is stored."""
        points = self.schema.terms.scroll(terms.WITH_COUNTS, payload=["chunks"], batch=_COUNTS_BATCH)
        stored = {point["id"]: point["payload"].get("chunks") for point in points}
        self._counts = {**dict.fromkeys(stored, 0), **self._chunks.values("terms")}
        self._unwritten = {term for term, count in self._counts.items() if count != stored.get(term)}
        chunks: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        for payload in self._chunks.payloads(None, ["corpus", "length"], batch=_COUNTS_BATCH):
            chunks[payload["corpus"]] += 1
            tokens[payload["corpus"]] += payload["length"]
        self._sizes = {each: _settled(size, chunks[each], tokens[each]) for each, size in self._sizes.items()}
        self._write_counts()
        self.remember(libraries=chunks[LIBRARIES] > 0)

    def _write_counts(self) -> None:
        present = [term for term in sorted(self._unwritten) if self._counts[term]]
        self.schema.terms.upsert(bare_point(term, chunks=self._counts[term]) for term in present)
        self.schema.terms.delete(sorted(self._unwritten.difference(present)))
        self._unwritten = set()
        sizes = {corpus: list(size) for corpus, size in self._sizes.items()}
        self._catalog.upsert([bare_point(SIZES, what="sizes", **sizes)])
        self.state.sizes.update(self._sizes)

    def average(self, corpus: str) -> float:
        """Returns the average chunk length for the weights of new chunks. First remembers the range of those in use, so
        that `finish` need not read the chunks to know that none needs new weights.
        """
        average = self._sizes[corpus].average or 1.0
        ranges = self.state.meta.get("weighed_for") or {}
        unknown = 0.0 if self.state.sizes[corpus].chunks else average
        least, most = ranges.get(corpus) or (unknown, average)
        if corpus not in ranges or not least <= average <= most:
            self.remember(weighed_for={**ranges, corpus: [min(least, average), max(most, average)]})
        return average

    def finish(self) -> None:
        """Writes the counts, and gives new weights to chunks whose weights are for a very different average length."""
        self.flush()
        ranges = self.state.meta.get("weighed_for") or {}
        for corpus, size in self._sizes.items():
            if any(terms.is_far_from(average, size.average) for average in ranges.get(corpus) or ()):
                used = self._reweigh(corpus, size.average or 1.0)
                ranges = {**ranges, corpus: [min(used), max(used)]}
                self.remember(weighed_for=ranges)

    def _reweigh(self, corpus: str, current: float) -> set[float]:
        """Converts the weights of chunks to the current average, and returns all averages that are then in use. An
        interruption does no harm, because each chunk names its own average.
        """
        used = {current}
        fields = ["length", "average"]
        points = self._chunks.scroll(where("corpus", corpus), payload=fields, vectors=[WORDS], batch=_BATCH)
        for some in batches(points, _BATCH):
            far: list[Point] = []
            for point in some:
                length, average = (point["payload"][field] for field in fields)
                if terms.is_far_from(average, current):
                    vector = terms.reweighed(point["vector"][WORDS], length, average, current)
                    far.append({"id": point["id"], "vector": {WORDS: vector}})
                else:
                    used.add(average)
            if far:  # both in one request, or an interruption could lead to weights that are converted twice
                facts = {"payload": {"average": current}, "points": [point["id"] for point in far]}
                self._chunks.change([{"update_vectors": {"points": far}}, {"set_payload": facts}])
        return used


class WriterPart(Stored):
    """Base class of the store's parts that write."""

    def __init__(self, writer: IndexWriter) -> None:
        super().__init__(writer.schema, writer.state)
        self._writer = writer


def _settled(size: CorpusSize, chunks: int, tokens: int) -> CorpusSize:
    """The corpus size to record: the new counts, and the old average length if it is still near enough."""
    average = terms.settled_average(tokens / chunks, size.average) if chunks else size.average
    return CorpusSize(chunks, tokens, average)


def analyse_again(writer: IndexWriter, doc_ids: Iterable[str], korean_analysis: str, *, always: bool = False) -> int:
    """Gives the chunks of these documents the terms they should have, `always` or if they have others. Returns how many
    were written.
    """
    return sum(_analyse(writer, some, korean_analysis, always) for some in batches(doc_ids, _DOCUMENTS_BATCH))


def _analyse(writer: IndexWriter, doc_ids: list[str], korean_analysis: str, always: bool) -> int:
    tokenizer = SqliteTokenizer()
    old: list[Point] = []
    new: list[tuple[Payload, terms.Counted]] = []
    for point in writer.schema.chunks.scroll(where("doc", *doc_ids)):
        columns = writer.state.columns(point["payload"], korean_analysis)
        if always or codec.hash_of(*columns) != point["payload"]["columns_hash"]:
            old.append(point)
            new.append(terms.word_fields(columns, point["payload"], tokenizer))
    if not old:
        return 0
    come = [{**point["payload"], **fields} for point, (fields, _) in zip(old, new, strict=True)]
    with writer.change(doc_ids, [point["payload"] for point in old], come):
        operations: list[dict[str, Any]] = []
        for point, (fields, words) in zip(old, new, strict=True):
            average = writer.average(point["payload"]["corpus"])
            vector = {"id": point["id"], "vector": {WORDS: words.vector(average)}}
            changed = {"payload": {**fields, "average": average}, "points": [point["id"]]}
            operations += [{"update_vectors": {"points": [vector]}}, {"set_payload": changed}]
        writer.schema.chunks.change(operations)
    return len(old)


def rebuild_fts(writer: IndexWriter) -> int:
    """Repairs points, analyses and counts all chunks again, and returns their number. If it is interrupted, `analysing`
    is still set, so `settle_analysis` begins again.
    """
    schema, korean_analysis = writer.schema, writer.korean_analysis
    writer.remember(analysing=True)
    repair(schema)
    documents = [payload["doc"] for payload in schema.documents.payloads(None, ["doc"])]
    count = analyse_again(writer, documents, korean_analysis, always=True)
    renew_words(writer)
    writer.flush()
    writer.count_everything()
    writer.remember(fts_config=fts_config(korean_analysis), analysing=None)
    return count


def renew_words(writer: IndexWriter) -> None:
    """Stores the words of all chunks and notes, and deletes all other words."""
    vocabulary = terms.Vocabulary(writer.schema.terms)
    vocabulary.add(note.text for source in writer.state.sources.values() for note in source.notes)
    for some in batches(writer.schema.chunks.payloads(None, ["text", "title", "names"]), _BATCH):
        vocabulary.add(text for payload in some for text in (payload["text"], codec.title_of(payload)))
    vocabulary.forget_unseen()


def recover(writer: IndexWriter) -> None:
    """Completes or undoes what interrupted writers began, and counts everything again. Every writer begins with it."""
    schema = writer.schema
    schema.drop_unused_chunks()
    unfinished = list(schema.catalog.scroll(where("what", "unfinished")))
    if not unfinished:
        return
    changed = {doc_id for point in unfinished for doc_id in point["payload"].get("documents") or ()}
    if changed:
        repair(schema, changed)
    writer.count_everything()
    if writer.state.korean_analysis is not None:
        sources = {point["payload"]["source"] for point in unfinished if "source" in point["payload"]}
        of_sources = schema.documents.payloads(where("source", *sources), ["doc"])
        analyse_again(writer, {*changed, *(payload["doc"] for payload in of_sources)}, writer.state.korean_analysis)
        writer.flush()
    schema.catalog.delete([point["id"] for point in unfinished])
