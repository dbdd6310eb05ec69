"""A zip or tar archive as a tree of files, read where it lies. Nothing is unpacked onto the disk.

What an archive says of itself is not believed: limits hold for the bytes that come out. Links, devices, and names that lead out of the
archive are left out.
"""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import PurePosixPath
from typing import IO

from kebab.core.errors import SourceError
from kebab.core.ports import TreeFile
from kebab.core.text import nfc

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MOST_FILES = 200_000
_MOST_BYTES = 1 << 30
_MOST_FILE_BYTES = 64 << 20
_STEP = 1 << 20
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)


class ArchiveTree:
    commit = None

    def __init__(self, called: str, packed: bytes) -> None:
        self._called = called
        self._packed = BytesIO(packed)
        self._contents: dict[str, bytes] = {}
        try:
            self._read_all()
        except _DAMAGED as error:
            raise SourceError(
                f"{called} is no archive that can be read: {' '.join(str(error).split())[:200] or type(error).__name__}.",
                hint="zip, tar, tar.gz, tar.bz2 and tar.xz are read.",
                path=called,
            ) from error

    def files(self) -> list[TreeFile]:
        """Without the folder that everything is in, where there is one: archives of a release are packed that way."""
        return [TreeFile(path, sha256(data).hexdigest(), len(data)) for path, data in self._contents.items()]

    @contextmanager
    def reading(self) -> Iterator[ArchiveTree]:
        yield self

    def read(self, file: TreeFile) -> bytes:
        return self._contents[file.path]

    def _read_all(self) -> None:
        taken = 0
        found: dict[str, bytes] = {}
        for number, (name, member) in enumerate(self._members()):
            if number >= _MOST_FILES:
                raise self._too_large(f"more than {_MOST_FILES:,} files")
            path = path_inside(name)
            if path is None:
                continue
            data = _bounded(member)
            if data is None:
                continue
            taken += len(data)
            if taken > _MOST_BYTES:
                raise self._too_large(f"more than {_MOST_BYTES >> 20:,} MB")
            found[path] = data
        shared = _shared_folder(found)
        self._contents = {path[len(shared) :]: data for path, data in sorted(found.items())}

    def _members(self) -> Iterator[tuple[str, IO[bytes]]]:
        if zipfile.is_zipfile(self._packed):
            with zipfile.ZipFile(self._packed) as archive:
                for entry in archive.infolist():
                    if not entry.is_dir() and (entry.external_attr >> 28) in (0, 8):  # a plain file, or of a system that does not say
                        with archive.open(entry) as file:
                            yield entry.filename, file
            return
        self._packed.seek(0)
        with tarfile.open(fileobj=self._packed, mode="r:*") as packed:
            for member in packed:
                if member.isfile() and (content := packed.extractfile(member)) is not None:
                    yield member.name, content

    def _too_large(self, what: str) -> SourceError:
        return SourceError(
            f"{self._called} holds {what}.", hint="Unpack the part that is documentation and add that folder.", path=self._called
        )


def _bounded(member: IO[bytes]) -> bytes | None:
    """None when it is too large to be documentation."""
    parts, length = [], 0
    while part := member.read(_STEP):
        length += len(part)
        if length > _MOST_FILE_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


def path_inside(name: str) -> str | None:
    """The path as everything else writes it; None if it leads out."""
    path = PurePosixPath(nfc(name.replace("\\", "/")))
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or ":" in path.parts[0]:
        return None
    return str(path)


def _shared_folder(paths: dict[str, bytes]) -> str:
    folders = {path.partition("/")[0] if "/" in path else "" for path in paths}
    return f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""
