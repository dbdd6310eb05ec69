"""The models that come with the installation, and which text goes to which of them.

granite reads English and other text in Latin script; the multilingual encoder reads everything, less well. A chunk
belongs to the model of its script. A question in Latin script is asked of granite; any other one of the multilingual
encoder, which therefore also gets the chunks in Latin script once the corpus has text in another one. granite knows
nothing of other scripts: its vectors are never compared with such a question (measured: nDCG .937 → .528). A model of
the user's that reads Latin script only takes granite's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from kebab.analysis.cjk import has_cjk
from kebab.analysis.language import is_mostly_latin, language_of
from kebab.core.ports import Embedder, EmbeddingModels, SpaceQuery
from kebab.embedding.onnx_embedder import MULTILINGUAL_NAME, granite, multilingual

# Of the questions of five judged sets, the right passage is farther away than this in 1 of 100; asked of a corpus about
# something else, the closest passage is in half of all cases (benchmarks/README.md).
_LATIN_FLOOR = 0.57
_ALL_SCRIPTS_FLOOR = 0.1
_OTHER_LANGUAGE_FLOOR = 0.33
# The model finds text of the question's own language closer than better text in another one.
_OTHER_LANGUAGE_BONUS = 0.1


class BundledModels:
    def __init__(
        self, cache: Path, *, latin: Embedder | None = None, cross_language: str = "auto", threads: int = 0
    ) -> None:
        """`latin`: instead of granite."""
        self._latin: Embedder = latin or granite(cache, threads)
        self._latin_floor = _LATIN_FLOOR if latin is None else -1.0
        self._all_scripts: Embedder = multilingual(cache, threads)
        self._cross_language = cross_language
        self.embedders = (self._latin, self._all_scripts)

    def primary_of(self, text: str) -> Embedder:
        return self._latin if is_latin(text) else self._all_scripts

    def secondary_of(self, text: str) -> Embedder | None:
        """An English note with a line of Korean in it is found by English questions too."""
        return self._latin if not is_latin(text) and is_mostly_latin(text) else None

    def secondary_for_all(self, *, other_scripts: bool) -> Embedder | None:
        wanted = self._cross_language == "on" or (self._cross_language == "auto" and other_scripts)
        return self._all_scripts if wanted else None

    def for_query(self, text: str) -> list[SpaceQuery]:
        if not is_latin(text) or has_cjk(text):  # one Korean word among English names makes a Korean question
            own = SpaceQuery(self._all_scripts, primary_only=True, floor=_ALL_SCRIPTS_FLOOR, weak=True)
            foreign = SpaceQuery(
                self._all_scripts, secondary_only=True, bonus=_OTHER_LANGUAGE_BONUS, floor=_OTHER_LANGUAGE_FLOOR
            )
            return [own] if self._cross_language == "off" else [foreign, own]
        latin = SpaceQuery(self._latin, floor=self._latin_floor)
        foreign = SpaceQuery(
            self._all_scripts, primary_only=True, floor=_OTHER_LANGUAGE_FLOOR, instead=self._cross_language == "auto"
        )
        return [latin] if self._cross_language == "off" else [latin, foreign]


def is_latin(text: str) -> bool:
    """Also true of text without any letters."""
    language = language_of(text)
    return language == "en" or (language == "und" and not any(map(str.isalpha, text[:4096])))


_MOST_WORDS = 1 << 14
"""That are remembered, with 2 KB each."""


class WordLikeness:
    """How alike two words are, by the encoder for all scripts: the one model whose distances between single words were
    measured.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}
        self._lock = Lock()

    def __call__(self, words: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        """For each word, its cosine with each of the others."""
        if not words or not others:
            return [[] for _ in words]
        import numpy as np

        with self._lock:
            new = [word for word in dict.fromkeys((*words, *others)) if word not in self._known]
            if len(self._known) + len(new) > _MOST_WORDS:
                self._known.clear()
                new = list(dict.fromkeys((*words, *others)))
            if new:
                self._known.update(zip(new, self._embedder.embed(new, "passage"), strict=True))
            left, right = (np.stack([self._known[word] for word in side]) for side in (words, others))
        cosines: list[list[float]] = (left @ right.T).tolist()
        return cosines


def likeness_by(models: EmbeddingModels | None) -> WordLikeness | None:
    """None where nothing makes vectors, or that encoder is not among what does."""
    return (
        next((WordLikeness(one) for one in models.embedders if one.name == MULTILINGUAL_NAME), None) if models else None
    )
