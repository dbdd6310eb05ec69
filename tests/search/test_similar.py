"""Similar passages: which vectors are compared, what is left out, and the notices when vectors are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kebab
from kebab.core.errors import ModelMissing, NotFound, UsageError, VectorsOff
from kebab.core.search import SearchResponse

if TYPE_CHECKING:
    from tests.conftest import Toy

WriteNotes = Callable[[Mapping[str, str]], Path]


def section(name: str, words: str) -> str:
    """A section long enough to be a passage by itself."""
    return f"# {name}\n\n{f'{words} ' * (900 // len(words))}\n\n"


NOTES = {
    "git.md": "---\ntitle: Versions\n---\n"
    + section("Rebase", "commit rebase branch")
    + section("Merge", "merge commit branch")
    + section("Bread", "flour oven dough"),
    "svn.md": "---\ntags: [old]\n---\n" + section("Trunk", "commit merge trunk"),
    "bread.md": section("Sourdough", "flour water dough oven"),
    "taxes.md": section("Taxes", "receipts declaration july"),
}


@pytest.fixture
def opened(tmp_path: Path, toy: type[Toy], write_notes: WriteNotes) -> kebab.KnowledgeBase:
    knowledge_base = toy.open(tmp_path / "kb.sqlite")
    knowledge_base.ingest(write_notes(NOTES))
    return knowledge_base


def places(response: SearchResponse) -> list[str]:
    return [f"{hit.doc_path} {hit.section_label}" for hit in response]


def codes(response: SearchResponse) -> list[str]:
    return [notice.code for notice in response.notices]


def chunk_id(knowledge_base: kebab.KnowledgeBase, path: str, number: int) -> str:
    return knowledge_base.document(path)[1][number].chunk_id


def test_the_closest_passages_come_first_without_the_passage_itself(opened: kebab.KnowledgeBase) -> None:
    response = opened.similar(chunk_id(opened, "git.md", 0))
    assert places(response)[:2] == ["git.md Merge", "svn.md Trunk"]
    assert "git.md Rebase" not in places(response)
    assert len(response) == 5
    assert (response.mode, response.method, response.match, response.notices) == ("vector", "vector", None, ())
    assert [hit.rank for hit in response] == [hit.retrieval.vector_rank for hit in response] == [1, 2, 3, 4, 5]
    assert {(hit.score_kind, hit.retrieval_method, hit.retrieval.method) for hit in response} == {
        ("cosine", "vec-cosine", "vector")
    }
    scores = [hit.score for hit in response]
    assert scores == sorted(scores, reverse=True)
    assert all(hit.score == hit.retrieval.vector_score and hit.retrieval.lexical_rank is None for hit in response)
    assert response.index_version.startswith("vec:")


def test_similar_passages_need_no_model(tmp_path: Path, toy: type[Toy], write_notes: WriteNotes) -> None:
    embedder = toy.embedder()
    with toy.open(tmp_path / "kb.sqlite", toy.models(embedder)) as knowledge_base:
        knowledge_base.ingest(write_notes(NOTES))
        embedder.batches.clear()
        assert knowledge_base.similar("bread.md").method == "vector"
        assert embedder.batches == []


def test_a_passage_may_be_named_in_every_form_that_fetch_accepts(opened: kebab.KnowledgeBase) -> None:
    _, chunks = opened.document("bread.md")
    (chunk,) = chunks
    expected = places(opened.similar(chunk.chunk_id))
    assert expected[0] == "git.md Bread"
    for reference in (
        chunk.chunk_id[:12],
        chunk.doc_id,
        "bread.md",
        "notes:bread.md",
        chunk.citation.uri,
        chunk.citation.text,
        "bread.md#L1",
    ):
        response = opened.similar(reference)
        assert places(response) == expected
        assert response.query == reference


def test_several_chunks_of_a_passage_are_compared_by_their_mean_vector(opened: kebab.KnowledgeBase) -> None:
    first, second, third = opened.document("git.md")[1]
    both = opened.similar(f"git.md#L1-L{(second.citation.lines or (0, 0))[1]}")
    assert places(both)[0] == "svn.md Trunk"
    assert not {first.chunk_id, second.chunk_id} & {hit.chunk_id for hit in both}
    assert third.chunk_id in {hit.chunk_id for hit in both}  # of the same document only the passage itself is left out


def test_similar_to_a_document_leaves_out_all_its_passages(opened: kebab.KnowledgeBase) -> None:
    assert {hit.doc_path for hit in opened.similar("git.md")} == {"svn.md", "bread.md", "taxes.md"}


@pytest.mark.parametrize("mode", ["vector", "lexical"])
def test_other_docs_leaves_out_passages_of_the_same_document(opened: kebab.KnowledgeBase, mode: str) -> None:
    found = opened.similar(chunk_id(opened, "git.md", 0), other_docs=True, mode=mode)
    assert places(found)[0] == "svn.md Trunk"
    assert "git.md" not in {hit.doc_path for hit in found}


@pytest.mark.parametrize("mode", ["vector", "lexical"])
def test_filters_offsets_and_limits_apply_to_similar_passages(opened: kebab.KnowledgeBase, mode: str) -> None:
    passage = chunk_id(opened, "git.md", 0)
    every = opened.similar(passage, mode=mode)
    assert [hit.chunk_id for hit in opened.similar(passage, mode=mode, k=1, offset=1)] == [every.hits[1].chunk_id]
    assert opened.similar(passage, mode=mode, k=1, offset=1).hits[0].rank == 2
    assert places(opened.similar(passage, mode=mode, tags_any=["old"])) == ["svn.md Trunk"]
    assert {hit.doc_path for hit in opened.similar(passage, mode=mode, path="git.md")} == {"git.md"}
    assert len({hit.doc_path for hit in opened.similar(passage, mode=mode, per_doc=1)}) == len(
        opened.similar(passage, mode=mode, per_doc=1)
    )
    least = every.hits[0].score
    assert [hit.rank for hit in opened.similar(passage, mode=mode, min_score=least)] == [1]
    assert len(opened.similar(passage, mode=mode, max_tokens=1)) == 1
    assert (
        opened.similar(passage, mode=mode, full_text=True).hits[0].text
        == opened.fetch_chunk(every.hits[0].chunk_id).text
    )


def test_similar_passages_are_the_same_at_every_call(opened: kebab.KnowledgeBase) -> None:
    once, again = (opened.similar("git.md", k=50) for _ in range(2))
    assert [(hit.chunk_id, hit.score) for hit in once] == [(hit.chunk_id, hit.score) for hit in again]


def test_without_vectors_passages_are_compared_by_key_terms_and_a_notice_says_how_to_make_vectors(
    tmp_path: Path, toy: type[Toy], write_notes: WriteNotes
) -> None:
    with toy.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write_notes(NOTES), embed=False)
        response = knowledge_base.similar(chunk_id(knowledge_base, "git.md", 0))
        assert set(places(response)) == {"git.md Merge", "svn.md Trunk"}
        assert (response.mode, response.method, response.match) == ("vector", "lexical", "any")
        assert {(hit.score_kind, hit.retrieval_method) for hit in response} == {("bm25", "fts5-bm25")}
        assert [hit.retrieval.lexical_rank for hit in response] == [1, 2]
        assert all(hit.highlights for hit in response)
        (notice,) = response.notices
        assert notice.code == "no_vectors"
        assert "most telling words (branch, commit)" in notice.message
        assert notice.message.endswith("Make them with: kb ingest")
        with pytest.raises(ModelMissing):
            knowledge_base.similar("git.md", mode="vector")


def test_a_passage_without_a_vector_is_compared_by_words_even_if_others_have_vectors(
    tmp_path: Path, toy: type[Toy], write_notes: WriteNotes
) -> None:
    with toy.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write_notes(NOTES))
        knowledge_base.ingest(write_notes({"new.md": section("New", "commit trunk")}), embed=False)
        response = knowledge_base.similar("new.md")
        assert response.method == "lexical"
        assert response.hits[0].doc_path == "svn.md"
        assert response.notices[0].code == "no_vectors"
        assert "This passage has no vector yet. Make it with: kb ingest" in response.notices[0].message
        with pytest.raises(ModelMissing):
            knowledge_base.similar("new.md", mode="vector")
        assert "partial_vectors" in codes(knowledge_base.similar("svn.md"))


def test_similar_reports_that_vectors_are_turned_off(sample_kb: kebab.KnowledgeBase) -> None:
    response = sample_kb.similar("git/undo.md")
    assert response.hits
    assert codes(response) == ["vectors_off"]
    assert codes(sample_kb.similar("git/undo.md", mode="lexical")) == []
    with pytest.raises(VectorsOff):
        sample_kb.similar("git/undo.md", mode="vector")


def test_lines_outside_every_chunk_are_compared_by_words(
    tmp_path: Path, toy: type[Toy], write_notes: WriteNotes
) -> None:
    with toy.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(
            write_notes({"a.md": "---\nsubject: okapi\n---\n# A\n\nquagga\n", "b.md": "okapi zebra", "c.md": "okapi"})
        )
        response = knowledge_base.similar("a.md#L2")
        assert {hit.doc_path for hit in response} == {"b.md", "c.md"}
        assert codes(response) == ["no_vectors"]
        assert "kb inspect doc a.md" in response.notices[0].message


def test_passages_in_two_scripts_are_compared_in_the_space_of_each(
    tmp_path: Path, toy: type[Toy], write_notes: WriteNotes
) -> None:
    notes = {"a.md": "저장소 설정 방법", "b.md": "저장소 만들기", "c.md": "commit branch", "d.md": "branch names"}
    with toy.open(tmp_path / "kb.sqlite", toy.two_scripts()) as knowledge_base:
        knowledge_base.ingest(write_notes(notes))
        assert [hit.doc_path for hit in knowledge_base.similar("c.md")] == [
            "d.md"
        ]  # the Latin model has read no Korean
        korean = knowledge_base.similar("a.md")
        assert korean.hits[0].doc_path == "b.md"
        assert {hit.doc_path for hit in korean} == {"b.md", "c.md", "d.md"}


def test_no_similar_passage_gives_a_notice(tmp_path: Path, toy: type[Toy], write_notes: WriteNotes) -> None:
    with toy.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write_notes({"a.md": "okapi\n\n", "b.md": "zebra"}))
        for options in ({"type": "pdf"}, {"min_score": 1.0}, {"mode": "lexical"}, {"offset": 5}):
            response = knowledge_base.similar("a.md", **options)
            assert response.hits == ()
            assert "nothing_similar" in codes(response)
        assert codes(knowledge_base.similar("a.md")) == []


@pytest.mark.parametrize("reference", ["nothing.md", "git.md#L9999", "git.md#page=1", "ffffffffffffffffffff"])
def test_a_missing_reference_is_not_found(opened: kebab.KnowledgeBase, reference: str) -> None:
    with pytest.raises(NotFound):
        opened.similar(reference)


def test_similar_in_an_empty_corpus_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with kebab.open() as knowledge_base, pytest.raises(NotFound):
        knowledge_base.similar("a.md")


@pytest.mark.parametrize(
    "options", [{"match": "all"}, {"sort": "date"}, {"fusion": "rrf"}, {"mode": "hybrid"}, {"explain": True}, {"kk": 1}]
)
def test_options_that_only_make_sense_for_queries_are_refused_by_similar(
    opened: kebab.KnowledgeBase, options: dict[str, object]
) -> None:
    with pytest.raises(UsageError):
        opened.similar("git.md", **options)  # type: ignore[arg-type]


def test_similar_without_a_passage_is_refused(opened: kebab.KnowledgeBase) -> None:
    with pytest.raises(UsageError):
        opened.similar(" ")
