"""What every store must do as a whole: concurrent readers and writers, recovery after a killed writer, checks and
maintenance.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import REPOSITORY

import kebab
from kebab.core.errors import Locked, NotFound, StoreError
from kebab.core.ports import ChunkContext, ColumnWeights
from kebab.core.query_tree import parse
from kebab.core.search import SearchFilters

if TYPE_CHECKING:
    from tests.contracts.stores import Corpus

WRITER = """
import json, sys
from kebab.config.settings import StoreSettings
from tests.contracts.stores import Corpus

corpus = Corpus(StoreSettings(**json.loads(sys.argv[1])))
with corpus.writing() as writing:
    print("writing", flush=True)
    store = writing.documents()
    if sys.argv[2] == "hold":
        sys.stdin.read()
    for number in range(0 if sys.argv[2] == "hold" else 10_000):
        # Each document twice: the second time every chunk of it is another, so that old and new ones could be mixed up.
        for turn in ("first", "second"):
            store.write(*(corpus.document(f"{number}-{part}.md", *(f"{turn} chunk {place} of {number}" for place in range(4))) for part in range(3)))
        print(number, flush=True)
"""


def writer(corpus: Corpus, what: str) -> subprocess.Popen[str]:
    """Another process that has begun to write."""
    settings = json.dumps(corpus.settings._asdict())
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, settings, what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


# --- being there


def test_reading_a_missing_store_reports_it_and_creates_nothing(corpus: Corpus) -> None:
    store = corpus.store
    assert not store.exists()
    assert store.size() == 0
    with pytest.raises(NotFound), store.reading():
        pass
    with pytest.raises(NotFound), store.writing("a test", existing=True):
        pass
    assert not store.reset()
    assert not store.exists()
    assert [check.ok for check in store.health()].count(False) == 1
    with store.writing("a test"):
        assert store.exists()


def test_a_store_reports_its_address_and_its_index_version(corpus: Corpus) -> None:
    store = corpus.store
    assert store.address in (corpus.settings.path, corpus.settings.url)
    assert store.engine.split()[1][0].isdigit()
    corpus.write("a.md", "one", tags=["t"])
    assert (store.file is None) == (not store.own_files())
    if store.file is not None:
        assert store.file.absolute() in store.own_files()
    with corpus.reading() as reading:
        assert not reading.is_immutable
        stats = reading.stats()
        assert reading.index_version() == store.index_version() == stats.index_version
    assert (stats.path, stats.sources, stats.documents, stats.chunks, stats.tags, stats.vectors) == (
        store.address,
        1,
        1,
        1,
        1,
        0,
    )


def test_a_write_is_visible_to_other_connections_at_once(corpus: Corpus) -> None:
    corpus.write("a.md", "one")
    other = corpus.another()
    with other.reading() as reading:
        assert reading is not None
        assert [record.path for record in reading.catalog.all_documents()] == ["a.md"]
    corpus.write("b.md", "two")
    with other.reading() as reading:
        assert reading is not None
        assert len(list(reading.catalog.all_documents())) == 2
    other.close()


def test_any_number_of_threads_read_while_one_writes(corpus: Corpus) -> None:
    corpus.write("a.md", "seed")
    stop, wrong = threading.Event(), list[str]()

    def read() -> None:
        while not stop.is_set():
            with corpus.reading() as reading:
                index = reading.lexical_index(ColumnWeights())
                options: Any = {"match": "all", "drop_stop_words": False, "filters": SearchFilters(), "limit": 1000}
                found = [match.chunk_id for match in index.search(parse("seed"), **options).matches]
                paths = [chunk.doc_path for chunk in reading.chunks().contexts(found).values()]
            if "a.md" not in paths or len(paths) != len(set(paths)) or len(set(found)) != len(found):
                wrong.append(str(paths))
        corpus.store.close()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(6):
        corpus.write(f"{number}.md", "seed")
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert corpus.count("seed") == 7


def test_a_reset_deletes_everything_and_the_store_can_be_used_again(corpus: Corpus) -> None:
    corpus.write("a.md", "one")
    assert corpus.store.reset()
    assert not corpus.store.exists()
    corpus.write("b.md", "two")
    assert corpus.texts() == [("b.md", "two")]


# --- one writer at a time


def test_the_error_for_a_second_writer_names_the_command_of_the_first(corpus: Corpus) -> None:
    with corpus.writing():
        impatient = corpus.another(lock_wait_s=0.1)
        with pytest.raises(Locked, match="a test") as caught, impatient.writing("second"):
            pass
        assert caught.value.hint
        impatient.close()
    with corpus.another().writing("second") as writing:
        assert writing.documents().sources() == []


def test_a_second_writer_waits_for_the_first_to_finish(corpus: Corpus) -> None:
    process = writer(corpus, "hold")
    assert process.stdin is not None
    timer = threading.Timer(0.5, process.stdin.close)
    timer.start()
    with corpus.another(lock_wait_s=60).writing("second") as writing:
        assert not writing.documents().has_chunks()
    timer.join()
    assert process.wait() == 0
    assert process.stdout is not None
    process.stdout.close()


def test_another_writer_can_write_after_an_error(corpus: Corpus) -> None:
    corpus.write("a.md", "one")
    with pytest.raises(RuntimeError), corpus.writing():
        raise RuntimeError("something else")
    corpus.write("b.md", "two")
    assert len(corpus.texts()) == 2


def test_a_killed_writer_leaves_whole_documents_and_loses_none_that_were_acknowledged(corpus: Corpus) -> None:
    """The next writer repairs everything, whatever the killed one was doing."""
    corpus.write("kept.md", "stays")
    process = writer(corpus, "write")
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(3)]
    killed(process)
    with corpus.another(lock_wait_s=60).writing("the next") as writing:
        writing.settle_analysis()
    assert corpus.is_healthy()
    by_document: dict[str, list[str]] = {}
    for path, text in corpus.texts():
        by_document.setdefault(path, []).append(text)
    for number in acknowledged:
        for part in range(3):
            assert by_document[f"{number}-{part}.md"] == [f"second chunk {place} of {number}" for place in range(4)]
    assert by_document.pop("kept.md") == ["stays"]
    for path, texts in by_document.items():
        turn, group = texts[0].split()[0], path.partition("-")[0]
        assert texts == [f"{turn} chunk {place} of {group}" for place in range(4)], path
    assert sorted(set(corpus.search("chunk"))) == sorted(by_document)
    assert corpus.count("chunk") == 4 * len(by_document), "nothing is found twice"
    with corpus.reading() as reading:
        assert reading.stats().chunks == 4 * len(by_document) + 1


# --- analysis


def test_an_index_with_another_korean_analysis_is_reported_and_updated(corpus: Corpus) -> None:
    pytest.importorskip("kiwipiepy")
    corpus.write("a.md", "한국어 문서를 검색한다", "english words")
    other = corpus.another(korean="morphemes")
    with other.reading() as reading:
        assert reading is not None
        assert reading.index_version() == corpus.store.index_version() != other.index_version()
        index = reading.lexical_index(ColumnWeights())  # asks in terms of what the index was built with
        assert index.count(parse("문서"), match="all", drop_stop_words=False, filters=SearchFilters()) == 1
    assert not all(check.ok for check in other.health())
    with other.writing("a test") as writing:
        assert writing.settle_analysis() == 2
        assert writing.settle_analysis() == 0
    with corpus.reading() as reading:
        assert reading.index_version() == other.index_version()
    assert all(check.ok for check in other.health())
    other.close()
    assert corpus.search("문서 검색") == ["a.md"]


def test_a_rebuilt_index_gives_the_same_hits_and_scores(corpus: Corpus) -> None:
    corpus.write_all(
        *(corpus.document(f"{number}.md", f"word{number} 문서 shared text", "more text") for number in range(5))
    )
    corpus.note("", "a note for all")
    corpus.write("gone.md", "ephemeral")
    corpus.remove("gone.md")
    queries = ("shared", "문서", "note text", '"shared text"', "word*")

    def found() -> list[tuple[list[float], list[ChunkContext]]]:
        answers = [corpus.matches(query) for query in queries]
        return [([round(match.bm25, 9) for match in answer.matches], corpus.read(answer)) for answer in answers]

    before = found()
    with corpus.writing() as writing:
        assert writing.rebuild_fts() == 10
        writing.optimize()
    assert found() == before
    with corpus.reading() as reading:
        assert reading.lexical_index(ColumnWeights()).near_words("ephemerel", 1) == []
    assert corpus.is_healthy()


# --- copies


def test_a_backup_is_a_usable_file_or_an_error_that_names_another_way(corpus: Corpus, tmp_path: Path) -> None:
    corpus.write("a.md", "the word")
    target = tmp_path / "copy.sqlite"
    try:
        size = corpus.store.backup(target, force=False)
    except StoreError as refused:
        assert corpus.store.file is None
        assert refused.hint
        assert not target.exists()
        return
    assert size == target.stat().st_size > 0
    with kebab.open(target) as kb:
        assert [hit.doc_path for hit in kb.search("word")] == ["a.md"]
