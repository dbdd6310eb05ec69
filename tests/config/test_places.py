"""The place of the database: as named, else the nearest .kebab folder upwards, else the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab.config.loading import database_path
from kebab.config.settings import Settings, StoreSettings


def test_a_named_file_is_taken_as_it_is(isolated_home: Path) -> None:
    assert database_path(Settings(store=StoreSettings(path="notes.sqlite"))) == (Path("notes.sqlite"), True)
    assert database_path(Settings(store=StoreSettings(path="~/n.sqlite"))) == (isolated_home / "n.sqlite", True)


def test_the_nearest_local_folder_upwards_wins(tmp_path: Path) -> None:
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".kebab").mkdir()
    assert database_path(Settings(), deep) == (tmp_path / ".kebab" / "kebab.sqlite", False)
    (tmp_path / "project" / ".kebab").mkdir()
    assert database_path(Settings(), deep) == (tmp_path / "project" / ".kebab" / "kebab.sqlite", False)


def test_a_file_called_kebab_is_no_local_folder(tmp_path: Path, isolated_home: Path) -> None:
    (tmp_path / ".kebab").write_text("not a folder", encoding="utf-8")
    assert database_path(Settings(), tmp_path) == (isolated_home / "data" / "kebab" / "kebab.sqlite", False)


def test_default_database_is_in_the_data_folder(
    tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert database_path(Settings()) == (isolated_home / "data" / "kebab" / "kebab.sqlite", False)
