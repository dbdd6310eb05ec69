"""Which store the settings mean. The only place above the stores that knows them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab.config.places import database_path

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.store_ports import Store


def open_store(settings: Settings, *, paths_on_disk: bool = True) -> Store:
    """Nothing is looked at before somebody reads or writes. `paths_on_disk`: whether documents may be named by where
    their files lie.
    """
    if settings.store.url:
        return _cluster(settings, paths_on_disk)
    from kebab.store.sqlite.store import SqliteStore

    path, named = database_path(settings)
    store = settings.store
    return SqliteStore(
        path,
        named=named,
        busy_timeout_ms=store.busy_timeout_ms,
        lock_wait_s=store.lock_wait_s,
        paths_on_disk=paths_on_disk,
    )


def _cluster(settings: Settings, paths_on_disk: bool) -> Store:
    from kebab.config.cluster_address import cluster_address
    from kebab.store.qdrant.store import QdrantStore

    return QdrantStore(cluster_address(settings.store.url), settings.store, paths_on_disk=paths_on_disk)
