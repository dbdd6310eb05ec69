"""The wire objects eval_report.v1, eval_comparison.v1, eval_suggestions.v1 and eval_tuning.v1."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from kebab.wire import Wire


class EvalGoldenV1(Wire):
    """What was asked."""

    name: str
    kind: Literal["yaml", "jsonl", "beir"]
    sha256: str
    queries: int


class EvalConfigurationV1(Wire):
    """What shapes the hits: the same configuration on the same index gives the same report."""

    program: str
    k: int
    hits: int
    """How many each search was asked for."""
    asked: bool
    """Whether every query was also put to `kb ask`."""
    options: dict[str, Any]
    """Search options other than their defaults."""
    settings: dict[str, Any]
    """Settings that have a say in what is found, whatever they were."""


class EvalSourceV1(Wire):
    name: str
    documents: int
    chunks: int
    branch: str | None
    commit: str | None
    """Of its repository, at its last ingest."""


class EvalIndexV1(Wire):
    """What was searched."""

    index_version: str
    sha256: str
    """Of the ids and contents of all documents."""
    documents: int
    sources: list[EvalSourceV1]


class EvalSliceV1(Wire):
    """The queries of one language, or whose expected documents are of one type."""

    name: str
    queries: int
    metrics: dict[str, float]


class EvalExpectedV1(Wire):
    """Something that a query should find."""

    name: str
    """As the golden set has it."""
    kind: Literal["doc", "chunk", "span"]
    grade: int
    doc_id: str | None
    """Null when it is not in the index."""
    rank: int | None
    """Of the first hit that has it; of a span, that has some of its lines."""
    covered: float
    """The share of its lines that the hits cite; of a document or chunk 1 or 0."""


class EvalHitV1(Wire):
    rank: int
    source: str
    doc_path: str
    citation: str
    chunk_id: str
    score: float
    grade: int
    """0 for what was not judged relevant."""


class EvalAnswerV1(Wire):
    """What `kb ask` made of a query."""

    refused: bool
    refusal_reason: str | None
    grounded: bool
    claims: int
    supported: int
    text: str | None = None
    """With a marker behind every statement; null when there is none."""
    quoted: list[str] = field(default_factory=list)
    """The lines or pages that were quoted, each once."""


class EvalQueryV1(Wire):
    id: str
    query: str
    lang: str
    types: list[str]
    group: str | None
    unanswerable: bool
    metrics: dict[str, float]
    expected: list[EvalExpectedV1]
    hits: list[EvalHitV1]
    answer: EvalAnswerV1 | None


class EvalTimingsV1(Wire):
    """Of the searches of a run, in milliseconds; never the same twice, so only there when asked for."""

    p50: float
    p95: float
    p99: float
    queries_per_second: float
    each: list[float] = field(default_factory=list)
    """Of every query, in the order of `queries`."""


class EvalReportV1(Wire, schema="eval_report.v1"):
    """One run of a golden set."""

    golden: EvalGoldenV1
    configuration: EvalConfigurationV1
    index: EvalIndexV1
    metrics: dict[str, float]
    counted: dict[str, int]
    """How many queries each metric is the mean of."""
    by_lang: list[EvalSliceV1]
    """By the language of the query."""
    by_type: list[EvalSliceV1]
    """By the type of the documents it should find."""
    notices: dict[str, int]
    """What searches said, by its code, and how many did."""
    unknown: list[str]
    """Expected ids that are not in the index; there are none unless they were to be skipped."""
    queries: list[EvalQueryV1]
    timings: EvalTimingsV1 | None


class EvalDifferenceV1(Wire):
    """A metric in two runs, over the queries that both have."""

    metric: str
    queries: int
    a: float
    b: float
    difference: float
    low: float
    """The 95 % interval of the difference, by paired bootstrap."""
    high: float
    verdict: Literal["better", "worse", "same"]
    """same: the interval holds 0."""


class EvalChangeV1(Wire):
    """A query whose value changed, with what each run found."""

    id: str
    query: str
    a: float
    b: float
    expected: list[EvalExpectedV1]
    hits_a: list[EvalHitV1]
    hits_b: list[EvalHitV1]


class EvalComparisonV1(Wire, schema="eval_comparison.v1"):
    """Two runs, query by query: b against a."""

    golden: EvalGoldenV1
    metric: str
    """By which queries are won and lost."""
    wins: int
    losses: int
    ties: int
    differences: list[EvalDifferenceV1]
    by_lang: list[EvalDifferenceV1]
    """Of every metric; `metric` is written metric[lang]."""
    by_type: list[EvalDifferenceV1]
    regressions: list[EvalChangeV1]
    """The worst first."""
    improvements: list[EvalChangeV1]
    changed: dict[str, list[Any]]
    """What differs in configuration and index: its name, and its value in each."""
    notices: list[str]


class EvalSuggestionV1(Wire):
    """A candidate for a golden set; a person has to look at it."""

    id: str
    query: str
    expected_docs: list[str]
    expected_spans: list[str]


class EvalSuggestionsV1(Wire, schema="eval_suggestions.v1"):
    suggestions: list[EvalSuggestionV1]


class EvalTrialV1(Wire):
    """One way to search, on all queries; chosen by these figures it would look better than it is."""

    settings: dict[str, Any]
    """What it changes; nothing for the way it is now."""
    value: float


class EvalTuningV1(Wire, schema="eval_tuning.v1"):
    """What other settings would do, judged on queries that had no say in choosing them."""

    golden: EvalGoldenV1
    metric: str
    folds: int
    current: float
    held_out: float
    """With the settings chosen on the other folds, each time."""
    difference: float
    low: float
    """The 95 % interval of the difference, by paired bootstrap."""
    high: float
    helps: bool
    settings: dict[str, Any]
    """What to set; empty when nothing helps significantly."""
    trials: list[EvalTrialV1]
    """The best first."""
    written: str | None
    """The config file that has them now."""
