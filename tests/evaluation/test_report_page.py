"""The page of a run is self-contained, safe and small, and explains every miss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kebab
from kebab.evaluation.files import GoldenQuery, GoldenSet
from kebab.evaluation.report_page import MOST_BYTES, explain_misses, report_page
from kebab.evaluation.runner import RunOptions, run
from kebab.wire.evaluation import EvalReportV1

LONG = "\n\n".join(
    f"Paragraph {number} is about the turbine and its {'very ' * 60}long maintenance." for number in range(40)
)
EVIL = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    notes = root / "notes"
    notes.mkdir()
    (notes / "turbine.md").write_text(f"---\ntitle: Turbine\ntags: [work]\n---\n\n# Turbine\n\n{LONG}\n")
    for number in range(15):
        (notes / f"pump{number}.md").write_text(
            f"# Pump {number}\n\nThe pump has a valve, a seal and number {number}.\n"
        )
    (notes / "far.md").write_text(
        f"# Something else\n\n{'Other words come first. ' * 40} Here the pump is mentioned.\n"
    )
    path = root / "corpus.sqlite"
    with kebab.open(path) as knowledge_base:
        knowledge_base.ingest(notes)
    return path


@pytest.fixture
def corpus(database: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(database) as knowledge_base:
        yield knowledge_base


def _set(*queries: GoldenQuery) -> GoldenSet:
    return GoldenSet("golden.yaml", "yaml", "0" * 64, queries)


def _reasons(corpus: kebab.KnowledgeBase, query: GoldenQuery, **options: object) -> list[tuple[str, str]]:
    k = int(str(options.pop("k", 3)))
    report = run(corpus, _set(query), RunOptions(k=k, search={"mode": "lexical", **options}, skip_unknown=True))
    misses = explain_misses(report, corpus)
    assert misses is not None
    return [(miss.reason, miss.detail) for miss in misses.get(query.id, [])]


def test_a_miss_that_is_ranked_low_names_its_rank(corpus: kebab.KnowledgeBase) -> None:
    ((reason, detail),) = _reasons(corpus, GoldenQuery("q", "pump", {"far.md": 1}))
    assert reason == "ranked low"
    assert re.fullmatch(r"rank 1\d \(lexical rank 1\d\)", detail)


def test_a_miss_without_matching_words_is_not_matched(corpus: kebab.KnowledgeBase) -> None:
    """Regression: the reason was `ranked low`, although there were no better passages."""
    ((reason, detail),) = _reasons(corpus, GoldenQuery("q", "pump", {"turbine.md": 1}))
    assert reason == "not matched"
    assert re.fullmatch(r"not among the \d\d? that the question finds at all", detail)


def test_a_miss_that_filters_exclude_is_filtered(corpus: kebab.KnowledgeBase) -> None:
    assert _reasons(corpus, GoldenQuery("q", "pump", {"far.md": 1}), tags_any=["work"]) == [
        ("filtered", "its document does not pass the filters")
    ]


def test_a_miss_outside_the_index_or_all_passages_is_not_indexed(corpus: kebab.KnowledgeBase) -> None:
    query = GoldenQuery("q", "pump", {"gone.md": 1}, expected_spans=("turbine.md#L2-L2",))
    assert _reasons(corpus, query) == [
        ("not indexed", "it is not in the index"),
        ("not indexed", "no passage has these lines"),
    ]


def test_lines_across_a_chunk_boundary_are_a_chunk_boundary_miss(corpus: kebab.KnowledgeBase) -> None:
    found = corpus.search("turbine paragraph 20", k=1, mode="lexical").hits[0].citation.lines
    assert found is not None
    query = GoldenQuery(
        "q", "turbine paragraph 20", {"turbine.md": 1}, expected_spans=(f"turbine.md#L{found[1] - 1}-L{found[1] + 5}",)
    )
    ((reason, detail),) = _reasons(corpus, query, k=1)
    assert reason == "chunk boundary"
    assert "passages, and not all of them were found" in detail


def test_misses_of_another_index_are_not_explained(corpus: kebab.KnowledgeBase, tmp_path: Path) -> None:
    report = run(corpus, _set(GoldenQuery("q", "pump", {"far.md": 1})), RunOptions(k=1))
    with kebab.open(tmp_path / "other.sqlite") as other:
        other.ingest_text("something", title="something")
        assert explain_misses(report, other) is None
    assert "the index is not the one of this run" in report_page(report, None)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def report(database: Path) -> EvalReportV1:
    golden = _set(
        GoldenQuery(f"{EVIL}1", f"pump {EVIL}", {"pump1.md": 1}),
        GoldenQuery("both", "정비 turbine", {"turbine.md": 1}, expected_spans=("turbine.md#L9-L9",)),
        GoldenQuery("none", EVIL, {}, unanswerable=True),
    )
    with kebab.open(database) as knowledge_base:
        return run(knowledge_base, golden, RunOptions(k=2, ask=True, search={"mode": "lexical"}))


def test_page_escapes_quoted_text_and_loads_nothing(report: EvalReportV1) -> None:
    page = report_page(report, {})
    reader = _Reader()
    reader.feed(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "href")]
    assert EVIL not in page
    assert reader.text.count(EVIL) >= 2
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_page_has_charts_metrics_every_query_and_both_colour_schemes(report: EvalReportV1) -> None:
    page = report_page(report, {})
    assert page.count("<svg") == 4
    assert all(f"<td>{name}" in page for name in report.metrics)
    assert page.count("<details>") >= 2
    assert "prefers-color-scheme:dark" in page
    assert report_page(report, {}) == page


def test_five_thousand_queries_fit_into_five_megabytes(report: EvalReportV1) -> None:
    queries = [report.queries[number % 2] for number in range(5000)]
    for query in report.queries[:2]:
        query.hits = [query.hits[0] for _ in range(10)]
        query.query = (
            "가나다라 a question as people ask it, with about twenty words in it, which is longer than most of them are "
            * 2
        )
        for hit in query.hits:
            hit.citation = f"some/folder/with/a/long/name/{'x' * 60}.md#L100-L200"
    large = EvalReportV1(**{**vars(report), "queries": queries})
    page = report_page(large, {})
    assert len(page.encode()) <= MOST_BYTES
    assert page.count("<tr><td>both") == 2500
    assert "To keep the page small" in page
