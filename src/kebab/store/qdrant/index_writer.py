"""The writer's bookkeeping: how many chunks have each term, how large the corpora are, and which changes are under way.

Before a change it is announced in the catalog. Whoever writes after an interruption finds the announcement, completes
or takes back the change, and counts its terms again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from uuid import uuid4

from kebab.core.errors import KebabError
from kebab.store.qdrant.collection import Payload, Point, batches, where
from kebab.store.qdrant.schema import WORDS, Schema
from kebab.store.qdrant.state import CorpusSize, State, read_state, remember, write_sizes
from kebab.store.qdrant.terms import CORPORA, LIBRARIES, is_far_from, reweighed, settled_average

_FLUSH_S = 5.0
_MOST_WAITING = 50_000
"""Terms whose counts are not written yet."""
_BATCH = 500
_LENGTHS_BATCH = 10_000
_TERMS_BATCH = 200_000
"""Terms in one announcement: a long document may have more than a request can hold."""
_COUNTED_ONE_BY_ONE = 500
"""More terms than these are counted all at once."""


class ChunkWords(NamedTuple):
    """What is counted of a chunk."""

    corpus: str
    terms: list[int]
    length: int


def words_of(payload: Payload) -> ChunkWords:
    return ChunkWords(payload["corpus"], payload["terms"], payload["length"])


class IndexWriter:
    """Used by one holder of the lease."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.state: State = read_state(schema.catalog)
        self._sizes = dict(self.state.sizes)
        self._counts: dict[int, int] = {}
        """How many chunks have a term. Nobody else writes, so what was read once stays valid."""
        self._unwritten: set[int] = set()
        self._announced: list[str] = []
        self._is_changing = False
        """Whether an announced change is not done yet."""
        self._flushed = time.monotonic()

    # --- changes

    def announce(
        self,
        documents: Iterable[str],
        gone: Iterable[ChunkWords],
        new: Iterable[ChunkWords],
        *,
        words_only: bool = False,
    ) -> str:
        """Announces that these documents change, and that chunks with these words go and come. Returns the mark for the
        complete documents. `words_only`: the documents stay as they are and get no mark.
        """
        gone, new = list(gone), list(new)
        terms = {term for chunk in (*gone, *new) for term in chunk.terms}
        facts = {"what": "unfinished", "words_only": words_only, "at": time.time_ns()}
        first, *others = list(batches(terms, _TERMS_BATCH)) or [[]]
        payloads = [{**facts, "documents": list(documents), "terms": first}]
        payloads += [{**facts, "documents": [], "terms": some} for some in others]
        points: list[Point] = [{"id": str(uuid4()), "vector": {}, "payload": payload} for payload in payloads]
        self.schema.catalog.upsert(points)
        self._announced += [point["id"] for point in points]
        self._is_changing = True
        for corpus, size in self._sizes.items():  # new chunks are weighed for the sizes that the change leads to
            come, go = ([chunk.length for chunk in chunks if chunk.corpus == corpus] for chunks in (new, gone))
            changed = size._replace(chunks=size.chunks + len(come) - len(go), tokens=size.tokens + sum(come) - sum(go))
            self._sizes[corpus] = _settled(changed)
        return str(points[0]["id"])

    def done(self, gone: Iterable[ChunkWords], new: Iterable[ChunkWords]) -> None:
        """The announced change is done."""
        differences: Counter[int] = Counter()
        for chunk in new:
            differences.update(chunk.terms)
        for chunk in gone:
            differences.subtract(chunk.terms)
        changes = {term: difference for term, difference in differences.items() if difference}
        if unknown := [term for term in changes if term not in self._counts]:
            self._counts.update(dict.fromkeys(unknown, 0))
            stored = self.schema.terms.retrieve(unknown, payload=["chunks"])
            self._counts.update({point["id"]: point["payload"]["chunks"] for point in stored})
        for term, difference in changes.items():
            self._counts[term] = max(0, self._counts[term] + difference)
        self._unwritten.update(changes)
        self._is_changing = False
        if len(self._unwritten) > _MOST_WAITING or time.monotonic() - self._flushed > _FLUSH_S:
            self.flush()

    @contextmanager
    def pledge_words(self, source: str) -> Iterator[None]:
        """Announces that all chunks of a source will get the words they should have then."""
        mark = str(uuid4())
        self.schema.catalog.upsert([{"id": mark, "vector": {}, "payload": {"what": "unfinished", "source": source}}])
        yield
        self.flush()
        self.schema.catalog.delete([mark])

    def flush(self) -> None:
        """Writes the counts, and deletes the announcements."""
        if self._announced:
            self._write_counts(self._unwritten)
            self._unwritten = set()
            self._write_sizes()
            self.schema.catalog.delete(self._announced)
            self._announced = []
        self._flushed = time.monotonic()

    def flush_if_possible(self) -> None:
        """After a failure. A change that was interrupted is left to the next writer."""
        if not self._is_changing:
            with suppress(KebabError):
                self.flush()

    def finish(self) -> None:
        self.flush()
        self._weigh_again()

    # --- counting

    def count_everything(self) -> None:
        """Counts terms, chunks and tokens anew."""
        with_counts = {"must_not": [{"is_empty": {"key": "chunks"}}]}
        known = {point["id"] for point in self.schema.terms.scroll(with_counts, payload=False)}
        self.count_again(known | self.schema.chunks.values("terms").keys())

    def count_again(self, terms: Iterable[int]) -> None:
        """Counts these terms, and all chunks and tokens, by reading every chunk."""
        wanted, chunks = set(terms), self.schema.chunks
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
            size = CorpusSize(len(lengths[corpus]), sum(lengths[corpus]), self._sizes[corpus].average)
            self._sizes[corpus] = _settled(size)
        self._write_sizes()
        self.remember_libraries(exist=bool(lengths[LIBRARIES]))

    def remember_libraries(self, *, exist: bool) -> None:
        """Called before the first chunk of a library is written, and after the last one is deleted."""
        if self.state.has_libraries != exist:
            remember(self.schema.catalog, self.state, libraries=exist)

    def _write_counts(self, terms: Iterable[int]) -> None:
        ordered = sorted(terms)
        self.schema.terms.upsert(
            {"id": term, "vector": {}, "payload": {"chunks": self._counts[term]}}
            for term in ordered
            if self._counts[term]
        )
        self.schema.terms.delete([term for term in ordered if not self._counts[term]])

    def _write_sizes(self) -> None:
        write_sizes(self.schema.catalog, self._sizes)
        self.state.sizes.update(self._sizes)

    # --- weights

    def average(self, corpus: str) -> float:
        """The average length that new chunks are weighed for. The range of all averages in use is remembered before, so
        that one need not read every chunk to know that none has to be weighed again.
        """
        average = self._sizes[corpus].average or 1.0
        ranges = self.state.meta.get("weighed_for") or {}
        unknown = 0.0 if self.state.sizes[corpus].chunks else average
        least, most = ranges.get(corpus) or (unknown, average)
        if corpus not in ranges or not least <= average <= most:
            ranges = {**ranges, corpus: [min(least, average), max(most, average)]}
            remember(self.schema.catalog, self.state, weighed_for=ranges)
        return average

    def _weigh_again(self) -> None:
        """Weighs chunks again that were weighed for quite another average. It may be stopped: each names its own."""
        current = {corpus: size.average or 1.0 for corpus, size in self._sizes.items()}
        ranges = self.state.meta.get("weighed_for") or {}
        moved = [
            corpus
            for corpus, averages in ranges.items()
            if any(is_far_from(average, self._sizes[corpus].average) for average in averages)
        ]
        if not moved:
            return
        averages = {corpus: {current[corpus]} for corpus in moved}
        fields = ["corpus", "length", "average"]
        points = self.schema.chunks.scroll(where("corpus", *moved), payload=fields, vectors=[WORDS], batch=_BATCH)
        for some in batches(points, _BATCH):
            far = []
            for point in some:
                corpus, average = point["payload"]["corpus"], point["payload"]["average"]
                if is_far_from(average, current[corpus]):
                    far.append(point)
                else:
                    averages[corpus].add(average)
            self.schema.chunks.change(_reweighing(far, current))
        ranges = {**ranges, **{corpus: [min(found), max(found)] for corpus, found in averages.items()}}
        remember(self.schema.catalog, self.state, weighed_for=ranges)


def _settled(size: CorpusSize) -> CorpusSize:
    return size._replace(average=settled_average(size.current_average, size.average)) if size.chunks else size


def _reweighing(points: list[Point], current: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Weights and the average they are for, in one request: otherwise weights could be computed twice."""
    for corpus in CORPORA:
        average, own = current[corpus], [point for point in points if point["payload"]["corpus"] == corpus]
        if own:
            new = [
                {"id": point["id"], "vector": {WORDS: reweighed(point["vector"][WORDS], length, before, average)}}
                for point in own
                for length, before in [(point["payload"]["length"], point["payload"]["average"])]
            ]
            yield {"update_vectors": {"points": new}}
            yield {"set_payload": {"payload": {"average": average}, "points": [point["id"] for point in own]}}
