"""Vectors from an endpoint the user named: OpenAI's API, which many servers speak, and Ollama's.

The network is used only when `embedding.model` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ModelMismatch, ModelUnreachable, TextRefused
from kebab.core.text import whole_characters
from kebab.endpoints import Passing, endpoint

if TYPE_CHECKING:
    from kebab.core.ports import EmbeddingKind, Vectors

_SHORTEST_PART = 500
"""A text of fewer characters is not too long for any model: if it is refused, it is for another reason."""
_LONGEST_WAIT_S = 30.0
_STAYS_DOWN_S = 30.0
"""Seconds for which an endpoint that failed is not asked again, so that only the first of many queries waits."""
_PROBE = "dimension"


class Protocol(NamedTuple):
    """How to ask one kind of endpoint, and how to read the vectors from its answer."""

    name: str
    address: str
    path: str
    body: Callable[[str, list[str]], dict[str, Any]]
    vectors: Callable[[Any], list[Any]]


def _openai_vectors(answer: Any) -> list[Any]:
    """The vectors in the order of the texts: by their index, or as they come if the server leaves the index out."""
    numbered = {item.get("index", place): item["embedding"] for place, item in enumerate(answer["data"])}
    if len(numbered) != len(answer["data"]):
        raise ValueError("two vectors for one text")
    return [numbered[place] for place in range(len(numbered))]


OPENAI = Protocol(
    name="openai",
    address="https://api.openai.com/v1",
    path="/embeddings",
    body=lambda model, texts: {"model": model, "input": texts, "encoding_format": "float"},
    vectors=_openai_vectors,
)
# With `truncate: False` Ollama refuses a text that is too long; otherwise it cuts the text silently.
OLLAMA = Protocol(
    name="ollama",
    address="http://127.0.0.1:11434",
    path="/api/embed",
    body=lambda model, texts: {"model": model, "input": texts, "truncate": False},
    vectors=lambda answer: list(answer["embeddings"]),
)


class EndpointEmbedder:
    """Embeds texts at an endpoint. `dimension` comes from the first answer."""

    def __init__(
        self,
        protocol: Protocol,
        model: str,
        settings: EmbeddingSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = model
        self.version = f"{protocol.name}-1" + _mark(settings.passage_prefix)
        self._protocol = protocol
        self._settings = settings
        self._sleep = sleep
        self._dimension: int | None = None
        self._down: tuple[float, ModelUnreachable] | None = None
        """When the endpoint last failed after all retries, and the error."""
        self._prefixes = {"query": settings.query_prefix, "passage": settings.passage_prefix}
        self._endpoint = endpoint(
            "embedding",
            settings.endpoint or protocol.address,
            protocol.path,
            settings.api_key,
            settings.timeout_s,
            meanwhile="text search works meanwhile (--mode lexical)",
            too_long="chunking.max_tokens",
        )
        self._address = self._endpoint.address

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self.embed([_PROBE], "passage")
        assert self._dimension is not None
        return self._dimension

    @property
    def fingerprint(self) -> str:
        return f"{self.name}@{self.version}:{self.dimension}"

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        # An empty text is an error to most endpoints, and a space means the same.
        return self._taken([self._prefixes[kind] + (whole_characters(text) if text.strip() else " ") for text in texts])

    def _taken(self, texts: list[str], *, patient: bool = True) -> Vectors:
        """The vectors of texts, sent in batches. A refused batch is sent again in halves; a refused long text as two
        texts, whose mean is its vector. `patient`: a failure of the server is retried before it counts as a refusal.
        """
        import numpy as np

        size = self._settings.batch_size
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        if len(texts) > size:
            return np.concatenate([self._taken(texts[start : start + size]) for start in range(0, len(texts), size)])
        try:
            return self._batch(texts, patient=patient)
        except TextRefused:
            if len(texts) > 1:
                middle = len(texts) // 2
                return np.concatenate([self._taken(part, patient=False) for part in (texts[:middle], texts[middle:])])
            if len(texts[0]) < _SHORTEST_PART:
                raise
        halves = _halves(texts[0])
        vectors = np.concatenate([self._taken([half], patient=False) for half in halves])
        mean = np.array([len(half) for half in halves], np.float32) @ vectors
        return np.asarray(mean / np.linalg.norm(mean), np.float32)[None]

    def _batch(self, texts: list[str], *, patient: bool) -> Vectors:
        import numpy as np

        answer = self._ask(self._protocol.body(self.name, texts), patient=patient)
        try:
            with np.errstate(over="ignore"):  # too large a number becomes infinite, which is noticed below
                vectors = np.array(self._protocol.vectors(answer), np.float32)
            if vectors.size and vectors.ndim != 2:
                raise ValueError("vectors of vectors, or no vectors at all")
        except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as error:
            raise ModelMismatch(
                f"The answer of {self._address} has no vectors of one size in it.",
                hint="Check that embedding.model names an embedding model.",
            ) from error
        if len(vectors) != len(texts):
            raise ModelMismatch(
                f"{self._address} gave {len(vectors)} vectors for {len(texts)} texts.",
                hint="Check the endpoint, or lower embedding.batch_size.",
            )
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not (lengths > 0).all():
            raise TextRefused(
                f"{self._address} gave a vector that is no direction (NaN, infinite or zero).",
                hint="Check the model behind the endpoint.",
            )
        if self._dimension is None:
            self._dimension = vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            raise ModelMismatch(
                f"{self._address} gave vectors of {vectors.shape[1]} dimensions, before of {self._dimension}.",
                hint="Check the model behind the endpoint.",
            )
        return np.asarray(vectors / lengths, np.float32)

    def _ask(self, body: dict[str, Any], *, patient: bool) -> Any:
        if self._down is not None and time.monotonic() - self._down[0] < _STAYS_DOWN_S:
            raise ModelUnreachable(self._down[1].message, hint=self._down[1].hint)
        self._down = None
        for attempt in range(self._settings.retries + 1):
            try:
                return self._endpoint.asked(body)
            except Passing as failure:
                if failure.by_server and (
                    not patient or (attempt == self._settings.retries and self._takes_harmless_text())
                ):
                    raise TextRefused(failure.error.message, hint=failure.error.hint) from failure
                if attempt == self._settings.retries:
                    self._down = time.monotonic(), failure.error
                    raise failure.error from failure
                self._sleep(min(_LONGEST_WAIT_S, failure.wait_s if failure.wait_s is not None else 0.5 * 2**attempt))
        raise AssertionError("unreachable")

    def _takes_harmless_text(self) -> bool:
        """Whether the server still embeds a short text. If so, it failed because the other text was too long for it."""
        try:
            self._endpoint.asked(self._protocol.body(self.name, [_PROBE]))
        except (Passing, ModelUnreachable):
            return False
        return True


def _halves(text: str) -> tuple[str, str]:
    """The two halves of a text, cut at a space near the middle if there is one."""
    middle = len(text) // 2
    cut = text.rfind(" ", middle - 100, middle)
    return (text[:cut], text[cut + 1 :]) if cut > 0 else (text[:middle], text[middle:])


def _mark(passage_prefix: str) -> str:
    """The part of the version that stands for the prefix of passages, since it changes their vectors."""
    return f"-{sha256(passage_prefix.encode('utf-8', 'replace')).hexdigest()[:8]}" if passage_prefix else ""
