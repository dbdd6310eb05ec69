"""The two bundled models, unpacked once; a model of eight words to calculate by hand; Python in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from kebab.config.settings import EmbeddingSettings
from kebab.embedding.models import OnnxEmbedder, e5, from_folder, granite, multilingual
from kebab.embedding.onnx_encoder import OnnxEncoder
from kebab.embedding.onnx_graph import FLOAT, INT64, Array, OnnxGraph

Python = Callable[..., str]
WORDS = ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "apple", "banana", "query:", "passage:")


@pytest.fixture(scope="session")
def cache(model_cache: Path) -> Path:
    """The folder that kebab uses with XDG_CACHE_HOME=model_cache."""
    return model_cache / "kebab"


@pytest.fixture(scope="session")
def granite_model(cache: Path) -> OnnxEmbedder:
    embedder = granite(cache, 1)
    embedder.embed(["unpack"], "passage")
    return embedder


@pytest.fixture(scope="session")
def multilingual_model(cache: Path) -> OnnxEmbedder:
    embedder = multilingual(cache, 1)
    embedder.embed(["unpack"], "passage")
    return embedder


@pytest.fixture(scope="session")
def e5_model(cache: Path) -> OnnxEmbedder:
    embedder = e5(cache, 1)
    embedder.embed(["unpack"], "passage")
    return embedder


@pytest.fixture(scope="session")
def e5_folder(cache: Path, e5_model: OnnxEmbedder) -> Path:
    return next(cache.glob("e5-*"))


@pytest.fixture(scope="session")
def granite_folder(cache: Path, granite_model: OnnxEmbedder) -> Path:
    return next(cache.glob("granite-*"))


@pytest.fixture(scope="session")
def multilingual_folder(cache: Path, multilingual_model: OnnxEmbedder) -> Path:
    return next(cache.glob("multilingual-*"))


@pytest.fixture
def python() -> Python:
    """Runs code in a new process, with arguments, and returns its output."""

    def run(code: str, *arguments: str | Path, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **(env or {})},
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    return run


@dataclass
class TinyModel:
    """A folder with a graph that looks its tokens up in `table`, and a tokenizer of WORDS."""

    folder: Path
    table: Array = field(
        default_factory=lambda: np.random.default_rng(3).normal(size=(len(WORDS), 4)).astype(np.float32)
    )

    def write(
        self,
        *,
        per_token: bool = True,
        inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
        input_type: int = INT64,
        width: int | str = 4,
        marked: bool = True,
        beside: str | None = None,
    ) -> Path:
        """`per_token`: one vector per token, else one per text; `marked`: whether a text gets [CLS] and [SEP] around
        it.
        """
        self.folder.mkdir(exist_ok=True)
        graph = OnnxGraph("tiny", beside=beside)
        for name in inputs:
            graph.input(name, input_type, ["batch", "tokens"])
        state = graph.add("Gather", graph.constant("table", self.table), "input_ids")
        if per_token:
            graph.output("last_hidden_state", state, FLOAT, ["batch", "tokens", width])
        else:
            graph.output("embedding", graph.add("ReduceMax", state, axes=[1], keepdims=0), FLOAT, ["batch", width])
        (self.folder / "model.onnx").write_bytes(graph.model())
        if beside:
            (self.folder / beside).write_bytes(graph.data)
        self.tokenizer(marked=marked).save(str(self.folder / "tokenizer.json"))
        return self.folder

    def tokenizer(self, *, marked: bool) -> Tokenizer:
        tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        if marked:
            tokenizer.post_processor = processors.TemplateProcessing(
                single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
            )
        return tokenizer

    def rows(self, *words: str) -> Array:
        return self.table[[WORDS.index(word) for word in words]]

    def encoder(self, **options: Any) -> OnnxEncoder:
        return OnnxEncoder(self.folder, **{"max_tokens": 512, "pad_id": 1, "threads": 1, **options})

    def embedder(self, **options: Any) -> OnnxEmbedder:
        return from_folder(str(self.folder), EmbeddingSettings(**{"threads": 1, **options}))


@pytest.fixture
def tiny(tmp_path: Path) -> TinyModel:
    return TinyModel(tmp_path / "tiny")
