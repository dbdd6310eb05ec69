"""Embedders that run on this machine: the two bundled models, and any sentence encoder in a folder. Each is loaded when
it is first used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ModelCorrupt, ModelMismatch, ModelMissing
from kebab.core.text import whole_characters

if TYPE_CHECKING:
    from kebab.core.ports import EmbeddingKind, Vectors
    from kebab.embedding.onnx_encoder import OnnxEncoder

MULTILINGUAL_NAME = "universal-sentence-encoder-multilingual"
_MULTILINGUAL_LEAD = 0.75
"""Weight of the lead (see `OnnxEncoder.embed`). The model was made for sentences, so a title counts too little in a
passage of twenty. Of 26 Korean questions to English pages, 19 instead of 14 find the page among the first three; Korean
sets gain too. granite becomes worse with it."""


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
        "granite-embedding-30m-english", "int8-2", 384, lambda: _encoders().granite_encoder(cache, threads)
    )


def multilingual(cache: Path, threads: int) -> OnnxEmbedder:
    """The bundled model for 16 languages: Korean, Japanese, Chinese, Thai, Arabic, Russian, nine in Latin script."""
    return OnnxEmbedder(
        *(MULTILINGUAL_NAME, "3-2", 512),
        lambda: _encoders().multilingual_encoder(cache, threads),
        lead_weight=_MULTILINGUAL_LEAD,
    )


def from_folder(name: str, settings: EmbeddingSettings) -> OnnxEmbedder:
    """An embedder for any sentence encoder on disk: a folder with model.onnx and tokenizer.json."""
    folder = Path(name).expanduser().absolute()
    for name in ("model.onnx", "tokenizer.json"):
        if not (folder / name).is_file():
            raise ModelMissing(
                f"{folder} has no {name}.",
                hint="embedding.model = onnx:FOLDER needs model.onnx and tokenizer.json there; kb ingest --no-embed "
                "does without.",
                path=str(folder),
            )

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
