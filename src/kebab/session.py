"""Session: the settings, the store, the models and the parsers. Every use case is given one.

The only module above the stores and the embedders that knows which of them there are.
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
    from kebab.core.ports import EmbeddingModels, WordsAlike
    from kebab.core.store_ports import Reading, Store, Writing
    from kebab.parsing.isolation import Parsers


class Session:
    """Any number of threads may use it."""

    def __init__(self, settings: Settings, *, paths_on_disk: bool = True) -> None:
        """`paths_on_disk`: whether documents may be named by where their files lie."""
        self.settings = settings
        self.store = open_store(settings, paths_on_disk=paths_on_disk)

    def variant(self, *, expecting: Sequence[str] = (), **search: Any) -> Session:
        """The same store and models with other settings of [search]. Queries in `expecting` are embedded in batches."""
        from kebab.embedding.expected_queries import models_expecting

        other = copy(self)
        other.settings = self.settings._replace(search=self.settings.search._replace(**search))
        with suppress(ModelError):  # a search reports it
            other.models = models_expecting(self.models, expecting)
        return other

    # --- the store

    def reading(self, *, whole: bool = False) -> AbstractContextManager[Reading | None]:
        """One state of the store; None where nothing has been stored yet. The options are those of `Store.reading`."""
        return self.store.reading(whole=whole)

    @contextmanager
    def existing(self) -> Iterator[Reading]:
        """One state of the store; NotFound where nothing has been stored yet."""
        with self.store.reading() as reading:
            if reading is None:
                raise NotFound("Nothing has been ingested yet.", hint="Begin with: kb ingest FOLDER")
            yield reading

    @contextmanager
    def writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[Writing]:
        """The store for its one writer; NotEmpty while a migration into it is incomplete."""
        with self.store.writing(purpose, existing=existing, mending=mending) as writing:
            origin = writing.migrating_from()
            if origin is not None:  # additions would stop the migration, and it would undo removals and changes
                raise NotEmpty(
                    f"This knowledge base is being filled from {origin}, and that is not finished.",
                    hint=f"Finish it with the same command: kb migrate --from {origin} --to …; "
                    "or begin anew after: kb reset",
                )
            yield writing

    # --- models and parsers

    @cached_property
    def models(self) -> EmbeddingModels | None:
        """What makes vectors; None if the settings turn them off. A model is loaded when it is first needed."""
        from kebab.embedding.registry import models_for

        return models_for(self.settings.embedding, cache_folder())

    def words_alike(self) -> WordsAlike | None:
        from kebab.embedding.bundled import likeness_by

        return likeness_by(self.models)

    def bundled_model_faults(self) -> tuple[ModelError | None, Sequence[Path]]:
        """The fault of the installed weights, if any, and the damaged models in the cache."""
        from kebab.embedding.model_files import ModelCache, weights_fault

        return weights_fault(), ModelCache(cache_folder()).damaged()

    def parsers(self, password: str | None = None) -> Parsers:
        """Parsers within the limits of the settings. `password`: for encrypted PDFs instead of the settings' one."""
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
