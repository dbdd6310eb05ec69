"""Which store the settings choose, and errors for wrong addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

import kebab
from kebab.config.settings import Settings, StoreSettings
from kebab.core.errors import StoreUnreachable, UsageError
from kebab.session import open_store

ADDRESS = "qdrant://127.0.0.1:1/notes"


def test_a_path_is_a_sqlite_file(tmp_path: Path) -> None:
    store = open_store(Settings(store=StoreSettings(path=str(tmp_path / "n.sqlite"))))
    assert (store.address, store.file) == (str(tmp_path / "n.sqlite"), tmp_path / "n.sqlite")
    assert store.engine.startswith("SQLite 3.")
    assert not store.exists()
    assert store.size() == 0


def test_a_cluster_is_not_asked_before_it_is_needed() -> None:
    store = open_store(Settings(store=StoreSettings(url=ADDRESS)))
    assert (store.address, store.file, store.own_files()) == (ADDRESS, None, set())
    with kebab.open(ADDRESS) as knowledge_base, pytest.raises(StoreUnreachable):
        knowledge_base.search("anything")


@pytest.mark.parametrize("address", ["qdrant://127.0.0.1", "redis://127.0.0.1/notes"])
def test_a_malformed_address_is_refused_before_anything_else(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        kebab.open(address)
    assert list(tmp_path.rglob("*redis*")) == []
