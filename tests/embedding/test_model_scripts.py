"""Which scripts a model reads, by its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from kebab.embedding.models import reads_east_asian

KOREAN = [chr(code) for code in range(0xAC00, 0xAC00 + 2500)]
HAN = [chr(code) for code in range(0x4E00, 0x4E00 + 2500)]
ENGLISH = [f"word{number}" for number in range(3000)]


def written(folder: Path, pieces: list[str], *, ascii_only: bool) -> Path:
    path = folder / "tokenizer.json"
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    path.write_text(
        json.dumps({"model": {"type": "WordPiece", "vocab": vocabulary}}, ensure_ascii=ascii_only), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    ("pieces", "reads"),
    [
        (ENGLISH, False),
        (ENGLISH + KOREAN, True),
        (ENGLISH + HAN, True),
        (ENGLISH + KOREAN[:100] + HAN[:400], False),
        (ENGLISH + [chr(code) for code in range(0xC0, 0x600)], False),
    ],
    ids=["english", "korean", "chinese", "english with a few signs", "accents, Greek, Cyrillic"],
)
def test_a_tokenizer_with_thousands_of_east_asian_characters_reads_them(
    tmp_path: Path, pieces: list[str], reads: bool, ascii_only: bool
) -> None:
    assert reads_east_asian(written(tmp_path, pieces, ascii_only=ascii_only)) is reads


@pytest.mark.parametrize(
    ("texts", "reads"), [(ENGLISH, False), ([sign * 9 for sign in KOREAN] + ENGLISH, True)], ids=["english", "korean"]
)
def test_a_byte_level_tokenizer_is_recognised(tmp_path: Path, texts: list[str], reads: bool) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=9000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert reads_east_asian(tmp_path / "tokenizer.json") is reads


def test_scripts_of_the_bundled_models_are_recognised(granite_folder: Path, multilingual_folder: Path) -> None:
    assert not reads_east_asian(granite_folder / "tokenizer.json")
    assert reads_east_asian(multilingual_folder / "tokenizer.json")
