"""Texts → ids of tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from kebab.core.errors import ModelCorrupt

if TYPE_CHECKING:
    from kebab.embedding.unigram import UnigramTokenizer

_FEW, _SHORT = 4, 500
"""Texts, and characters of each, up to which cutting them without loading the vocabulary is faster."""


class Tokenizer(Protocol):
    def ids(self, texts: Sequence[str]) -> list[list[int]]: ...


class FileTokenizer:
    """What a tokenizer.json says."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = _load(path)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]


class QuickTokenizer:
    """The same, but for a question the vocabulary is not loaded."""

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
    """The library `tokenizers`. Two threads that import different parts of it at the same time fail, so one does, and
    all of it.
    """
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
            hint=f"Delete {path.parent} if it is in Kebab's cache: it is made anew.",
            path=str(path),
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
