"""The key terms of a text: frequent in it and rare in the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import kebab
from kebab.search.similar import MOST_WORDS, key_terms
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.lexical import SqliteLexicalIndex


@contextmanager
def index_of(folder: Path, files: Mapping[str, str]) -> Iterator[SqliteLexicalIndex]:
    notes = folder / "notes"
    notes.mkdir()
    for name, text in files.items():
        (notes / name).write_text(text, encoding="utf-8")
    with kebab.open(folder / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(notes)
    with closing(Database(folder / "kb.sqlite").reader()) as connection:
        yield SqliteLexicalIndex(connection, korean_analysis="bigrams")


def test_key_terms_are_ordered_from_rare_to_common_without_stop_words(tmp_path: Path) -> None:
    files = {f"{number}.txt": f"the meeting of team {number}" for number in range(8)}
    files["a.txt"] = "the meeting was about okapi and quagga"
    files["b.txt"] = "an okapi in the meeting"
    with index_of(tmp_path, files) as index:
        assert key_terms(files["a.txt"], index) == [
            "okapi",
            "meeting",
        ]  # quagga is nowhere else, so it finds nothing


def test_words_that_a_text_repeats_are_its_first_key_terms(tmp_path: Path) -> None:
    with index_of(tmp_path, {"a.txt": "okapi zebra", "b.txt": "zebra okapi", "c.txt": "nothing"}) as index:
        assert key_terms("zebra okapi zebra zebra", index) == ["zebra", "okapi"]
        assert key_terms("okapi zebra okapi okapi", index) == ["okapi", "zebra"]


def test_forms_of_one_word_are_one_key_term(tmp_path: Path) -> None:
    with index_of(tmp_path, {"a.txt": "connect", "b.txt": "connected", "c.txt": "other"}) as index:
        assert key_terms("Connections connecting connects", index) == ["connections"]


def test_key_terms_are_korean_words_without_particles_and_pairs_of_chinese_characters(tmp_path: Path) -> None:
    with index_of(
        tmp_path, {"a.txt": "저장소를 만든다", "b.txt": "저장소에서 kubernetes는", "c.txt": "知识库", "d.txt": "知识库"}
    ) as index:
        assert key_terms("저장소가", index) == ["저장소"]
        assert key_terms("kubernetes를 저장소에", index) == ["저장소"]
        assert key_terms("知识库", index) == ["知识", "识库"]


def test_a_long_text_has_a_limited_number_of_key_terms_and_an_empty_one_none(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(300))
    with index_of(tmp_path, {"a.txt": text, "b.txt": text, "c.txt": "other"}) as index:
        assert len(key_terms(text, index)) == MOST_WORDS
        assert key_terms("", index) == key_terms(" \n… !?", index) == key_terms("the of and", index) == []
