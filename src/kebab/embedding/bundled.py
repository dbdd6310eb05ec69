"""The models that come with the installation, and the texts and queries that each of them gets.

granite reads English and other text in Latin script; the multilingual encoder reads everything, less well. The primary
space of a chunk is that of the model for its script. A question in Latin script goes to granite, any other one to the
multilingual encoder, which therefore also embeds the chunks in Latin script once the corpus has text in another one.
granite does not know other scripts, so such a question is never compared with its vectors (nDCG would fall from .937 to
.528). A user's model that reads only Latin script replaces granite.
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

# In five judged sets 1 of 100 right passages has a cosine below the floor. If the corpus is about something else, half
# of the closest passages are below it (benchmarks/README.md).
_LATIN_FLOOR = 0.57
_ALL_SCRIPTS_FLOOR = 0.1
_OTHER_LANGUAGE_FLOOR = 0.33
# The model finds text of the question's own language closer than better text in another one.
_OTHER_LANGUAGE_BONUS = 0.1


class BundledModels:
    def __init__(
        self, cache: Path, *, latin: Embedder | None = None, cross_language: str = "auto", threads: int = 0
    ) -> None:
        """`latin`: a model for text in Latin script that replaces granite."""
        self._latin: Embedder = latin or granite(cache, threads)
        self._latin_floor = _LATIN_FLOOR if latin is None else -1.0
        self._all_scripts: Embedder = multilingual(cache, threads)
        self._cross_language = cross_language
        self.embedders = (self._latin, self._all_scripts)

    def primary_of(self, text: str) -> Embedder:
        return self._latin if is_latin(text) else self._all_scripts

    def secondary_of(self, text: str) -> Embedder | None:
        """granite for text that is mostly Latin, so English questions find an English note with a line of Korean."""
        return self._latin if not is_latin(text) and is_mostly_latin(text) else None

    def secondary_for_all(self, *, other_scripts: bool) -> Embedder | None:
        wanted = self._cross_language == "on" or (self._cross_language == "auto" and other_scripts)
        return self._all_scripts if wanted else None

    def for_query(self, text: str) -> list[SpaceQuery]:
        if not is_latin(text) or has_cjk(text):  # with one Korean word among English names it is a Korean question
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
    """Whether a text is in Latin script or has no letters."""
    language = language_of(text)
    return language == "en" or (language == "und" and not any(map(str.isalpha, text[:4096])))


_MOST_WORDS = 1 << 14
"""How many words are remembered, with 2 KB each."""


class WordLikeness:
    """How alike two words are, by the multilingual encoder, the only model that was measured on single words."""

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
    """The likeness of words, or None if the multilingual encoder is not among the models."""
    return (
        next((WordLikeness(one) for one in models.embedders if one.name == MULTILINGUAL_NAME), None) if models else None
    )
