"""What writes into a knowledge base: folders and texts, and vectors for them. The door to it is `KnowledgeBase`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kebab.core.errors import ModelError, SourceError, UsageError
from kebab.core.text import storable, whole_characters
from kebab.ingest.source_names import resolve

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.ports import EmbeddingModels, Parser, Progress
    from kebab.core.store_ports import Store, Writing
    from kebab.ingest.report import IngestReport
    from kebab.ingest.run import Ingest
    from kebab.parsing.isolation import Parsers


class BeginsToWrite(Protocol):
    def __call__(self, purpose: str, *, existing: bool = False) -> AbstractContextManager[Writing]: ...


class Ingesting:
    def __init__(
        self, settings: Settings, store: Store, writing: BeginsToWrite, models: Callable[[], EmbeddingModels | None]
    ) -> None:
        """`models`: what makes vectors, None when nothing does; asked for when it is needed."""
        self._settings = settings
        self._store = store
        self._writing = writing
        self._models = models
        self.last: Ingest | None = None

    def ingest(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        name: str | None,
        embed: bool,
        password: str | None,
        known_only: bool,
        progress: Progress | None,
    ) -> IngestReport:
        if not all(map(os.fspath, paths)):
            raise UsageError("A path is empty.", hint="Name a folder, or . for this one.")
        if embed:
            self._models()  # one that is not there is better noticed before the work than after it
        if not paths and not self._store.exists():
            from kebab.ingest.run import nothing_yet

            raise nothing_yet()
        folders = [Path(path) for path in paths]
        if folders:
            resolve(folders, (), name)  # a slip is told now, not after a wait for another writer
        missing: SourceError | None = None
        with self._writing("kb ingest", existing=known_only) as writing, self.parsers(password) as parsers:
            if embed:
                self._expect_vectors(writing)
            ingest = self._new(writing, parsers.of, progress)
            try:
                ingest.run(folders, name, known_only=known_only)
            except SourceError as error:  # one of several: what came from the others is to be embedded all the same
                missing = error
        if embed and (missing is None or ingest.report.scanned):
            self.embed("kb ingest", ingest.report, progress)
        if missing is not None:
            raise missing
        return ingest.report

    def ingest_text(self, text: str, *, title: str, embed: bool, progress: Progress | None) -> IngestReport:
        if not title.strip():
            raise UsageError(
                "A text without a file needs a title.", hint="For example: kb ingest - --title 'Shopping list'"
            )
        if embed:
            self._models()
        from kebab.parsing.registry import parser_for

        with self._writing("kb ingest -") as writing:
            report = self._new(writing, parser_for, None).run_text(whole_characters(text), storable(title.strip()))
        if embed:
            self.embed("kb ingest -", report, progress)
        return report

    def parsers(self, password: str | None = None) -> Parsers:
        from kebab.parsing.isolation import Limits, Parsers

        settings = self._settings.ingest
        return Parsers(
            Limits(
                settings.max_seconds, settings.max_memory_mb, settings.pdf_password if password is None else password
            )
        )

    def _new(self, writing: Writing, parser_for: Callable[[str], Parser], progress: Progress | None) -> Ingest:
        from kebab.chunking.by_structure import StructureChunker
        from kebab.ingest.run import Ingest

        korean = self._settings.analysis.korean
        reanalysed = writing.settle_analysis(korean)
        ingest = Ingest(
            writing.documents(korean),
            self._settings,
            StructureChunker(self._settings.chunking),
            parser_for,
            own_files=self._store.own_files(),
            progress=progress,
        )
        ingest.report.reanalysed = reanalysed
        ingest.read_stored_texts(self._stored_text)
        self.last = ingest
        return ingest

    def _stored_text(self, doc_id: str) -> str:
        with self._store.reading() as reading:
            assert reading is not None  # somebody is writing to it
            return reading.catalog.body(doc_id)

    # --- vectors

    def embed(
        self,
        purpose: str,
        report: IngestReport,
        progress: Progress | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> bool:
        """Makes those that are missing, until `stop` says so; whether all are made."""
        models = self._models()
        if models is None:
            return True
        from kebab.ingest.embedding import EmbeddingPhase

        return EmbeddingPhase(partial(self._writing, purpose, existing=True), models, report, progress, stop).run()

    def rebuild_vectors(self, progress: Progress | None) -> IngestReport:
        from kebab.ingest.report import IngestReport
        from kebab.search import vector_state

        models = self._models()
        if models is None:
            raise vector_state.vectors_off()
        for embedder in models.embedders:
            embedder.embed(["Is it there?"], "passage")  # before anything is forgotten
        report = IngestReport()
        with self._writing("kb index --rebuild-vectors", existing=True) as writing:
            writing.vectors().clear(models.embedders)
        self.embed("kb index --rebuild-vectors", report, progress)
        return report

    def _expect_vectors(self, writing: Writing) -> None:
        """An endpoint that cannot be asked now is no reason not to index words."""
        models = self._models()
        with suppress(ModelError):
            writing.expect_vectors(models.embedders if models is not None else ())
