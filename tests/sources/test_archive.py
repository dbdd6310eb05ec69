"""Archives of unknown origin: reading their files, and limits of memory and time that no header can evade."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kebab.core.errors import SourceError
from kebab.sources.origin import read_archive

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
HUGE = 3 << 30


def tar(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def plain(name: str, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), data


def header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def contents(packed: bytes) -> dict[str, bytes]:
    return read_archive("x.tar", packed)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_archives_of_every_format_are_read(packer: str, form: int) -> None:
    """With names that need an additional header, sizes at and around the end of a block, and members that are not
    files.
    """
    folder, link = tarfile.TarInfo("r/d"), tarfile.TarInfo("r/link.md")
    folder.type, link.type, link.linkname = tarfile.DIRTYPE, tarfile.SYMTYPE, "/etc/passwd"
    files = {f"{'long' * 60}/안내-{size}.md": b"x" * size for size in (0, 1, 511, 512, 513, 1 << 20, (3 << 20) + 7)}
    packed = tar((folder, b""), (link, b""), *(plain(f"r/{name}", data) for name, data in files.items()), form=form)
    assert contents(PACKERS[packer](packed)) == files


def test_names_with_a_colon_are_accepted_unless_they_begin_with_a_drive() -> None:
    """Nothing is unpacked onto the disk, so names need not be valid on every system."""
    packed = tar(*(plain(name, b"x") for name in ("FAQ: dials.md", "docs/a: b.md", "C:/x.md", "c:y.md", "../z.md")))
    assert list(contents(packed)) == ["FAQ: dials.md", "docs/a: b.md"]


def test_files_too_large_for_documentation_are_passed_over() -> None:
    packed = tar(plain("r/a.md", b"a"), plain("r/film.bin", bytes(65 << 20)), plain("r/z.md", b"z"))
    assert contents(gzip.compress(packed, 1)) == {"a.md": b"a", "z.md": b"z"}
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("r/a.md", "a")
        archive.writestr("r/film.bin", bytes(65 << 20))
    assert contents(zipped.getvalue()) == {"a.md": b"a"}


READING = """
import resource, sys
from pathlib import Path
from kebab.core.errors import SourceError
from kebab.sources.origin import read_archive
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
try:
    read_archive("bomb.tar.gz", Path(sys.argv[1]).read_bytes())
except SourceError as error:
    print(error.message)
"""


@pytest.mark.parametrize(
    "kind",
    [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK],
)
def test_a_header_that_announces_gigabytes_is_refused_before_it_is_read(kind: bytes, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.tar.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as packed:
        packed.write(header(kind, HUGE))
        for _ in range(40):
            packed.write(b"a" * (1 << 20))
    done = subprocess.run([sys.executable, "-c", READING, str(bomb)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "more than 1 MB of names and attributes" in done.stdout


def test_many_headers_for_one_file_count_together() -> None:
    name = header(tarfile.GNUTYPE_LONGNAME, 400 << 10) + b"a" * (400 << 10)
    with pytest.raises(SourceError, match="names and attributes"):
        read_archive("x.tar", name * 3 + tar(plain("a.md", b"a")))


def test_skipped_files_count_against_the_limit_of_unpacked_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kebab.sources.origin._MOST_UNPACKED_BYTES", 80 << 20)
    packed = tar(*(plain(f"r/{number}.bin", bytes(65 << 20)) for number in range(2)))
    with pytest.raises(SourceError, match="more than 80 MB") as caught:
        read_archive("x.tar", gzip.compress(packed, 1))
    assert "Unpack the part" in str(caught.value.hint)


def test_a_negative_size_in_an_archive_is_reported_as_damage() -> None:
    info = tarfile.TarInfo("a.md")
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = (256**12 - 512).to_bytes(12, "big")  # -512, as GNU writes numbers that are negative
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    with pytest.raises(SourceError, match="no archive that can be read"):
        read_archive("x.tar", tar(plain("b.md", b"b"))[:1024] + bytes(block) + bytes(1024))


@pytest.mark.parametrize(
    "damaged",
    [b"", b"no archive", gzip.compress(tar(plain("a.md", bytes(9999))))[:-20], b"PK\5\6" + b"\xff" * 18],
    ids=[
        "empty",
        "text",
        "cut off",
        "no members",
    ],  # without gzip's time stamp: parallel test processes must generate the same ids
)
def test_a_file_that_is_no_archive_is_refused(damaged: bytes) -> None:
    with pytest.raises(SourceError, match="no archive that can be read"):
        read_archive("x.tar", damaged)
