"""A zip or tar archive as a tree of files, read where it lies. Nothing is unpacked onto the disk.

What an archive says of itself is not believed: limits hold for the bytes that come out. Links, devices, and names that
lead out of the archive are left out.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import PurePosixPath
from typing import IO, NamedTuple, cast

from kebab.core.errors import SourceError
from kebab.core.ports import TreeFile
from kebab.core.text import nfc

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MOST_FILES = 200_000
_MOST_BYTES = 1 << 30
_MOST_FILE_BYTES = 64 << 20
_MOST_UNPACKED_BYTES = 4 << 30
"""With what is passed over: large files are no documentation, but unpacking them takes time."""
_MOST_HEADER_BYTES = 1 << 20
_STEP = 1 << 20
_DRIVE = re.compile(r"[A-Za-z]:")
_PACKERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open), (b"\x5d\0\0", lzma.open))
"""By what a packed file begins with."""
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
    MemoryError,
    OverflowError,
)


class _TooLarge(Exception):
    """Says of what there is more than is taken."""


class _Member(NamedTuple):
    """`content` is None where it is no plain file of a size that documentation has."""

    name: str
    content: IO[bytes] | None


class ArchiveTree:
    commit = None

    def __init__(self, called: str, packed: bytes) -> None:
        self._called = called
        self._packed = BytesIO(packed)
        self._contents: dict[str, bytes] = {}
        try:
            self._read_all()
        except _TooLarge as error:
            raise SourceError(
                f"{called} holds more than {error}.",
                hint="Unpack the part that is documentation and add that folder.",
                path=called,
            ) from error
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
        for number, member in enumerate(self._members()):
            if number >= _MOST_FILES:
                raise _TooLarge(f"{_MOST_FILES:,} files")
            path = path_inside(member.name)
            if path is None or member.content is None:
                continue
            data = _bounded(member.content)
            if data is None:
                continue
            taken += len(data)
            if taken > _MOST_BYTES:
                raise _TooLarge(f"{_MOST_BYTES >> 20:,} MB")
            found[path] = data
        shared = _shared_folder(found)
        self._contents = {path[len(shared) :]: data for path, data in sorted(found.items())}

    def _members(self) -> Iterator[_Member]:
        return self._zip_members() if zipfile.is_zipfile(self._packed) else self._tar_members()

    def _zip_members(self) -> Iterator[_Member]:
        with zipfile.ZipFile(self._packed) as archive:
            for entry in archive.infolist():
                is_plain = not entry.is_dir() and (entry.external_attr >> 28) in (
                    0,
                    8,
                )  # or of a system that does not say
                if is_plain and entry.file_size <= _MOST_FILE_BYTES:
                    with archive.open(entry) as file:
                        yield _Member(entry.filename, file)
                else:
                    yield _Member(entry.filename, None)

    def _tar_members(self) -> Iterator[_Member]:
        unpacked = _Unpacked(self._packed)
        with tarfile.open(fileobj=cast("IO[bytes]", unpacked), mode="r:") as archive:
            while (member := archive.next()) is not None:
                unpacked.enter_content()
                is_taken = member.isfile() and member.size <= _MOST_FILE_BYTES
                yield _Member(member.name, archive.extractfile(member) if is_taken else None)
                archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all
                unpacked.enter_headers()


class _Unpacked:
    """The bytes of a tar archive, to be read once and forwards: as many as are allowed in all, and for the headers of
    one member.

    tarfile reads a long name, a list of attributes or a map of holes whole before anybody can look at its size, and
    goes back, for ever, where a size is negative.
    """

    def __init__(self, packed: BytesIO) -> None:
        packed.seek(0)
        start = packed.read(8)
        packed.seek(0)
        unpacking = next((opened for begins, opened in _PACKERS if start.startswith(begins)), None)
        self._bytes = cast("IO[bytes]", unpacking(packed)) if unpacking else packed
        self._headers_left: int | None = _MOST_HEADER_BYTES

    def enter_headers(self) -> None:
        self._headers_left = _MOST_HEADER_BYTES

    def enter_content(self) -> None:
        self._headers_left = None

    def read(self, size: int) -> bytes:
        if self._headers_left is not None:
            self._headers_left -= size
            if self._headers_left < 0:
                raise _TooLarge(f"{_MOST_HEADER_BYTES >> 20} MB of names and attributes for one file")
        self._pass(self._bytes.tell() + size)
        return self._bytes.read(size)

    def seek(self, position: int) -> int:
        if position < self._bytes.tell():
            raise tarfile.ReadError("a header leads back")
        self._pass(position)
        return self._bytes.seek(position)

    def tell(self) -> int:
        return self._bytes.tell()

    def _pass(self, position: int) -> None:
        if position > _MOST_UNPACKED_BYTES:
            raise _TooLarge(f"{_MOST_UNPACKED_BYTES >> 20:,} MB")


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
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or _DRIVE.match(path.parts[0]):
        return None
    return str(path)


def _shared_folder(paths: dict[str, bytes]) -> str:
    folders = {path.partition("/")[0] if "/" in path else "" for path in paths}
    return f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""
