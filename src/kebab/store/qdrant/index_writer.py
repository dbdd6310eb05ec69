"""What every change of chunks has to keep right: how many there are, how long, and how many have each term.

Qdrant has no transactions, so a change is announced before it is made: the announcement names the documents and terms
that it touches. The numbers are written some changes later, and then the announcements are taken away. Whoever writes
next and finds one knows that somebody was interrupted, puts the documents in order that it names, and counts its terms
anew. Nothing has to be undone, because a document's new chunks come before the document itself, and its old ones leave
after it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from kebab.core.errors import KebabError
from kebab.store.qdrant.collection import Point, PointId, batches, point_id
from kebab.store.qdrant.schema import WORDS, Schema
from kebab.store.qdrant.state import CorpusSize, State, read_state, remember, write_sizes
from kebab.store.qdrant.term_counts import TermCounts
from kebab.store.qdrant.terms import CORPORA, LIBRARIES, is_far_from, reweighed, settled_average

_FLUSH_S = 5.0
_MOST_WAITING = 50_000
"""Terms whose numbers are not written yet."""
_AT_ONCE = 500
_LENGTHS_AT_ONCE = 10_000
_TERMS_AT_ONCE = 200_000
"""In one point: a long document may have more than a request can hold."""


_CHUNK_ID = re.compile("[0-9a-f]{20}")
_NO_MORE = "0" * 12
"""What an id of a chunk is shorter than one of a point."""


class ChunkWords(NamedTuple):
    """What is counted of a chunk."""

    corpus: str
    terms: list[int]
    length: int


def words_of(payload: Mapping[str, Any]) -> ChunkWords:
    return ChunkWords(payload["corpus"], payload["terms"], payload["length"])


def document_point_id(doc_id: str) -> str:
    return point_id("document", doc_id)


def chunk_point_id(chunk_id: str) -> str:
    """One can tell from it which chunk it is, so that a ranking says that without being read; and they are in the order
    of their chunks.
    """
    if not _CHUNK_ID.fullmatch(chunk_id):
        return point_id("chunk", chunk_id)  # somebody has asked for what no chunk is called
    return f"{chunk_id[:8]}-{chunk_id[8:12]}-{chunk_id[12:16]}-{chunk_id[16:]}-{_NO_MORE}"


def chunk_of(point: PointId) -> str:
    return str(point).replace("-", "")[: -len(_NO_MORE)]


def of_documents(doc_ids: Iterable[str]) -> dict[str, Any]:
    """The filter of all chunks of these documents."""
    return {"must": [{"key": "doc", "match": {"any": list(doc_ids)}}]}


class IndexWriter:
    """One for each time that somebody may write."""

    def __init__(self, schema: Schema, threads: Executor) -> None:
        """The schema is one that may be written to. Threads wait for servers while the caller makes what comes next."""
        self.schema = schema
        self.threads = threads
        self._begun: Future[int] | None = None
        self._is_open = False
        """Whether a change was announced that is not done."""
        self.state: State = read_state(schema.catalog)
        self._sizes = dict(self.state.sizes)
        self._counts = TermCounts(schema.terms)
        self._announced: list[str] = []
        self._flushed = time.monotonic()

    # --- one change after the other

    def begin(self, change: Callable[[], int]) -> Callable[[], int]:
        """Makes this change meanwhile, never two at a time. What it returns waits until the servers have confirmed it,
        and raises what went wrong; as everything does that is begun afterwards.
        """
        self.settle()
        self._begun = self.threads.submit(change)
        return self._begun.result

    def settle(self) -> None:
        """Waits for what was begun, and raises what it raised."""
        if self._begun is not None:
            self._begun.result()

    # --- changing chunks

    def announce(self, documents: Iterable[str], terms: Iterable[int], *, words_only: bool = False) -> str:
        """That these documents and chunks with these terms will be changed. What it returns is the mark of the change,
        which the documents get when they are complete; `words_only`: they stay as they are, and get none.
        """
        facts = {"what": "unfinished", "words_only": words_only, "at": time.time_ns()}
        first, *others = list(batches(terms, _TERMS_AT_ONCE)) or [[]]
        payloads = [
            {**facts, "documents": list(documents), "terms": first},
            *({**facts, "documents": [], "terms": some} for some in others),
        ]
        points: list[Point] = [{"id": str(uuid4()), "vector": {}, "payload": payload} for payload in payloads]
        self.schema.catalog.upsert(points)
        self._announced += [point["id"] for point in points]
        self._is_open = True
        return str(points[0]["id"])

    @contextmanager
    def pledge_words(self, source: str) -> Iterator[None]:
        """That the words of all passages of a source will be those they should have then, however long it takes."""
        mark = str(uuid4())
        self.schema.catalog.upsert([{"id": mark, "vector": {}, "payload": {"what": "unfinished", "source": source}}])
        yield
        self.flush()
        self.schema.catalog.delete([mark])

    def average(self, corpus: str) -> float:
        """What the weights of new chunks are computed for. Before any are, it is remembered between which averages all
        are: who knows that need not look at every chunk to know that none has to be weighed again.
        """
        average = self._sizes[corpus].average or 1.0
        spans = self.state.meta.get("weighed_for") or {}
        unknown = 0.0 if self.state.sizes[corpus].chunks else average
        least, most = spans.get(corpus) or (unknown, average)
        if corpus not in spans or not least <= average <= most:
            self._remember_spans({**spans, corpus: [min(least, average), max(most, average)]})
        return average

    def expect(self, gone: Iterable[ChunkWords], new: Iterable[ChunkWords]) -> None:
        """The sizes that the change will lead to. Nothing is written yet, but new chunks are weighed for them."""
        for corpus in CORPORA:
            before = self._sizes[corpus]
            come, go = ([chunk for chunk in chunks if chunk.corpus == corpus] for chunks in (new, gone))
            size = CorpusSize(
                before.chunks + len(come) - len(go),
                before.tokens + sum(chunk.length for chunk in come) - sum(chunk.length for chunk in go),
                before.average,
            )
            self._resize(corpus, size)

    def changed(self, gone: Iterable[ChunkWords], new: Iterable[ChunkWords]) -> None:
        """What was announced is done."""
        differences: Counter[int] = Counter()
        for chunk in new:
            differences.update(chunk.terms)
        for chunk in gone:
            differences.subtract(chunk.terms)
        self._counts.change(differences)
        self._is_open = False
        if self._counts.waiting > _MOST_WAITING or time.monotonic() - self._flushed > _FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Writes the numbers, and takes back what was announced."""
        if self._announced:
            self._counts.flush()
            write_sizes(self.schema.catalog, self._sizes)
            self.schema.catalog.delete(self._announced)
            self._announced = []
            self.state = self.state._replace(sizes=dict(self._sizes))
        self._flushed = time.monotonic()

    def flush_if_possible(self) -> None:
        """After a failure: what was interrupted in the middle is left to whoever writes next."""
        if self._begun is not None:
            wait([self._begun])
        if not self._is_open:
            with suppress(KebabError):
                self.flush()

    def finish(self) -> None:
        self.settle()
        self.flush()
        self._weigh_again()

    def count_everything(self) -> None:
        """Terms, chunks and tokens as they are: what was counted before does not matter."""
        known = {
            point["id"]
            for point in self.schema.terms.scroll({"must_not": [{"is_empty": {"key": "chunks"}}]}, payload=False)
        }
        self.count_again(known | self.schema.chunks.values("terms").keys())

    def count_again(self, terms: Iterable[int]) -> None:
        """These terms, and all chunks and tokens, as they are. That takes a look at every chunk, and is right whatever
        happened before.
        """
        self._counts.count_again(self.schema.chunks, terms)
        tokens: Counter[str] = Counter()
        chunks: Counter[str] = Counter()
        for point in self.schema.chunks.scroll(payload=["corpus", "length"], at_once=_LENGTHS_AT_ONCE):
            chunks[point["payload"]["corpus"]] += 1
            tokens[point["payload"]["corpus"]] += point["payload"]["length"]
        for corpus in CORPORA:
            self._resize(corpus, CorpusSize(chunks[corpus], tokens[corpus], self._sizes[corpus].average))
        write_sizes(self.schema.catalog, self._sizes)
        self.state = self.state._replace(sizes=dict(self._sizes))
        self.tell_of_libraries(there=chunks[LIBRARIES] > 0)

    def tell_of_libraries(self, *, there: bool) -> None:
        """Before the first chunk of a library comes, or after the last one is gone: who searches relies on it."""
        if self.state.has_libraries != there:
            remember(self.schema.catalog, libraries=there)
            self.state.meta["libraries"] = there

    def _resize(self, corpus: str, size: CorpusSize) -> None:
        self._sizes[corpus] = (
            size._replace(average=settled_average(size.current_average, size.average)) if size.chunks else size
        )

    # --- weights

    def _weigh_again(self) -> None:
        """Chunks that were weighed for quite another average. Each says which, so that this may be interrupted."""
        current = {corpus: size.average for corpus, size in self._sizes.items()}
        spans = self.state.meta.get("weighed_for") or {}
        moved = [
            corpus for corpus, span in spans.items() if any(is_far_from(average, current[corpus]) for average in span)
        ]
        if not moved:
            return
        of_moved = {"must": [{"key": "corpus", "match": {"any": moved}}]}
        averages: dict[str, set[float]] = {corpus: {current[corpus] or 1.0} for corpus in moved}
        wanted: list[Point] = []
        for point in self.schema.chunks.scroll(
            of_moved, payload=["corpus", "length", "average"], vectors=[WORDS], at_once=_AT_ONCE
        ):
            corpus, average = point["payload"]["corpus"], point["payload"]["average"]
            if is_far_from(average, current[corpus]):
                wanted.append(point)
            else:
                averages[corpus].add(average)
            if len(wanted) == _AT_ONCE:
                self.begin(partial(self._weigh, wanted, current))
                wanted = []
        self.begin(partial(self._weigh, wanted, current))()
        self._remember_spans({**spans, **{corpus: [min(found), max(found)] for corpus, found in averages.items()}})

    def _remember_spans(self, spans: dict[str, list[float]]) -> None:
        remember(self.schema.catalog, weighed_for=spans)
        self.state.meta["weighed_for"] = spans

    def _weigh(self, points: list[Point], current: Mapping[str, float | None]) -> int:
        """Weights, and the average that they are for, in one request: otherwise somebody might believe to find old
        ones.
        """
        operations: list[dict[str, Any]] = []
        for corpus in CORPORA:
            average = current[corpus] or 1.0
            ours = [point for point in points if point["payload"]["corpus"] == corpus]
            new = [
                {
                    "id": point["id"],
                    "vector": {WORDS: reweighed(point["vector"][WORDS], facts["length"], facts["average"], average)},
                }
                for point in ours
                for facts in [point["payload"]]
            ]
            if new:
                operations.append({"update_vectors": {"points": new}})
                operations.append(
                    {"set_payload": {"payload": {"average": average}, "points": [point["id"] for point in ours]}}
                )
        if operations:
            self.schema.chunks.change(operations)
        return len(points)
