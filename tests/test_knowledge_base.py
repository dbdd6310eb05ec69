"""The Python API: one object that ingests, searches and shows its content."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kebab
from kebab.core.errors import Ambiguous, ConfigError, NotFound, SourceError, UsageError
from kebab.core.search import SearchFilters
from kebab.search.options import SearchRequest
from kebab.store.sqlite import migrations

NOTES = {
    "a.md": "---\ntags: [rust]\naliases: [Alpha]\n---\n# Chunking\n\nMarkdown chunking rules are simple.\n",
    "sub/b.md": "# Other\n\nNothing about it. 한글 문서.\n",
    "c.py": "print('markdown')\n",
}


@pytest.fixture
def notes(write_notes: Callable[..., Path]) -> Path:
    return write_notes(NOTES)


def test_the_example_of_the_contract_works(notes: Path, tmp_path: Path) -> None:
    """Ingest and search need nothing else, and every hit has a citation."""
    with kebab.open(tmp_path / "notes.sqlite") as kb:
        report = kb.ingest(notes)
        assert report.added == 3
        shown = [
            (hit.citation.uri, hit.snippet)
            for hit in kb.search("markdown chunking rules", k=5, mode="hybrid", tags_any=["rust"])
        ]
    assert shown == [("a.md#L5-L7", "# Chunking\n\nMarkdown chunking rules are simple.")]


def test_a_database_that_was_deleted_or_replaced_is_not_read_any_more(notes: Path, tmp_path: Path) -> None:
    """Regression: an open knowledge base showed what `kb reset` had deleted, and never what was ingested after that."""
    path = tmp_path / "kb.sqlite"
    with kebab.open(path) as kb, kebab.open(path) as beside:
        kb.ingest(notes, embed=False)
        assert kb.search("chunking", mode="lexical")
        beside.reset()
        with pytest.raises(NotFound):
            kb.search("chunking", mode="lexical")
        beside.ingest_text("A quokka smiles.", title="Quokka", embed=False)
        assert not kb.search("chunking", mode="lexical")
        assert kb.search("quokka", mode="lexical")
        assert kb.stats()


@pytest.mark.parametrize("by_itself", [True, False])
def test_cached_vectors_of_a_deleted_database_are_not_used_for_the_new_one(
    write_notes: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_itself: bool
) -> None:
    """Regression: file systems reuse the inode of a deleted file, so the cached vectors of the old database were
    searched.
    """
    from kebab.store.sqlite import vector_writer, vectors

    for module in (vectors, vector_writer):
        monkeypatch.setattr(module, "EXACT_UP_TO", 3)  # so that few are enough to be looked for by their codes
    lamps = write_notes({f"lamps/{number}.md": f"# Lamp {number}\n\nIt shines.\n" for number in range(4)}) / "lamps"
    animals = write_notes(
        {f"animals/{name}.md": f"# {name}\n\nIt sleeps.\n" for name in "lemur otter puffin quokka stoat".split()}
    )
    path = tmp_path / "kb.sqlite"
    with kebab.open(path, embedding_model="bundled") as kb, kebab.open(path) as beside:
        kb.ingest(lamps)
        assert len(kb.search("lamp", mode="vector")) == 4
        if by_itself:
            kb.reset()
        else:
            beside.reset()
            with pytest.raises(NotFound):
                kb.search("lamp", mode="vector")
        kb.ingest(animals / "animals")
        assert len(kb.search("lamp", mode="vector")) == 5


def test_a_response_is_a_sequence_of_hits_with_more_to_say(notes: Path, tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes)
        response = kb.search("markdown", mode="lexical")
        assert len(response) == len(list(response)) == len(response.hits) == 2
        assert isinstance(response, kebab.SearchResponse)
        assert all(isinstance(hit, kebab.SearchHit) for hit in response)
        assert (response.query, response.method, response.match) == ("markdown", "lexical", "all")
        assert response.index_version.startswith(f"lex:{migrations.LATEST}:")
        assert response.took_ms >= 0
        assert kb.search(SearchRequest.from_options({"query": "markdown", "k": 1})).hits == response.hits[:1]


def test_a_search_may_be_asked_for_by_one_object(sample_kb: kebab.KnowledgeBase) -> None:
    """Query and filters as objects have the same meaning as keyword arguments."""
    options: dict[str, Any] = {"mode": "lexical", "k": 3, "match": "any", "sort": "date", "per_doc": 1}
    spelt = sample_kb.search("git install", path="**/*.md", exclude_path=["git/undo.md"], **options)
    filters = kebab.SearchFilters(path_glob="**/*.md", exclude_paths=("git/undo.md",))
    query = kebab.SearchQuery("git install", filters=filters, **options)
    assert spelt.hits
    assert sample_kb.search(query).hits == spelt.hits
    assert sample_kb.search(query._replace(filters=kebab.SearchFilters()), filters=filters).hits == spelt.hits
    assert sample_kb.search("git install", filters=filters, **options).hits == spelt.hits
    assert sample_kb.search(query, k=1).hits == spelt.hits[:1], "a keyword replaces the object's value"


def test_keywords_replace_the_values_of_a_search_request(sample_kb: kebab.KnowledgeBase) -> None:
    request = SearchRequest(query="git", mode="lexical", k=5)
    assert sample_kb.search(request, k=2).hits == sample_kb.search(request).hits[:2]
    filtered = sample_kb.search(request, filters=kebab.SearchFilters(path_glob="git/setup.md"))
    assert {hit.doc_path for hit in filtered} == {"git/setup.md"}
    with pytest.raises(UsageError, match="k is given more than once"):
        sample_kb.search(request, k=2, top=3)
    with pytest.raises(UsageError, match="k = 0 is out of range"):
        sample_kb.search(SearchRequest(query="git", k=0))


def test_every_field_of_a_search_query_counts_or_is_refused(sample_kb: kebab.KnowledgeBase) -> None:
    query = kebab.SearchQuery("git", mode="lexical", k=1, match="any")
    (hit,) = sample_kb.search(query._replace(without_snippets=True))
    assert (hit.snippet, hit.text) == ("", hit.chunk.text)
    with pytest.raises(UsageError, match="insists"):
        sample_kb.search(query._replace(insists=True))
    assert sample_kb.search(query._replace(insists=True, match="all")).hits


def test_filters_that_no_option_names_are_refused(sample_kb: kebab.KnowledgeBase) -> None:
    with pytest.raises(UsageError):
        sample_kb.search("git", filters=kebab.SearchFilters(exclude_docs=("0" * 16,)))
    for unsearchable in (kebab.SearchFilters(library=""), kebab.SearchFilters(library="/a/b")):
        with pytest.raises(UsageError):
            sample_kb.search("git", filters=unsearchable)
    both = kebab.SearchFilters(kinds=("code", "info"))
    assert sample_kb.search("git", filters=both).hits == sample_kb.search("git").hits


def test_the_retrievers_of_a_knowledge_base_can_be_composed(sample_kb: kebab.KnowledgeBase) -> None:
    query = kebab.SearchQuery("git", k=3)
    with sample_kb.retrievers() as retrievers:
        assert (retrievers.vector, retrievers.hybrid) == (None, None), "the settings turn vectors off"
        assert retrievers.why_not is not None
        assert tuple(retrievers.lexical.search(query)) == sample_kb.search("git", mode="lexical", match="all", k=3).hits
        mixed = kebab.HybridRetriever(kebab.FusionPolicy(), retrievers.lexical, retrievers.lexical)
        hits = mixed.search(query._replace(mode="hybrid"))
        assert {hit.retrieval.fusion_score for hit in hits[:1]} == {1.0}


def test_paths_may_be_text_with_a_tilde(isolated_home: Path) -> None:
    (isolated_home / "notes").mkdir()
    (isolated_home / "notes" / "a.md").write_text("quagga\n", encoding="utf-8")
    with kebab.open("~/kb.sqlite") as kb:
        kb.ingest("~/notes")
        assert kb.path == isolated_home / "kb.sqlite"
        assert len(kb.search("quagga")) == 1


def test_the_default_place_is_the_data_folder_and_kebab_db_names_another(
    isolated_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kebab.open() as kb:
        assert kb.path == isolated_home / "data" / "kebab" / "kebab.sqlite"
    monkeypatch.setenv("KEBAB_DB", str(tmp_path / "named.sqlite"))
    with kebab.open() as kb:
        assert kb.path == tmp_path / "named.sqlite"


def test_settings_may_be_given_by_name_and_are_checked(tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite", search_snippet_chars=40, chunking_max_tokens=256) as kb:
        assert kb.settings.search.snippet_chars == 40
        assert kb.settings.chunking.max_tokens == 256
    with pytest.raises(ConfigError):
        kebab.open(tmp_path / "kb.sqlite", search_snippet_chars=1)
    with pytest.raises(ConfigError):
        kebab.open(tmp_path / "kb.sqlite", search_nonsense=1)


def test_a_named_database_that_does_not_exist_is_not_found_for_readers(tmp_path: Path) -> None:
    with kebab.open(tmp_path / "none.sqlite") as kb:
        for read in (
            lambda: kb.search("x"),
            kb.documents,
            kb.sources,
            kb.tags,
            kb.stats,
            kb.verify,
            lambda: kb.document("x"),
        ):
            with pytest.raises(NotFound):
                read()
    assert not (tmp_path / "none.sqlite").exists()


def test_a_default_database_not_yet_made_is_empty() -> None:
    with kebab.open() as kb:
        assert [kb.documents(), kb.sources(), kb.tags()] == [[], [], []]
        assert (kb.count_documents(), kb.stats()) == (0, None)
        with pytest.raises(NotFound):
            kb.document("x")


def test_documents_chunks_and_text_can_be_looked_at(notes: Path, tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes, name="mine")
        assert [document.path for document in kb.documents()] == ["a.md", "c.py", "sub/b.md"]
        assert [document.path for document in kb.documents(SearchFilters(types=("code",)))] == ["c.py"]
        assert kb.count_documents(SearchFilters(lang="en")) >= 1
        assert [source.name for source in kb.sources()] == ["mine"]
        assert [tag.tag for tag in kb.tags()] == ["rust"]
        record, chunks = kb.document("a.md")
        assert record.metadata["aliases"] == ["Alpha"]
        assert kb.chunk(chunks[0].chunk_id[:6]).text == chunks[0].text
        assert kb.fetch_document("a.md").text == NOTES["a.md"]
        assert kb.fetch_chunk(chunks[0].chunk_id).citation == chunks[0].citation
        assert kb.fetch_span("a.md#L5-L5").text == "# Chunking\n"
        assert kb.fetch_span(chunks[0].citation.text).text.rstrip("\n") == chunks[0].text
        with pytest.raises(UsageError):
            kb.fetch_span("a.md")
        with pytest.raises(NotFound):
            kb.fetch_span("a.md#L99-L100")
        stats = kb.stats()
        assert stats is not None
        assert (stats.documents, stats.sources) == (3, 1)


def test_a_document_filter_takes_ids_paths_and_beginnings(notes: Path, tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes)
        doc_id = kb.document("c.py")[0].doc_id
        for key in (doc_id, doc_id[:6], "c.py", "notes:c.py"):
            assert [hit.doc_path for hit in kb.search("markdown", doc=[key])] == ["c.py"]
        with pytest.raises(NotFound):
            kb.search("markdown", doc=["nowhere.md"])
        with pytest.raises(NotFound):
            kb.search("markdown", source=["nowhere"])


def test_an_ambiguous_path_names_its_sources(notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("another\n", encoding="utf-8")
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes, other)
        with pytest.raises(Ambiguous) as caught:
            kb.fetch_span("a.md#L1-L1")
        assert "notes:a.md" in caught.value.message
        assert "other:a.md" in caught.value.message
        assert kb.fetch_span("other:a.md#L1-L1").text == "another\n"


def test_a_text_without_a_file_can_be_ingested(tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        assert kb.ingest_text("quagga in memory", title="Memo").added == 1
        (hit,) = kb.search("quagga")
        assert (hit.source, hit.doc_path, hit.doc_type) == ("stdin", "Memo", "note")
        with pytest.raises(UsageError):
            kb.ingest_text("x", title=" ")
        with pytest.raises(NotFound):
            kb.file_of("stdin", "Memo")


def test_nothing_to_ingest_and_a_missing_folder_are_errors(tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        with pytest.raises(UsageError):
            kb.ingest()
        with pytest.raises(SourceError):
            kb.ingest(tmp_path / "missing")


def test_threads_may_share_one_knowledge_base(sample_db: Path) -> None:
    found: list[int] = []
    with kebab.open(sample_db) as kb:
        threads = [
            threading.Thread(target=lambda: found.append(len(kb.search("git", mode="lexical")))) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1


def test_it_can_be_closed_twice_and_used_again_after_a_reset(notes: Path, tmp_path: Path) -> None:
    kb = kebab.open(tmp_path / "kb.sqlite")
    kb.ingest(notes)
    kb.close()
    kb.close()
    assert kb.reset() is True
    assert kb.reset() is False
    kb.ingest(notes)
    assert len(kb.search("markdown")) == 2
    kb.close()


def test_rebuilding_and_optimising_change_no_answer(notes: Path, tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes)
        before = [(hit.chunk_id, hit.score) for hit in kb.search("markdown 문서")]
        assert kb.rebuild_fts() == 3
        kb.optimize()
        assert [(hit.chunk_id, hit.score) for hit in kb.search("markdown 문서")] == before


def test_an_index_built_with_other_analysis_settings_is_searched_with_a_notice(notes: Path, tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(notes)
        bigrams = kb.search("문서", mode="lexical").index_version
    with kebab.open(tmp_path / "kb.sqlite", analysis_korean="morphemes") as kb:
        stale = kb.search("문서", mode="lexical")
        assert (len(stale), stale.index_version, [notice.code for notice in stale.notices]) == (
            1,
            bigrams,
            ["stale_index"],
        )
        kb.ingest()
        fresh = kb.search("문서", mode="lexical")
        assert (len(fresh), fresh.notices) == (1, ())
        assert fresh.index_version != bigrams, "the version changes with the analysis"


def test_other_search_settings_share_the_store_and_leave_the_first_ones_alone(sample_kb: kebab.KnowledgeBase) -> None:
    other = sample_kb.variant(default_k=2)
    assert len(other.search("git", mode="lexical")) == 2
    assert len(sample_kb.search("git", mode="lexical")) > 2
    assert other.path == sample_kb.path
