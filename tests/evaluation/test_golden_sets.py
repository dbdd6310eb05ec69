"""Golden sets are read strictly: errors name the faulty entry."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kebab.core.errors import GoldenSetError
from kebab.evaluation.files import file_stem, load_golden_set, write_documents


def _yaml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "golden.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_and_json_lines_give_the_same_golden_set(tmp_path: Path) -> None:
    entry: dict[str, Any] = {
        "id": "a", "query": "문서 검색", "expected_docs": ["x.md"], "expected_chunks": ["abcd"], "expected_spans": ["x.md#L3-L3"],
        "must_contain": ["y"], "forbidden": ["z"], "group": "g", "unanswerable": False,
    }  # fmt: skip
    lines = tmp_path / "golden.jsonl"
    lines.write_text(json.dumps(entry) + "\n\n", encoding="utf-8")
    (loaded,) = load_golden_set(lines).queries
    (same,) = load_golden_set(_yaml(tmp_path, json.dumps([entry]))).queries  # JSON is YAML
    assert loaded == same
    assert (loaded.expected_docs, loaded.expected_spans, loaded.group) == ({"x.md": 1}, ("x.md#L3-L3",), "g")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: 1", "is no list"),
        ("- 5", "no keys in entry 1"),
        ("[", "is no YAML"),
        ("[]", "has no queries"),
        ("- {query: x, expected_docs: [a]}", "no id in entry 1"),
        ("- {id: a, expected_docs: [a]}", "no query for a"),
        ("- {id: a, query: x, expected_doc: [a]}", "unknown key expected_doc in entry 1"),
        ("- {id: a, query: x, expected_docs: a}", "no list of texts as expected_docs of a"),
        ("- {id: a, query: x}", "expects nothing of a"),
        ("- {id: a, query: x, unanswerable: true, expected_docs: [a]}", "calls a unanswerable and expects something"),
        ("- {id: a, query: x, unanswerable: maybe}", "neither true nor false"),
        (
            "- {id: a, query: x, expected_docs: [a]}\n- {id: a, query: y, expected_docs: [a]}",
            "several queries with the id a",
        ),
        ("- {id: a, query: x, query: y, expected_docs: [a]}", "the key query is there twice"),
        ("- {id: a, query: x, expected_spans: [a.md]}", "a span without lines for a: a.md"),
        ("- {id: a, query: x, expected_spans: ['a.md#L5-L2']}", "a span without lines for a"),
        ("- {id: a, query: x, unanswerable: true, must_contain: [y]}", "calls a unanswerable and expects something"),
        (f"- {'[' * 100_000}{']' * 100_000}", "nested too deeply"),
    ],
)
def test_the_error_for_an_invalid_entry_names_it(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(GoldenSetError, match=what) as caught:
        load_golden_set(_yaml(tmp_path, text))
    assert caught.value.hint


def test_a_line_without_json_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text('{"id": "a", "query": "x", "expected_docs": ["a"]}\nnot json\n')
    with pytest.raises(GoldenSetError, match="line 2"):
        load_golden_set(path)


def test_a_missing_file_is_a_kebab_error(tmp_path: Path) -> None:
    with pytest.raises(GoldenSetError, match="cannot be read"):
        load_golden_set(tmp_path / "nothing.yaml")


def test_a_line_that_is_nested_too_deeply_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text("[" * 200_000)
    with pytest.raises(GoldenSetError, match="nested too deeply in line 1"):
        load_golden_set(path)


@pytest.mark.parametrize(
    ("file", "line", "what"),
    [
        ("queries.jsonl", '{"_id": "q1", "text": "again"}', r"queries\.jsonl has several entries with the _id q1"),
        ("queries.jsonl", '{"text": "nobody"}', r"queries\.jsonl has an entry without an _id"),
        ("queries.jsonl", "{", r"queries\.jsonl has no JSON in line"),
        ("corpus.jsonl", '{"_id": "2", "text": "another"}', r"corpus\.jsonl has several entries with the _id 2"),
        ("qrels.tsv", "q1\td/1", r"qrels\.tsv has no judgement in line"),
        ("qrels.tsv", "q1\td/1\t0", r"qrels\.tsv judges d/1 for q1 in two ways"),
        (
            "queries.jsonl",
            '{"_id": "q9", "text": "x", "text": "y"}',
            r"queries\.jsonl has no JSON in line .*the key text is there twice",
        ),
    ],
)
def test_faults_of_a_collection_are_named_with_their_file(tmp_path: Path, file: str, line: str, what: str) -> None:
    folder = _collection(tmp_path / "set", packed=False, qrels="qrels.tsv")
    with (folder / file).open("a") as opened:
        opened.write(f"{line}\n")
    with pytest.raises(GoldenSetError, match=what):
        load_golden_set(folder)
        write_documents(folder, tmp_path / "documents")


def test_a_qrels_file_whose_first_line_has_a_numeric_grade_has_no_header(tmp_path: Path) -> None:
    folder = _collection(tmp_path / "set", packed=False, qrels="qrels.tsv")
    (folder / "qrels.tsv").write_text("q1\td/1\tnan\nq2\t2\t1\n")
    with pytest.raises(GoldenSetError, match="has no judgement in line 1"):
        load_golden_set(folder)


def test_a_judged_query_without_words_is_refused(tmp_path: Path) -> None:
    folder = _collection(tmp_path / "set", packed=False, qrels="qrels.tsv")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": " "}\n{"_id": "q2", "text": "x"}\n')
    with pytest.raises(GoldenSetError, match="has no text for q1"):
        load_golden_set(folder)


def _collection(folder: Path, *, packed: bool, qrels: str) -> Path:
    folder.mkdir()
    (folder / Path(qrels).parent).mkdir(exist_ok=True)
    for name, rows in {
        "corpus.jsonl": [
            {"_id": "d/1", "title": "Title", "text": "body one"},
            {"_id": "2", "title": "", "text": "body two"},
        ],
        "queries.jsonl": [
            {"_id": "q1", "text": "first"},
            {"_id": "q2", "text": "second"},
            {"_id": "q3", "text": "nobody judged it"},
        ],
    }.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / (f"{name}.gz" if packed else name)).write_bytes(
            gzip.compress(text.encode()) if packed else text.encode()
        )
    (folder / qrels).write_text("query-id\tcorpus-id\tscore\nq1\td/1\t2\nq1\t2\t0\nq2\t2\t1\n")
    return folder


@pytest.mark.parametrize(("packed", "qrels"), [(True, "qrels.tsv"), (False, "qrels/test.tsv")])
def test_a_judged_collection_is_read_in_both_layouts(tmp_path: Path, packed: bool, qrels: str) -> None:
    loaded = load_golden_set(_collection(tmp_path / "set", packed=packed, qrels=qrels))
    assert (loaded.name, loaded.kind) == ("set", "beir")
    assert {query.id: dict(query.expected_docs) for query in loaded.queries} == {"q1": {"d/1": 2}, "q2": {"2": 1}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q9\t2\t1", "judges 1 queries that queries.jsonl has not: q9"),
        ("q2\t2", "no judgement in line 5"),
        ("q2\t2\t0.5", "no judgement in line 5"),
        ("q2\t2\tyes", "no judgement in line 5"),
    ],
)
def test_a_judgement_that_cannot_be_used_stops_the_run(tmp_path: Path, line: str, said: str) -> None:
    folder = _collection(tmp_path / "set", packed=False, qrels="qrels.tsv")
    with (folder / "qrels.tsv").open("a") as qrels:
        qrels.write(f"{line}\n")
    with pytest.raises(GoldenSetError, match=said):
        load_golden_set(folder)


def test_grades_may_be_written_with_a_point_and_in_the_four_columns_of_trec(tmp_path: Path) -> None:
    folder = _collection(tmp_path / "set", packed=False, qrels="qrels.tsv")
    (folder / "qrels.tsv").write_text("q1 0 d/1 2.0\n\nq2 0 2 1\n")
    assert {query.id: dict(query.expected_docs) for query in load_golden_set(folder).queries} == {
        "q1": {"d/1": 2},
        "q2": {"2": 1},
    }


def test_the_documents_of_a_collection_become_files_named_after_their_ids(tmp_path: Path) -> None:
    folder = _collection(tmp_path / "set", packed=True, qrels="qrels.tsv")
    target = write_documents(folder, tmp_path / "files")
    assert {file.name: file.read_text() for file in target.iterdir()} == {
        "d%2F1.md": "# Title\n\nbody one",
        "2.md": "body two",
    }
    before = {file: file.stat().st_mtime_ns for file in target.iterdir()}
    (target / "left over.md").write_text("of another time")
    write_documents(folder, target)
    assert {file: file.stat().st_mtime_ns for file in target.iterdir()} == before


def test_no_id_is_too_long_or_too_strange_for_a_file_name() -> None:
    ids = ["a" * 1000, "a" * 1001, "../../etc/passwd", "한국어", ".", "a\0b", "con\n"]
    stems = [file_stem(id) for id in ids]
    assert len(set(stems)) == len(ids)
    assert all(
        len(stem.encode()) < 200 and "/" not in stem and "\0" not in stem and stem not in (".", "..") for stem in stems
    )


@pytest.mark.parametrize("missing", ["queries.jsonl.gz", "qrels.tsv"])
def test_missing_parts_of_a_collection_are_named(tmp_path: Path, missing: str) -> None:
    folder = _collection(tmp_path / "set", packed=True, qrels="qrels.tsv")
    (folder / missing).unlink()
    with pytest.raises(GoldenSetError, match=missing.removesuffix(".gz")):
        load_golden_set(folder)


def test_a_damaged_archive_is_a_kebab_error(tmp_path: Path) -> None:
    folder = _collection(tmp_path / "set", packed=True, qrels="qrels.tsv")
    (folder / "queries.jsonl.gz").write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(GoldenSetError, match="cannot be unpacked"):
        load_golden_set(folder)
