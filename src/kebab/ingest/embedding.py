"""The second half of an ingest: a vector for every chunk that has none.

It begins after the text index is written, so that search by words works meanwhile. It can be stopped at any time:
finished vectors are stored, and the next run continues. A text that occurs in several files is embedded only once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from kebab.core.documents import embedded_text
from kebab.core.errors import Locked, TextRefused, VectorsOff
from kebab.core.ports import Embedder, EmbeddingModels, Key, NewVector, PendingChunk, Progress
from kebab.ingest.report import Failure, IngestReport, quiet

if TYPE_CHECKING:
    from kebab.core.store_ports import VectorWriter
    from kebab.session import Session

_WINDOW = 2048
"""Chunks read together: enough to batch texts of similar length, few enough to keep in memory."""
_AT_ONCE = 64
"""The most texts embedded between two commits."""
_CHARS_AT_ONCE = 24_000
"""The most characters embedded between two commits. A killed process loses this much work, about a second."""
_CHARS_WHEN_STOPPABLE = 4096
"""The most characters between two commits if the caller may stop the run: about a third of a second of work."""
_SAYING_S = 2.0
"""How often the store is told when the run will end."""
_REFUSED_IN_A_ROW = 8
"""After so many refused texts in a row, a harmless text tests whether the model refuses everything."""
_HARMLESS = "Is it about the text?"


class _Waiting(NamedTuple):
    """A chunk without a vector."""

    key: Key
    path: str
    text: str


@dataclass(slots=True, eq=False)
class _Text:
    """A text to embed, and the chunks with this text."""

    hash: bytes
    text: str
    path: str
    chunks: list[Key] = field(default_factory=list)


class _Stopped(Exception):
    """`stop` returned True."""


def embed_missing(
    session: Session,
    purpose: str,
    report: IngestReport,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> bool:
    """Makes the missing vectors until `stop` returns True. Returns whether all are made. `purpose` is the reason that
    other writers see while they wait.
    """
    models = session.models
    if models is None:
        return True
    report.vectors_unfinished = True  # also if an error ends it
    is_complete = _Embedding(session, purpose, models, report, progress or quiet, stop).run()
    report.vectors_unfinished = not is_complete
    return is_complete


def rebuild_vectors(session: Session, progress: Progress | None = None) -> IngestReport:
    """Deletes the vectors of the models in the settings and makes them again. If others made them, those stay until the
    new ones are complete.
    """
    models = session.models
    if models is None:
        raise VectorsOff()
    for embedder in models.embedders:
        embedder.embed(["Is it there?"], "passage")  # a broken model raises here, before the deletion
    report = IngestReport()
    with session.reading() as reading:
        is_behind = reading is not None and (
            models.earlier is not None
            and reading.vector_coverage(models).is_behind(reading.vector_coverage(models.earlier))
        )
    if not is_behind:
        with session.writing("kb index --rebuild-vectors", existing=True) as writing:
            writing.vectors().clear(models.embedders)
    embed_missing(session, "kb index --rebuild-vectors", report, progress)
    return report


@dataclass
class _Embedding:
    """One run. It holds the writer's lock only for a moment per batch, and never while a model computes."""

    _session: Session
    _purpose: str
    _models: EmbeddingModels
    _report: IngestReport
    _progress: Progress
    _stop: Callable[[], bool] | None
    _done: int = 0
    _made: int = 0
    _total: int = 0
    _refused: set[Key] = field(default_factory=set)
    _refused_in_a_row: int = 0
    _started: float = field(default_factory=time.perf_counter)
    _said: float = field(default_factory=time.perf_counter)

    def run(self) -> bool:
        """Embeds all chunks, and returns False if `stop` ended that early."""
        try:
            self._embed_all()
        except _Stopped:
            return False
        finally:
            self._report.embedding_seconds += time.perf_counter() - self._started
        return True

    @contextmanager
    def _store(self) -> Iterator[VectorWriter]:
        """Opens the store for writing. Waits for other writers as long as it takes, because they may index text."""
        with ExitStack() as lock:
            while True:
                try:
                    writing = lock.enter_context(self._session.writing(self._purpose, existing=True))
                    break
                except Locked:
                    self._check_stop()
            yield writing.vectors()

    def _embed_all(self) -> None:
        embedders = self._models.embedders
        for waiting in self._windows(embedders):
            # Secondary spaces come first, so that a chunk with a primary vector also has its secondary one.
            for primary, space_of in ((False, self._models.secondary_of), (True, self._models.primary_of)):
                for embedder in embedders:
                    self._embed(
                        embedder, [chunk for chunk in waiting if space_of(chunk.text) is embedder], primary=primary
                    )
        with self._store() as store:
            other_scripts = len(embedders) > 1 and store.is_primary(embedders[-1])
            second = self._models.secondary_for_all(other_scripts=other_scripts)
        if second is not None:
            for waiting in self._windows([second], primary=False):
                self._embed(second, waiting, primary=False)
        with self._store() as store:
            store.settle(embedders, second, refused=len(self._refused))
            if self._made:
                store.expect_end(0)

    def _windows(self, embedders: Sequence[Embedder], *, primary: bool = True) -> Iterator[list[_Waiting]]:
        with self._store() as store:
            self._total += store.count_pending(embedders, primary=primary)
        after: Key | None = None
        while True:
            with self._store() as store:
                chunks = store.pending(embedders, primary=primary, after=after, limit=_WINDOW)
            if not chunks:
                return
            yield _waiting(chunks)
            after = chunks[-1].key

    def _embed(self, embedder: Embedder, chunks: Sequence[_Waiting], *, primary: bool) -> None:
        texts: dict[bytes, _Text] = {}
        for chunk in chunks:
            text_hash = hash_of_text(chunk.text)
            texts.setdefault(text_hash, _Text(text_hash, chunk.text, chunk.path)).chunks.append(chunk.key)
        if not texts:
            return
        with self._store() as store:
            new = self._without_known(store, embedder, texts.values(), primary=primary)
        self._show(embedder)
        batches = list(_by_length(new, _CHARS_AT_ONCE if self._stop is None else _CHARS_WHEN_STOPPABLE))
        while batches:
            self._check_stop()
            with self._store() as store:
                batch = self._without_known(store, embedder, batches.pop(0), primary=primary)
            self._show(embedder)
            if not self._embed_batch(embedder, batch, primary=primary):
                # Another process embeds the same batches: going on from the other end avoids making vectors twice.
                batches.reverse()

    def _without_known(
        self, store: VectorWriter, embedder: Embedder, texts: Iterable[_Text], *, primary: bool
    ) -> list[_Text]:
        """Links chunks whose text already has a vector, and returns the other texts.

        Another process may have changed chunks meanwhile, so chunks that no longer have their text are left out.
        """
        texts = list(texts)
        chunks = store.chunks([key for text in texts for key in text.chunks])
        now = {chunk.key: hash_of_text(chunk.text) for chunk in _waiting(chunks)}
        for text in texts:
            text.chunks = [key for key in text.chunks if now.get(key) == text.hash]
        linked = store.link(embedder, [(key, text.hash) for text in texts for key in text.chunks], primary=primary)
        self._report.vectors_reused += len(linked)
        self._done += len(linked)
        return [text for text in texts if text.chunks and text.chunks[0] not in linked]

    def _embed_batch(self, embedder: Embedder, batch: list[_Text], *, primary: bool) -> bool:
        """Embeds and stores a batch. Returns False if another process made some of these vectors meanwhile. Shows
        progress only after storing, because showing it may end the run.

        If the model refuses the batch, its texts are tried one by one, so that only refused texts get no vector.
        """
        if not batch:
            return True
        try:
            vectors = embedder.embed([text.text for text in batch], "passage")
        except TextRefused as refusal:
            if len(batch) == 1:
                self._refuse(embedder, batch[0], refusal)
                return True
            for text in batch:
                self._embed_batch(embedder, [text], primary=primary)
            return True
        self._refused_in_a_row = 0
        made = dict(zip(batch, vectors, strict=True))
        with self._store() as store:
            new = self._without_known(store, embedder, batch, primary=primary)
            store.add(embedder, [NewVector(text.hash, made[text], text.chunks) for text in new], primary=primary)
            self._report.vectors_made += len(new)
            chunks = sum(len(text.chunks) for text in new)
            self._done += chunks
            self._made += chunks
            now = time.perf_counter()
            if self._made and now - self._said > _SAYING_S:
                self._said = now
                store.expect_end(max(1, (now - self._started) / self._made * (self._total - self._done)))
        self._show(embedder)
        return len(new) == len(batch)

    def _check_stop(self) -> None:
        if self._stop is not None and self._stop():
            raise _Stopped

    def _refuse(self, embedder: Embedder, text: _Text, refusal: TextRefused) -> None:
        self._refused.update(text.chunks)
        self._refused_in_a_row += 1
        if self._refused_in_a_row % _REFUSED_IN_A_ROW == 0:
            embedder.embed([_HARMLESS], "passage")  # raises if the model refuses everything
        what = f"A passage of {len(text.text):,} characters got no vector and is found by its words only."
        self._report.warnings.append(Failure(text.path, refusal.code, f"{what} {refusal.message}"))

    def _show(self, embedder: Embedder) -> None:
        self._progress("embedding", path=embedder.name, done=self._done, total=max(self._total, self._done))


def _waiting(chunks: Iterable[PendingChunk]) -> list[_Waiting]:
    return [
        _Waiting(chunk.key, chunk.path, embedded_text(chunk.path, chunk.title, chunk.headings, chunk.text))
        for chunk in chunks
    ]


def hash_of_text(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _by_length(texts: Iterable[_Text], most_characters: int) -> Iterator[list[_Text]]:
    """Yields batches of texts of similar length, the longest first, so that a lack of memory shows at once."""
    batch: list[_Text] = []
    for text in sorted(texts, key=lambda text: -len(text.text)):
        if batch and (len(batch) == _AT_ONCE or (len(batch) + 1) * len(batch[0].text) > most_characters):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch
