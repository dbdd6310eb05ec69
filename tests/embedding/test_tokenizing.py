"""Tokenizers read the whole text; the quick one reads questions only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kebab.core.errors import ModelCorrupt
from kebab.embedding.onnx_encoder import FileTokenizer, QuickTokenizer, UnigramTokenizer

if TYPE_CHECKING:
    from tests.embedding.conftest import Python, TinyModel


def test_a_limit_or_padding_in_the_file_is_not_obeyed(tiny: TinyModel) -> None:
    """Longer text is embedded in parts, so its tokens must all be there."""
    folder = tiny.write()
    tokenizer = tiny.tokenizer(marked=True)
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=10, pad_id=1)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert json.loads((folder / "tokenizer.json").read_bytes())["truncation"] is not None
    found = FileTokenizer(folder / "tokenizer.json").ids(["apple banana apple banana", "apple"])
    assert found == [[2, 4, 5, 4, 5, 3], [2, 4, 3]]


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", b'{"model": {"type": "Unheard"}}', None])
def test_a_file_that_is_no_tokenizer_is_corrupt(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelCorrupt) as caught:
        FileTokenizer(path)
    assert caught.value.path == str(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("texts", "loads"),
    [
        (["문서를 검색하는 방법"], False),
        (["하나", "둘", "셋", "넷"], False),
        (["하나", "둘", "셋", "넷", "다섯"], True),
        (["긴 글 " * 200], True),
        ([], False),
    ],
)
def test_a_question_is_tokenized_without_loading_the_vocabulary(
    multilingual_folder: Path, tmp_path: Path, texts: list[str], loads: bool
) -> None:
    """Without tokenizer.json only the quick way can work."""
    whole = QuickTokenizer(UnigramTokenizer(multilingual_folder), multilingual_folder)
    expected = FileTokenizer(multilingual_folder / "tokenizer.json").ids(texts)
    assert whole.ids(texts) == expected
    without = QuickTokenizer(UnigramTokenizer(multilingual_folder), tmp_path)
    if loads:
        with pytest.raises(ModelCorrupt):
            without.ids(texts)
    else:
        assert without.ids(texts) == expected


def test_questions_use_the_vocabulary_once_it_is_loaded(multilingual_folder: Path) -> None:
    tokenizer = QuickTokenizer(UnigramTokenizer(multilingual_folder), multilingual_folder)
    before = tokenizer.ids(["어떻게 설치하나요?"])
    tokenizer.ids(["많은 글"] * 10)
    assert tokenizer.ids(["어떻게 설치하나요?"]) == before


def test_a_fork_after_tokenizing_prints_no_warning(tiny: TinyModel, python: Python) -> None:
    """The library warns on stderr about threads and forks unless told not to; the fixture asserts that stderr is empty."""
    folder = tiny.write()
    code = (
        "import os, sys; from pathlib import Path; from kebab.embedding.onnx_encoder import FileTokenizer\n"
        "t = FileTokenizer(Path(sys.argv[1])); t.ids(['apple banana'] * 100)\n"
        "pid = os.fork()\n"
        "ids = t.ids(['apple'])\n"
        "os._exit(0) if pid == 0 else os.waitpid(pid, 0)\n"
        "print(ids)"
    )
    env = {"TOKENIZERS_PARALLELISM": ""} if "TOKENIZERS_PARALLELISM" in os.environ else {}
    assert python(code, folder / "tokenizer.json", env=env).strip() == "[[2, 4, 3]]"


PROGRAM = """
import sys, threading, time
from pathlib import Path

class Slow:  # long enough for the other thread to come in between
    def find_spec(self, name, path=None, target=None):
        if name.startswith("tokenizers"):
            time.sleep(0.05)

sys.meta_path.insert(0, Slow())
from kebab.embedding.onnx_encoder import FileTokenizer
from kebab.embedding.onnx_encoder import UnigramTokenizer

nowhere = Path(sys.argv[1])

def attempt(make, after):
    time.sleep(after)
    try:
        make(nowhere)
    except Exception as error:
        print(error)

threads = [threading.Thread(target=attempt, args=(make, after)) for make, after in ((FileTokenizer, 0), (UnigramTokenizer, 0.08))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_two_models_may_be_loaded_at_the_same_time() -> None:
    """Regression: two threads that import parts of the library at the same time fail, and the error named the file."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, "/nowhere"], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2
    assert "No such file" in done.stdout
    assert "import" not in done.stdout + done.stderr
    assert "deadlock" not in done.stdout
