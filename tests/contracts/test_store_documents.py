"""What every store must do with documents: edits, renames, deletions, duplicates, two sources, and finding documents by
their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kebab.core.documents import Repository, Source, document_id
from kebab.core.errors import Ambiguous, NotFound, SourceError
from kebab.core.ports import FileState
from kebab.core.search import SearchFilters

if TYPE_CHECKING:
    from tests.contracts.stores import Corpus


def test_a_new_document_is_found_with_all_its_metadata(corpus: Corpus) -> None:
    assert (
        corpus.write("a/b.md", "first part", "second part", title="Guide", tags=["x", "y"], metadata={"author": "Kim"})
        == 2
    )
    with corpus.catalog() as catalog:
        record = catalog.find_document("a/b.md")
    assert (record.source, record.path, record.title, record.tags) == ("notes", "a/b.md", "Guide", ("x", "y"))
    assert (record.doc_id, record.chunk_count, record.metadata) == (
        document_id("notes", "a/b.md"),
        2,
        {"author": "Kim"},
    )
    assert (record.doc_type, record.format, record.lang, record.trust_level) == ("markdown", "md", "en", "primary")
    assert (record.date, record.encoding, record.line_count, record.content_hash) == ("2026-01-01", "utf-8", 4, "hash")
    assert record.context == ()
    assert corpus.texts() == [("a/b.md", "first part"), ("a/b.md", "second part")]


def test_writing_the_same_again_changes_no_chunk(corpus: Corpus) -> None:
    corpus.write("a.md", "one", "two")
    before = corpus.chunks()
    assert corpus.write("a.md", "one", "two") == 0
    assert corpus.chunks() == before


def test_an_edit_replaces_only_the_changed_chunks(corpus: Corpus) -> None:
    corpus.write("a.md", "one", "two", "three")
    before = corpus.ids()
    assert corpus.write("a.md", "one", "zwo", "three") == 1
    after = corpus.ids()
    assert set(after) == {"one", "zwo", "three"}
    assert (after["one"], after["three"]) == (before["one"], before["three"])
    assert (corpus.search("two"), corpus.search("zwo")) == ([], ["a.md"])
    assert corpus.is_healthy()


def test_a_chunk_that_only_moved_keeps_its_id_and_gets_its_new_place(corpus: Corpus) -> None:
    corpus.write("a.md", "short", "moves down")
    before = corpus.ids()["moves down"]
    corpus.write("a.md", "short, now\nover two lines", "moves down")
    moved = next(chunk for chunk in corpus.chunks() if chunk.text == "moves down")
    assert (moved.chunk_id, moved.start_offset) == (before, len("short, now\nover two lines") + 2)
    assert moved.citation.uri == "a.md#L4-L4"
    (found,) = corpus.read(corpus.matches("moves"))
    assert found.spans == moved.spans


def test_a_shorter_version_loses_its_last_chunks(corpus: Corpus) -> None:
    corpus.write("a.md", "one", "two", "three")
    corpus.write("a.md", "one")
    assert corpus.texts() == [("a.md", "one")]
    assert corpus.search("two OR three") == []
    with corpus.catalog() as catalog:
        assert catalog.find_document("a.md").chunk_count == 1


def test_equal_chunks_of_one_document_are_separate_chunks(corpus: Corpus) -> None:
    corpus.write("a.md", "same", "same", "same")
    assert corpus.texts() == [("a.md", "same")] * 3
    assert len({chunk.chunk_id for chunk in corpus.chunks()}) == 3
    assert corpus.count("same") == 3


def test_a_new_title_and_new_headings_are_searchable(corpus: Corpus) -> None:
    corpus.write("a.md", "one", "two", title="Alter Titel", headings=("Old",))
    corpus.write("a.md", "one", "two", title="Fresh name", headings=("New", "Inner"))
    assert corpus.count("alter OR old") == 0
    assert corpus.count("fresh") == corpus.count("inner") == 2
    assert {chunk.heading_path for chunk in corpus.chunks()} == {("New", "Inner")}
    assert corpus.is_healthy()


@pytest.mark.parametrize("headings", [("A > B", "C"), ("A", "B > C"), (">",), ("", "x"), ()])
def test_stored_headings_are_read_unchanged_even_if_they_contain_the_separator(
    shared_corpus: Corpus, headings: tuple[str, ...]
) -> None:
    shared_corpus.write("headings.md", "one", headings=headings)
    with shared_corpus.catalog() as catalog:
        assert catalog.chunks_of(document_id("notes", "headings.md"))[0].heading_path == headings


def test_tags_aliases_and_the_name_of_the_file_are_searchable_once_per_document(corpus: Corpus) -> None:
    corpus.write("a/minutes.md", "one", "two", title="T", tags=["kubernetes"], aliases=["Cluster handbook"])
    for query in ("kubernetes", "handbook", "minutes"):
        assert [chunk.text for chunk in corpus.read(corpus.matches(query))] == ["one"], query


def test_tags_are_replaced_and_those_that_differ_only_in_case_are_one(corpus: Corpus) -> None:
    corpus.write("a.md", "one", tags=["x", "y"])
    corpus.write("a.md", "one", tags=["y", "z", "Ops", "ops", "OPS"])
    with corpus.catalog() as catalog:
        assert [tag.tag.casefold() for tag in catalog.tags()] == ["ops", "y", "z"]
    assert corpus.search("x") == []


def test_a_removed_document_is_found_nowhere(corpus: Corpus) -> None:
    corpus.write_all(corpus.document("a.md", "one", tags=["x"]), corpus.document("b.md", "one"))
    assert corpus.remove("a.md", "never-there.md") == 1
    assert corpus.texts() == [("b.md", "one")]
    assert corpus.count("one") == 1
    with corpus.reading() as reading:
        assert reading.catalog.tags() == []
        assert reading.stats()[5:7] == (1, 1)
    assert corpus.remove() == 0
    assert corpus.is_healthy()


def test_a_document_added_again_is_the_same_document(corpus: Corpus) -> None:
    corpus.write("a.md", "one")
    before = corpus.ids()
    corpus.remove("a.md")
    corpus.write("a.md", "one")
    assert corpus.ids() == before
    assert corpus.search("one") == ["a.md"]


def test_the_same_text_in_two_files_is_two_documents(corpus: Corpus) -> None:
    corpus.write_all(corpus.document("a.md", "same text"), corpus.document("copy/a.md", "same text"))
    assert sorted(corpus.search("same")) == ["a.md", "copy/a.md"]
    corpus.remove("a.md")
    assert corpus.search("same") == ["copy/a.md"]


def test_the_same_path_in_two_sources_is_two_documents(corpus: Corpus) -> None:
    corpus.write_all(
        corpus.document("a.md", "from one", source="one"), corpus.document("a.md", "from two", source="two")
    )
    corpus.write("a.md", "from one, edited", source="one")
    assert sorted(text for _, text in corpus.texts()) == ["from one, edited", "from two"]
    corpus.remove("a.md", source="one")
    assert [text for _, text in corpus.texts()] == ["from two"]
    with corpus.writing() as writing:
        documents = writing.documents()
        assert (list(documents.known_files("two")), dict(documents.known_files("one"))) == (["a.md"], {})


def test_file_states_are_read_back_as_written(corpus: Corpus) -> None:
    state, later = FileState(123, 456, "abc", "def"), FileState(123, 789, "abc", "def")
    corpus.write_all(
        corpus.document("a.md", "one", state=state),
        corpus.document("young.md", "one", state=FileState(1, None, "h", "f")),
    )
    with corpus.writing() as writing:
        documents = writing.documents()
        assert documents.known_files("notes") == {"a.md": state, "young.md": FileState(1, None, "h", "f")}
        documents.touch("notes", "a.md", later, "2024-05-31")
        assert documents.date_of("notes", "a.md") == "2024-05-31"
        assert documents.known_files("notes")["a.md"] == later
    with corpus.reading() as reading:
        (file,) = reading.files([document_id("notes", "a.md")])
        assert (file.root, file.kind, file.path, file.size, file.mtime_ns, file.place) == (
            "/notes",
            "folder",
            "a.md",
            123,
            789,
            "/notes/a.md",
        )
        assert {file.path for file in reading.files()} == {"a.md", "young.md"}
        assert reading.files([]) == []
    assert corpus.search("one", after="2024-01-01", before="2024-06-01") == ["a.md"], "a filter sees the new date too"


def test_sources_are_added_once_with_their_metadata(corpus: Corpus) -> None:
    with corpus.writing() as writing:
        documents = writing.documents()
        assert not documents.has_chunks()
        documents.add_source(Source("notes", "folder", "/notes"))
        documents.add_source(Source("lone.md", "file", "/lone.md", "secondary"))
        with pytest.raises(SourceError, match="already a source named notes"):
            documents.add_source(Source("notes", "folder", "/elsewhere"))
        assert list(documents.sources()) == [
            Source("lone.md", "file", "/lone.md", "secondary"),
            Source("notes", "folder", "/notes"),
        ]
        documents.write(corpus.document("a.md", "one", "two"))
        documents.source_ingested("notes", Repository("https://example.org/r", "trunk", "c0ffee"))
        assert documents.has_chunks()
    with corpus.catalog() as catalog:
        lone, notes = catalog.sources()
    assert (lone.name, lone.documents, lone.ingested_at, lone.repository) == ("lone.md", 0, None, None)
    assert (notes.documents, notes.chunks, notes.repository) == (
        1,
        2,
        Repository("https://example.org/r", "trunk", "c0ffee"),
    )
    assert notes.ingested_at is not None


def test_removing_a_source_removes_its_documents(corpus: Corpus) -> None:
    corpus.write_all(corpus.document("a.md", "one", source="goes"), corpus.document("b.md", "one", source="stays"))
    with corpus.writing() as writing:
        writing.documents().remove_source("goes")
    assert corpus.texts() == [("b.md", "one")]
    assert corpus.search("one") == ["b.md"]
    with corpus.catalog() as catalog:
        assert [source.name for source in catalog.sources()] == ["stays"]
    assert corpus.is_healthy()


def test_documents_written_in_one_group_are_the_same_as_written_alone(corpus: Corpus) -> None:
    corpus.write("kept.md", "stays", "goes")
    documents = [
        corpus.document("kept.md", "stays", "comes"),
        corpus.document("new.md", "stays", "another", tags=["t"]),
        corpus.document("third.md", "more"),
    ]
    assert corpus.write_all(*documents) == 4
    assert corpus.texts() == [
        ("kept.md", "stays"), ("kept.md", "comes"), ("new.md", "stays"), ("new.md", "another"), ("third.md", "more"),
    ]  # fmt: skip
    assert corpus.search("goes") == []
    assert sorted(corpus.search("stays")) == ["kept.md", "new.md"]
    assert corpus.search("another", tags_any=("t",)) == ["new.md"]
    assert corpus.write_all(*documents) == 0
    assert corpus.is_healthy()


@pytest.mark.parametrize("text", ["plain", "첫째 줄\r\n둘째 🙂", "word " * 20_000], ids=["plain", "korean", "long"])
def test_the_stored_text_of_a_document_is_read_back_unchanged(shared_corpus: Corpus, text: str) -> None:
    shared_corpus.write("body.md", text, "end")
    with shared_corpus.catalog() as catalog:
        assert catalog.body(document_id("notes", "body.md")) == f"{text}\n\nend\n\n"
        for chunk in catalog.chunks_of(document_id("notes", "body.md")):
            assert chunk.text in (text, "end")


def test_a_written_document_is_searchable_at_once(corpus: Corpus) -> None:
    corpus.write("git.md", "Run the installer and follow it.", title="Install Git")
    assert corpus.search("install git") == ["git.md"]


# --- finding again


def test_a_document_is_found_by_id_beginning_of_an_id_path_source_and_link(corpus: Corpus) -> None:
    corpus.write_all(
        corpus.document("deep/Page one.md", "one"),
        corpus.document("same.md", "two", source="a"),
        corpus.document("same.md", "three", source="b"),
    )
    page = document_id("notes", "deep/Page one.md")
    with corpus.catalog() as catalog:
        for key in (
            page,
            page[:12],
            "deep/Page one.md",
            "notes:deep/Page one.md",
            "[[Page one]]",
            "page one",
            "[[deep/Page one#Part|shown so]]",
        ):
            assert catalog.find_document(key).doc_id == page, key
        assert catalog.find_document("b:same.md").source == "b"
        with pytest.raises(Ambiguous, match=r"same.md fits 2 documents: (a:same.md, b:same.md|b:same.md, a:same.md)"):
            catalog.find_document("same.md")
        for nothing in ("nowhere.md", "deadbeef", "", "x:same.md", "' OR 1"):
            with pytest.raises(NotFound):
                catalog.find_document(nothing)
        with pytest.raises(NotFound):
            catalog.body("nothing")


def test_a_chunk_is_found_by_its_id_or_the_beginning_of_it(corpus: Corpus) -> None:
    corpus.write("a.md", "one", "two", title="T", headings=("H",), kind="code")
    first, second = corpus.chunks()
    with corpus.catalog() as catalog:
        assert catalog.find_chunk(first.chunk_id) == catalog.find_chunk(first.chunk_id[:20]) == first
        assert (first.ordinal, second.ordinal, first.kind, first.section_label, first.title) == (0, 1, "code", "H", "T")
        assert first.doc_id == document_id("notes", "a.md")
        for nothing in ("deadbeef", "one", ""):
            with pytest.raises(NotFound):
                catalog.find_chunk(nothing)
        assert catalog.chunks_of("nothing") == []
        assert not catalog.is_paged(first.doc_id)


def test_documents_are_listed_by_source_and_path_a_page_at_a_time(corpus: Corpus) -> None:
    corpus.write_all(*(corpus.document(f"{name}.md", "one", source=source, lang=lang) for source, name, lang in (
        ("z", "a", "en"), ("b", "c", "ko"), ("b", "B", "en"), ("b", "a", "en"))))  # fmt: skip
    with corpus.catalog() as catalog:
        listed = [(record.source, record.path) for record in catalog.documents(SearchFilters())]
        assert listed == [("b", "B.md"), ("b", "a.md"), ("b", "c.md"), ("z", "a.md")]
        pages = [catalog.documents(SearchFilters(), limit=2, offset=offset) for offset in (0, 2, 4)]
        assert [(record.source, record.path) for page in pages for record in page] == listed
        assert catalog.count_documents(SearchFilters()) == 4
        assert [record.path for record in catalog.documents(SearchFilters(lang="ko"))] == ["c.md"]
        assert sorted(catalog.languages()) == ["en", "ko"]
        assert catalog.formats() == ["md"]
        assert {record.doc_id for record in catalog.all_documents()} == {
            record.doc_id for record in catalog.documents(SearchFilters())
        }
        beside = catalog.paths_beside(document_id("b", "a.md"), ["a.md", "c.md", "nowhere.md"])
        assert beside == {"a.md", "c.md"}


def test_a_tag_is_listed_in_the_spelling_of_most_documents(corpus: Corpus) -> None:
    """Regression: stores chose different spellings, which migration could not copy."""
    spellings = {
        "a": ("ops", "Red"),
        "b": ("Ops", "red"),
        "c": ("ops",),
        "d": ("RED", "Ops", "Old/New"),
        "e": ("ops", "old/new"),
    }
    corpus.write_all(*(corpus.document(f"{name}.md", "x", tags=[*tags]) for name, tags in spellings.items()))
    with corpus.catalog() as catalog:
        assert catalog.tags() == [("ops", 5), ("RED", 3), ("Old/New", 2)]


def test_tags_are_counted_the_most_frequent_first(corpus: Corpus) -> None:
    corpus.write_all(corpus.document("a.md", "x", tags=["b", "a"]), corpus.document("b.md", "x", tags=["b", "c/d"]))
    with corpus.catalog() as catalog:
        assert catalog.tags() == [("b", 2), ("a", 1), ("c/d", 1)]
