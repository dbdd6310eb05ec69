"""Keeps a writer's counts: how many chunks have each term, how large the corpora are; and which changes are unfinished.

The writer announces each change in the catalog before it begins. After an interruption, the next writer finds the
announcement, completes or undoes the change, and counts its terms again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from uuid import uuid4

from kebab.core.errors import KebabError
from kebab.store.qdrant.collection import Payload, Point, batches, point_id, where
from kebab.store.qdrant.schema import META, WORDS, Schema
from kebab.store.qdrant.state import SIZES, CorpusSize, Stored, StoredSource, read_state
from kebab.store.qdrant.terms import CORPORA, LIBRARIES, is_far_from, reweighed, settled_average

_FLUSH_S = 5.0
_MOST_WAITING = 50_000  # terms whose counts are not written yet
_BATCH = 500
_LENGTHS_BATCH = 10_000
_TERMS_BATCH = 200_000  # terms in one announcement: a long document may have more than a request can hold
_COUNTED_ONE_BY_ONE = 500  # up to this many terms are counted by a request each
_WEIGHED_FIELDS = ["corpus", "length", "average"]
WITH_COUNTS = {"must_not": [{"is_empty": {"key": "chunks"}}]}
"""The filter for the points of terms that have a count."""


class ChunkWords(NamedTuple):
    """The payload fields of a chunk that are counted."""

    corpus: str
    terms: list[int]
    length: int


def words_of(payloads: Iterable[Payload]) -> list[ChunkWords]:
    return [ChunkWords(payload["corpus"], payload["terms"], payload["length"]) for payload in payloads]


class IndexWriter(Stored):
    """Keeps the counts and the state up to date while one process holds the lease."""

    def __init__(self, schema: Schema, korean_analysis: str) -> None:
        super().__init__(schema, read_state(schema.catalog))
        self.schema, self.state = self._schema, self._state
        self.korean_analysis = korean_analysis
        """The Korean analysis of the chunks that it writes."""
        self._sizes = dict(self.state.sizes)
        self._counts: dict[int, int] = {}
        """How many chunks have a term. No other process writes, so counts that were read once stay valid."""
        self._unwritten: set[int] = set()
        self._announced: list[str] = []
        self._is_changing = False
        """Whether an announced change is unfinished."""
        self._flushed = time.monotonic()

    def remember(self, **values: Any) -> None:
        self._catalog.set_payload(values, [META])
        self.state.meta.update(values)

    def write_source(self, source: StoredSource) -> None:
        self._catalog.upsert([source.point])
        self.state.sources[source.name] = source

    def delete_source(self, name: str) -> None:
        self._catalog.delete([point_id("source", name)])
        self.state.sources.pop(name, None)

    def remember_libraries(self, *, exist: bool) -> None:
        """Remembers whether library chunks exist. Called before writing the first and after deleting the last."""
        if self.state.has_libraries != exist:
            self.remember(libraries=exist)

    @contextmanager
    def change(
        self, documents: Iterable[str], gone: list[ChunkWords], new: list[ChunkWords], *, words_only: bool = False
    ) -> Iterator[str]:
        """Announces that these documents change, with the words of the chunks that go and come, and counts those words
        when the block ends. Yields the mark for the complete documents. `words_only`: the documents stay as they are
        and get no mark.
        """
        terms = {term for chunk in (*gone, *new) for term in chunk.terms}
        facts = {"what": "unfinished", "words_only": words_only, "at": time.time_ns()}
        first, *others = list(batches(terms, _TERMS_BATCH)) or [[]]
        payloads = [{**facts, "documents": list(documents), "terms": first}]
        payloads += [{**facts, "documents": [], "terms": some} for some in others]
        points: list[Point] = [{"id": str(uuid4()), "vector": {}, "payload": payload} for payload in payloads]
        self._catalog.upsert(points)
        self._announced += [point["id"] for point in points]
        self._is_changing = True
        for corpus, size in self._sizes.items():  # weights of new chunks are for the sizes after the change
            come, go = ([chunk.length for chunk in chunks if chunk.corpus == corpus] for chunks in (new, gone))
            self._sizes[corpus] = _settled(size, size.chunks + len(come) - len(go), size.tokens + sum(come) - sum(go))
        yield points[0]["id"]
        self._count(gone, new)
        self._is_changing = False
        if len(self._unwritten) > _MOST_WAITING or time.monotonic() - self._flushed > _FLUSH_S:
            self.flush()

    def _count(self, gone: list[ChunkWords], new: list[ChunkWords]) -> None:
        differences: Counter[int] = Counter(term for chunk in new for term in chunk.terms)
        differences.subtract(term for chunk in gone for term in chunk.terms)
        changes = {term: difference for term, difference in differences.items() if difference}
        if unknown := [term for term in changes if term not in self._counts]:
            self._counts.update(dict.fromkeys(unknown, 0))
            stored = self.schema.terms.retrieve(unknown, payload=["chunks"])
            self._counts.update({point["id"]: point["payload"]["chunks"] for point in stored})
        for term, difference in changes.items():
            self._counts[term] = max(0, self._counts[term] + difference)
        self._unwritten.update(changes)

    @contextmanager
    def pledge_words(self, source: str) -> Iterator[None]:
        """Announces that chunks of a source get other words. If interrupted, the next writer analyses them again."""
        mark = str(uuid4())
        self._catalog.upsert([{"id": mark, "vector": {}, "payload": {"what": "unfinished", "source": source}}])
        yield
        self.flush()
        self._catalog.delete([mark])

    def flush(self) -> None:
        """Writes the counts, and deletes the announcements."""
        if self._announced:
            self._write_counts(self._unwritten)
            self._unwritten = set()
            self._write_sizes()
            self._catalog.delete(self._announced)
            self._announced = []
        self._flushed = time.monotonic()

    def flush_if_possible(self) -> None:
        """Flushes after a failure. An unfinished change is left to the next writer."""
        if not self._is_changing:
            with suppress(KebabError):
                self.flush()

    def count_everything(self) -> None:
        """Counts all terms, chunks and tokens again."""
        known = {point["id"] for point in self.schema.terms.scroll(WITH_COUNTS, payload=False)}
        self.count_again(known | self._chunks.values("terms").keys())

    def count_again(self, terms: Iterable[int]) -> None:
        """Counts these terms, and all chunks and tokens, by reading every chunk."""
        wanted, chunks = set(terms), self._chunks
        if len(wanted) <= _COUNTED_ONE_BY_ONE:
            found = {term: chunks.count({"must": [{"key": "terms", "match": {"value": term}}]}) for term in wanted}
        else:
            found = chunks.values("terms")
        self._counts.update({term: found.get(term, 0) for term in wanted})
        self._write_counts(wanted)
        lengths: dict[str, list[int]] = {corpus: [] for corpus in CORPORA}
        for point in chunks.scroll(payload=["corpus", "length"], batch=_LENGTHS_BATCH):
            lengths.setdefault(point["payload"]["corpus"], []).append(point["payload"]["length"])
        for corpus in CORPORA:
            self._sizes[corpus] = _settled(self._sizes[corpus], len(lengths[corpus]), sum(lengths[corpus]))
        self._write_sizes()
        self.remember_libraries(exist=bool(lengths[LIBRARIES]))

    def _write_counts(self, terms: Iterable[int]) -> None:
        counts = {term: self._counts[term] for term in sorted(terms)}
        present = {term: chunks for term, chunks in counts.items() if chunks}
        self.schema.terms.upsert({"id": term, "vector": {}, "payload": {"chunks": n}} for term, n in present.items())
        self.schema.terms.delete([term for term in counts if term not in present])

    def _write_sizes(self) -> None:
        payload = {"what": "sizes", **{corpus: list(size) for corpus, size in self._sizes.items()}}
        self._catalog.upsert([{"id": SIZES, "vector": {}, "payload": payload}])
        self.state.sizes.update(self._sizes)

    def average(self, corpus: str) -> float:
        """Returns the average chunk length for the weights of new chunks. First remembers the range of all averages in
        use, so that `finish` can tell without reading the chunks that none needs new weights.
        """
        average = self._sizes[corpus].average or 1.0
        ranges = self.state.meta.get("weighed_for") or {}
        unknown = 0.0 if self.state.sizes[corpus].chunks else average
        least, most = ranges.get(corpus) or (unknown, average)
        if corpus not in ranges or not least <= average <= most:
            self.remember(weighed_for={**ranges, corpus: [min(least, average), max(most, average)]})
        return average

    def finish(self) -> None:
        """Writes the counts, and gives new weights to chunks whose weights are for a very different average length. An
        interruption does no harm, because each chunk names its own average.
        """
        self.flush()
        current = {corpus: size.average or 1.0 for corpus, size in self._sizes.items()}
        ranges = self.state.meta.get("weighed_for") or {}
        moved = [
            corpus
            for corpus, averages in ranges.items()
            if any(is_far_from(average, self._sizes[corpus].average) for average in averages)
        ]
        if not moved:
            return
        kept = {corpus: {current[corpus]} for corpus in moved}
        points = self._chunks.scroll(where("corpus", *moved), payload=_WEIGHED_FIELDS, vectors=[WORDS], batch=_BATCH)
        for some in batches(points, _BATCH):
            far = []
            for point in some:
                corpus, average = point["payload"]["corpus"], point["payload"]["average"]
                if is_far_from(average, current[corpus]):
                    far.append(point)
                else:
                    kept[corpus].add(average)
            self._chunks.change(_reweighing(far, current))
        self.remember(weighed_for={**ranges, **{corpus: [min(used), max(used)] for corpus, used in kept.items()}})


class WriterPart(Stored):
    """Base class of the store's parts that write."""

    def __init__(self, writer: IndexWriter) -> None:
        super().__init__(writer.schema, writer.state)
        self._writer = writer


def _settled(size: CorpusSize, chunks: int, tokens: int) -> CorpusSize:
    """The corpus size to record: the new counts, and the old average length if it is still near enough."""
    average = settled_average(tokens / chunks, size.average) if chunks else size.average
    return CorpusSize(chunks, tokens, average)


def _reweighing(points: list[Point], current: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Yields operations that set the weights of points and the average they are for. Both must be in one request:
    otherwise an interruption could lead to weights that are converted twice.
    """
    for corpus, average in current.items():
        new = [
            {"id": point["id"], "vector": {WORDS: reweighed(point["vector"][WORDS], length, before, average)}}
            for point in points
            for own, length, before in [[point["payload"][field] for field in _WEIGHED_FIELDS]]
            if own == corpus
        ]
        if new:
            yield {"update_vectors": {"points": new}}
            yield {"set_payload": {"payload": {"average": average}, "points": [point["id"] for point in new]}}
