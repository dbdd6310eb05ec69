"""The second half of an ingest: a vector for every chunk that has none.

It begins when the text index is written, so that one can search meanwhile, and may be stopped anywhere: what is done is stored, and the
next run goes on. A text that was embedded before, in whatever file, is not embedded again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Protocol

from kebab.core.documents import embedded_text
from kebab.core.ports import Embedder, EmbeddingModels, NewVector, PendingChunk, Progress
from kebab.pipelines.ingest_report import IngestReport, quiet

_WINDOW = 2048
"""Chunks looked at together: enough to find many of one length, few enough to hold in memory."""
_AT_ONCE = 64
"""Texts embedded between two commits: some seconds of work."""


class VectorWriter(Protocol):
    def pending(self, embedders: Sequence[Embedder], *, after: int, limit: int) -> list[PendingChunk]: ...
    def pending_in(self, embedder: Embedder, *, after: int, limit: int) -> list[PendingChunk]: ...
    def count_pending(self, embedders: Sequence[Embedder]) -> int: ...
    def count_pending_in(self, embedder: Embedder) -> int: ...
    def is_home(self, embedder: Embedder) -> bool: ...
    def link(self, embedder: Embedder, chunks: Sequence[tuple[int, bytes]], *, home: bool) -> set[int]: ...
    def add(self, embedder: Embedder, vectors: Sequence[NewVector], *, home: bool) -> None: ...
    def settle(self, embedders: Sequence[Embedder], second: Embedder | None = None) -> None: ...


class _Text:
    """A text to embed, and all chunks that have it."""

    __slots__ = ("chunks", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.chunks: list[int] = []


class EmbeddingPhase:
    def __init__(self, store: VectorWriter, models: EmbeddingModels, report: IngestReport, progress: Progress | None = None) -> None:
        self._store = store
        self._models = models
        self._report = report
        self._progress: Progress = progress or quiet
        self._done = self._total = 0

    def run(self) -> None:
        started = time.perf_counter()
        try:
            self._embed_all()
        finally:
            self._report.embedding_seconds = time.perf_counter() - started

    def _embed_all(self) -> None:
        embedders = self._models.embedders
        self._total = self._store.count_pending(embedders)
        after = 0
        while chunks := self._store.pending(embedders, after=after, limit=_WINDOW):
            after = chunks[-1].row
            texts = [(chunk.row, _text_of(chunk)) for chunk in chunks]
            for embedder in embedders:
                own = [(row, text) for row, text in texts if self._models.home_of(text) is embedder]
                self._embed(embedder, own, home=True)
        second = self._models.second_home(other_scripts=len(embedders) > 1 and self._store.is_home(embedders[-1]))
        if second is not None:
            self._embed_second(second)
        self._store.settle(embedders, second)

    def _embed_second(self, embedder: Embedder) -> None:
        self._total += self._store.count_pending_in(embedder)
        after = 0
        while chunks := self._store.pending_in(embedder, after=after, limit=_WINDOW):
            after = chunks[-1].row
            self._embed(embedder, [(chunk.row, _text_of(chunk)) for chunk in chunks], home=False)

    def _embed(self, embedder: Embedder, chunks: Sequence[tuple[int, str]], *, home: bool) -> None:
        if not chunks:
            return
        hashed = [(row, _hash(text), text) for row, text in chunks]
        linked = self._store.link(embedder, [(row, text_hash) for row, text_hash, _ in hashed], home=home)
        self._report.vectors_reused += len(linked)
        self._advance(len(linked), embedder)
        texts: dict[bytes, _Text] = {}
        for row, text_hash, text in hashed:
            if row not in linked:
                texts.setdefault(text_hash, _Text(text)).chunks.append(row)
        for batch in _by_length(texts):
            vectors = embedder.embed([text.text for _, text in batch], "passage")
            new = [NewVector(text_hash, vector, text.chunks) for (text_hash, text), vector in zip(batch, vectors, strict=True)]
            self._store.add(embedder, new, home=home)
            self._report.vectors_made += len(batch)
            self._advance(sum(len(text.chunks) for _, text in batch), embedder)

    def _advance(self, count: int, embedder: Embedder) -> None:
        self._done += count
        self._progress("embedding", path=embedder.name, done=self._done, total=max(self._total, self._done))


def _text_of(chunk: PendingChunk) -> str:
    return embedded_text(chunk.path, chunk.title, chunk.headings, chunk.text)


def _hash(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _by_length(texts: dict[bytes, _Text]) -> Iterator[list[tuple[bytes, _Text]]]:
    """Texts of about one length together, longest first: what runs out of memory does so at once, and the rate only gets better."""
    ordered = sorted(texts.items(), key=lambda item: -len(item[1].text))
    for start in range(0, len(ordered), _AT_ONCE):
        yield ordered[start : start + _AT_ONCE]
