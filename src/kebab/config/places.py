"""Where the database is when nobody says: the nearest `.kebab` folder upwards, else the user's data folder."""

from __future__ import annotations

from pathlib import Path

from kebab.config.loading import data_folder
from kebab.config.settings import Settings

FILE_NAME = "kebab.sqlite"
LOCAL_FOLDER = ".kebab"


def database_path(settings: Settings, start: Path | None = None) -> tuple[Path, bool]:
    """The file, and whether it was named by the user (then it must exist for reading)."""
    if settings.store.path:
        return Path(settings.store.path).expanduser(), True
    folder = (start or Path.cwd()).absolute()
    for candidate in (folder, *folder.parents):
        local = candidate / LOCAL_FOLDER / FILE_NAME
        if local.is_file() or local.parent.is_dir():
            return local, False
    return data_folder() / FILE_NAME, False


def database_address(settings: Settings) -> str:
    """What leads to the same database from anywhere on this machine, given as --db."""
    if not settings.store.url:
        return str(database_path(settings)[0].absolute())
    from kebab.config.cluster_address import cluster_address

    return str(cluster_address(settings.store.url))
