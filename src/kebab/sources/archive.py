"""Reads zip and tar archives in memory: nothing is unpacked onto the disk.

Limits count the unpacked bytes, not the sizes that the archive states. Links, devices, and names that lead out of the
archive are left out.
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
from io import BytesIO
from pathlib import PurePosixPath
from typing import IO, cast

from kebab.core.errors import SourceError
from kebab.core.text import nfc

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MOST_FILES = 200_000
_MOST_BYTES = 1 << 30
_MOST_FILE_BYTES = 64 << 20
_MOST_UNPACKED_BYTES = 4 << 30
"""Includes files that are skipped because they are too large to be documentation: unpacking them takes time, too."""
_MOST_HEADER_BYTES = 1 << 20
_STEP = 1 << 20
_DRIVE = re.compile(r"[A-Za-z]:")
_PACKERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open), (b"\x5d\0\0", lzma.open))
"""The first bytes of a compressed file, and the function that opens it."""
_DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError),
    *(RuntimeError, MemoryError, OverflowError),
)

_Member = tuple[str, IO[bytes] | None]
"""The name of a member and its content, which is None unless it is a regular file of moderate size."""


class _TooLarge(Exception):
    """Raised when an archive exceeds a limit; its text names the limit."""


def read_archive(name: str, packed: bytes) -> dict[str, bytes]:
    """The files of an archive by path. A single top folder, as in releases, is removed from the paths."""
    try:
        found = _read_all(BytesIO(packed))
    except _TooLarge as error:
        hint = "Unpack the part that is documentation and add that folder."
        raise SourceError(f"{name} holds more than {error}.", hint=hint, path=name) from error
    except _DAMAGED as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        hint = "zip, tar, tar.gz, tar.bz2 and tar.xz are read."
        raise SourceError(f"{name} is no archive that can be read: {reason}.", hint=hint, path=name) from error
    folders = {path.partition("/")[0] if "/" in path else "" for path in found}
    shared = f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""
    return {path[len(shared) :]: data for path, data in sorted(found.items())}


def path_inside(name: str) -> str | None:
    """The path in its usual form, or None if it leads out of the archive."""
    path = PurePosixPath(nfc(name.replace("\\", "/")))
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or _DRIVE.match(path.parts[0]):
        return None
    return str(path)


def _read_all(packed: BytesIO) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    taken = 0
    members = _zip_members(packed) if zipfile.is_zipfile(packed) else _tar_members(packed)
    for number, (name, content) in enumerate(members):
        if number >= _MOST_FILES:
            raise _TooLarge(f"{_MOST_FILES:,} files")
        path = path_inside(name)
        data = _bounded(content) if path is not None and content is not None else None
        if path is None or data is None:
            continue
        taken += len(data)
        if taken > _MOST_BYTES:
            raise _TooLarge(f"{_MOST_BYTES >> 20:,} MB")
        found[path] = data
    return found


def _zip_members(packed: BytesIO) -> Iterator[_Member]:
    with zipfile.ZipFile(packed) as archive:
        for entry in archive.infolist():
            # The file type is a regular file, or unknown because the system that packed it does not say.
            is_plain = not entry.is_dir() and (entry.external_attr >> 28) in (0, 8)
            if is_plain and entry.file_size <= _MOST_FILE_BYTES:
                with archive.open(entry) as file:
                    yield entry.filename, file
            else:
                yield entry.filename, None


def _tar_members(packed: BytesIO) -> Iterator[_Member]:
    unpacked = _Unpacked(packed)
    with tarfile.open(fileobj=cast("IO[bytes]", unpacked), mode="r:") as archive:
        while (member := archive.next()) is not None:
            unpacked.header_bytes_left = None
            is_taken = member.isfile() and member.size <= _MOST_FILE_BYTES
            yield member.name, archive.extractfile(member) if is_taken else None
            archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all
            unpacked.header_bytes_left = _MOST_HEADER_BYTES


class _Unpacked:
    """The unpacked bytes of a tar archive, read only forwards, with limits for all bytes and for one member's headers.

    tarfile reads a long name, a list of attributes or a map of holes before its size can be checked, and seeks back for
    ever at a negative size.
    """

    def __init__(self, packed: BytesIO) -> None:
        packed.seek(0)
        start = packed.read(8)
        packed.seek(0)
        unpacking = next((opened for begins, opened in _PACKERS if start.startswith(begins)), None)
        self._bytes = cast("IO[bytes]", unpacking(packed)) if unpacking else packed
        self.tell = self._bytes.tell
        self.header_bytes_left: int | None = _MOST_HEADER_BYTES
        """None while the content of a member is read."""

    def read(self, size: int) -> bytes:
        if self.header_bytes_left is not None:
            self.header_bytes_left -= size
            if self.header_bytes_left < 0:
                raise _TooLarge(f"{_MOST_HEADER_BYTES >> 20} MB of names and attributes for one file")
        _check_position(self.tell() + size)
        return self._bytes.read(size)

    def seek(self, position: int) -> int:
        if position < self.tell():
            raise tarfile.ReadError("a header leads back")
        _check_position(position)
        return self._bytes.seek(position)


def _check_position(position: int) -> None:
    if position > _MOST_UNPACKED_BYTES:
        raise _TooLarge(f"{_MOST_UNPACKED_BYTES >> 20:,} MB")


def _bounded(member: IO[bytes]) -> bytes | None:
    """The content of a member, or None if it is too large to be documentation."""
    parts, length = [], 0
    while part := member.read(_STEP):
        length += len(part)
        if length > _MOST_FILE_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)
