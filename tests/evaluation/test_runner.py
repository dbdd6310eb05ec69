"""Runs measure a real index, stop at errors, and are reproducible."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kebab
from kebab.core.errors import Ambiguous, GoldenSetError, NotFound
from kebab.evaluation.files import GoldenQuery, GoldenSet, read_run, write_run
from kebab.evaluation.runner import RunOptions, run
from kebab.wire import to_json
from kebab.wire.evaluation import EvalQueryV1


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources with a common path, a copy, and a document of two pages."""
    root = tmp_path_factory.mktemp("corpus")
    files = {
        "notes/boiler.md": "# Boiler\n\nService is due in May.\n\nThe pressure is 1.5 bar.\n",
        "notes/garden.md": "# Garden\n\nTomatoes are planted in May.\n",
        "notes/보일러.md": "# 보일러\n\n오월에 점검한다.\n",
        "other/garden.md": "# Other garden\n\nRoses are cut in March.\n",
        "other/tool.py": "def boil():\n    return 'water'\n",
        "other/copy.md": "# Boiler\n\nService is due in May.\n\nThe pressure is 1.5 bar.\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    path = root / "corpus.sqlite"
    with kebab.open(path) as knowledge_base:
        knowledge_base.ingest(root / "notes", root / "other")
    return path


@pytest.fixture
def corpus(database: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(database) as knowledge_base:
        yield knowledge_base


def _set(*queries: GoldenQuery) -> GoldenSet:
    return GoldenSet("golden.yaml", "yaml", "0" * 64, queries)


def _one(
    corpus: kebab.KnowledgeBase, query: str, *docs: str, options: dict[str, Any] | None = None, **more: Any
) -> EvalQueryV1:
    golden = _set(GoldenQuery("q", query, dict.fromkeys(docs, 1), **more))
    (measured,) = run(corpus, golden, RunOptions(search={"mode": "lexical", **(options or {})})).queries
    return measured


@pytest.mark.parametrize("name", ["boiler.md", "notes:boiler.md", "boiler", "notes/boiler"])
def test_a_document_is_found_by_path_by_source_and_path_and_without_extension(
    corpus: kebab.KnowledgeBase, name: str
) -> None:
    if name == "notes/boiler":
        with pytest.raises(NotFound, match="notes/boiler"):
            _one(corpus, "boiler service", name)
    else:
        assert _one(corpus, "boiler service", name).metrics["ndcg@10"] == 1.0


def test_a_document_is_found_by_its_id(corpus: kebab.KnowledgeBase) -> None:
    assert _one(corpus, "boiler service", corpus.document("boiler.md")[0].doc_id).metrics["hit@1"] == 1.0


def test_a_path_of_two_sources_is_refused_and_source_and_path_is_not(corpus: kebab.KnowledgeBase) -> None:
    with pytest.raises(Ambiguous, match=r"notes:garden\.md, other:garden\.md"):
        _one(corpus, "garden", "garden.md")
    assert _one(corpus, "roses", "other:garden.md").metrics["hit@1"] == 1.0


def test_unknown_ids_stop_the_run_and_are_listed(corpus: kebab.KnowledgeBase) -> None:
    golden = _set(
        GoldenQuery("a", "x", {"gone.md": 1}),
        GoldenQuery("b", "x", {"boiler.md": 1}, expected_spans=("boiler.md#L9-L9",)),
        GoldenQuery("c", "x", {}, expected_chunks=("0123456789",)),
    )
    with pytest.raises(NotFound) as caught:
        run(corpus, golden)
    assert all(name in caught.value.message for name in ("3 in all", "gone.md", "boiler.md#L9-L9", "0123456789"))
    report = run(corpus, golden, RunOptions(skip_unknown=True, search={"mode": "lexical"}))
    assert report.unknown == ["gone.md", "boiler.md#L9-L9", "0123456789"]
    assert report.queries[0].metrics["recall@10"] == 0.0
    assert report.queries[1].metrics["citation_line_recall@10"] == 0.0


def test_a_document_beside_chunks_and_a_page_that_is_not_there_are_unknown_too(corpus: kebab.KnowledgeBase) -> None:
    (chunk,) = corpus.document("notes:garden.md")[1]
    golden = _set(
        GoldenQuery("beside", "tomatoes", {"nope.md": 1}, expected_chunks=(chunk.chunk_id,)),
        GoldenQuery("page", "roses", {"copy.md#page=7": 1}, expected_spans=("copy.md#page=2",)),
    )
    with pytest.raises(NotFound) as caught:
        run(corpus, golden)
    assert all(name in caught.value.message for name in ("3 in all", "nope.md", "copy.md#page=7", "copy.md#page=2"))


def test_a_query_that_cannot_be_read_is_named(corpus: kebab.KnowledgeBase) -> None:
    with pytest.raises(GoldenSetError, match="The query q cannot be searched for"):
        _one(corpus, "'boiler AND'", "boiler.md")


def test_lines_count_if_cited_and_strings_if_contained(corpus: kebab.KnowledgeBase) -> None:
    measured = _one(
        corpus,
        "boiler service",
        expected_spans=("boiler.md#L3-L5",),
        must_contain=("1.5 bar", "2 bar"),
        forbidden=("Roses",),
    ).metrics
    assert measured["citation_line_recall@10"] == 1.0
    assert measured["must_contain@10"] == 0.5
    assert measured["forbidden@10"] == 0.0
    assert measured["hit@1"] == 1.0  # a span says in which document it is


def test_a_folded_copy_counts_at_the_rank_of_its_hit(corpus: kebab.KnowledgeBase) -> None:
    measured = _one(corpus, "boiler service", "boiler.md", "copy.md")
    assert len([hit for hit in measured.hits if hit.grade]) == 1
    assert measured.metrics["recall@10"] == measured.metrics["ndcg@10"] == 1.0
    assert [thing.rank for thing in measured.expected] == [1, 1]


def test_chunks_are_ranked_by_themselves(corpus: kebab.KnowledgeBase) -> None:
    (chunk,) = corpus.document("notes:garden.md")[1]
    measured = _one(corpus, "tomatoes", expected_chunks=(chunk.chunk_id,))
    assert measured.metrics["ndcg@10"] == 1.0
    assert measured.expected[0].kind == "chunk"


def test_filters_reach_the_search(corpus: kebab.KnowledgeBase) -> None:
    assert (
        _one(corpus, "boiler service", "boiler.md", options={"source": ["other"], "duplicates": "show"}).metrics[
            "recall@10"
        ]
        == 0.0
    )


def test_metrics_are_reported_by_language_and_type(corpus: kebab.KnowledgeBase) -> None:
    golden = _set(
        GoldenQuery("en", "boiler service", {"boiler.md": 1}),
        GoldenQuery("ko", "오월 점검", {"보일러.md": 1}),
        GoldenQuery("code", "boil water", {"tool.py": 1}),
    )
    report = run(corpus, golden, RunOptions(search={"mode": "lexical"}))
    assert [(part.name, part.queries) for part in report.by_lang] == [("en", 2), ("ko", 1)]
    assert [(part.name, part.queries) for part in report.by_type] == [("code", 1), ("markdown", 2)]


def test_worst_paraphrase_of_a_group_counts(corpus: kebab.KnowledgeBase) -> None:
    golden = _set(
        GoldenQuery("a", "boiler service", {"boiler.md": 1}, group="g"),
        GoldenQuery("b", "roses", {"boiler.md": 1}, group="g"),
    )
    metrics = run(corpus, golden, RunOptions(search={"mode": "lexical"})).metrics
    assert (metrics["worst_paraphrase_ndcg@10"], metrics["ndcg@10"]) == (0.0, 0.5)


def test_refusals_and_groundedness_are_measured_with_ask(corpus: kebab.KnowledgeBase) -> None:
    golden = _set(
        GoldenQuery("yes", "when is service of the boiler due?", {"boiler.md": 1}, expected_spans=("boiler.md#L3-L3",)),
        GoldenQuery("no", "who won the chess tournament in Reykjavik?", {}, unanswerable=True),
    )
    report = run(corpus, golden, RunOptions(ask=True, search={"mode": "lexical"}))
    assert (
        report.metrics["refusal_correctness"]
        == report.metrics["groundedness"]
        == report.metrics["answer_line_recall"]
        == 1.0
    )
    assert report.metrics["quoted_expected"] == 1.0
    answered = report.queries[0].answer
    assert answered is not None
    assert answered.text is not None
    assert answered.text.startswith("Service is due in May. [1]")
    assert answered.quoted[0] == "boiler.md#L3-L3"
    assert report.counted["refusal_correctness"] == 2
    assert report.counted["groundedness"] == 1
    refused = report.queries[1].answer
    assert refused is not None
    assert refused.refused
    assert "ndcg@10" not in report.queries[1].metrics


def test_two_runs_are_equal_and_a_written_run_can_be_read(
    corpus: kebab.KnowledgeBase, database: Path, tmp_path: Path
) -> None:
    golden = _set(
        GoldenQuery("en", "boiler service", {"boiler.md": 1}, expected_spans=("boiler.md#L3-L3",)),
        GoldenQuery("no", "x", {}, unanswerable=True),
    )
    first = run(corpus, golden, RunOptions(ask=True))
    with kebab.open(database) as again:
        assert to_json(run(again, golden, RunOptions(ask=True))) == to_json(first)
    write_run(first, tmp_path / "run.json")
    assert to_json(read_run(tmp_path / "run.json")) == to_json(first)


def test_parallel_queries_give_the_same_report_as_sequential_ones(
    corpus: kebab.KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = _set(
        *(
            GoldenQuery(f"q{number}", text, {"boiler": 1})
            for number, text in enumerate(["boiler", "May", "pressure bar"] * 8)
        )
    )
    reports = []
    for processors in (1, 4):
        monkeypatch.setattr("os.cpu_count", partial(int, processors))
        reports.append(to_json(run(corpus, golden)))
    assert reports[0] == reports[1]


def test_a_run_records_configuration_index_and_commit(tmp_path: Path, upstream: Any) -> None:
    commit = upstream.commit({"a.md": "# One\n\nfirst words\n"})
    with kebab.open(tmp_path / "db.sqlite") as knowledge_base:
        knowledge_base.ingest(upstream.folder)
        golden = _set(GoldenQuery("q", "first words", {"a.md": 1}))
        report = run(knowledge_base, golden, RunOptions(search={"mode": "lexical", "tags_any": []}))
        assert [source.commit for source in report.index.sources] == [commit]
        assert report.index.index_version.startswith("lex:")
        assert report.configuration.options == {"mode": "lexical"}
        assert report.configuration.settings["search.title_weight"] == knowledge_base.settings.search.title_weight
        (upstream.folder / "b.md").write_text("# Two\n")
        knowledge_base.ingest()
        changed = run(knowledge_base, golden, RunOptions(search={"mode": "lexical"}))
        assert changed.index.sha256 != report.index.sha256
    assert str(tmp_path) not in to_json(report)


def test_latencies_are_in_the_report_only_on_request(corpus: kebab.KnowledgeBase) -> None:
    golden = _set(GoldenQuery("q", "boiler", {"boiler.md": 1}))
    assert run(corpus, golden).timings is None
    timings = run(corpus, golden, RunOptions(timings=True)).timings
    assert timings is not None
    assert 0 < timings.p50 <= timings.p95 <= timings.p99
