"""Runs a sentence encoder: from texts to token ids, batches and unit vectors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kebab.core.errors import ModelCorrupt, ModelMismatch
from kebab.embedding.model_files import ModelCache, package_file
from kebab.embedding.onnx_graph import Array
from kebab.embedding.tokenizing import FileTokenizer, QuickTokenizer, Tokenizer, UnigramTokenizer, vocabulary_files

_GRANITE_TOKENS = 512
_MULTILINGUAL_TOKENS = 2048
"""The model has no limit; this one bounds the memory for a single text."""
_TOKENS_PER_BATCH = 1024
"""Small batches stay in the processor's cache: batches of twice the size are 10 to 20 % slower."""


class OnnxEncoder:
    """Runs the model in a folder with model.onnx and tokenizer.json.

    Text beyond `max_tokens` is not dropped: it is embedded in parts, and their mean is the text's vector.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_tokens: int,
        pad_id: int,
        pooling: str = "mean",
        threads: int = 0,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """`pooling`: cls or mean, for a graph that gives a vector per token; `threads`: 0 for all processors."""
        self._folder = folder
        self._max_tokens = max_tokens
        self._pad_id = pad_id
        self._pooling = pooling
        self._tokenizer = tokenizer or FileTokenizer(folder / "tokenizer.json")
        self._session = _load_session(folder / "model.onnx", threads or _processors())
        self._inputs = _input_types(self._session, folder)

    def embed(self, texts: Sequence[str], *, lead_weight: float = 0.0) -> Array:
        """One unit vector per text, which does not depend on the other texts.

        `lead_weight`: how much the lead of a text (title and headings, before its first blank line) counts in
        addition to the whole text.
        """
        if not lead_weight:
            return self._embed(texts)
        parted = [(number, *text.partition("\n\n")) for number, text in enumerate(texts)]
        leads = [(number, lead) for number, lead, _, rest in parted if lead.strip() and rest.strip()]
        vectors = self._embed([*texts, *(lead for _, lead in leads)])
        whole = vectors[: len(texts)].copy()
        for (number, _), lead_vector in zip(leads, vectors[len(texts) :], strict=True):
            whole[number] += lead_weight * lead_vector
        return unit(whole)

    def _embed(self, texts: Sequence[str]) -> Array:
        parts: list[tuple[int, list[int]]] = []
        for number, ids in enumerate(self._tokenizer.ids(texts)):
            parts += [(number, part) for part in self._parts(ids)]
        vectors = self._vectors([part for _, part in parts])
        if len(parts) == len(texts):
            return vectors
        summed = np.zeros((len(texts), vectors.shape[1]), np.float32)
        for (number, part), vector in zip(parts, vectors, strict=True):
            summed[number] += vector * len(part)
        return unit(summed)

    def _parts(self, ids: list[int]) -> list[list[int]]:
        """Parts of a text that is too long, each between the ids for begin and end. An empty text becomes padding."""
        if len(ids) <= self._max_tokens:
            return [ids or [self._pad_id]]
        inner, room = ids[1:-1], self._max_tokens - 2
        return [[ids[0], *inner[start : start + room], ids[-1]] for start in range(0, len(inner), room)]

    def _vectors(self, parts: list[list[int]]) -> Array:
        """Vectors of the parts, computed in batches of similar length to save padding."""
        order = sorted(range(len(parts)), key=lambda number: len(parts[number]))
        vectors: Array | None = None
        for batch in _batches(order, parts):
            found = self._run([parts[number] for number in batch])
            if vectors is None:
                vectors = np.empty((len(parts), found.shape[1]), np.float32)
            vectors[batch] = found
        return np.empty((0, 0), np.float32) if vectors is None else vectors

    def _run(self, batch: list[list[int]]) -> Array:
        length = len(batch[-1])
        ids = np.full((len(batch), length), self._pad_id, np.int64)
        mask = np.zeros((len(batch), length), np.int64)
        for row, part in enumerate(batch):
            ids[row, : len(part)] = part
            mask[row, : len(part)] = 1
        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            output = self._session.run(
                None, {name: values[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
            )[0]
        except Exception as error:  # onnxruntime raises a class of its own per status code, with no base but this one
            raise ModelMismatch(
                f"The model in {self._folder} cannot take a text of {length} tokens: "
                f"{' '.join(str(error).split())[:200]}.",
                hint="Set embedding.max_tokens to what the model takes.",
            ) from error
        vectors = unit(_pooled(output, mask, self._pooling))
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise ModelMismatch(
                f"The model in {self._folder} gave a vector that is no direction (NaN, infinite or zero).",
                hint="Use another form of the model.",
            )
        return vectors


def _input_types(session: Any, folder: Path) -> dict[str, Any]:
    types = {entry.name: np.int32 if entry.type == "tensor(int32)" else np.int64 for entry in session.get_inputs()}
    unknown = sorted(types.keys() - {"input_ids", "attention_mask", "token_type_ids"})
    if unknown:
        raise ModelMismatch(
            f"The model in {folder} asks for {', '.join(unknown)}, which is not known here.",
            hint="It must take input_ids, attention_mask and token_type_ids, or some of them.",
        )
    return types


def unit(vectors: Array) -> Array:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _pooled(output: Array, mask: Array, pooling: str) -> Array:
    if output.ndim == 2:
        return output
    if pooling == "cls":
        return np.asarray(output[:, 0])
    weights = mask[:, :, None].astype(np.float32)
    return np.asarray((output * weights).sum(axis=1) / weights.sum(axis=1))


def _batches(order: list[int], parts: list[list[int]]) -> Iterator[list[int]]:
    """Consecutive parts of `order`, which is by length, each with a limited number of tokens including padding."""
    batch: list[int] = []
    for number in order:
        if batch and (len(batch) + 1) * len(parts[number]) > _TOKENS_PER_BATCH:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def output_dimension(path: Path) -> int:
    """The size of the vectors that a model gives."""
    size = _load_session(path, 1).get_outputs()[0].shape[-1]
    if not isinstance(size, int):
        raise ModelCorrupt(
            f"{path} does not say how long its vectors are.",
            hint='Add a config.json with "hidden_size".',
            path=str(path),
        )
    return size


def _load_session(path: Path, threads: int) -> Any:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # otherwise it reports what machine this is
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # no log, because errors are raised
    # Waiting threads sleep: spinning ones take the processor from other programs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no narrower base class
        raise ModelCorrupt(
            f"{path} cannot be loaded: {error}.",
            hint=f"Delete {path.parent} if it is in Kebab's cache: it is made again.",
            path=str(path),
        ) from error


# --- the bundled models. The names of their folders stand for their weights and for the code that converts them: raise
# the number behind a name when that code changes


def granite_encoder(cache: Path, threads: int) -> OnnxEncoder:
    def make() -> dict[str, bytes]:
        from kebab.embedding import granite as model

        pack = model.read_pack(package_file(model.PACKAGE, model.PACK, model.PACK_SHA256))
        return {"model.onnx": model.GraniteGraph(pack).build(), "tokenizer.json": pack.tokenizer}

    folder = ModelCache(cache).get("granite-6a1cc247-2", make)
    return OnnxEncoder(folder, max_tokens=_GRANITE_TOKENS, pad_id=1, threads=threads)


def multilingual_encoder(cache: Path, threads: int) -> OnnxEncoder:
    def make() -> dict[str, bytes]:
        from kebab.embedding import multilingual as model

        graph = model.build_graph(
            model.read_weights(package_file(model.PACKAGE, model.WEIGHTS, model.WEIGHTS_SHA256)), "constants.bin"
        )
        vocabulary = model.read_vocabulary(package_file(model.PACKAGE, model.VOCABULARY, model.VOCABULARY_SHA256))
        return {
            "model.onnx": graph.model,
            "constants.bin": graph.data,
            "tokenizer.json": model.tokenizer_json(vocabulary),
            **vocabulary_files(vocabulary.pieces, vocabulary.charsmap),
        }

    folder = ModelCache(cache).get("multilingual-0db566fd-3", make)
    tokenizer = QuickTokenizer(UnigramTokenizer(folder), folder)
    return OnnxEncoder(folder, max_tokens=_MULTILINGUAL_TOKENS, pad_id=0, threads=threads, tokenizer=tokenizer)
