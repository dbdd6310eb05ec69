"""What `kb doctor` looks at, one thing after the other, wired from the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.config.loading import cache_folder, config_folder, data_folder
from kebab.config.places import LOCAL_FOLDER
from kebab.core.errors import KebabError, ModelError
from kebab.core.incomplete_migration import half_copied_checks
from kebab.upkeep.checks import (
    disk_check,
    no_model_check,
    privacy_check,
    program_check,
    source_checks,
    stored_password_checks,
    vector_check,
)

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.ports import EmbeddingModels
    from kebab.core.records import Check, SourceRecord
    from kebab.core.store_ports import Store


def health(
    store: Store,
    settings: Settings,
    models_of: Callable[[], EmbeddingModels | None],
    bundled_models: Callable[[], Check],
    sources_of: Callable[[], Sequence[SourceRecord]],
) -> list[Check]:
    """Ends with the store where something is wrong with it."""
    checks = [program_check(store.engine), *([disk_check(store.file)] if store.file else [])]
    checks += [*store.health(settings.analysis.korean), privacy_check(_kept_here(store))]
    if not all(check.ok for check in checks):
        with suppress(KebabError):  # what is wrong has been said
            checks += _migration_checks(store)
        return checks
    bundled = [bundled_models()] if settings.embedding.model.strip() == "bundled" else []
    copied = _migration_checks(store)  # then vectors come with the rest
    with store.reading() as reading:
        checks += stored_password_checks(reading.libraries().libraries() if reading else ())
    return [*checks, *(copied or _vector_checks(store, models_of)), *bundled, *source_checks(sources_of())]


def _kept_here(store: Store) -> set[Path]:
    """The files and folders that Kebab makes; a folder that the user chose with --db is the user's."""
    folders = {config_folder(), data_folder(), cache_folder()}
    if store.file is not None and store.file.parent.name == LOCAL_FOLDER:
        folders.add(store.file.parent)
    return {path.resolve() for path in (*folders, config_folder() / "config.toml", *store.own_files())}


def _migration_checks(store: Store) -> list[Check]:
    with store.reading() as reading:
        return half_copied_checks(reading, store.address, ok=True)


def _vector_checks(store: Store, models_of: Callable[[], EmbeddingModels | None]) -> list[Check]:
    try:
        models = models_of()
    except ModelError as error:
        return [no_model_check(error)]
    with store.reading() as reading:
        coverage = reading.vector_coverage(models) if reading and models else None
    return [vector_check(coverage, models)]
