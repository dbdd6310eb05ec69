"""Session: holds the settings, the store, the models and the parsers. Every use case gets one.

Only this module chooses which store, models and parsers are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kebab.config.loading import cache_folder, database_path
from kebab.core.errors import ModelError, NotEmpty, NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from kebab.config.settings import Settings
    from kebab.core.ports import EmbeddingModels, Reranker, WordsAlike
    from kebab.core.store_ports import Reading, Store, Writing
    from kebab.parsing.isolation import Parsers


class Session:
    """The settings, store, models and parsers of one knowledge base. Any number of threads may use a session."""

    def __init__(self, settings: Settings, *, paths_on_disk: bool = True) -> None:
        """`paths_on_disk`: whether documents may be named by the paths of their files on disk."""
        self.settings = settings
        self.store = open_store(settings, paths_on_disk=paths_on_disk)
        self._cache = cache_folder()

    def variant(self, *, expecting: Sequence[str] = (), **search: Any) -> Session:
        """A session with the same store and models, but other [search] settings. Batches the `expecting` queries."""
        from kebab.embedding.expected_queries import models_expecting

        other = copy(self)
        other.settings = self.settings._replace(search=self.settings.search._replace(**search))
        with suppress(ModelError):  # the next search reports the error
            other.models = models_expecting(self.models, expecting)
        return other

    # --- the store

    def reading(self, *, whole: bool = False) -> AbstractContextManager[Reading | None]:
        """One state of the store, or None if nothing is stored yet. The option is that of `Store.reading`."""
        return self.store.reading(whole=whole)

    @contextmanager
    def existing(self) -> Iterator[Reading]:
        """One state of the store; NotFound if nothing is stored yet."""
        with self.store.reading() as reading:
            if reading is None:
                raise NotFound("Nothing has been ingested yet.", hint="Begin with: kb ingest FOLDER")
            yield reading

    @contextmanager
    def writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[Writing]:
        """Opens the store for its only writer; NotEmpty while a migration into it is incomplete."""
        with self.store.writing(purpose, existing=existing, mending=mending) as writing:
            origin = writing.migrating_from()
            if origin is not None:  # additions would block the migration, and it would undo removals and changes
                raise NotEmpty(
                    f"This knowledge base is being filled from {origin}, and that is not finished.",
                    hint=f"Finish it with the same command: kb migrate --from {origin} --to …; "
                    "or begin anew after: kb reset",
                )
            yield writing

    # --- models and parsers

    @cached_property
    def models(self) -> EmbeddingModels | None:
        """The embedding models; None if the settings turn vectors off. A model is loaded when it is first needed."""
        from kebab.embedding.models import models_for

        return models_for(self.settings.embedding, self._cache)

    @cached_property
    def reranker(self) -> Reranker:
        """The cross-encoder that the settings name, loaded."""
        from kebab.embedding.cross_encoder import reranker_for

        return reranker_for(self.settings.rerank, self._cache, self.settings.embedding.threads)

    def words_alike(self) -> WordsAlike | None:
        from kebab.embedding.models import likeness_by

        return likeness_by(self.models)

    def bundled_model_faults(self) -> tuple[ModelError | None, Sequence[Path]]:
        """The error of the bundled model's weights, or None, and the damaged model files in the cache."""
        from kebab.embedding.onnx_encoder import ModelCache, weights_fault

        with_e5 = self.settings.embedding.multilingual == "e5"
        return weights_fault(with_e5=with_e5), ModelCache(self._cache).damaged()

    def parsers(self, password: str | None = None) -> Parsers:
        """The parsers, with the limits of the settings. `password` replaces the PDF password of the settings."""
        from kebab.parsing.isolation import Limits, Parsers

        limits = self.settings.ingest
        password = limits.pdf_password if password is None else password
        return Parsers(Limits(limits.max_seconds, limits.max_memory_mb, password))


def open_store(settings: Settings, *, paths_on_disk: bool = True) -> Store:
    """The store that the settings name. It is opened by the first reading or writing."""
    if settings.store.url:
        from kebab.config.cluster_address import cluster_address
        from kebab.store.qdrant.store import QdrantStore

        return QdrantStore(
            cluster_address(settings.store.url),
            settings.store,
            korean_analysis=settings.analysis.korean,
            paths_on_disk=paths_on_disk,
        )
    from kebab.store.sqlite.store import SqliteStore

    path, named = database_path(settings)
    return SqliteStore(
        path,
        named=named,
        busy_timeout_ms=settings.store.busy_timeout_ms,
        lock_wait_s=settings.store.lock_wait_s,
        korean_analysis=settings.analysis.korean,
        paths_on_disk=paths_on_disk,
    )
