"""What every store must do with vectors: which chunks need one, embedding a text once, finding close ones, and
counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.contracts.stores import hash_of, text_of

from kebab.core.citations import LineSpan
from kebab.core.errors import ModelMismatch
from kebab.core.ports import ChunkContext, ChunkText, NewVector, VectorCoverage
from kebab.core.text import content_hash

if TYPE_CHECKING:
    from tests.conftest import Toy, WordEmbedder
    from tests.contracts.stores import Corpus

EYE = np.eye(16, dtype=np.float32)


@pytest.fixture
def words(toy: type[Toy]) -> WordEmbedder:
    return toy.embedder("words", dimension=16)


def random_rows(seed: int, count: int, dimension: int = 16) -> Any:
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def embedded(embedder: WordEmbedder, *texts: str) -> dict[str, Any]:
    return dict(zip(texts, embedder.embed(texts, "passage"), strict=True))


# --- what is to be done


def test_pending_chunks_are_returned_in_windows_and_each_once(corpus: Corpus, words: WordEmbedder) -> None:
    texts = {f"text {number}" for number in range(7)}
    corpus.write("a.md", *texts)
    with corpus.writing() as writing:
        writer = writing.vectors()
        assert writer.count_pending([words]) == 7
        seen, after = [], None
        while window := writer.pending([words], after=after, limit=3):
            assert len(window) <= 3
            after = window[-1].key
            seen += [chunk.text for chunk in window]
    assert sorted(seen) == sorted(texts)


def test_a_pending_chunk_has_the_title_headings_and_text_to_embed(corpus: Corpus, words: WordEmbedder) -> None:
    corpus.write("a/b.md", "the text", title="The title", headings=("One", "A > B"))
    with corpus.writing() as writing:
        (chunk,) = writing.vectors().pending([words], after=None, limit=10)
    assert chunk[1:-1] == ("a/b.md", "The title", ("One", "A > B"), "the text")
    assert chunk.chunk_id == corpus.ids()["the text"]
    assert text_of(chunk) == "The title > One > A > B\n\nthe text"


def test_chunks_by_key_returns_only_chunks_that_still_exist(corpus: Corpus, words: WordEmbedder) -> None:
    corpus.write("a.md", "stays")
    corpus.write("b.md", "goes")
    with corpus.writing() as writing:
        before = {chunk.text: chunk for chunk in writing.vectors().pending([words], after=None, limit=10)}
        assert set(writing.vectors().chunks([chunk.key for chunk in before.values()])) == set(before.values())
    corpus.remove("b.md")
    with corpus.writing() as writing:
        left = writing.vectors().chunks([chunk.key for chunk in before.values()])
    assert left == [before["stays"]]


def test_a_chunk_is_pending_until_it_has_a_vector_in_its_primary_space(corpus: Corpus, toy: type[Toy]) -> None:
    """A vector of another model, or of a secondary space, does not count."""
    first, second, former = (toy.embedder(name, dimension=16) for name in ("first", "second", "former"))
    corpus.write("a.md", "one", "two", "three")
    corpus.give(first, {"one": EYE[0]})
    corpus.give(second, {"two": EYE[0]}, primary=False)
    corpus.give(former, {"three": EYE[0]})
    with corpus.writing() as writing:
        writer = writing.vectors()
        assert {chunk.text for chunk in writer.pending([first, second], after=None, limit=10)} == {"two", "three"}
        assert writer.count_pending([first, second]) == 2
        assert {chunk.text for chunk in writer.pending([second], primary=False, after=None, limit=10)} == {
            "one",
            "three",
        }
        assert writer.count_pending([second], primary=False) == 2
        assert [writer.is_primary(embedder) for embedder in (first, second, former)] == [True, False, True]


# --- a text is embedded once


def test_a_known_text_is_linked_and_not_embedded_again(corpus: Corpus, words: WordEmbedder) -> None:
    corpus.write("a.md", "same text", "own text", title="t")
    assert corpus.embed(words) == (2, 0)
    corpus.write("b.md", "same text", "new text", title="t")
    assert corpus.embed(words) == (1, 1)
    assert corpus.closest(words, "t same text", 2) == ["same text", "same text"]
    corpus.remove("a.md")
    corpus.write("renamed.md", "same text", "own text", title="t")
    assert corpus.embed(words) == (0, 2), "a renamed document keeps its vectors"


def test_a_vector_for_a_chunk_that_was_deleted_meanwhile_is_ignored(corpus: Corpus, words: WordEmbedder) -> None:
    corpus.write("a.md", "text")
    with corpus.writing() as writing:
        writer = writing.vectors()
        (chunk,) = writer.pending([words], after=None, limit=10)
        writing.documents().remove("notes", ["a.md"])
        writer.add(words, [NewVector(hash_of("text"), EYE[0], [chunk.key])], primary=True)
        writer.link(words, [(chunk.key, hash_of("text"))], primary=True)
    assert corpus.near(words, EYE[0]) == []
    assert corpus.chunks() == []
    assert corpus.is_healthy()


def test_an_edit_removes_the_vector_of_the_edited_chunk_only(corpus: Corpus, words: WordEmbedder) -> None:
    corpus.write("a.md", "first text", "second text", "third text")
    corpus.embed(words)
    corpus.write("a.md", "first text", "other words", "third text")
    assert corpus.pending(words) == ["other words"]
    assert "second text" not in corpus.closest(words, "second text")
    assert corpus.embed(words) == (1, 0)
    assert corpus.closest(words, "other words", 1) == ["other words"]


def test_a_new_title_or_heading_needs_a_new_vector_and_a_new_tag_does_not(corpus: Corpus, words: WordEmbedder) -> None:
    corpus.write("a.md", "text", title="Before", headings=("One",))
    corpus.embed(words)
    corpus.write("a.md", "text", title="Before", headings=("One",), tags=["new"])
    assert corpus.embed(words)[0] == 0
    corpus.write("a.md", "text", title="After", headings=("One",))
    assert corpus.embed(words) == (1, 0)
    corpus.write("a.md", "text", title="After", headings=("Two",))
    assert corpus.embed(words, settle=False) == (1, 0)


def test_vectors_are_kept_for_texts_that_are_added_later(corpus: Corpus, words: WordEmbedder) -> None:
    good, no_vector = EYE[0].astype(np.float16).tobytes(), np.zeros(16, np.float16).tobytes()
    text = "t\n\nlater"
    with corpus.writing() as writing:
        assert writing.vectors().keep(words, [(hash_of(text), good), (hash_of("bad"), no_vector)]) == 1
        assert writing.vectors().keep(words, [(hash_of(text), good)]) == 0
    corpus.write("a.md", "later", title="t")
    assert corpus.embed(words) == (0, 1)
    assert corpus.near(words, EYE[0])[0].similarity == pytest.approx(1, abs=1e-3)


def test_vectors_of_a_former_model_are_removed_by_embedding_and_by_clear(
    corpus: Corpus, toy: type[Toy], words: WordEmbedder
) -> None:
    former = toy.embedder("former", dimension=24)
    corpus.write("a.md", "one", "two")
    corpus.embed(former)
    assert corpus.embed(words) == (2, 0)
    with corpus.reading() as reading:
        assert [reading.vectors().holds(embedder) for embedder in (former, words)] == [False, True]
        assert reading.stats().embedding_models == ("words@1:16",)
    with corpus.writing() as writing:
        writing.vectors().clear([former])
        assert writing.vectors().count_pending([words]) == 0
        writing.vectors().clear([words])
        assert writing.vectors().count_pending([words]) == 2
    assert corpus.near(words, EYE[0]) == []
    assert corpus.embed(words) == (2, 0)


# --- what is close


def test_vector_search_returns_the_closest_chunks_first_with_their_cosines(corpus: Corpus, words: WordEmbedder) -> None:
    texts = [f"text {number}" for number in range(40)]
    corpus.write("a.md", *texts)
    rows, query = random_rows(1, 40), random_rows(2, 1)[0]
    corpus.give(words, dict(zip(texts, rows, strict=True)))
    expected = sorted(
        (
            (-float(row @ query), corpus_id)
            for corpus_id, row in zip((corpus.ids()[text] for text in texts), rows, strict=True)
        )
    )
    found = corpus.near(words, query, 40)
    assert [match.chunk_id for match in found] == [chunk for _, chunk in expected]
    assert [match.similarity for match in found] == pytest.approx([-cosine for cosine, _ in expected], abs=2e-3)
    assert [match.chunk_id for match in corpus.near(words, query, 3)] == [chunk for _, chunk in expected[:3]]
    corpus.remove("a.md")
    assert corpus.near(words, query) == []


def test_equal_similarities_are_ordered_by_chunk_id(corpus: Corpus, words: WordEmbedder) -> None:
    """Otherwise the fusion of ranks would differ from run to run."""
    texts = [f"text {number}" for number in range(30)]
    corpus.write("a.md", *texts)
    corpus.give(words, {text: EYE[int(number % 3 == 1)] for number, text in enumerate(texts)})
    ids = corpus.ids()
    nearest = sorted(ids[text] for number, text in enumerate(texts) if number % 3 == 1)
    for limit in (1, 4, 10):
        assert [match.chunk_id for match in corpus.near(words, EYE[1], limit)] == nearest[:limit]
    assert [match.chunk_id for match in corpus.near(words, EYE[1], 30)][:10] == nearest


def test_search_may_be_restricted_to_primary_or_to_secondary_vectors(corpus: Corpus, words: WordEmbedder) -> None:
    """English text under a Korean title is found by Korean words too, so its primary space is that of Korean text."""
    corpus.write_all(
        corpus.document("a.md", "primary", "secondary"), corpus.document("b.md", "english text", title="한국어")
    )
    corpus.give(words, {"primary": EYE[0]})
    corpus.give(words, {"secondary": EYE[0], "english text": EYE[0]}, primary=False)
    ids = corpus.ids()

    def found(**options: Any) -> set[str]:
        return {match.chunk_id for match in corpus.near(words, EYE[0], **options)}

    assert found() == set(ids.values())
    assert found(primary=True) == {ids["primary"], ids["english text"]}
    assert found(primary=False) == {ids["secondary"]}
    assert {match.chunk_id: match.primary for match in corpus.near(words, EYE[0])} == {
        ids["primary"]: True, ids["secondary"]: False, ids["english text"]: True,
    }  # fmt: skip


def test_a_query_of_one_space_finds_no_vector_of_another(corpus: Corpus, toy: type[Toy]) -> None:
    """Each space has its own vectors, dimension and version."""
    one, other, newer = (
        toy.embedder("one", dimension=16),
        toy.embedder("other", dimension=24),
        toy.embedder("one", version="2", dimension=16),
    )
    texts = [f"text {number}" for number in range(12)]
    corpus.write("a.md", *texts)
    for seed, embedder, some in ((1, one, texts), (2, other, texts[4:]), (3, newer, texts[:6])):
        corpus.give(embedder, dict(zip(some, random_rows(seed, len(some), embedder.dimension), strict=True)))
        assert len(corpus.near(embedder, random_rows(seed, 1, embedder.dimension)[0], 100)) == len(some)
    with corpus.reading() as reading:
        assert [reading.vectors().holds(embedder) for embedder in (one, newer, toy.embedder("two"))] == [
            True,
            True,
            False,
        ]
    assert corpus.near(toy.embedder("two"), random_rows(1, 1, 32)[0]) == []
    with pytest.raises(ModelMismatch, match=r"24 dimensions now, and those stored have 16") as caught:
        corpus.near(toy.embedder("one", dimension=24), random_rows(1, 1, 24)[0])
    assert "kb index --rebuild-vectors" in (caught.value.hint or "")


def test_the_middle_of_several_chunks_is_the_normalised_mean_of_their_vectors(corpus: Corpus, toy: type[Toy]) -> None:
    """The mean is taken in the space that is primary for most of the chunks."""
    latin, everything, new = (
        toy.embedder("latin", dimension=4),
        toy.embedder("everything", dimension=6),
        toy.embedder("new", dimension=4),
    )
    corpus.write("a.md", "one", "two", "셋", "none", "opposite")
    corpus.give(latin, {"one": EYE[0][:4], "two": EYE[1][:4], "opposite": -EYE[0][:4]})
    corpus.give(everything, {"one": EYE[1][:6]}, primary=False)
    corpus.give(everything, {"셋": EYE[2][:6]})
    ids = corpus.ids()

    def middle(*texts: str) -> tuple[str, list[float]] | None:
        with corpus.reading() as reading:
            found = reading.vectors().middle_of([ids[text] for text in texts], [latin, everything])
        return None if found is None else (found.embedder.name, [round(float(value), 3) for value in found.vector])

    assert middle("one", "two", "셋", "none") == ("latin", [0.707, 0.707, 0, 0])
    assert middle("one") == ("latin", [1, 0, 0, 0])
    assert middle("셋") == ("everything", [0, 0, 1, 0, 0, 0])
    assert middle("one", "opposite") == ("latin", [0, 0, 0, 0])
    assert middle("none") is middle() is None
    with corpus.reading() as reading:
        assert reading.vectors().middle_of([ids["one"]], [new]) is None


# --- what part of the corpus has some


def coverage(corpus: Corpus, models: Any) -> VectorCoverage:
    with corpus.reading() as reading:
        return reading.vector_coverage(models)


def test_chunks_with_and_without_a_vector_are_counted_until_all_have_one(
    corpus: Corpus, toy: type[Toy], words: WordEmbedder
) -> None:
    models = toy.models(words)
    corpus.write("a.md", "one", "two")
    assert coverage(corpus, models) == VectorCoverage(2, 0, "vec:", ())
    corpus.give(words, embedded(words, "one"))
    assert coverage(corpus, models) == VectorCoverage(2, 1, "vec:words@1:16", ())
    corpus.embed(words)
    covered = coverage(corpus, models)
    assert (covered, covered.any, covered.missing) == (VectorCoverage(None, None, "vec:words@1:16", ()), True, 0)
    corpus.write("b.md", "three")
    assert coverage(corpus, models).missing == 1
    corpus.remove("b.md")
    assert coverage(corpus, models).missing == 0


def test_a_run_that_makes_vectors_says_how_long_it_still_takes(
    corpus: Corpus, toy: type[Toy], words: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = toy.models(words)
    corpus.write("a.md", "one", "two")
    corpus.give(words, embedded(words, "one"))
    assert coverage(corpus, models).seconds_left is None
    with corpus.writing() as writing:
        writing.vectors().expect_end(90)
    assert coverage(corpus, models).seconds_left == 90
    with monkeypatch.context() as patch:
        patch.setattr("kebab.store.index_versions._RUNNING_S", -1)
        assert coverage(corpus, models).seconds_left is None, "it was interrupted"
    with corpus.writing() as writing:
        writing.vectors().expect_end(0)
    assert coverage(corpus, models).seconds_left is None


def test_vectors_of_other_models_and_versions_do_not_count_and_are_named(
    corpus: Corpus, toy: type[Toy], words: WordEmbedder
) -> None:
    """Vectors of a model that is no longer used are ignored in searches."""
    corpus.write("a.md", "one", "two")
    former, older = toy.embedder("former", dimension=24), toy.embedder("words", version="0", dimension=16)
    for embedder in (former, older):
        corpus.give(embedder, embedded(embedder, "one", "two"))
    covered = coverage(corpus, toy.models(words))
    assert (covered.any, covered.missing, covered.index_version) == (False, 2, "vec:")
    assert set(covered.other_models) == {"former@1:24", "words@0:16"}


def test_the_index_version_names_all_spaces_and_a_chunk_in_two_is_counted_once(corpus: Corpus, toy: type[Toy]) -> None:
    two = toy.two_scripts()
    corpus.write("a.md", "one", "two", "둘")
    corpus.give(two.latin, embedded(two.latin, "one"))
    assert coverage(corpus, two) == VectorCoverage(3, 1, "vec:latin@1:32", ())
    corpus.give(two.everything, embedded(two.everything, "one"), primary=False)
    corpus.give(two.everything, embedded(two.everything, "둘"))
    assert coverage(corpus, two) == VectorCoverage(3, 2, "vec:latin@1:32,everything@1:48", ())


# --- chunks by their ids


def test_a_chunk_is_read_with_the_fields_of_its_document_and_its_model(corpus: Corpus, toy: type[Toy]) -> None:
    corpus.write(
        "a/b.md",
        "the text",
        title="T",
        headings=("One", "A > B"),
        tags=["y", "x"],
        lang="ko",
        trust="secondary",
        date="2026-02-03",
    )
    embedder = toy.embedder("model", version="7")
    corpus.give(embedder, embedded(embedder, "the text"))
    (chunk,) = corpus.ids().values()
    with corpus.reading() as reading:
        record = reading.catalog.find_document("a/b.md")
        assert reading.chunks().contexts([chunk]) == {
            chunk: ChunkContext(
                chunk_id=chunk,
                doc_id=record.doc_id,
                doc_path="a/b.md",
                title="T",
                heading_path=("One", "A > B"),
                section_label="A > B",
                text="the text",
                spans=(LineSpan(1, 1),),
                content_hash=content_hash("the text"),
                chunker_version="test-1",
                doc_type="markdown",
                lang="ko",
                tags=("x", "y"),
                trust_level="secondary",
                source="notes",
                indexed_at=record.indexed_at,
                date="2026-02-03",
                ordinal=0,
                kind="text",
                start_offset=0,
                end_offset=8,
                embedding_model="model",
            )
        }


def test_the_model_named_is_that_of_the_primary_space_of_a_chunk(corpus: Corpus, toy: type[Toy]) -> None:
    corpus.write("a.md", "one", "two", "three")
    early, late = toy.embedder("early"), toy.embedder("late")
    for embedder, primary, text in (
        (early, True, "one"),
        (late, False, "one"),
        (early, False, "two"),
        (late, True, "two"),
    ):
        corpus.give(embedder, embedded(embedder, text), primary=primary)
    ids = corpus.ids()
    with corpus.reading() as reading:
        found = reading.chunks().contexts([*ids.values(), "nonsense", "' OR 1"])
        assert {context.text: context.embedding_model for context in found.values()} == {
            "one": "early",
            "two": "late",
            "three": None,
        }
        assert reading.chunks().contexts([]) == {}
        texts = reading.chunks().texts([*ids.values(), "nonsense", "' OR 1"])
        assert texts == {chunk: ChunkText(context.doc_id, context.text) for chunk, context in found.items()}
        assert reading.chunks().texts([]) == {}


def test_neighbours_of_a_chunk_are_chunks_of_its_document_in_order(corpus: Corpus) -> None:
    texts = [f"part {number}" for number in range(6)]
    corpus.write_all(corpus.document("a.md", *texts), corpus.document("b.md", "lone"))
    ids = corpus.ids()
    with corpus.reading() as reading:
        found = reading.chunks().neighbours([ids["part 0"], ids["part 3"], ids["lone"]], 2)
    beside = {
        chunk: ([one.text for one in both.before], [one.text for one in both.after]) for chunk, both in found.items()
    }
    assert beside == {
        ids["part 0"]: ([], ["part 1", "part 2"]), ids["part 3"]: (["part 1", "part 2"], ["part 4", "part 5"]), ids["lone"]: ([], []),
    }  # fmt: skip
    assert found[ids["part 3"]].before[0].citation.uri == "a.md#L3-L3"


def test_any_number_of_chunks_can_be_read_at_once(corpus: Corpus) -> None:
    corpus.write("a.md", *(f"text {number}" for number in range(2500)))
    ids = list(corpus.ids().values())
    with corpus.reading() as reading:
        assert set(reading.chunks().contexts(ids)) == set(ids)
