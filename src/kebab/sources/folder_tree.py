"""A folder, or a single file, as a tree of files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from kebab.config.settings import IngestSettings
from kebab.core.errors import SourceError
from kebab.core.files import read_regular
from kebab.core.ports import TreeFile
from kebab.sources.folder import scan_folder


class FolderTree:
    """What a walk through the folder finds, by the same rules as for notes: ignored and hidden files are left out."""

    commit = None

    def __init__(self, root: Path, settings: IngestSettings) -> None:
        if not root.is_dir():
            raise SourceError(
                f"The folder {root} is not there.",
                hint="Its text stays searchable until it is removed.",
                path=str(root),
            )
        self._follow_links = settings.follow_links
        self._places = {file.path: file.absolute for file in scan_folder(root, settings).files}

    def files(self) -> list[TreeFile]:
        found = []
        for path, place in self._places.items():
            try:
                data = self._bytes(place)
            except OSError:  # gone meanwhile, or not ours to read
                continue
            found.append(TreeFile(path, sha256(data).hexdigest(), len(data)))
        return found

    @contextmanager
    def reading(self) -> Iterator[FolderTree]:
        yield self

    def read(self, file: TreeFile) -> bytes:
        try:
            return self._bytes(self._places[file.path])
        except OSError as error:
            raise SourceError(
                f"{file.path} cannot be read: {error.strerror}.", hint="Run the command again.", path=file.path
            ) from error

    def _bytes(self, place: Path) -> bytes:
        return read_regular(place, follow_link=self._follow_links)


class SingleFile:
    """One file, llms.txt for instance."""

    commit = None

    def __init__(self, name: str, data: bytes) -> None:
        self._name = name
        self._data = data

    def files(self) -> list[TreeFile]:
        return [TreeFile(self._name, sha256(self._data).hexdigest(), len(self._data))]

    @contextmanager
    def reading(self) -> Iterator[SingleFile]:
        yield self

    def read(self, _file: TreeFile) -> bytes:
        return self._data
