"""The models that the setting `embedding.model` names, and the texts and queries that each of them gets.

To add a provider, add a function and its line in `_PROVIDERS`.

Two models are in use at a time: granite reads English and other text in Latin script; the multilingual encoder, which
`embedding.multilingual` names, reads everything, English less well. The primary space of a chunk is that of the model
for its script. A question in Latin script goes to granite, any other one to the multilingual encoder, which therefore
also embeds the chunks in Latin script once the corpus has text in another one. granite does not know other scripts, so
such a question is never compared with its vectors (nDCG would fall from .937 to .528). A user's model that reads only
Latin script replaces granite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.analysis.cjk import has_cjk
from kebab.analysis.language import is_mostly_latin, language_of
from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ConfigError, ModelCorrupt, ModelMismatch, ModelMissing
from kebab.core.ports import Embedder, EmbeddingModels, SpaceQuery
from kebab.core.text import whole_characters

if TYPE_CHECKING:
    from kebab.core.ports import EmbeddingKind, Vectors
    from kebab.embedding.onnx_encoder import OnnxEncoder

# --- models that run on this machine. Each is loaded when it is first used

GRANITE_NAME = "granite-embedding-30m-english"
_MULTILINGUAL_LEAD = 0.75
"""Weight of the lead (see `OnnxEncoder.embed`). The model was made for sentences, so a title counts too little in a
passage of twenty. Of 26 Korean questions to English pages, 19 instead of 14 find the page among the first three; Korean
sets gain too. granite becomes worse with it."""


_E5_LEAD = 0.25
"""The same for e5: a compromise between questions to paragraphs, which want none of it, and other languages."""


class OnnxEmbedder:
    def __init__(
        self,
        name: str,
        version: str,
        dimension: int,
        load: Callable[[], OnnxEncoder],
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        lead_weight: float = 0.0,
    ) -> None:
        """`lead_weight`: see `OnnxEncoder.embed`; for passages only."""
        self.name = name
        self.version = version
        self.dimension = dimension
        self._load = load
        self._encoder: OnnxEncoder | None = None
        self._loading = Lock()
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        self._lead_weight = lead_weight

    @property
    def fingerprint(self) -> str:
        return f"{self.name}@{self.version}:{self.dimension}"

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        with self._loading:  # only one of several threads loads it
            if self._encoder is None:
                self._encoder = self._load()
        prepared = [self._prefixes[kind] + whole_characters(text) for text in texts]
        lead_weight = self._lead_weight if kind == "passage" else 0.0
        vectors = self._encoder.embed(prepared, lead_weight=lead_weight)
        if len(texts) and vectors.shape[1] != self.dimension:
            raise ModelMismatch(
                f"{self.name} gives vectors of {vectors.shape[1]} dimensions, and its config.json says "
                f"{self.dimension}.",
                hint='Correct "hidden_size" there, or remove it.',
            )
        return vectors


def _encoders() -> Any:
    """The module that runs models. It loads numpy, so it is imported when the first text comes."""
    from kebab.embedding import onnx_encoder

    return onnx_encoder


def granite(cache: Path, threads: int) -> OnnxEmbedder:
    """The bundled model for English and other text in Latin script."""
    return OnnxEmbedder(
        *(GRANITE_NAME, "int8-2", 384),
        lambda: _encoders().granite_encoder(cache, threads),
    )


def multilingual(cache: Path, threads: int) -> OnnxEmbedder:
    """The bundled model for 16 languages: Korean, Japanese, Chinese, Thai, Arabic, Russian, nine in Latin script."""
    return OnnxEmbedder(
        *("universal-sentence-encoder-multilingual", "3-2", 512),
        lambda: _encoders().multilingual_encoder(cache, threads),
        lead_weight=_MULTILINGUAL_LEAD,
    )


def e5(cache: Path, threads: int) -> OnnxEmbedder:
    """The model for 100 languages that the extra `e5` brings."""
    return OnnxEmbedder(
        *("multilingual-e5-small", "int8-1", 384),
        lambda: _encoders().e5_encoder(cache, threads),
        query_prefix="query: ",
        passage_prefix="passage: ",
        lead_weight=_E5_LEAD,
    )


def from_folder(name: str, settings: EmbeddingSettings) -> OnnxEmbedder:
    """An embedder for any sentence encoder on disk: a folder with model.onnx and tokenizer.json."""
    folder = model_folder(name, "embedding.model", "; kb ingest --no-embed does without")
    pooling, max_tokens, threads = settings.pooling, settings.max_tokens, settings.threads

    def load() -> OnnxEncoder:
        encoder: OnnxEncoder = _encoders().OnnxEncoder(
            folder, max_tokens=max_tokens, pad_id=_pad_id(folder), pooling=pooling, threads=threads
        )
        return encoder

    # The prefix of queries is left out, because it changes no stored vector.
    version = _folder_version(folder, pooling, max_tokens, settings.passage_prefix)
    return OnnxEmbedder(
        *(folder.name, version, _dimension(folder), load),
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
    )


def model_folder(name: str, setting: str, otherwise: str = "") -> Path:
    """The folder that a setting names, which must have a graph and a tokenizer. `otherwise`: ends the hint."""
    folder = Path(name).expanduser().absolute()
    for file in ("model.onnx", "tokenizer.json"):
        if not (folder / file).is_file():
            raise ModelMissing(
                f"{folder} has no {file}.",
                hint=f"{setting} = onnx:FOLDER needs model.onnx and tokenizer.json there{otherwise}.",
                path=str(folder),
            )
    return folder


def _folder_version(folder: Path, *settings: object) -> str:
    """A hash of the settings, the tokenizer, and the size, first and last part of the graph and of the weights beside
    it (model.onnx_data). A large model is not read whole at every search."""
    digest = sha256(f"{settings}".encode("utf-8", "replace"))
    for path in sorted(folder.glob("model.onnx*")):
        size = path.stat().st_size
        digest.update(f"{size} ".encode())
        with path.open("rb") as file:
            digest.update(file.read(1 << 20))
            file.seek(max(0, size - (1 << 20)))
            digest.update(file.read())
    digest.update((folder / "tokenizer.json").read_bytes())
    return digest.hexdigest()[:12]


def _dimension(folder: Path) -> int:
    """The size of the vectors, from the model's config, else from its graph."""
    config = _json(folder / "config.json")
    size = config.get("hidden_size") or config.get("dim")
    if isinstance(size, int):
        return size
    return int(_encoders().output_dimension(folder / "model.onnx"))


def _pad_id(folder: Path) -> int:
    config = _json(folder / "config.json")
    padding = _json(folder / "tokenizer.json").get("padding")
    pad_id = config.get("pad_token_id") if padding is None else padding.get("pad_id")
    return pad_id if isinstance(pad_id, int) else 0


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes()) if path.is_file() else {}
    except ValueError as error:
        raise ModelCorrupt(f"{path} is not JSON: {error}.", hint="Check the model's folder.", path=str(path)) from error
    return value if isinstance(value, dict) else {}


_CHARACTERS = 2000
"""Distinct East Asian characters in a vocabulary that reads these languages. Vocabularies for English have a few
hundred, those for one East Asian language or for many languages have several thousand."""
_AS_ITSELF = re.compile(rb"(?:[\xe3-\xec][\x80-\xbf]|\xed[\x80-\x9e])[\x80-\xbf]")
_ESCAPED = re.compile(rb"\\u(?:3[0-9a-fA-F]|[4-9a-cA-C][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}")


_VISIBLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_BYTES = {256 + place: byte for place, byte in enumerate(byte for byte in range(256) if byte not in _VISIBLE)}
"""The byte of each character from 256 on. Tokenizers of bytes follow GPT-2: visible bytes stand for themselves, the
others are written as characters from 256 on."""


def reads_east_asian(tokenizer: Path) -> bool:
    """Whether the vocabulary of a tokenizer.json has many East Asian characters."""
    data = tokenizer.read_bytes()
    from_bytes = data.decode("utf-8", "replace").translate(_BYTES).encode("latin-1", "ignore")
    written = (_AS_ITSELF.findall(data), _ESCAPED.findall(data), _AS_ITSELF.findall(from_bytes))
    return any(len(set(characters)) >= _CHARACTERS for characters in written)


# --- which texts and queries each bundled model gets


class _Multilingual(NamedTuple):
    """A multilingual encoder, and which of its cosines mean something."""

    make: Callable[[Path, int], OnnxEmbedder]
    floor: float
    other_language_floor: float
    other_language_bonus: float
    """The model finds text of the question's own language closer than better text in another one."""
    trust: float
    """The weight of passages in the question's own language beside word search, which finds them more reliably."""


_MULTILINGUAL = {
    "use": _Multilingual(multilingual, 0.1, 0.33, 0.1, trust=0.1),
    "e5": _Multilingual(e5, 0.82, 0.82, 0.05, trust=0.2),
}

# In five judged sets 1 of 100 right passages has a cosine below the floor. If the corpus is about something else, half
# of the closest passages are below it (benchmarks/README.md).
_LATIN_FLOOR = 0.57


class BundledModels:
    def __init__(
        self,
        cache: Path,
        *,
        latin: Embedder | None = None,
        multilingual: str = "use",
        cross_language: str = "auto",
        threads: int = 0,
    ) -> None:
        """`latin`: a model for text in Latin script that replaces granite; `multilingual`: use or e5."""
        self._latin: Embedder = latin or granite(cache, threads)
        self._latin_floor = _LATIN_FLOOR if self._latin.name == GRANITE_NAME else -1.0
        self._reads_all = _MULTILINGUAL[multilingual]
        self._all_scripts: Embedder = self._reads_all.make(cache, threads)
        self._cross_language = cross_language
        self.embedders = (self._latin, self._all_scripts)
        self._cache, self._multilingual, self._threads = cache, multilingual, threads

    @cached_property
    def earlier(self) -> BundledModels:
        """The same with the other multilingual encoder."""
        return BundledModels(
            self._cache,
            latin=self._latin,
            multilingual="e5" if self._multilingual == "use" else "use",
            cross_language=self._cross_language,
            threads=self._threads,
        )

    @property
    def of_words(self) -> Embedder:
        """The model for single words: only this one was measured on them."""
        return self._all_scripts if self._multilingual == "use" else self.earlier.of_words

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
            own = SpaceQuery(self._all_scripts, primary=True, floor=self._reads_all.floor, trust=self._reads_all.trust)
            foreign = SpaceQuery(
                self._all_scripts,
                primary=False,
                bonus=self._reads_all.other_language_bonus,
                floor=self._reads_all.other_language_floor,
            )
            return [own] if self._cross_language == "off" else [foreign, own]
        latin = SpaceQuery(self._latin, floor=self._latin_floor)
        foreign = SpaceQuery(
            self._all_scripts,
            primary=True,
            floor=self._reads_all.other_language_floor,
            instead=self._cross_language == "auto",
        )
        return [latin] if self._cross_language == "off" else [latin, foreign]


def is_latin(text: str) -> bool:
    """Whether a text is in Latin script or has no letters."""
    language = language_of(text)
    return language == "en" or (language == "und" and not any(map(str.isalpha, text[:4096])))


_MOST_WORDS = 1 << 14
"""How many words are remembered, with 2 KB each."""


class WordLikeness:
    """How alike two words are: the cosine of their vectors from one embedder."""

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
    """The likeness of words, or None if the bundled encoder for them is not among the models."""
    return WordLikeness(models.of_words) if isinstance(models, BundledModels) else None


# --- the setting


def models_for(settings: EmbeddingSettings, cache: Path) -> EmbeddingModels | None:
    """The models of `embedding.model`; None for `none`. Models are loaded, and endpoints asked, at the first text."""
    kind, _, name = settings.model.strip().partition(":")
    if kind == "none":
        return None
    if kind not in _PROVIDERS or bool(name) != (kind != "bundled"):
        raise ConfigError(
            f"embedding.model = {settings.model!r} is not known.",
            hint="Valid: bundled, none, onnx:FOLDER, openai:MODEL, ollama:MODEL.",
        )
    embedder = _PROVIDERS[kind](name, settings)
    # The tokenizer behind an endpoint cannot be inspected, so `auto` means all scripts there.
    latin_only = settings.scripts == "latin" or (
        settings.scripts == "auto"
        and kind == "onnx"
        and not reads_east_asian(Path(name, "tokenizer.json").expanduser())
    )
    if embedder is None or latin_only:  # the bundled model for all scripts gets the other texts
        return BundledModels(
            cache,
            latin=embedder,
            multilingual=settings.multilingual,
            cross_language=settings.cross_language,
            threads=settings.threads,
        )
    return SingleModel(embedder)


def _endpoint(name: str, settings: EmbeddingSettings) -> Embedder:
    from kebab.embedding.endpoint import OLLAMA, OPENAI, EndpointEmbedder

    return EndpointEmbedder(OLLAMA if settings.model.strip().startswith("ollama:") else OPENAI, name, settings)


_PROVIDERS: dict[str, Callable[[str, EmbeddingSettings], Embedder | None]] = {
    "bundled": lambda _name, _settings: None,
    "onnx": from_folder,
    "openai": _endpoint,
    "ollama": _endpoint,
}


class SingleModel:
    """One model for every text and every query."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.embedders = (embedder,)
        self.earlier = None

    def primary_of(self, _text: str) -> Embedder:
        return self._embedder

    def secondary_of(self, _text: str) -> Embedder | None:
        return None

    def secondary_for_all(self, *, other_scripts: bool) -> Embedder | None:  # noqa: ARG002 - there is only one space
        return None

    def for_query(self, _text: str) -> list[SpaceQuery]:
        return [SpaceQuery(self._embedder)]
