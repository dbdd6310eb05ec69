"""The quick tokenizer gives the same ids as the library, without loading the vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kebab.core.errors import ModelCorrupt
from kebab.embedding.multilingual import Vocabulary, tokenizer_json
from kebab.embedding.onnx_encoder import FileTokenizer, UnigramTokenizer, vocabulary_files

PARTS = st.sampled_from(
    ["git ", "문서", "검색", "を", "東京", " ", "  ", "\t", "\n", "\u00a0", "\u3000", "▁", "<s>", "</s>", "ing", "Å", "e\u0301", "ㅋㅋ", "🙂", "１２",
     "ﬁ", "\u200b", "\u00ad", ".", "-", "http://", "é", "Ж", "ا", "ก", "\x00", "\ufffd"]
)  # fmt: skip
TEXTS = st.one_of(st.text(st.characters(codec="utf-8"), max_size=40), st.lists(PARTS, max_size=20).map("".join))


@pytest.fixture(scope="module")
def quick(multilingual_folder: Path) -> UnigramTokenizer:
    return UnigramTokenizer(multilingual_folder)


@pytest.fixture(scope="module")
def library(multilingual_folder: Path) -> FileTokenizer:
    return FileTokenizer(multilingual_folder / "tokenizer.json")


@given(TEXTS)
@example("")
@example("a▁b ▁ c")
@example("\x85 \x0b")
@example("\x0bx\x85")
@example("a" * 60)
@example("가나가나나" * 20)
@example("안녕하세요 " * 40)
def test_any_text_is_tokenized_as_by_the_library(quick: UnigramTokenizer, library: FileTokenizer, text: str) -> None:
    """Also where two ways are equally probable, because a text must have the same vector alone and in a batch."""
    assert quick.ids(text) == library.ids([text])[0]


@given(st.text("aeh0.-가나あの的", min_size=1, max_size=70))
def test_repetitions_are_tokenized_as_by_the_library(
    quick: UnigramTokenizer, library: FileTokenizer, text: str
) -> None:
    assert quick.ids(text) == library.ids([text])[0]


def test_real_lines_are_tokenized_as_by_the_library(quick: UnigramTokenizer, library: FileTokenizer) -> None:
    for path in sorted((Path(__file__).parents[2] / "samples" / "notes").rglob("*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert quick.ids(line) == library.ids([line])[0], line


@pytest.fixture
def small(tmp_path: Path, multilingual_folder: Path) -> tuple[UnigramTokenizer, FileTokenizer]:
    """The pieces of a small vocabulary, from our tokenizer and from the library."""
    pieces = [
        ("<unk>", 0.0),
        ("<s>", 0.0),
        ("</s>", 0.0),
        ("▁", -2.0),
        ("a", -3.0),
        ("b", -3.0),
        ("ab", -4.0),
        ("▁a", -4.5),
        ("b▁", -1.0),
    ]
    charsmap = (multilingual_folder / "charsmap.bin").read_bytes()
    vocabulary = Vocabulary(pieces, charsmap)
    for name, content in vocabulary_files(vocabulary).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json(vocabulary))
    return UnigramTokenizer(tmp_path), FileTokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a", [1, 7, 2]),
        ("ab", [1, 3, 6, 2]),
        ("ba", [1, 3, 5, 4, 2]),
        ("zzz", [1, 3, 0, 2]),
        ("azb", [1, 7, 0, 5, 2]),
        ("a  b", [1, 7, 3, 5, 2]),
        ("", [1, 2]),
        ("   ", [1, 2]),
    ],
)
def test_the_most_probable_pieces_are_chosen(
    small: tuple[UnigramTokenizer, FileTokenizer], text: str, ids: list[int]
) -> None:
    """No piece reaches over a space, and a run of unknown characters is one unknown piece."""
    quick, library = small
    assert quick.ids(text) == library.ids([text])[0] == ids


@pytest.mark.parametrize("name", ["pieces.bin", "charsmap.bin"])
@pytest.mark.parametrize("kept", [None, 0, 1000])
def test_a_damaged_vocabulary_is_a_clear_error(
    multilingual_folder: Path, tmp_path: Path, name: str, kept: int | None
) -> None:
    """The error names the command that restores a damaged model."""
    folder = tmp_path / multilingual_folder.name
    folder.mkdir()
    for file in multilingual_folder.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / name).unlink()
    if kept is not None:
        (folder / name).write_bytes((multilingual_folder / name).read_bytes()[:kept])
    with pytest.raises(ModelCorrupt) as caught:
        UnigramTokenizer(folder)
    assert caught.value.path == str(folder)
    assert caught.value.hint == f"Delete {folder}: it is made again."
