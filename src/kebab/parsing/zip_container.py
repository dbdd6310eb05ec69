"""Zip files from strangers, read in memory by the names of their members.

Nothing is ever written, so a member's name is a key and no path; archives inside are not opened. What a header says
about sizes is not believed: limits hold for the bytes that come out.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from posixpath import normpath
from typing import Any

from kebab.core.errors import ParseError

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLD_FORMATS = tuple(name.encode("utf-16-le") for name in ("WordDocument", "PowerPoint Document", "Workbook"))
_MOST_MEMBERS = 20_000
_MOST_BYTES = 200 * 2**20
_MOST_MEMBER_BYTES = 100 * 2**20
_FREE_BYTES = 16 * 2**20
"""Up to here nobody asks how well it was compressed: repeated small tables compress very well."""
_MOST_RATIO = 150
_STEP = 2**18
_SAVE_AGAIN = "Open it in the program it comes from and save it again."


class ZipContainer:
    """ParseError if these bytes are no zip file, or a password is needed."""

    def __init__(self, data: bytes) -> None:
        from zipfile import BadZipFile, ZipFile

        if data.startswith(_OLE[:4]):
            raise _ole_error(data)
        self._allowed = min(_MOST_BYTES, max(_FREE_BYTES, _MOST_RATIO * len(data)))
        self._taken = 0
        try:
            self._zip: Any = ZipFile(BytesIO(data))
            self._names = frozenset(self._zip.namelist())
        except (
            BadZipFile,
            ValueError,
            OSError,
            NotImplementedError,
            KeyError,
            IndexError,
            OverflowError,
            EOFError,
            struct.error,
        ) as error:
            raise damaged("The file is no zip archive, or its end is missing.") from error
        if len(self._names) > _MOST_MEMBERS:
            raise unsafe(f"The file holds more than {_MOST_MEMBERS:,} parts.")
        outside = next((name for name in sorted(self._names) if leads_out(name)), None)
        if outside is not None:
            raise unsafe(f"The file holds a part named {outside[:80]!r}, which leads out of it.")

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str) -> bytes:
        """A member that must be there."""
        from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile

        if name not in self._names:
            raise damaged(f"The part {name} is missing.")
        member = self._zip.getinfo(name)
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise damaged(f"The part {name} is packed in a way that none of these formats use.")
        if member.flag_bits & 1:
            raise ParseError("The file is encrypted.", reason="encrypted", hint="Save it without a password.")
        try:
            return self._read(name)
        except (
            BadZipFile,
            zlib.error,
            ValueError,
            OSError,
            NotImplementedError,
            RuntimeError,
            EOFError,
            KeyError,
            IndexError,
            struct.error,
        ) as error:
            raise damaged(f"The part {name} cannot be unpacked.") from error

    def _read(self, name: str) -> bytes:
        parts, length = [], 0
        with self._zip.open(name) as member:
            while part := member.read(_STEP):
                length += len(part)
                self._taken += len(part)
                if length > _MOST_MEMBER_BYTES or self._taken > self._allowed:
                    raise unsafe(f"The part {name} unpacks to far more than the file itself.")
                parts.append(part)
        return b"".join(parts)


def leads_out(name: str) -> bool:
    """Nothing is written here, so it could not; but no program that people write with makes such names."""
    path = name.replace("\\", "/")
    return path.startswith("/") or normpath(path).startswith("../") or path[1:3] == ":/"


def _ole_error(data: bytes) -> ParseError:
    """Office puts what it encrypts into the container of its old formats."""
    if any(name in data for name in _OLD_FORMATS):
        return damaged("This is a file of Office 2003 or before, with a new extension.")
    return ParseError("The file is encrypted.", reason="encrypted", hint="Save it without a password.")


def damaged(message: str) -> ParseError:
    return ParseError(message, reason="damaged", hint=_SAVE_AGAIN)


def unsafe(message: str) -> ParseError:
    return ParseError(
        message, reason="unsafe", hint="If you trust the file, save it again from the program it comes from, or as PDF."
    )
