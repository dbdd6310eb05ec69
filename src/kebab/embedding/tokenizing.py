"""Turns texts into ids of tokens.

The library `tokenizers` takes a quarter of a second to read 128,000 pieces, in every search from the command line.
`UnigramTokenizer` maps them into memory as three arrays: sorted hashes of the pieces, their ids, their scores. It gives
the same ids, and is used for short questions; the library tokenizes long or many texts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kebab.core.errors import ModelCorrupt

_FEW, _SHORT = 4, 500
"""Up to this many texts, with this many characters each, `UnigramTokenizer` is faster than the library."""


class Tokenizer(Protocol):
    def ids(self, texts: Sequence[str]) -> list[list[int]]: ...


class FileTokenizer:
    """The tokenizer of a tokenizer.json."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = _load(path)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]


class QuickTokenizer:
    """Gives the same ids as `FileTokenizer`, but does not load tokenizer.json for a few short texts."""

    def __init__(self, quick: UnigramTokenizer, folder: Path) -> None:
        self._quick = quick
        self._folder = folder
        self._full: FileTokenizer | None = None

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        if self._full is None:
            if len(texts) <= _FEW and all(len(text) <= _SHORT for text in texts):
                return [self._quick.ids(text) for text in texts]
            self._full = FileTokenizer(self._folder / "tokenizer.json")
        return self._full.ids(texts)


_importing = Lock()


def tokenizers_library() -> Any:
    """The library `tokenizers`, imported under a lock: two threads that import parts of it at the same time fail."""
    # Without this the library asks whether it may use threads after a fork, on stderr.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with _importing:
        import tokenizers

        return tokenizers


def _load(path: Path) -> Any:
    try:
        tokenizer = tokenizers_library().Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ModelCorrupt(
            f"{path} is not a tokenizer: {error}.",
            hint=f"Delete {path.parent} if it is in Kebab's cache: it is made again.",
            path=str(path),
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


Array = NDArray[Any]

UNKNOWN, BEGIN, END = 0, 1, 2
_SPACE = "▁"
_UNKNOWN_PENALTY = 10.0
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_POWERS = 64
_HEADER = 24
"""Bytes of the header of pieces.bin: the number of pieces, the length of the longest, the lowest score."""


def _powers(count: int) -> Array:
    powers = np.ones(count, np.uint64)
    powers[1:] = _FACTOR
    return np.cumprod(powers, dtype=np.uint64)


def _code_points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)


def _hashes(points: Array, longest: int) -> Array:
    """Hashes of all substrings of up to `longest` characters: row n - 1 has those of n characters, by their start."""
    rows = np.zeros((longest, len(points)), np.uint64)
    current = np.zeros(len(points), np.uint64)
    for offset, power in enumerate(_powers(longest)[: len(points)]):
        shifted = np.zeros(len(points), np.uint64)
        shifted[: len(points) - offset] = points[offset:] + np.uint64(1)
        current = current + shifted * power
        rows[offset, : len(points) - offset] = current[: len(points) - offset]
    return rows


def vocabulary_files(pieces: list[tuple[str, float]], charsmap: bytes) -> dict[str, bytes]:
    """The files that `UnigramTokenizer` reads, by name."""
    by_length: dict[int, list[int]] = {}
    for number, (piece, _) in enumerate(pieces):
        by_length.setdefault(len(piece), []).append(number)
    hashes = np.zeros(len(pieces), np.uint64)
    for length, numbers in by_length.items():
        points = (
            np.stack([_code_points(pieces[number][0]) for number in numbers])
            if length
            else np.zeros((len(numbers), 0), np.uint64)
        )
        hashes[numbers] = ((points + np.uint64(1)) * _powers(length)[None, :]).sum(axis=1, dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    scores = np.array([score for _, score in pieces], np.float64)
    header = np.array([len(pieces), max(by_length), scores.min()], np.float64)
    return {
        "pieces.bin": b"".join(
            (header.tobytes(), hashes[order].tobytes(), order.astype(np.int64).tobytes(), scores[order].tobytes())
        ),
        "charsmap.bin": charsmap,
    }


class UnigramTokenizer:
    def __init__(self, folder: Path) -> None:
        try:
            self._open(folder)
        except Exception as error:  # a damaged file fails in numpy or in the normalizer, each in its own way
            raise ModelCorrupt(
                f"The vocabulary in {folder} cannot be read: {error}.",
                hint=f"Delete {folder}: it is made again.",
                path=str(folder),
            ) from error

    def _open(self, folder: Path) -> None:
        data = np.memmap(folder / "pieces.bin", np.uint8, "r")
        header, arrays = data[:_HEADER].view(np.float64), data[_HEADER:]
        count = int(header[0])
        if len(arrays) != 24 * count:
            raise ValueError("pieces.bin is not whole")
        self._longest, self._unknown_score = min(_POWERS, int(header[1])), float(header[2]) - _UNKNOWN_PENALTY
        self._hashes = arrays[: 8 * count].view(np.uint64)
        self._ids = arrays[8 * count : 16 * count].view(np.int64)
        self._scores = arrays[16 * count :].view(np.float64)
        self._normalizer = tokenizers_library().normalizers.Precompiled((folder / "charsmap.bin").read_bytes())

    def ids(self, text: str) -> list[int]:
        words = self._normalizer.normalize_str(text).split(" ")
        ids = [BEGIN]
        for word in words:
            if word:
                ids += self._word(_SPACE + word)
        return [*ids, END]

    def _word(self, word: str) -> list[int]:
        """The ids of the most likely pieces that form the word."""
        found = self._pieces(word)
        best = [0.0] + [-np.inf] * len(word)
        cut: list[tuple[int, int]] = [(0, UNKNOWN)] * (len(word) + 1)
        for start in range(len(word)):
            pieces = found.get(start, [])
            if not any(end == start + 1 for end, _, _ in pieces):
                pieces = [*pieces, (start + 1, UNKNOWN, self._unknown_score)]
            for end, piece, score in pieces:
                if best[start] + score > best[end]:
                    best[end], cut[end] = best[start] + score, (start, piece)
        ids: list[int] = []
        end = len(word)
        while end:
            end, piece = cut[end]
            if piece != UNKNOWN or ids[-1:] != [UNKNOWN]:  # several unknown characters are one unknown piece
                ids.append(piece)
        return ids[::-1]

    def _pieces(self, word: str) -> dict[int, list[tuple[int, int, float]]]:
        """All pieces that occur in the word, by their start: end, id and score of each."""
        longest = min(self._longest, len(word))
        hashes = _hashes(_code_points(word), longest)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        lengths, starts = np.nonzero(self._hashes[places] == hashes)
        found: dict[int, list[tuple[int, int, float]]] = {}
        for length, start in zip(lengths.tolist(), starts.tolist(), strict=True):
            place = places[length, start]
            if start + length < len(word):
                found.setdefault(start, []).append(
                    (start + length + 1, int(self._ids[place]), float(self._scores[place]))
                )
        return found
