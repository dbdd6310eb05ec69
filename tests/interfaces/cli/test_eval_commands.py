"""kb eval as commands: run, compare, report, suggest and tune."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kebab.wire import schemas

Kb = Callable[..., Any]

GOLDEN = str(Path(__file__).parents[3] / "samples" / "golden.yaml")


def _valid(value: Any, name: str) -> None:
    jsonschema.Draft202012Validator(schemas.schema(name)).validate(value)
    assert value["schema_version"] == f"{name}.v1"


def _run(sample: Kb, out: Path, *options: str) -> Any:
    ran = sample("eval", "run", GOLDEN, "--out", out, *options)
    assert ran.code == 0, ran.err
    return ran


def test_a_run_prints_metrics_by_language_and_type_and_writes_its_report(sample: Kb, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    ran = _run(sample, out, "--mode", "lexical", "--ask", "--timings")
    heading, columns, *rows = ran.out.splitlines()
    assert heading == "golden.yaml: 74 queries, lexical, k = 10"
    assert columns.split("\t")[:5] == ["metric", "all", "queries", "en", "ko"]
    assert {row.partition("\t")[0] for row in rows} >= {
        "ndcg@10",
        "citation_line_recall@10",
        "refusal_correctness",
        "groundedness",
    }
    assert any(row.startswith("latency: p50 ") for row in rows)
    kept = json.loads(out.read_text())
    _valid(kept, "eval_report")
    assert kept["metrics"]["ndcg@10"] > 0.9
    assert str(tmp_path) not in out.read_text()


def test_two_runs_write_identical_files_and_json_prints_the_same_bytes(sample: Kb, tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    ran = _run(sample, one, "--json")
    _run(sample, other)
    assert one.read_bytes() == other.read_bytes() == ran.out.encode()
    with_timings = sample("eval", "run", GOLDEN, "--json", "--timings").json()
    _valid(with_timings, "eval_report")
    assert with_timings.pop("timings")["p50"] > 0
    assert {**with_timings, "timings": None} == json.loads(one.read_text())


def test_runs_are_compared_and_a_significant_loss_can_fail(sample: Kb, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    _run(sample, good, "--mode", "lexical")
    _run(sample, bad, "--mode", "lexical", "--lang", "ko")
    ran = sample("eval", "compare", good, bad, "-n", "1")
    assert ran.code == 0
    assert "option lang: not set → ko" in ran.out
    assert "\tworse" in ran.out
    assert "  expected: " in ran.out
    assert "  a: 1.* " in ran.out
    assert sample("eval", "compare", good, bad, "--exit-code").code == 1
    assert sample("eval", "compare", good, good, "--exit-code").code == 0
    comparison = sample("eval", "compare", good, bad, "--json").json()
    _valid(comparison, "eval_comparison")
    assert comparison["losses"] == len(comparison["regressions"]) > 10


def test_a_report_is_one_page_beside_the_run(sample: Kb, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    _run(sample, out, "--mode", "lexical", "-k", "1")
    ran = sample("eval", "report", out)
    assert ran.out == f"{tmp_path / 'run.html'} was written.\n"
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "ranked low: rank " in page
    elsewhere = sample("eval", "report", out, "--out", tmp_path / "other.html", "--json").json()
    assert elsewhere["paths"] == [str(tmp_path / "other.html")]


def test_unknown_ids_in_a_golden_set_are_an_error_that_lists_them(sample: Kb, tmp_path: Path) -> None:
    golden = tmp_path / "golden.yaml"
    golden.write_text(
        "- {id: a, query: x, expected_docs: [gone.md, git/setup.md]}\n- {id: b, query: y, expected_spans: ['lost.md#L1-L2']}\n"
    )
    ran = sample("eval", "run", golden, "--json")
    assert ran.code == 2
    error = ran.json()
    assert (error["code"], error["message"]) == (
        "not_found",
        "golden.yaml expects what is not in the index, 3 in all: gone.md, lost.md, lost.md#L1-L2.",
    )
    assert "--skip-unknown" in error["hint"]
    assert sample("eval", "run", golden, "--skip-unknown", "--mode", "lexical").code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "nothing.yaml"], "invalid_golden_set"),
        (["run", GOLDEN, "--hits", "5"], "usage"),
        (["run", GOLDEN, "--ingest"], "usage"),
        (["run", GOLDEN, "--mode", "nonsense"], "usage"),
        (["compare", "nothing.json", "nothing.json"], "invalid_golden_set"),
        (["report", GOLDEN], "invalid_golden_set"),
        (["run", GOLDEN, "--mode", "lexical", "--out", "/nonexistent/run.json"], "source_error"),
    ],
)
def test_mistakes_are_clear_errors(sample: Kb, arguments: list[str], code: str) -> None:
    ran = sample("eval", *arguments, "--json")
    assert ran.code == 2
    error = json.loads(ran.out)
    assert error["code"] == code
    assert error["hint"]


def test_the_output_of_a_run_overwrites_only_a_report_of_a_run(sample: Kb, tmp_path: Path) -> None:
    """Overwriting a golden set would lose a day's work."""
    golden, out = tmp_path / "golden.yaml", tmp_path / "run.json"
    golden.write_text("- {id: a, query: git, expected_docs: [git/setup.md]}\n")
    assert sample("eval", "run", golden, "--out", out).code == 0
    assert sample("eval", "run", golden, "--out", out).code == 0
    ran = sample("eval", "run", golden, "--out", golden)
    assert ran.code == 2
    assert "exists already, and is no run" in ran.err
    assert golden.read_text().startswith("- {id: a")


def test_the_output_of_a_report_overwrites_only_a_report_page(sample: Kb, tmp_path: Path) -> None:
    golden, out = tmp_path / "golden.yaml", tmp_path / "run.json"
    golden.write_text("- {id: a, query: git, expected_docs: [git/setup.md]}\n")
    assert sample("eval", "run", golden, "--out", out).code == 0
    run = out.read_text()
    for kept in (golden, out):
        ran = sample("eval", "report", out, "--out", kept)
        assert ran.code == 2
        assert "exists already, and is no HTML page" in ran.err
    assert (golden.read_text()[:8], out.read_text()) == ("- {id: a", run)
    assert [sample("eval", "report", out).code for _ in range(2)] == [0, 0]


def test_suggesting_queries_needs_documents_with_headings(sample: Kb) -> None:
    ran = sample("eval", "suggest", "--path", "nowhere/*")
    assert (ran.code, ran.out) == (1, "")
    assert "no headings" in ran.err


def test_eval_compare_lists_improved_queries_on_request(sample: Kb, tmp_path: Path) -> None:
    runs = []
    for k in ("1", "10"):
        runs.append(tmp_path / f"{k}.json")
        sample("eval", "run", GOLDEN, "--mode", "lexical", "-k", "1", "--hits", k, "--out", runs[-1])
    spoiled = json.loads(runs[0].read_text())
    spoiled["queries"][0]["metrics"]["ndcg@1"] = 0.0
    runs[0].write_text(json.dumps(spoiled))
    (first,) = [query["id"] for query in spoiled["queries"][:1]]
    assert f"{first}: 0.0000" in sample("eval", "compare", *runs, "--improvements").out
    assert f"{first}: 0.0000" not in sample("eval", "compare", *runs).out


def test_suggested_queries_are_written_as_yaml_or_json_and_overwrite_no_file(sample: Kb, tmp_path: Path) -> None:
    out = tmp_path / "golden.yaml"
    assert sample("eval", "suggest", "-n", "5", "--out", out).out.startswith(f"{out} was written with 5 candidates.")
    assert out.read_text() == sample("eval", "suggest", "-n", "5").out
    assert sample("eval", "suggest", "--out", out).code == 2
    suggestions = sample("eval", "suggest", "-n", "5", "--json").json()
    _valid(suggestions, "eval_suggestions")
    assert len(suggestions["suggestions"]) == 5


def test_tuning_reports_if_no_setting_improves_the_results(sample: Kb) -> None:
    ran = sample("eval", "tune", GOLDEN, "--mode", "lexical", "--write")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "Nothing helps significantly: leave the settings as they are."


def test_tuning_writes_better_settings_into_the_config_file(
    kb: Kb, tmp_path: Path, write_notes: Callable[..., Path]
) -> None:
    things = "anchor basket candle dagger engine funnel garden hammer island jacket kettle ladder".split()
    about = {
        f"{thing}.md": f"# {thing}\n\nHow to look after it, and what it costs in the shop today.\n" for thing in things
    }
    talk = {
        f"talk{number}.md": f"# Talk {number}\n\nThe {thing}, and the {thing}, that {thing}.\n"
        for number, thing in enumerate(things)
    }
    config, golden = tmp_path / "config.toml", tmp_path / "golden.jsonl"
    config.write_text("# mine\n[search]\nheading_weight = 0.1\ntitle_weight = 0.1 # too little\n")
    golden.write_text(
        "".join(
            json.dumps({"id": thing, "query": f"{thing}s", "expected_docs": [f"{thing}.md"]}) + "\n" for thing in things
        )
    )
    assert kb("--config", config, "ingest", write_notes({**about, **talk})).code == 0
    told = kb("--config", config, "eval", "tune", golden)
    assert told.code == 0, told.err
    assert "This helps:" in told.out
    assert config.read_text().startswith("# mine\n[search]\nheading_weight = 0.1\n")
    tuning = kb("--config", config, "eval", "tune", golden, "--write", "--json").json()
    _valid(tuning, "eval_tuning")
    assert (tuning["helps"], tuning["written"]) == (True, str(config))
    assert config.read_text().startswith("# mine\n[search]\n")
    assert (
        kb("--config", config, "eval", "run", golden, "--json").json()["metrics"]["ndcg@10"] == 1.0 > tuning["current"]
    )


def test_a_judged_collection_is_ingested_into_a_database_of_its_own(
    kb: Kb, tmp_path: Path, isolated_home: Path
) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    texts = {
        "d/1": "the boiler is serviced in May",
        "d/2": "tomatoes are planted in spring",
        "d/3": "roses are cut in March",
    }
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": id, "title": "", "text": text}) + "\n" for id, text in texts.items())
    )
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "boiler serviced"}\n{"_id": "q2", "text": "when to plant tomatoes"}\n'
    )
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td/1\t1\nq2\td/2\t1\n")
    refused = kb("eval", "run", folder)
    assert refused.code == 2
    assert "--ingest" in refused.err
    ran = kb("eval", "run", folder, "--ingest", "--json")
    assert ran.code == 0, ran.err
    assert "tiny: 3 documents ingested in " in ran.err
    report = ran.json()
    assert (report["metrics"]["ndcg@10"], report["index"]["sources"][0]["name"]) == (1.0, "tiny")
    again = kb("eval", "run", folder, "--ingest", "--json")
    assert again.out == ran.out
    assert "ingested" not in again.err
    assert not (isolated_home / "data" / "kebab").exists(), "one's own index is left alone"
    named = tmp_path / "own.sqlite"
    assert kb("--db", named, "eval", "run", folder, "--ingest", "--json").out == ran.out
    assert kb("--db", named, "eval", "run", folder, "--json").out == ran.out, (
        "once it is there, it need not be ingested"
    )
