"""The whole program on every store: ingest, search in each mode, pages, neighbours, suggestions, libraries and verify."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kebab

if TYPE_CHECKING:
    from tests.conftest import Toy, TwoScripts
    from tests.contracts.stores import Corpus


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "team").mkdir()
    for name, text in {
        "git.md": "---\ntags: [tools/vcs]\n---\n# Git\n\nInstall git, then say who you are.\n\n## Branches\n\nA branch is a line of work.\n",
        "team/plans.md": "# Plans\n\nThe roadmap of this year has a migration.\n",
        "team/회의.md": "# 회의록\n\n문서를 검색하는 방법을 정했다.\n",
        "code.py": "def parse_header(line):\n    return line.split(':')\n",
        **dict.fromkeys(
            ("garden.md", "team/garden.md"), "# Garden\n\nWhat a seed in the garden needs: water, light, and time.\n"
        ),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    for number in range(12):
        (folder / f"seed{number:02}.md").write_text(
            f"# Seed {number}\n\nA seed of kind{number} in the garden.\n", encoding="utf-8"
        )
    return folder


@pytest.fixture(scope="module")
def kb(shared_corpus: Corpus, notes: Path, toy: type[Toy]) -> Iterator[kebab.KnowledgeBase]:
    with shared_corpus.open(toy.models(toy.embedder("words", synonyms={"repository": "git"}))) as knowledge_base:
        report = knowledge_base.ingest(notes)
        assert (report.added, report.failed) == (18, [])
        yield knowledge_base


def test_a_second_ingest_of_unchanged_files_reads_none(kb: kebab.KnowledgeBase, notes: Path) -> None:
    report = kb.ingest(notes)
    assert (report.added, report.updated, report.removed, report.unchanged, report.vectors_made) == (0, 0, 0, 18, 0)


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_each_mode_finds_hits_whose_citations_can_be_fetched(kb: kebab.KnowledgeBase, mode: str) -> None:
    hit = kb.search("install git", mode=mode).hits[0]
    assert hit.doc_path == "git.md"
    assert "Install git" in kb.fetch_span(hit.citation.uri).text
    assert kb.search("install git", mode=mode).index_version.startswith(
        {"lexical": "lex:", "vector": "vec:", "hybrid": "hybrid:"}[mode]
    )


def test_hybrid_finds_passages_without_the_words_and_explains_both_sides(
    kb: kebab.KnowledgeBase,
) -> None:
    hit = kb.search("repository", explain=True).hits[0]
    assert hit.doc_path == "git.md"
    assert hit.retrieval.vector_rank is not None


@pytest.mark.parametrize(
    "query", ["seed garden", "a seed of kind3 in the garden and a branch of git", '"of work"', "문서 검색", "parse"]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3, "offset": 4},
        {"k": 3, "duplicates": "show"},
        {"fusion": "convex", "full_text": True},
        {"min_score": 0.3},
        {"match": "all"},
        {"path": "team/**"},
    ],
    ids=str,
)
def test_the_explanation_describes_the_hits(kb: kebab.KnowledgeBase, query: str, options: dict[str, Any]) -> None:
    found, explained = (kb.search(query, explain=explain, **options) for explain in (False, True))
    assert [hit._replace(explanation=None) for hit in explained] == list(found)
    assert (explained.next_cursor, explained.match, explained.notices) == (
        found.next_cursor,
        found.match,
        found.notices,
    )
    assert found.hits or options.keys() & {"path", "offset", "min_score", "match"} or query.startswith('"')


def test_copies_are_folded_and_named(kb: kebab.KnowledgeBase) -> None:
    first = kb.search("water light time", k=1).hits[0]
    assert sorted([first.doc_path, *(copy.doc_path for copy in first.duplicates)]) == ["garden.md", "team/garden.md"]


def test_filters_apply_in_every_mode(kb: kebab.KnowledgeBase) -> None:
    for mode in ("lexical", "vector", "hybrid"):
        for filters, expected in (
            ({"tags_any": ["tools"]}, {"git.md"}),
            ({"path": "team/**"}, {"team/plans.md", "team/회의.md", "team/garden.md"}),
            ({"type": ["code"]}, {"code.py"}),
        ):
            found = {
                hit.doc_path for hit in kb.search("git roadmap 문서 parse", mode=mode, match="any", k=50, **filters)
            }
            assert found <= expected, (mode, filters)
            assert found or mode == "lexical"


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_pages_together_give_the_whole_list_without_repetition(kb: kebab.KnowledgeBase, mode: str) -> None:
    seen: list[str] = []
    cursor = None
    while True:
        page = kb.search("seed garden", mode=mode, k=5, cursor=cursor)
        seen += [hit.chunk_id for hit in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) >= 12


def test_a_misspelt_word_is_suggested(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("migratoin", mode="lexical")
    assert list(response.hits) == []
    assert [notice.suggestions for notice in response.notices if notice.code == "did_you_mean"] == [("migration",)]


def test_similar_passages_and_neighbours_are_found(kb: kebab.KnowledgeBase) -> None:
    assert {hit.doc_path for hit in kb.similar("seed00.md", k=5)} <= {f"seed{number:02}.md" for number in range(1, 12)}
    hit = kb.search("install git", mode="lexical", neighbours=1).hits[0]
    assert hit.neighbours is not None


def test_a_korean_query_finds_korean_text(kb: kebab.KnowledgeBase) -> None:
    assert kb.search("문서 검색", mode="lexical").hits[0].doc_path == "team/회의.md"


def test_an_answer_cites_an_ingested_document(kb: kebab.KnowledgeBase) -> None:
    answer = kb.ask("What is a branch?")
    assert answer.citations
    assert {citation.citation.path for citation in answer.citations} == {"git.md"}


def test_verify_health_and_statistics_report_a_sound_store(kb: kebab.KnowledgeBase) -> None:
    report = kb.verify()
    assert report.whole
    assert (report.documents, report.changed + report.gone + report.moved + report.corrupt) == (18, 0)
    assert all(check.ok for check in kb.health())
    stats = kb.stats()
    assert stats is not None
    assert (stats.documents, stats.embedded_chunks) == (18, stats.chunks)


def test_a_cursor_stays_valid_while_a_new_text_has_no_vector_yet(
    corpus: Corpus, tmp_path: Path, toy: type[Toy]
) -> None:
    """Regression: in a cluster the index version named a model without vectors until the next text came."""
    for number in range(12):
        (tmp_path / f"{number:02}.md").write_text(
            f"# Note {number}\n\nOil for the dial number {number}.\n", encoding="utf-8"
        )
    with corpus.open(toy.two_scripts()) as kb:
        kb.ingest(tmp_path)
        first = kb.search("oil dial", k=5)
        assert first.index_version.count("@") == 1
        (tmp_path / "new.md").write_text("# New\n\nMore oil for the dial.\n", encoding="utf-8")
        kb.ingest(embed=False)
        second = kb.search("oil dial", k=5, cursor=first.next_cursor)
        assert second.index_version == first.index_version
        assert len(second) == 5


NOTES = {"ko.md": "# 깃\n\n깃을 설치하는 방법.\n", "en.md": "# Git\n\nHow to install git.\n"}


def changed(toy: type[Toy]) -> tuple[TwoScripts, TwoScripts]:
    """Models, and those with another one for all scripts."""
    before, now = toy.two_scripts(), toy.two_scripts()
    now.everything = toy.embedder("newer", dimension=24)
    now.embedders = (now.latin, now.everything)
    now.earlier, before.earlier = before, now
    return before, now


def models_used(kb: kebab.KnowledgeBase, query: str) -> tuple[list[str], list[str]]:
    """The codes of the notices of a search, and the models whose vectors were searched."""
    response = kb.search(query, mode="vector", explain=True)
    explanations = [hit.explanation or {} for hit in response]
    return [notice.code for notice in response.notices], sorted({each["vector"]["model"] for each in explanations})


def test_vectors_of_the_model_before_are_used_until_the_new_ones_are_complete(
    corpus: Corpus, tmp_path: Path, toy: type[Toy]
) -> None:
    for name, text in NOTES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    before, now = changed(toy)
    with corpus.open(before) as kb:
        kb.ingest(tmp_path)
        assert models_used(kb, "깃을 설치") == ([], ["everything"])
    with corpus.open(now) as kb:
        assert models_used(kb, "깃을 설치") == (["earlier_model"], ["everything"])
        report = kb.rebuild_vectors()
        assert report.vectors_made == 2, "both notes by the new model, and none by the one that stays"
        assert models_used(kb, "깃을 설치") == ([], ["newer"])
    with corpus.open(before) as kb:
        assert models_used(kb, "깃을 설치") == (["earlier_model"], ["newer"]), "the way back is the same"


def test_text_in_latin_script_does_not_care_which_model_reads_the_others(
    corpus: Corpus, tmp_path: Path, toy: type[Toy]
) -> None:
    (tmp_path / "en.md").write_text(NOTES["en.md"], encoding="utf-8")
    before, now = changed(toy)
    with corpus.open(before) as kb:
        kb.ingest(tmp_path)
    with corpus.open(now) as kb:
        assert models_used(kb, "install git") == ([], ["latin"])
        assert kb.ingest().vectors_made == 0


def test_a_page_is_full_although_equal_passages_are_far_apart_in_the_list(
    corpus: Corpus, tmp_path: Path, toy: type[Toy]
) -> None:
    """Copies that stand far apart in the list are hits of their own, so that no page loses one."""
    weather = "amber birch cedar delta ember fjord grove harbor island jungle kernel lagoon meadow nickel orchid pepper quartz river".split()
    for number, place in enumerate(("mountains", "sea", "desert", "lake", "hills", "plain")):
        text = f"The zeppelin carries mail over the {place} and lands there at noon."
        (tmp_path / f"zeppelin mail noon {number}.txt").write_text(text)
        (tmp_path / f"transport notes of the year volume backup {number}.txt").write_text(text)
    for number, word in enumerate(weather):
        words = " ".join(weather[number : number + 6])
        (tmp_path / f"zeppelin mail {word}.txt").write_text(f"A zeppelin with mail at noon over {word}: {words}.")
    with corpus.open(toy.models()) as kb:
        kb.ingest(tmp_path)
        every = [hit.chunk_id for hit in kb.search("zeppelin mail noon", k=100)]
        assert len(weather) + 6 <= len(every) <= len(weather) + 12
        for k in range(1, len(every)):
            page = kb.search("zeppelin mail noon", k=k)
            assert (len(page), page.next_cursor is not None) == (k, True), k


def test_changed_files_are_read_again_and_missing_files_removed(corpus: Corpus, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for name in ("a.md", "b.md", "c.md"):
        (folder / name).write_text(f"# {name}\n\nfirst text of {name}\n", encoding="utf-8")
    with corpus.open() as kb:
        kb.ingest(folder)
        (folder / "a.md").write_text("# a.md\n\nsecond text, and longer\n", encoding="utf-8")
        (folder / "b.md").unlink()
        assert [hit.stale for hit in kb.search("first text", mode="lexical") if hit.doc_path == "a.md"] == [True]
        assert not kb.verify().whole
        report = kb.ingest(folder)
        assert (report.added, report.updated, report.removed, report.unchanged) == (0, 1, 1, 1)
        assert [hit.doc_path for hit in kb.search("first", mode="lexical")] == ["c.md"]
        assert [hit.doc_path for hit in kb.search("second", mode="lexical")] == ["a.md"]
        assert kb.verify().whole
        assert kb.remove_source("own") == 2
        assert list(kb.search("text", mode="lexical")) == []


@pytest.mark.parametrize(("word", "like_it"), [("maintain", "watchDepmod"), ("dir", "buildRequestor")])
@pytest.mark.parametrize(
    "options", [{}, {"sort": "date"}, {"match": "any"}], ids=["by relevance", "by date", "any word"]
)
def test_a_search_of_own_documents_never_finds_a_library(
    corpus: Corpus, tmp_path: Path, word: str, like_it: str, options: dict[str, Any]
) -> None:
    """Regression: in a store that numbers its terms, a word of a library had the same number as a word of a note."""
    docs, own = tmp_path / "widget", tmp_path / "own"
    docs.mkdir()
    own.mkdir()
    (docs / "README.md").write_text(f"# Widget\n\n{like_it} {like_it} {like_it}\n", encoding="utf-8")
    (own / "garden.md").write_text(f"# Garden\n\nHow I {word} the garden.\n", encoding="utf-8")
    with corpus.open() as kb:
        kb.libraries.add(str(docs), library_id="/acme/widget", embed=False)
        kb.ingest(own, embed=False)
        assert [hit.doc_path for hit in kb.search(word, mode="lexical", **options)] == ["garden.md"]
        assert [hit.doc_path for hit in kb.search(like_it, mode="lexical", library="/acme/widget", **options)] == [
            "README.md"
        ]


def test_a_library_is_added_searched_and_exported(corpus: Corpus, tmp_path: Path) -> None:
    docs = tmp_path / "widget"
    docs.mkdir()
    (docs / "README.md").write_text(
        "# Widget\n\nGauges.\n\n## Create a dial\n\nCall this:\n\n```python\nmake_dial()\n```\n", encoding="utf-8"
    )
    with corpus.open() as kb:
        library, report = kb.libraries.add(str(docs), library_id="/acme/widget")
        assert (library.state, report.added) == ("indexed", 1)
        found = kb.libraries.docs("/acme/widget", "create a dial")
        assert "make_dial" in found.snippets[0].content
        assert [match.library.library_id for match in kb.libraries.search("widget")] == ["/acme/widget"]
        assert kb.libraries.export("/acme/widget", tmp_path / "widget.kebab") == 1
        kb.libraries.remove("/acme/widget")
        library, _ = kb.libraries.add(str(tmp_path / "widget.kebab"))
        assert kb.libraries.docs("/acme/widget", "create a dial").snippets[0].content == found.snippets[0].content
