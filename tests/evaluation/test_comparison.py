"""Two runs of the same queries, compared."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

import kebab
from kebab.core.errors import GoldenSetError, UsageError
from kebab.evaluation.comparison import compare
from kebab.evaluation.files import load_golden_set, read_run
from kebab.evaluation.runner import RunOptions, run
from kebab.wire.evaluation import EvalReportV1, EvalTimingsV1

GOLDEN = Path(__file__).parents[2] / "samples" / "golden.yaml"


@pytest.fixture(scope="module")
def report(sample_db: Path) -> EvalReportV1:
    with kebab.open(sample_db) as knowledge_base:
        return run(knowledge_base, load_golden_set(GOLDEN), RunOptions(search={"mode": "lexical"}))


def _spoiled(report: EvalReportV1, *ids: str) -> EvalReportV1:
    """The report as if these queries had found nothing."""
    other = deepcopy(report)
    for query in other.queries:
        if query.id in ids:
            query.hits = []
            query.metrics = {**dict.fromkeys(query.metrics, 0.0), "empty_rate": 1.0}
    return other


def test_a_run_is_the_same_as_itself(report: EvalReportV1) -> None:
    comparison = compare(report, report)
    assert (comparison.wins, comparison.losses, comparison.ties) == (0, 0, report.counted["ndcg@10"])
    assert {difference.verdict for difference in comparison.differences} == {"same"}
    assert comparison.changed == {}
    assert comparison.notices == []


def test_regressions_are_listed_with_both_lists_of_hits(report: EvalReportV1) -> None:
    lost = [query.id for query in report.queries if query.metrics.get("ndcg@10")][:2]
    comparison = compare(report, _spoiled(report, *lost))
    assert (comparison.wins, comparison.losses) == (0, 2)
    assert sorted(change.id for change in comparison.regressions) == sorted(lost)
    for change in comparison.regressions:
        assert change.hits_a
        assert change.hits_b == []
        assert change.expected
    back = compare(_spoiled(report, *lost), report)
    assert (back.wins, back.losses) == (2, 0)
    assert len(back.improvements) == 2


def test_a_clear_loss_is_worse_in_every_metric_also_where_lower_is_better(report: EvalReportV1) -> None:
    ids = [query.id for query in report.queries if query.metrics][:30]
    verdicts = {
        difference.metric: difference.verdict for difference in compare(report, _spoiled(report, *ids)).differences
    }
    assert {verdicts[name] for name in ("ndcg@10", "recall@10", "mrr@10", "hit@10", "precision@10", "empty_rate")} == {
        "worse"
    }


def test_differences_are_reported_by_language_and_type(report: EvalReportV1) -> None:
    comparison = compare(report, report)
    assert [one.metric for one in comparison.by_lang][:2] == ["ndcg@10[en]", "ndcg@10[ko]"]
    assert {one.metric.partition("[")[0] for one in comparison.by_lang} == set(report.metrics) - {
        "worst_paraphrase_ndcg@10"
    }
    assert "recall@10[markdown]" in [one.metric for one in comparison.by_type]


def test_latencies_are_compared_query_by_query_where_both_runs_have_them(report: EvalReportV1) -> None:
    slow, fast = deepcopy(report), deepcopy(report)
    slow.timings, fast.timings = (
        EvalTimingsV1(p50=each, p95=each, p99=each, queries_per_second=1, each=[each] * len(report.queries))
        for each in (9.0, 4.0)
    )
    (latency,) = [one for one in compare(slow, fast).differences if one.metric == "latency_ms"]
    assert (latency.difference, latency.verdict) == (-5.0, "better")
    half = compare(slow, report)
    assert not any(one.metric == "latency_ms" for one in half.differences)
    assert half.notices == ["Only the first run was made with --timings, so latencies are not compared."]


def test_the_worst_of_paraphrases_is_compared_group_by_group(report: EvalReportV1) -> None:
    worse = deepcopy(report)
    for query in worse.queries:
        if query.group is not None:
            query.metrics["ndcg@10"] = 0.0
    (worst,) = [one for one in compare(report, worse).differences if one.metric == "worst_paraphrase_ndcg@10"]
    assert worst.verdict == "worse"
    assert worst.queries == report.counted["worst_paraphrase_ndcg@10"]


def test_metrics_of_only_one_run_are_noticed(report: EvalReportV1) -> None:
    asked = deepcopy(report)
    asked.metrics["groundedness"] = 1.0
    assert compare(report, asked).notices == ["Only the second run has groundedness."]


def test_other_differences_of_the_runs_are_named(report: EvalReportV1, sample_db: Path) -> None:
    with kebab.open(sample_db, search_title_weight=1.0) as knowledge_base:
        other = run(knowledge_base, load_golden_set(GOLDEN), RunOptions(search={"mode": "lexical", "match": "any"}))
    assert compare(report, other).changed == {"search.title_weight": [8.0, 1.0], "option match": [None, "any"]}


def test_runs_of_other_queries_are_refused_and_fewer_queries_are_noticed(report: EvalReportV1) -> None:
    fewer = deepcopy(report)
    fewer.queries = fewer.queries[:20]
    assert "20 queries are in both runs, of 74 and 20." in compare(report, fewer).notices
    for query in fewer.queries:
        query.id = f"other {query.id}"
    with pytest.raises(GoldenSetError, match="no query in common"):
        compare(report, fewer)
    with pytest.raises(UsageError, match="no metric nonsense"):
        compare(report, report, metric="nonsense")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no JSON"),
        ("[]", "not eval_report.v1"),
        ('{"schema_version": "eval_report.v1"}', "damaged"),
        ('{"schema_version": 1}', "not eval_report"),
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(GoldenSetError, match=what):
        read_run(path)
