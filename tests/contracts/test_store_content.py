"""The content of a store is read back exactly as written, so that another store can be made from it."""

from __future__ import annotations

import numpy as np
from tests.conftest import Toy
from tests.contracts.stores import Corpus
from tests.documents import make_document

from kebab.core.documents import Source
from kebab.core.libraries import VectorSpace
from kebab.core.ports import FileState, IndexedDocument


def written(corpus: Corpus) -> IndexedDocument:
    document = make_document(
        "a/b.md",
        "One text.",
        "Another text.",
        title="The title",
        tags=("zebra", "Alpha", "alpha", "mid/dle"),
        aliases=("Other name", "Third name"),
        headings=("One", "A > B"),
        metadata={"key": ["value", 1]},
        state=FileState(7, None, "bytes", "print"),
        date="2024-05-06",
        trust="secondary",
    )._replace(indexed_at="2020-01-02T03:04:05Z")
    corpus.write_all(document)
    return document


def test_a_document_comes_back_as_it_was_written(corpus: Corpus) -> None:
    document = written(corpus)
    with corpus.reading() as reading:
        content = reading.content()
        [stored] = content.stored("notes").values()
        [back] = content.documents([stored.key])
        record = reading.catalog.find_document("notes:a/b.md")
    assert stored.state == document.state
    assert stored.doc_id == back.doc_id == record.doc_id
    assert back == document._replace(source="", doc_id=record.doc_id, parsed=back.parsed)
    assert record.indexed_at == "2020-01-02T03:04:05Z"
    assert (back.parsed.text, back.parsed.title, back.parsed.metadata) == (
        document.parsed.text,
        "The title",
        {"key": ["value", 1]},
    )
    assert (back.parsed.aliases, back.parsed.tags) == (document.parsed.aliases, document.parsed.tags), "in their order"


def test_documents_come_in_the_order_in_which_they_were_asked_for(corpus: Corpus) -> None:
    corpus.write_all(*(make_document(f"{name}.md", f"Text of {name}.") for name in "abcde"))
    with corpus.reading() as reading:
        content = reading.content()
        stored = content.stored("notes")
        assert list(stored) == [f"{name}.md" for name in "abcde"]
        wanted = [stored[f"{name}.md"].key for name in "dab"]
        assert [document.path for document in content.documents(wanted)] == ["d.md", "a.md", "b.md"]


def test_the_time_of_the_last_ingest_of_a_source_can_be_set(corpus: Corpus) -> None:
    with corpus.writing() as writing:
        documents = writing.documents()
        documents.add_source(Source("notes", "folder", "/notes"))
        documents.source_ingested("notes", None, "2020-01-02T03:04:05Z")
    with corpus.catalog() as catalog:
        [source] = catalog.sources()
        assert source.ingested_at == "2020-01-02T03:04:05Z"


def test_a_vector_is_read_back_bit_by_bit_and_as_primary_or_secondary(corpus: Corpus, toy: type[Toy]) -> None:
    """Also very small numbers, for which float16 has few digits."""
    corpus.write("a.md", "one", "two", "three")
    model = toy.embedder(dimension=64)
    vectors = np.random.default_rng(7).standard_normal((2, 64)) * np.logspace(-4, 0, 64)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    corpus.give(model, {"one": vectors[0]})
    corpus.give(model, {"two": vectors[1]}, primary=False)
    ids = corpus.ids()
    with corpus.reading() as reading:
        content = reading.content()
        [space] = content.spaces()
        assert space == VectorSpace("words", "1", 64)
        assert space.fingerprint == model.fingerprint
        found = content.vectors_of(space, [*ids.values(), "no such chunk"])
        counts = content.counts()
    assert {
        ids[text]: (vectors[number].astype(np.float16).tobytes(), primary)
        for text, number, primary in (("one", 0, True), ("two", 1, False))
    } == {chunk_id: (vector.vector, vector.primary) for chunk_id, vector in found.items()}
    assert counts.spaces[0] == ("words@1:64", 2, 1)
    assert (counts.documents, counts.chunks, counts.library_documents, counts.snippets) == (1, 3, 0, 0)


def test_adding_a_vector_for_a_text_that_has_one_changes_nothing(corpus: Corpus, toy: type[Toy]) -> None:
    corpus.write("a.md", "one")
    model = toy.embedder()
    vector = model.embed(["one"], "passage")[0]
    corpus.give(model, {"one": vector})
    corpus.write("b.md", "one")
    corpus.give(model, {"one": vector})
    with corpus.reading() as reading:
        assert reading.content().counts().spaces == ((model.fingerprint, 2, 2),)
    assert corpus.is_healthy()


def test_spaces_are_created_in_the_order_of_models_and_completeness_is_copied(corpus: Corpus) -> None:
    spaces = [VectorSpace("second", "1", 8), VectorSpace("first", "2", 16)]
    with corpus.writing() as writing:
        writing.vectors().prepare(spaces)
        writing.vectors().prepare(spaces)
        writing.vectors().remember_complete("second@1,first@2")
    with corpus.reading() as reading:
        assert reading.content().spaces() == spaces
        assert reading.content().complete_vectors() == "second@1,first@2"
    with corpus.writing() as writing:
        writing.vectors().remember_complete(None)
    with corpus.reading() as reading:
        assert reading.content().complete_vectors() is None


def test_the_origin_of_a_migration_is_stored_until_it_is_complete(corpus: Corpus) -> None:
    with corpus.writing() as writing:
        writing.remember_migration("/elsewhere")
    with corpus.reading() as reading:
        assert reading.migrating_from() == "/elsewhere"
        assert reading.korean_analysis() == "bigrams"
    with corpus.writing() as writing:
        writing.remember_migration(None)
    with corpus.reading() as reading:
        assert reading.migrating_from() is None


def test_copied_content_is_equal_to_the_original(corpus: Corpus, toy: type[Toy]) -> None:
    written(corpus)
    corpus.embed(toy.embedder())
    corpus.note("a", "사과 orchard")
    corpus.write("c.md", "A third text.")
    corpus.remove("a/b.md")
    checks = corpus.store.integrity()
    assert checks
    assert all(check.ok for check in checks), checks
